"""Arrangements as the executor builds and keeps them (kernels/arrange.py does the work).

The first sorted arrangement of a relation that no hash table refers to by row number is made by reordering the relation itself: it then costs its offsets and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dlog.engine.embedded.native import Struct, words
from dlog.engine.embedded.relation import Memory, StoredRelation
from dlog.engine.kernels import arrange, storage
from dlog.engine.kernels.layout import (
    ARR_COLUMNS,
    ARR_FREE,
    ARR_GROUP_CAPACITY,
    ARR_GROUP_KEYS,
    ARR_GROUPS,
    ARR_GROWING,
    ARR_ITEM,
    ARR_KEY_COUNT,
    ARR_KEYS,
    ARR_KIND,
    ARR_LOWS,
    ARR_MAP,
    ARR_OFFSETS,
    ARR_POOL,
    ARR_POOL_CAPACITY,
    ARR_RANGES,
    ARR_RELATION,
    ARR_SIZE,
    ARR_SLABS,
    ARR_SLOT_COUNT,
    ARR_SLOTS,
    ARR_SORTED,
    ARR_STRIDES,
    COL_DATA,
    COL_SIZE,
    MAP_DENSE,
    MAP_HASH,
    SET_BITS,
    SET_NONE,
    SLAB_SIZE,
)


class StoredArrangement:
    """An index of one relation by `key`; `order` are the columns its groups are sorted by."""

    def __init__(self, relation: StoredRelation, key: tuple[int, ...], order: tuple[int, ...], growing: bool) -> None:
        self.relation = relation
        self.key = key
        self.order = order
        self.growing = growing
        self.struct = Struct(ARR_SIZE)
        self._owned: list[tuple[int, int]] = []
        self._prepare(ARR_GROWING if growing else ARR_SORTED)

    @property
    def address(self) -> int:
        return self.struct.address

    @property
    def memory(self) -> Memory:
        return self.relation.memory

    def _prepare(self, kind: int) -> None:
        struct = self.struct
        struct[ARR_KIND] = kind
        struct.point(ARR_RELATION, self.relation.struct)
        struct[ARR_KEY_COUNT] = len(self.key)
        struct.point(ARR_KEYS, words(self.key))
        space = self.relation.code_space(self.key)
        if space is not None and space <= self._dense_limit():
            self._prepare_dense(space)
        else:
            struct[ARR_MAP] = MAP_HASH
            struct.point(ARR_GROUP_KEYS, Struct(len(self.key)))

    def _dense_limit(self) -> int:
        """A dense map may have several times more keys than the relation has rows."""
        return max(2**22, 8 * self.relation.rows) if not self.growing else 2**22

    def _prepare_dense(self, space: int) -> None:
        extents = [self.relation.extents[c] for c in self.key]
        spans = [max(e.span, 1) for e in extents if e is not None]
        strides = [int(np.prod(spans[k + 1 :], dtype=np.int64)) for k in range(len(spans))]
        self.struct[ARR_MAP] = MAP_DENSE
        self.struct[ARR_GROUPS] = space
        self.struct.point(ARR_LOWS, words(e.low for e in extents if e is not None))
        self.struct.point(ARR_RANGES, words(spans))
        self.struct.point(ARR_STRIDES, words(strides))

    # ------------------------------------------------------------------------------------------------------------ sorted

    def build(self, needed: Iterable[int]) -> None:
        """Sorts: groups, offsets, and the columns `needed` in the groups' order."""
        rows = self.relation.rows
        groups = np.empty(rows, np.int32)
        control = self.memory.control.address
        ascending = arrange.assign_groups(control, self.address, groups.ctypes.data, rows)
        if ascending < 0:
            self.memory.check()
        size = (self.struct[ARR_GROUPS] + 2) * 4
        self.struct[ARR_OFFSETS] = self._take(size)
        arrange.count_groups(self.address, groups.ctypes.data, rows)
        in_place = ascending == 1 and self._ordered(groups)
        if in_place:
            self._alias(needed)
            return
        places = np.empty(rows, np.int32)
        arrange.place_rows(self.address, groups.ctypes.data, self._order_rows(), rows, places.ctypes.data)
        del groups
        if self.relation.set_kind in (SET_NONE, SET_BITS) and not self.relation.keyed and not self.relation.pinned:
            scratch = np.empty(rows, np.int64)
            arrange.permute_relation(self.relation.address, places.ctypes.data, scratch.ctypes.data)
            self.relation.sorted_by = (*self.key, *self.order)
            self._alias(needed)
        else:
            self._copy(needed, places)

    def _ordered(self, groups: np.ndarray) -> bool:
        if not self.order:
            return True
        number = self.order[0]
        data = self.relation._field(number, COL_DATA)
        return bool(arrange.ascends_within(groups.ctypes.data, data, self.relation.widths[number], self.relation.rows))

    def _order_rows(self) -> int:
        """Address of the rows in the order of `order` (a stable radix sort), 0 where there is none to keep."""
        self._sorted_rows: np.ndarray | None = None
        for number in reversed(self.order):
            self._sort_by(number)
        return int(self._sorted_rows.ctypes.data) if self._sorted_rows is not None else 0

    def _sort_by(self, number: int) -> None:
        relation = self.relation
        values = relation.column(number)
        if len(values) == 0:
            return
        low, high = int(values.min()), int(values.max())
        counts = np.empty(2048, np.int64)
        for shift in range(0, max((high - low).bit_length(), 1), 11):
            target = np.empty(relation.rows, np.int32)
            source = int(self._sorted_rows.ctypes.data) if self._sorted_rows is not None else 0
            data = relation._field(number, COL_DATA)
            arrange.sort_pass(
                data, relation.widths[number], low, shift, source, target.ctypes.data, relation.rows, counts.ctypes.data
            )
            self._sorted_rows = target

    def _alias(self, needed: Iterable[int]) -> None:
        """The relation itself is in the groups' order: lookups read its columns."""
        entries = Struct(2 * self.relation.arity)
        for number in range(self.relation.arity):
            entries[2 * number] = self.relation._field(number, COL_DATA)
            entries[2 * number + 1] = self.relation.widths[number]
        self.struct.point(ARR_COLUMNS, entries)
        self.relation.pinned = True
        self.columns = frozenset(range(self.relation.arity))

    def _copy(self, needed: Iterable[int], places: np.ndarray) -> None:
        entries = Struct(2 * self.relation.arity)
        self.columns = frozenset(needed)
        for number in self.columns:
            width = self.relation.widths[number]
            target = self._take(self.relation.rows * width)
            data = self.relation._field(number, COL_DATA)
            arrange.scatter_column(data, width, places.ctypes.data, self.relation.rows, target)
            entries[2 * number] = target
            entries[2 * number + 1] = width
        self.struct.point(ARR_COLUMNS, entries)

    def _take(self, size: int) -> int:
        address = int(storage.zeroed(self.memory.control.address, size))
        self.memory.check()
        self._owned.append((address, max(size, 0)))
        return address

    # ----------------------------------------------------------------------------------------------------------- growing

    def start(self, item: int) -> None:
        """An empty growing arrangement whose items are the values of column `item` (4 bytes wide), or row numbers (-1)."""
        self.struct[ARR_ITEM] = item
        self.struct.point(ARR_FREE, Struct(64))
        if self.struct[ARR_MAP] == MAP_DENSE:
            self.struct[ARR_SLABS] = self._take(self.struct[ARR_GROUPS] * SLAB_SIZE * 8)

    def free(self) -> None:
        control = self.memory.control.address
        for address, size in self._owned:
            storage.release(control, address, size)
        self._owned = []
        if self.struct[ARR_MAP] == MAP_HASH:
            capacity = self.struct[ARR_GROUP_CAPACITY]
            keys = self.struct.keep
            for holder in keys:
                if isinstance(holder, Struct) and holder.address == self.struct[ARR_GROUP_KEYS]:
                    for k in range(len(self.key)):
                        storage.release(control, holder[k], capacity * 8)
            storage.release(control, self.struct[ARR_SLOTS], self.struct[ARR_SLOT_COUNT] * 4)
            if self.growing:
                storage.release(control, self.struct[ARR_SLABS], capacity * SLAB_SIZE * 8)
        storage.release(control, self.struct[ARR_POOL], self.struct[ARR_POOL_CAPACITY] * 4)
        self.struct = Struct(ARR_SIZE)


assert COL_SIZE == 5
