"""Paths over rounds that are made once for all bodies of one shape, in a stratum of many rules.

What the paths of a body are depends on its shape, on its names, and on what the planner asks for one after the other: figures,
and whether an index is there already. Where the answers are what they were for another body, the paths are that one's with the
names changed. A body that has a temporary or a reduction made, or reads one, is like no other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, cast

from dlog.engine.ir.nodes import AntiJoin, LookUp, Path
from dlog.engine.plan.incremental.paths import RoundsPaths
from dlog.engine.plan.incremental.renaming import Builders, Named, named_by
from dlog.engine.plan.incremental.shapes import Names, Shape, Shapes
from dlog.engine.plan.joins.moves import Index
from dlog.engine.plan.query import Query, Reading, canonical_order, in_order
from dlog.engine.plan.static.build import Body
from dlog.engine.plan.statistics import Estimator, Key

MAX_COMPARED_BODIES = 8
"""Bodies of one shape whose answers are compared: trades comparing against planning."""

EstimatorAnswers: TypeAlias = dict[tuple[str, str, tuple[Any, ...]], object]
"""What was asked (a method of the estimator, or `index`), of which relation, with which further arguments, and the answers."""


class Repeated:
    """Makes the paths of a stratum's bodies."""

    def __init__(self, paths: RoundsPaths) -> None:
        self._paths = paths
        self._stages = paths.projections.stages
        self._shapes = Shapes(self._stages.program)
        self._paths_by_shape: dict[Shape, list[_Paths]] = {}

    def enter(self, body: Body) -> tuple[Path, ...]:
        """See `RoundsPaths.enter`."""
        paths = self._paths
        if _reads_stages(body.query):
            return paths.enter(body.query, body.sink, body.rule)[0]
        shape, names = self._shapes.of_body(body.query, body.sink, paths.feedback)
        named, alike = named_by(names), self._paths_by_shape.setdefault(shape, [])
        for known in alike:
            if known.fits(named, paths):
                return known.entered(named, paths, body.rule)
        if len(alike) == MAX_COMPARED_BODIES:
            return paths.enter(body.query, body.sink, body.rule)[0]
        return self._plan_with_answers(body, names, alike)

    def _plan_with_answers(self, body: Body, names: Names, alike: list[_Paths]) -> tuple[Path, ...]:
        """The paths of a body, which may serve others like it."""
        paths, asked, made = self._paths, EstimatorAnswers(), self._stages.temporary_count
        estimator, indexes = paths.estimator, paths.indexes
        noted = _RecordingIndexes(indexes, asked)
        paths.estimator, paths.indexes = _RecordingEstimator(estimator, asked), noted
        try:
            found = paths.enter(body.query, body.sink, body.rule)[0]
        finally:
            paths.estimator, paths.indexes = estimator, indexes
            indexes.update(noted.new)
        if self._stages.temporary_count == made and all(relation in names.relations for _, relation, _ in asked):
            alike.append(_Paths(body, names, found, noted.new, paths.derived[-1], asked))
        return found


class CanonicalOrders:
    """The canonical forms of queries: their order is found once for all of one shape."""

    def __init__(self) -> None:
        self._orders: dict[Shape, tuple[list[int], list[int]]] = {}

    def __call__(self, query: Query) -> Query:
        """See `canonical`."""
        names = Names()
        shape = names.query(query), names.order()
        order = self._orders.get(shape)
        if order is None:
            order = self._orders[shape] = canonical_order(query)
        return in_order(query, *order)


def _reads_stages(query: Query) -> bool:
    parts = (*query.readings, *query.conditions)
    return any(isinstance(p, Reading | AntiJoin | LookUp) and p.relation.startswith("@") for p in parts)


class _RecordingEstimator(Estimator):
    """An estimator that writes down what it is asked."""

    def __init__(self, estimator: Estimator, asked: EstimatorAnswers) -> None:
        self._estimator, self._answers = estimator, asked

    def declare(self, relation: str, arity: int, rows: float) -> None:
        self._estimator.declare(relation, arity, rows)

    def arity(self, relation: str) -> int:
        return self._estimator.arity(relation)

    def indexed(self, relation: str) -> bool:
        return self._estimator.indexed(relation)

    def keys(self, relation: str) -> tuple[Key, ...]:
        found = self._answers["keys", relation, ()] = tuple(self._estimator.keys(relation))
        return found

    def rows(self, relation: str) -> float:
        found = self._answers["rows", relation, ()] = self._estimator.rows(relation)
        return found

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float:
        found = self._answers["distinct", relation, (columns,)] = self._estimator.distinct(relation, columns)
        return found

    def counted(self, relation: str, columns: tuple[int, ...]) -> float | None:
        found = self._answers["counted", relation, (columns,)] = self._estimator.counted(relation, columns)
        return found

    def skew(self, relation: str, columns: tuple[int, ...]) -> float:
        found = self._answers["skew", relation, (columns,)] = self._estimator.skew(relation, columns)
        return found


class _RecordingIndexes(set[Index]):
    """The indexes that there are, and `new` ones; writes down what it is asked of the former."""

    def __init__(self, there: set[Index], asked: EstimatorAnswers) -> None:
        self._there, self._answers = there, asked
        self.new: set[Index] = set()

    def __contains__(self, index: object) -> bool:
        if index in self.new:
            return True
        relation, key = cast("Index", index)
        found = self._answers["index", relation, (key,)] = index in self._there
        return found

    def update(self, *indexes: Iterable[Index]) -> None:
        self.new.update(*indexes)


class _Paths:
    """The paths of one body for others of its shape."""

    def __init__(
        self,
        body: Body,
        names: Names,
        paths: tuple[Path, ...],
        indexes: Iterable[Index],
        derived: tuple[Any, ...],
        asked: EstimatorAnswers,
    ) -> None:
        builders = Builders((body.query, body.sink.terms, body.sink.weight), names)
        self._answers = [(what, names.relations[name], rest, answer) for (what, name, rest), answer in asked.items()]
        self._indexes = [(names.relations[name], key) for name, key in indexes]
        self._paths = [(path, builders.of(path)) for path in paths]
        self._derived = derived, builders.derived(derived)

    def fits(self, named: Named, paths: RoundsPaths) -> bool:
        """Whether the planner would be told the same."""
        estimator, relations = paths.estimator, named.relations
        for what, number, rest, answer in self._answers:
            name = relations[number]
            found = (name, *rest) in paths.indexes if what == "index" else getattr(estimator, what)(name, *rest)
            if found != answer:
                return False
        return True

    def entered(self, named: Named, paths: RoundsPaths, rule: int) -> tuple[Path, ...]:
        relations = named.relations
        paths.indexes.update([(relations[number], key) for number, key in self._indexes])
        derived, build = self._derived
        name, _, query = derived if build is None else build(named)
        paths.derived.append((name, rule, query))
        return tuple([_of_rule(path if build is None else build(named), rule) for path, build in self._paths])


def _of_rule(path: Path, rule: int) -> Path:
    return Path(rule, path.seed, path.steps, path.sink, path.variables, path.advance, path.delayed, path.also)
