"""Reductions over rounds: aggregates, and what lattice relations inside recursion (lattices.py) share with them.

A reduction has `groups` (a collection of keys) and a `result` (a collection of keys and value, see results.py). Counts, sums
and means keep three words per group: a sum, what it lost to rounding (floats), how many. Minima and maxima (best.py) keep
`candidates`: rows (group, value) with their derivations, in a list per group.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.loop.changes import log_fresh, next_tick, same_time
from dlog.engine.kernels.incremental.reduce.best import best_of_all, best_round
from dlog.engine.kernels.incremental.reduce.group_links import current_of, head_of
from dlog.engine.kernels.incremental.reduce.results import replace_result, result_row
from dlog.engine.kernels.incremental.reduce.streamed import flush_grouped
from dlog.engine.kernels.incremental.reduce.sums import add_to_sum, sum_at, sum_value
from dlog.engine.kernels.incremental.reduce.warming import AHEAD, warm_current, warm_sum
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.collections import remove_row, trim_rows
from dlog.engine.kernels.incremental.store.histories import room_for_items
from dlog.engine.kernels.incremental.store.index_entering import enter_indexes
from dlog.engine.kernels.incremental.store.lists import list_empty, list_push, list_trim, sort_changes
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Reduction, Work
from dlog.engine.kernels.row_structs import Change, Changes
from dlog.engine.kernels.static.storage import clear_words


@kernel
def flush_reduction(ctl: Control, work: Work, reduction: Reduction, spare: Changes, counts: Words):
    """What was derived (total model) becomes changes of the result, round by round; false with ctl.error set."""
    derived = reduction.derived
    if not sort_changes(ctl, derived, spare, counts):
        return False
    groups = reduction.groups
    first = 0
    if reduction.result.grouped:
        if not flush_grouped(ctl, reduction):
            return False
        first = derived.count
    elif reduction.candidates and reduction.result.fresh != 0 and not best_of_all(ctl, reduction):
        return False
    while first < derived.count:
        last = same_time(derived, first)
        if reduction.candidates:
            done = best_round(ctl, reduction, derived, first, last, next_tick(work))
        elif last == first + 1:
            done = sum_single(ctl, reduction, derived.data[first])
        else:
            done = sum_round(ctl, reduction, derived, first, last, next_tick(work))
        if not done:
            return False
        first = last
    list_empty(ctl, derived)
    log_fresh(reduction.result)
    done = remove_groups(ctl, groups) and enter_indexes(ctl, reduction.result)
    return done and trim_fresh(ctl, reduction)


@kernel
def trim_fresh(ctl: Control, reduction: Reduction):
    """Gives back the room that the parts of a reduction with a fresh result reserved and did not use; false with ctl.error
    set."""
    if reduction.result.fresh == 0:
        return True
    candidates = reduction.candidates
    if candidates:
        entries = candidates.derivation.entries
        if not trim_rows(ctl, candidates) or not (entries.address == 0 or list_trim(ctl, entries)):
            return False
    return trim_rows(ctl, reduction.groups)


@kernel
def remove_groups(ctl: Control, groups: Collection):
    """Removes the groups that ended without members; false with ctl.error set."""
    maybe_dead = groups.maybe_dead
    for i in range(maybe_dead.count):
        group = maybe_dead.data[i]
        if is_empty(groups, group) and not remove_row(ctl, groups, group):
            return False
    list_empty(ctl, maybe_dead)
    return True


@kernel
def is_empty(groups: Collection, group):
    """Whether a living group has no result, no candidates and no members."""
    if get_bit(groups.alive, group) == 0 or current_of(groups, group) != 0:
        return False
    if groups.grouping.heads:
        return head_of(groups, group) == 0
    return sum_at(groups, group).count == 0


# ------------------------------------------------------------------------------------------------------------------ sums


@kernel
def sum_round(ctl: Control, reduction: Reduction, derived: Changes, first, last, tick):
    """One round of a count, sum or mean."""
    op = reduction.op
    groups = reduction.groups
    stamps = groups.stamps
    touched = groups.touched
    touched.count = 0
    for i in range(first, last):
        if i + AHEAD < last:
            warm_sum(groups, derived.data[i + AHEAD].row)
        change = derived.data[i]
        group = change.row
        if stamps[group] != tick:
            stamps[group] = tick
            if not list_push(ctl, touched, group):
                return False
        add_to_sum(op, sum_at(groups, group), change.value, change.diff)
    time = derived.data[first].time
    result = reduction.result
    plain = result.fresh | result.no_readers
    if touched.count > AHEAD and not room_for_items(ctl, result.outer, plain, 2 * touched.count):
        return False
    for i in range(touched.count):
        warm_current(reduction, touched.data, i, touched.count)
        if not update_sum(ctl, reduction, touched.data[i], time):
            return False
    return True


@kernel
def sum_single(ctl: Control, reduction: Reduction, change: Change):
    """`sum_round` of a round with one change."""
    group = change.row
    place = sum_at(reduction.groups, group)
    add_to_sum(reduction.op, place, change.value, change.diff)
    return update_sum(ctl, reduction, group, change.time)


@kernel
def update_sum(ctl: Control, reduction: Reduction, group, time):
    """The result of a group whose words changed; false with ctl.error set."""
    groups = reduction.groups
    place = sum_at(groups, group)
    row = -1
    if place.count > 0:
        row = result_row(ctl, reduction, group, sum_value(reduction.op, place))
        if row < 0:
            return False
    else:
        if place.count == 0:
            clear_words(Words(place.address), groups.grouping.sum_words)
        if not list_push(ctl, groups.maybe_dead, group):
            return False
    return replace_result(ctl, reduction, group, row, time)
