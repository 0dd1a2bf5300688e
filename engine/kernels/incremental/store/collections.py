"""Collections: the rows of a relation that is maintained over rounds.

A row is found by its values (slots.py, base.py, direct.py); row numbers are reused, but those of a base. Columns begin with
4 bytes per value and are widened when a value does not fit. A row that is alive is in every index of its collection. Rows come
as `values`: the address of one word per column.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Error
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.store.base import find_base
from dlog.engine.kernels.incremental.store.bits import clear_bit, put_bit
from dlog.engine.kernels.incremental.store.history_items import open_item
from dlog.engine.kernels.incremental.store.implied import cell_at, resize_tail, write_keys
from dlog.engine.kernels.incremental.store.index_building import trim_index
from dlog.engine.kernels.incremental.store.indexes import index_remove
from dlog.engine.kernels.incremental.store.lists import list_push
from dlog.engine.kernels.incremental.store.roles import (
    clear_derivation,
    clear_grouping,
    derivation_bytes,
    grouping_bytes,
    grow_derivation,
    grow_grouping,
    grow_history,
    grow_words,
)
from dlog.engine.kernels.incremental.store.slot_room import make_slot, trim_slots
from dlog.engine.kernels.incremental.store.slots import find_values, place_row, remove_slot
from dlog.engine.kernels.layout import IMPLIED, NEVER
from dlog.engine.kernels.machine_structs import Column, Numbers, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.row_structs import History
from dlog.engine.kernels.static.storage import ROWS_MAX, grown, release, resize, spare, within_limit, without_limit

# ----------------------------------------------------------------------------------------------------------------- room


@kernel
def room_for_rows(ctl: Control, collection: Collection, extra):
    """Makes room for so many more rows; false with ctl.error set."""
    wanted = collection.rows + max(extra - collection.free_count, 0)
    capacity = collection.capacity
    return wanted <= capacity or reserve_rows(ctl, collection, (max(grown(capacity), wanted, 64) + 63) & ~63)


@kernel
def bytes_per_row(collection: Collection):
    """Bytes that a row takes beside its bits and its slot, rounded up."""
    total = 1
    for c in range(collection.arity):
        total += max(collection.columns[c].width, 4)
    total += 4 if collection.stamps else 0
    total += 4 if collection.inner else 0
    return total + derivation_bytes(collection.derivation) + grouping_bytes(collection.grouping)


@kernel
def reserve_rows(ctl: Control, collection: Collection, new):
    """Makes room for `new` rows, a multiple of 64; false with ctl.error set."""
    old = collection.capacity
    if new > ROWS_MAX:
        ctl.error = Error.ROWS
        return False
    if ctl.account.bytes + (new - old) * bytes_per_row(collection) > ctl.limit:
        ctl.error = Error.MEMORY
        return False
    # All of it or nothing: what a failure leaves behind must be what the capacity says, whatever other workers take meanwhile.
    limit = without_limit(ctl)
    done = resize_rows(ctl, collection, old, new)
    if new > old:
        return within_limit(ctl, limit, done)
    ctl.limit = limit
    return done


@kernel
def resize_rows(ctl: Control, collection: Collection, old, new):
    """`reserve_rows` where there was room for `old` ones."""
    for c in range(collection.arity):
        column = collection.columns[c]
        width = column.width
        if width == IMPLIED:
            if not resize_tail(ctl, collection, old, new):
                return False
            continue
        moved = resize(ctl, column.data, old * width, new * width)
        if moved == 0:
            return False
        column.data = moved
    if not grow_words(ctl, collection.ref.alive, old >> 6, new >> 6):
        return False
    if not grow_words(ctl, collection.ref.stamps, old >> 1, new >> 1):
        return False
    if not grow_derivation(ctl, collection.derivation, old, new) or not grow_grouping(ctl, collection.grouping, old, new):
        return False
    if not grow_history(ctl, collection.outer, old, new):
        return False
    if not grow_history(ctl, collection.inner, old, new):
        return False
    collection.capacity = new
    return True


@kernel
def trim_rows(ctl: Control, collection: Collection):
    """Gives back most of the room that a fresh collection reserved and did not use; false with ctl.error set."""
    rows = collection.rows
    target = max((rows + spare(rows) + 63) & ~63, 64)
    if target + spare(target) < collection.capacity and not reserve_rows(ctl, collection, target):
        return False
    indexes = collection.indexes
    for i in range(collection.index_count):
        if not trim_index(ctl, indexes[i]):
            return False
    return trim_slots(ctl, collection)


@kernel
def make_wide(ctl: Control, collection: Collection, column: Column):
    """`widen`, also of an implied column."""
    return write_keys(ctl, collection) and widen(ctl, collection, column)


@kernel
def widen(ctl: Control, collection: Collection, column: Column):
    """Gives a column of 4-byte values 8 bytes each; false with ctl.error set."""
    capacity = collection.capacity
    wide = Words(resize(ctl, 0, 0, capacity * 8))
    if not wide:
        return False
    narrow = Numbers(column.data)
    for row in range(collection.rows):
        wide[row] = narrow[row]
    release(ctl, narrow.address, capacity * 4)
    column.data = wide.address
    column.width = 8
    return True


@kernel
def put_cell(ctl: Control, collection: Collection, number, row, value):
    column = collection.columns[number]
    if column.width != 8:
        if -2147483648 <= value <= 2147483647:
            if column.width == IMPLIED:
                collection.base.tail[row - collection.base.rows] = value
            else:
                Numbers(column.data)[row] = value
            return True
        if not make_wide(ctl, collection, column):
            return False
    Words(column.data)[row] = value
    return True


@kernel
def cell(collection: Collection, number, row):
    """Value of a column in a row."""
    column = collection.columns[number]
    return cell_at(column, row)


# ----------------------------------------------------------------------------------------------------------------- rows


@kernel
def take_number(ctl: Control, collection: Collection):
    """A free row number; -1 with ctl.error set."""
    free = collection.free_count
    if free > 0:
        collection.free_count = free - 1
        return collection.free[free - 1]
    row = collection.rows
    if row == collection.capacity and not room_for_rows(ctl, collection, 1):
        return -1
    collection.rows = row + 1
    return row


@kernel
def clear_row(collection: Collection, row):
    """Zeroes what the collection notes beside a row's values."""
    if collection.stamps:
        collection.stamps[row] = 0
    clear_derivation(collection.derivation, row)
    clear_grouping(collection.grouping, row)


@kernel
def born_absent(ctl: Control, history: History, row, plain):
    """Notes that a new row is not there before this batch, with `plain` in its iteration alone; false with ctl.error set."""
    if not history:
        return True
    iterations = history.iters
    if iterations:
        iterations[row] = NEVER
    if plain != 0:
        return True
    return open_item(ctl, history, row).address != 0


@kernel
def new_row(ctl: Control, collection: Collection, values: Words, hashed):
    """A row number with these values that is found by them; -1 with ctl.error set."""
    row = take_number(ctl, collection)
    if row < 0 or not make_slot(ctl, collection, values):
        return -1
    for c in range(collection.arity):
        if not put_cell(ctl, collection, c, row, values[c]):
            return -1
    place_row(collection, hashed, row)
    return row


@kernel
def add_values(ctl: Control, collection: Collection, values: Words, hashed):
    """Makes a row with values that no row has; returns its number, -1 with ctl.error set. It is not present at any time yet
    (in a fresh collection: it has always been, as far as other scopes see)."""
    row = find_base(collection, values) if collection.base.rows != 0 else -1
    if row >= 0:
        collection.base.dead -= 1
    else:
        row = new_row(ctl, collection, values, hashed)
        if row < 0:
            return -1
    clear_row(collection, row)
    fresh = collection.fresh
    outer = collection.outer
    if collection.no_readers != 0:
        if fresh == 0:
            put_bit(outer.bits, row)
    elif not born_absent(ctl, outer, row, fresh):
        return -1
    if not born_absent(ctl, collection.inner, row, fresh | collection.read_between_rounds):
        return -1
    # Not before: a living row without a history has always been there, also for what takes a failed batch back.
    put_bit(collection.alive, row)
    collection.live += 1
    new_rows = collection.new_rows
    if new_rows and fresh == 0 and not list_push(ctl, new_rows, row):
        return -1
    return row


@kernel
def find_or_add(ctl: Control, collection: Collection, values: Words, hashed):
    """The row with these values, made if there is none; -1 with ctl.error set."""
    row = find_values(collection, values, hashed)
    if row >= 0:
        return row
    return add_values(ctl, collection, values, hashed)


@kernel
def remove_row(ctl: Control, collection: Collection, row):
    """Frees a row: out of the indexes, the table and the living; false with ctl.error set. Its history is the caller's."""
    indexes = collection.indexes
    for i in range(collection.index_count):
        if not index_remove(ctl, indexes[i], row):
            return False
    return free_row(ctl, collection, row)


@kernel
def free_row(ctl: Control, collection: Collection, row):
    """`remove_row` of one that is in no index any more."""
    clear_bit(collection.alive, row)
    collection.live -= 1
    collection.base.removed += 1
    if row < collection.base.rows:
        collection.base.dead += 1
        return True
    remove_slot(collection, row)
    return free_number(ctl, collection, row)


@kernel
def free_number(ctl: Control, collection: Collection, row):
    """Lets a row number be used again; false with ctl.error set."""
    if not room_to_free(ctl, collection, 1):
        return False
    count = collection.free_count
    collection.free[count] = row
    collection.free_count = count + 1
    return True


@kernel
def room_to_free(ctl: Control, collection: Collection, count):
    """Makes room for so many more row numbers that may be used again; false with ctl.error set."""
    wanted = collection.free_count + count
    capacity = collection.free_capacity
    if wanted > capacity:
        target = max(capacity + (capacity >> 1), wanted, 64)
        moved = resize(ctl, collection.free.address, capacity * 4, target * 4)
        if moved == 0:
            return False
        collection.free = Numbers(moved)
        collection.free_capacity = target
    return True
