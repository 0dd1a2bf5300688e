"""Rows of keys in the order of the column after the key: as far as one wants to read, before and after a place."""

from __future__ import annotations

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.operators.delta import Columns
from dlog.engine.operators.readings import Matches, Ranges, Reading
from dlog.engine.trace.layer import Layer

LEAST, GREATEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of keys. Of each key all rows are there whose order is greater than `below`, unless it is `complete_below`, and less
    than `above`, unless it is `complete_above`: then there are none before, or behind."""

    matches: Matches
    below: np.ndarray
    above: np.ndarray
    complete_below: np.ndarray
    complete_above: np.ndarray


class Slices:
    """Where the rows of some keys are in each layer of a reading. Positions are arrays of (layers, keys)."""

    def __init__(self, reading: Reading, keys: Columns, probes: int, found: Ranges | None = None) -> None:
        """`found` is where the keys are, if that is known."""
        self.reading, self.probes, self.place = reading, probes, len(keys)
        ranges = (found or reading.seek(keys, probes)).ranges
        self.starts, self.ends = ranges[:, 0], ranges[:, 1]
        self._values = [_values(layer, len(keys)) for layer in reading.layers]

    def position(self, words: np.ndarray, after: bool) -> np.ndarray:
        """Where a word for each key belongs: before rows that have it, or after them."""
        found = np.empty_like(self.starts)
        for k, values in enumerate(self._values):
            found[k] = bisect(values, self.starts[k], self.ends[k], words, after)
        return found

    def read(self, low: np.ndarray, high: np.ndarray) -> Part:
        """The rows between positions, as far as they are complete: what all layers have."""
        ranges = np.ascontiguousarray(np.stack([low, high], axis=1))
        matches = self.reading.gather(Ranges(ranges, self.probes, int((high - low).sum())))
        below, above = np.full(self.probes, LEAST), np.full(self.probes, GREATEST)
        for k, values in enumerate(self._values):
            cut = np.flatnonzero(low[k] > self.starts[k])
            below[cut] = np.maximum(below[cut], values[low[k][cut] - 1])
            cut = np.flatnonzero(high[k] < self.ends[k])
            above[cut] = np.minimum(above[cut], values[high[k][cut]])
        complete = (low == self.starts).all(axis=0), (high == self.ends).all(axis=0)
        order, probes = matches.delta.columns[self.place], matches.probes
        kept = (complete[0][probes] | (order > below[probes])) & (complete[1][probes] | (order < above[probes]))
        return Part(matches if kept.all() else matches.only(kept), below, above, *complete)


def bisect(values: np.ndarray, low: np.ndarray, high: np.ndarray, words: np.ndarray, after: bool) -> np.ndarray:
    """For each word its place in an ascending range of the values: before equal ones, or after them."""
    low, high = np.array(low, np.int64), np.array(high, np.int64)
    active = np.flatnonzero(low < high)
    while len(active):
        middle = (low[active] + high[active]) // 2
        found, wanted = values[middle], words[active]
        less = found <= wanted if after else found < wanted
        low[active[less]] = middle[less] + 1
        high[active[~less]] = middle[~less]
        active = active[low[active] < high[active]]
    return low


def _values(layer: Layer, field: int) -> np.ndarray:
    constant = layer.constant(field)
    return layer.stored(field) if constant is None else np.broadcast_to(np.int64(constant), layer.rows)
