"""An index of a collection as Python holds it: a struct of the kernels' with the memory it owns."""

from __future__ import annotations

from functools import cache

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.store import index_building
from dlog.engine.kernels.incremental.store.index_building import FREE_SIZES
from dlog.engine.runtime.storage.collection_parts import CollectionParts
from dlog.engine.runtime.storage.memory_map import give_back, index_arrays, index_cells
from dlog.engine.runtime.storage.native import Place, Places, Struct

_LEAVING_ROWS = L.index.size
_FREE = _LEAVING_ROWS + L.log.size
_KEYS = _FREE + FREE_SIZES
"""Where the parts of an index are, in one struct with it."""


@cache
def _places(keys: int) -> Places:
    leaving_rows = Place(_LEAVING_ROWS, L.log.size)
    return {L.index.leaving_rows: leaving_rows, L.index.free: Place(_FREE, FREE_SIZES), L.index.keys: Place(_KEYS, keys)}


class Index:
    """An arrangement of a collection by key columns (kernels/incremental/store/indexes.py)."""

    def __init__(self, collection: CollectionParts, key: tuple[int, ...]) -> None:
        self.collection = collection
        self.key = key
        self.struct = Struct(_KEYS + len(key))
        self.struct.keep_parts(_places(len(key)))
        self.struct.keep[-1] = collection.struct
        words = [0] * (_KEYS + len(key))
        words[L.index.collection], words[L.index.key_count] = collection.address, len(key)
        words[L.index.dense] = int(len(key) <= 1)
        for field, start in ((L.index.leaving_rows, _LEAVING_ROWS), (L.index.free, _FREE), (L.index.keys, _KEYS)):
            words[field] = self.address + 8 * start
        words[_LEAVING_ROWS + L.items.words] = L.change.size
        words[_KEYS:] = key
        self.struct.words[:] = words
        self.proposes = self.is_read = False

    @property
    def address(self) -> int:
        return self.struct.address

    def want_values(self) -> None:
        """Lets the index hold values, not rows, if paths ask it for nothing else; all are lowered."""
        if self.proposes and not self.is_read and self.collection.arity == 2 and len(self.key) == 1:
            self.struct[L.index.allowed_values] = 2 - self.key[0]

    def hold_rows(self) -> None:
        """Has the index hold rows from now on, whatever it was wanted for."""
        self.struct[L.index.allowed_values] = 0
        if not self.struct[L.index.values]:
            return
        made, collection = Index(self.collection, self.key), self.collection
        try:
            made.fill()
            collection.memory.check()
        except BaseException:
            made.free()
            raise
        self.free()
        for (mine, fields), (other, _) in zip(index_cells(self), index_cells(made), strict=True):
            for field in fields:
                mine[field] = other[field]
        for array in index_arrays(made):
            self.struct[array.field] = made.struct[array.field]

    def fill(self) -> None:
        """Adds all living rows of the collection to an empty index."""
        struct, control = self.collection.struct, self.collection.memory.control.address
        index_building.fill_index(control, self.address, struct[L.collection.alive], struct[L.relation.rows])

    def free(self) -> None:
        give_back(self.collection.memory.control.address, index_arrays(self))
