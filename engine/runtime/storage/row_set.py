"""The set over the rows of a relation, by which a row is found and comes once: a bitmap, pages of one, or a hash table; of
rows that merge by key a dense map or a hash table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import SetKind
from dlog.engine.kernels.combine import Combine
from dlog.engine.kernels.layout import HEAP_SIZE, PAGE_CODES, PAGE_WORDS
from dlog.engine.kernels.static import sets, storage
from dlog.engine.runtime.storage.columns import AHEAD_ROWS, StoredColumns
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, words

BITS_LIMIT = 2**26
"""Most bits of a bitmap in one piece: 8 MiB."""
PAGES_LIMIT = 2**29
"""Most bits of a paged bitmap: 64 MiB if every page is touched, with a directory of 4 MiB."""
MIN_WORD_VALUES = 512
"""Values of a bitmap's last column from which on they stand in words of their own: what that leaves free
is an eighth at most."""
DENSE_LIMIT = 2**24
"""Most keys of a dense map: 64 MiB of row numbers."""

BITMAPS = frozenset((SetKind.BITS, SetKind.PAGES))
"""The sets that are bitmaps."""


class KeyedColumns(StoredColumns):
    """Columns with a set over them, or with none."""

    def __init__(self, name: str, kinds: Sequence[Kind], memory: Memory) -> None:
        super().__init__(name, kinds, memory)
        self.key: tuple[int, ...] = tuple(range(len(self.kinds)))
        self._heap: Struct | None = None

    @property
    def set_kind(self) -> int:
        return self.struct[L.relation.set]

    @property
    def keyed(self) -> bool:
        return self.struct[L.relation.merge] != Combine.NONE

    @property
    def first_stride(self) -> int:
        """The distance of the dense codes of rows that differ by one in the first column."""
        return self._field(0, L.column.stride)

    def code_space(self, columns: Sequence[int]) -> int | None:
        """How many combinations of values these columns can hold, None if unknown."""
        space = 1
        for number in columns:
            extent = self.extents[number]
            if extent is None:
                return None
            space *= max(extent.span, 1)
        return space

    def _set_key(self, key: Sequence[int]) -> None:
        self.key = tuple(key)
        listed = words(key)
        self.struct.point(L.relation.keys, listed)
        self.struct[L.relation.key_count] = len(key)

    def _write_strides(self, key: Sequence[int], whole_words: bool = False) -> int:
        """Numbers the combinations of these columns' values; returns how many numbers there are. `whole_words`: those that
        differ only in the last column stand in words of their own, where that wastes little."""
        stride = 1
        for number in reversed(key):
            extent = self.extents[number]
            assert extent is not None
            at = number * L.column.size
            self._columns[at + L.column.low] = extent.low
            self._columns[at + L.column.range] = max(extent.span, 1)
            self._columns[at + L.column.stride] = stride
            stride *= max(extent.span, 1)
            if whole_words and number == key[-1] and len(key) > 1 and stride >= MIN_WORD_VALUES:
                stride = (stride + 63) // 64 * 64
        return stride

    def new_set(self, paged: bool = True) -> None:
        """An empty set over all columns: a bitmap where the code space is known and small (or, if `paged`, not too large),
        else a hash table."""
        self.drop_set()
        key = tuple(range(self.arity))
        self._set_key(key)
        space = self.code_space(key)
        if space is not None and space <= BITS_LIMIT:
            space = self._write_strides(key, whole_words=True)
            self._take_slots(SetKind.BITS, space, ((space + 63) // 64 + 1) * 8)
            self._reserve_ahead(min(space, AHEAD_ROWS))
        elif paged and space is not None and space <= PAGES_LIMIT:
            space = self._write_strides(key, whole_words=True)
            self._take_slots(SetKind.PAGES, space, (space // PAGE_CODES + 1) * 4)
            self._reserve_ahead(min(space, AHEAD_ROWS))
        else:
            self.struct[L.relation.set] = SetKind.HASH

    def new_gradual_set(self) -> None:
        """An empty set over all columns that grows by instalments: a hash table, of rows that are never taken out."""
        self.drop_set()
        self._set_key(range(self.arity))
        self.struct[L.relation.set] = SetKind.GRADUAL

    def ensure_set(self) -> None:
        """A set over all columns that holds the rows present."""
        if self.set_kind != SetKind.NONE:
            return
        self.new_set()
        if not sets.fill_set(self.memory.control.address, self.address):
            raise self.memory.failure()

    def key_by(self, key: Sequence[int], value: int, merge: int) -> None:
        """Makes the (empty) relation keyed: one row per key, whose `value` column merges."""
        self.drop_set()
        self._set_key(key)
        self.struct[L.relation.merge] = merge
        self.struct[L.relation.value] = value
        space = self.code_space(key)
        if space is not None and space <= DENSE_LIMIT:
            self._write_strides(key)
            self._take_slots(SetKind.DENSE, space, space * 4)
        else:
            self.struct[L.relation.set] = SetKind.HASH

    def keep_first(self, key: Sequence[int], compared: Sequence[tuple[int, int]], symbols: np.ndarray) -> None:
        """Makes the (empty) relation keep one row per key, the first in the order of these columns, each of which has one;
        `symbols`, which the caller keeps, are places of the first ones (int32)."""
        self.key_by(key, 0, Combine.FIRST)
        self.struct.point(L.relation.compared, words([word for column in compared for word in column]))
        self.struct[L.relation.compared_count] = len(compared)
        self.struct[L.relation.firsts], self.struct[L.relation.first_count] = int(symbols.ctypes.data), len(symbols)

    def order_changes(self) -> None:
        """A lattice's changes go to the loop least value first."""
        self._heap = Struct(HEAP_SIZE)
        self._heap[L.heap.last] = -(2**63)  # below every rank, so that negative ones are ordered too
        self.struct[L.relation.heap] = self._heap.address

    def _take_slots(self, kind: int, count: int, size: int) -> None:
        address = storage.zeroed(self.memory.control.address, size)
        self.memory.check()
        self.struct[L.relation.set] = kind
        self.struct[L.relation.slots] = address
        self.struct[L.relation.slot_count] = count
        self._slot_bytes = size

    def drop_set(self) -> None:
        """Frees the set; the rows stay."""
        kind = self.set_kind
        if kind in (SetKind.HASH, SetKind.GRADUAL):
            self._free(self.struct[L.relation.slots], self.struct[L.relation.slot_count] * 4)
            self._free(self.struct[L.relation.next_slots], self.struct[L.relation.next_count] * 4)
            self.struct[L.relation.next_slots] = self.struct[L.relation.next_count] = 0
        elif kind != SetKind.NONE:
            self._free(self.struct[L.relation.slots], self._slot_bytes)
            self._free(self.struct[L.relation.pool], self.struct[L.relation.pool_capacity] * PAGE_WORDS * 8)
            self.struct[L.relation.pool] = self.struct[L.relation.pool_pages] = self.struct[L.relation.pool_capacity] = 0
        self.struct[L.relation.set] = SetKind.NONE
        self.struct[L.relation.slots] = self.struct[L.relation.slot_count] = 0
        self._drop_heap()

    def _drop_heap(self) -> None:
        """Frees a lattice's heap and the queue of its changes."""
        self._free(self.struct[L.relation.queue], self.struct[L.relation.queue_capacity] * 4)
        self.struct[L.relation.queue] = self.struct[L.relation.queue_capacity] = self.struct[L.relation.queue_rows] = 0
        if self._heap is None:
            return
        for bucket in range(L.heap.buckets, HEAP_SIZE, 3):
            self._free(self._heap[bucket], self._heap[bucket + 2] * 16)
        self.struct[L.relation.heap] = 0
        self._heap = None
