"""Changes of collections: rows become present or absent for the rest of the world; derived rows of the total model.

There rows are derived at rounds, and a row is present where its count of derivations is positive. (Of inputs: input_changes.py;
rows derived at iterations, too: distinct.py; what is left when a batch is over: batches.py.)
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.bits import clear_bit, get_bit, put_bit
from dlog.engine.kernels.incremental.store.histories import add_entry
from dlog.engine.kernels.incremental.store.history_items import open_item
from dlog.engine.kernels.incremental.store.index_entering import enter_indexes
from dlog.engine.kernels.incremental.store.lists import list_empty, list_push, push_change, sort_changes
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Work
from dlog.engine.kernels.row_structs import Change, Changes

ROWS_AHEAD = 24
"""Changes between one of which the row's count is asked for and one that is counted."""


@kernel
def announce(ctl: Control, collection: Collection, row, time, diff):
    """A row becomes present (+1) or absent (-1) for the rest of the world; false with ctl.error set."""
    outer = collection.outer
    if collection.no_readers != 0:
        fresh = collection.fresh != 0
        # What has changed without being logged could not be taken back.
        if not fresh and not push_change(ctl, collection.log, row, time, diff, 0):
            return False
        if diff > 0:
            clear_bit(outer.bits, row)
        else:
            put_bit(outer.bits, row)
        return not fresh or diff > 0 or list_push(ctl, collection.maybe_dead, row)
    if collection.fresh != 0:
        # All rows of a fresh collection count as its changes (`log_fresh`).
        if diff > 0 and get_bit(outer.bits, row) == 0:
            return True
        return add_entry(ctl, outer, row, time, diff)
    if not add_entry(ctl, outer, row, time, diff):
        return False
    return push_change(ctl, collection.log, row, time, diff, 0)


@kernel
def log_fresh(collection: Collection):
    """Makes all rows of a fresh collection its changes: a log without data stands for them (`is_implicit`)."""
    if collection.fresh != 0:
        log = collection.log
        log.count = with_rows(collection).rows


@kernel
def with_rows(collection: Collection) -> Collection:
    """The collection, or the groups that are its rows."""
    reduction = collection.grouped
    return collection if not reduction else reduction.groups


# ----------------------------------------------------------------------------------------------------------------- total


@kernel
def same_time(changes: Changes, first):
    """End of the run of changes that have the time of change `first`."""
    time = changes.data[first].time
    last = first + 1
    count = changes.count
    while last < count and changes.data[last].time == time:
        last += 1
    return last


@entry()
def next_tick(work: Work):
    tick = work.tick + 1
    work.tick = tick
    return tick


@kernel
def flush_distinct(ctl: Control, collection: Collection, spare: Changes, counts: Words):
    """Derived rows (total model) become changes, round by round; false with ctl.error set."""
    derived = collection.derivation.derived
    if collection.fresh != 0:
        return flush_fresh(ctl, collection)
    if not enter_indexes(ctl, collection) or not sort_changes(ctl, derived, spare, counts):
        return False
    first = 0
    while first < derived.count:
        last = same_time(derived, first)
        if last == first + 1:
            done = flush_single(ctl, collection, derived.data[first])
        else:
            done = flush_round(ctl, collection, derived, first, last)
        if not done:
            return False
        first = last
    list_empty(ctl, derived)
    return True


@kernel
def flush_single(ctl: Control, collection: Collection, change: Change):
    """`flush_round` of a round with one change."""
    row = change.row
    time = change.time
    counts = collection.derivation.counts
    before = counts[row]
    after = before + change.diff
    counts[row] = after
    if (before > 0) != (after > 0) and not announce(ctl, collection, row, time, 1 if after > 0 else -1):
        return False
    return after > 0 or doom(ctl, collection, row)


@kernel
def flush_fresh(ctl: Control, collection: Collection):
    """`flush_distinct` of a fresh collection, whose counts are there already; false with ctl.error set."""
    counts = collection.derivation.counts
    for row in range(collection.rows):
        if counts[row] <= 0 and not doom(ctl, collection, row):
            return False
    log_fresh(collection)
    return enter_indexes(ctl, collection)


@kernel
def flush_round(ctl: Control, collection: Collection, derived: Changes, first, last):
    """The changes [first, last) of one round: counts first, then the rows whose presence differs."""
    if not count_round(ctl, collection, derived, first, last):
        return False
    counts = collection.derivation.counts
    touched = collection.touched
    time = derived.data[first].time
    for i in range(0, touched.count, 2):
        row = touched.data[i]
        before = touched.data[i + 1] > 0
        after = counts[row] > 0
        if before != after and not announce(ctl, collection, row, time, 1 if after else -1):
            return False
        if not after and not doom(ctl, collection, row):
            return False
    return True


@kernel
def count_round(ctl: Control, collection: Collection, derived: Changes, first, last):
    """Adds the changes [first, last) of one round to the counts. `touched` has each of their rows once, with its count before.
    False with ctl.error set."""
    counts = collection.derivation.counts
    bits = collection.derivation.touched_bits
    touched = collection.touched
    touched.count = 0
    done = True
    at = first
    while done and at < last:
        if at + ROWS_AHEAD < last:
            prefetch(counts.address + derived.data[at + ROWS_AHEAD].row * 8)
        change = derived.data[at]
        row = change.row
        if get_bit(bits, row) == 0:
            done = list_push(ctl, touched, row) and list_push(ctl, touched, counts[row])
            if done:
                put_bit(bits, row)
        counts[row] += change.diff
        at += 1
    for i in range(0, touched.count, 2):
        clear_bit(bits, touched.data[i])
    return done


@kernel
def doom(ctl: Control, collection: Collection, row):
    """Marks a row for removal when the batch settles, and, in a fresh collection, as absent; false with ctl.error set."""
    outer = collection.outer
    if collection.no_readers != 0:
        put_bit(outer.bits, row)
    elif get_bit(outer.bits, row) == 0 and not open_item(ctl, outer, row):
        return False
    return list_push(ctl, collection.maybe_dead, row)
