"""Arrangements as the executor builds and keeps them (kernels/static/arrange.py and chains.py do the work).

The first sorted arrangement of a relation that no hash table refers to by row number is made by reordering the relation
itself: it then costs its offsets and nothing more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.interruption import DelayedInFinalizer
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import ArrangementKind, KeyMap, SetKind
from dlog.engine.kernels.static import arrange, storage
from dlog.engine.kernels.static.chains import grow_arrangement
from dlog.engine.kernels.static.emptying import empty_arrangement
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.runtime.storage.relation import StoredRelation

ONLY_MAX = 2**24
"""Span of values up to which an arrangement can be told which of them it needs."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a relation's rows: 32-bit words at `address`, each less `low`; `keep` holds those that are no column."""

    address: int
    low: int
    keep: np.ndarray | None = None


class StoredArrangement:
    """An index of one relation by `key`; `order` are the columns its groups are sorted by."""

    _is_made = False

    def __init__(self, relation: StoredRelation, key: tuple[int, ...], order: tuple[int, ...], growing: bool) -> None:
        self.relation = relation
        self.key = key
        self.order = order
        self.growing = growing
        self.struct = Struct(L.arrangement.size)
        self._owned: list[tuple[int, int]] = []
        self._prepare(ArrangementKind.GROWING if growing else ArrangementKind.SORTED)
        self._is_made = True

    @property
    def address(self) -> int:
        return self.struct.address

    @property
    def memory(self) -> Memory:
        return self.relation.memory

    def _prepare(self, kind: int) -> None:
        struct = self.struct
        struct[L.arrangement.kind] = kind
        struct.point(L.arrangement.relation, self.relation.struct)
        struct[L.arrangement.key_count] = len(self.key)
        struct.point(L.arrangement.keys, words(self.key))
        space = self.relation.code_space(self.key)
        if space is not None and space <= self._dense_limit():
            self._prepare_dense(space)
        else:
            struct[L.arrangement.map] = KeyMap.HASH
            struct.point(L.arrangement.group_keys, Struct(len(self.key)))

    def _dense_limit(self) -> int:
        """A dense map may have several times more keys than the relation has rows."""
        return min(max(2**22, 8 * self.relation.rows), 2**30) if not self.growing else 2**22

    def _prepare_dense(self, space: int) -> None:
        extents = [self.relation.extents[c] for c in self.key]
        spans = [max(e.span, 1) for e in extents if e is not None]
        strides = [int(np.prod(spans[k + 1 :], dtype=np.int64)) for k in range(len(spans))]
        self.struct[L.arrangement.map] = KeyMap.DENSE
        self.struct[L.arrangement.groups] = space
        self.struct.point(L.arrangement.lows, words(e.low for e in extents if e is not None))
        self.struct.point(L.arrangement.ranges, words(spans))
        self.struct.point(L.arrangement.strides, words(strides))

    # ------------------------------------------------------------------------------------------------------------ sorted

    def build(self, needed: Iterable[int]) -> None:
        """Sorts: groups, offsets, and the columns `needed` in the groups' order."""
        rows = self.relation.rows
        groups = self._group_numbers()
        size = (self.struct[L.arrangement.groups] + 2) * 4
        self.struct[L.arrangement.offsets] = self._take(size)
        ascending = arrange.count_groups(self.address, groups.address, groups.low, rows)
        in_place = ascending == 1 and self._ordered(groups)
        if in_place:
            self._alias()
            return
        unnumbered = self.relation.set_kind in (SetKind.NONE, SetKind.BITS, SetKind.PAGES)
        if unnumbered and not self.relation.keyed and not self.relation.pinned:
            self._reorder(groups)
            self._alias()
        else:
            self._copy(frozenset(needed), groups)

    def _group_numbers(self) -> Groups:
        """The group of each row: one narrow key says it itself."""
        relation, (key, *more) = self.relation, self.key or (-1,)
        if key >= 0 and not more and self.struct[L.arrangement.map] == KeyMap.DENSE and relation.widths[key] == 4:
            extent = relation.extents[key]
            assert extent is not None
            return Groups(relation.column_address(key), extent.low)
        numbers = np.empty(relation.rows, np.int32)
        if not arrange.assign_groups(self.memory.control.address, self.address, numbers.ctypes.data, relation.rows):
            self.memory.check()
        return Groups(int(numbers.ctypes.data), 0, numbers)

    def _reorder(self, groups: Groups) -> None:
        """Puts the relation's own rows into the groups' order, one new column at a time."""
        relation, rows = self.relation, self.relation.rows
        single = self.key[0] if len(self.key) == 1 and self.struct[L.arrangement.map] == KeyMap.DENSE else -1
        others = frozenset(range(relation.arity)) - {single}
        columns = self._scatter(others, groups)
        if single >= 0:
            extent = relation.extents[single]
            assert extent is not None
            columns[single] = self._new_column(rows * relation.widths[single])
            width = relation.widths[single]
            arrange.write_keys(
                self.struct[L.arrangement.offsets], self.struct[L.arrangement.groups], extent.low, width, columns[single]
            )
        relation.replace_columns([columns[c] for c in range(relation.arity)], rows)
        relation.sorted_by = (*self.key, *self.order)

    def _scatter(self, numbers: frozenset[int], groups: Groups) -> dict[int, int]:
        """New memory per column, with its values in the groups' order."""
        relation, rows, offsets = self.relation, self.relation.rows, self.struct[L.arrangement.offsets]
        targets = {c: self._new_column(rows * relation.widths[c]) for c in sorted(numbers)}
        if len(numbers) == 1 and not self.order:
            (number,) = numbers
            data, width = relation.column_address(number), relation.widths[number]
            last = self.struct[L.arrangement.groups]
            arrange.scatter_grouped(offsets, groups.address, groups.low, data, width, rows, targets[number], last)
            return targets
        places = np.empty(rows, np.int32)
        arrange.place_rows(self.address, groups.address, groups.low, self._order_rows(), rows, places.ctypes.data)
        for number, target in targets.items():
            data, width = relation.column_address(number), relation.widths[number]
            arrange.scatter_column(data, width, places.ctypes.data, rows, target)
        return targets

    def _new_column(self, size: int) -> int:
        address = int(storage.resize(self.memory.control.address, 0, 0, size))
        self.memory.check()
        return address

    def _ordered(self, groups: Groups) -> bool:
        if not self.order:
            return True
        number = self.order[0]
        data = self.relation.column_address(number)
        return bool(arrange.ascends_within(groups.address, data, self.relation.widths[number], self.relation.rows))

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
            data = relation.column_address(number)
            arrange.sort_pass(
                data, relation.widths[number], low, shift, source, target.ctypes.data, relation.rows, counts.ctypes.data
            )
            self._sorted_rows = target

    def _alias(self) -> None:
        """The relation itself is in the groups' order: lookups read its columns."""
        entries = Struct(2 * self.relation.arity)
        for number in range(self.relation.arity):
            entries[2 * number] = self.relation.column_address(number)
            entries[2 * number + 1] = self.relation.widths[number]
        self.struct.point(L.arrangement.columns, entries)
        self.relation.pinned = True
        self.columns = frozenset(range(self.relation.arity))

    def _copy(self, numbers: frozenset[int], groups: Groups) -> None:
        """The columns lookups need, in the groups' order, beside the relation."""
        entries = Struct(2 * self.relation.arity)
        self.columns = numbers
        for number, target in (self._scatter(numbers, groups) if numbers else {}).items():
            width = self.relation.widths[number]
            self._owned.append((target, self.relation.rows * width))
            entries[2 * number] = target
            entries[2 * number + 1] = width
        self.struct.point(L.arrangement.columns, entries)

    def _take(self, size: int) -> int:
        address = int(storage.zeroed(self.memory.control.address, size))
        self.memory.check()
        self._owned.append((address, max(size, 0)))
        return address

    # ----------------------------------------------------------------------------------------------------------- growing

    def start(self, item: int) -> None:
        """An empty growing arrangement whose items are the values of column `item` (4 bytes wide), or row numbers (-1)."""
        self.struct[L.arrangement.item] = item
        self.columns = frozenset(range(self.relation.arity))
        if self.struct[L.arrangement.map] == KeyMap.DENSE:
            self.struct[L.arrangement.chains] = self._take(self.struct[L.arrangement.groups] * L.chain.size * 4)

    def take_up(self) -> None:
        """Enters the rows that the relation has got since."""
        control = self.memory.new_control(L.control.size)
        if not grow_arrangement(control.address, self.address, self.relation.rows):
            self.memory.check(control)

    def empty(self) -> None:
        """Takes all rows out, which the relation still has."""
        empty_arrangement(self.address)

    def only(self, column: int, values: np.ndarray) -> None:
        """Leaves out rows, from now on, whose `column` has none of the values, if these are close to each other."""
        low = int(values.min()) if len(values) else 0
        span = int(values.max()) - low + 1 if len(values) else 0
        if span > ONLY_MAX:
            return
        wanted = np.zeros((span + 64) // 64 * 64, bool)
        wanted[values.astype(np.int64) - low] = True
        self._only_bits = np.packbits(wanted, bitorder="little")
        self.struct[L.arrangement.only] = self._only_bits.ctypes.data
        self.struct[L.arrangement.only_column] = column
        self.struct[L.arrangement.only_low] = low
        self.struct[L.arrangement.only_span] = span

    def free(self) -> None:
        """Gives back all memory; the arrangement must not be used afterwards."""
        if self.struct[L.arrangement.key_count] < 0:
            return
        control = self.memory.control.address
        for address, size in self._owned:
            storage.release(control, address, size)
        self._owned = []
        if self.struct[L.arrangement.map] == KeyMap.HASH:
            capacity = self.struct[L.arrangement.group_capacity]
            keys = self.struct.keep[L.arrangement.group_keys]
            assert isinstance(keys, Struct)
            for k in range(len(self.key)):
                storage.release(control, keys[k], capacity * 8)
            storage.release(control, self.struct[L.arrangement.slots], self.struct[L.arrangement.slot_count] * 4)
            if self.growing:
                storage.release(control, self.struct[L.arrangement.chains], capacity * L.chain.size * 4)
        storage.release(control, self.struct[L.arrangement.pool], self.struct[L.arrangement.pool_capacity] * 4)
        self.struct = Struct(L.arrangement.size)
        self.struct[L.arrangement.key_count] = -1

    def __del__(self) -> None:
        if self._is_made and sys is not None and not sys.is_finalizing():
            with DelayedInFinalizer():
                self.free()
