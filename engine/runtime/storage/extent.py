"""Extents: the least and greatest value a column can hold, where that is known before it is filled.

A derived column that only copies others has their extents. It tells how many bytes a value needs and whether one bit per
possible row is the cheapest set (Soufflé's users write `brie` for that by hand).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dlog.dataclass import dataclass
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Constant, Functor, Kind, Record, Term, Variable

_INT32 = (-(2**31), 2**31 - 1)


@dataclass(frozen=True, slots=True)
class Extent:
    """Values in [low, high]; low > high where there are none."""

    low: int
    high: int

    @property
    def span(self) -> int:
        return max(0, self.high - self.low + 1)

    def union(self, other: Extent) -> Extent:
        if self.span == 0:
            return other
        if other.span == 0:
            return self
        return Extent(min(self.low, other.low), max(self.high, other.high))


EMPTY = Extent(0, -1)
Extents = list[Extent | None]  # per column; None: unknown


def width_of(kind: Kind, extent: Extent | None) -> int:
    """Bytes per value of a column."""
    if kind in (Kind.SYMBOL, Kind.RECORD):
        return 4
    if kind is Kind.FLOAT or extent is None:
        return 8
    return 4 if extent.low >= _INT32[0] and extent.high <= _INT32[1] else 8


def infer_extents(
    paths: list[nodes.Path], made: Mapping[str, int], known: Callable[[str], Extents], start: Mapping[str, Extents]
) -> dict[str, Extents]:
    """Extents of the relations that `paths` fill: `made` names them with their arity, `start` gives what they hold already.

    A fixed point: an extent only grows, and only to unions of extents that exist; anything computed is unknown.
    """
    extents: dict[str, Extents] = {name: list(start.get(name) or [EMPTY] * arity) for name, arity in made.items()}

    def column(relation: str, number: int) -> Extent | None:
        return extents[relation][number] if relation in extents else known(relation)[number]

    changed = True
    while changed:
        changed = False
        for path in paths:
            variables = bound_extents(path, column)
            for sink in path.sinks:
                target = extents[sink.relation]
                for number, extent in enumerate(_sink_extents(sink, variables)):
                    old = target[number]
                    new = None if old is None or extent is None else old.union(extent)
                    if new != old:
                        target[number] = new
                        changed = True
    return extents


def bound_extents(path: nodes.Path, column: Callable[[str, int], Extent | None]) -> dict[int, Extent | None]:
    """Extent of each variable that the path binds; none of those that nothing is known of."""
    variables: dict[int, Extent | None] = {}

    def bind(relation: str, binds: tuple[nodes.Bind, ...]) -> None:
        for number, variable in binds:
            variables[variable] = column(relation, number)

    if isinstance(path.seed, nodes.Scan):
        bind(path.seed.relation, path.seed.binds)
    for step in path.steps:
        match step:
            case nodes.HalfJoin():
                bind(step.arrangement.relation, step.binds)
            case nodes.Extend():
                first = step.proposers[0]
                variables[step.variable] = column(first.arrangement.relation, first.column)
            case nodes.Map():
                variables[step.variable] = _term_extent(step.term, variables)
            case nodes.SemiJoin() | nodes.AntiJoin() | nodes.Filter() | nodes.LookUp():
                pass
            case nodes.UnpackRecord() | nodes.Generate():
                pass
    return variables


def _sink_extents(sink: nodes.Insert | nodes.Accumulate, variables: dict[int, Extent | None]) -> list[Extent | None]:
    """Extent of each value that a sink receives."""
    match sink:
        case nodes.Insert(terms=terms):
            return [_term_extent(t, variables) for t in terms]
        case nodes.Accumulate(key=key):
            return [*(_term_extent(t, variables) for t in key), None]


def _term_extent(term: Term, variables: dict[int, Extent | None]) -> Extent | None:
    match term:
        case Variable(id=number):
            return variables.get(number)
        case Constant(value=int(value), kind=Kind.NUMBER):
            return Extent(value, value)
        case Constant() | Functor() | Record():
            return None
