"""Syntax trees to typed, normalized rules: `components` become plain clauses, then names (`resolve`), scopes, types (`typing`),
safety, normal form (`normal`), strata.

May use `ir` and the grammar, never NumPy, so that `dlog check` starts at once. All mistakes of a stage are collected
(`problems`) and told together; what passes needs no check later.
"""
