"""The arrays that collections and reductions hold in the kernels' memory: where each one is, its bytes, and how many of them
say something.

What is listed here outlives a batch. Logs and buckets do not: they are empty, or of no meaning, when the next one begins.
All of it is given back by kernels/incremental/store/molds.py, which has to know each array, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.store.implied import SAMPLE_BITS as SAMPLED
from dlog.engine.kernels.incremental.store.slots import MAX_REHASHED_COLUMNS
from dlog.engine.kernels.row_structs import CandidatePlace
from dlog.engine.kernels.static import storage
from dlog.engine.runtime.storage.native import Struct

PER_ROW = {
    L.collection.derivation_support: 4,
    L.collection.stamps: 4,
    L.collection.grouping_current: 4,
    L.collection.derivation_counts: 8,
    L.collection.grouping_heads: 8,
}
"""Bytes per row of the arrays beside the columns."""
COLLECTION = (
    L.relation.rows,
    L.relation.capacity,
    L.collection.free_count,
    L.collection.free_capacity,
    L.collection.slot_homes_count,
    L.collection.slot_homes_old,
    L.collection.slot_homes_edge,
    L.collection.slot_homes_room,
    L.collection.live,
    L.collection.used_slots,
    L.collection.grouping_sum_words,
    L.collection.grouping_record_bytes,
    L.collection.base_rows,
    L.collection.base_key,
    L.collection.base_low,
    L.collection.base_keys,
    L.collection.base_dead,
    L.collection.base_removed,
    L.collection.base_refilled,
    L.collection.base_next,
    L.collection.direct_low,
    L.collection.direct_count,
    L.collection.pair_homes_count,
    L.collection.pair_homes_old,
    L.collection.pair_homes_edge,
    L.collection.pair_homes_room,
)
"""The words of a collection that go with its arrays; those of its parts follow."""
HISTORY = (L.history.table_count,)
POOL = (L.items.count, L.items.capacity, L.pool.free)
INDEX = (
    L.index.dense,
    L.index.low,
    L.index.groups,
    L.index.group_capacity,
    L.index.slot_homes_count,
    L.index.slot_homes_old,
    L.index.slot_homes_edge,
    L.index.slot_homes_room,
    L.index.used,
    L.index.free_group,
    L.index.least,
    L.index.most,
    L.index.next_dense_low,
    L.index.next_dense_groups,
    L.index.next_dense_copied,
    L.index.pool_size,
    L.index.pool_capacity,
    L.index.values,
)
REDUCTION = (L.reduction.table_count, L.reduction.table_used)


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


def offset_room(keys: int) -> int:
    """How many offsets there is room for (kernels/incremental/store/base.py)."""
    step = 1 << max(keys.bit_length() - 3, 4)
    return (keys + step) & -step


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
        yield _target(history, L.history.items)
        yield _target(history, L.history.entries)
    if L.collection.derivation_entries in collection.struct.keep:
        yield _target(collection.struct, L.collection.derivation_entries)


def collection_arrays(collection: HasColumns) -> Iterator[Array]:
    """The arrays of a collection, but for its indexes."""
    struct = collection.struct
    rows, capacity = struct[L.relation.rows], struct[L.relation.capacity]
    marked = (rows + 63) // 64 * 8
    columns, widths = collection.widths
    for at in (at for at in widths if columns[at] != L.IMPLIED):
        yield Array(columns, at - L.column.width + L.column.data, rows * columns[at], capacity * columns[at], columns[at] // 4)
    for field, size in PER_ROW.items():
        # Ticks begin anew where stamps do.
        yield Array(struct, field, 0 if field == L.collection.stamps else rows * size, capacity * size, size // 4)
    words = struct[L.collection.grouping_sum_words]
    yield Array(struct, L.collection.grouping_sums, rows * words * 8, capacity * words * 8, words * 2)
    size = struct[L.collection.grouping_record_bytes]
    yield Array(struct, L.collection.grouping_records, rows * size, capacity * size, size // 4)
    yield Array(struct, L.collection.alive, marked, capacity // 8)
    yield Array(struct, L.collection.derivation_touched_bits, 0, capacity // 8)
    yield Array(struct, L.collection.free, struct[L.collection.free_count] * 4, struct[L.collection.free_capacity] * 4)
    room = struct[L.collection.slot_homes_room]
    yield _whole(struct, L.collection.row_slots, room * 4)
    yield _whole(struct, L.collection.tags, room, 0)
    yield _whole(struct, L.collection.slot_hashes, room * 4 if struct[L.relation.arity] > MAX_REHASHED_COLUMNS else 0)
    yield _whole(struct, L.collection.direct_rows, struct[L.collection.direct_count] * 4)
    yield _whole(struct, L.collection.pairs, struct[L.collection.pair_homes_room] * 8, 2)
    base = struct[L.collection.base_rows]
    keys = struct[L.collection.base_keys]
    yield Array(struct, L.collection.base_offsets, (keys + 1) * 4, offset_room(keys) * 4)
    if any(columns[at] == L.IMPLIED for at in widths):
        yield _whole(struct, L.collection.base_samples, sample_bytes(base))
        yield Array(struct, L.collection.base_tail, (rows - base) * 4, (capacity - base) * 4)
    for history in collection.histories:
        yield Array(history, L.history.bits, marked, capacity // 8)
        yield Array(history, L.history.iters, rows * 4, capacity * 4)
        yield _whole(history, L.history.table, history[L.history.table_count] * 4)
    for pool in pools_of(collection):
        words = pool[L.items.words]
        yield Array(pool, L.items.data, pool[L.items.count] * words * 8, pool[L.items.capacity] * words * 8, words * 2)


def index_cells(index: HasStruct) -> Iterator[Cells]:
    """The words that go with an index's arrays."""
    free = _target(index.struct, L.index.free)
    yield index.struct, INDEX
    yield free, tuple(range(len(free.words)))


def index_arrays(index: HasStruct) -> Iterator[Array]:
    struct, group = index.struct, L.slab.size * 4
    yield Array(struct, L.index.slabs, struct[L.index.groups] * group, struct[L.index.group_capacity] * group, L.slab.size)
    yield _whole(struct, L.index.slots, struct[L.index.slot_homes_room] * 8)
    yield _whole(struct, L.index.next_dense_slabs, struct[L.index.next_dense_groups] * group, L.slab.size)
    yield Array(struct, L.index.pool, struct[L.index.pool_size] * 4, struct[L.index.pool_capacity] * 4)


def reduction_cells(reduction: HasStruct) -> Iterator[Cells]:
    """The words that go with a reduction's own array."""
    yield reduction.struct, REDUCTION


def reduction_arrays(reduction: HasStruct) -> Iterator[Array]:
    """The reduction's own array; groups and candidates are collections."""
    size, words = CandidatePlace.size, CandidatePlace.place.size
    yield _whole(reduction.struct, L.reduction.table, reduction.struct[L.reduction.table_count] * size, words)


def _whole(struct: Struct, field: int, size: int, columns: int = 1) -> Array:
    return Array(struct, field, size, size, columns)


def _target(struct: Struct, field: int) -> Struct:
    found = struct.keep[field]
    assert isinstance(found, Struct)
    return found


def give_back(control: int, arrays: Iterable[Array]) -> None:
    """Frees arrays; whoever points there points nowhere."""
    for array in arrays:
        address, array.struct[array.field] = array.struct[array.field], 0
        storage.release(control, address, array.size)
