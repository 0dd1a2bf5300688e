"""A collection's part in a batch of rounds: how it begins, and what is left of the changes when the batch is over."""

from __future__ import annotations

from dlog.engine.kernels.codes import Error
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.loop.changes import with_rows
from dlog.engine.kernels.incremental.loop.leaving import free_gone, is_needed, keep_absent, leave_index, settle_unread
from dlog.engine.kernels.incremental.store.base import drop_base
from dlog.engine.kernels.incremental.store.bits import clear_bit, get_bit
from dlog.engine.kernels.incremental.store.collections import remove_row, trim_rows
from dlog.engine.kernels.incremental.store.direct import drop_direct
from dlog.engine.kernels.incremental.store.histories import drop_entries, forget_items, presence
from dlog.engine.kernels.incremental.store.history_items import close_item, item_of
from dlog.engine.kernels.incremental.store.implied import imply_key, write_keys
from dlog.engine.kernels.incremental.store.lists import list_again, list_empty, list_free, list_push
from dlog.engine.kernels.incremental.store.pairs import drop_pairs
from dlog.engine.kernels.incremental.store.removals import leave_groups
from dlog.engine.kernels.incremental.store.slot_room import empty_slots
from dlog.engine.kernels.layout import ROUND
from dlog.engine.kernels.round_structs import Collection, Control, Reduction
from dlog.engine.kernels.row_structs import Change
from dlog.engine.kernels.static.storage import clear_words

LEAST_SHARED = 8192
"""Rows with a history from which on workers settle them together."""


@kernel
def begin(ctl: Control, collection: Collection, rounds):
    """Begins a batch of so many rounds, with an empty log; a collection without rows is fresh if there is one round."""
    if collection.passing != 0 and collection.live != 0:
        forget_rows(ctl, collection)
    live = with_rows(collection).live
    collection.in_batch = 1
    collection.old = live
    if live == 0 and rounds == 1 and has_keys(ctl, collection):
        # Row numbers begin anew: all rows are those of this batch.
        collection.rows = 0
        collection.free_count = 0
        drop_base(ctl, collection)
        drop_pairs(ctl, collection)
        list_free(ctl, collection.log)
        if collection.reduction:
            number_anew(collection.reduction)
        collection.fresh = 1
        collection.outer.base = ROUND
        inner = collection.inner
        if inner:
            inner.base = ROUND
    collection.packed = 1 if collection.pairs else 0


@kernel
def forget_rows(ctl: Control, collection: Collection):
    """Empties a collection whose rows have passed, between batches; one that paths look rows up in is left, and so is one for
    which memory does not suffice."""
    if collection.index_count != 0 or not has_keys(ctl, collection):
        return
    clear_words(collection.alive, (collection.rows + 63) >> 6)
    collection.rows = 0
    collection.live = 0
    collection.free_count = 0
    drop_base(ctl, collection)
    drop_pairs(ctl, collection)
    drop_direct(ctl, collection)
    empty_slots(ctl, collection)


@kernel
def number_anew(reduction: Reduction):
    """Has groups and candidates of a minimum or maximum begin anew, too, if there are none: all numbers that there have been
    are gone through where the result is fresh (`best_of_all`)."""
    groups = reduction.groups
    candidates = reduction.candidates
    if candidates and not candidates.scope and candidates.live == 0 and groups.live == 0 and groups.base.rows == 0:
        groups.rows = 0
        groups.free_count = 0
        candidates.rows = 0
        candidates.free_count = 0


@kernel
def has_keys(ctl: Control, collection: Collection):
    """Gives a base that is to be forgotten its key column back, if offsets imply it; false where memory does not suffice."""
    if write_keys(ctl, collection):
        return True
    ctl.error = Error.NONE
    return False


@kernel
def rows_before(collection: Collection):
    """How many rows there were before the batch."""
    return collection.old if collection.in_batch != 0 else with_rows(collection).live


@entry()
def forget_changes(ctl: Control, collection: Collection):
    """Empties the log of a batch that is over."""
    list_again(ctl, collection.log)


@entry()
def removal_parts(collection: Collection):
    """In how many parts (`remove_part`) workers may remove the absent rows of a collection: 0 if one has to, or for few."""
    if collection.inner or collection.grouped or collection.packed != 0 or collection.no_readers != 0:
        return 0
    return collection.index_count + 1 if collection.outer.items.count >= LEAST_SHARED else 0


@entry()
def settling_work(collection: Collection):
    """How many changes a collection's batch has to settle, about."""
    return collection.log.count + collection.maybe_dead.count


@entry()
def remove_part(ctl: Control, collection: Collection, part):
    """Takes absent rows out of the table or of an index; false with ctl.error set."""
    return free_gone(ctl, collection) if part == 0 else leave_index(ctl, collection, part - 1)


@entry()
def settle(ctl: Control, collection: Collection):
    """Ends a batch: rounds are forgotten, absent rows removed; false with ctl.error set. The change log stays."""
    return end_batch(ctl, collection, False)


@entry()
def settle_rest(ctl: Control, collection: Collection):
    """`settle` after all its parts."""
    return end_batch(ctl, collection, True)


@kernel
def end_batch(ctl: Control, collection: Collection, are_removed):
    outer = collection.outer
    inner = collection.inner
    maybe_dead = collection.maybe_dead
    new_rows = collection.new_rows
    if collection.grouped or collection.packed != 0:
        done = True
    elif collection.no_readers != 0:
        done = settle_unread(ctl, collection, maybe_dead, 1)
        if not inner:
            # Rows of a recursive scope may be dead whenever a round leaves them without derivations.
            done = done and settle_unread(ctl, collection, collection.log, (Change.size >> 3))
            done = done and settle_unread(ctl, collection, new_rows, 1)
    elif not inner:
        done = settle_all(ctl, collection, are_removed)
    else:
        done = settle_some(ctl, collection)
    indexes = collection.indexes
    for i in range(collection.index_count):
        done = done and leave_groups(ctl, indexes[i])
    if not done:
        return False
    list_again(ctl, maybe_dead)
    list_again(ctl, new_rows)
    reduction = collection.reduction
    if reduction and reduction.missing:
        list_empty(ctl, reduction.missing)
    collection.in_batch = 0
    collection.indexed = 0
    outer.base = 0
    if inner:
        inner.base = 0
        list_empty(ctl, collection.inner_log)
    if collection.fresh != 0:
        collection.fresh = 0
        return trim_rows(ctl, collection) and imply_key(ctl, collection)
    return True


@kernel
def settle_all(ctl: Control, collection: Collection, are_removed):
    """`settle` of a collection without an inner history: no item outlives the batch; false with ctl.error set."""
    if not are_removed:
        for i in range(collection.index_count):
            if not leave_index(ctl, collection, i):
                return False
        if not free_gone(ctl, collection):
            return False
    outer = collection.outer
    for i in range(outer.items.count):
        clear_bit(outer.bits, outer.items.data[i].row)
    forget_items(ctl, outer)
    return True


@kernel
def settle_some(ctl: Control, collection: Collection):
    """`settle` of a collection of a recursive scope, where items may stay; false with ctl.error set."""
    log = collection.log
    outer = collection.outer
    maybe_dead = collection.maybe_dead
    if collection.fresh != 0:
        items = outer.items
        for i in range(items.count):
            if not list_push(ctl, maybe_dead, items.data[i].row):
                return False
    else:
        for i in range(log.count):
            if not settle_row(ctl, collection, log.data[i].row):
                return False
        new_rows = collection.new_rows
        for i in range(new_rows.count):
            if not settle_row(ctl, collection, new_rows.data[i]):
                return False
    for i in range(maybe_dead.count):
        if not settle_row(ctl, collection, maybe_dead.data[i]):
            return False
    return True


@kernel
def settle_row(ctl: Control, collection: Collection, row):
    """What is left of a row after a batch; false with ctl.error set."""
    if get_bit(collection.alive, row) == 0:
        return True
    outer = collection.outer
    if get_bit(outer.bits, row) == 0:
        return True
    here = presence(outer, row, 9223372036854775807) > 0
    drop_entries(outer, item_of(outer, row))
    if here:
        close_item(outer, row)
        return True
    if is_needed(collection, row):
        return keep_absent(ctl, collection, row)
    close_item(outer, row)
    inner = collection.inner
    if inner and get_bit(inner.bits, row) != 0:
        close_item(inner, row)
    return remove_row(ctl, collection, row)
