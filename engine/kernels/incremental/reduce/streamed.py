"""Contributions to counts, sums and means whose results have no rows of their own (grouped.py).

Those of one path come by round, and change the groups as they come: nothing is kept between the path and the groups. Those of
several paths are sorted first. A round whose last contribution may still come is open: the groups it has touched are noted with
what they were before it.
"""

from __future__ import annotations

from dlog.engine.kernels.combine import Combine
from dlog.engine.kernels.core.jit import inlined, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.reduce.grouped import announce_group, group_word
from dlog.engine.kernels.incremental.reduce.sums import add_to_sum, sum_at, sum_value
from dlog.engine.kernels.incremental.reduce.warming import warm_sum
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.lists import list_push, list_room
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Reduction
from dlog.engine.kernels.row_structs import Change, ChangeArray, TouchedGroup
from dlog.engine.kernels.static.storage import behind

MAX_COMPARED_CONTRIBUTIONS = 8
"""Contributions of a round that are compared with each other."""
GROUPS_AHEAD = 16
"""Contributions, or groups that a round has touched, between one whose group is asked for and one that is looked at."""


@kernel
def stream_block(ctl: Control, reduction: Reduction, rows: Words, times: Words, diffs: Words, values: Words, n):
    """A block's contributions, `diffs` times `values` at `times` to groups `rows`; false with ctl.error set."""
    groups = reduction.groups
    if n > 1:
        for i in range(min(GROUPS_AHEAD, n)):
            warm_sum(groups, rows[i])
    if reduction.result.fresh != 0 and not reduction.missing:
        # All groups with members count as changes (`log_fresh`).
        op = reduction.op
        for i in range(n):
            warm_later(groups, rows, i, i + 1, n)
            add_to_sum(op, sum_at(groups, rows[i]), values[i], diffs[i])
        return True
    first = 0
    while first < n:
        time = times[first]
        opened = reduction.open
        if opened != time and opened != 0 and not close_round(ctl, reduction):
            return False
        if opened != time and reduction.op == Combine.COUNT and not reduction.missing:
            counted = count_rounds(ctl, reduction, rows, times, diffs, first, n)
            if counted < 0:
                return False
            if counted > first:
                first = counted
                continue
        last = end_of_round(times, first, n)
        if opened == time or last == n or last - first > MAX_COMPARED_CONTRIBUTIONS:
            done = extend_round(ctl, reduction, rows, time, diffs, values, first, last, n)
        else:
            warm_later(groups, rows, first, last, n)
            done = whole_round(ctl, reduction, rows, time, diffs, values, first, last)
        if not done:
            return False
        first = last
    return True


@inlined
def warm_later(groups: Collection, rows: Words, first, last, n):
    """While contributions [first, last) are gone through, asks for the groups of as many that come later in the block."""
    for i in range(first + GROUPS_AHEAD, min(last + GROUPS_AHEAD, n)):
        warm_sum(groups, rows[i])


@kernel
def end_of_round(times: Words, first, n):
    """Where contributions of the time of the one at `first` end."""
    last = first + 1
    while last < n and times[last] == times[first]:
        last += 1
    return last


@kernel
def count_rounds(ctl: Control, reduction: Reduction, rows: Words, times: Words, diffs: Words, first, n):
    """`whole_round` of a count that nobody misses, for all rounds with few contributions from `first` on; returns where one
    begins that is not whole or has many, -1 with ctl.error set. Most rounds have one or two."""
    log = reduction.result.log
    if not list_room(ctl, log, n - first + 1):
        return -1
    groups = reduction.groups
    sums = groups.grouping.sums
    start = log.data
    entry = start[log.count]
    at = first
    while at + 1 < n:
        time = times[at]
        group = rows[at]
        diff = diffs[at]
        if times[at + 1] != time:
            last = at + 1
            entry = count_group(ctl, groups, sums, group, time, diff, entry)
        elif at + 2 < n and times[at + 2] != time:
            last = at + 2
            other = rows[at + 1]
            if other == group:
                diff += diffs[at + 1]
            else:
                entry = count_group(ctl, groups, sums, other, time, diffs[at + 1], entry)
            entry = count_group(ctl, groups, sums, group, time, diff, entry)
        else:
            last = end_of_round(times, at, n)
            if last == n or last - at > MAX_COMPARED_CONTRIBUTIONS:
                break
            entry = count_few(ctl, groups, sums, rows, time, diffs, at, last, entry)
        warm_later(groups, rows, at, last, n)
        at = last
    if ctl.error != 0:
        return -1
    log.count = (entry.address - start.address) // (Change.size)
    return at


@kernel
def count_few(
    ctl: Control, groups: Collection, sums: Words, rows: Words, time, diffs: Words, first, last, entry: Change
) -> Change:
    """Writes the entries of a round with few contributions; returns where the next one goes. First each group has an entry with
    its members before; loops that end early are not made into those of vectors, which take longer for so few."""
    entries = ChangeArray(entry.address)
    count = 0
    for i in range(first, last):
        group = rows[i]
        at = 0
        while at < count and entries[at].row != group:
            at += 1
        before = sums[group]
        if at == count:
            entries[at].row = group
            entries[at].diff = before
            count += 1
        sums[group] = before + diffs[i]
    for at in range(count):
        group = entries[at].row
        before = entries[at].diff
        entry = note_count(ctl, groups, group, time, before, sums[group], entry)
    return entry


@inlined
def count_group(ctl: Control, groups: Collection, sums: Words, group, time, diff, entry: Change) -> Change:
    """Writes the log's entry of a group that gets so many members (its one word in `sums`); returns where the next one goes.
    ctl.error says whether memory did not suffice."""
    before = sums[group]
    after = before + diff
    sums[group] = after
    return note_count(ctl, groups, group, time, before, after, entry)


@inlined
def note_count(ctl: Control, groups: Collection, group, time, before, after, entry: Change) -> Change:
    """Writes the log's entry of a group that had so many members and has so many now; returns where the next one goes."""
    if after <= 0:
        list_push(ctl, groups.maybe_dead, group)
    entry.row = group_word(group, before > 0, after > 0)
    entry.time = time
    entry.diff = before
    entry.value = after
    # One that changes nothing is overwritten by the next.
    return Change(entry.address + (Change.size if after != before and (before > 0 or after > 0) else 0))


@kernel
def flush_grouped(ctl: Control, reduction: Reduction):
    """All contributions of several paths, in the order of their rounds; false with ctl.error set."""
    derived = reduction.derived
    rows = ctl.scratch
    times = behind(rows, BLOCK)
    diffs = behind(times, BLOCK)
    values = behind(diffs, BLOCK)
    for first in range(0, derived.count, BLOCK):
        n = min(BLOCK, derived.count - first)
        for i in range(n):
            change = derived.data[first + i]
            rows[i] = change.row
            times[i] = change.time
            diffs[i] = change.diff
            values[i] = change.value
        if not stream_block(ctl, reduction, rows, times, diffs, values, n):
            return False
    return end_stream(ctl, reduction)


@kernel
def whole_round(ctl: Control, reduction: Reduction, rows: Words, time, diffs: Words, values: Words, first, last):
    """All of a round's few contributions; false with ctl.error set."""
    groups = reduction.groups
    op = reduction.op
    for i in range(first, last):
        group = rows[i]
        if i > first and is_among(rows, first, i, group):
            continue
        place = sum_at(groups, group)
        had = place.count > 0
        before = sum_value(op, place) if had else 0
        add_to_sum(op, place, values[i], diffs[i])
        for other in range(i + 1, last):
            if rows[other] == group:
                add_to_sum(op, place, values[other], diffs[other])
        if not announce_group(ctl, reduction, group, time, had, before):
            return False
    return True


@kernel
def is_among(rows: Words, first, last, wanted):
    for i in range(first, last):
        if rows[i] == wanted:
            return True
    return False


@kernel
def extend_round(ctl: Control, reduction: Reduction, rows: Words, time, diffs: Words, values: Words, first, last, n):
    """More contributions, of a block's n, of the open round, which is opened if there is none; false with ctl.error set."""
    groups = reduction.groups
    op = reduction.op
    work = reduction.work
    stamps = groups.stamps
    touched = groups.touched
    if reduction.open != time:
        reduction.open = time
        touched.count = 0
        work.tick += 1
    tick = work.tick
    for i in range(first, last):
        warm_later(groups, rows, i, i + 1, n)
        group = rows[i]
        place = sum_at(groups, group)
        if stamps[group] != tick:
            stamps[group] = tick
            members = place.count
            before = sum_value(op, place) if members > 0 else 0
            # The words of a `TouchedGroup`.
            noted = list_push(ctl, touched, group) and list_push(ctl, touched, members) and list_push(ctl, touched, before)
            if not noted:
                return False
        add_to_sum(op, place, values[i], diffs[i])
    return True


@kernel
def close_round(ctl: Control, reduction: Reduction):
    """What became of the groups that the open round touched; false with ctl.error set."""
    time = reduction.open
    touched = reduction.groups.touched
    reduction.open = 0
    sums = reduction.groups.grouping.sums
    size = reduction.groups.grouping.sum_words * 8
    step = TouchedGroup.size >> 3
    for i in range(0, touched.count, step):
        if i + GROUPS_AHEAD * step < touched.count:
            prefetch(sums.address + touched.data[i + GROUPS_AHEAD * step] * size)
        noted = TouchedGroup(touched.data.address + i * 8)
        if not announce_group(ctl, reduction, noted.group, time, noted.members > 0, noted.value):
            return False
    touched.count = 0
    return True


@kernel
def end_stream(ctl: Control, reduction: Reduction):
    """Ends the batch's contributions; false with ctl.error set."""
    if reduction.result.fresh == 0 or reduction.missing:
        return reduction.open == 0 or close_round(ctl, reduction)
    groups = reduction.groups
    alive = groups.alive
    for first in range(0, groups.rows, 64):
        # Most groups may be gone that there have been.
        for group in range(first, min(first + 64, groups.rows) if alive[first >> 6] != 0 else first):
            empty = get_bit(alive, group) != 0 and sum_at(groups, group).count == 0
            if empty and not list_push(ctl, groups.maybe_dead, group):
                return False
    return True
