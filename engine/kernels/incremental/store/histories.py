"""Histories: when each row of a collection is present.

A row is a set of entries (time, diff). Nearly every row has one, (settled, +1), and needs no memory for it but its iteration:
the row's bit is clear, and its time is `base` + `iters`[row]. Rows with the bit set have an item with a chain of entries,
perhaps none. A view is a limit: entries with time < limit are seen. `neu` at time t is limit t + 1, `alt` is limit t; all
settled times are below all times of a batch, so prior rounds precede whatever their iteration (the iteration-only layer
which keeps half-joins right under compaction).

What happens to most rows outside of recursion is that they go, or come, in the first round of a batch: their items share the
first entries of the pool, which are never freed.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.history_items import grow_table, item_of, open_item
from dlog.engine.kernels.incremental.store.lists import list_empty, list_room, pool_give, pool_take
from dlog.engine.kernels.layout import NEVER, ROUND
from dlog.engine.kernels.machine_structs import Numbers
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.row_structs import Entry, History, Item

_ITERATION = 0xFFFFFFFF
_NO_TIME = 1 << 62
"""Of a row that is not there: no limit is beyond."""
SHARED = 3
"""Entries that items of a history without iterations share, and which of them, plus one, is the first of a row that was there
and goes in the first round, and of one that comes then."""
GONE, BORN = 1, 3


@kernel
def room_for_items(ctl: Control, history: History, plain, extra):
    """Makes room for what is noted of so many rows that appear or go, unless they are `plain`; false with ctl.error set."""
    if not history or plain != 0:
        return True
    items = history.items
    if not list_room(ctl, items, extra) or not grow_table(ctl, history, items.count + extra):
        return False
    return list_room(ctl, history.entries, 2 * extra + SHARED)


@kernel
def make_shared(ctl: Control, history: History):
    """Has there be the entries that items share, before there are others; false with ctl.error set."""
    pool = history.entries
    if pool.count != 0:
        return True
    if not list_room(ctl, pool, SHARED):
        return False
    pool.count = SHARED
    set_entry(pool.data[0], ROUND, -1, 2)
    set_entry(pool.data[1], 0, 1, 0)
    set_entry(pool.data[2], ROUND, 1, 0)
    return True


@kernel
def set_entry(entry: Entry, time, diff, following):
    entry.time = time
    entry.diff = diff
    entry.next = following


@kernel
def born_at(ctl: Control, history: History, row, time):
    """Notes, in a history without iterations, that a new row is there from a time on; false with ctl.error set."""
    if not make_shared(ctl, history):
        return False
    item = open_item(ctl, history, row)
    return item.address != 0 and add_birth(ctl, history, item, time)


@kernel
def add_birth(ctl: Control, history: History, item: Item, time):
    """Adds (time, +1) to an item without entries, of a history without iterations; false with ctl.error set."""
    if time != ROUND:
        return chain_entry(ctl, history, item, time, 1)
    item.head = BORN
    return True


@kernel
def chain_entry(ctl: Control, history: History, item: Item, time, diff):
    """Adds an entry to an item; false with ctl.error set."""
    pool = history.entries
    number = pool_take(ctl, pool)
    if number < 0:
        return False
    set_entry(pool.data[number], time, diff, item.head)
    item.head = number + 1
    return True


@kernel
def warm_history(history: History, row):
    """Asks for what a history of iterations knows of a row: its bit, and its iteration or where its item is."""
    prefetch(history.bits.address + (row >> 6) * 8)
    prefetch(history.iters.address + row * 4)


@kernel
def settled_time(history: History, row):
    """The time from which on a row whose bit is clear is there."""
    iterations = history.iters
    if not iterations:
        return history.base
    iteration = iterations[row]
    return history.base + iteration if iteration != NEVER else _NO_TIME


@kernel
def change_iteration(ctl: Control, history: History, row, time, diff):
    """`add_entry` where nobody looks at the row before the round is over: one that appears at an iteration, or was there from
    it on and goes, has no need of entries. False with ctl.error set."""
    if get_bit(history.bits, row) == 0:
        iterations = history.iters
        known = iterations[row]
        iteration = time & _ITERATION
        if diff == 1 and known == NEVER:
            iterations[row] = iteration
            return True
        if diff == -1 and known == iteration:
            iterations[row] = NEVER
            return True
    return add_entry(ctl, history, row, time, diff)


@kernel
def add_entry(ctl: Control, history: History, row, time, diff):
    """Adds (time, diff) to a row; false with ctl.error set.

    A row that was never there yet and appears needs no item: its iteration is noted.
    """
    iterations = history.iters
    if not iterations:
        return make_shared(ctl, history) and add_plain(ctl, history, row, time, diff)
    if get_bit(history.bits, row) == 0:
        never = iterations[row] == NEVER
        if never and diff == 1 and time >= history.base:
            iterations[row] = time - history.base
            return True
        settled = settled_time(history, row)
        if not never and not list_room(ctl, history.entries, 2):
            # Before there is an item: one without entries says that the row has never been there.
            return False
        item = open_item(ctl, history, row)
        if not item or (not never and not chain_entry(ctl, history, item, settled, 1)):
            return False
        return chain_entry(ctl, history, item, time, diff)
    return chain_entry(ctl, history, item_of(history, row), time, diff)


@kernel
def add_plain(ctl: Control, history: History, row, time, diff):
    """`add_entry` of a history without iterations."""
    if get_bit(history.bits, row) != 0:
        item = item_of(history, row)
        if item.head == 0 and diff == 1:
            return add_birth(ctl, history, item, time)
        return chain_entry(ctl, history, item, time, diff)
    if not list_room(ctl, history.entries, 2):
        # Before there is an item: one without entries says that the row has never been there.
        return False
    item = open_item(ctl, history, row)
    if not item:
        return False
    if diff == -1 and time == ROUND and history.base == 0:
        item.head = GONE
        return True
    return chain_entry(ctl, history, item, history.base, 1) and chain_entry(ctl, history, item, time, diff)


@kernel
def first_entry(history: History, row):
    """The first entry, plus one, of a row whose bit is set; 0 if it has none."""
    return item_of(history, row).head


@kernel
def entry_at(history: History, number) -> Entry:
    """Address of an entry by its number plus one."""
    return history.entries.data[number - 1]


@kernel
def presence(history: History, row, limit):
    """Sum of the diffs before `limit`."""
    if get_bit(history.bits, row) == 0:
        return 1 if settled_time(history, row) < limit else 0
    return sum_before(history, first_entry(history, row), limit)


@kernel
def sum_before(history: History, at, limit):
    """Sum of the diffs before `limit` of the entry `at`, its number plus one, and of those that follow it."""
    total = 0
    while at != 0:
        entry = entry_at(history, at)
        if entry.time < limit:
            total += entry.diff
        at = entry.next
    return total


@kernel
def has_marked(history: History):
    """Whether there is a row whose bit is set, in a collection where paths look rows up."""
    return history.items.count != 0


@kernel
def is_here(collection: Collection, row):
    """Whether a living row is present after all changes so far."""
    history = collection.outer
    if get_bit(history.bits, row) == 0:
        return True
    return collection.no_readers == 0 and presence(history, row, 9223372036854775807) > 0


@kernel
def forget_items(ctl: Control, history: History):
    """Drops all items, and all entries, of a history without iterations at once; memory that is much is given back."""
    items = history.items
    count = items.count
    data = items.data
    table = history.table
    for number in range(count):
        table[data[number].slot] = 0
    list_empty(ctl, items)
    list_empty(ctl, history.entries)
    history.entries.free = 0


@kernel
def drop_entries(history: History, item: Item):
    """Frees an item's entries, but for those that it shares."""
    pool = history.entries
    at = item.head
    last = 0 if history.iters else SHARED
    while at > last:
        following = entry_at(history, at).next
        pool_give(pool, at - 1)
        at = following
    item.head = 0


@kernel
def settle_entries(history: History, item: Item):
    """Makes all entries of an item of a history with iterations settled: rounds are dropped, equal iterations merged, zeros
    freed. Returns the number left.

    Items have few entries, so each is compared with those before it.
    """
    pool = history.entries
    at = item.head
    kept = 0
    item.head = 0
    # The chain is taken apart, and those entries chained again whose iterations have not come before.
    while at != 0:
        entry = entry_at(history, at)
        following = entry.next
        time = entry.time & 0xFFFFFFFF
        known = item.head
        while known != 0 and entry_at(history, known).time != time:
            known = entry_at(history, known).next
        if known != 0:
            total = entry_at(history, known).diff + entry.diff
            entry_at(history, known).diff = total
            pool_give(pool, at - 1)
        else:
            entry.time = time
            entry.next = item.head
            item.head = at
        at = following
    at = item.head
    item.head = 0
    while at != 0:
        entry = entry_at(history, at)
        following = entry.next
        if entry.diff == 0:
            pool_give(pool, at - 1)
        else:
            entry.next = item.head
            item.head = at
            kept += 1
        at = following
    return kept


@entry()
def copy_present(collection: Collection, limit, numbers: Numbers):
    """Writes the numbers (int32) of the living rows that are present before `limit`; returns how many."""
    alive = collection.alive
    history = collection.outer
    bits = history.bits
    plain = history.base < limit
    count = 0
    for row in range(collection.rows):
        if get_bit(alive, row) == 0:
            continue
        here = plain
        if get_bit(bits, row) != 0:
            here = collection.no_readers == 0 and presence(history, row, limit) > 0
        if here:
            numbers[count] = row
            count += 1
    return count


@entry()
def copy_ranks(history: History, rows: Numbers, count, ranks: Numbers):
    """ranks[i] (int32) = the last iteration from which on row rows[i] is present."""
    for i in range(count):
        row = rows[i]
        rank = 0
        if get_bit(history.bits, row) == 0:
            rank = history.iters[row]
        else:
            at = first_entry(history, row)
            while at != 0:
                entry = entry_at(history, at)
                if entry.diff > 0:
                    rank = max(rank, entry.time & 0xFFFFFFFF)
                at = entry.next
        ranks[i] = rank
