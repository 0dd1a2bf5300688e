"""Sums of diffs by key, as they are by now: what is kept for a reduction that needs no more, in place of a trace."""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.trace.sum_tables import add_to_sums, change_sums, move_sums, write_sum_changes
from dlog.engine.kernels.trace_structs import Field, LayerHeader
from dlog.engine.kernels.trace_structs import SumTable as Header
from dlog.engine.operators.delta import Columns, Delta
from dlog.engine.operators.groups import Sums
from dlog.engine.trace.overflow import HEAVY, weight_of
from dlog.engine.values.addresses import address_of

MIN_ENTRIES = 1 << 6
MAX_ENTRIES = 1 << 19
"""Keys beyond which a trace serves better: it takes less memory for each, and no round waits until all of them have moved."""

_AT = Header.place


class SumTable:
    """The sums of each key, so many columns; with several components the column behind says which one a diff belongs to."""

    def __init__(self, keys: int, components: int) -> None:
        self.keys, self.components = keys, components
        self._weight = 0  # at least the sum of all |sum|
        columns = keys + (2 if components > 1 else 0)
        self._updates = np.empty(LayerHeader.place.fields + Field.place.size * (columns + 2), np.int64)
        self._updates_at = address_of(self._updates)
        """Where updates of a block are described."""
        self._make(MIN_ENTRIES)

    def _make(self, capacity: int) -> None:
        """Makes an empty table with room for so many keys."""
        self._words = np.empty((capacity, self.keys + self.components + 1), np.int64)
        self._slots = np.zeros(2 * capacity + 1, np.int32)
        self._header = np.zeros(_AT.size, np.int64)
        self._address = address_of(self._header)
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

    def has_room(self, delta: Delta) -> bool:
        """Whether updates may be added: they are not of too many keys, and no sum can need more than 64 bits."""
        weight = delta.weight
        self._weight += weight
        if self._weight >= HEAVY:  # much may have cancelled out
            self._weight = weight_of(self.updates()[1]) + weight
        return self.rows + delta.rows <= MAX_ENTRIES and self._weight < HEAVY

    def changed(self, delta: Delta, logic: Sums) -> Delta:
        """Adds updates at totally ordered times, of which there are some, each key's in ascending order of rounds; what changes
        in the outcome of sums."""
        room, fields = 2 * delta.rows, self.keys + logic.shown + 2
        block = delta.block() if delta.layer is None else None
        described = None if block is not None else delta.described()
        at = self._updates_at if described is None else described.address
        updates = at, 0 if block is None else address_of(block), delta.rows
        words = np.empty(room * (1 + self.components + fields), np.int64)
        noted = address_of(words)
        groups, found = (noted, noted + 8 * room), noted + 8 * room * (1 + self.components)
        self._header[_AT.row] = self._header[_AT.groups] = 0
        if logic.once:
            while (count := change_sums(self._address, *updates, *groups, logic.shown, found)) < 0:
                self._grow(noted)
        else:
            while not add_to_sums(self._address, *updates, *groups):
                self._grow(noted)
            diffs = logic.diffs(words[room : room * (1 + self.components)].reshape(room, -1)[: self._sides].T)
            count = write_sum_changes(self._address, *groups, logic.shown, address_of(diffs), found)
        changed = words[room * (1 + self.components) :][: fields * self._sides].reshape(fields, self._sides)
        return Delta.of_block(np.ascontiguousarray(changed[:, :count]), fields - 2)

    @property
    def _sides(self) -> int:
        """Before and after each group of updates."""
        return 2 * int(self._header[_AT.groups])

    def _grow(self, noted: int) -> None:
        """Moves to a table with room for twice the keys that have sums, or are being added up."""
        header, words = self._header, self._words
        self._make(max(MIN_ENTRIES, 2 * (self.rows + int(header[_AT.groups]))))
        move_sums(address_of(header), self._address, noted)
        del words  # until here it is read

    def updates(self) -> tuple[Columns, np.ndarray]:
        """Columns and diffs that come to the same sums."""
        words = self._words[: int(self._header[_AT.entries])]
        sums = words[:, self.keys : -1]
        rows, parts = np.nonzero(sums)
        keys = tuple(words[rows, : self.keys].T.copy())
        return (keys if self.components == 1 else (*keys, parts, np.zeros_like(parts))), sums[rows, parts]
