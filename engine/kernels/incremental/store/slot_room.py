"""Room for slots (slots.py): tables that grow, by instalments or at once, and give way to direct ones."""

from __future__ import annotations

from dlog.engine.kernels.codes import Error
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.direct import (
    are_close,
    drop_direct,
    extend_direct,
    has_place,
    move_direct,
    set_direct,
    trim_direct,
)
from dlog.engine.kernels.incremental.store.homes import (
    MAX_HOMES_GROWN_AT_ONCE,
    begin_growing,
    first_to_move,
    homes_from,
    last_to_move,
    missing_room,
    move_edge,
    room_for,
    set_homes,
    still_fits,
)
from dlog.engine.kernels.incremental.store.slots import (
    MAX_REHASHED_COLUMNS,
    ROWS_AHEAD,
    enter_slot,
    hash_of_slot,
    hash_row,
    more_slots,
    next_free,
    only_value,
    slot_of,
    slots_for,
    slots_of,
    slotted,
    warm_slot,
)
from dlog.engine.kernels.layout import TAG_DELETED, TAG_FREE, TAG_ROW
from dlog.engine.kernels.machine_structs import Bytes, Numbers, Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.static.pages import may_move
from dlog.engine.kernels.static.storage import lengthen, release, resize, zeroed

SLOTS_MOVED_PER_ROW = 32
"""Slots of which the rows move, in a table that grows, for each that comes."""
ROWS_PER_MOVE = 8
"""Rows that come before some move, so that memory answers for many at once."""
MOST_GROWTH = 8
"""Times that a fresh table grows at once, at most."""
MOST_CHANGES_LEFT = 64
"""Times the changes that a path has gone through that may be left for these to say what comes."""
DIRECT_ROWS = 1024
"""Rows from which values in slots are looked at whether they have become close."""
MOST_CLEARED, MIN_CLEARED = 8, 1024
"""Slots that are cleared where others would be made anew: so many for each row that they had, and these."""


@kernel
def make_slot(ctl: Control, collection: Collection, values: Words):
    """Sees to it that one more row, with these values, can be placed; false with ctl.error set."""
    if collection.unkeyed != 0:
        return True
    if collection.arity == 1:
        if collection.slot_homes.count == 0:
            return make_place(ctl, collection, values[0])
        if slotted(collection) >= DIRECT_ROWS and too_few_slots(collection, 1):
            # Values that came in no order may have filled their range by now.
            found = to_direct(ctl, collection)
            if found != 0:
                return found > 0 and make_place(ctl, collection, values[0])
    return make_slots_for(ctl, collection, 1)


@kernel
def too_few_slots(collection: Collection, extra):
    """Whether a table is too full for so many more rows: an eighth of all slots stays free; while they move, half as many."""
    return (collection.used_slots + extra) * 16 > collection.slot_homes.count * (15 if is_growing(collection) else 14)


@kernel
def is_growing(collection: Collection):
    return collection.slot_homes.edge != 0


@kernel
def make_slots_for(ctl: Control, collection: Collection, extra):
    """Sees to it that so many more rows can be placed in slots; false with ctl.error set."""
    if too_few_slots(collection, extra):
        if not more_homes(ctl, collection, slots_wanted(collection, slotted(collection) + extra - 1)):
            return False
    elif is_growing(collection):
        moves = (collection.used_slots % ROWS_PER_MOVE + extra) // ROWS_PER_MOVE
        if moves > 0 and may_move(ctl, moves * ROWS_PER_MOVE):
            for _ in range(moves):
                if is_growing(collection) and not move_slots(ctl, collection, ROWS_PER_MOVE * SLOTS_MOVED_PER_ROW):
                    return False
    homes = slots_of(collection)
    while not still_fits(homes, collection.tags.address, 1, extra):
        if not move_slots(ctl, collection, ROWS_PER_MOVE * SLOTS_MOVED_PER_ROW):
            return False
    return keep_last_free(ctl, collection, extra)


@kernel
def slots_wanted(collection: Collection, rows):
    """How many slots a table that is full gets for so many rows: some more where it is full of rows that have gone, or it would
    soon be again. Twice as many would be a third of what large relations of two columns take."""
    gone = collection.used_slots - slotted(collection)
    return more_slots(rows) + (rows >> 3 if gone > rows >> 3 else 0)


@kernel
def more_homes(ctl: Control, collection: Collection, count):
    """Has a table that is full grow to so many homes or, where those are not more, get rid of removed rows; false with
    ctl.error set."""
    if collection.fresh != 0:
        # At once takes less: rows are read in their order.
        if resize_slots(ctl, collection, max(count, slots_for(rows_hoped_for(ctl, collection, 0)))):
            return True
        # Where there is no memory for two tables, one grows where it is.
        ctl.error = Error.NONE
    while collection.slot_homes.edge != 0:
        if not move_slots(ctl, collection, MAX_HOMES_GROWN_AT_ONCE):
            return False
    old = collection.slot_homes.count
    if old < MAX_HOMES_GROWN_AT_ONCE or count * 2 < old:
        return resize_slots(ctl, collection, count)
    homes = slots_of(collection)
    count = homes_from(homes, collection.tags.address, 1, max(count, old))
    room = max(room_for(count), collection.slot_homes.room)
    if not lengthen_slots(ctl, collection, room):
        return False
    begin_growing(homes, count, room)
    return True


@kernel
def rows_hoped_for(ctl: Control, collection: Collection, coming):
    """How many rows a fresh collection will have, about, besides those of so many derivations that are coming: as a sample of
    the changes says of the path that runs, or where those that are left lead to as many as those before. 0 where these are too
    few to tell."""
    if ctl.running == 0 or ctl.run_path.target.address != collection.address:
        return 0
    seed = ctl.levels[0]
    done = seed.at - ctl.first
    rows = slotted(collection)
    if done <= 0 or done < (seed.end - seed.at) // MOST_CHANGES_LEFT:
        return 0
    made = rows - ctl.rows_before
    share = ctl.share
    if share and share.sampled != 0:
        more = rows_sampled(share, seed.end - ctl.first, done, made, coming)
    else:
        more = made * (seed.end - seed.at) // done
    return min(rows + more, rows * MOST_GROWTH)


@kernel
def rows_sampled(share: Share, changes, done, made, coming):
    """How many rows all changes of a path lead to, about, as a sample says, besides those `made` by some that are done, and
    those of derivations that are coming."""
    noted = share.noted
    entered = share.entered
    if noted == 0:
        noted = max(done * share.derived // share.sampled, made, 1)
        entered = made
    left = changes * share.derived // share.sampled - noted - coming
    return max(left, 0) * entered // noted


@kernel
def lengthen_slots(ctl: Control, collection: Collection, room):
    """Gives the table so many places; false with ctl.error set and all as it was."""
    old = collection.slot_homes.room
    table = resize(ctl, collection.row_slots.address, old * 4, room * 4)
    if table == 0:
        return False
    collection.row_slots = Numbers(table)
    if not lengthen(ctl, collection.ref.tags, old, room):
        collection.row_slots = Numbers(resize(ctl, table, room * 4, old * 4))
        return False
    if collection.arity > MAX_REHASHED_COLUMNS:
        hashes = resize(ctl, collection.slot_hashes.address, old * 4, room * 4)
        if hashes == 0:
            collection.row_slots = Numbers(resize(ctl, table, room * 4, old * 4))
            collection.tags = Bytes(resize(ctl, collection.tags.address, room, old))
            return False
        collection.slot_hashes = Numbers(hashes)
    collection.slot_homes.room = room
    return True


@kernel
def keep_last_free(ctl: Control, collection: Collection, extra):
    """Keeps the last slot free when so many rows come; false with ctl.error set."""
    missing = missing_room(slots_of(collection), collection.tags.address, 1, extra)
    return missing == 0 or lengthen_slots(ctl, collection, collection.slot_homes.room + missing)


@kernel
def move_slots(ctl: Control, collection: Collection, fuel):
    """Moves the rows in so many slots of a table that grows to their new homes; false with ctl.error set and nothing moved."""
    homes = slots_of(collection)
    tags = collection.tags
    first = first_to_move(homes, tags.address, 1, fuel)
    last = last_to_move(homes, tags.address, 1)
    size = max(last - first, 1) * 16
    rows = Words(zeroed(ctl, size))
    if not rows:
        return False
    if not keep_last_free(ctl, collection, last - first):
        release(ctl, rows.address, size)
        return False
    hashes = Words(rows.address + (last - first) * 8)
    n = take_out(collection, first, last, rows, hashes)
    move_edge(homes, first)
    put_back(collection, rows, n, hashes)
    release(ctl, rows.address, size)
    return True


@kernel
def take_out(collection: Collection, first, last, rows: Words, hashes: Words):
    """Frees slots [first, last), those of removed rows included, and lists their rows: wide ones with their hashes, narrow ones
    are asked for. Returns how many."""
    table = collection.row_slots
    tags = collection.tags
    wide = collection.arity > MAX_REHASHED_COLUMNS
    column = collection.columns[0]
    second = column if collection.arity < 2 else collection.columns[1]
    n = 0
    gone = 0
    for at in range(first, last):
        tag = tags[at]
        gone += 1 if tag == TAG_DELETED else 0
        if tag >= TAG_ROW:
            row = table[at]
            rows[n] = row
            if wide:
                hashes[n] = hash_of_slot(collection, at)
            else:
                prefetch(column.data + row * column.width)
                prefetch(second.data + row * second.width)
            n += 1
        tags[at] = TAG_FREE
    collection.used_slots -= gone
    return n


@kernel
def put_back(collection: Collection, rows: Words, n, hashes: Words):
    """Gives rows slots anew; the hashes of narrow ones are not there yet."""
    if collection.arity <= MAX_REHASHED_COLUMNS:
        for i in range(n):
            hashes[i] = hash_row(collection, rows[i])
    for i in range(n):
        warm_slot(collection, hashes[i])
    for i in range(n):
        put_row(collection, hashes[i], rows[i])


@kernel
def make_place(ctl: Control, collection: Collection, value):
    """Gives a value a place in the direct table or, where it is too far away, all rows slots; false with ctl.error set."""
    if has_place(collection, value):
        return True
    extended = extend_direct(ctl, collection, value)
    return extended > 0 or (extended == 0 and resize_slots(ctl, collection, more_slots(slotted(collection))))


@kernel
def to_direct(ctl: Control, collection: Collection):
    """Puts rows that are in slots into a direct table if their values lie close together. Returns 1, 0 if they do not, -1 with
    ctl.error set."""
    alive = collection.alive
    rows = collection.rows
    wanted = slotted(collection)
    low = 1 << 62
    high = -(1 << 62)
    for row in range(collection.base.rows, rows):
        if get_bit(alive, row) != 0:
            value = only_value(collection, row)
            low = min(low, value)
            high = max(high, value)
            if not are_close(low, high, wanted):
                return 0
    if not move_direct(ctl, collection, low, high - low + 1):
        return -1
    drop_slots(ctl, collection)
    for row in range(collection.base.rows, rows):
        if get_bit(alive, row) != 0:
            set_direct(collection, only_value(collection, row), row + 1)
    return 1


@kernel
def meet_expectation(ctl: Control, collection: Collection):
    """Ends what `expected` says: slots for rows that are fewer than their direct table is for. False with ctl.error set."""
    collection.derivation.expected = 0
    if collection.direct.count == 0:
        return True
    if not trim_direct(ctl, collection):
        return False
    low = collection.direct.low
    count = collection.direct.count
    if are_close(low, low + count - 1, collection.live + 1):
        return True
    return resize_slots(ctl, collection, more_slots(slotted(collection)))


@kernel
def forget_slots(collection: Collection):
    collection.row_slots = Numbers(0)
    collection.tags = Bytes(0)
    collection.slot_hashes = Numbers(0)
    collection.used_slots = 0
    set_homes(slots_of(collection), 0, 0)


@kernel
def drop_slots(ctl: Control, collection: Collection):
    room = collection.slot_homes.room
    release(ctl, collection.row_slots.address, room * 4)
    release(ctl, collection.tags.address, room)
    release(ctl, collection.slot_hashes.address, room * 4)
    forget_slots(collection)


@kernel
def empty_slots(ctl: Control, collection: Collection):
    """Frees all slots. A table that was mostly empty is given back: clearing it takes as long as it is large."""
    room = collection.slot_homes.room
    if is_growing(collection) or collection.used_slots * MOST_CLEARED + MIN_CLEARED < room:
        drop_slots(ctl, collection)
    else:
        clear_bytes(collection.tags, room)
        collection.used_slots = 0


@kernel
def clear_bytes(bytes: Bytes, count):
    words = Words(bytes.address)
    for i in range(count >> 3):
        words[i] = 0
    for i in range(count & ~7, count):
        bytes[i] = 0


@kernel
def trim_slots(ctl: Control, collection: Collection):
    """Gives back slots where there are more than twice as many as rows need that do not grow; false with ctl.error set."""
    if collection.direct.count != 0:
        return trim_direct(ctl, collection)
    live = slotted(collection)
    if collection.unkeyed != 0 or collection.slot_homes.count <= 2 * slots_for(live):
        return True
    return resize_slots(ctl, collection, slots_for(live))


@kernel
def resize_slots(ctl: Control, collection: Collection, count):
    """Places all rows but those of the base in a table with so many homes; false with ctl.error set and all as it was."""
    return renew_slots(ctl, collection, count, True)


@kernel
def begin_slots(ctl: Control, collection: Collection, count):
    """Gives a collection that does not grow a table with so many homes in the place of its own, in which no row is placed yet;
    false with ctl.error set and all as it was."""
    return renew_slots(ctl, collection, count, False)


@kernel
def renew_slots(ctl: Control, collection: Collection, count, placing):
    """Gives a collection a table with so many homes in the place of its own, with its rows or without; false with ctl.error
    set and all as it was."""
    homes = slots_of(collection)
    table, tags, hashes = collection.row_slots, collection.tags, collection.slot_hashes
    old, edge = homes.old, homes.edge
    before, room, taken = homes.count, homes.room, collection.used_slots
    forget_slots(collection)
    done = fill_slots(ctl, collection, count) if placing else make_slots(ctl, collection, count)
    if not done:
        drop_slots(ctl, collection)
        collection.row_slots = table
        collection.tags = tags
        collection.slot_hashes = hashes
        collection.used_slots = taken
        set_homes(homes, before, room)
        homes.old = old
        homes.edge = edge
        return False
    drop_direct(ctl, collection)
    release(ctl, table.address, room * 4)
    release(ctl, tags.address, room)
    release(ctl, hashes.address, room * 4)
    return True


@kernel
def fill_slots(ctl: Control, collection: Collection, count):
    """`resize_slots` of a collection that has none."""
    return make_slots(ctl, collection, count) and place_rows(ctl, collection)


@kernel
def make_slots(ctl: Control, collection: Collection, count):
    """Gives a collection without slots so many homes; false with ctl.error set."""
    if not lengthen_slots(ctl, collection, room_for(count)):
        return False
    set_homes(slots_of(collection), count, collection.slot_homes.room)
    return True


@kernel
def place_rows(ctl: Control, collection: Collection):
    """Places all rows but those of the base in a table that has none; false with ctl.error set."""
    alive = collection.alive
    rows = collection.rows
    for row in range(collection.base.rows, rows):
        if row + ROWS_AHEAD < rows:
            warm_slot(collection, hash_row(collection, row + ROWS_AHEAD))
        if get_bit(alive, row) != 0:
            if not keep_last_free(ctl, collection, 1):
                return False
            put_row(collection, hash_row(collection, row), row)
            collection.used_slots += 1
    return True


@kernel
def put_row(collection: Collection, hashed, row):
    """Enters a row into the first free slot."""
    enter_slot(collection, next_free(collection, slot_of(collection, hashed)), hashed, row)
