"""Changes of collections: inputs, derived rows that become present or absent, and what is left when a batch has settled.

`total`: rows derived at rounds; a row is present where its count of derivations is positive. `partial`: rows derived at
(round, iteration); a row keeps its count per iteration, before (old) and after (new) the round that is running, and the change
of its presence at iteration i is

    ([new(<=i) > 0] - [new(<i) > 0]) - ([old(<=i) > 0] - [old(<i) > 0])

(the derivative of distinct in two dimensions: McSherry et al., Differential Dataflow; Budiu et al., DBSP).
"""

from __future__ import annotations

from dlog.engine.kernels.base import drop_base, search_base
from dlog.engine.kernels.collections import add_values, enter_indexes, leave_base, remove_row, trim_rows
from dlog.engine.kernels.histories import (
    add_entry,
    chain_entry,
    clear_bit,
    close_item,
    drop_entries,
    forget_items,
    get_bit,
    is_here,
    item_of,
    open_item,
    presence,
    put_bit,
)
from dlog.engine.kernels.indexes import warm_group, warm_slab
from dlog.engine.kernels.jit import entry, kernel
from dlog.engine.kernels.layout import (
    BLOCK,
    CHANGE_DIFF,
    CHANGE_ROW,
    CHANGE_SIZE,
    CHANGE_TIME,
    CO_ALIVE,
    CO_BASE_ROWS,
    CO_BORN,
    CO_BUCKET_COUNT,
    CO_BUCKETS,
    CO_COUNTS,
    CO_DERIVED,
    CO_DOOMED,
    CO_ENTRIES,
    CO_FREE_COUNT,
    CO_FRESH,
    CO_GROUPED,
    CO_INDEX_COUNT,
    CO_INDEXED,
    CO_INDEXES,
    CO_INNER,
    CO_INNER_LOG,
    CO_LIVE,
    CO_LOG,
    CO_OLD,
    CO_OUTER,
    CO_QUIET,
    CO_SCOPE,
    CO_STAMPS,
    CO_SUPPORT,
    CO_TOUCHED,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    CTL_SCRATCH,
    HI_BASE,
    HI_BITS,
    HI_ITEMS,
    HI_ITERS,
    ITEM_HEAD,
    ITEM_ROW,
    ITEM_SIZE,
    LIST_COUNT,
    LIST_DATA,
    LIST_SIZE,
    LIST_WORDS,
    NEVER,
    RD_GROUPS,
    REL_ARITY,
    REL_COLUMNS,
    REL_ROWS,
    ROUND,
    SC_BIT_WORDS,
    SC_BITS,
    SC_LAST,
    SC_ROUND_TICK,
    SC_TICK,
    SUPPORT_AT,
    SUPPORT_NEW,
    SUPPORT_OLD,
    SUPPORT_SIZE,
    WORK_TICK,
)
from dlog.engine.kernels.lists import (
    change_at,
    list_again,
    list_empty,
    list_free,
    list_push,
    list_room,
    pool_give,
    pool_take,
    push_change,
    sort_changes,
)
from dlog.engine.kernels.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.outdone import is_outdone
from dlog.engine.kernels.slots import (
    find_slotted,
    has_values,
    search_ahead,
    warm_others,
)
from dlog.engine.kernels.storage import mix, resize

_UNLIMITED = 4611686018427387904
AHEAD = 32
"""Rows whose slots are asked for before they are looked at."""
STRIDE = 8
"""Rows between two stages of what is asked for of rows that are removed."""


@kernel
def announce(ctl, collection, row, time, diff):
    """A row becomes present (+1) or absent (-1) for the rest of the world; false with CTL_ERROR set."""
    outer = load_i64(collection, CO_OUTER)
    if load_i64(collection, CO_QUIET) != 0:
        if diff > 0:
            clear_bit(load_i64(outer, HI_BITS), row)
        else:
            put_bit(load_i64(outer, HI_BITS), row)
        if load_i64(collection, CO_FRESH) != 0:
            return diff > 0 or list_push(ctl, load_i64(collection, CO_DOOMED), row)
        return push_change(ctl, load_i64(collection, CO_LOG), row, time, diff, 0)
    if load_i64(collection, CO_FRESH) != 0:
        # All rows of a fresh collection count as its changes (`log_fresh`).
        if diff > 0 and get_bit(load_i64(outer, HI_BITS), row) == 0:
            return True
        return add_entry(ctl, outer, row, time, diff)
    if not add_entry(ctl, outer, row, time, diff):
        return False
    return push_change(ctl, load_i64(collection, CO_LOG), row, time, diff, 0)


@kernel
def log_fresh(collection):
    """Makes all rows of a fresh collection its changes: a log without data stands for them (`is_implicit`)."""
    if load_i64(collection, CO_FRESH) != 0:
        log = load_i64(collection, CO_LOG)
        store_i64(log, LIST_COUNT, load_i64(with_rows(collection), REL_ROWS))


@kernel
def with_rows(collection):
    """The collection, or the groups that are its rows."""
    reduction = load_i64(collection, CO_GROUPED)
    return collection if reduction == 0 else load_i64(reduction, RD_GROUPS)


# ---------------------------------------------------------------------------------------------------------------- inputs


@kernel
def apply_input(ctl, collection, updates, count):
    """Applies changes from outside: `count` times arity values, a diff and a round of the batch (from 0), as words, by round.
    False with CTL_ERROR set."""
    width = load_i64(collection, REL_ARITY) + 2
    columns = load_i64(ctl, CTL_SCRATCH) + 5 * BLOCK * 8
    for c in range(width):
        store_i64(columns, c, updates + c * 8)
    return apply_columns(ctl, collection, columns, width, 0, count)


@kernel
def apply_columns(ctl, collection, columns, step, start, count):
    """Applies changes from outside, by round: columns of values, one of diffs and one of rounds, the batch's first one being
    `start`. Value c of row r is word r * step at the address that is word c of `columns`.

    What is present is not inserted again, what is absent not removed. False with CTL_ERROR set."""
    arity = load_i64(collection, REL_ARITY)
    diffs = load_i64(columns, arity)
    rounds = load_i64(columns, arity + 1)
    values = load_i64(ctl, CTL_SCRATCH)
    hashes = values + BLOCK * 8
    places = hashes + BLOCK * 8
    for first in range(0, count, AHEAD):
        size = min(AHEAD, count - first)
        based = load_i64(collection, CO_BASE_ROWS) != 0
        search_rows(collection, columns, step, first, size, places, hashes, values)
        for i in range(size):
            diff = load_i64(diffs, (first + i) * step)
            time = (load_i64(rounds, (first + i) * step) - start + 1) * ROUND
            for c in range(arity):
                store_i64(values, c, load_i64(load_i64(columns, c), (first + i) * step))
            row = load_i64(places, i)
            if row >= 0 and based:
                row = row if get_bit(load_i64(collection, CO_ALIVE), row) != 0 else -1
            elif row < 0 or not has_values(collection, row, values):
                row = find_slotted(collection, values, load_i64(hashes, i))
            there = row >= 0 and is_here(collection, row)
            if there == (diff > 0):
                continue
            if row < 0:
                row = add_values(ctl, collection, values, load_i64(hashes, i))
            if row < 0 or not announce(ctl, collection, row, time, diff):
                return False
    log_fresh(collection)
    return enter_indexes(ctl, collection)


@kernel
def search_rows(collection, columns, step, first, n, places, hashes, buffer):
    """places[i] = the base row, dead or alive, with the values of row first + i of columns or, of a collection without a base,
    what `search_ahead` tells; and the hashes of their values."""
    if load_i64(collection, CO_BASE_ROWS) != 0:
        search_base(collection, columns, step, first, n, places, buffer)
        warm_others(collection, columns, step, first, n, places, hashes)
        return
    arity = load_i64(collection, REL_ARITY)
    for i in range(n):
        hashed = 0
        for c in range(arity):
            hashed = mix(hashed, load_i64(load_i64(columns, c), (first + i) * step))
        store_i64(hashes, i, hashed)
    search_ahead(collection, hashes, n, True, places)


# ----------------------------------------------------------------------------------------------------------------- total


@kernel
def same_time(changes, first):
    """End of the run of changes that have the time of change `first`."""
    time = load_i64(change_at(changes, first), CHANGE_TIME)
    last = first + 1
    count = load_i64(changes, LIST_COUNT)
    while last < count and load_i64(change_at(changes, last), CHANGE_TIME) == time:
        last += 1
    return last


@entry()
def next_tick(work):
    tick = load_i64(work, WORK_TICK) + 1
    store_i64(work, WORK_TICK, tick)
    return tick


@kernel
def flush_distinct(ctl, work, collection, spare, counts):
    """Derived rows (total model) become changes, round by round; false with CTL_ERROR set."""
    derived = load_i64(collection, CO_DERIVED)
    if load_i64(collection, CO_FRESH) != 0:
        return flush_fresh(ctl, collection)
    if not enter_indexes(ctl, collection) or not sort_changes(ctl, derived, spare, counts):
        return False
    first = 0
    while first < load_i64(derived, LIST_COUNT):
        last = same_time(derived, first)
        if last == first + 1:
            done = flush_single(ctl, collection, change_at(derived, first))
        else:
            done = flush_round(ctl, collection, derived, first, last, next_tick(work))
        if not done:
            return False
        first = last
    list_empty(ctl, derived)
    return True


@kernel
def flush_single(ctl, collection, change):
    """`flush_round` of a round with one change."""
    row = load_i64(change, CHANGE_ROW)
    time = load_i64(change, CHANGE_TIME)
    counts = load_i64(collection, CO_COUNTS)
    before = load_i64(counts, row)
    after = before + load_i64(change, CHANGE_DIFF)
    store_i64(counts, row, after)
    if (before > 0) != (after > 0) and not announce(ctl, collection, row, time, 1 if after > 0 else -1):
        return False
    return after > 0 or doom(ctl, collection, row)


@kernel
def flush_fresh(ctl, collection):
    """`flush_distinct` of a fresh collection, whose counts are there already; false with CTL_ERROR set."""
    counts = load_i64(collection, CO_COUNTS)
    for row in range(load_i64(collection, REL_ROWS)):
        if load_i64(counts, row) <= 0 and not doom(ctl, collection, row):
            return False
    log_fresh(collection)
    return enter_indexes(ctl, collection)


@kernel
def flush_round(ctl, collection, derived, first, last, tick):
    """The changes [first, last) of one round: counts first, then the rows whose presence differs."""
    counts = load_i64(collection, CO_COUNTS)
    stamps = load_i64(collection, CO_STAMPS)
    touched = load_i64(collection, CO_TOUCHED)
    store_i64(touched, LIST_COUNT, 0)
    for i in range(first, last):
        change = change_at(derived, i)
        row = load_i64(change, CHANGE_ROW)
        if load_i32(stamps, row) != tick:
            store_i32(stamps, row, tick)
            if not list_push(ctl, touched, row) or not list_push(ctl, touched, load_i64(counts, row)):
                return False
        store_i64(counts, row, load_i64(counts, row) + load_i64(change, CHANGE_DIFF))
    time = load_i64(change_at(derived, first), CHANGE_TIME)
    for i in range(0, load_i64(touched, LIST_COUNT), 2):
        row = load_i64(load_i64(touched, LIST_DATA), i)
        before = load_i64(load_i64(touched, LIST_DATA), i + 1) > 0
        after = load_i64(counts, row) > 0
        if before != after and not announce(ctl, collection, row, time, 1 if after else -1):
            return False
        if not after and not doom(ctl, collection, row):
            return False
    return True


@kernel
def doom(ctl, collection, row):
    """Marks a row for removal when the batch settles, and, in a fresh collection, as absent; false with CTL_ERROR set."""
    outer = load_i64(collection, CO_OUTER)
    if load_i64(collection, CO_QUIET) != 0:
        put_bit(load_i64(outer, HI_BITS), row)
    elif get_bit(load_i64(outer, HI_BITS), row) == 0 and open_item(ctl, outer, row) == 0:
        return False
    return list_push(ctl, load_i64(collection, CO_DOOMED), row)


# --------------------------------------------------------------------------------------------------------------- partial


@kernel
def bucket_at(collection, iteration):
    return load_i64(collection, CO_BUCKETS) + iteration * (LIST_SIZE * 8)


@kernel
def schedule(ctl, collection, iteration, row):
    """Notes that a row must be looked at, at an iteration; false with CTL_ERROR set."""
    if iteration >= load_i64(collection, CO_BUCKET_COUNT) and not grow_buckets(ctl, collection, iteration + 1):
        return False
    bucket = bucket_at(collection, iteration)
    count = load_i64(bucket, LIST_COUNT)
    if count == 0 and not mark_iteration(ctl, load_i64(collection, CO_SCOPE), iteration):
        return False
    if not list_room(ctl, bucket, 1):
        return False
    store_i64(load_i64(bucket, LIST_DATA), count, row)
    store_i64(bucket, LIST_COUNT, count + 1)
    return True


@kernel
def grow_buckets(ctl, collection, wanted):
    old = load_i64(collection, CO_BUCKET_COUNT)
    new = max(wanted, old + (old >> 1), 16)
    moved = resize(ctl, load_i64(collection, CO_BUCKETS), old * LIST_SIZE * 8, new * LIST_SIZE * 8)
    if moved == 0:
        return False
    store_i64(collection, CO_BUCKETS, moved)
    store_i64(collection, CO_BUCKET_COUNT, new)
    for number in range(old, new):
        for word in range(LIST_SIZE):
            store_i64(bucket_at(collection, number), word, 0)
        store_i64(bucket_at(collection, number), LIST_WORDS, 1)
    return True


@entry()
def mark_iteration(ctl, scope, iteration):
    """Notes that some collection of the scope has something to do at an iteration."""
    words = load_i64(scope, SC_BIT_WORDS)
    if iteration >> 6 >= words:
        new = max((iteration >> 6) + 1, words + (words >> 1), 8)
        moved = resize(ctl, load_i64(scope, SC_BITS), words * 8, new * 8)
        if moved == 0:
            return False
        for word in range(words, new):
            store_i64(moved, word, 0)
        store_i64(scope, SC_BITS, moved)
        store_i64(scope, SC_BIT_WORDS, new)
    bits = load_i64(scope, SC_BITS)
    store_i64(bits, iteration >> 6, load_i64(bits, iteration >> 6) | (1 << (iteration & 63)))
    if iteration > load_i64(scope, SC_LAST):
        store_i64(scope, SC_LAST, iteration)
    return True


@kernel
def support_at(collection, number):
    """Address of a support entry by its number plus one."""
    return load_i64(load_i64(collection, CO_ENTRIES), LIST_DATA) + (number - 1) * (SUPPORT_SIZE * 8)


@kernel
def add_support(ctl, collection, row, iteration, diff):
    """Adds derivations of a row at an iteration and sees to it that it is looked at then; false with CTL_ERROR set. The entries
    of a row ascend."""
    heads = load_i64(collection, CO_SUPPORT)
    before = 0
    at = load_i32(heads, row)
    while at != 0:
        word = load_i64(support_at(collection, at), SUPPORT_AT)
        if word & 0xFFFFFFFF >= iteration:
            break
        before = at
        at = word >> 32
    if at != 0:
        entry = support_at(collection, at)
        if load_i64(entry, SUPPORT_AT) & 0xFFFFFFFF == iteration:
            count = load_i64(entry, SUPPORT_NEW)
            store_i64(entry, SUPPORT_NEW, count + diff)
            return count != load_i64(entry, SUPPORT_OLD) or wake(ctl, collection, iteration, row)
    number = pool_take(ctl, load_i64(collection, CO_ENTRIES)) + 1
    if number == 0:
        return False
    entry = support_at(collection, number)
    store_i64(entry, SUPPORT_AT, iteration | (at << 32))
    store_i64(entry, SUPPORT_OLD, 0)
    store_i64(entry, SUPPORT_NEW, diff)
    if before == 0:
        store_i32(heads, row, number)
    else:
        previous = support_at(collection, before)
        store_i64(previous, SUPPORT_AT, (load_i64(previous, SUPPORT_AT) & 0xFFFFFFFF) | (number << 32))
    return wake(ctl, collection, iteration, row)


@kernel
def wake(ctl, collection, iteration, row):
    """Has a row whose derivations at an iteration differ looked at then, unless it cannot matter; false with CTL_ERROR set."""
    if not is_outdone(collection, row, iteration):
        return schedule(ctl, collection, iteration, row)
    tick = load_i64(load_i64(collection, CO_SCOPE), SC_ROUND_TICK)
    stamps = load_i64(collection, CO_STAMPS)
    if load_i32(stamps, row) >= tick:
        return True
    store_i32(stamps, row, tick)
    return list_push(ctl, load_i64(collection, CO_TOUCHED), row)


@kernel
def gather_bucket(ctl, scope, collection, iteration):
    """Leaves each row of a bucket once at its front; returns how many, -1 on error.

    Rows met for the first time in this round are noted as touched."""
    tick = load_i64(scope, SC_TICK)
    round_tick = load_i64(scope, SC_ROUND_TICK)
    stamps = load_i64(collection, CO_STAMPS)
    touched = load_i64(collection, CO_TOUCHED)
    heads = load_i64(collection, CO_SUPPORT)
    bucket = bucket_at(collection, iteration)
    data = load_i64(bucket, LIST_DATA)
    count = load_i64(bucket, LIST_COUNT)
    rows = 0
    for i in range(count):
        if i + AHEAD < count:
            prefetch(stamps + load_i64(data, i + AHEAD) * 4)
            prefetch(heads + load_i64(data, i + AHEAD) * 4)
        row = load_i64(data, i)
        stamp = load_i32(stamps, row)
        if stamp < round_tick and not list_push(ctl, touched, row):
            return -1
        if stamp != tick:
            store_i32(stamps, row, tick)
            store_i64(data, rows, row)
            rows += 1
    return rows


@kernel
def process_distinct(ctl, scope, collection, iteration, time):
    """The rows of a bucket become changes of this iteration; false with CTL_ERROR set."""
    if iteration >= load_i64(collection, CO_BUCKET_COUNT):
        return True
    rows = gather_bucket(ctl, scope, collection, iteration)
    data = load_i64(bucket_at(collection, iteration), LIST_DATA)
    for i in range(rows):
        if not evaluate_row(ctl, collection, load_i64(data, i), iteration, time):
            return False
    list_empty(ctl, bucket_at(collection, iteration))
    return rows >= 0


@kernel
def evaluate_row(ctl, collection, row, iteration, time):
    """The change of a row's presence at an iteration; it is looked at again where its history goes on differently."""
    old_before = 0
    new_before = 0
    old_after = 0
    new_after = 0
    at = load_i32(load_i64(collection, CO_SUPPORT), row)
    later = -1
    while at != 0:
        entry = support_at(collection, at)
        word = load_i64(entry, SUPPORT_AT)
        place = word & 0xFFFFFFFF
        if place > iteration:
            later = place
            break
        old_after += load_i64(entry, SUPPORT_OLD)
        new_after += load_i64(entry, SUPPORT_NEW)
        if place < iteration:
            old_before = old_after
            new_before = new_after
        at = word >> 32
    now = (1 if new_after > 0 else 0) - (1 if old_after > 0 else 0)
    if now != 0 and later >= 0 and not schedule(ctl, collection, later, row):
        return False
    out = now - (1 if new_before > 0 else 0) + (1 if old_before > 0 else 0)
    if out == 0:
        return True
    if not add_entry(ctl, load_i64(collection, CO_INNER), row, time, out):
        return False
    return push_change(ctl, load_i64(collection, CO_INNER_LOG), row, time, out, 0)


@kernel
def end_distinct(ctl, collection, time):
    """Ends a round: counts settle, rows keep when they are present, and net changes go out; false with CTL_ERROR set."""
    touched = load_i64(collection, CO_TOUCHED)
    for i in range(load_i64(touched, LIST_COUNT)):
        if not end_row(ctl, collection, load_i64(load_i64(touched, LIST_DATA), i), time):
            return False
    list_empty(ctl, touched)
    log_fresh(collection)
    return True


@kernel
def end_row(ctl, collection, row, time):
    """`end_distinct` of one row."""
    inner = load_i64(collection, CO_INNER)
    drop_inner(inner, row)
    heads = load_i64(collection, CO_SUPPORT)
    pool = load_i64(collection, CO_ENTRIES)
    before = 0
    old = 0
    new = 0
    flips = 0
    only = 0
    at = load_i32(heads, row)
    while at != 0:
        entry = support_at(collection, at)
        word = load_i64(entry, SUPPORT_AT)
        count = load_i64(entry, SUPPORT_NEW)
        was = new > 0
        old += load_i64(entry, SUPPORT_OLD)
        new += count
        if was != (new > 0):
            flips += 1
            if flips == 1:
                only = word & 0xFFFFFFFF
            elif not add_flip(ctl, inner, row, flips, only, word & 0xFFFFFFFF):
                return False
        store_i64(entry, SUPPORT_OLD, count)
        if count != 0:
            before = at
        else:
            if before == 0:
                store_i32(heads, row, word >> 32)
            else:
                previous = support_at(collection, before)
                store_i64(previous, SUPPORT_AT, (load_i64(previous, SUPPORT_AT) & 0xFFFFFFFF) | (word >> 32 << 32))
            pool_give(pool, at - 1)
        at = word >> 32
    if flips == 1 and not settle_inner(inner, row, only):
        return False
    if flips == 0 and not absent_inner(ctl, inner, row):
        return False
    if (old > 0) != (new > 0) and not announce(ctl, collection, row, time, 1 if new > 0 else -1):
        return False
    return new > 0 or doom(ctl, collection, row)


@kernel
def drop_inner(history, row):
    """Frees a row's entries, if it has any; its item stays."""
    if get_bit(load_i64(history, HI_BITS), row) != 0:
        drop_entries(history, item_of(history, row))


@kernel
def add_flip(ctl, history, row, flips, first, iteration):
    """Writes the second and later changes of a row's presence along its iterations; false with CTL_ERROR set."""
    if flips == 2:
        if get_bit(load_i64(history, HI_BITS), row) == 0 and open_item(ctl, history, row) == 0:
            return False
        if not chain_entry(ctl, history, item_of(history, row), first, 1):
            return False
    return chain_entry(ctl, history, item_of(history, row), iteration, -1 if flips % 2 == 0 else 1)


@kernel
def settle_inner(history, row, iteration):
    """The row is present from an iteration on: it needs no item."""
    if get_bit(load_i64(history, HI_BITS), row) != 0:
        close_item(history, row)
    store_i32(load_i64(history, HI_ITERS), row, iteration)
    return True


@kernel
def absent_inner(ctl, history, row):
    """The row is present at no iteration: an item without entries."""
    store_i32(load_i64(history, HI_ITERS), row, NEVER)
    return get_bit(load_i64(history, HI_BITS), row) != 0 or open_item(ctl, history, row) != 0


# ---------------------------------------------------------------------------------------------------------------- settle


@kernel
def is_needed(collection, row):
    """Whether something besides its presence keeps a row: derivations, or iterations at which it is present."""
    support = load_i64(collection, CO_SUPPORT)
    if support != 0 and load_i32(support, row) != 0:
        return True
    counts = load_i64(collection, CO_COUNTS)
    if counts != 0 and load_i64(counts, row) != 0:
        return True
    inner = load_i64(collection, CO_INNER)
    if inner == 0:
        return False
    if get_bit(load_i64(inner, HI_BITS), row) == 0:
        return load_i32(load_i64(inner, HI_ITERS), row) != NEVER
    return load_i64(item_of(inner, row), ITEM_HEAD) != 0


@kernel
def settle_row(ctl, collection, row):
    """What is left of a row after a batch; false with CTL_ERROR set."""
    if get_bit(load_i64(collection, CO_ALIVE), row) == 0:
        return True
    outer = load_i64(collection, CO_OUTER)
    if get_bit(load_i64(outer, HI_BITS), row) == 0:
        return True
    here = presence(outer, row, 9223372036854775807) > 0
    drop_entries(outer, item_of(outer, row))
    if here:
        close_item(outer, row)
        return True
    if is_needed(collection, row):
        return True
    close_item(outer, row)
    inner = load_i64(collection, CO_INNER)
    if inner != 0 and get_bit(load_i64(inner, HI_BITS), row) != 0:
        close_item(inner, row)
    return remove_row(ctl, collection, row)


@kernel
def settle_quiet(ctl, collection, rows, words):
    """Removes the absent ones of rows listed as the first of so many words, unless something keeps them; false with CTL_ERROR
    set."""
    bits = load_i64(load_i64(collection, CO_OUTER), HI_BITS)
    inner = load_i64(collection, CO_INNER)
    data = load_i64(rows, LIST_DATA)
    if data == 0:
        return True
    for i in range(load_i64(rows, LIST_COUNT)):
        row = load_i64(data, i * words)
        if get_bit(bits, row) != 0 and get_bit(load_i64(collection, CO_ALIVE), row) != 0:
            if inner != 0:
                if is_needed(collection, row):
                    continue
                if get_bit(load_i64(inner, HI_BITS), row) != 0:
                    close_item(inner, row)
            clear_bit(bits, row)
            if not remove_row(ctl, collection, row):
                return False
    return True


@kernel
def warm_removal(collection, item):
    """Asks for what removing the rows of later items will touch: first their values, then their groups, then their slabs."""
    columns = load_i64(collection, REL_COLUMNS)
    far = load_i64(item, 3 * STRIDE * ITEM_SIZE + ITEM_ROW)
    for c in range(load_i64(collection, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        prefetch(load_i64(column, COL_DATA) + far * load_i64(column, COL_WIDTH))
    indexes = load_i64(collection, CO_INDEXES)
    for i in range(load_i64(collection, CO_INDEX_COUNT)):
        warm_group(load_i64(indexes, i), load_i64(item, 2 * STRIDE * ITEM_SIZE + ITEM_ROW))
        warm_slab(load_i64(indexes, i), load_i64(item, STRIDE * ITEM_SIZE + ITEM_ROW))


@kernel
def settle_all(ctl, collection):
    """`settle` of a collection without an inner history: no item outlives the batch; false with CTL_ERROR set."""
    outer = load_i64(collection, CO_OUTER)
    bits = load_i64(outer, HI_BITS)
    items = load_i64(outer, HI_ITEMS)
    for i in range(load_i64(items, LIST_COUNT)):
        if i + 3 * STRIDE < load_i64(items, LIST_COUNT):
            warm_removal(collection, load_i64(items, LIST_DATA) + i * (ITEM_SIZE * 8))
        row = load_i64(load_i64(items, LIST_DATA), i * ITEM_SIZE + ITEM_ROW)
        here = presence(outer, row, 9223372036854775807) > 0
        if not here and not remove_row(ctl, collection, row):
            return False
    for i in range(load_i64(items, LIST_COUNT)):
        clear_bit(bits, load_i64(load_i64(items, LIST_DATA), i * ITEM_SIZE + ITEM_ROW))
    forget_items(outer)
    return True


@kernel
def settle_some(ctl, collection):
    """`settle` of a collection of a recursive scope, where items may stay; false with CTL_ERROR set."""
    log = load_i64(collection, CO_LOG)
    outer = load_i64(collection, CO_OUTER)
    doomed = load_i64(collection, CO_DOOMED)
    if load_i64(collection, CO_FRESH) != 0:
        items = load_i64(outer, HI_ITEMS)
        for i in range(load_i64(items, LIST_COUNT)):
            if not list_push(ctl, doomed, load_i64(load_i64(items, LIST_DATA), i * ITEM_SIZE + ITEM_ROW)):
                return False
    else:
        for i in range(load_i64(log, LIST_COUNT)):
            if not settle_row(ctl, collection, load_i64(change_at(log, i), CHANGE_ROW)):
                return False
        born = load_i64(collection, CO_BORN)
        for i in range(load_i64(born, LIST_COUNT)):
            if not settle_row(ctl, collection, load_i64(load_i64(born, LIST_DATA), i)):
                return False
    for i in range(load_i64(doomed, LIST_COUNT)):
        if not settle_row(ctl, collection, load_i64(load_i64(doomed, LIST_DATA), i)):
            return False
    return True


@entry()
def settle(ctl, collection):
    """Ends a batch: rounds are forgotten, absent rows removed; false with CTL_ERROR set. The change logs stay."""
    outer = load_i64(collection, CO_OUTER)
    inner = load_i64(collection, CO_INNER)
    doomed = load_i64(collection, CO_DOOMED)
    born = load_i64(collection, CO_BORN)
    if load_i64(collection, CO_GROUPED) != 0:
        done = True
    elif load_i64(collection, CO_QUIET) != 0:
        done = settle_quiet(ctl, collection, load_i64(collection, CO_LOG), CHANGE_SIZE)
        done = done and settle_quiet(ctl, collection, doomed, 1) and settle_quiet(ctl, collection, born, 1)
    elif inner == 0:
        done = settle_all(ctl, collection)
    else:
        done = settle_some(ctl, collection)
    if not done:
        return False
    list_again(ctl, doomed)
    list_again(ctl, born)
    store_i64(collection, CO_INDEXED, 0)
    store_i64(outer, HI_BASE, 0)
    if inner != 0:
        store_i64(inner, HI_BASE, 0)
        list_empty(ctl, load_i64(collection, CO_INNER_LOG))
    if load_i64(collection, CO_FRESH) != 0:
        store_i64(collection, CO_FRESH, 0)
        return trim_rows(ctl, collection)
    return leave_base(ctl, collection)


@kernel
def begin(ctl, collection, rounds):
    """Begins a batch of so many rounds: logs are empty, and a collection without rows is fresh if there is one round."""
    list_again(ctl, load_i64(collection, CO_LOG))
    live = load_i64(with_rows(collection), CO_LIVE)
    store_i64(collection, CO_OLD, live)
    if live == 0 and rounds == 1:
        # Row numbers begin anew: all rows are those of this batch.
        store_i64(collection, REL_ROWS, 0)
        store_i64(collection, CO_FREE_COUNT, 0)
        drop_base(ctl, collection)
        list_free(ctl, load_i64(collection, CO_LOG))
        store_i64(collection, CO_FRESH, 1)
        store_i64(load_i64(collection, CO_OUTER), HI_BASE, ROUND)
        inner = load_i64(collection, CO_INNER)
        if inner != 0:
            store_i64(inner, HI_BASE, ROUND)
