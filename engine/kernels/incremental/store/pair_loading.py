"""Pairs of an empty input, loaded from columns in one go: divided by the first bits of their hashes (divisions.py), so that
each division goes to a part of the table that the cache holds."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.divisions import (
    DIVISION_BITS,
    DIVISIONS,
    MIN_DIVIDED_ROWS,
    begin_words,
    first_word,
    room_of,
)
from dlog.engine.kernels.incremental.store.pairs import (
    PAIRS_AHEAD,
    hash_of,
    homes_for,
    keep_last_free,
    log_fresh_pairs,
    pack,
    put_pair,
    resize_pairs,
)
from dlog.engine.kernels.machine_structs import WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import behind, release, resize


@kernel
def load_pairs(ctl: Control, collection: Collection, columns: WordColumns, count):
    """Loads a fresh input, without rows, from two columns of words, whose rows may repeat; false with ctl.error set."""
    if not begin_pairs(ctl, collection, count):
        return False
    size = room_of(count) * 8
    room = Words(resize(ctl, 0, 0, size))
    if not room:
        return False
    divide_pairs(columns, 0, count, count >= MIN_DIVIDED_ROWS, room)
    live = 0
    for division in range(DIVISIONS):
        entered = enter_division(ctl, collection, room, division)
        if entered < 0:
            release(ctl, room.address, size)
            return False
        live += entered
    release(ctl, room.address, size)
    end_pairs(collection, live)
    return True


@kernel
def enter_division(ctl: Control, collection: Collection, room: Words, division):
    """Enters a division's pairs; returns how many were not there yet, -1 with ctl.error set."""
    first = first_word(room, division)
    end = first_word(room, division + 1)
    live = 0
    while first < end:
        first, entered = enter_pairs(collection, room, first, end, collection.pair_homes.room - 1)
        live += entered
        if first < end:
            if not enter_last(ctl, collection, room[first]):
                return -1
            live += 1
            first += 1
    return live


@kernel
def begin_pairs(ctl: Control, collection: Collection, count):
    """Makes a table for so many pairs; false with ctl.error set."""
    # No room is kept behind the last home for all of them to be in one run: whoever enters them sees to that.
    return count == 0 or resize_pairs(ctl, collection, homes_for(count))


@kernel
def end_pairs(collection: Collection, live):
    """After so many pairs have been entered into a new table."""
    collection.live = live
    collection.packed = 1
    log_fresh_pairs(collection)


@kernel
def divide_pairs(columns: WordColumns, start, end, many, room: Words):
    """Divides the words of the rows [start, end) of columns; all are one if they are not many."""
    left = columns[0]
    right = columns[1]
    words = behind(room, DIVISIONS)
    for division in range(DIVISIONS):
        room[division] = 0
    for i in range(start, end):
        room[division_of(pack(left[i], right[i])) if many else 0] += 1
    begin_words(room)
    for i in range(start, end):
        word = pack(left[i], right[i])
        division = division_of(word) if many else 0
        at = room[division]
        room[division] = at + 1
        words[at] = word


@kernel
def division_of(word):
    return hash_of(word) >> (32 - DIVISION_BITS)


@kernel
def enter_pairs(collection: Collection, words: Words, first, end, limit):
    """Enters words [first, end) into the places before a limit, up to one that finds none. Returns which one that is, `end` if
    none, and how many were not there yet."""
    table = collection.pairs
    homes = collection.pair_homes.count
    entered = 0
    for i in range(first, end):
        if i + PAIRS_AHEAD < end:
            prefetch(table.address + ((hash_of(words[i + PAIRS_AHEAD]) * homes) >> 32) * 8)
        word = words[i]
        at = (hash_of(word) * homes) >> 32
        while at < limit and table[at] != 0 and table[at] != word:
            at += 1
        if at == limit:
            return i, entered
        entered += 1 if table[at] == 0 else 0
        table[at] = word
    return end, entered


@kernel
def enter_last(ctl: Control, collection: Collection, word):
    """Enters a pair that `enter_pairs` found no place for, nor itself, at the end of the table; false with ctl.error set."""
    homes = collection.pair_homes
    homes.sure = 0  # what was known of the last run is not true any more
    if not keep_last_free(ctl, collection, 1):
        return False
    put_pair(collection.pairs, word, (hash_of(word) * homes.count) >> 32)
    return True
