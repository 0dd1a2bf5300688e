"""Reductions over rounds: aggregates, and what lattice relations inside recursion (lattices.py) share with them.

A reduction has `groups` (a collection of keys) and a `result` (a collection of keys and value, one row per group at any time).
Counts, sums and means keep three words per group: a sum, what it lost to rounding (floats), how many. Minima and maxima keep
`candidates`: rows (group, value) with their derivations, in a list per group; while the best stays, nothing else is looked at.
Candidates of the `total` model have counts, and changes come by round.
"""

from __future__ import annotations

from dlog.engine.kernels.combine import dominates
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.loop.changes import announce, log_fresh, next_tick, same_time
from dlog.engine.kernels.incremental.reduce.candidate import (
    candidate_at,
    candidate_group,
    candidate_value,
    next_candidate,
    value_at,
)
from dlog.engine.kernels.incremental.reduce.candidates import unlink
from dlog.engine.kernels.incremental.reduce.group_links import current_of, first_candidate, head_of, set_current
from dlog.engine.kernels.incremental.reduce.streamed import flush_grouped
from dlog.engine.kernels.incremental.reduce.sums import add_to_sum, sum_at, sum_value
from dlog.engine.kernels.incremental.reduce.warming import (
    AHEAD,
    warm_best,
    warm_change,
    warm_current,
    warm_rivals,
    warm_sum,
    warm_unlinked,
)
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.collections import (
    add_values,
    cell,
    find_or_add,
    remove_row,
    trim_rows,
)
from dlog.engine.kernels.incremental.store.index_entering import enter_indexes
from dlog.engine.kernels.incremental.store.lists import list_empty, list_push, list_trim, push_change, sort_changes
from dlog.engine.kernels.incremental.store.slots import has_values, hash_values
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Reduction, Work
from dlog.engine.kernels.row_structs import Change, Changes
from dlog.engine.kernels.static.storage import clear_words


@kernel
def result_values(ctl: Control, reduction: Reduction, group, value) -> Words:
    """The result's row of a group with a value, in the worker's third scratch block: address of its words."""
    buffer = Words(ctl.scratch.address + 2 * BLOCK * 8)
    groups = reduction.groups
    keys = reduction.keys
    place = reduction.value
    for k in range(keys):
        buffer[k if k < place else k + 1] = cell(groups, k, group)
    buffer[place] = value
    return buffer


@kernel
def result_row(ctl: Control, reduction: Reduction, group, value):
    """The result's row of a group with a value, made if there is none; -1 with ctl.error set."""
    current = current_row(reduction, group, value)
    return current if current >= 0 else other_row(ctl, reduction, result_values(ctl, reduction, group, value))


@kernel
def current_row(reduction: Reduction, group, value):
    """The row of the group's present result, or -1 if that does not have a value."""
    result = reduction.result
    row = current_of(reduction.groups, group) - 1
    return row if row >= 0 and cell(result, reduction.value, row) == value else -1


@kernel
def other_row(ctl: Control, reduction: Reduction, values: Words):
    """The result's row with these values, which are no group's present result, made if there is none; -1 with ctl.error
    set."""
    result = reduction.result
    if result.unkeyed != 0:
        return add_values(ctl, result, values, 0)
    return find_or_add(ctl, result, values, hash_values(values, reduction.keys + 1))


@kernel
def candidate_result(ctl: Control, reduction: Reduction, group, candidate):
    """The result's row with a candidate's value, made if there is none; -1 with ctl.error set. Where it is not the group's
    present one, the candidate knows the one it had, which may have gone and be another by now."""
    candidates = reduction.candidates
    place = candidate_at(candidates, candidate)
    value = value_at(candidates, place)
    row = current_row(reduction, group, value)
    if row < 0:
        result = reduction.result
        values = result_values(ctl, reduction, group, value)
        row = place.row - 1
        alive = 0 <= row < result.rows and get_bit(result.alive, row) != 0
        if not alive or not has_values(result, row, values):
            row = other_row(ctl, reduction, values)
            place.row = row + 1
    return row


@kernel
def replace_result(ctl: Control, reduction: Reduction, group, row, time):
    """Makes `row` (-1: none) the group's result from `time` on; false with ctl.error set."""
    groups = reduction.groups
    result = reduction.result
    before = current_of(groups, group) - 1
    if before == row:
        return True
    set_current(groups, group, row + 1)
    missing = reduction.missing
    if before >= 0 and not announce(ctl, result, before, time, -1):
        return False
    if row >= 0 and not announce(ctl, result, row, time, 1):
        return False
    if not missing:
        return True
    if before < 0:
        return push_change(ctl, missing, row, time, -1, 0)
    if row < 0:
        return push_change(ctl, missing, before, time, 1, 0)
    return True


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


# ------------------------------------------------------------------------------------------------------------ candidates


@kernel
def best_round(ctl: Control, reduction: Reduction, derived: Changes, first, last, tick):
    """One round of a minimum or maximum. A group's word is its best candidate, plus one."""
    op = reduction.op
    groups = reduction.groups
    candidates = reduction.candidates
    best = groups.grouping.sums
    touched = groups.touched
    if not count_candidates(ctl, reduction, derived, first, last, tick):
        return False
    for i in range(touched.count):
        warm_best(reduction, touched.data, i, touched.count)
        group = touched.data[i]
        row = best[group] - 1
        if row >= 0 and derived_times(candidates, row) <= 0:
            best[group] = best_candidate(reduction, group) + 1
    for i in range(first, last):
        warm_rivals(reduction, derived, i, last)
        row = derived.data[i].row
        group = candidate_group(candidates, row)
        known = best[group] - 1
        if derived_times(candidates, row) > 0 and (known < 0 or beats(op, candidates, row, known)):
            best[group] = row + 1
    time = derived.data[first].time
    for i in range(touched.count):
        warm_best(reduction, touched.data, i, touched.count)
        warm_current(reduction, touched.data, i, touched.count)
        group = touched.data[i]
        known = best[group] - 1
        row = -1
        if known >= 0:
            row = candidate_result(ctl, reduction, group, known)
            if row < 0:
                return False
        elif not list_push(ctl, groups.maybe_dead, group):
            return False
        if not replace_result(ctl, reduction, group, row, time):
            return False
    return drop_candidates(ctl, reduction, derived, first, last)


@kernel
def count_candidates(ctl: Control, reduction: Reduction, derived: Changes, first, last, tick):
    """Adds the changes of a round to the candidates' counts and lists the groups touched."""
    groups = reduction.groups
    candidates = reduction.candidates
    stamps = groups.stamps
    touched = groups.touched
    touched.count = 0
    for i in range(first, last):
        warm_change(reduction, derived, i, last)
        change = derived.data[i]
        row = change.row
        place = candidate_at(candidates, row)
        place.count += change.diff
        group = place.group
        if stamps[group] != tick:
            stamps[group] = tick
            if not list_push(ctl, touched, group):
                return False
    return True


@kernel
def best_candidate(reduction: Reduction, group):
    """The best candidate with derivations of a group, or -1."""
    op = reduction.op
    candidates = reduction.candidates
    best = -1
    ordered = head_of(reduction.groups, group) > 0
    at = first_candidate(reduction.groups, group)
    while at != 0 and not (ordered and best >= 0):
        row = at - 1
        if derived_times(candidates, row) > 0 and (best < 0 or beats(op, candidates, row, best)):
            best = row
        at = next_candidate(candidates, row)
    return best


@kernel
def drop_candidates(ctl: Control, reduction: Reduction, derived: Changes, first, last):
    """Removes the candidates of a round that have no derivations left and are not derived later in this batch."""
    if last < derived.count:
        # A later round of the batch may name the same row: it is cleared away when the batch is over.
        maybe_dead = reduction.candidates.maybe_dead
        for i in range(first, last):
            if not list_push(ctl, maybe_dead, derived.data[i].row):
                return False
        return True
    maybe_dead = reduction.candidates.maybe_dead
    for i in range(maybe_dead.count):
        if not drop_candidate(ctl, reduction, maybe_dead.data[i]):
            return False
    maybe_dead.count = 0
    for i in range(first, last):
        warm_unlinked(reduction, derived, i, last)
        if not drop_candidate(ctl, reduction, derived.data[i].row):
            return False
    return True


@kernel
def drop_candidate(ctl: Control, reduction: Reduction, row):
    candidates = reduction.candidates
    group = candidate_group(candidates, row)
    return group < 0 or derived_times(candidates, row) != 0 or unlink(ctl, reduction, group, row)


@kernel
def derived_times(candidates: Collection, row):
    """How many derivations a candidate of the total model has."""
    return candidate_at(candidates, row).count


@kernel
def beats(op, candidates: Collection, row, other):
    return dominates(op, candidate_value(candidates, row), candidate_value(candidates, other))
