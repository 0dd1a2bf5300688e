"""The delta paths of one rule.

    p(x,z) :- q(x,y), p(y,z), p(x,_).      q of an earlier stratum, p of this one

has, in the recursive stratum of p, one path per reading of p. The path seeded by the changes of one reading sees the readings
of p before it including the changes of this iteration (`neu`) and those after it without (`alt`), so that two simultaneous
changes meet once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import (
    Accumulate,
    AntiJoin,
    Extend,
    Filter,
    Generate,
    HalfJoin,
    Insert,
    LookUp,
    Map,
    Path,
    Scan,
    SemiJoin,
    UnpackRecord,
)
from dlog.engine.ir.rules import Constant, Term
from dlog.engine.plan.joins.emit import emit
from dlog.engine.plan.joins.moves import Index, Move
from dlog.engine.plan.joins.order import choose_order
from dlog.engine.plan.keys import injective, key_of
from dlog.engine.plan.query import Query, Reading, closure, mask
from dlog.engine.plan.statistics import Estimator, Key


@dataclass(slots=True)
class Paths:
    """Makes the paths of one scope. `indexes` are those which the paths made so far use; later ones read them for nothing.
    `keys` are those of relations that one path fills."""

    estimator: Estimator
    feedback: frozenset[str]
    indexes: set[Index] = field(default_factory=set)
    keys: dict[str, Key] = field(default_factory=dict)

    def enter(
        self, query: Query, sink: Insert | Accumulate, rule: int, may_repeat: bool = True
    ) -> tuple[tuple[Path, ...], float]:
        """The paths of a query without feedback (one, seeded wherever it is cheapest) and an estimate of its rows. Without
        `may_repeat`, an `Insert` of rows that cannot repeat says so."""
        state = choose_order(query, seeds(query), self.estimator, self.indexes)
        if isinstance(sink, Insert) and not may_repeat and injective(query, state.moves, self.estimator):
            sink = replace(sink, distinct=False)
            key = key_of(query, state.moves, self.estimator)
            self.keys |= {} if key is None else {sink.relation: key}
        return (self._finish(query, state.moves, sink, rule, changes=False),), state.rows

    def loop(self, query: Query, sink: Insert, rule: int) -> tuple[Path, ...]:
        """One path per feedback reading of `query`, in the order of the text."""
        own = [i for i, r in enumerate(query.readings) if r.relation in self.feedback]
        own.sort(key=lambda i: query.readings[i].place)
        paths = []
        for seed in own:
            seeded = replace(query, readings=tuple(self._view(r, query.readings[seed]) for r in query.readings))
            state = choose_order(seeded, [seed], self.estimator, self.indexes)
            paths.append(self._finish(seeded, state.moves, sink, rule, changes=True))
        return tuple(paths)

    def cost(self, query: Query) -> tuple[float, float]:
        """An estimate of the cost and of the rows of all paths that the query needs."""
        own = [i for i, r in enumerate(query.readings) if r.relation in self.feedback]
        starts = [[i] for i in own] if own else [seeds(query)]
        states = [choose_order(query, start, self.estimator, self.indexes) for start in starts]
        return sum(s.cost for s in states), max(s.rows for s in states)

    def _view(self, reading: Reading, seed: Reading) -> Reading:
        if reading.relation not in self.feedback:
            return reading
        return replace(reading, view="neu" if reading.place < seed.place else "alt")

    def _finish(
        self, query: Query, order: Sequence[Move], sink: Insert | Accumulate, rule: int, changes: bool
    ) -> Path:
        path = emit(query, order, _with_terms(sink, query.output), rule, changes)
        self.indexes.update(_indexes(path))
        return path


def _with_terms(sink: Insert | Accumulate, output: tuple[Term, ...]) -> Insert | Accumulate:
    """The sink over the query's output, which may name variables otherwise than the rule does."""
    if isinstance(sink, Insert) and sink.weight is not None:
        return replace(sink, terms=output[:-1], weight=output[-1])
    if isinstance(sink, Insert):
        return Insert(sink.relation, output, sink.distinct)
    keys = len(sink.key)
    return replace(sink, key=output[:keys], value=None if sink.value is None else output[keys])


def seeds(query: Query) -> Sequence[int | None]:
    """The starts of a path without changes: any reading, or one empty row where that already says something."""
    known = closure(0, query.conditions)
    unit = any(isinstance(a, Constant) or mask(a) & known for r in query.readings for a in r.args)
    only_asks = not query.bag and any(_apart(r, query) for r in query.readings)
    every = list(range(len(query.readings)))
    return [None, *every] if unit or only_asks or not every else every


def _apart(reading: Reading, query: Query) -> bool:
    """Whether nothing else could use the reading's variables: it holds or not, whatever the rest binds."""
    return all(a is None for a in reading.args)


def _indexes(path: Path) -> list[Index]:
    found: list[Index] = []
    for step in path.steps:
        match step:
            case HalfJoin(arrangement=arrangement):
                found.append((arrangement.relation, arrangement.key))
            case Extend(proposers=proposers):
                found.extend((p.arrangement.relation, p.arrangement.key) for p in proposers)
            case SemiJoin(relation=relation, args=args) | AntiJoin(relation=relation, args=args):
                found.append((relation, tuple(c for c, a in enumerate(args) if a is not None)))
            case Filter() | Map() | UnpackRecord() | Generate() | LookUp():
                pass
    return found


def changes_of(path: Path) -> str | None:
    """The relation whose changes seed the path."""
    return path.seed.relation if isinstance(path.seed, Scan) and path.seed.changes else None
