"""Pairs: the rows of an input of two columns in which nobody looks rows up, as words of one hash table.

There are no row numbers, hence no columns, slots, histories and bits: a row is the word of its two values, and so it is in the
log of changes (CO_PACKED). A change touches one place of memory in the place of six. Values of more than 32 bits, or an index,
make ordinary rows of them.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.incremental.store.homes import (
    FEW,
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
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.layout import (
    BLOCK,
    CHANGE_DIFF,
    CHANGE_ROW,
    CHANGE_SIZE,
    CHANGE_TIME,
    CHANGE_VALUE,
    CO_FRESH,
    CO_LIVE,
    CO_LOG,
    CO_PACKED,
    CO_PAIR_COUNT,
    CO_PAIR_EDGE,
    CO_PAIR_OLD,
    CO_PAIR_ROOM,
    CO_PAIRS,
    CTL_SCRATCH,
    HM_COUNT,
    HM_ROOM,
    LIST_COUNT,
    LIST_DATA,
    ROUND,
)
from dlog.engine.kernels.static.storage import lengthen, mix, release, zeroed

FEWEST = 64
"""Homes of the smallest table."""
SMALL = 1 << 18
"""Pairs up to which a table has three homes for each: it stays in the cache, and runs of taken places are short."""
RATE = 16
"""Places of which the pairs move, in a table that grows, for each that comes."""
STEP = BLOCK // 2
"""Changes that are looked at together: as many fit the scratch blocks that are free."""
_SIGN = -2147483648
_LOW = 0xFFFFFFFF


@kernel
def pack(first, second):
    """The word of a row: the sign of its second value is turned, so that no row is 0, which says that a place is free."""
    return ((second ^ _SIGN) << 32) | (first & _LOW)


@kernel
def first_of(word):
    return word << 32 >> 32


@kernel
def second_of(word):
    return (word >> 32) ^ _SIGN


@kernel
def hash_of(word):
    return (mix(0, word) >> 32) & _LOW


@kernel
def place_of(word, count, old, edge):
    """`home_of` a row by the homes' words, which a loop has at hand."""
    hashed = hash_of(word)
    return (hashed * (count if hashed >= edge else old)) >> 32


@kernel
def can_be_pairs(columns, step, count):
    """Whether the values of two columns (see `apply_columns`) have words."""
    first = load_i64(columns, 0)
    second = load_i64(columns, 1)
    wide = 0
    for i in range(count):
        value = load_i64(first, i * step)
        other = load_i64(second, i * step)
        wide |= 1 if value != value << 32 >> 32 or other != other << 32 >> 32 or other == _SIGN else 0
    return wide == 0


# ----------------------------------------------------------------------------------------------------------------- table


@kernel
def homes_of(collection):
    return collection + CO_PAIR_COUNT * 8


@kernel
def resize_pairs(ctl, collection, count):
    """Puts all pairs into a table with so many homes; false with CTL_ERROR set and all as it was."""
    homes = homes_of(collection)
    old = load_i64(collection, CO_PAIRS)
    before = load_i64(homes, HM_COUNT)
    places = load_i64(homes, HM_ROOM)
    table = zeroed(ctl, room_for(count) * 8)
    if table == 0:
        return False
    store_i64(collection, CO_PAIRS, table)
    set_homes(homes, count, room_for(count))
    for first in range(0, places, FEW):
        last = min(first + FEW, places)
        if not keep_last_free(ctl, collection, last - first):
            drop_pairs(ctl, collection)
            store_i64(collection, CO_PAIRS, old)
            set_homes(homes, before, places)
            return False
        table = load_i64(collection, CO_PAIRS)
        for at in range(first, last):
            word = load_i64(old, at)
            if word != 0:
                put_pair(table, word, (hash_of(word) * count) >> 32)
    release(ctl, old, places * 8)
    return True


@kernel
def room_for_pairs(ctl, collection, extra):
    """Makes room for so many more pairs: a quarter of all homes stays free, or less while the table grows. False with CTL_ERROR
    set."""
    if extra == 0:
        return True
    wanted = load_i64(collection, CO_LIVE) + extra
    count = load_i64(collection, CO_PAIR_COUNT)
    if wanted * 4 > count * 3:
        more = max(wanted * 3 if wanted < SMALL else wanted + (wanted >> 1), FEWEST)
        while load_i64(collection, CO_PAIR_EDGE) != 0:
            if not move_pairs(ctl, collection, FEW):
                return False
        if count < FEW or extra > count >> 4:
            if not resize_pairs(ctl, collection, more):
                return False
        elif not grow_pairs(ctl, collection, more):
            return False
    if not move_pairs(ctl, collection, extra * RATE):
        return False
    homes = homes_of(collection)
    while not still_fits(homes, load_i64(collection, CO_PAIRS), 8, extra):
        if not move_pairs(ctl, collection, RATE):
            return False
    return keep_last_free(ctl, collection, extra)


@kernel
def grow_pairs(ctl, collection, count):
    """Has a table grow to so many homes; false with CTL_ERROR set."""
    homes = homes_of(collection)
    count = homes_from(homes, load_i64(collection, CO_PAIRS), 8, count)
    places = load_i64(collection, CO_PAIR_ROOM)
    room = max(room_for(count), places)
    if not lengthen(ctl, collection, CO_PAIRS, places * 8, room * 8):
        return False
    begin_growing(homes, count, room)
    return True


@kernel
def keep_last_free(ctl, collection, extra):
    """Keeps the last place free when so many pairs come; false with CTL_ERROR set."""
    missing = missing_room(homes_of(collection), load_i64(collection, CO_PAIRS), 8, extra)
    if missing == 0:
        return True
    places = load_i64(collection, CO_PAIR_ROOM)
    if not lengthen(ctl, collection, CO_PAIRS, places * 8, (places + missing) * 8):
        return False
    store_i64(collection, CO_PAIR_ROOM, places + missing)
    return True


@kernel
def move_pairs(ctl, collection, fuel):
    """Moves the pairs of so many places of a table, if it grows, to their new homes; false with CTL_ERROR set and nothing
    moved."""
    homes = homes_of(collection)
    if load_i64(collection, CO_PAIR_EDGE) == 0:
        return True
    table = load_i64(collection, CO_PAIRS)
    first = first_to_move(homes, table, 8, fuel)
    last = last_to_move(homes, table, 8)
    size = max(last - first, 1) * 8
    words = zeroed(ctl, size)
    if words == 0:
        return False
    if not keep_last_free(ctl, collection, last - first):
        release(ctl, words, size)
        return False
    table = load_i64(collection, CO_PAIRS)
    n = 0
    for at in range(first, last):
        word = load_i64(table, at)
        store_i64(words, n, word)
        n += 1 if word != 0 else 0
        store_i64(table, at, 0)
    move_edge(homes, first)
    count = load_i64(collection, CO_PAIR_COUNT)
    for i in range(n):
        put_pair(table, load_i64(words, i), (hash_of(load_i64(words, i)) * count) >> 32)
    release(ctl, words, size)
    return True


@entry()
def drop_pairs(ctl, collection):
    release(ctl, load_i64(collection, CO_PAIRS), load_i64(collection, CO_PAIR_ROOM) * 8)
    store_i64(collection, CO_PAIRS, 0)
    set_homes(homes_of(collection), 0, 0)


@kernel
def put_pair(table, word, home):
    """Enters a pair if it is not there; returns whether it was not."""
    at = home
    found = load_i64(table, at)
    while found != 0:
        if found == word:
            return False
        at += 1
        found = load_i64(table, at)
    store_i64(table, at, word)
    return True


@kernel
def take_pair(table, count, old, edge, word, home):
    """Removes a pair if it is there; returns whether it was. Later ones of its run move up."""
    hole = home
    found = load_i64(table, hole)
    while found != word:
        if found == 0:
            return False
        hole += 1
        found = load_i64(table, hole)
    at = hole
    while True:
        at += 1
        word = load_i64(table, at)
        if word == 0:
            break
        if place_of(word, count, old, edge) <= hole:
            store_i64(table, hole, word)
            hole = at
    store_i64(table, hole, 0)
    return True


# --------------------------------------------------------------------------------------------------------------- changes


@kernel
def apply_pairs(ctl, collection, columns, step, start, count):
    """`apply_columns` (inputs.py) of pairs; false with CTL_ERROR set."""
    fresh = load_i64(collection, CO_FRESH) != 0
    for first in range(0, count, STEP):
        size = min(STEP, count - first)
        if not room_for_pairs(ctl, collection, size):
            return False
        if not fresh and not list_room(ctl, load_i64(collection, CO_LOG), size):
            return False
        apply_block(ctl, collection, columns, step, start, first, size)
    store_i64(collection, CO_PACKED, 1)
    log_fresh_pairs(collection)
    return True


@kernel
def pack_block(ctl, collection, columns, step, first, n):
    """Writes the words of rows [first, first + n) of columns and their homes to scratch blocks 0 and 1, and asks for those."""
    words = load_i64(ctl, CTL_SCRATCH)
    homes = words + BLOCK * 8
    table = load_i64(collection, CO_PAIRS)
    count = load_i64(collection, CO_PAIR_COUNT)
    old = load_i64(collection, CO_PAIR_OLD)
    edge = load_i64(collection, CO_PAIR_EDGE)
    left = load_i64(columns, 0) + first * step * 8
    right = load_i64(columns, 1) + first * step * 8
    for i in range(n):
        store_i64(words, i, pack(load_i64(left, i * step), load_i64(right, i * step)))
    if edge == 0:
        for i in range(n):
            store_i64(homes, i, (hash_of(load_i64(words, i)) * count) >> 32)
    else:
        for i in range(n):
            store_i64(homes, i, place_of(load_i64(words, i), count, old, edge))
    for i in range(n):
        prefetch(table + load_i64(homes, i) * 8)


@kernel
def apply_block(ctl, collection, columns, step, start, first, n):
    """Changes [first, first + n) of `apply_pairs`: there is room in the table and in the log."""
    pack_block(ctl, collection, columns, step, first, n)
    words = load_i64(ctl, CTL_SCRATCH)
    homes = words + BLOCK * 8
    table = load_i64(collection, CO_PAIRS)
    count = load_i64(collection, CO_PAIR_COUNT)
    old = load_i64(collection, CO_PAIR_OLD)
    edge = load_i64(collection, CO_PAIR_EDGE)
    diffs = load_i64(columns, 2) + first * step * 8
    rounds = load_i64(columns, 3) + first * step * 8
    log = load_i64(collection, CO_LOG)
    logged = load_i64(log, LIST_COUNT)
    # A fresh collection has no log (`log_fresh_pairs`): what would be there goes where it is forgotten.
    fresh = load_i64(collection, CO_FRESH) != 0
    change = homes + BLOCK * 8 if fresh else load_i64(log, LIST_DATA) + logged * (CHANGE_SIZE * 8)
    live = load_i64(collection, CO_LIVE)
    before = change
    for i in range(n):
        word = load_i64(words, i)
        if load_i64(diffs, i * step) > 0:
            diff = 1
            done = put_pair(table, word, load_i64(homes, i))
        else:
            diff = -1
            done = take_pair(table, count, old, edge, word, load_i64(homes, i))
        # What is not a change is overwritten by the next one.
        store_i64(change, CHANGE_ROW, word)
        store_i64(change, CHANGE_TIME, (load_i64(rounds, i * step) - start + 1) * ROUND)
        store_i64(change, CHANGE_DIFF, diff)
        store_i64(change, CHANGE_VALUE, 0)
        if done:
            change += CHANGE_SIZE * 8
            live += diff
    store_i64(collection, CO_LIVE, live)
    if not fresh:
        store_i64(log, LIST_COUNT, logged + (change - before) // (CHANGE_SIZE * 8))


@kernel
def log_fresh_pairs(collection):
    """Makes all pairs of a fresh collection its changes: a log without data stands for all places."""
    if load_i64(collection, CO_FRESH) != 0:
        store_i64(load_i64(collection, CO_LOG), LIST_COUNT, load_i64(collection, CO_PAIR_ROOM))


@kernel
def load_pairs(ctl, collection, columns, count):
    """Loads a fresh input, without rows, from two columns of words, whose rows may repeat; false with CTL_ERROR set."""
    if not room_for_pairs(ctl, collection, count):
        return False
    words = load_i64(ctl, CTL_SCRATCH)
    homes = words + BLOCK * 8
    live = 0
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        if not keep_last_free(ctl, collection, size):
            return False
        table = load_i64(collection, CO_PAIRS)
        pack_block(ctl, collection, columns, 1, first, size)
        for i in range(size):
            live += 1 if put_pair(table, load_i64(words, i), load_i64(homes, i)) else 0
    store_i64(collection, CO_LIVE, live)
    store_i64(collection, CO_PACKED, 1)
    log_fresh_pairs(collection)
    return True


# --------------------------------------------------------------------------------------------------------------- reading


@kernel
def fresh_pairs(collection, first, last, rows):
    """The words of the pairs in places [first, last); returns how many."""
    table = load_i64(collection, CO_PAIRS)
    n = 0
    for at in range(first, last):
        word = load_i64(table, at)
        store_i64(rows, n, word)
        n += 1 if word != 0 else 0
    return n


@kernel
def unpack_column(words, number, n, target, step):
    """target[i] = the value of a column in the row whose word is i * step words from `words`."""
    if number == 0:
        for i in range(n):
            store_i64(target, i, first_of(load_i64(words, i * step)))
    else:
        for i in range(n):
            store_i64(target, i, second_of(load_i64(words, i * step)))


@entry()
def copy_pairs(collection, words):
    """Writes the words of all pairs; returns how many."""
    return fresh_pairs(collection, 0, load_i64(collection, CO_PAIR_ROOM), words)


@entry()
def split_pairs(words, count, first, second):
    """Writes the values (int32) of rows with these words."""
    for i in range(count):
        word = load_i64(words, i)
        store_i32(first, i, first_of(word))
        store_i32(second, i, second_of(word))
