"""Actual statistics of stored relations for the planner: exact for small ones, estimated from a sample for large ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.engine.runtime.storage.sampling import random_numbers
from dlog.engine.values.differences import words
from dlog.engine.values.table import Table

SAMPLE = 20_000


class OfTables:
    """Statistics of relations that are tables; of others there are none."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = {name: _StatisticsTable(table) for name, table in tables.items()}
        self._figures: dict[tuple[str, tuple[int, ...]], float] = {}

    def rows(self, relation: str) -> int | None:
        """Rows of a relation."""
        return self._tables[relation].rows if relation in self._tables else None

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        """Distinct values of the columns together, about."""
        if relation not in self._tables:
            return None
        if (relation, columns) not in self._figures:
            self._figures[relation, columns] = distinct_values(self._tables[relation], columns)
        return self._figures[relation, columns]


class _StatisticsTable:
    """A table as far as figures need a relation."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.rows = table.rows

    def column(self, number: int) -> np.ndarray:
        return words(self._table.columns[number])

    def code_space(self, columns: tuple[int, ...]) -> int | None:
        return None


SampleCounts: TypeAlias = tuple[np.ndarray, float]
"""How often each value of some columns is in a sample, and the number of rows that each sampled row stands for."""


def distinct_values(
    relation: StoredRelation | _StatisticsTable,
    columns: tuple[int, ...],
    sample: int = SAMPLE,
    counted: Callable[..., SampleCounts] | None = None,
) -> float:
    """About how many different values the columns have together, by a sample of so many rows where there are more; `counted`
    may know what `sample_counts` gives."""
    rows = relation.rows
    if rows <= 1 or not columns:
        return float(min(rows, 1))
    counts, scale = (counted or sample_counts)(relation, columns, sample)
    if scale == 1.0:
        return float(len(counts))
    space = relation.code_space(columns)
    estimate = _estimate(counts, scale)
    return float(min(estimate, rows, space if space is not None else rows))


def second_moment(
    relation: StoredRelation,
    columns: tuple[int, ...],
    sample: int = SAMPLE,
    counted: Callable[..., SampleCounts] | None = None,
) -> float:
    """About how many pairs of rows agree on the columns: the size of the self-join; by a sample, too."""
    rows = relation.rows
    if rows <= 1 or not columns:
        return float(rows) ** 2
    counts, scale = (counted or sample_counts)(relation, columns, sample)
    pairs = float((counts * (counts - 1.0)).sum())
    return rows + pairs * scale * scale


def sample_counts(relation: StoredRelation | _StatisticsTable, columns: tuple[int, ...], sample: int) -> SampleCounts:
    """The count of each value in a sample, and the number of rows that each sampled row stands for."""
    rows = relation.rows
    step = max(1, rows // sample)
    picked = slice(None) if step == 1 else random_numbers(rows, rows, sample)
    keys = np.zeros(rows if step == 1 else sample, np.int64)
    for number in columns:
        keys ^= relation.column(number)[picked].astype(np.int64, copy=False)
        keys *= np.int64(-7046029254386353131)
        keys ^= keys >> 29
    keys.sort()
    edges = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1], [True])))
    return np.diff(edges), 1.0 if step == 1 else rows / sample


def _estimate(counts: np.ndarray, scale: float) -> float:
    """Distinct values of the whole from a sample's counts.

    Values seen once may be rare or unique: where the sample repeats its values evenly, capture and recapture tells the
    population (n(n-1) / pairs that agree); the guaranteed-error estimator (Charikar et al., 2000) covers skewed columns.
    """
    once = float((counts == 1).sum())
    sampled = float(counts.sum())
    pairs = float((counts * (counts - 1.0)).sum())
    guaranteed = math.sqrt(scale) * once + float((counts > 1).sum())
    if pairs == 0:
        return sampled * scale
    return max(guaranteed, min(sampled * (sampled - 1) / pairs, sampled * scale))
