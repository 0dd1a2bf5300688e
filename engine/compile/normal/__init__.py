"""Checked clauses to the normal form that `engine/ir/rules` promises: disjunctions distributed, inline relations gone,
equations solved, values in place of literals, variables numbered."""
