"""Pairs: the rows of an input of two columns in which nobody looks rows up, as words of one hash table.

There are no row numbers, hence no columns, slots, histories and bits: a row is the word of its two values, and so it is in the
log of changes (CO_PACKED). A change touches one place of memory in the place of six. Values of more than 32 bits, or an index,
make ordinary rows of them.
"""

from __future__ import annotations

from dlog.engine.kernels.jit import entry, kernel
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
    CO_PAIRS,
    CTL_SCRATCH,
    LIST_COUNT,
    LIST_DATA,
    ROUND,
)
from dlog.engine.kernels.lists import list_room
from dlog.engine.kernels.memory import load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.storage import mix, release, zeroed

FEWEST = 64
"""Places of the smallest table."""
SMALL = 1 << 18
"""Pairs up to which a table has three places for each: it stays in the cache, and runs of taken places are short."""
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
def place_of(word, count):
    """The home of a row among so many places."""
    return (((mix(0, word) >> 32) & _LOW) * count) >> 32


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
def resize_pairs(ctl, collection, count):
    """Places all pairs in a table of `count` places; false with CTL_ERROR set."""
    table = zeroed(ctl, count * 8)
    if table == 0:
        return False
    old = load_i64(collection, CO_PAIRS)
    places = load_i64(collection, CO_PAIR_COUNT)
    for at in range(places):
        word = load_i64(old, at)
        if word != 0:
            put_pair(table, count, word, place_of(word, count))
    release(ctl, old, places * 8)
    store_i64(collection, CO_PAIRS, table)
    store_i64(collection, CO_PAIR_COUNT, count)
    return True


@kernel
def room_for_pairs(ctl, collection, extra):
    """Makes room for so many more pairs: a quarter of all places stays free. False with CTL_ERROR set."""
    wanted = load_i64(collection, CO_LIVE) + extra
    places = load_i64(collection, CO_PAIR_COUNT)
    if wanted * 4 <= places * 3:
        return True
    return resize_pairs(ctl, collection, max(wanted * 3 if wanted < SMALL else wanted + (wanted >> 1), FEWEST))


@entry()
def drop_pairs(ctl, collection):
    release(ctl, load_i64(collection, CO_PAIRS), load_i64(collection, CO_PAIR_COUNT) * 8)
    store_i64(collection, CO_PAIRS, 0)
    store_i64(collection, CO_PAIR_COUNT, 0)


@kernel
def put_pair(table, count, word, home):
    """Enters a pair if it is not there; returns whether it was not."""
    at = home
    found = load_i64(table, at)
    while found != 0:
        if found == word:
            return False
        at += 1
        if at == count:
            at = 0
        found = load_i64(table, at)
    store_i64(table, at, word)
    return True


@kernel
def take_pair(table, count, word, home):
    """Removes a pair if it is there; returns whether it was. Later ones of its run move up."""
    hole = home
    found = load_i64(table, hole)
    while found != word:
        if found == 0:
            return False
        hole += 1
        if hole == count:
            hole = 0
        found = load_i64(table, hole)
    at = hole
    while True:
        at += 1
        if at == count:
            at = 0
        word = load_i64(table, at)
        if word == 0:
            break
        away = at - place_of(word, count)
        gap = at - hole
        if away + (count if away < 0 else 0) >= gap + (count if gap < 0 else 0):
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
    places = load_i64(collection, CO_PAIR_COUNT)
    left = load_i64(columns, 0) + first * step * 8
    right = load_i64(columns, 1) + first * step * 8
    for i in range(n):
        store_i64(words, i, pack(load_i64(left, i * step), load_i64(right, i * step)))
    for i in range(n):
        store_i64(homes, i, place_of(load_i64(words, i), places))
    for i in range(n):
        prefetch(table + load_i64(homes, i) * 8)


@kernel
def apply_block(ctl, collection, columns, step, start, first, n):
    """Changes [first, first + n) of `apply_pairs`: there is room in the table and in the log."""
    pack_block(ctl, collection, columns, step, first, n)
    words = load_i64(ctl, CTL_SCRATCH)
    homes = words + BLOCK * 8
    table = load_i64(collection, CO_PAIRS)
    places = load_i64(collection, CO_PAIR_COUNT)
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
            done = put_pair(table, places, word, load_i64(homes, i))
        else:
            diff = -1
            done = take_pair(table, places, word, load_i64(homes, i))
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
        store_i64(load_i64(collection, CO_LOG), LIST_COUNT, load_i64(collection, CO_PAIR_COUNT))


@kernel
def load_pairs(ctl, collection, columns, count):
    """Loads a fresh input, without rows, from two columns of words, whose rows may repeat; false with CTL_ERROR set."""
    if not room_for_pairs(ctl, collection, count):
        return False
    words = load_i64(ctl, CTL_SCRATCH)
    homes = words + BLOCK * 8
    table = load_i64(collection, CO_PAIRS)
    places = load_i64(collection, CO_PAIR_COUNT)
    live = 0
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        pack_block(ctl, collection, columns, 1, first, size)
        for i in range(size):
            live += 1 if put_pair(table, places, load_i64(words, i), load_i64(homes, i)) else 0
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
    return fresh_pairs(collection, 0, load_i64(collection, CO_PAIR_COUNT), words)


@entry()
def split_pairs(words, count, first, second):
    """Writes the values (int32) of rows with these words."""
    for i in range(count):
        word = load_i64(words, i)
        store_i32(first, i, first_of(word))
        store_i32(second, i, second_of(word))
