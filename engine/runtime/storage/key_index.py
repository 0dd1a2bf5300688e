"""Rows by key outside of a dataflow, for upserts: which one with that key replaces (kernels/incremental/inputs/upserts.py)."""

from __future__ import annotations

from weakref import finalize

import numpy as np

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.inputs import upserts
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role, new_list
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.memory_map import Array, give_back
from dlog.engine.runtime.storage.native import Struct, view, words
from dlog.engine.values.differences import Columns

MAX_KEPT_CHANGES = 1 << 12
"""Changes of one call for which memory is kept."""


class KeyIndex:
    """All rows of a relation, by the columns `key`. Rows come as arrays of words (int64), column after column. For one thread
    at a time.

    Raises DlogError where memory does not suffice; what it holds is of no use then."""

    def __init__(self, key: tuple[int, ...], columns: Columns, rows: int) -> None:
        self.key = key
        memory = Memory(None)
        self._worker = Worker(memory)
        self._control = self._worker.control
        self._collection = Collection("rows by key", (Kind.NUMBER,) * len(columns), Role.INPUT, memory)
        self._index = self._collection.index(key)
        self._changes = new_list(len(columns) + 1)
        finalize(self, _free, self._collection, self._changes).atexit = False
        given = [np.ascontiguousarray(column, np.int64) for column in columns]
        listed = words(column.ctypes.data for column in given)
        upserts.load_rows(self._control.address, self._collection.address, listed.address, rows)
        self._check()

    def __len__(self) -> int:
        return self._collection.struct[L.collection.live]

    def follow(self, changes: np.ndarray) -> None:
        """Has rows come (+1) and go (-1), one after the other: columns of values, and one of diffs."""
        upserts.follow_changes(self._control.address, self._index.address, _address(changes), changes.shape[1])
        self._check()

    def replace(self, rows: np.ndarray) -> np.ndarray:
        """Has rows come in the place of those with their keys, one after the other. Returns which rows go or come, in order,
        each with its diff, row after row; of a row that is there, that it comes."""
        changes, width = self._changes, len(rows) + 1
        upserts.replace_rows(self._control.address, self._index.address, _address(rows), rows.shape[1], changes.address)
        self._check()
        count = changes[L.items.count]
        found = view(changes[L.items.data], count * width, np.int64).reshape(count, width).copy()
        if count > MAX_KEPT_CHANGES:
            _free_changes(self._collection.memory, changes)
        return found

    def _check(self) -> None:
        self._collection.memory.check(self._control)


def _address(block: np.ndarray) -> int:
    assert block.flags.c_contiguous and block.dtype == np.int64
    return int(block.ctypes.data)


def _free(collection: Collection, changes: Struct) -> None:
    _free_changes(collection.memory, changes)
    collection.free()


def _free_changes(memory: Memory, changes: Struct) -> None:
    size = changes[L.items.capacity] * changes[L.items.words] * 8
    give_back(memory.control.address, [Array(changes, L.items.data, 0, size)])
    changes[L.items.capacity] = 0
