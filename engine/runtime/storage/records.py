"""Tables of records: each record of an arity once, its id its row number plus one; 0 is nil."""

from __future__ import annotations

import numpy as np

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.static import sets
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import words
from dlog.engine.runtime.storage.relation import StoredRelation


class RecordTables:
    """Records by arity. Fields are raw 64-bit values: numbers, ids, or the bits of floats."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._tables: dict[int, StoredRelation] = {}

    def table(self, arity: int) -> StoredRelation:
        """The records of one arity, as a relation with a hash set that grows by instalments."""
        if arity not in self._tables:
            made = StoredRelation(f"@records{arity}", (Kind.FLOAT,) * arity, self._memory)
            made.new_gradual_set()
            self._tables[arity] = made
        return self._tables[arity]

    @property
    def sizes(self) -> dict[int, int]:
        """How many records there are, by arity."""
        return {arity: table.rows for arity, table in self._tables.items() if table.rows}

    def fields(self, arity: int, ids: np.ndarray) -> list[np.ndarray]:
        """The fields of non-nil ids, one int64 array per field."""
        table = self.table(arity)
        return [table.column(c)[ids - 1] for c in range(arity)]

    def pack(self, arity: int, columns: list[np.ndarray]) -> np.ndarray:
        """Ids (int32) of records with these fields, made where they are new. Raises DlogError when out of memory."""
        table = self.table(arity)
        rows = len(columns[0]) if columns else 1
        ids = np.empty(rows, np.int32)
        registers = np.zeros((max(arity, 1), L.REGISTER), np.int64)
        scratch = np.empty((3, L.BLOCK), np.int64)
        control = self._memory.new_control(L.control.size)
        control[L.control.registers] = int(registers.ctypes.data)
        listed = words(range(arity))
        codes, chosen, found = (int(scratch[i].ctypes.data) for i in range(3))
        for start in range(0, rows, L.BLOCK):
            n = min(L.BLOCK, rows - start)
            for c, values in enumerate(columns):
                registers[c, :n] = values[start : start + n]
            if sets.insert_block(control.address, table.address, listed.address, n, codes, chosen) < 0:
                self._memory.check(control)
            sets.find_rows(table.address, control.address, listed.address, n, codes, found)
            ids[start : start + n] = scratch[2, :n] + 1
        return ids
