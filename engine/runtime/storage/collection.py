"""Collections as Python holds them: relations maintained over rounds (kernels/incremental/store/collections.py)."""

from __future__ import annotations

from collections.abc import Collection as Collected
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.inputs import loading
from dlog.engine.kernels.incremental.loop import reading
from dlog.engine.kernels.incremental.store import implied, molds
from dlog.engine.kernels.incremental.store.histories import copy_present, copy_ranks
from dlog.engine.kernels.incremental.store.pair_columns import copy_pairs, split_pairs
from dlog.engine.runtime.incremental.batches.changes import no_updates
from dlog.engine.runtime.storage.changes_block import ChangesBlock
from dlog.engine.runtime.storage.collection_parts import UNFOUND, VISIBLE, CollectionParts, Role, new_list
from dlog.engine.runtime.storage.index import Index
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, view, words
from dlog.engine.runtime.storage.sampling import random_numbers
from dlog.engine.values.updates import Updates

PREALLOCATED_CHANGES = 64
"""Changes of a batch for which memory is kept: addresses of new arrays take longer than a small round."""

MAX_COPIED_ROWS = 1 << 12
"""Rows of a collection that was empty up to which they are copied one by one, not column by column."""


class DataflowStatus:
    """The status of a dataflow, as its collections know it."""

    def __init__(self) -> None:
        self.running = False
        """Whether a batch runs, of which readers are to see nothing."""
        self.over = False
        """Whether the memory has been given back."""


class Grouped(Protocol):
    """The reduction whose results a collection has, where these are the groups themselves and no rows of its own."""

    @property
    def struct(self) -> Struct: ...
    @property
    def groups(self) -> Collection: ...
    def read(self, before: bool) -> tuple[tuple[np.ndarray, ...], int]: ...


class Collection(CollectionParts):
    """Rows, their histories, logs and indexes."""

    def __init__(self, name: str, kinds: Sequence[Kind], role: Role, memory: Memory, scope: Struct | None = None) -> None:
        super().__init__(name, kinds, role, memory, scope)
        self.status: DataflowStatus | None = None
        """Of the dataflow that it belongs to."""
        self.indexes: dict[tuple[int, ...], Index] = {}
        self.wanted_indexes: set[tuple[int, ...]] = set()
        """The keys of the indexes that paths ask for."""
        self.is_looked_up = False
        """Whether some path looks rows up here at a view, other than by iterations of the own scope."""
        self.is_read_within_iterations = False
        """Whether some path looks rows up here while the iterations of a round go on."""
        self.is_found_by_values = role not in UNFOUND
        """Whether rows are looked for by all their values."""
        self.grouped: Grouped | None = None
        """Whose groups are the rows here; there are no others."""

    def index(self, key: tuple[int, ...]) -> Index:
        """The index by these columns, made (and filled) when it is first asked for."""
        self.wanted_indexes.add(key)
        if key not in self.indexes:
            made = Index(self, key)
            if self.struct[L.relation.rows]:
                self.hold_keys()
                made.fill()
                self.memory.check()
            self.indexes[key] = made
            self._list_indexes()
        return self.indexes[key]

    def keep_indexes(self, keys: Collected[tuple[int, ...]]) -> None:
        """Gives back all other indexes."""
        spent = [key for key in self.indexes if key not in keys]
        for key in spent:
            self.indexes.pop(key).free()
        if spent:
            self._list_indexes()

    def _list_indexes(self) -> None:
        self.struct.point(L.collection.indexes, words(i.address for i in self.indexes.values()))
        self.struct[L.collection.index_count] = len(self.indexes)

    # ---------------------------------------------------------------------------------------------------------- reading

    def column(self, number: int) -> np.ndarray:
        """A view of a column, dead rows included: int32 or int64."""
        at = number * L.column.size
        width = np.int32 if self._columns[at + L.column.width] == 4 else np.int64
        return view(self._columns[at + L.column.data], self.struct[L.relation.rows], width)

    def present(self, before: bool = False) -> np.ndarray:
        """The numbers of the rows that are present (int32) or, while a batch runs, were so before it; of pairs their words
        (int64)."""
        if self.struct[L.collection.pairs]:
            found = np.empty(0 if before and self.struct[L.collection.fresh] else self.struct[L.collection.live] + 1, np.int64)
            count = copy_pairs(self.address, int(found.ctypes.data)) if len(found) else 0
        else:
            found = np.empty(self.struct[L.collection.live], np.int32)
            count = copy_present(self.address, L.ROUND if before else 2**63 - 1, int(found.ctypes.data))
        found = found[:count]
        if before and self.struct[L.collection.no_readers] and not self.struct[L.collection.fresh]:
            rows, _, diffs = self.changes()
            changed, places = np.unique(rows, return_index=True)
            kept = found[~np.isin(found, changed)]
            return np.concatenate([kept, changed[diffs[places] < 0].astype(found.dtype)])
        return found

    def clear_stamps(self) -> None:
        """Forgets when rows were last touched."""
        view(self.struct[L.collection.stamps], self.struct[L.relation.capacity], np.int32)[:] = 0

    def quieten(self) -> None:
        """Notes that no path looks rows up here, or by all their values, unless one does."""
        self.struct[L.collection.no_readers] = int(not self.is_looked_up and self.role in VISIBLE)
        two = self.arity == 2 and Kind.FLOAT not in self.kinds
        self.struct[L.collection.pairable] = int(two and self.role is Role.INPUT and not self.is_looked_up and not self.indexes)
        self.struct[L.collection.unkeyed] = int(not self.is_found_by_values)

    @property
    def ways(self) -> list[int]:
        """Flags of the structures that are left out, as nobody reads them: rows looked up, rows found by all their values, rows
        where pairs do, rows of its own where groups are the rows, contributions before they are all there, and for each index
        rows where values do."""
        streamed = self.grouped is not None and self.grouped.struct[L.reduction.streamed] != 0
        values = [self.indexes[key].struct[L.index.allowed_values] for key in sorted(self.indexes)]
        left = [self.struct[field] for field in (L.collection.no_readers, L.collection.unkeyed, L.collection.pairable)]
        return [*left, int(self.grouped is not None), int(streamed), *values]

    def take_ways(self, ways: Sequence[int]) -> bool:
        """Leaves out what `ways` (of a collection with rows) does; false where that is more than paths here allow. Before there
        are rows."""
        if any(left > allowed for left, allowed in zip(ways, self.ways, strict=True)):
            return False
        self.struct[L.collection.no_readers], self.struct[L.collection.unkeyed], self.struct[L.collection.pairable] = ways[:3]
        for key, column in zip(sorted(self.indexes), ways[5:], strict=True):
            self.indexes[key].struct[L.index.allowed_values] = column
        if self.grouped is not None:
            self.grouped.struct[L.reduction.streamed] = ways[4]
            if not ways[3]:
                self.grouped = None
                self.struct[L.collection.grouped] = 0
        return True

    def read(self, before: bool = False) -> tuple[tuple[np.ndarray, ...], int]:
        """The columns (int32 or int64) of the rows that are present or, while a batch runs, were so before it; how many."""
        if self.grouped is not None:
            return self.grouped.read(before)
        rows = self.present(before)
        return self._values(rows), len(rows)

    def rows(self, before: bool = False) -> int:
        """How many rows `read` has."""
        return len(self.present(before)) if self.grouped is None else self.grouped.read(before)[1]

    def ranks(self, before: bool = False) -> np.ndarray:
        """The iteration at which each of the rows of `read` appears (int32)."""
        if L.collection.inner not in self.struct.keep:
            return np.zeros(self.rows(before), np.int32)
        inner = self.struct.keep[L.collection.inner]
        assert isinstance(inner, Struct)
        rows = self.present(before)
        ranks = np.empty(len(rows), np.int32)
        copy_ranks(inner.address, int(rows.ctypes.data), len(rows), int(ranks.ctypes.data))
        return ranks

    def raw_columns(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """The values of some rows (see `present`), as int64 words."""
        return tuple(column.astype(np.int64) for column in self._values(rows))

    def _values(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        if not self.struct[L.collection.pairs]:
            return tuple(self.cells(c, rows) for c in range(self.arity))
        words = np.ascontiguousarray(rows)
        columns = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
        split_pairs(int(words.ctypes.data), len(rows), *(int(column.ctypes.data) for column in columns))
        return columns

    def some_pairs(self, sample: int | None) -> tuple[np.ndarray, ...]:
        """The columns of all pairs, or of a sample of so many, which may repeat some."""
        live, places = self.struct[L.collection.live], self.struct[L.collection.pair_homes_room]
        if sample is None or live == 0:
            return self.read()[0]
        if places * sample > live * live:  # reading all takes less
            columns, _ = self.read()
            picked = random_numbers(live, live, sample)
            return tuple(column[picked] for column in columns)
        table = view(self.struct[L.collection.pairs], places, np.int64)
        words = table[random_numbers(live, places, sample * places // live + sample)]
        return self._values(np.resize(words[words != 0], sample))

    def cells(self, number: int, rows: np.ndarray) -> np.ndarray:
        """A column (int32 or int64) in some rows, by their numbers; not of pairs."""
        if self._columns[number * L.column.size + L.column.width] != L.IMPLIED:
            values: np.ndarray = self.column(number)[rows]
            return values
        wanted, found = np.ascontiguousarray(rows, np.int32), np.empty(len(rows), np.int32)
        implied.copy_keys(self.address, int(wanted.ctypes.data), len(rows), int(found.ctypes.data))
        return found

    def hold_rows(self) -> None:
        """Makes ordinary rows of pairs, between batches, and lets none come. Raises DlogError where memory does not suffice."""
        self.struct[L.collection.pairable] = 0
        if self.struct[L.collection.pairs]:
            loading.unpack_pairs(self.memory.control.address, self.address)
            self.memory.check()

    # ---------------------------------------------------------------------------------------------------------- changes

    def updates(self, first: int) -> Updates:
        """The last batch's changes, by round, the batch's first one being `first`; as they came: a row may have several in one
        round."""
        count = self.log[L.items.count]
        if not count:
            return no_updates(self.arity)
        whole = count > MAX_COPIED_ROWS or self.grouped is not None or self.struct[L.collection.pairs]
        if whole and not self.log[L.items.data]:
            read, count = self.read()
            return Updates(tuple(c.astype(np.int64) for c in read), np.ones(count, np.int64), np.full(count, first, np.int64))
        room = count if self.grouped is None else 2 * count
        if room <= PREALLOCATED_CHANGES:
            block = self._few_changes.copied(self.address, first)
        else:
            block = self.memory.array_pool.words((self.arity + 2) * room).reshape(self.arity + 2, room)
            block = block[:, : ChangesBlock(block).write(self.address, first)]
        *columns, rounds, diffs = block
        return Updates(tuple(columns), diffs, rounds)

    @cached_property
    def _few_changes(self) -> ChangesBlock:
        return ChangesBlock(np.empty((self.arity + 2, PREALLOCATED_CHANGES), np.int64))

    def keep_changes(self) -> None:
        """Has fused batches leave their changes here; none have."""
        if L.collection.fused_log not in self.struct.keep:
            self.struct.point(L.collection.fused_log, new_list(self.arity + 2))
        self.struct.keep[L.collection.fused_log][L.items.count] = 0  # type: ignore[index]

    def fused_changes(self) -> Updates:
        """The changes that fused batches have left (see `updates`)."""
        kept = self.struct.keep[L.collection.fused_log]
        assert isinstance(kept, Struct)
        count, capacity, columns = (kept[field] for field in (L.items.count, L.items.capacity, L.items.words))
        block = self.memory.array_pool.words(columns * count).reshape(columns, count)
        if count:
            block[:] = view(kept[L.items.data], columns * capacity, np.int64).reshape(columns, capacity)[:, :count]
        return Updates(tuple(block[:-2]), block[-1], block[-2])

    def may_repeat(self) -> bool:
        """Whether a row may have several changes in one round."""
        return bool(self.log[L.items.data]) and bool(reading.may_repeat(self.log.address))

    def changes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row numbers (of pairs their words), rounds of the batch (from 0) and diffs of the last batch's changes, by round. Not
        of a result that is its groups."""
        count = self.log[L.items.count]
        if count and not self.log[L.items.data]:
            rows = self.present()
            return rows, np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64)
        log = view(self.log[L.items.data], count * L.change.size, np.int64).reshape(count, L.change.size)
        return log[:, L.change.row], (log[:, L.change.time] >> 32) - 1, log[:, L.change.diff]

    # ------------------------------------------------------------------------------------------------------------ memory

    def free(self) -> None:
        """Gives all memory back; the collection is unusable afterwards."""
        molds.free_collection(self.memory.control.address, self.address)
        self.indexes.clear()
