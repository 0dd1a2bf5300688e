"""The group of a row, and indexes by hash that become dense ones: by instalments, where keys have filled their range.

While rows come, the slabs of some more groups are copied to where the dense index will have them. Until all are there, groups
are found by hash as before, and what changes in a group that has been copied is copied again.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.groups import (
    BULK,
    SPREAD,
    clear_slab,
    copy_slab,
    dense_group,
    first_row,
    fits_dense,
    key_of,
    slab_at,
)
from dlog.engine.kernels.incremental.store.homes import set_homes
from dlog.engine.kernels.incremental.store.keyed import are_full, hash_group, slots_of, to_hash
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control, Index
from dlog.engine.kernels.row_structs import Slab, Slabs
from dlog.engine.kernels.static.pages import may_move
from dlog.engine.kernels.static.storage import lengthen, release, zeroed

GROUPS_COPIED_PER_ROW = 32
"""Groups whose slabs are copied for each row that comes."""
EDGE = 1 << 40
"""Keys beyond are not found directly."""


@kernel
def group_of(ctl: Control, index: Index, row):
    """Group of a row, made if it is new; -1 with ctl.error set."""
    if index.dense == 0 and index.key_count == 1 and not densify(ctl, index, row):
        return -1
    if index.dense == 0:
        return hash_group(ctl, index, row)
    value = 0
    if index.key_count > 0:
        value = key_of(index, 0, row)
    group = value - index.low
    if 0 <= group < index.groups:
        return group
    if fits_dense(index, value):
        return dense_group(ctl, index, value)
    return hash_group(ctl, index, row) if to_hash(ctl, index) else -1


@kernel
def densify(ctl: Control, index: Index, row):
    """Before a row comes to an index by hash of one column: has it become a dense one, or goes on with that, if its keys fill
    their range. False with ctl.error set."""
    if not index.next_dense.slabs:
        # Before there are more slots: keys that came in no order may have filled their range by now.
        if not are_full(index, index.used + 1) or not are_close(index):
            return True
        if not begin_densifying(ctl, index):
            return False
    if not has_place(ctl, index, key_of(index, 0, row)):
        return False
    if ctl.account.small == 0:
        copy_groups(index, index.groups)
    elif may_move(ctl, 1):
        copy_groups(index, GROUPS_COPIED_PER_ROW)
    if index.next_dense.slabs and index.next_dense.copied == index.groups:
        end_densifying(ctl, index)
    return True


@kernel
def are_close(index: Index):
    """Whether all keys are known, and a dense index would have few groups for each."""
    low, high = index.least, index.most
    known = index.slot_homes.edge == 0
    return known and index.used >= BULK and low >= -EDGE and high <= EDGE and high - low < index.used * SPREAD


@kernel
def begin_densifying(ctl: Control, index: Index):
    """Makes room for the slabs of all keys; false with ctl.error set."""
    low, high = index.least, index.most
    if 0 < low <= (high - low) >> 2:
        low = 0  # what comes below the first group moves all others
    elif low != 0:
        low -= (high - low) >> 4
    count = high - low + 1
    slabs = zeroed(ctl, count * Slab.size)
    if slabs == 0:
        return False
    index.next_dense.slabs = Slabs(slabs)
    index.next_dense.low = low
    index.next_dense.groups = count
    index.next_dense.copied = 0
    return True


@kernel
def has_place(ctl: Control, index: Index, value):
    """Sees to it that a key has a place among the slabs that are made, if these are not too many then: else there is to be no
    dense index for now. False with ctl.error set."""
    coming = index.next_dense
    group = value - coming.low
    if 0 <= group < coming.groups:
        return True
    if group < 0 or value > EDGE or group >= (index.used + 1) * SPREAD:
        give_up_densifying(ctl, index)
        return True
    count = group + 1 + (coming.groups >> 4)
    if not lengthen(ctl, coming.ref.slabs, coming.groups * Slab.size, count * Slab.size):
        return False
    coming.groups = count
    return True


@kernel
def give_up_densifying(ctl: Control, index: Index):
    """The index stays one by hash."""
    release(ctl, index.next_dense.slabs.address, index.next_dense.groups * Slab.size)
    index.next_dense.slabs = Slabs(0)
    index.next_dense.groups = 0


@kernel
def copy_groups(index: Index, fuel):
    """Copies the slabs of so many more groups. Their rows are asked for before any, and then where the slabs go."""
    coming = index.next_dense
    if not coming.slabs:
        return
    first = coming.copied
    last = min(first + fuel, index.groups)
    column = index.collection.columns[index.keys[0]]
    for group in range(first, last):
        if slab_at(index, group).count > 0:
            prefetch(column.data + first_row(index, group) * column.width)
    for group in range(first, last):
        slab = slab_at(index, group)
        if slab.count > 0:
            copy_slab(coming.slabs[key_of(index, 0, first_row(index, group)) - coming.low], slab)
    coming.copied = last


@kernel
def copy_again(index: Index, group, row):
    """Notes that the slab of a group has changed; a row of it, which need not be there any more, has its key."""
    coming = index.next_dense
    if coming.slabs and group < coming.copied:
        slab = slab_at(index, group)
        place = coming.slabs[key_of(index, 0, row) - coming.low]
        if slab.count > 0:
            copy_slab(place, slab)
        else:
            clear_slab(place)


@kernel
def end_densifying(ctl: Control, index: Index):
    """All slabs are where a dense index has them: it is one from now on."""
    coming = index.next_dense
    release(ctl, index.slabs.address, index.group_capacity * Slab.size)
    release(ctl, index.slots.address, index.slot_homes.room * 8)
    index.slabs = coming.slabs
    index.slots = Words(0)
    set_homes(slots_of(index), 0, 0)
    index.free_group = 0
    index.groups = coming.groups
    index.group_capacity = coming.groups
    index.low = coming.low
    index.dense = 1
    coming.slabs = Slabs(0)
    coming.groups = 0
