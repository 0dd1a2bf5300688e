"""Relations as the embedded executor stores them: columns of 4 or 8 bytes in memory that kernels own, and a set over them.

A `StoredRelation` is one struct of the kernels' (`Relation`) with its Python face. Its rows are distinct but for the moments
while it is loaded.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from dlog.engine.interruption import DelayedInFinalizer
from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Error, SetKind
from dlog.engine.kernels.combine import Combine
from dlog.engine.kernels.layout import BLOCK, HEAP_SIZE, PAGE_CODES, PAGE_WORDS
from dlog.engine.kernels.static import bitmaps, sets, storage
from dlog.engine.runtime.storage.extent import Extent, Extents, width_of
from dlog.engine.runtime.storage.native import Struct, view, words
from dlog.engine.values.array_pool import ArrayPool
from dlog.grammar.diagnostics import Diagnostic, DlogError

BITS_LIMIT = 2**26
"""Most bits of a bitmap in one piece: 8 MiB."""
PAGES_LIMIT = 2**29
"""Most bits of a paged bitmap: 64 MiB if every page is touched, with a directory of 4 MiB."""
MIN_WORD_VALUES = 512
"""Values of a bitmap's last column from which on they stand in words of their own: what that leaves free
is an eighth at most."""
SHARED_ROWS = 2**19
"""Fewest loaded rows whose repetitions several threads look for."""
AHEAD_ROWS = 2**22
"""Rows for which a relation with a bitmap reserves addresses in advance: growing would move its pages again and again."""
DENSE_LIMIT = 2**24
"""Most keys of a dense map: 64 MiB of row numbers."""


class Memory:
    """The account of what kernels allocated, with its limit; every worker's control block points to it, and through it to the
    symbol table."""

    def __init__(self, limit: int | None, threads: int = 1) -> None:
        self.bytes = Struct(L.account.size)
        self.threads = threads
        self.limit = limit if limit is not None else 2**62
        self.control = self.new_control(L.control.size)
        self.array_pool = ArrayPool()
        """For what is handed out of the kernels' memory; on nobody's account."""

    def new_control(self, size: int) -> Struct:
        control = Struct(size)
        control.point(L.control.account, self.bytes)
        control[L.control.limit] = self.limit
        return control

    @property
    def used(self) -> int:
        return self.bytes[L.account.bytes]

    @property
    def limited(self) -> bool:
        return self.limit < 2**62

    def check(self, control: Struct | None = None) -> None:
        """Raises the user's error if a kernel could not allocate."""
        control = control or self.control
        if control[L.control.error]:
            raise self.failure(control)

    def failure(self, control: Struct | None = None) -> DlogError:
        """The user's error after a kernel that says it failed. The mark may be gone: threads share this block."""
        control = control or self.control
        code, control[L.control.error] = control[L.control.error], 0
        if code == Error.ROWS:
            return DlogError(Diagnostic("too-many-rows", "a relation would have more than 2147483646 rows"))
        return self.exhausted()

    def exhausted(self) -> DlogError:
        held = f"{self.used / 2**20:,.0f} MiB are in use"
        if self.limited:
            return DlogError(
                Diagnostic("out-of-memory", f"out of memory: the limit is {self.limit / 2**20:,.0f} MiB", notes=(held,))
            )
        return DlogError(Diagnostic("out-of-memory", "out of memory", notes=(held,)))


def is_exhausted(error: BaseException) -> bool:
    """Whether it says that memory did not suffice."""
    return isinstance(error, DlogError) and all(d.code == "out-of-memory" for d in error.diagnostics)


class StoredRelation:
    """Columns, their set, and the loop's marks of one relation (or one worker's share of it)."""

    _made = False

    def __init__(self, name: str, kinds: Sequence[Kind], memory: Memory) -> None:
        self.name = name
        self.kinds = tuple(kinds)
        self.memory = memory
        self.extents: Extents = [None] * len(self.kinds)
        self.widths = [width_of(k, None) for k in self.kinds]
        self.struct = Struct(L.relation.size)
        self._columns = Struct(L.column.size * max(len(self.kinds), 1))
        self.struct[L.relation.arity] = len(self.kinds)
        self.struct.point(L.relation.columns, self._columns)
        self.sorted_by: tuple[int, ...] = ()
        self._ahead = 0
        self._heap: Struct | None = None
        self.pinned = False
        """An arrangement reads the columns in their present order."""
        self.key: tuple[int, ...] = tuple(range(len(self.kinds)))
        self._write_widths()
        self._made = True

    # ------------------------------------------------------------------------------------------------------------ facts

    @property
    def arity(self) -> int:
        return len(self.kinds)

    @property
    def rows(self) -> int:
        return self.struct[L.relation.rows]

    @property
    def set_kind(self) -> int:
        return self.struct[L.relation.set]

    @property
    def keyed(self) -> bool:
        return self.struct[L.relation.merge] != Combine.NONE

    @property
    def address(self) -> int:
        return self.struct.address

    def column(self, number: int) -> np.ndarray:
        """A view of a column's values: int32 or int64 (floats as their bits); valid until the relation changes."""
        dtype: Any = np.int32 if self.widths[number] == 4 else np.int64
        return view(self._field(number, L.column.data), self.rows, dtype)

    def typed(self, number: int) -> np.ndarray:
        """A column as its kind's dtype: float64, uint64, int64 or int32 (symbols, records, narrow numbers)."""
        values = self.column(number)
        if self.kinds[number] is Kind.FLOAT:
            return values.view(np.float64)
        if self.kinds[number] is Kind.UNSIGNED:
            return values.view(np.uint64) if values.dtype == np.int64 else values.astype(np.uint64)
        return values

    def column_address(self, number: int) -> int:
        """The present address of a column's values."""
        return self._field(number, L.column.data)

    def replace_columns(self, addresses: Sequence[int], capacity: int) -> None:
        """Takes over columns of the same widths and rows, in another order; frees the old ones."""
        old = self.struct[L.relation.capacity]
        for number, (address, width) in enumerate(zip(addresses, self.widths, strict=True)):
            self._free(self._field(number, L.column.data), (old - self._ahead) * width)
            self._columns[number * L.column.size + L.column.data] = address
        self.struct[L.relation.capacity] = capacity
        self._ahead = 0

    def _field(self, number: int, field: int) -> int:
        return self._columns[number * L.column.size + field]

    @property
    def first_stride(self) -> int:
        """The distance of the dense codes of rows that differ by one in the first column."""
        return self._field(0, L.column.stride)

    def _write_widths(self) -> None:
        for number, width in enumerate(self.widths):
            self._columns[number * L.column.size + L.column.width] = width

    # ---------------------------------------------------------------------------------------------------------- contents

    def shape(self, extents: Extents) -> None:
        """Sets extents and widths; rows present are kept (their values fit, or the columns are widened)."""
        widths = [width_of(k, e) for k, e in zip(self.kinds, extents, strict=True)]
        if self.rows and widths != self.widths:
            held = [self.column(c).astype(np.int64) for c in range(self.arity)]
            self.clear()
            self.drop_columns()
            self.widths = widths
            self._write_widths()
            self._fill(held)
        elif not self.rows:
            self.drop_columns()
            self.widths = widths
            self._write_widths()
        self.extents = list(extents)

    def load(self, columns: Sequence[np.ndarray], rows: int) -> None:
        """Replaces the contents by these int64-compatible columns, without duplicates; widths follow the values."""
        values = [raw(c) for c in columns]
        extents: Extents = []
        for kind, column in zip(self.kinds, values, strict=True):
            known = kind is not Kind.FLOAT and len(column) > 0
            extents.append(Extent(int(column.min()), int(column.max())) if known else None if len(column) else Extent(0, -1))
        self.clear()
        self.drop_columns()
        self.shape(extents)
        self._fill(values, rows)
        self._dedupe()

    def assign(self, columns: Sequence[np.ndarray], rows: int) -> None:
        """Replaces the contents by rows that are known to be distinct, or need not be; they fit the shape."""
        self.assign_parts([columns], [rows])

    def assign_parts(self, parts: Sequence[Sequence[np.ndarray]], rows: Sequence[int]) -> None:
        """The same for rows in several parts."""
        self.clear()
        self._make_room(sum(rows))
        for number in range(self.arity):
            column, at = self.column(number), 0
            for columns, height in zip(parts, rows, strict=True):
                column[at : at + height] = columns[number]
                at += height

    def _fill(self, columns: Sequence[np.ndarray], rows: int | None = None) -> None:
        count = rows if rows is not None else len(columns[0]) if columns else 0
        self._make_room(count)
        for number, values in enumerate(columns):
            self.column(number)[:] = values

    def _make_room(self, rows: int) -> None:
        """Reserves so many rows, whose values are still to be written."""
        if not storage.reserve(self.memory.control.address, self.address, rows):
            raise self.memory.failure()
        self.struct[L.relation.rows] = rows

    def _dedupe(self) -> None:
        if self.arity == 0:
            self.struct[L.relation.rows] = min(self.rows, 1)
            return
        if storage.strictly_sorted(self.address):
            self.sorted_by = tuple(range(self.arity))
            return
        if self.memory.threads > 1 and self.rows >= SHARED_ROWS and not self.memory.limited:
            self._remove_repeated(self.memory.threads)
            return
        self.new_set(paged=False)
        scratch = Struct(BLOCK)
        if not sets.dedupe_rows(self.memory.control.address, self.address, scratch.address):
            raise self.memory.failure()
        self.drop_set()

    def _remove_repeated(self, parts: int) -> None:
        """Several threads look for rows that equal an earlier one, each in its part of the hashes."""
        rows = self.rows
        slots = 2 * rows // parts + BLOCK
        self._set_key(range(self.arity))

        def find(part: int) -> np.ndarray:
            table, repeated, scratch = np.zeros(slots, np.int32), np.empty(rows, np.int32), Struct(BLOCK)
            addresses = (int(table.ctypes.data), slots, scratch.address, int(repeated.ctypes.data))
            return repeated[: sets.find_repeated(self.address, part, parts, *addresses)]

        with ThreadPoolExecutor(parts, thread_name_prefix="dlog-load") as pool:
            repeated = np.concatenate(list(pool.map(find, range(parts))))
        if len(repeated) == 0:
            return
        keep = np.ones(rows, bool)
        keep[repeated] = False
        for number in range(self.arity):
            values = self.column(number)
            values[: rows - len(repeated)] = values[keep]
        self.struct[L.relation.rows] = rows - len(repeated)

    def append(self, other: StoredRelation) -> None:
        """Adds another relation's rows (same kinds and widths), unchecked."""
        start, extra = self.rows, other.rows
        if extra == 0:
            return
        if not storage.reserve(self.memory.control.address, self.address, extra):
            raise self.memory.failure()
        self.struct[L.relation.rows] = start + extra
        for number in range(self.arity):
            self.column(number)[start:] = other.column(number)
        self.sorted_by = ()

    def clear(self) -> None:
        """Forgets all rows and the set."""
        self.drop_set()
        self.struct[L.relation.rows] = self.struct[L.relation.lo] = self.struct[L.relation.hi] = 0
        self.sorted_by = ()

    def empty(self) -> None:
        """Forgets all rows; what rows are checked against or merge by stays as it was made."""
        kind, key, merge, value = self.set_kind, self.key, self.struct[L.relation.merge], self.struct[L.relation.value]
        heap = self._heap is not None
        self.clear()
        if merge != Combine.NONE:
            self.key_by(key, value, merge)
            if heap:
                self.order_changes()
        elif kind != SetKind.NONE:
            self.new_set()

    def forget_rows(self) -> None:
        """Empties the relation, but a bitmap still has the rows: it takes none of them again."""
        if self.set_kind in (SetKind.BITS, SetKind.PAGES):
            self.struct[L.relation.rows] = self.struct[L.relation.lo] = self.struct[L.relation.hi] = 0
            self.sorted_by = ()
        elif self.rows:
            self.empty()

    def drop_columns(self) -> None:
        capacity = self.struct[L.relation.capacity]
        for number, width in enumerate(self.widths):
            self._free(self._field(number, L.column.data), (capacity - self._ahead) * width)
            self._columns[number * L.column.size + L.column.data] = 0
        self.struct[L.relation.capacity] = self._ahead = 0

    def trim(self) -> None:
        """Gives back the room that growing columns reserved."""
        rows, capacity = self.rows, self.struct[L.relation.capacity]
        if capacity - rows < 4096 and not self._ahead:
            return
        for number, width in enumerate(self.widths):
            old = self._field(number, L.column.data)
            moved = storage.resize(self.memory.control.address, old, (capacity - self._ahead) * width, rows * width)
            self.memory.check()
            self._columns[number * L.column.size + L.column.data] = moved
        self.struct[L.relation.capacity] = rows
        self._ahead = 0

    def _free(self, address: int, size: int) -> None:
        storage.release(self.memory.control.address, address, size)

    def free(self) -> None:
        """Gives back all memory; the relation must not be used afterwards."""
        self.drop_set()
        self.drop_columns()

    def __del__(self) -> None:
        if self._made and sys is not None and not sys.is_finalizing():
            with DelayedInFinalizer():
                self.free()

    # -------------------------------------------------------------------------------------------------------------- sets

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

    def _reserve_ahead(self, rows: int) -> None:
        """Room for `rows` rows in addresses only: memory that is not touched costs nothing and is not on the account until
        `trim`. Where memory is limited the account must always be right: nothing is reserved."""
        if self.memory.limited or self.rows or self.struct[L.relation.capacity] >= rows or rows < 2**16:
            return
        self.drop_columns()
        control = self.memory.control.address
        for number, width in enumerate(self.widths):
            address = storage.zeroed(control, rows * width)
            self.memory.check()
            self._columns[number * L.column.size + L.column.data] = address
            self.memory.bytes[L.account.bytes] -= rows * width
        self.struct[L.relation.capacity] = self._ahead = rows

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

    def collect(self, share: StoredRelation) -> None:
        """Takes over what a worker added; for relations without a set or with a bitmap."""
        if self.set_kind in (SetKind.BITS, SetKind.PAGES):
            if not bitmaps.collect_bits(self.memory.control.address, self.address, share.address):
                raise self.memory.failure()
            self.sorted_by = ()
            return
        self.append(share)
        share.struct[L.relation.rows] = 0

    def share(self, name: str) -> StoredRelation:
        """An empty relation for one worker's additions while several run: same columns, and a set that goes with this one's."""
        made = StoredRelation(name, self.kinds, self.memory)
        made.widths = list(self.widths)
        made._write_widths()
        made.extents = list(self.extents)
        made._set_key(self.key)
        if self.set_kind in (SetKind.BITS, SetKind.PAGES):
            made._write_strides(self.key, whole_words=True)
            made._take_slots(self.set_kind, self.struct[L.relation.slot_count], self._slot_bytes)
            made._reserve_ahead(min(self.struct[L.relation.slot_count], AHEAD_ROWS))
        elif self.set_kind != SetKind.NONE:
            made.struct[L.relation.set] = SetKind.HASH
        for field in range(L.relation.compared, L.relation.size):
            made.struct[field] = self.struct[field]
        for field in (L.relation.merge, L.relation.value):
            made.struct[field] = self.struct[field]
        return made

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
        if kind == SetKind.HASH:
            self._free(self.struct[L.relation.slots], self.struct[L.relation.slot_count] * 4)
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


def raw(values: np.ndarray) -> np.ndarray:
    """Values as integers: floats and unsigned by their bits."""
    if values.dtype == np.float64 or values.dtype == np.uint64:
        return np.ascontiguousarray(values).view(np.int64)
    return values


assert ctypes.sizeof(ctypes.c_void_p) == 8, "dlog needs a 64-bit machine"
