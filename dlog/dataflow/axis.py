"""The column that events are ordered by: arithmetic on its words, and events in order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np

from dlog.arguments import bad_argument
from dlog.dataclass import dataclass
from dlog.dataflow.kinds import Kind, Objects, float_words, word_floats
from dlog.dataflow.schema import Schema
from dlog.engine.operators.delta import run_starts
from dlog.engine.operators.groups import Groups
from dlog.engine.operators.slices import GREATEST, LEAST
from dlog.grammar.diagnostics import Diagnostic, DlogError

MOST_EVENTS = 2**30
"""Events that can be looked at together: each takes some words of memory."""

MOST_APART = 2**62
"""What a distance between two values is less than."""


def axis(schema: Schema, name: str, column: str) -> Kind:
    """The kind of a column of numbers. Raises DlogError for others; `name` is that of the argument."""
    if not isinstance(column, str):
        raise bad_argument(name, "the name of a column", column)
    kind = schema.kind(column)
    if kind not in (int, float):
        raise bad_argument(name, "a column of integers or floats", column)
    return kind


def amount(name: str, kind: Kind, given: Any) -> float:
    """A positive distance between two values of a kind."""
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if not (whole or (kind is float and isinstance(given, float))) or not 0 < given < MOST_APART:
        notes = ("times are numbers, of microseconds: an hour is `3_600_000_000`",) if isinstance(given, timedelta) else ()
        raise bad_argument(name, f"a positive {'number' if kind is float else 'whole number'} below 2^62", given, *notes)
    return kind(given)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Forth:
    """Words some amount further on, none beyond the greatest."""

    kind: Kind
    amount: Any

    def __call__(self, words: np.ndarray) -> np.ndarray:
        if self.kind is float:
            return float_words(word_floats(words) + self.amount)
        return np.where(words > GREATEST - self.amount, GREATEST, words + self.amount)


@dataclass(frozen=True, slots=True)
class Back:
    """Words at or before all from which the amount leads further than to these words, none before the least."""

    kind: Kind
    amount: Any

    def __call__(self, words: np.ndarray) -> np.ndarray:
        if self.kind is float:
            return float_words(word_floats(words) - self.amount) - 2  # for rounding: a word less is the float before
        return np.where(words < LEAST + self.amount, LEAST, words - self.amount)


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Rows of groups that are there, as often as they are, group by group in order: the rows, their groups, their order, and
    where the events of the group of each begin and end."""

    rows: np.ndarray
    owners: np.ndarray
    order: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def ties(self) -> np.ndarray:
        """Whether each event has the order of the one before it in its group."""
        found = np.zeros(len(self.rows), bool)
        found[1:] = (self.owners[1:] == self.owners[:-1]) & (self.order[1:] == self.order[:-1])
        return found


Sorting = Callable[[Groups], Events]


def sorting(schema: Schema, keys: int, objects: Objects) -> Sorting:
    """How events of groups are put in order, which is that of the columns after the key. Strings compare as such."""
    strings = [place for place, kind in enumerate(schema.kinds[keys:]) if kind is str]

    def sort(groups: Groups) -> Events:
        counts = np.maximum(groups.diffs, 0)
        if counts.sum(dtype=np.float64) > MOST_EVENTS:
            note = "a row that is there several times is as many events: is `distinct` meant?"
            raise DlogError(Diagnostic("too-many-events", f"there are more than {MOST_EVENTS:,} events", notes=(note,)))
        rows = np.repeat(np.arange(len(counts)), counts)
        found = _events(groups, rows)
        if not strings or not found.ties.any():
            return found
        words = [objects.ranks(c) if k in strings else c for k, c in enumerate(groups.columns)]
        return _events(groups, rows[np.lexsort([*(w[rows] for w in words[::-1]), found.owners])])

    return sort


def _events(groups: Groups, rows: np.ndarray) -> Events:
    owners = groups.owners[rows]
    starts = run_starts((owners,), len(owners))
    sizes = np.diff(starts, append=len(owners))
    low = np.repeat(starts, sizes)
    return Events(rows, owners, groups.columns[0][rows], low, low + np.repeat(sizes, sizes))
