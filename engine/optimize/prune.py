"""prune: relations that no observed relation is computed from are not computed.

.output path   path <- edge   cycle <- path   far <- cycle, edge     ->     path <- edge
"""

from __future__ import annotations

from dataclasses import replace

from dlog.engine.compile.strata.dependencies import relations_asked, relations_read
from dlog.engine.ir.rules import Program
from dlog.engine.ir.traversal import prints


def prune(program: Program, observed: frozenset[str]) -> Program:
    """Declarations and facts stay; relations that depend on each other are needed or not all together, and so are those whose
    rules print. What is not needed is not read from files either."""
    needed = observed | {name for name, rules in program.rules.items() if any(map(prints, rules))}
    queue = list(needed)
    while queue:
        name = queue.pop()
        reads = {on for rule in program.rules.get(name, ()) for on in relations_read(rule)} | _beside(program, name)
        queue += reads - needed
        needed |= reads
    if needed.issuperset(program.relations):
        return program
    strata = tuple(s for s in program.strata if not needed.isdisjoint(s.relations))
    lattices = {name: lattice for name, lattice in program.lattices.items() if name in needed}
    io = tuple(i for i in program.io if i.action != "input" or i.relation in needed)
    return replace(program, strata=strata, lattices=lattices, io=io)


def _beside(program: Program, name: str) -> set[str]:
    """What decides beside its rules which rows a relation keeps."""
    stratum = program.stratum_of.get(name)
    if stratum is None or program.retentions.keys().isdisjoint(stratum.relations):
        return set()
    return relations_asked(program, stratum).union(stratum.relations)
