"""A program some of whose strata cannot be maintained, cut to parts: each such stratum is one, and between them lie those that
are maintained together.

A maintained stratum comes as early as what it reads allows: all that follow from as many others, one after the other, share a
part.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import relations_asked
from dlog.engine.ir.rules import (
    AUTOINC,
    Aggregate,
    Compare,
    Constant,
    Functor,
    Generator,
    Kind,
    Literal,
    Program,
    Record,
    Rule,
    Stratum,
    Term,
    Timed,
)
from dlog.engine.ir.traversal import functors

COUNTED = 1 << 40
"""Numbers that the counter of one stratum may give."""


@dataclass(frozen=True, slots=True)
class Part:
    """`why` says why the part cannot be maintained. `owns` are the relations that are read from it, `fed` those whose external
    rows it takes, `reads` those that earlier parts derive. One of a `timed` relation has no rules; it is `passing` where nobody
    asks for more than its changes."""

    program: Program
    why: str | None
    owns: frozenset[str]
    inputs: tuple[str, ...]
    reads: tuple[str, ...]
    timed: str = ""
    passing: bool = False


def parts(program: Program, reasons: Mapping[int, str], passing: Collection[str] = ()) -> tuple[Part, ...]:
    """The parts, each after those that it reads; `reasons` says by the number of a stratum why it cannot be maintained, and
    `passing` are relations whose rows pass."""
    depth: dict[str, int] = {}
    shared: dict[int, list[Stratum]] = {0: []}
    alone: dict[int, list[int]] = {}
    timed: dict[int, list[str]] = {}

    def level_of(name: str) -> int:
        """The level from which on a relation can be read."""
        if name in program.timed and name not in depth:
            level = max(map(level_of, _followed(program.timed[name])))
            timed.setdefault(level, []).append(name)
            depth[name] = level + 1
        return depth.get(name, 0)

    for number, stratum in enumerate(program.strata):
        if not stratum.rules:
            continue
        level = max(map(level_of, relations_asked(program, stratum)), default=0)
        if number in reasons:
            alone.setdefault(level, []).append(number)
        else:
            shared.setdefault(level, []).append(stratum)
        depth |= dict.fromkeys(stratum.relations, level + (number in reasons))
    program = with_apart_counters(program)
    taken: set[str] = set()
    made = []
    for level in sorted(shared.keys() | alone.keys() | timed.keys()):
        if level == 0 or level in shared:
            made.append(_part(program, shared[level], None, taken, passing, everything=level == 0))
        for number in alone.get(level, ()):
            made.append(_part(program, [program.strata[number]], reasons[number], taken))
        made += [_timed_part(program, name, name in passing) for name in timed.get(level, ())]
    return tuple(made)


def explain_timed(name: str, timed: Timed) -> str:
    """What a plan says of a relation that rounds feed."""
    match timed.how:
        case "shown":
            how = f"the rows of {timed.source} while they are due, by a schedule"
        case "changed":
            how = f"the rows of {timed.source} that come or go, for one round"
        case "kept":
            how = f"what rows had met when they came, by {timed.source}; taken back when they go: " + (
                "the same" if timed.original else "what they meet then"
            )
    return f"{name}: {how}\n"


def _followed(timed: Timed) -> tuple[str, ...]:
    return (timed.source, timed.event) if timed.event else (timed.source,)


def _timed_part(program: Program, name: str, passing: bool) -> Part:
    timed = program.timed[name]
    relations = {n: program.relations[n] for n in (name, *_followed(timed))}
    part = replace(program, relations=relations, strata=(), facts={}, io=(), lattices={})
    return Part(part, None, frozenset((name,)), (name,) if timed.how == "kept" else (), _followed(timed), name, passing)


def with_apart_counters(program: Program) -> Program:
    """The program whose strata have numbers of their own from `autoinc()`, each computed by an engine that counts from 0: the
    second one from `COUNTED` on, and so forth."""
    counting = [s for s in program.strata if any(f.op == AUTOINC for rule in s.rules for f in functors(rule))]
    if len(counting) < 2:
        return program
    firsts = {s.relations: COUNTED * number for number, s in enumerate(counting)}
    return replace(program, strata=tuple(_from(s, firsts.get(s.relations, 0)) for s in program.strata))


def _from(stratum: Stratum, first: int) -> Stratum:
    """The stratum, which counts from a number on."""
    return replace(stratum, rules=tuple(_rule_from(rule, first) for rule in stratum.rules)) if first else stratum


def _rule_from(rule: Rule, first: int) -> Rule:
    head = replace(rule.head, args=tuple(_shifted(t, first) for t in rule.head.args))
    return replace(rule, head=head, body=tuple(_literal_from(x, first) for x in rule.body))


def _literal_from(literal: Literal, first: int) -> Literal:
    match literal:
        case Compare(left=left, right=right):
            return replace(literal, left=_shifted(left, first), right=_shifted(right, first))
        case Generator(args=args):
            return replace(literal, args=tuple(_shifted(a, first) for a in args))
        case Aggregate(target=target, alternatives=bodies):
            inner = tuple(tuple(_literal_from(x, first) for x in body) for body in bodies)
            return replace(literal, target=target if target is None else _shifted(target, first), alternatives=inner)
        case _:
            return literal


def _shifted(term: Term, first: int) -> Term:
    match term:
        case Functor(op=op) if op == AUTOINC:
            return Functor("+", (term, Constant(first, Kind.NUMBER)), Kind.NUMBER, Kind.NUMBER, term.span)
        case Functor(args=args) | Record(args=args):
            return replace(term, args=tuple(_shifted(a, first) for a in args))
        case _:
            return term


def _part(
    program: Program,
    strata: list[Stratum],
    why: str | None,
    taken: set[str],
    passing: Collection[str] = (),
    *,
    everything: bool = False,
) -> Part:
    """The part of some strata; the first one has all relations without rules. `taken` are relations that parts own."""
    ruled = program.derived.keys() | program.timed.keys()
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
        timed={},
        at_once={},
        passing=frozenset(known.intersection(passing)),
    )
    return Part(part, why, owns, fed, tuple(name for name in part.relations if name not in fed))
