"""Relations as the embedded executor stores them: columns, and a set over them.

A `StoredRelation` is one struct of the kernels' (`Relation`) with its Python face. Its rows are distinct but for the moments
while it is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dlog.engine.interruption import DelayedInFinalizer
from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import SetKind
from dlog.engine.kernels.combine import Combine
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.static import bitmaps, emptying, row_codes, sets, storage
from dlog.engine.runtime.storage.columns import AHEAD_ROWS, raw
from dlog.engine.runtime.storage.extent import Extent, Extents, width_of
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.runtime.storage.row_set import BITMAPS, KeyedColumns

SORTED_ROWS = 2**14
"""Fewest loaded rows that are sorted to find which are there twice."""
CODE_BITS = 63
"""Most bits of a row that is sorted as one word."""
SHARED_ROWS = 2**19
"""Fewest loaded rows whose repetitions several threads look for."""


class StoredRelation(KeyedColumns):
    """Columns, their set, and the loop's marks of one relation (or one worker's share of it)."""

    _is_made = False

    def __init__(self, name: str, kinds: Sequence[Kind], memory: Memory) -> None:
        super().__init__(name, kinds, memory)
        self._is_made = True

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

    def _dedupe(self) -> None:
        if self.arity == 0:
            self.struct[L.relation.rows] = min(self.rows, 1)
            return
        if storage.strictly_sorted(self.address):
            self.sorted_by = tuple(range(self.arity))
            return
        if self.rows >= SORTED_ROWS and not self.memory.limited and (shifts := self._shifts()) is not None:
            self._sort(shifts)
            return
        if self.memory.threads > 1 and self.rows >= SHARED_ROWS and not self.memory.limited:
            self._remove_repeated(self.memory.threads)
            return
        self.new_set(paged=False)
        scratch = Struct(BLOCK)
        if not sets.dedupe_rows(self.memory.control.address, self.address, scratch.address):
            raise self.memory.failure()
        self.drop_set()

    def _shifts(self) -> list[int] | None:
        """Where the bits of each column begin in a word that has a whole row, the first column's highest; None where no word
        has."""
        shifts, bits = [], 0
        for extent in reversed(self.extents):
            if extent is None:
                return None
            shifts.append(bits)
            bits += (extent.span - 1).bit_length()
        return shifts[::-1] if bits <= CODE_BITS else None

    def _sort(self, shifts: Sequence[int]) -> None:
        """Rows in order, each once: NumPy sorts words in a third of the time in which a table finds those that repeat, and what
        is sorted has an index by its first columns already."""
        lows = words(extent.low for extent in self.extents if extent is not None)
        places, codes = words(shifts), np.empty(self.rows, np.int64)
        described = self.address, lows.address, places.address, int(codes.ctypes.data)
        row_codes.write_codes(*described)
        codes.sort()
        row_codes.read_codes(*described)
        self.sorted_by = tuple(range(self.arity))

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
        elif kind == SetKind.GRADUAL:
            self.new_gradual_set()
        elif kind != SetKind.NONE:
            self.new_set()

    def refill(self, columns: Sequence[np.ndarray], rows: int) -> None:
        """Replaces the rows by others, which are distinct and fit the shape; the set is of the same kind."""
        kind = self.set_kind
        if kind in (SetKind.HASH, SetKind.GRADUAL):
            self.drop_set()
            self.struct[L.relation.set] = kind
        emptying.empty_relation(self.address, Struct(BLOCK).address)
        self._fill(columns, rows)
        if kind != SetKind.NONE and not sets.fill_set(self.memory.control.address, self.address):
            raise self.memory.failure()

    def forget_rows(self) -> None:
        """Empties the relation, but a bitmap still has the rows: it takes none of them again."""
        if self.set_kind in BITMAPS:
            self.struct[L.relation.rows] = self.struct[L.relation.lo] = self.struct[L.relation.hi] = 0
            self.sorted_by = ()
        elif self.rows:
            self.empty()

    # ----------------------------------------------------------------------------------------------------------- workers

    def collect(self, share: StoredRelation) -> None:
        """Takes over what a worker added; for relations without a set or with a bitmap."""
        if self.set_kind in BITMAPS:
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
        if self.set_kind in BITMAPS:
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

    # ------------------------------------------------------------------------------------------------------------ memory

    def free(self) -> None:
        """Gives back all memory; the relation must not be used afterwards."""
        self.drop_set()
        self.drop_columns()

    def __del__(self) -> None:
        if self._is_made and sys is not None and not sys.is_finalizing():
            with DelayedInFinalizer():
                self.free()
