"""Hash sets that grow by instalments: of rows that are looked up, and come, in commits that may not take long.

The table is that of hashes.py. One that is 4/5 full is not entered anew at once: a larger one is made, rows that come go there,
and with each of them some of the rows that were there before, in the order of their numbers. Until all of these have been
entered the old table stays as it is, and is looked in, too; then it is given back. As rows are never taken out, and keep their
numbers, a row that is in both is the same in both. This takes 5 to 10 bytes per row, of a large table 7.5, and 15 while it
grows.

The system zeroes a huge page when something first comes to it, which takes as long as a small commit, and rows come to all
pages of a table at once. So the pages of the new one are made first, one after the other, by another thread; meanwhile the old
one takes rows in still. Small tables grow at once.
"""

from __future__ import annotations

from dlog.engine.kernels.core.blocks import HUGE_PAGE, fresh_pages, start_of
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.page_maker import is_making, make_aside
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Numbers, Relation, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.hashes import (
    MAX_DOUBLED_SLOTS,
    enter_rows,
    find_rest,
    hash_block,
    insert_in,
)
from dlog.engine.kernels.static.storage import release, reserve, zeroed

MIN_SLOTS = 1 << 10
"""Slots of the first table."""
MAX_SLOTS_GROWN_AT_ONCE = 1 << 14
"""Slots up to which tables grow at once."""
ROWS_ENTERED_PER_ROW = 4
"""Rows that enter the next table for each that comes: all have before that one is full."""


@kernel
def find_gradual(relation: Relation, ctl: Control, registers: Words, n, hashes: Words, found: Words):
    """`find_rows`; `hashes` is a scratch block."""
    for i in range(n):
        found[i] = -1
    if relation.slot_count == 0:
        return
    hash_block(ctl, registers, relation.key_count, n, hashes)
    if takes_rows(relation):
        find_rest(relation, Numbers(relation.next_slots), relation.next_count, ctl, registers, n, hashes, found)
    find_rest(relation, Numbers(relation.slots), relation.slot_count, ctl, registers, n, hashes, found)


@kernel
def insert_gradual(ctl: Control, relation: Relation, registers: Words, n, hashes: Words, known: Words):
    """`insert_block`; two scratch blocks."""
    if not reserve(ctl, relation, n) or not room_for_rows(ctl, relation, n, hashes):
        return -1
    hash_block(ctl, registers, relation.key_count, n, hashes)
    for i in range(n):
        known[i] = -1
    table, count = Numbers(relation.slots), relation.slot_count
    if takes_rows(relation):
        find_rest(relation, table, count, ctl, registers, n, hashes, known)
        table, count = Numbers(relation.next_slots), relation.next_count
    return insert_in(ctl, relation, table, count, registers, n, hashes, known)


@kernel
def takes_rows(relation: Relation):
    """Whether the set grows, and the next table is the one that takes rows in."""
    return relation.next_slots != 0 and relation.next_untouched == 0


@kernel
def room_for_rows(ctl: Control, relation: Relation, n, hashes: Words):
    """Makes room for a block of `n` rows, and has a set that grows go on with that; false with ctl.error set, and nothing
    changed, when out of memory. `hashes` is a scratch block."""
    rows = relation.rows + n
    if relation.next_slots == 0:
        if rows * 5 <= relation.slot_count * 4:
            return True
        if not begin_growing(ctl, relation, rows):
            return False
        if relation.slot_count <= MAX_SLOTS_GROWN_AT_ONCE:
            enter_more(ctl, relation, relation.rows, hashes)
            return True
    if relation.next_untouched != 0:
        # Pages are few: that the old table is nearly full before all are there is not to be expected.
        if pages_are_missing(ctl.account.maker, relation) and rows * 8 <= relation.slot_count * 7:
            return True
        relation.next_untouched = 0
        relation.staying = relation.rows
    enter_more(ctl, relation, n * ROWS_ENTERED_PER_ROW, hashes)
    return True


@kernel
def begin_growing(ctl: Control, relation: Relation, rows):
    """Has a set that does not grow do so, for `rows` rows at least; false with ctl.error set, and all as it was, when out of
    memory."""
    count = max(relation.slot_count, MIN_SLOTS)
    while relation.slot_count == count or rows * 5 > count * 4:
        count += count if count < MAX_DOUBLED_SLOTS else count >> 1
    address = zeroed(ctl, count * 4)
    if address == 0:
        return False
    relation.next_slots = address
    relation.next_count = count
    pages = fresh_pages(address, 0, count * 4)
    relation.next_untouched = pages + 2 if pages != 0 else 0
    relation.entered = 0
    relation.staying = relation.rows
    return True


@kernel
def pages_are_missing(maker, relation: Relation):
    """Whether pages of the next table are still to be made; has the next one be made if it is its turn."""
    if is_making(maker):
        return True
    left = relation.next_untouched - 1
    relation.next_untouched = left
    if left == 0:
        return False
    last = start_of(relation.next_slots + relation.next_count * 4 - 1)
    make_aside(maker, last - (left - 1) * HUGE_PAGE)
    return True


@kernel
def enter_more(ctl: Control, relation: Relation, fuel, hashes: Words):
    """Enters so many more of the old table's rows into the next one, which takes its place when it has them all."""
    first = relation.entered
    last = min(first + fuel, relation.staying)
    enter_rows(relation, first, last, Numbers(relation.next_slots), relation.next_count, hashes)
    relation.entered = last
    if last == relation.staying:
        release(ctl, relation.slots, relation.slot_count * 4)
        relation.slots = relation.next_slots
        relation.slot_count = relation.next_count
        relation.next_slots = 0
        relation.next_count = 0


@kernel
def fill_gradual(ctl: Control, relation: Relation, rows):
    """Fills an empty set, large enough for `rows` rows, with those present; false with ctl.error set when out of memory."""
    hashes = Words(zeroed(ctl, BLOCK * 8))
    if not hashes:
        return False
    begun = begin_growing(ctl, relation, rows)
    if begun:
        relation.next_untouched = 0
        enter_more(ctl, relation, relation.rows, hashes)
    release(ctl, hashes.address, BLOCK * 8)
    return begun
