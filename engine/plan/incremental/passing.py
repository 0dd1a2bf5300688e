"""Relations whose rows pass: events, and what they meet. Only their changes are asked for, by who follows them.

    met@(o, item, q, p, diff, round) :- changed@(o, item, q, diff, round), price(item, p).

has one path, seeded by `changed@`, with all others at `neu`. An event says by its round what it is to meet, so there is nothing
for a later change to do; it need not be taken back when its round is over, and neither need what it has met. Rows of both are
gone when the next batch begins.

Where the plan needs more of events than their changes (aggregates for them, functors that must see only what holds), they come
and go like all other rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from dlog.engine.ir.functors import may_stop
from dlog.engine.ir.rules import Aggregate, Atom, Compare, Generator, Literal, Negation, Program, Unpack


def passing_relations(program: Program, recomputed: Collection[int] = ()) -> frozenset[str]:
    """Those of a program. Strata that are `recomputed`, by number, need the rows of what they read."""
    others = {name for n, s in enumerate(program.strata) if n in recomputed for name in s.relations}
    return frozenset(name for pair in _followed(program) if pair[1] not in others for name in pair)


def _followed(program: Program) -> Iterator[tuple[str, str]]:
    """The relations of events that pass, and of what they meet."""
    for timed in program.timed.values():
        rules = program.rules.get(timed.source, ()) if timed.how == "kept" else ()
        if rules and all(_passes(rule.body, timed.event) for rule in rules):
            yield timed.event, timed.source


def _passes(body: Iterable[Literal], event: str) -> bool:
    """Whether a body has an event, and nothing for which a plan may need what does not change."""
    found = 0
    for literal in body:
        match literal:
            case Atom(relation=name):
                found += name == event
            case Compare(left=left, right=right):
                if may_stop(left) or may_stop(right):
                    return False
            case Generator(args=args):
                if any(map(may_stop, args)):
                    return False
            case Aggregate():
                return False
            case Negation() | Unpack():
                pass
    return found == 1
