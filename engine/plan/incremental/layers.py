"""A program some of whose strata cannot be maintained, cut to parts: each such stratum is one, and between them lie those that
are maintained together.

A maintained stratum comes as early as what it reads allows: all that follow from as many others, one after the other, share a
part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dlog.engine.compile.strata.dependencies import relations_asked
from dlog.engine.ir.rules import Program, Stratum


@dataclass(frozen=True, slots=True)
class Part:
    """`why` says why the part cannot be maintained. `owns` are the relations that are read from it, `fed` those whose external
    rows it takes, `reads` those that earlier parts derive."""

    program: Program
    why: str | None
    owns: frozenset[str]
    fed: tuple[str, ...]
    reads: tuple[str, ...]


def parts(program: Program, reasons: Mapping[int, str]) -> tuple[Part, ...]:
    """The parts, each after those that it reads; `reasons` says by the number of a stratum why it cannot be maintained."""
    depth: dict[str, int] = {}
    shared: dict[int, list[Stratum]] = {0: []}
    alone: dict[int, list[int]] = {}
    for number, stratum in enumerate(program.strata):
        if not stratum.rules:
            continue
        level = max((depth.get(name, 0) for name in relations_asked(program, stratum)), default=0)
        if number in reasons:
            alone.setdefault(level, []).append(number)
        else:
            shared.setdefault(level, []).append(stratum)
        depth |= dict.fromkeys(stratum.relations, level + (number in reasons))
    taken: set[str] = set()
    made = []
    for level in sorted(shared.keys() | alone.keys()):
        if level == 0 or level in shared:
            made.append(_part(program, shared[level], None, taken, everything=level == 0))
        for number in alone.get(level, ()):
            made.append(_part(program, [program.strata[number]], reasons[number], taken))
    return tuple(made)


def _part(program: Program, strata: list[Stratum], why: str | None, taken: set[str], *, everything: bool = False) -> Part:
    """The part of some strata; the first one has all relations without rules. `taken` are relations that parts own."""
    ruled = program.derived.keys()
    derived = {name for stratum in strata for name in stratum.relations}
    used = derived.union(*(relations_asked(program, stratum) for stratum in strata))
    known = used | (program.relations.keys() - ruled if everything else set())
    fed = tuple(name for name in program.relations if name in known and (name in derived or name not in ruled))
    owns = frozenset(fed) - taken
    taken |= owns
    part = replace(
        program,
        relations={name: relation for name, relation in program.relations.items() if name in known},
        strata=tuple(strata),
        facts={name: facts for name, facts in program.facts.items() if name in fed},
        io=tuple(io for io in program.io if io.relation in fed),
        lattices={name: lattice for name, lattice in program.lattices.items() if name in derived},
    )
    return Part(part, why, owns, fed, tuple(name for name in part.relations if name not in fed))
