"""prune: relations that no observed relation is computed from are not computed.

.output path   path <- edge   cycle <- path   far <- cycle, edge     ->     path <- edge
"""

from __future__ import annotations

from dataclasses import replace

from dlog.engine.compile.strata.dependencies import relations_asked, relations_read
from dlog.engine.ir.rules import Program, Stratum
from dlog.engine.ir.traversal import prints


def prune(program: Program, observed: frozenset[str]) -> Program:
    """Declarations and facts stay; relations that depend on each other are needed or not all together, and so are those whose
    rules print. What is not needed is not read from files either."""
    needed = observed if observed.issuperset(program.relations) else _needed(program, observed)
    if needed.issuperset(program.relations):
        return program
    strata = tuple(s for s in program.strata if not needed.isdisjoint(s.relations))
    lattices = {name: lattice for name, lattice in program.lattices.items() if name in needed}
    io = tuple(i for i in program.io if i.action != "input" or i.relation in needed)
    return replace(program, strata=strata, lattices=lattices, io=io)


def _needed(program: Program, observed: frozenset[str]) -> set[str]:
    """What is observed or prints, and all that it is computed from. Every rule is looked at once."""
    needed = {*observed, *(name for name, rules in program.rules.items() if any(map(prints, rules)))}
    beside = _beside(program)
    queue = list(needed)
    while queue:
        name = queue.pop()
        reads = {on for rule in program.rules.get(name, ()) for on in relations_read(rule)}
        if (stratum := beside.pop(name, None)) is not None:
            reads.update(relations_asked(program, stratum), stratum.relations)
            for relation in stratum.relations:
                beside.pop(relation, None)
        reads -= needed
        queue += reads
        needed |= reads
    return needed


def _beside(program: Program) -> dict[str, Stratum]:
    """The strata where more than a relation's rules decides which rows it keeps, by relation."""
    strata = (s for s in program.strata if any(name in program.retentions for name in s.relations))
    return {name: stratum for stratum in strata for name in stratum.relations}
