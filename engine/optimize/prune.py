"""prune: relations that no observed relation is computed from are not computed.

    .output path   path <- edge   cycle <- path   far <- cycle, edge     ->     path <- edge
"""

from __future__ import annotations

from dataclasses import replace

from dlog.engine.compile.strata.dependencies import relations_read
from dlog.engine.ir.rules import Program
from dlog.engine.optimize.rewriting import rules_by_relation


def prune(program: Program, observed: frozenset[str]) -> Program:
    """Declarations and facts stay; relations that depend on each other are needed or not all together. What is not needed is
    not read from files either."""
    rules = rules_by_relation(program)
    needed = set(observed)
    queue = list(observed)
    while queue:
        reads = {on for rule in rules.get(queue.pop(), ()) for on in relations_read(rule)}
        queue += reads - needed
        needed |= reads
    if needed.issuperset(program.relations):
        return program
    strata = tuple(s for s in program.strata if not needed.isdisjoint(s.relations))
    lattices = {name: lattice for name, lattice in program.lattices.items() if name in needed}
    io = tuple(i for i in program.io if i.action != "input" or i.relation in needed)
    return replace(program, strata=strata, lattices=lattices, io=io)
