"""Making collections after a mold, and giving back all that they own: programs of many rules have many, of few kinds."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.store.base import offset_room
from dlog.engine.kernels.incremental.store.densifying import give_up_densifying
from dlog.engine.kernels.incremental.store.implied import sample_bytes
from dlog.engine.kernels.incremental.store.lists import list_free, lists_free
from dlog.engine.kernels.layout import IMPLIED
from dlog.engine.kernels.machine_structs import Bytes, Numbers, Words
from dlog.engine.kernels.round_structs import Bucket, Buckets, Collection, Control, GroupLink, GroupLinks, Index, Mold
from dlog.engine.kernels.row_structs import History, Items, Slab, Slabs
from dlog.engine.kernels.static.storage import copy_words, release, zeroed


@entry()
def form(ctl: Control, mold: Mold, whole: Words):
    """Makes the words of a collection and of its parts, and all that they own at first; false with ctl.error set, and nothing
    is left."""
    copy_words(whole, mold.words, mold.word_count)
    for i in range(mold.pointer_count):
        whole[mold.pointers[i]] += whole.address
    for i in range(mold.array_count):
        address = zeroed(ctl, mold.sizes[i])
        if address == 0:
            for other in range(i):
                release(ctl, whole[mold.arrays[other]], mold.sizes[other])
            return False
        whole[mold.arrays[i]] = address
    return True


@kernel
def freed(ctl: Control, address, size):
    """What points to an array that is given back."""
    release(ctl, address, size)
    return 0


@entry()
def free_collection(ctl: Control, collection: Collection):
    """Gives the memory of a collection and of its indexes back; it is unusable afterwards, and has none a second time."""
    free_columns(ctl, collection)
    free_rows(ctl, collection)
    free_derivation(ctl, collection)
    free_grouping(ctl, collection)
    free_history(ctl, collection.outer, collection.capacity)
    free_history(ctl, collection.inner, collection.capacity)
    free_list(ctl, collection.new_rows)
    free_list(ctl, collection.maybe_dead)
    free_list(ctl, collection.log)
    free_list(ctl, collection.inner_log)
    free_list(ctl, collection.fused_log)
    free_list(ctl, collection.touched)
    for i in range(collection.index_count):
        free_index(ctl, collection.indexes[i])
    collection.index_count = 0


@kernel
def free_list(ctl: Control, items: Items):
    """Gives a list's memory back, where there is one."""
    if items:
        list_free(ctl, items)


@kernel
def free_columns(ctl: Control, collection: Collection):
    columns = collection.columns
    capacity = collection.capacity
    for c in range(collection.arity):
        column = columns[c]
        if column.width != IMPLIED:
            column.data = freed(ctl, column.data, capacity * column.width)
            continue
        base = collection.base
        base.samples = Numbers(freed(ctl, base.samples.address, sample_bytes(base.rows)))
        base.tail = Numbers(freed(ctl, base.tail.address, (capacity - base.rows) * 4))


@kernel
def free_rows(ctl: Control, collection: Collection):
    """What says which rows there are, and finds them."""
    collection.alive = Words(freed(ctl, collection.alive.address, collection.capacity >> 3))
    collection.stamps = Numbers(freed(ctl, collection.stamps.address, collection.capacity * 4))
    collection.free = Numbers(freed(ctl, collection.free.address, collection.free_capacity * 4))
    room = collection.slot_homes.room
    collection.row_slots = Numbers(freed(ctl, collection.row_slots.address, room * 4))
    collection.tags = Bytes(freed(ctl, collection.tags.address, room))
    collection.slot_hashes = Numbers(freed(ctl, collection.slot_hashes.address, room * 4))
    collection.direct.rows = Numbers(freed(ctl, collection.direct.rows.address, collection.direct.count * 4))
    collection.pairs = Words(freed(ctl, collection.pairs.address, collection.pair_homes.room * 8))
    base = collection.base
    base.offsets = Numbers(freed(ctl, base.offsets.address, offset_room(base.keys) * 4))


@kernel
def free_derivation(ctl: Control, collection: Collection):
    derivation = collection.derivation
    capacity = collection.capacity
    derivation.counts = Words(freed(ctl, derivation.counts.address, capacity * 8))
    derivation.touched_bits = Words(freed(ctl, derivation.touched_bits.address, capacity >> 3))
    derivation.support = Numbers(freed(ctl, derivation.support.address, capacity * 4))
    free_list(ctl, derivation.derived)
    free_list(ctl, derivation.entries)
    lists_free(ctl, derivation.buckets.address, derivation.bucket_count)
    derivation.buckets = Buckets(freed(ctl, derivation.buckets.address, derivation.bucket_count * Bucket.size))
    derivation.bucket_count = 0


@kernel
def free_grouping(ctl: Control, collection: Collection):
    grouping = collection.grouping
    capacity = collection.capacity
    grouping.heads = GroupLinks(freed(ctl, grouping.heads.address, capacity * GroupLink.size))
    grouping.current = Numbers(freed(ctl, grouping.current.address, capacity * 4))
    grouping.sums = Words(freed(ctl, grouping.sums.address, capacity * grouping.sum_words * 8))
    grouping.records = freed(ctl, grouping.records, capacity * grouping.record_bytes)


@kernel
def free_history(ctl: Control, history: History, capacity):
    """Gives the memory of a history of so many rows back, where there is one."""
    if not history:
        return
    history.bits = Words(freed(ctl, history.bits.address, capacity >> 3))
    history.iters = Numbers(freed(ctl, history.iters.address, capacity * 4))
    history.table = Numbers(freed(ctl, history.table.address, history.table_count * 4))
    list_free(ctl, history.items)
    list_free(ctl, history.entries)


@kernel
def free_index(ctl: Control, index: Index):
    index.slabs = Slabs(freed(ctl, index.slabs.address, index.group_capacity * Slab.size))
    index.slots = Words(freed(ctl, index.slots.address, index.slot_homes.room * 8))
    index.pool = Numbers(freed(ctl, index.pool.address, index.pool_capacity * 4))
    give_up_densifying(ctl, index)
