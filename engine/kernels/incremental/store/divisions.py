"""Rows divided by ranges of a key, as words of key and row: what is then done division by division touches only memory that the
cache holds, and several workers do it side by side. (The partitioned hash join of Shatdal, Kant and Naughton, 1994.)

The room of divided rows has where each division ends, and behind that the words, division by division, in the order of the
rows. Rows that workers divide, each some of them, are in as many rooms.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.static.storage import behind, load_cell

DIVISION_BITS = 8
DIVISIONS = 1 << DIVISION_BITS
MIN_DIVIDED_ROWS = 1 << 15
"""Rows below which the cache holds all that they touch."""
_UNDIVIDED = 62
_LOW = 0xFFFFFFFF


@kernel
def shift_of(keys, rows):
    """By how many bits keys of [0, keys) are shifted to be the number of their division; all of few rows are one."""
    if rows < MIN_DIVIDED_ROWS:
        return _UNDIVIDED
    shift = 0
    while (keys - 1) >> shift >= DIVISIONS:
        shift += 1
    return shift


@kernel
def first_key(division, shift, keys):
    """The first of the keys [0, keys) that is of a division, or how many there are at most."""
    if shift == _UNDIVIDED:
        return keys if division > 0 else 0
    return min(division << shift, keys)


@kernel
def room_of(rows):
    """Words for so many rows that are divided."""
    return DIVISIONS + rows


@kernel
def divide_rows(data, width, alive: Words, items, item_width, start, end, low, shift, room: Words):
    """Divides the rows [start, end), those that are alive, where that is not null, by the cells of a column, which are `low`
    and more. The other half of a row's word is its number or, where `items` is not null, its cell there, which fits 4 bytes."""
    for division in range(DIVISIONS):
        room[division] = 0
    for row in range(start, end):
        if not alive or get_bit(alive, row) != 0:
            room[(load_cell(data, width, row) - low) >> shift] += 1
    begin_words(room)
    words = behind(room, DIVISIONS)
    for row in range(start, end):
        if not alive or get_bit(alive, row) != 0:
            key = load_cell(data, width, row) - low
            at = room[key >> shift]
            room[key >> shift] = at + 1
            item = load_cell(items, item_width, row) if items != 0 else row
            words[at] = (key << 32) | (item & _LOW)


@kernel
def begin_words(room: Words):
    """Has a room that has how many words each division gets have where these begin: as each is written, that moves on."""
    total = 0
    for division in range(DIVISIONS):
        size = room[division]
        room[division] = total
        total += size


@kernel
def first_word(room: Words, division):
    """Where the words of a division begin in their room; they end where the next one's do."""
    return DIVISIONS + (room[division - 1] if division > 0 else 0)


@kernel
def size_of(rooms: Words, count, division):
    """How many rows a division has in so many rooms, of which these are the addresses."""
    rows = 0
    for number in range(count):
        room = Words(rooms[number])
        rows += first_word(room, division + 1) - first_word(room, division)
    return rows


@kernel
def key_of_word(word):
    return word >> 32 & _LOW


@kernel
def item_of_word(word):
    return word << 32 >> 32
