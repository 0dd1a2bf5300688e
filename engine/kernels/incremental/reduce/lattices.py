"""Lattice relations inside recursion (partial model): minima and maxima of what is derived at rounds and iterations.

Candidates keep derivations per iteration, and at iteration i the result changes by [best new(<=i)] - [best new(<i)] -
[best old(<=i)] + [best old(<i)].
"""

from __future__ import annotations

from dlog.engine.kernels.combine import dominates
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i32
from dlog.engine.kernels.incremental.loop.changes import log_fresh
from dlog.engine.kernels.incremental.loop.distinct import settle_inner
from dlog.engine.kernels.incremental.loop.supports import AHEAD, bucket_at, schedule, support_at
from dlog.engine.kernels.incremental.reduce.candidate import candidate_at, candidate_value, value_at
from dlog.engine.kernels.incremental.reduce.candidates import unlink
from dlog.engine.kernels.incremental.reduce.derivations import (
    derivations_after,
    is_single,
    settle_derivations,
    single_iteration,
    single_new,
    single_old,
)
from dlog.engine.kernels.incremental.reduce.group_links import current_of, first_candidate, set_current, warm_heads
from dlog.engine.kernels.incremental.reduce.reductions import candidate_result, remove_groups, replace_result, trim_fresh
from dlog.engine.kernels.incremental.store.collections import enter_indexes
from dlog.engine.kernels.incremental.store.histories import (
    add_entry,
    change_iteration,
    drop_entries,
    entry_at,
    first_entry,
    get_bit,
    item_of,
    open_item,
    put_bit,
    settle_entries,
)
from dlog.engine.kernels.incremental.store.lists import list_empty, list_push, push_change
from dlog.engine.kernels.layout import (
    CANDIDATE_COUNT,
    CANDIDATE_GROUP,
    CANDIDATE_NEXT,
    CO_BETWEEN,
    CO_BUCKET_COUNT,
    CO_DOOMED,
    CO_FRESH,
    CO_INNER,
    CO_INNER_LOG,
    CO_OUTER,
    CO_QUIET,
    CO_STAMPS,
    CO_TOUCHED,
    ENTRY_DIFF,
    ENTRY_NEXT,
    ENTRY_TIME,
    HI_BITS,
    HI_ITERS,
    LIST_COUNT,
    LIST_DATA,
    NEVER,
    RD_CANDIDATES,
    RD_GROUPS,
    RD_OP,
    RD_RESULT,
    SC_ROUND_TICK,
    SC_TICK,
    SUPPORT_AT,
    SUPPORT_NEW,
    SUPPORT_OLD,
)

STRETCH = 64
"""Groups whose parts are asked for before they are looked at."""
FEW = 16
"""Groups up to which nothing is asked for."""


@kernel
def process_lattice(ctl, scope, reduction, iteration, time):
    """What was derived at an iteration becomes changes of the result, group by group; false with CTL_ERROR set."""
    candidates = load_i64(reduction, RD_CANDIDATES)
    if iteration >= load_i64(candidates, CO_BUCKET_COUNT):
        return True
    bucket = bucket_at(candidates, iteration)
    count = load_i64(bucket, LIST_COUNT)
    stamps = load_i64(load_i64(reduction, RD_GROUPS), CO_STAMPS)
    touched = load_i64(load_i64(reduction, RD_GROUPS), CO_TOUCHED)
    tick = load_i64(scope, SC_TICK)
    round_tick = load_i64(scope, SC_ROUND_TICK)
    for i in range(count):
        data = load_i64(bucket_at(candidates, iteration), LIST_DATA)
        if i % STRETCH == 0:
            warm_groups(reduction, data + i * 8, min(STRETCH, count - i))
        group = load_i64(data, i)
        stamp = load_i32(stamps, group)
        if stamp != tick:
            store_i32(stamps, group, tick)
            if stamp < round_tick and not list_push(ctl, touched, group):
                return False
            if not evaluate_group(ctl, scope, reduction, group, iteration, time):
                return False
    list_empty(ctl, bucket_at(candidates, iteration))
    return enter_indexes(ctl, load_i64(reduction, RD_RESULT))


@kernel
def warm_groups(reduction, data, count):
    """Asks for what looking at these groups will touch."""
    if count < FEW:
        return
    groups = load_i64(reduction, RD_GROUPS)
    candidates = load_i64(reduction, RD_CANDIDATES)
    stamps = load_i64(groups, CO_STAMPS)
    warm_heads(groups, data, count)
    for i in range(count):
        prefetch(stamps + load_i64(data, i) * 4)
    for i in range(count):
        prefetch(candidate_at(candidates, first_candidate(groups, load_i64(data, i)) - 1))


@kernel
def evaluate_group(ctl, scope, reduction, group, iteration, time):
    """The change of a group's best at an iteration: see the module's text. It is looked at again where its history goes on
    differently."""
    op = load_i64(reduction, RD_OP)
    candidates = load_i64(reduction, RD_CANDIDATES)
    groups = load_i64(reduction, RD_GROUPS)
    old_before = -1
    new_before = -1
    old_after = -1
    new_after = -1
    following = -1
    at = first_candidate(groups, group)
    while at != 0:
        row = at - 1
        place = candidate_at(candidates, row)
        value = value_at(candidates, place)
        at = load_i32(place, CANDIDATE_NEXT)
        old = 0
        new = 0
        had_old = 0
        had_new = 0
        number = load_i64(place, CANDIDATE_COUNT)
        if is_single(number):
            then = single_iteration(number)
            if then <= iteration:
                old = single_old(number)
                new = single_new(number)
                if then < iteration:
                    had_old = old
                    had_new = new
            elif following < 0 or then < following:
                following = then
            number = 0
        while number != 0:
            entry = support_at(candidates, number)
            word = load_i64(entry, SUPPORT_AT)
            then = word & 0xFFFFFFFF
            if then > iteration:
                if following < 0 or then < following:
                    following = then
                break
            old += load_i64(entry, SUPPORT_OLD)
            new += load_i64(entry, SUPPORT_NEW)
            if then < iteration:
                had_old = old
                had_new = new
            number = word >> 32
        if old > 0 and (old_after < 0 or dominates(op, value, candidate_value(candidates, old_after))):
            old_after = row
        if new > 0 and (new_after < 0 or dominates(op, value, candidate_value(candidates, new_after))):
            new_after = row
        if had_old > 0 and (old_before < 0 or dominates(op, value, candidate_value(candidates, old_before))):
            old_before = row
        if had_new > 0 and (new_before < 0 or dominates(op, value, candidate_value(candidates, new_before))):
            new_before = row
    if new_after != old_after and following >= 0 and not schedule(ctl, candidates, following, group):
        return False
    if new_after == old_after and new_before == old_before:
        return True
    if not emit_corners(ctl, scope, reduction, group, new_after, new_before, old_after, old_before, time):
        return False
    return load_i64(load_i64(reduction, RD_RESULT), CO_FRESH) == 0 or note_fresh(ctl, reduction, group, new_after)


@kernel
def note_fresh(ctl, reduction, group, candidate):
    """Notes a group's result so far, in the first round; false with CTL_ERROR set."""
    row = -1
    if candidate >= 0:
        row = candidate_result(ctl, reduction, group, candidate)
        if row < 0:
            return False
    set_current(load_i64(reduction, RD_GROUPS), group, row + 1)
    return True


@kernel
def emit_corners(ctl, scope, reduction, group, new_after, new_before, old_after, old_before, time):
    """Changes the result by new_after - new_before - old_after + old_before (candidates, or -1), equal ones together."""
    for corner in range(4):
        row = new_after
        if corner == 1:
            row = new_before
        elif corner == 2:
            row = old_after
        elif corner == 3:
            row = old_before
        seen = (corner > 0 and row == new_after) or (corner > 1 and row == new_before) or (corner > 2 and row == old_after)
        if row < 0 or seen:
            continue
        diff = (1 if row == new_after else 0) - (1 if row == new_before else 0)
        diff += (1 if row == old_before else 0) - (1 if row == old_after else 0)
        if diff != 0 and not emit_value(ctl, scope, reduction, group, row, diff, time):
            return False
    return True


@kernel
def emit_value(ctl, scope, reduction, group, row, diff, time):
    """Changes the result, at an iteration, by `diff` times a candidate's row; false with CTL_ERROR set."""
    made = candidate_result(ctl, reduction, group, row)
    if made < 0:
        return False
    result = load_i64(reduction, RD_RESULT)
    if not list_push(ctl, load_i64(result, CO_TOUCHED), made):
        return False
    inner = load_i64(result, CO_INNER)
    if load_i64(result, CO_BETWEEN) != 0:
        noted = change_iteration(ctl, inner, made, time, diff)
    else:
        noted = add_entry(ctl, inner, made, time, diff)
    if not noted:
        return False
    return push_change(ctl, load_i64(result, CO_INNER_LOG), made, time, diff, 0)


@kernel
def end_lattice(ctl, reduction, time):
    """Ends a round of a lattice relation: net changes go out, derivations and iterations settle; false with CTL_ERROR set."""
    groups = load_i64(reduction, RD_GROUPS)
    touched = load_i64(groups, CO_TOUCHED)
    count = load_i64(touched, LIST_COUNT)
    for i in range(count):
        data = load_i64(touched, LIST_DATA)
        if i % STRETCH == 0:
            warm_groups(reduction, data + i * 8, min(STRETCH, count - i))
        if not end_group(ctl, reduction, load_i64(data, i), time):
            return False
    list_empty(ctl, touched)
    if not end_candidates(ctl, reduction):
        return False
    result = load_i64(reduction, RD_RESULT)
    touched = load_i64(result, CO_TOUCHED)
    for i in range(load_i64(touched, LIST_COUNT)):
        if not end_value(ctl, result, load_i64(load_i64(touched, LIST_DATA), i)):
            return False
    list_empty(ctl, touched)
    log_fresh(result)
    return remove_groups(ctl, groups) and trim_fresh(ctl, reduction)


@kernel
def end_group(ctl, reduction, group, time):
    """The result of a group after a round; false with CTL_ERROR set."""
    if load_i64(load_i64(reduction, RD_RESULT), CO_FRESH) != 0:
        # It is known; its rows are announced together (`log_fresh`, `end_value`).
        groups = load_i64(reduction, RD_GROUPS)
        return current_of(groups, group) != 0 or list_push(ctl, load_i64(groups, CO_DOOMED), group)
    known = best_derived(reduction, group)
    row = -1
    if known >= 0:
        row = candidate_result(ctl, reduction, group, known)
        if row < 0:
            return False
    elif not list_push(ctl, load_i64(load_i64(reduction, RD_GROUPS), CO_DOOMED), group):
        return False
    return replace_result(ctl, reduction, group, row, time)


@kernel
def end_candidates(ctl, reduction):
    """Settles the derivations that a round touched; candidates without any go. False with CTL_ERROR set.

    A candidate may be among the touched ones more than once."""
    candidates = load_i64(reduction, RD_CANDIDATES)
    touched = load_i64(candidates, CO_TOUCHED)
    count = load_i64(touched, LIST_COUNT)
    for i in range(count):
        data = load_i64(touched, LIST_DATA)
        if i + AHEAD < count:
            prefetch(candidate_at(candidates, load_i64(data, i + AHEAD)))
        row = load_i64(data, i)
        place = candidate_at(candidates, row)
        group = load_i32(place, CANDIDATE_GROUP)
        if group >= 0:
            settle_derivations(candidates, place)
            if load_i64(place, CANDIDATE_COUNT) == 0 and not unlink(ctl, reduction, group, row):
                return False
    list_empty(ctl, touched)
    return True


@kernel
def best_derived(reduction, group):
    """The best candidate of a group that is derived at any iteration after this round, or -1."""
    op = load_i64(reduction, RD_OP)
    candidates = load_i64(reduction, RD_CANDIDATES)
    best = -1
    at = first_candidate(load_i64(reduction, RD_GROUPS), group)
    while at != 0:
        place = candidate_at(candidates, at - 1)
        if derivations_after(candidates, place) > 0:
            value = value_at(candidates, place)
            if best < 0 or dominates(op, value, candidate_value(candidates, best)):
                best = at - 1
        at = load_i32(place, CANDIDATE_NEXT)
    return best


@kernel
def end_value(ctl, result, row):
    """Settles the iterations at which a row of a lattice relation is present; false with CTL_ERROR set."""
    inner = load_i64(result, CO_INNER)
    outer = load_i64(result, CO_OUTER)
    kept = 0
    if get_bit(load_i64(inner, HI_BITS), row) != 0:
        kept = settle_entries(inner, item_of(inner, row))
        if kept == 1:
            entry = entry_at(inner, first_entry(inner, row))
            iteration = load_i64(entry, ENTRY_TIME)
            drop_entries(inner, item_of(inner, row))
            return settle_inner(inner, row, iteration)
    elif load_i32(load_i64(inner, HI_ITERS), row) != NEVER:
        # Present from an iteration on, as is known already; outside it is announced.
        return True
    gone = get_bit(load_i64(outer, HI_BITS), row) == 0 and (kept == 0 or sum_entries(inner, row) <= 0)
    # A fresh row counts as present outside until it says otherwise.
    if gone and load_i64(result, CO_FRESH) != 0:
        if load_i64(result, CO_QUIET) != 0:
            put_bit(load_i64(outer, HI_BITS), row)
        elif open_item(ctl, outer, row) == 0:
            return False
    return kept != 0 or list_push(ctl, load_i64(result, CO_DOOMED), row)


@kernel
def sum_entries(history, row):
    """Sum of all diffs of a row whose bit is set."""
    total = 0
    at = first_entry(history, row)
    while at != 0:
        total += load_i64(entry_at(history, at), ENTRY_DIFF)
        at = load_i64(entry_at(history, at), ENTRY_NEXT)
    return total
