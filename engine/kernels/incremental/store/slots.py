"""Slots: where the rows of a collection are found by their values.

An open table (homes.py) of any size, at most 7/8 full, or a little more while it grows (slot_room.py). A slot is a row number
and, in an array of their own, a tag: seven bits of the row's hash. A search walks along the tags and reads rows only where it
meets its own: for a row that is not there it hardly ever reads any (the idea of Abseil's "Swiss tables"). Rows of more than two
columns keep half of their hash beside: a table that grows moves them without reading each column for it, as many misses.

Not all rows have slots: those of a base (base.py) and those of a direct table (direct.py) are found without.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i64, prefetch, wrapped_product
from dlog.engine.kernels.incremental.store.base import find_base
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.direct import find_direct, set_direct
from dlog.engine.kernels.incremental.store.homes import home_of
from dlog.engine.kernels.incremental.store.implied import cell_at
from dlog.engine.kernels.layout import TAG_DELETED, TAG_FREE, TAG_ROW
from dlog.engine.kernels.machine_structs import Homes, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection
from dlog.engine.kernels.static.storage import MAX_DOUBLED_ITEMS, mix
from dlog.engine.kernels.values.words import HIGH_BITS, ONES, first_byte, zero_bytes

ROWS_AHEAD = 16
"""Rows whose slots are asked for before they are looked at."""
MAX_REHASHED_COLUMNS = 2
"""Columns up to which a row's hash is made anew when its slot moves: 4 bytes a slot for a read or two of memory do not pay."""
ABSENT, UNKNOWN = -1, -2


@kernel
def hash_values(values: Words, arity):
    hashed = 0
    for c in range(arity):
        hashed = mix(hashed, values[c])
    return hashed


@kernel
def hash_row(collection: Collection, row):
    columns = collection.columns
    hashed = 0
    for c in range(collection.arity):
        column = columns[c]
        hashed = mix(hashed, cell_at(column, row))
    return hashed


@kernel
def slots_of(collection: Collection) -> Homes:
    return collection.slot_homes


@kernel
def slot_of(collection: Collection, hashed):
    """The home of a hash."""
    return home_of(slots_of(collection), (hashed >> 32) & 0xFFFFFFFF)


@kernel
def tag_of(hashed):
    return TAG_ROW | (hashed & (TAG_ROW - 1))


@kernel
def next_tag(collection: Collection, wanted, at):
    """The first slot from one on that is free or has a tag. Tags are looked at eight at a time, up to the last ones."""
    tags = collection.tags
    pattern = wrapped_product(wanted, ONES)
    last = collection.slot_homes.room - 8
    while at <= last:
        word = load_i64(tags.address + at, 0)
        found = zero_bytes(word) | zero_bytes(word ^ pattern)
        if found != 0:
            return at + first_byte(found)
        at += 8
    while tags[at] != wanted and tags[at] != TAG_FREE:
        at += 1
    return at


@kernel
def next_free(collection: Collection, at):
    """The first slot from one on that is free."""
    return next_tag(collection, TAG_FREE, at)


@kernel
def enter_slot(collection: Collection, at, hashed, row):
    """Puts a row with this hash into a slot."""
    collection.row_slots[at] = row
    collection.tags[at] = tag_of(hashed)
    if collection.arity > MAX_REHASHED_COLUMNS:
        collection.slot_hashes[at] = hashed >> 32


@kernel
def hash_of_slot(collection: Collection, at):
    """The hash of the wide row in a slot, as far as its home and its tag come from it."""
    return ((collection.slot_hashes[at] & 0xFFFFFFFF) << 32) | (collection.tags[at] & (TAG_ROW - 1))


@kernel
def slots_for(rows):
    """How many slots so many rows get when no more are expected soon."""
    return rows + (rows >> 2) + 64


@kernel
def more_slots(rows):
    """How many slots so many rows get when more come."""
    return max(rows * 2, 64) if rows < MAX_DOUBLED_ITEMS else rows + (rows >> 1)


@kernel
def has_values(collection: Collection, row, values: Words):
    columns = collection.columns
    for c in range(collection.arity):
        column = columns[c]
        if cell_at(column, row) != values[c]:
            return False
    return True


@kernel
def find_values(collection: Collection, values: Words, hashed):
    """The row with these values, or -1."""
    if collection.base.rows != 0:
        row = find_base(collection, values)
        if row >= 0:
            return row if get_bit(collection.alive, row) != 0 else -1
    return find_slotted(collection, values, hashed)


@kernel
def find_slotted(collection: Collection, values: Words, hashed):
    """The row with these values that is not of the base, or -1."""
    if collection.direct.count != 0:
        return find_direct(collection, values[0])
    tags = collection.tags
    if not tags:
        return -1
    wanted = tag_of(hashed)
    at = next_tag(collection, wanted, slot_of(collection, hashed))
    while tags[at] == wanted:
        row = collection.row_slots[at]
        if has_values(collection, row, values):
            return row
        at = next_tag(collection, wanted, at + 1)
    return -1


@kernel
def next_match(collection: Collection, hashed, at):
    """The first slot from one on, of the run that it is in, which may be that of a row with a hash; or, where there is none,
    -1 - the slot where such a row goes, or -1 of a collection without slots."""
    tags = collection.tags
    if not tags:
        return -1
    wanted = tag_of(hashed)
    wide = collection.arity > MAX_REHASHED_COLUMNS
    first = at
    at = next_tag(collection, wanted, at)
    while tags[at] == wanted:
        if not wide or collection.slot_hashes[at] == hashed >> 32:
            return at
        at = next_tag(collection, wanted, at + 1)
    return -1 - first_hole(collection, first, at)


@kernel
def first_hole(collection: Collection, first, last):
    """The first slot from one on that is free or a removed row's. There is one at `last` or before."""
    tags = collection.tags
    at = first
    while at + 8 <= last:
        holes = ~load_i64(tags.address + at, 0) & HIGH_BITS
        if holes != 0:
            return at + first_byte(holes)
        at += 8
    while tags[at] >= TAG_ROW:
        at += 1
    return at


@kernel
def place_row(collection: Collection, hashed, row):
    """Enters a row that the table does not have; the slot of a removed one will do."""
    if collection.unkeyed != 0:
        return
    if collection.direct.count != 0:
        set_direct(collection, only_value(collection, row), row + 1)
        return
    at = slot_of(collection, hashed)
    at = first_hole(collection, at, collection.slot_homes.room)
    if collection.tags[at] == TAG_FREE:
        collection.used_slots += 1
    enter_slot(collection, at, hashed, row)


@kernel
def remove_slot(collection: Collection, row):
    """Takes a row out of the table. Its slot is free again if no search needs to pass it."""
    if collection.unkeyed != 0:
        return
    if collection.direct.count != 0:
        set_direct(collection, only_value(collection, row), 0)
        return
    table = collection.row_slots
    tags = collection.tags
    hashed = hash_row(collection, row)
    at = slot_of(collection, hashed)
    while table[at] != row or tags[at] != tag_of(hashed):
        at += 1
    if tags[at + 1] == TAG_FREE:
        tags[at] = TAG_FREE
        collection.used_slots -= 1
    else:
        tags[at] = TAG_DELETED


@kernel
def warm_row_slot(collection: Collection, row):
    """Asks for where the table has a row, whose values are there, unless it is of the base."""
    if row >= collection.base.rows and collection.unkeyed == 0 and collection.slot_homes.count != 0:
        warm_slot(collection, hash_row(collection, row))


@kernel
def only_value(collection: Collection, row):
    """Value of the one column in a row."""
    column = collection.columns[0]
    return cell_at(column, row)


@kernel
def slotted(collection: Collection):
    """Living rows that are not of the base."""
    return collection.live - collection.base.rows + collection.base.dead


@kernel
def warm_slot(collection: Collection, hashed):
    at = slot_of(collection, hashed)
    prefetch(collection.row_slots.address + at * 4)
    prefetch(collection.tags.address + at)
    if collection.arity > MAX_REHASHED_COLUMNS:
        prefetch(collection.slot_hashes.address + at * 4)


@kernel
def warm_others(collection: Collection, columns: WordColumns, step, first, n, rows: Words, hashes: Words):
    """Hashes the rows first + i of columns (see `search_base`) where rows[i] is -1, and asks for their slots."""
    count = collection.slot_homes.count
    arity = collection.arity
    for i in range(n):
        hashed = 0
        for c in range(arity):
            hashed = mix(hashed, columns[c][(first + i) * step])
        hashes[i] = hashed
        if count != 0 and rows[i] < 0:
            warm_slot(collection, hashed)


@kernel
def search_ahead(collection: Collection, hashes: Words, n, making, places: Words):
    """places[i] = the row that is likely to have hash i, ABSENT if certainly none has, UNKNOWN. Tags are asked for some rows
    ahead, then what they lead to (with `making` also where a new row goes), so that memory answers while the search goes on."""
    count = collection.slot_homes.count
    table = collection.row_slots
    arity = collection.arity
    others = collection.base.rows != 0 or collection.direct.count != 0
    if n == 1 or count == 0 or arity == 0 or others:
        for i in range(n):
            places[i] = UNKNOWN if others or count != 0 else ABSENT
        return
    tags = collection.tags
    for i in range(min(ROWS_AHEAD, n)):
        prefetch(tags.address + slot_of(collection, hashes[i]))
    for i in range(n):
        if i + ROWS_AHEAD < n:
            prefetch(tags.address + slot_of(collection, hashes[i + ROWS_AHEAD]))
        wanted = tag_of(hashes[i])
        at = next_tag(collection, wanted, slot_of(collection, hashes[i]))
        places[i] = at if tags[at] == wanted else ABSENT
        if places[i] >= 0 or making:
            prefetch(table.address + at * 4)
    for i in range(n):
        if places[i] >= 0:
            places[i] = table[places[i]]
