"""Reductions over rounds: aggregates, and what lattice relations inside recursion (lattices.py) share with them.

A reduction has `groups` (a collection of keys) and a `result` (a collection of keys and value, one row per group at any time).
Counts, sums and means keep three words per group: a sum, what it lost to rounding (floats), how many. Minima and maxima keep
`candidates`: rows (group, value) with their derivations, in a list per group; while the best stays, nothing else is looked at.
Candidates of the `total` model have counts, and changes come by round.
"""

from __future__ import annotations

from dlog.engine.kernels.combine import dominates
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, store_i32, store_i64
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
from dlog.engine.kernels.incremental.store.collections import (
    add_values,
    cell,
    enter_indexes,
    find_or_add,
    remove_row,
    trim_rows,
)
from dlog.engine.kernels.incremental.store.histories import get_bit
from dlog.engine.kernels.incremental.store.lists import change_at, list_empty, list_push, list_trim, push_change, sort_changes
from dlog.engine.kernels.incremental.store.slots import has_values, hash_values
from dlog.engine.kernels.layout import (
    BLOCK,
    CANDIDATE_COUNT,
    CANDIDATE_GROUP,
    CANDIDATE_ROW,
    CHANGE_DIFF,
    CHANGE_ROW,
    CHANGE_TIME,
    CHANGE_VALUE,
    CO_ALIVE,
    CO_DOOMED,
    CO_ENTRIES,
    CO_FRESH,
    CO_GROUPED,
    CO_HEADS,
    CO_STAMPS,
    CO_SUM_WORDS,
    CO_SUMS,
    CO_TOUCHED,
    CO_UNKEYED,
    CTL_SCRATCH,
    LIST_COUNT,
    LIST_DATA,
    RD_CANDIDATES,
    RD_DERIVED,
    RD_GROUPS,
    RD_KEYS,
    RD_MISSING,
    RD_OP,
    RD_RESULT,
    RD_VALUE,
    REL_ROWS,
    SUM_COUNT,
)


@kernel
def result_values(ctl, reduction, group, value):
    """The result's row of a group with a value, in the worker's third scratch block: address of its words."""
    buffer = load_i64(ctl, CTL_SCRATCH) + 2 * BLOCK * 8
    groups = load_i64(reduction, RD_GROUPS)
    keys = load_i64(reduction, RD_KEYS)
    place = load_i64(reduction, RD_VALUE)
    for k in range(keys):
        store_i64(buffer, k if k < place else k + 1, cell(groups, k, group))
    store_i64(buffer, place, value)
    return buffer


@kernel
def result_row(ctl, reduction, group, value):
    """The result's row of a group with a value, made if there is none; -1 with CTL_ERROR set."""
    current = current_row(reduction, group, value)
    return current if current >= 0 else other_row(ctl, reduction, result_values(ctl, reduction, group, value))


@kernel
def current_row(reduction, group, value):
    """The row of the group's present result, or -1 if that does not have a value."""
    result = load_i64(reduction, RD_RESULT)
    row = current_of(load_i64(reduction, RD_GROUPS), group) - 1
    return row if row >= 0 and cell(result, load_i64(reduction, RD_VALUE), row) == value else -1


@kernel
def other_row(ctl, reduction, values):
    """The result's row with these values, which are no group's present result, made if there is none; -1 with CTL_ERROR
    set."""
    result = load_i64(reduction, RD_RESULT)
    if load_i64(result, CO_UNKEYED) != 0:
        return add_values(ctl, result, values, 0)
    return find_or_add(ctl, result, values, hash_values(values, load_i64(reduction, RD_KEYS) + 1))


@kernel
def candidate_result(ctl, reduction, group, candidate):
    """The result's row with a candidate's value, made if there is none; -1 with CTL_ERROR set. Where it is not the group's
    present one, the candidate knows the one it had, which may have gone and be another by now."""
    candidates = load_i64(reduction, RD_CANDIDATES)
    place = candidate_at(candidates, candidate)
    value = value_at(candidates, place)
    row = current_row(reduction, group, value)
    if row < 0:
        result = load_i64(reduction, RD_RESULT)
        values = result_values(ctl, reduction, group, value)
        row = load_i32(place, CANDIDATE_ROW) - 1
        alive = 0 <= row < load_i64(result, REL_ROWS) and get_bit(load_i64(result, CO_ALIVE), row) != 0
        if not alive or not has_values(result, row, values):
            row = other_row(ctl, reduction, values)
            store_i32(place, CANDIDATE_ROW, row + 1)
    return row


@kernel
def replace_result(ctl, reduction, group, row, time):
    """Makes `row` (-1: none) the group's result from `time` on; false with CTL_ERROR set."""
    groups = load_i64(reduction, RD_GROUPS)
    result = load_i64(reduction, RD_RESULT)
    before = current_of(groups, group) - 1
    if before == row:
        return True
    set_current(groups, group, row + 1)
    missing = load_i64(reduction, RD_MISSING)
    if before >= 0 and not announce(ctl, result, before, time, -1):
        return False
    if row >= 0 and not announce(ctl, result, row, time, 1):
        return False
    if missing == 0:
        return True
    if before < 0:
        return push_change(ctl, missing, row, time, -1, 0)
    if row < 0:
        return push_change(ctl, missing, before, time, 1, 0)
    return True


@kernel
def flush_reduction(ctl, work, reduction, spare, counts):
    """What was derived (total model) becomes changes of the result, round by round; false with CTL_ERROR set."""
    derived = load_i64(reduction, RD_DERIVED)
    if not sort_changes(ctl, derived, spare, counts):
        return False
    groups = load_i64(reduction, RD_GROUPS)
    first = 0
    if load_i64(load_i64(reduction, RD_RESULT), CO_GROUPED) != 0:
        if not flush_grouped(ctl, reduction):
            return False
        first = load_i64(derived, LIST_COUNT)
    while first < load_i64(derived, LIST_COUNT):
        last = same_time(derived, first)
        if load_i64(reduction, RD_CANDIDATES) != 0:
            done = best_round(ctl, reduction, derived, first, last, next_tick(work))
        elif last == first + 1:
            done = sum_single(ctl, reduction, change_at(derived, first))
        else:
            done = sum_round(ctl, reduction, derived, first, last, next_tick(work))
        if not done:
            return False
        first = last
    list_empty(ctl, derived)
    log_fresh(load_i64(reduction, RD_RESULT))
    done = remove_groups(ctl, groups) and enter_indexes(ctl, load_i64(reduction, RD_RESULT))
    return done and trim_fresh(ctl, reduction)


@kernel
def trim_fresh(ctl, reduction):
    """Gives back the room that the parts of a reduction with a fresh result reserved and did not use; false with CTL_ERROR
    set."""
    if load_i64(load_i64(reduction, RD_RESULT), CO_FRESH) == 0:
        return True
    candidates = load_i64(reduction, RD_CANDIDATES)
    if candidates != 0:
        entries = load_i64(candidates, CO_ENTRIES)
        if not trim_rows(ctl, candidates) or not (entries == 0 or list_trim(ctl, entries)):
            return False
    return trim_rows(ctl, load_i64(reduction, RD_GROUPS))


@kernel
def remove_groups(ctl, groups):
    """Removes the groups that ended without members; false with CTL_ERROR set."""
    doomed = load_i64(groups, CO_DOOMED)
    for i in range(load_i64(doomed, LIST_COUNT)):
        group = load_i64(load_i64(doomed, LIST_DATA), i)
        if is_empty(groups, group) and not remove_row(ctl, groups, group):
            return False
    list_empty(ctl, doomed)
    return True


@kernel
def is_empty(groups, group):
    """Whether a living group has no result, no candidates and no members."""
    if get_bit(load_i64(groups, CO_ALIVE), group) == 0 or current_of(groups, group) != 0:
        return False
    if load_i64(groups, CO_HEADS) != 0:
        return head_of(groups, group) == 0
    return load_i64(sum_at(groups, group), SUM_COUNT) == 0
# ------------------------------------------------------------------------------------------------------------------ sums


@kernel
def sum_round(ctl, reduction, derived, first, last, tick):
    """One round of a count, sum or mean."""
    op = load_i64(reduction, RD_OP)
    groups = load_i64(reduction, RD_GROUPS)
    stamps = load_i64(groups, CO_STAMPS)
    touched = load_i64(groups, CO_TOUCHED)
    store_i64(touched, LIST_COUNT, 0)
    for i in range(first, last):
        change = change_at(derived, i)
        group = load_i64(change, CHANGE_ROW)
        if load_i32(stamps, group) != tick:
            store_i32(stamps, group, tick)
            if not list_push(ctl, touched, group):
                return False
        add_to_sum(op, sum_at(groups, group), load_i64(change, CHANGE_VALUE), load_i64(change, CHANGE_DIFF))
    time = load_i64(change_at(derived, first), CHANGE_TIME)
    for i in range(load_i64(touched, LIST_COUNT)):
        if not update_sum(ctl, reduction, load_i64(load_i64(touched, LIST_DATA), i), time):
            return False
    return True


@kernel
def sum_single(ctl, reduction, change):
    """`sum_round` of a round with one change."""
    group = load_i64(change, CHANGE_ROW)
    place = sum_at(load_i64(reduction, RD_GROUPS), group)
    add_to_sum(load_i64(reduction, RD_OP), place, load_i64(change, CHANGE_VALUE), load_i64(change, CHANGE_DIFF))
    return update_sum(ctl, reduction, group, load_i64(change, CHANGE_TIME))


@kernel
def update_sum(ctl, reduction, group, time):
    """The result of a group whose words changed; false with CTL_ERROR set."""
    groups = load_i64(reduction, RD_GROUPS)
    place = sum_at(groups, group)
    row = -1
    if load_i64(place, SUM_COUNT) > 0:
        row = result_row(ctl, reduction, group, sum_value(load_i64(reduction, RD_OP), place))
        if row < 0:
            return False
    else:
        if load_i64(place, SUM_COUNT) == 0:
            for word in range(load_i64(groups, CO_SUM_WORDS)):
                store_i64(place, word, 0)
        if not list_push(ctl, load_i64(groups, CO_DOOMED), group):
            return False
    return replace_result(ctl, reduction, group, row, time)
# ------------------------------------------------------------------------------------------------------------ candidates


@kernel
def best_round(ctl, reduction, derived, first, last, tick):
    """One round of a minimum or maximum. A group's word is its best candidate, plus one."""
    op = load_i64(reduction, RD_OP)
    groups = load_i64(reduction, RD_GROUPS)
    candidates = load_i64(reduction, RD_CANDIDATES)
    best = load_i64(groups, CO_SUMS)
    touched = load_i64(groups, CO_TOUCHED)
    if not count_candidates(ctl, reduction, derived, first, last, tick):
        return False
    for i in range(load_i64(touched, LIST_COUNT)):
        group = load_i64(load_i64(touched, LIST_DATA), i)
        row = load_i64(best, group) - 1
        if row >= 0 and derived_times(candidates, row) <= 0:
            store_i64(best, group, best_candidate(reduction, group) + 1)
    for i in range(first, last):
        row = load_i64(change_at(derived, i), CHANGE_ROW)
        group = candidate_group(candidates, row)
        known = load_i64(best, group) - 1
        if derived_times(candidates, row) > 0 and (known < 0 or beats(op, candidates, row, known)):
            store_i64(best, group, row + 1)
    time = load_i64(change_at(derived, first), CHANGE_TIME)
    for i in range(load_i64(touched, LIST_COUNT)):
        group = load_i64(load_i64(touched, LIST_DATA), i)
        known = load_i64(best, group) - 1
        row = -1
        if known >= 0:
            row = candidate_result(ctl, reduction, group, known)
            if row < 0:
                return False
        elif not list_push(ctl, load_i64(groups, CO_DOOMED), group):
            return False
        if not replace_result(ctl, reduction, group, row, time):
            return False
    return drop_candidates(ctl, reduction, derived, first, last)


@kernel
def count_candidates(ctl, reduction, derived, first, last, tick):
    """Adds the changes of a round to the candidates' counts and lists the groups touched."""
    groups = load_i64(reduction, RD_GROUPS)
    candidates = load_i64(reduction, RD_CANDIDATES)
    stamps = load_i64(groups, CO_STAMPS)
    touched = load_i64(groups, CO_TOUCHED)
    store_i64(touched, LIST_COUNT, 0)
    for i in range(first, last):
        change = change_at(derived, i)
        row = load_i64(change, CHANGE_ROW)
        place = candidate_at(candidates, row)
        store_i64(place, CANDIDATE_COUNT, load_i64(place, CANDIDATE_COUNT) + load_i64(change, CHANGE_DIFF))
        group = load_i32(place, CANDIDATE_GROUP)
        if load_i32(stamps, group) != tick:
            store_i32(stamps, group, tick)
            if not list_push(ctl, touched, group):
                return False
    return True


@kernel
def best_candidate(reduction, group):
    """The best candidate with derivations of a group, or -1."""
    op = load_i64(reduction, RD_OP)
    candidates = load_i64(reduction, RD_CANDIDATES)
    best = -1
    at = first_candidate(load_i64(reduction, RD_GROUPS), group)
    while at != 0:
        row = at - 1
        if derived_times(candidates, row) > 0 and (best < 0 or beats(op, candidates, row, best)):
            best = row
        at = next_candidate(candidates, row)
    return best


@kernel
def drop_candidates(ctl, reduction, derived, first, last):
    """Removes the candidates of a round that have no derivations left and are not derived later in this batch."""
    if last < load_i64(derived, LIST_COUNT):
        # A later round of the batch may name the same row: it is cleared away when the batch is over.
        doomed = load_i64(load_i64(reduction, RD_CANDIDATES), CO_DOOMED)
        for i in range(first, last):
            if not list_push(ctl, doomed, load_i64(change_at(derived, i), CHANGE_ROW)):
                return False
        return True
    doomed = load_i64(load_i64(reduction, RD_CANDIDATES), CO_DOOMED)
    for i in range(load_i64(doomed, LIST_COUNT)):
        if not drop_candidate(ctl, reduction, load_i64(load_i64(doomed, LIST_DATA), i)):
            return False
    store_i64(doomed, LIST_COUNT, 0)
    for i in range(first, last):
        if not drop_candidate(ctl, reduction, load_i64(change_at(derived, i), CHANGE_ROW)):
            return False
    return True


@kernel
def drop_candidate(ctl, reduction, row):
    candidates = load_i64(reduction, RD_CANDIDATES)
    group = candidate_group(candidates, row)
    return group < 0 or derived_times(candidates, row) != 0 or unlink(ctl, reduction, group, row)


@kernel
def derived_times(candidates, row):
    """How many derivations a candidate of the total model has."""
    return load_i64(candidate_at(candidates, row), CANDIDATE_COUNT)


@kernel
def beats(op, candidates, row, other):
    return dominates(op, candidate_value(candidates, row), candidate_value(candidates, other))
