"""Columns of 4 or 8 bytes in memory that kernels own: the rows of a relation as the embedded executor stores them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.static import storage
from dlog.engine.runtime.storage.extent import Extents, width_of
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, view

AHEAD_ROWS = 2**22
"""Rows for which a relation with a bitmap reserves addresses in advance: growing would move its pages again and again."""


class StoredColumns:
    """The columns of one struct of the kernels' (`Relation`)."""

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
        self.pinned = False
        """An arrangement reads the columns in their present order."""
        self._write_widths()

    @property
    def arity(self) -> int:
        return len(self.kinds)

    @property
    def rows(self) -> int:
        return self.struct[L.relation.rows]

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

    def _field(self, number: int, field: int) -> int:
        return self._columns[number * L.column.size + field]

    def _write_widths(self) -> None:
        for number, width in enumerate(self.widths):
            self._columns[number * L.column.size + L.column.width] = width

    # ------------------------------------------------------------------------------------------------------------ memory

    def replace_columns(self, addresses: Sequence[int], capacity: int) -> None:
        """Takes over columns of the same widths and rows, in another order; frees the old ones."""
        old = self.struct[L.relation.capacity]
        for number, (address, width) in enumerate(zip(addresses, self.widths, strict=True)):
            self._free(self._field(number, L.column.data), (old - self._ahead) * width)
            self._columns[number * L.column.size + L.column.data] = address
        self.struct[L.relation.capacity] = capacity
        self._ahead = 0

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


def raw(values: np.ndarray) -> np.ndarray:
    """Values as integers: floats and unsigned by their bits."""
    if values.dtype == np.float64 or values.dtype == np.uint64:
        return np.ascontiguousarray(values).view(np.int64)
    return values


assert ctypes.sizeof(ctypes.c_void_p) == 8, "dlog needs a 64-bit machine"
