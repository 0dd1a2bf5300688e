"""How far around changed rows of an ordered group what is made of its rows may change, and what has to be read for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.operators.groups import Active, Groups
from dlog.engine.operators.slices import GREATEST, Part, Slices

Shift = Callable[[np.ndarray], np.ndarray]
"""Words of the order some amount further on. It is monotone, and goes no further than words go."""


@dataclass(frozen=True, slots=True, eq=False)
class Extent:
    """For each clump the order from which on rows may change and up to which, that included; and whether what has been read is
    enough to say so, before it and behind it."""

    low: np.ndarray
    high: np.ndarray
    enough: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Changed rows of a key from `first` to `last`, by clump, and what has been read of its rows: the groups at its active
    rounds, `numbers` of which say which rounds the groups are of."""

    first: np.ndarray
    last: np.ndarray
    part: Part
    active: Active
    groups: Groups
    numbers: np.ndarray

    @property
    def clumps(self) -> np.ndarray:
        """The clump of each row."""
        return np.asarray(self.active.owners[self.numbers][self.groups.owners])


class Reach(ABC):
    margin = 64
    """Rows to read at first before and behind those that changed, where the order alone does not tell."""

    def span(self, slices: Slices, first: np.ndarray, last: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The positions to read from and up to."""
        low = np.maximum(slices.position(first, False) - margin, slices.starts)
        return low, np.minimum(slices.position(last, True) + margin, slices.ends)

    @abstractmethod
    def extent(self, view: View) -> Extent: ...


class Rest(Reach):
    """Everything from the first changed row on."""

    margin = GREATEST

    def span(self, slices: Slices, first: np.ndarray, last: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return slices.position(first, False), slices.ends

    def extent(self, view: View) -> Extent:
        return Extent(view.first, np.full(len(view.first), GREATEST), np.ones(len(view.first), bool))


@dataclass(frozen=True, eq=False)
class Range(Reach):
    """What is less than an amount further on. `back` gives words at or before all from which that reaches a word."""

    forth: Shift
    back: Shift

    def span(self, slices: Slices, first: np.ndarray, last: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return slices.position(self.back(first), False), slices.position(self.forth(last), True)

    def extent(self, view: View) -> Extent:
        return Extent(view.first, self.forth(view.last), np.ones(len(view.first), bool))


@dataclass(frozen=True, eq=False)
class Following(Reach):
    """A number of rows before each row, those that are there several times counted as often."""

    rows: int

    @property
    def margin(self) -> int:  # type: ignore[override]
        return self.rows + 8

    def extent(self, view: View) -> Extent:
        order, clumps, weights = view.groups.columns[0], view.clumps, np.maximum(view.groups.diffs, 0)
        before = self._by_round(view, view.groups.sums(np.where(order < view.first[clumps], weights, 0)), 0)
        later = np.where(order > view.last[clumps], weights, 0)
        begins = view.groups.starts[:-1]
        behind = np.cumsum(later)
        behind -= np.repeat((behind - later)[begins], np.diff(view.groups.starts))
        reached = np.where(behind >= self.rows, order, GREATEST)
        ends = np.minimum.reduceat(reached, begins) if len(begins) else reached
        starts = view.active.starts[:-1]
        high = view.last if not self.rows else np.maximum.reduceat(self._by_round(view, ends, GREATEST), starts)
        enough_before = view.part.complete_below | (np.minimum.reduceat(before, starts) >= self.rows)
        return Extent(view.first, high, enough_before & (view.part.complete_above | (high < GREATEST)))

    def _by_round(self, view: View, values: np.ndarray, default: int) -> np.ndarray:
        """A value for each group as one for each active round: at some there are no rows."""
        found = np.full(len(view.active.rounds), default)
        found[view.numbers] = values
        return found


@dataclass(frozen=True, eq=False)
class Gap(Reach):
    """The runs of rows that a change is in, or may join: each less than a gap behind the one before."""

    forth: Shift

    def extent(self, view: View) -> Extent:
        there = view.groups.diffs > 0
        numbers = np.arange(len(view.first))
        clumps = np.concatenate([view.clumps[there], numbers, numbers])
        order = np.concatenate([view.groups.columns[0][there], view.first, view.last])
        sort = np.lexsort((order, clumps))
        clumps, order = clumps[sort], order[sort]
        begins = np.ones(len(order), bool)
        begins[1:] = (clumps[1:] != clumps[:-1]) | (order[1:] >= self.forth(order[:-1]))
        starts = np.flatnonzero(begins)
        runs = np.cumsum(begins) - 1
        ends = np.append(starts[1:], len(order)) - 1
        low, high = view.first.copy(), view.last.copy()
        here = order == view.first[clumps]
        low[clumps[here]] = order[starts[runs[here]]]
        here = order == view.last[clumps]
        high[clumps[here]] = order[ends[runs[here]]]
        enough_before = view.part.complete_below | (low >= self.forth(view.part.below))
        return Extent(low, high, enough_before & (view.part.complete_above | (view.part.above >= self.forth(high))))
