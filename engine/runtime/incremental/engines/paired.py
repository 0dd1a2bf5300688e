"""Equivalence relations over rounds: an engine keeps their classes, and this one shows their pairs, which are made when they
are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from dlog.engine.ir.rules import Program, Relation
from dlog.engine.rounds_engine import Frames, Image, PlainRounds, RoundsEngine, StartingPoint
from dlog.engine.values.differences import Columns, apply_changes, difference, words
from dlog.engine.values.equivalence import pair_count, paired, pairs_of
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates


class Paired(PlainRounds):
    """See `engine.rounds_engine`. The external rows of an equivalence relation are the pairs that came from outside;
    it has whatever follows from these and its rules."""

    def __init__(self, inner: RoundsEngine) -> None:
        self.inner = inner
        self._classes = inner.program.classes
        self._changes: dict[str, Updates] = {}

    @property
    def program(self) -> Program:  # type: ignore[override]
        return self.inner.program

    @property
    def symbols(self) -> SymbolTable:
        return self.inner.symbols

    @property
    def records(self) -> Any:
        return self.inner.records

    @property
    def round(self) -> int:
        return self.inner.round

    def commit(self, inputs: Mapping[str, Updates], frames: Frames | None = None) -> int:
        try:
            return self.inner.commit(inputs, frames)
        finally:
            self._changes = {}

    # ------------------------------------------------------------------------------------------------------------- reading

    def table(self, relation: str) -> Table:
        classes = self._classes.get(relation)
        return self.inner.table(relation) if classes is None else pairs_of(self.inner.table(classes))

    def rows(self, relation: str) -> int:
        classes = self._classes.get(relation)
        return self.inner.rows(relation) if classes is None else pair_count(self.inner.table(classes))

    def external(self, relation: str) -> Table:
        return self.inner.external(relation)

    def ranks(self, relation: str) -> np.ndarray | None:
        return None if relation in self._classes else self.inner.ranks(relation)

    @property
    def touched(self) -> Iterable[str]:
        found = set(self.inner.touched)
        found -= {pairs for pairs, classes in self._classes.items() if classes not in found}
        found |= {pairs for pairs, classes in self._classes.items() if classes in found}
        return [name for name in self.program.relations if name in found]

    def changes(self, relation: str) -> Updates:
        classes = self._classes.get(relation)
        if classes is None:
            return self.inner.changes(relation)
        if relation not in self._changes:
            self._changes[relation] = _joined(list(self._changed_pairs(classes)))
        return self._changes[relation]

    def _changed_pairs(self, classes: str) -> Iterator[Updates]:
        """The changes of the pairs, round by round, by those of the classes."""
        changed, table = self.inner.changes(classes), self.inner.table(classes)
        columns: Columns = tuple(words(column) for column in table.columns)
        rows = table.rows
        backwards = tuple(column[::-1] for column in changed.columns)
        columns, rows = apply_changes(columns, rows, backwards, -changed.diffs[::-1])
        for round in np.unique(changed.rounds).tolist():
            low, high = np.searchsorted(changed.rounds, (round, round + 1))
            news = tuple(column[low:high] for column in changed.columns)
            before = _pairs_in(columns, news[1])
            columns, rows = apply_changes(columns, rows, news, changed.diffs[low:high])
            now = _pairs_in(columns, news[1])
            pairs, diffs = difference(before, len(before[0]), now, len(now[0]))
            yield Updates(pairs, diffs, np.full(len(diffs), round, np.int64))

    def explain(self) -> str:
        return self.inner.explain()

    def close(self) -> None:
        self.inner.close()

    # ---------------------------------------------------------------------------------------------------------- succession

    @property
    def inherited(self) -> frozenset[str]:
        return self.inner.inherited

    @property
    def reused_relations(self) -> frozenset[str]:
        found = self.inner.reused_relations
        return frozenset(name for name in found if self._classes.get(name, name) in found)

    def since(self, old: RoundsEngine, relation: str) -> Updates | None:
        return None if relation in self._classes else self.inner.since(inner_of(old), relation)

    def take_back(self, successor: RoundsEngine) -> None:
        self.inner.take_back(inner_of(successor))

    def fitting(self, relation: Relation, rows: Any) -> Any | None:
        return self.inner.fitting(relation, rows)

    def image(self) -> Image | None:
        return self.inner.image()

    def image_bytes(self) -> int | None:
        return self.inner.image_bytes()

    def copied_image(self, most: int) -> Image | None:
        return self.inner.copied_image(most)


def paired_engine(engine: RoundsEngine) -> RoundsEngine:
    """The engine, or one that shows the pairs of its equivalence relations."""
    return Paired(engine) if engine.program.classes and not isinstance(engine, Paired) else engine


def inner_of(engine: RoundsEngine) -> RoundsEngine:
    """The engine that keeps the rows."""
    return engine.inner if isinstance(engine, Paired) else engine


def origin_of(old: RoundsEngine | StartingPoint | None) -> RoundsEngine | StartingPoint | None:
    """What an engine that keeps rows goes on from."""
    return old.inner if isinstance(old, Paired) else old


def _pairs_in(classes: Columns, names: np.ndarray) -> Columns:
    """The pairs of values in classes with these names."""
    values, own = classes
    chosen = np.isin(own, names)
    return paired(values[chosen], own[chosen])


def _joined(parts: list[Updates]) -> Updates:
    nothing = np.empty(0, np.int64)
    columns = tuple(np.concatenate([nothing, *(part.columns[c] for part in parts)]) for c in range(2))
    diffs, rounds = (np.concatenate([nothing, *found]) for found in ([p.diffs for p in parts], [p.rounds for p in parts]))
    return Updates(columns, diffs, rounds)
