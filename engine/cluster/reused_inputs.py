"""Inputs that a session's workers have already when its program becomes another one: they need not pass through the driver."""

from __future__ import annotations

from collections.abc import Sequence

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Program
from dlog.engine.plan.exchange.decomposable import DecomposablePlan, Feed
from dlog.engine.plan.exchange.places import EVERYWHERE


@dataclass(frozen=True, slots=True)
class ReusedInput:
    """Rows from outside for a feed of a relation, which workers have of an engine before, by its number, at a feed of that."""

    relation: str
    feed: Feed
    number: int
    source: Feed


def reused_inputs(
    number: int, before: Program, old: DecomposablePlan, program: Program, new: DecomposablePlan
) -> tuple[ReusedInput, ...]:
    """For each input of which every worker has its share, or all rows: from where it gets it for each engine of its own."""
    found: list[ReusedInput] = []
    for name, feeds in new.feeds.items():
        if name not in before.relations or not same_types(before, program, name):
            continue
        sources = [_source(old.feeds.get(name, ()), feed) for feed in feeds]
        if feeds and None not in sources:
            found += [ReusedInput(name, f, number, s) for f, s in zip(feeds, sources, strict=True) if s is not None]
    return tuple(found)


def _source(feeds: Sequence[Feed], wanted: Feed) -> Feed | None:
    """One of the feeds of which each worker has what it needs."""
    able = (feed for feed in feeds if feed.place in (wanted.place, EVERYWHERE))
    return min(able, key=lambda feed: feed.place != wanted.place, default=None)


def same_types(some: Program, other: Program, relation: str) -> bool:
    """Whether a relation has rows of the same kind in both programs."""
    types = ([type for _, type in program.relations[relation].attributes] for program in (some, other))
    return next(types) == next(types)
