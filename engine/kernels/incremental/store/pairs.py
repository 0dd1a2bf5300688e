"""Pairs: the rows of an input of two columns in which nobody looks rows up, as words of one hash table.

There are no row numbers, hence no columns, slots, histories and bits: a row is the word of its two values, and so it is in the
log of changes (`packed`). A change touches one place of memory in the place of six. Values of more than 32 bits, or an index,
make ordinary rows of them.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import prefetch
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
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.layout import BLOCK, ROUND
from dlog.engine.kernels.machine_structs import Homes, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.row_structs import Change, ChangeArray
from dlog.engine.kernels.static.pages import may_move
from dlog.engine.kernels.static.storage import behind, lengthen, mix, release, zeroed

MIN_HOMES = 64
"""Homes of the smallest table."""
MAX_CACHED_PAIRS = 1 << 18
"""Pairs up to which a table has three homes for each: it stays in the cache, and runs of taken places are short."""
PLACES_MOVED_PER_PAIR = 16
"""Places of which the pairs move, in a table that grows, for each that comes."""
STEP = BLOCK // 2
"""Changes that are looked at together: as many fit the scratch blocks that are free."""
PAIRS_AHEAD = 16
"""Pairs between one whose home is asked for and one that is looked at: with more of them at once many are lost."""
LINE = 64
"""Bytes of a cache line."""
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
def can_be_pairs(columns: WordColumns, step, count):
    """Whether the values of two columns (see `apply_columns`) have words."""
    first = columns[0]
    second = columns[1]
    wide = 0
    for i in range(count):
        value = first[i * step]
        other = second[i * step]
        wide |= 1 if value != value << 32 >> 32 or other != other << 32 >> 32 or other == _SIGN else 0
    return wide == 0


@kernel
def fit_pairs(extents: Words):
    """`can_be_pairs` of two columns with these extents (`survey`)."""
    return extents[0] >= _SIGN and extents[1] < -_SIGN and extents[2] > _SIGN and extents[3] < -_SIGN


# ----------------------------------------------------------------------------------------------------------------- table


@kernel
def homes_of(collection: Collection) -> Homes:
    return collection.pair_homes


@kernel
def resize_pairs(ctl: Control, collection: Collection, count):
    """Puts all pairs into a table with so many homes; false with ctl.error set and all as it was."""
    homes = homes_of(collection)
    old = collection.pairs
    before = homes.count
    places = homes.room
    table = Words(zeroed(ctl, room_for(count) * 8))
    if not table:
        return False
    collection.pairs = table
    set_homes(homes, count, room_for(count))
    for first in range(0, places, MAX_HOMES_GROWN_AT_ONCE):
        last = min(first + MAX_HOMES_GROWN_AT_ONCE, places)
        if not keep_last_free(ctl, collection, last - first):
            drop_pairs(ctl, collection)
            collection.pairs = old
            set_homes(homes, before, places)
            return False
        table = collection.pairs
        for at in range(first, last):
            word = old[at]
            if word != 0:
                put_pair(table, word, (hash_of(word) * count) >> 32)
    release(ctl, old.address, places * 8)
    return True


@kernel
def homes_for(pairs):
    """Homes of a table that is made for so many pairs."""
    return max(pairs * 3 if pairs < MAX_CACHED_PAIRS else pairs + (pairs >> 1), MIN_HOMES)


@kernel
def room_for_pairs(ctl: Control, collection: Collection, extra):
    """Makes room for so many more pairs: a quarter of all homes stays free, or less while the table grows. False with ctl.error
    set."""
    if extra == 0:
        return True
    wanted = collection.live + extra
    count = collection.pair_homes.count
    if wanted * 4 > count * 3:
        more = homes_for(wanted)
        while collection.pair_homes.edge != 0:
            if not move_pairs(ctl, collection, MAX_HOMES_GROWN_AT_ONCE):
                return False
        if count < MAX_HOMES_GROWN_AT_ONCE or extra > count >> 4:
            if not resize_pairs(ctl, collection, more):
                return False
        elif not grow_pairs(ctl, collection, more):
            return False
    if may_move(ctl, extra) and not move_pairs(ctl, collection, extra * PLACES_MOVED_PER_PAIR):
        return False
    homes = homes_of(collection)
    while not still_fits(homes, collection.pairs.address, 8, extra):
        if not move_pairs(ctl, collection, PLACES_MOVED_PER_PAIR):
            return False
    return keep_last_free(ctl, collection, extra)


@kernel
def grow_pairs(ctl: Control, collection: Collection, count):
    """Has a table grow to so many homes; false with ctl.error set."""
    homes = homes_of(collection)
    count = homes_from(homes, collection.pairs.address, 8, count)
    places = collection.pair_homes.room
    room = max(room_for(count), places)
    if not lengthen(ctl, collection.ref.pairs, places * 8, room * 8):
        return False
    begin_growing(homes, count, room)
    return True


@kernel
def keep_last_free(ctl: Control, collection: Collection, extra):
    """Keeps the last place free when so many pairs come; false with ctl.error set."""
    missing = missing_room(homes_of(collection), collection.pairs.address, 8, extra)
    if missing == 0:
        return True
    places = collection.pair_homes.room
    if not lengthen(ctl, collection.ref.pairs, places * 8, (places + missing) * 8):
        return False
    collection.pair_homes.room = places + missing
    return True


@kernel
def move_pairs(ctl: Control, collection: Collection, fuel):
    """Moves the pairs of so many places of a table, if it grows, to their new homes; false with ctl.error set and nothing
    moved."""
    homes = homes_of(collection)
    if collection.pair_homes.edge == 0:
        return True
    table = collection.pairs
    first = first_to_move(homes, table.address, 8, fuel)
    last = last_to_move(homes, table.address, 8)
    size = max(last - first, 1) * 8
    words = Words(zeroed(ctl, size))
    if not words:
        return False
    if not keep_last_free(ctl, collection, last - first):
        release(ctl, words.address, size)
        return False
    table = collection.pairs
    n = 0
    for at in range(first, last):
        word = table[at]
        words[n] = word
        n += 1 if word != 0 else 0
        table[at] = 0
    # Only now, with all of them out: a new home may be a place that one of the others was in.
    move_edge(homes, first)
    count = collection.pair_homes.count
    for i in range(n):
        put_pair(table, words[i], (hash_of(words[i]) * count) >> 32)
    release(ctl, words.address, size)
    return True


@entry()
def drop_pairs(ctl: Control, collection: Collection):
    release(ctl, collection.pairs.address, collection.pair_homes.room * 8)
    collection.pairs = Words(0)
    set_homes(homes_of(collection), 0, 0)


@kernel
def put_pair(table: Words, word, home):
    """Enters a pair if it is not there; returns whether it was not."""
    at = home
    found = table[at]
    while found != 0:
        if found == word:
            return False
        at += 1
        found = table[at]
    table[at] = word
    return True


@kernel
def take_pair(table: Words, count, old, edge, word, home):
    """Removes a pair if it is there; returns whether it was. Later ones of its run move up.

    A pair may move into the hole where its home is not behind that (Knuth, 6.4, Algorithm R). No run goes on at the beginning
    of the table (homes.py), so places compare as they are."""
    hole = home
    found = table[hole]
    while found != word:
        if found == 0:
            return False
        hole += 1
        found = table[hole]
    at = hole
    while True:
        at += 1
        word = table[at]
        if word == 0:
            break
        if place_of(word, count, old, edge) <= hole:
            table[hole] = word
            hole = at
    table[hole] = 0
    return True


# --------------------------------------------------------------------------------------------------------------- changes


@kernel
def apply_pairs(ctl: Control, collection: Collection, columns: WordColumns, step, start, count):
    """`apply_columns` (input_changes.py) of pairs; false with ctl.error set."""
    fresh = collection.fresh != 0
    for first in range(0, count, STEP):
        size = min(STEP, count - first)
        if not room_for_pairs(ctl, collection, size):
            return False
        if not fresh and not list_room(ctl, collection.log, size):
            return False
        apply_block(ctl, collection, columns, step, start, first, size)
    collection.packed = 1
    log_fresh_pairs(collection)
    return True


@kernel
def pack_block(ctl: Control, collection: Collection, columns: WordColumns, step, first, n):
    """Writes the words of rows [first, first + n) of columns and their homes to scratch blocks 0 and 1."""
    words = ctl.scratch
    homes = behind(words, BLOCK)
    count = collection.pair_homes.count
    old = collection.pair_homes.old
    edge = collection.pair_homes.edge
    left = behind(columns[0], first * step)
    right = behind(columns[1], first * step)
    for i in range(n):
        words[i] = pack(left[i * step], right[i * step])
    if edge == 0:
        for i in range(n):
            homes[i] = (hash_of(words[i]) * count) >> 32
    else:
        for i in range(n):
            homes[i] = place_of(words[i], count, old, edge)


@kernel
def warm_home(table: Words, home):
    """Asks for a pair's home and what follows: half of the runs go on in the next line."""
    prefetch(table.address + home * 8)
    prefetch(table.address + home * 8 + LINE)


@kernel
def apply_block(ctl: Control, collection: Collection, columns: WordColumns, step, start, first, n):
    """Changes [first, first + n) of `apply_pairs`: there is room in the table and in the log."""
    pack_block(ctl, collection, columns, step, first, n)
    words = ctl.scratch
    homes = behind(words, BLOCK)
    table = collection.pairs
    count = collection.pair_homes.count
    old = collection.pair_homes.old
    edge = collection.pair_homes.edge
    diffs = behind(columns[2], first * step)
    rounds = behind(columns[3], first * step)
    log = collection.log
    logged = log.count
    # A fresh collection has no log (`log_fresh_pairs`): what would be there goes where it is forgotten.
    fresh = collection.fresh != 0
    changes = ChangeArray(homes.address + BLOCK * 8 if fresh else log.data.address + logged * Change.size)
    made = 0
    live = collection.live
    for i in range(min(PAIRS_AHEAD, n)):
        warm_home(table, homes[i])
    for i in range(n):
        if i + PAIRS_AHEAD < n:
            warm_home(table, homes[i + PAIRS_AHEAD])
        word = words[i]
        if diffs[i * step] > 0:
            diff = 1
            done = put_pair(table, word, homes[i])
        else:
            diff = -1
            done = take_pair(table, count, old, edge, word, homes[i])
        # What is not a change is overwritten by the next one.
        change = changes[made]
        change.row = word
        change.time = (rounds[i * step] - start + 1) * ROUND
        change.diff = diff
        change.value = 0
        if done:
            made += 1
            live += diff
    collection.live = live
    if not fresh:
        log.count = logged + made


@kernel
def log_fresh_pairs(collection: Collection):
    """Makes all pairs of a fresh collection its changes: a log without data stands for all places."""
    if collection.fresh != 0:
        collection.log.count = collection.pair_homes.room


# --------------------------------------------------------------------------------------------------------------- reading


@kernel
def fresh_pairs(collection: Collection, first, last, rows: Words):
    """The words of the pairs in places [first, last); returns how many."""
    table = collection.pairs
    n = 0
    for at in range(first, last):
        word = table[at]
        rows[n] = word
        n += 1 if word != 0 else 0
    return n
