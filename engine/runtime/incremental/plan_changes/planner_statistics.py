"""The planner's statistics when strata are planned for rounds, recorded, and replayed to make the same plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.kernels import layout as L
from dlog.engine.plan.incremental.templates import StatisticEntry
from dlog.engine.plan.statistics import UNKNOWN_ROWS, SecondMoment, Statistics
from dlog.engine.rounds_engine import IncompatibleImage
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role
from dlog.engine.runtime.storage.statistics import SAMPLE, SampleCounts, distinct_values, sample_counts, second_moment
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import InternalError

StatisticKey = tuple[str, str, tuple[int, ...]]
"""Of a `StatisticEntry`, all but its value."""

VALID_FACTOR = 8.0
"""A plan holds for statistics within this factor of those it was made for: trades planning again against a worse order."""
MIN_STATISTIC = 32.0
"""Smaller statistics count as this one: plans hardly differ for them."""
SMALL_SAMPLE_ROWS = 1 << 12
"""Rows that are sampled where there will be no more than so many new ones: trades exact counts against a commit's time."""
ROWS_PER_SAMPLED_GROWTH = 4
"""Rows there per row of growth from which on the coming rows are not sampled: they hardly change the count of values."""


@dataclass(frozen=True, slots=True)
class StatisticChange:
    """A figure that has left the range of a plan."""

    what: str
    relation: str
    columns: tuple[int, ...]
    before: float | None
    now: float

    def __str__(self) -> str:
        columns = f" in column{'s' * (len(self.columns) > 1)} {', '.join(map(str, self.columns))}" if self.columns else ""
        noun = {"rows": "rows", "distinct": "values", "pairs": "pairs of rows that agree"}[self.what]
        before = "an unknown number of" if self.before is None else f"{self.before:,.0f}"
        return f"{self.relation} had {before} {noun}{columns}, now {self.now:,.0f}"


class RecordingStatistics:
    """Figures that are written down as they are told, so that the same plan can be made again, or another one where they have
    changed."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics
        self._second_moment: SecondMoment | None = getattr(statistics, "second_moment", None)
        self._figures: dict[StatisticKey, float | None] = {}

    def close(self) -> None:
        """Called after planning: nothing more is asked, and the rows that statistics were taken from need not be kept."""
        del self._statistics, self._second_moment

    def out_of_range(self, now: DataflowStatistics, counted: Iterable[StatisticKey] = ()) -> StatisticChange | None:
        """The first figure that is out of its range by now, of the numbers of rows and of those that are `counted`. What was
        unknown was taken to be of middling size."""
        sizes = (asked for asked in self._figures if asked[0] == "rows")
        for asked in (*sizes, *(asked for asked in counted if asked in self._figures)):
            before = self._figures[asked]
            planned = UNKNOWN_ROWS if before is None else before
            if asked[0] == "rows" and not any(_apart(bound, planned) for bound in now.row_bounds(asked[1])):
                continue
            found = _ask(now, *asked)
            if found is not None and _apart(found, planned):
                return StatisticChange(*asked, before, found)
        return None

    def countable(self) -> list[StatisticKey]:
        """The statistics that take time to be asked for again: all but numbers of rows."""
        return [asked for asked, figure in self._figures.items() if asked[0] != "rows" and figure is not None]

    def entries(self) -> list[StatisticEntry]:
        """All that was told."""
        return [(what, relation, list(columns), figure) for (what, relation, columns), figure in self._figures.items()]

    def rows(self, relation: str) -> int | None:
        found = self._statistics.rows(relation)
        self._figures["rows", relation, ()] = found
        return found

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        found = self._statistics.distinct(relation, columns)
        self._figures["distinct", relation, columns] = found
        return found

    def second_moment(self, relation: str, columns: tuple[int, ...]) -> float | None:
        found = None if self._second_moment is None else self._second_moment(relation, columns)
        self._figures["pairs", relation, columns] = found
        return found


class FrozenStatistics:
    """Figures that stay as they were first told, while those who tell them, of `now`, are others with each commit."""

    def __init__(self) -> None:
        self.now: Statistics | None = None
        self._figures: dict[StatisticKey, float | None] = {}

    def ask(self, asked: StatisticKey) -> float | None:
        if asked not in self._figures:
            assert self.now is not None
            self._figures[asked] = _ask(self.now, *asked)
        return self._figures[asked]

    def rows(self, relation: str) -> int | None:
        found = self.ask(("rows", relation, ()))
        return None if found is None else int(found)

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        return self.ask(("distinct", relation, columns))

    def second_moment(self, relation: str, columns: tuple[int, ...]) -> float | None:
        return self.ask(("pairs", relation, columns))


def _ask(statistics: Statistics, what: str, relation: str, columns: tuple[int, ...]) -> float | None:
    match what:
        case "rows":
            return statistics.rows(relation)
        case "distinct":
            return statistics.distinct(relation, columns)
        case "pairs":
            second_moment: SecondMoment | None = getattr(statistics, "second_moment", None)
            return None if second_moment is None else second_moment(relation, columns)
        case _:
            raise InternalError("statistics", f"nothing is known of {what}")


def _apart(one: float, other: float) -> bool:
    small, large = sorted((max(one, MIN_STATISTIC), max(other, MIN_STATISTIC)))
    return large >= VALID_FACTOR * small


class DataflowStatistics:
    """Statistics of a dataflow: of `collections` the rows that are there, and of all relations those that wait to come in. Of
    relations that are neither among the collections nor `complete`, without other rows, it knows nothing; nor of derived ones
    where more rows wait than their inputs have."""

    def __init__(
        self,
        waiting: Mapping[str, Updates],
        known: frozenset[str],
        collections: Mapping[str, Collection] | None = None,
    ) -> None:
        self.complete = known
        self._waiting = waiting
        self._collections = collections or {}
        self._figures: dict[StatisticKey, float] = {}
        self._sampled_updates: dict[str, Updates | None] = {}
        self._rows: dict[str, _Rows] = {}
        self._outdated = any(_live(c) < waiting[n].rows for n, c in self._collections.items() if n in waiting)

    @property
    def waiting_rows(self) -> int:
        """How many changes wait."""
        return sum(updates.rows for updates in self._waiting.values())

    def _is_known(self, relation: str) -> bool:
        held = self._collections.get(relation)
        return relation in self.complete if held is None else held.role is Role.INPUT or not self._outdated

    def rows(self, relation: str) -> int | None:
        held = self._collections.get(relation)
        if not self._is_known(relation):
            return None
        return self._growth(relation) + (0 if held is None else _live(held))

    def row_bounds(self, relation: str) -> tuple[int, int]:
        """What `rows` lies between, if anything is known: told at once, however many changes wait."""
        held, waiting = self._collections.get(relation), self._waiting_updates(relation)
        there = 0 if held is None else _live(held)
        return there, there + (0 if waiting is None else waiting.rows)

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        return self._figure("distinct", relation, columns, distinct_values)

    def second_moment(self, relation: str, columns: tuple[int, ...]) -> float | None:
        return self._figure("pairs", relation, columns, second_moment)

    def _waiting_updates(self, relation: str) -> Updates | None:
        """The changes of an input that wait."""
        held = self._collections.get(relation)
        return self._waiting.get(relation) if held is None or held.role is Role.INPUT else None

    def _growth(self, relation: str) -> int:
        """How many rows more than now there will be at the most when what waits has come."""
        key: StatisticKey = "coming", relation, ()
        if key not in self._figures:
            waiting = self._waiting_updates(relation)
            self._figures[key] = 0 if waiting is None else _most(waiting)
        return int(self._figures[key])

    def _telling(self, relation: str) -> Updates | None:
        """The rows that wait, if they are so many that values are others by them; where rows come and go, the last ones."""
        if relation not in self._sampled_updates:
            self._sampled_updates[relation] = self._last_waiting(relation)
        return self._sampled_updates[relation]

    def _last_waiting(self, relation: str) -> Updates | None:
        waiting, growth, held = self._waiting_updates(relation), self._growth(relation), self._collections.get(relation)
        if waiting is None or growth * ROWS_PER_SAMPLED_GROWTH <= (0 if held is None else _live(held)):
            return None
        if growth == waiting.rows:
            return waiting
        last = np.flatnonzero(waiting.diffs > 0)[-growth:]
        return Updates(tuple(column[last] for column in waiting.columns), waiting.diffs[last], waiting.rounds[last])

    def _figure(self, what: str, relation: str, columns: tuple[int, ...], figure: Callable[..., float]) -> float | None:
        held = self._collections.get(relation)
        if not self._is_known(relation) or (held is not None and held.grouped is not None):
            return None
        key = what, relation, tuple(sorted(set(columns)))
        if key not in self._figures:
            sample = SAMPLE if self._growth(relation) > SMALL_SAMPLE_ROWS else SMALL_SAMPLE_ROWS
            if relation not in self._rows:
                self._rows[relation] = _Rows(held, self._telling(relation), sample)
            self._figures[key] = figure(self._rows[relation], key[2], sample, self._counts)
        return self._figures[key]

    def _counts(self, rows: _Rows, columns: tuple[int, ...], sample: int) -> SampleCounts:
        """See `sample_counts`: what several figures are made of is counted once."""
        found = rows.counts.get(columns)
        if found is None:
            found = rows.counts[columns] = sample_counts(rows, columns, sample)  # type: ignore[arg-type]
        return found


class _Rows:
    """The rows of a collection, with some that are gone, which are few, and those that wait, as `statistics` looks at
    relations. Of pairs, which have no numbers, any are told for those that are picked in a sample."""

    def __init__(self, held: Collection | None, waiting: Updates | None, sample: int) -> None:
        self._collection = held
        self._waiting = waiting
        self.counts: dict[tuple[int, ...], SampleCounts] = {}
        """What has been counted, by columns."""
        paired = held is not None and held.struct[L.collection.pairs] != 0
        self._there = 0 if held is None else held.struct[L.collection.live if paired else L.relation.rows]
        self.rows = self._there + (0 if waiting is None else waiting.rows)
        self._sampled = self.rows >= 2 * sample
        self._pairs = held.some_pairs(sample if self._sampled else None) if held is not None and paired else None

    def column(self, number: int) -> _Column:
        return _Column(self, number)

    def code_space(self, columns: tuple[int, ...]) -> float | None:
        return None

    def values(self, number: int, picked: np.ndarray) -> np.ndarray:
        """The values of a column in some rows."""
        if not self._there and self._waiting is not None:
            column: np.ndarray = self._waiting.columns[number]
            return np.take(column, picked)
        there, coming = picked[picked < self._there], picked[picked >= self._there] - self._there
        parts = [] if self._waiting is None else [self._waiting.columns[number][coming]]
        if self._pairs is not None:
            parts.append(self._pairs[number][: len(there)] if self._sampled else self._pairs[number][there])
        elif self._collection is not None:
            parts.append(self._collection.cells(number, there.astype(np.int32)))
        return np.concatenate(parts) if parts else np.empty(0, np.int64)


class _Column:
    """Values by the numbers of their rows: of all, or of a sample."""

    def __init__(self, rows: _Rows, number: int) -> None:
        self._rows, self._number = rows, number

    def __getitem__(self, picked: slice | np.ndarray) -> np.ndarray:
        numbers = np.arange(self._rows.rows)[picked] if isinstance(picked, slice) else picked
        return self._rows.values(self._number, numbers)


class ReplayedStatistics:
    """Figures as they were told before."""

    def __init__(self, told: Sequence[StatisticEntry]) -> None:
        self._figures = {(what, name, tuple(columns)): figure for what, name, columns, figure in told}

    def _figure(self, what: str, relation: str, columns: tuple[int, ...]) -> Any:
        try:
            return self._figures[what, relation, columns]
        except KeyError:
            raise IncompatibleImage(f"the planner wants to know more: {what} of {relation}") from None

    def rows(self, relation: str) -> int | None:
        found: int | None = self._figure("rows", relation, ())
        return found

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        found: float | None = self._figure("distinct", relation, columns)
        return found

    def second_moment(self, relation: str, columns: tuple[int, ...]) -> float | None:
        found: float | None = self._figure("pairs", relation, columns)
        return found


def _most(updates: Updates) -> int:
    """The most rows that there are more than before any of these changes."""
    if updates.rows and updates.only_come:
        return int(updates.diffs.sum())
    return int(np.cumsum(updates.diffs).max(initial=0))


def _live(collection: Collection) -> int:
    holder = collection if collection.grouped is None else collection.grouped.groups
    return holder.struct[L.collection.live]
