"""Deltas: some updates of a collection, in columns.

Columns are int64 words, times an int64 array of shape (depth, n), diffs int64. Nothing of a delta is ever changed in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dlog.engine.times import columns as T
from dlog.engine.trace.layer import Described, Layer, build, build_block, keep
from dlog.engine.trace.overflow import weight_of
from dlog.engine.trace.pages import Pages
from dlog.engine.values.array_pool import RecurringBlocks

MANY = 1 << 10
"""Updates for which it pays to look at their rounds before they are sorted."""
Moment = tuple[int, ...]
"""The iterations of a time, without its round: `()` outside of loops."""
Columns = tuple[np.ndarray, ...]


class Delta:
    """Updates as arrays of equal length. They may lie in a `block`, field by field: columns, times, diffs; and they may be all
    those of a `layer`, in its order: such fields are read when somebody asks for them."""

    __slots__ = ("_block", "arity", "columns", "depth", "diffs", "layer", "rows", "times")
    columns: Columns
    times: np.ndarray
    diffs: np.ndarray

    def __init__(self, columns: Columns, times: np.ndarray, diffs: np.ndarray) -> None:
        self.columns, self.times, self.diffs = columns, times, diffs
        self.arity, self.depth, self.rows = len(columns), len(times), len(diffs)
        self.layer: Layer | None = None
        self._block: np.ndarray | None = None

    @staticmethod
    def of_block(block: np.ndarray, arity: int) -> Delta:
        """Those in a block of so many columns, which is contiguous."""
        made = Delta.__new__(Delta)
        fields, made.rows = block.shape
        made._block, made.arity, made.depth, made.layer = block, arity, fields - arity - 1, None
        return made

    @staticmethod
    def of_layer(layer: Layer) -> Delta:
        """All updates of a layer."""
        made = Delta.__new__(Delta)
        made._block, made.arity, made.depth, made.rows, made.layer = None, layer.arity, layer.depth, layer.rows, layer
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """A field that nobody has asked for yet."""
            if name not in ("columns", "times", "diffs"):
                raise AttributeError(name)
            *fields, self.diffs = block = self._fields()
            self.columns, self.times = tuple(fields[: self.arity]), block[self.arity : -1]
            return getattr(self, name)

    def _fields(self) -> np.ndarray:
        """The block, of updates that have one or are of a layer."""
        if self._block is None:
            assert self.layer is not None
            self._block = self.layer.unpacked()
        return self._block

    @property
    def packed(self) -> bool:
        """Whether they are known to lie in a block: all columns are words."""
        return self._block is not None

    @property
    def rounds(self) -> np.ndarray:
        return np.asarray(self.times[0] if self._block is None else self._block[self.arity])

    def stamp(self, rounds: np.ndarray | int, diffs: np.ndarray | int) -> None:
        """Writes rounds and diffs of new updates, which nobody has read yet, at times that are rounds."""
        if self._block is None:
            self.times[:], self.diffs[:] = rounds, diffs
        else:
            self._block[-2], self._block[-1] = rounds, diffs

    def only(self, chosen: np.ndarray, blocks: RecurringBlocks | None = None) -> Delta:
        """The chosen updates: a mask, or positions, which may repeat. `blocks` are for those of a mask, once a round."""
        if chosen.dtype == bool:
            kept = int(np.count_nonzero(chosen))
            if kept == self.rows:
                return self
            if self._block is not None:
                shape = len(self._block), kept
                found = np.empty(shape, np.int64) if blocks is None else blocks.block(*shape)
                return Delta.of_block(keep(self._block, chosen, found), self.arity)
            chosen = chosen.nonzero()[0]
        return Delta(tuple(c[chosen] for c in self.columns), self.times[:, chosen], self.diffs[chosen])

    def with_columns(self, columns: Sequence[np.ndarray]) -> Delta:
        return Delta(tuple(columns), self.times, self.diffs)

    def described(self) -> Described:
        """They as kernels read them."""
        if self._block is not None:
            return Described.of_block(self._block, self.arity)
        if self.layer is not None:
            return Described(self.layer.words, self.layer)
        return Described.of(self.columns, self.times, self.diffs)

    def block(self) -> np.ndarray | None:
        """The block, of updates that have one or are of a layer."""
        return self._block if self.layer is None else self._fields()

    def fields(self) -> list[np.ndarray]:
        """Columns, coordinates and diffs, each without gaps."""
        return [np.ascontiguousarray(field, np.int64) for field in (*self.columns, *self.times, self.diffs)]

    @property
    def total(self) -> int:
        """The sum of all diffs, which wraps around."""
        return int(np.add.reduce(self.diffs if self._block is None else self._block[-1]))

    @property
    def weight(self) -> int:
        """At least the sum of all |diff|; rounded, where that is much."""
        if self.layer is not None:
            return self.layer.weight
        return weight_of(self.diffs if self._block is None else self._block[-1])

    def in_order_of_rounds(self) -> Delta:
        rounds = self.rounds
        return self if (rounds[:-1] <= rounds[1:]).all() else self.only(_ascending(rounds))

    def built(self, pages: Pages | None = None) -> Layer | None:
        """The same updates in order of (row, time), each pair once, without zeros; None where they cancel out. Raises
        DlogError where their diffs add up beyond 64 bits."""
        if self.layer is not None:
            return self.layer
        if self._block is not None:
            return build_block(self._block, self.arity, pages, checked=True)
        return build(self.columns, self.times, self.diffs, pages, checked=True)

    def consolidated(self) -> Delta:
        """The same as updates."""
        layer = self.built()
        return empty(self.arity, self.depth) if layer is None else Delta.of_layer(layer)

    def by_moment(self) -> Iterator[tuple[Moment, Delta]]:
        """The updates of each moment."""
        if not self.rows:
            return
        if self.depth == 1:
            yield (), self
            return
        moments = self.times[1:]
        if (moments == moments[:, :1]).all():
            yield tuple(moments[:, 0].tolist()), self
            return
        order = T.order(moments)
        sorted_moments = moments[:, order]
        starts = np.flatnonzero(np.r_[True, (sorted_moments[:, 1:] != sorted_moments[:, :-1]).any(axis=0)])
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            yield tuple(sorted_moments[:, start].tolist()), self.only(order[start:end])


def _ascending(rounds: np.ndarray) -> np.ndarray:
    """The order of words that are not all alike; equal ones stay as they are. Sorting words is twice as fast as sorting their
    places: where there is room for them the places are in the words."""
    least, places = int(rounds.min()), len(rounds).bit_length()
    if len(rounds) < MANY or (int(rounds.max()) - least).bit_length() + places > 63:
        return np.argsort(rounds, kind="stable")
    words = (rounds - least) << places
    words |= np.arange(len(rounds))
    words.sort()
    words &= (1 << places) - 1
    return words


def empty(arity: int, depth: int) -> Delta:
    none = np.empty(0, np.int64)
    return Delta((none,) * arity, np.empty((depth, 0), np.int64), none)


def together(parts: Sequence[Delta]) -> Delta:
    """The updates of all parts, of which there is at least one."""
    if len(parts) == 1:
        return parts[0]
    blocks = [part._block for part in parts]
    if all(block is not None for block in blocks):
        return Delta.of_block(np.concatenate(blocks, axis=1), parts[0].arity)  # type: ignore[arg-type]
    return Delta(
        tuple(np.concatenate(pieces) for pieces in zip(*(p.columns for p in parts), strict=True)),
        np.concatenate([p.times for p in parts], axis=1),
        np.concatenate([p.diffs for p in parts]),
    )


def run_starts(columns: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Where runs of equal values begin in sorted columns of so many rows."""
    if not rows:
        return np.empty(0, np.int64)
    if not columns:
        return np.zeros(1, np.int64)
    differs = np.zeros(rows, bool)
    differs[0] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differs)


def repeated(starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranges written out: for each entry the number of its range, and `starts` of that plus 0, 1, 2 ..."""
    owners = np.repeat(np.arange(len(counts)), counts)
    offsets = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    return owners, starts[owners] + offsets
