"""What the planner is told of relations' sizes when strata are planned for rounds, and told again to make the same plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dlog.engine.embedded.collection import Collection
from dlog.engine.embedded.statistics import distinct_values, second_moment
from dlog.engine.kernels import layout as L
from dlog.engine.plan.statistics import Skew, Statistics
from dlog.engine.rounds import Unfit

Figured = tuple[str, str, Sequence[int], float | None]
"""What the planner asked for, of which relation and columns, and what it was told."""


class Recorded:
    """Figures that are written down as they are told, so that the same plan can be made again."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics
        self._skewed = statistics if isinstance(statistics, Skew) else None
        self._told: dict[tuple[str, str, tuple[int, ...]], float | None] = {}

    def told(self) -> list[Figured]:
        """All that was told."""
        return [(what, relation, list(columns), figure) for (what, relation, columns), figure in self._told.items()]

    def rows(self, relation: str) -> int | None:
        found = self._statistics.rows(relation)
        self._told["rows", relation, ()] = found
        return found

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        found = self._statistics.distinct(relation, columns)
        self._told["distinct", relation, columns] = found
        return found

    def second_moment(self, relation: str, columns: tuple[int, ...]) -> float | None:
        found = None if self._skewed is None else self._skewed.second_moment(relation, columns)
        self._told["pairs", relation, columns] = found
        return found


class Waiting:
    """Rows that wait to come in, as `statistics` looks at relations."""

    def __init__(self, columns: Sequence[np.ndarray], rows: int) -> None:
        self.columns = columns
        self.rows = rows

    def column(self, number: int) -> np.ndarray:
        return self.columns[number]

    def code_space(self, columns: Sequence[int]) -> float | None:
        return None


class Figures:
    """What the planner may know before the first round: the inputs' rows that wait to come in."""

    def __init__(self, waiting: Mapping[str, Waiting], known: frozenset[str]) -> None:
        self.waiting = waiting
        self.known = known

    def rows(self, relation: str) -> int | None:
        if relation not in self.known:
            return None
        found = self.waiting.get(relation)
        return 0 if found is None else found.rows

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        return self._figure(relation, columns, distinct_values)

    def second_moment(self, relation: str, columns: tuple[int, ...]) -> float | None:
        return self._figure(relation, columns, second_moment)

    def _figure(self, relation: str, columns: tuple[int, ...], figure: Callable[..., float]) -> float | None:
        if relation not in self.known:
            return None
        found = self.waiting.get(relation)
        return 0.0 if found is None else figure(found, tuple(sorted(set(columns))))


class OfCollections:
    """What is known of collections with rows."""

    def __init__(self, collections: Mapping[str, Collection], known: Mapping[str, int]) -> None:
        self._collections, self._known = collections, known

    def rows(self, relation: str) -> int | None:
        found = self._collections.get(relation)
        return self._known.get(relation) if found is None else _rows(found)

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        found = self._collections.get(relation)
        return None if found is None or found.grouped is not None else distinct_values(_Rows(found), _key(columns))

    def second_moment(self, relation: str, columns: tuple[int, ...]) -> float | None:
        found = self._collections.get(relation)
        return None if found is None or found.grouped is not None else second_moment(_Rows(found), _key(columns))


class _Rows:
    """A collection, as `statistics` looks at relations: with rows that are gone, which are few."""

    def __init__(self, collection: Collection) -> None:
        self.column = collection.column
        self.rows = collection.struct[L.REL_ROWS]

    def code_space(self, columns: tuple[int, ...]) -> float | None:
        return None


class Retold:
    """Figures as they were told before."""

    def __init__(self, told: Sequence[Figured]) -> None:
        self._told = {(what, name, tuple(columns)): figure for what, name, columns, figure in told}

    def _figure(self, what: str, relation: str, columns: tuple[int, ...]) -> Any:
        try:
            return self._told[what, relation, columns]
        except KeyError:
            raise Unfit(f"the planner wants to know more: {what} of {relation}") from None

    def rows(self, relation: str) -> int | None:
        found: int | None = self._figure("rows", relation, ())
        return found

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        found: float | None = self._figure("distinct", relation, columns)
        return found

    def second_moment(self, relation: str, columns: tuple[int, ...]) -> float | None:
        found: float | None = self._figure("pairs", relation, columns)
        return found


def _key(columns: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(set(columns)))


def _rows(collection: Collection) -> int:
    holder = collection if collection.grouped is None else collection.grouped.groups
    return holder.struct[L.CO_LIVE]
