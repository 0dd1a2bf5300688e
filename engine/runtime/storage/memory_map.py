"""The arrays that collections and reductions hold in the kernels' memory: where each one is, its bytes, and how many of them
say something.

What is listed here outlives a batch. Logs and buckets do not: they are empty, or of no meaning, when the next one begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.store.implied import BITS as SAMPLED
from dlog.engine.runtime.storage.native import Struct

PER_ROW = {
    L.CO_SUPPORT: 4,
    L.CO_STAMPS: 4,
    L.CO_CURRENT: 4,
    L.CO_COUNTS: 8,
    L.CO_HEADS: 8,
}
"""Bytes per row of the arrays beside the columns."""
COLLECTION = (
    L.REL_ROWS,
    L.REL_CAPACITY,
    L.CO_FREE_COUNT,
    L.CO_FREE_CAPACITY,
    L.CO_SLOT_COUNT,
    L.CO_SLOT_OLD,
    L.CO_SLOT_EDGE,
    L.CO_SLOT_ROOM,
    L.CO_LIVE,
    L.CO_TAKEN,
    L.CO_SUM_WORDS,
    L.CO_RECORD_BYTES,
    L.CO_BASE_ROWS,
    L.CO_BASE_KEY,
    L.CO_BASE_LOW,
    L.CO_BASE_KEYS,
    L.CO_BASE_DEAD,
    L.CO_DIRECT_LOW,
    L.CO_DIRECT_COUNT,
    L.CO_PAIR_COUNT,
    L.CO_PAIR_OLD,
    L.CO_PAIR_EDGE,
    L.CO_PAIR_ROOM,
)
"""The words of a collection that go with its arrays; those of its parts follow."""
HISTORY = (L.HI_TABLE_COUNT,)
POOL = (L.LIST_COUNT, L.LIST_CAPACITY, L.POOL_FREE)
INDEX = (
    L.IX_DENSE,
    L.IX_LOW,
    L.IX_GROUPS,
    L.IX_GROUP_CAPACITY,
    L.IX_SLOT_COUNT,
    L.IX_SLOT_OLD,
    L.IX_SLOT_EDGE,
    L.IX_SLOT_ROOM,
    L.IX_USED,
    L.IX_FREE_GROUP,
    L.IX_POOL_SIZE,
    L.IX_POOL_CAPACITY,
    L.IX_VALUES,
)
REDUCTION = (L.RD_TABLE_COUNT, L.RD_TABLE_USED)


class Array(NamedTuple):
    """`struct[field]` is the address, 0 where there is none; the first `used` of `size` bytes say something. It is a table of
    so many columns of 4 bytes, row after row; without columns it is bytes."""

    struct: Struct
    field: int
    used: int
    size: int
    columns: int = 1


def sample_bytes(base: int) -> int:
    """The bytes of the keys that are noted where they are implied (kernels/incremental/store/implied.py)."""
    return (((base - 1) >> SAMPLED) + 2) * 4


Cells = tuple[Struct, tuple[int, ...]]
"""Words of a struct."""


class HasStruct(Protocol):
    """An index or a reduction: what its arrays are is read from its struct."""

    @property
    def struct(self) -> Struct: ...


class HasColumns(HasStruct, Protocol):
    """A collection."""

    @property
    def widths(self) -> Cells: ...
    @property
    def histories(self) -> Sequence[Struct]: ...


def collection_cells(collection: HasColumns) -> Iterator[Cells]:
    """The words that go with a collection's arrays, but for its indexes."""
    yield collection.struct, COLLECTION
    yield collection.widths
    for pool in pools_of(collection):
        yield pool, POOL
    for history in collection.histories:
        yield history, HISTORY


def pools_of(collection: HasColumns) -> Iterator[Struct]:
    """The pools whose items outlive a batch."""
    for history in collection.histories:
        yield _target(history, L.HI_ITEMS)
        yield _target(history, L.HI_ENTRIES)
    if L.CO_ENTRIES in collection.struct.keep:
        yield _target(collection.struct, L.CO_ENTRIES)


def collection_arrays(collection: HasColumns) -> Iterator[Array]:
    """The arrays of a collection, but for its indexes."""
    struct = collection.struct
    rows, capacity = struct[L.REL_ROWS], struct[L.REL_CAPACITY]
    marked = (rows + 63) // 64 * 8
    columns, widths = collection.widths
    for at in (at for at in widths if columns[at] != L.IMPLIED):
        yield Array(columns, at - L.COL_WIDTH + L.COL_DATA, rows * columns[at], capacity * columns[at], columns[at] // 4)
    for field, size in PER_ROW.items():
        # Ticks begin anew where stamps do.
        yield Array(struct, field, 0 if field == L.CO_STAMPS else rows * size, capacity * size, size // 4)
    words = struct[L.CO_SUM_WORDS]
    yield Array(struct, L.CO_SUMS, rows * words * 8, capacity * words * 8, words * 2)
    size = struct[L.CO_RECORD_BYTES]
    yield Array(struct, L.CO_RECORDS, rows * size, capacity * size, size // 4)
    yield Array(struct, L.CO_ALIVE, marked, capacity // 8)
    yield Array(struct, L.CO_FREE, struct[L.CO_FREE_COUNT] * 4, struct[L.CO_FREE_CAPACITY] * 4)
    yield _whole(struct, L.CO_SLOTS, struct[L.CO_SLOT_ROOM] * 4)
    yield _whole(struct, L.CO_TAGS, struct[L.CO_SLOT_ROOM], 0)
    yield _whole(struct, L.CO_DIRECT, struct[L.CO_DIRECT_COUNT] * 4)
    yield _whole(struct, L.CO_PAIRS, struct[L.CO_PAIR_ROOM] * 8, 2)
    base = struct[L.CO_BASE_ROWS]
    yield _whole(struct, L.CO_BASE_OFFSETS, (struct[L.CO_BASE_KEYS] + 1) * 4)
    if any(columns[at] == L.IMPLIED for at in widths):
        yield _whole(struct, L.CO_KEY_SAMPLES, sample_bytes(base))
        yield Array(struct, L.CO_KEY_TAIL, (rows - base) * 4, (capacity - base) * 4)
    for history in collection.histories:
        yield Array(history, L.HI_BITS, marked, capacity // 8)
        yield Array(history, L.HI_ITERS, rows * 4, capacity * 4)
        yield _whole(history, L.HI_TABLE, history[L.HI_TABLE_COUNT] * 4)
    for pool in pools_of(collection):
        words = pool[L.LIST_WORDS]
        yield Array(pool, L.LIST_DATA, pool[L.LIST_COUNT] * words * 8, pool[L.LIST_CAPACITY] * words * 8, words * 2)


def index_cells(index: HasStruct) -> Iterator[Cells]:
    """The words that go with an index's arrays."""
    free = _target(index.struct, L.IX_FREE)
    yield index.struct, INDEX
    yield free, tuple(range(len(free.words)))


def index_arrays(index: HasStruct) -> Iterator[Array]:
    struct, group = index.struct, L.IXS_SIZE * 4
    yield Array(struct, L.IX_SLABS, struct[L.IX_GROUPS] * group, struct[L.IX_GROUP_CAPACITY] * group, L.IXS_SIZE)
    yield _whole(struct, L.IX_SLOTS, struct[L.IX_SLOT_ROOM] * 4)
    yield Array(struct, L.IX_POOL, struct[L.IX_POOL_SIZE] * 4, struct[L.IX_POOL_CAPACITY] * 4)


def reduction_cells(reduction: HasStruct) -> Iterator[Cells]:
    """The words that go with a reduction's own array."""
    yield reduction.struct, REDUCTION


def reduction_arrays(reduction: HasStruct) -> Iterator[Array]:
    """The reduction's own array; groups and candidates are collections."""
    yield _whole(reduction.struct, L.RD_TABLE, reduction.struct[L.RD_TABLE_COUNT] * L.PLACE_BYTES, L.PLACE_BYTES // 4)


def _whole(struct: Struct, field: int, size: int, columns: int = 1) -> Array:
    return Array(struct, field, size, size, columns)


def _target(struct: Struct, field: int) -> Struct:
    found = struct.keep[field]
    assert isinstance(found, Struct)
    return found
