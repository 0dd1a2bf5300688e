"""Sums of diffs by key, as they are by now: what is kept for a reduction that needs no more, in place of a trace."""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.trace.sum_tables import add_to_sums, move_sums, write_sum_changes
from dlog.engine.kernels.trace_structs import SumTable as Header
from dlog.engine.operators.delta import Columns, Delta
from dlog.engine.operators.groups import Sums
from dlog.engine.trace.layer import address_of

MIN_ENTRIES = 1 << 6
MAX_ENTRIES = 1 << 19
"""Keys beyond which a trace serves better: it takes less memory for each, and no round waits until all of them have moved."""

_AT = Header.place


class SumTable:
    """The sums of each key, so many columns; with several components the column behind says which one a diff belongs to."""

    def __init__(self, keys: int, components: int) -> None:
        self.keys, self.components = keys, components
        self._make(MIN_ENTRIES)

    def _make(self, capacity: int) -> None:
        """Makes an empty table with room for so many keys."""
        self._words = np.empty((capacity, self.keys + self.components + 1), np.int64)
        self._slots = np.zeros(2 * capacity + 1, np.int32)
        self._header = np.zeros(_AT.size, np.int64)
        places = {
            _AT.keys: self.keys, _AT.components: self.components, _AT.capacity: capacity,
            _AT.slot_count: len(self._slots), _AT.slots: address_of(self._slots), _AT.words: address_of(self._words),
        }  # fmt: skip
        for place, word in places.items():
            self._header[place] = word

    @property
    def rows(self) -> int:
        """How many keys have sums."""
        return int(self._header[_AT.entries] - self._header[_AT.zeros])

    def changed(self, delta: Delta, logic: Sums) -> Delta:
        """Adds updates at totally ordered times, of which there are some, each key's in ascending order of rounds; what changes
        in the outcome of sums."""
        described, components, shown = delta.described(), self.components, logic.shown
        noted, sums = np.empty(2 * delta.rows, np.int64), np.empty((2 * delta.rows, components), np.int64)
        groups = address_of(noted), address_of(sums)
        self._header[_AT.row] = self._header[_AT.groups] = 0
        while not add_to_sums(address_of(self._header), described.address, *groups):
            self._grow(groups[0])
        room = 2 * int(self._header[_AT.groups])
        diffs = logic.diffs(sums[:room].T)
        changed = np.empty((self.keys + shown + 2, room), np.int64)
        count = write_sum_changes(
            address_of(self._header), *groups, shown, address_of(diffs), room, address_of(changed)
        )
        return Delta.of_block(np.ascontiguousarray(changed[:, :count]), self.keys + shown)

    def _grow(self, noted: int) -> None:
        """Moves to a table with room for twice the keys that have sums, or are being added up."""
        header, words = self._header, self._words
        self._make(max(MIN_ENTRIES, 2 * (self.rows + int(header[_AT.groups]))))
        move_sums(address_of(header), address_of(self._header), noted)
        del words  # until here it is read

    def updates(self) -> tuple[Columns, np.ndarray]:
        """Columns and diffs that come to the same sums."""
        words = self._words[: int(self._header[_AT.entries])]
        sums = words[:, self.keys : -1]
        rows, parts = np.nonzero(sums)
        keys = tuple(words[rows, : self.keys].T.copy())
        return (keys if self.components == 1 else (*keys, parts, np.zeros_like(parts))), sums[rows, parts]
