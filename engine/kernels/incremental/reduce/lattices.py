"""Lattice relations inside recursion (partial model): minima and maxima of what is derived at rounds and iterations.

Candidates keep derivations per iteration, and at iteration i the result changes by [best new(<=i)] - [best new(<i)] -
[best old(<=i)] + [best old(<i)].
"""

from __future__ import annotations

from dlog.engine.kernels.combine import dominates
from dlog.engine.kernels.core.jit import inlined, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.changes import log_fresh
from dlog.engine.kernels.incremental.loop.settling import settle_inner
from dlog.engine.kernels.incremental.loop.supports import ROWS_AHEAD, schedule, support_at
from dlog.engine.kernels.incremental.reduce.candidate import candidate_at, candidate_value, value_at, warm_candidate
from dlog.engine.kernels.incremental.reduce.candidates import begin_lists, unlink, warm_list
from dlog.engine.kernels.incremental.reduce.derivations import (
    derivations_after,
    is_single,
    settle_derivations,
    single_iteration,
    single_new,
    single_old,
)
from dlog.engine.kernels.incremental.reduce.group_links import current_of, first_candidate, head_of, set_current
from dlog.engine.kernels.incremental.reduce.reductions import remove_groups, trim_fresh
from dlog.engine.kernels.incremental.reduce.results import candidate_result, replace_result
from dlog.engine.kernels.incremental.store.bits import get_bit, put_bit
from dlog.engine.kernels.incremental.store.histories import (
    add_entry,
    change_iteration,
    drop_entries,
    entry_at,
    first_entry,
    settle_entries,
    warm_history,
)
from dlog.engine.kernels.incremental.store.history_items import item_of, open_item
from dlog.engine.kernels.incremental.store.index_entering import enter_indexes
from dlog.engine.kernels.incremental.store.lists import list_empty, list_push, push_change
from dlog.engine.kernels.layout import BLOCK, NEVER
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Reduction, Scope
from dlog.engine.kernels.row_structs import History
from dlog.engine.kernels.static.storage import behind

GROUPS_AHEAD = 24
"""Groups between one of which the stamp is asked for and one that is looked at."""
MAX_UNPREFETCHED_GROUPS = 16
"""Groups up to which nothing is asked for."""


@kernel
def process_lattice(ctl: Control, scope: Scope, reduction: Reduction, iteration, time):
    """What was derived at an iteration becomes changes of the result, group by group; false with ctl.error set."""
    candidates = reduction.candidates
    if iteration >= candidates.derivation.bucket_count:
        return True
    bucket = candidates.derivation.buckets[iteration]
    count = bucket.count
    stamps = reduction.groups.stamps
    touched = reduction.groups.touched
    tick = scope.tick
    round_tick = scope.round_tick
    for first in range(0, count, BLOCK):
        n = min(BLOCK, count - first)
        listed = behind(candidates.derivation.buckets[iteration].data, first)
        ahead = begin_groups(ctl, reduction, listed, n)
        for i in range(n):
            warm_group(ctl, reduction, listed, i, ahead)
            group = listed[i]
            stamp = stamps[group]
            if stamp != tick:
                stamps[group] = tick
                if stamp < round_tick and not list_push(ctl, touched, group):
                    return False
                if not evaluate_group(ctl, scope, reduction, group, iteration, time):
                    return False
    list_empty(ctl, candidates.derivation.buckets[iteration])
    return enter_indexes(ctl, reduction.result)


@kernel
def begin_groups(ctl: Control, reduction: Reduction, listed: Words, n):
    """Before n groups are looked at, each with `warm_group`: asks for what looking at the first will touch. Returns up to which
    one something is asked for: for few nothing is."""
    ahead = n if n >= MAX_UNPREFETCHED_GROUPS else 0
    for i in range(min(ahead, GROUPS_AHEAD)):
        prefetch(reduction.groups.stamps.address + listed[i] * 4)
    begin_lists(ctl, reduction, Words(0), ahead, listed)
    return ahead


@inlined
def warm_group(ctl: Control, reduction: Reduction, listed: Words, i, ahead):
    """While a group is looked at, asks for what looking at groups behind it will touch."""
    if i + GROUPS_AHEAD < ahead:
        prefetch(reduction.groups.stamps.address + listed[i + GROUPS_AHEAD] * 4)
    warm_list(ctl, reduction, Words(0), i, ahead, listed)


@kernel
def evaluate_group(ctl: Control, scope: Scope, reduction: Reduction, group, iteration, time):
    """The change of a group's best at an iteration: see the module's text. It is looked at again where its history goes on
    differently."""
    op = reduction.op
    candidates = reduction.candidates
    groups = reduction.groups
    old_before = -1
    new_before = -1
    old_after = -1
    new_after = -1
    following = -1
    ordered = head_of(groups, group) > 0
    at = first_candidate(groups, group)
    while at != 0:
        row = at - 1
        place = candidate_at(candidates, row)
        value = value_at(candidates, place)
        at = place.next
        old = 0
        new = 0
        had_old = 0
        had_new = 0
        number = place.count
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
            word = entry.at
            then = word & 0xFFFFFFFF
            if then > iteration:
                if following < 0 or then < following:
                    following = then
                break
            old += entry.old
            new += entry.new
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
        if ordered and old_after >= 0 and new_after >= 0 and (iteration == 0 or (old_before >= 0 and new_before >= 0)):
            # Those behind matter once one of these goes, and there the group is looked at again.
            break
    if new_after != old_after and following >= 0 and not schedule(ctl, candidates, following, group):
        return False
    if new_after == old_after and new_before == old_before:
        return True
    if not emit_corners(ctl, scope, reduction, group, new_after, new_before, old_after, old_before, time):
        return False
    return reduction.result.fresh == 0 or note_fresh(ctl, reduction, group, new_after)


@kernel
def note_fresh(ctl: Control, reduction: Reduction, group, candidate):
    """Notes a group's result so far, in the first round; false with ctl.error set."""
    row = -1
    if candidate >= 0:
        row = candidate_result(ctl, reduction, group, candidate)
        if row < 0:
            return False
    set_current(reduction.groups, group, row + 1)
    return True


@kernel
def emit_corners(ctl: Control, scope: Scope, reduction: Reduction, group, new_after, new_before, old_after, old_before, time):
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
def emit_value(ctl: Control, scope: Scope, reduction: Reduction, group, row, diff, time):
    """Changes the result, at an iteration, by `diff` times a candidate's row; false with ctl.error set."""
    made = candidate_result(ctl, reduction, group, row)
    if made < 0:
        return False
    result = reduction.result
    if not list_push(ctl, result.touched, made):
        return False
    inner = result.inner
    if result.read_between_rounds != 0:
        noted = change_iteration(ctl, inner, made, time, diff)
    else:
        noted = add_entry(ctl, inner, made, time, diff)
    if not noted:
        return False
    return push_change(ctl, result.inner_log, made, time, diff, 0)


@kernel
def end_lattice(ctl: Control, reduction: Reduction, time):
    """Ends a round of a lattice relation: net changes go out, derivations and iterations settle; false with ctl.error set."""
    groups = reduction.groups
    touched = groups.touched
    for first in range(0, touched.count, BLOCK):
        n = min(BLOCK, touched.count - first)
        listed = behind(touched.data, first)
        ahead = begin_groups(ctl, reduction, listed, n)
        for i in range(n):
            warm_group(ctl, reduction, listed, i, ahead)
            if not end_group(ctl, reduction, listed[i], time):
                return False
    list_empty(ctl, touched)
    if not end_candidates(ctl, reduction):
        return False
    result = reduction.result
    touched = result.touched
    for i in range(touched.count):
        if i + ROWS_AHEAD < touched.count:
            warm_history(result.inner, touched.data[i + ROWS_AHEAD])
        if not end_value(ctl, result, touched.data[i]):
            return False
    list_empty(ctl, touched)
    log_fresh(result)
    return remove_groups(ctl, groups) and trim_fresh(ctl, reduction)


@kernel
def end_group(ctl: Control, reduction: Reduction, group, time):
    """The result of a group after a round; false with ctl.error set."""
    if reduction.result.fresh != 0:
        # It is known; its rows are announced together (`log_fresh`, `end_value`).
        groups = reduction.groups
        return current_of(groups, group) != 0 or list_push(ctl, groups.maybe_dead, group)
    known = best_derived(reduction, group)
    row = -1
    if known >= 0:
        row = candidate_result(ctl, reduction, group, known)
        if row < 0:
            return False
    elif not list_push(ctl, reduction.groups.maybe_dead, group):
        return False
    return replace_result(ctl, reduction, group, row, time)


@kernel
def end_candidates(ctl: Control, reduction: Reduction):
    """Settles the derivations that a round touched; candidates without any go. False with ctl.error set.

    A candidate may be among the touched ones more than once."""
    candidates = reduction.candidates
    touched = candidates.touched
    count = touched.count
    for i in range(count):
        data = touched.data
        if i + ROWS_AHEAD < count:
            warm_candidate(candidates, data[i + ROWS_AHEAD])
        row = data[i]
        place = candidate_at(candidates, row)
        group = place.group
        if group >= 0:
            settle_derivations(candidates, place)
            if place.count == 0 and not unlink(ctl, reduction, group, row):
                return False
    list_empty(ctl, touched)
    return True


@kernel
def best_derived(reduction: Reduction, group):
    """The best candidate of a group that is derived at any iteration after this round, or -1."""
    op = reduction.op
    candidates = reduction.candidates
    best = -1
    ordered = head_of(reduction.groups, group) > 0
    at = first_candidate(reduction.groups, group)
    while at != 0 and not (ordered and best >= 0):
        place = candidate_at(candidates, at - 1)
        if derivations_after(candidates, place) > 0:
            value = value_at(candidates, place)
            if best < 0 or dominates(op, value, candidate_value(candidates, best)):
                best = at - 1
        at = place.next
    return best


@kernel
def end_value(ctl: Control, result: Collection, row):
    """Settles the iterations at which a row of a lattice relation is present; false with ctl.error set."""
    inner = result.inner
    outer = result.outer
    kept = 0
    if get_bit(inner.bits, row) != 0:
        kept = settle_entries(inner, item_of(inner, row))
        if kept == 1:
            entry = entry_at(inner, first_entry(inner, row))
            iteration = entry.time
            drop_entries(inner, item_of(inner, row))
            return settle_inner(inner, row, iteration)
    elif inner.iters[row] != NEVER:
        # Present from an iteration on, as is known already; outside it is announced.
        return True
    gone = get_bit(outer.bits, row) == 0 and (kept == 0 or sum_entries(inner, row) <= 0)
    # A fresh row counts as present outside until it says otherwise.
    if gone and result.fresh != 0:
        if result.no_readers != 0:
            put_bit(outer.bits, row)
        elif not open_item(ctl, outer, row):
            return False
    return kept != 0 or list_push(ctl, result.maybe_dead, row)


@kernel
def sum_entries(history: History, row):
    """Sum of all diffs of a row whose bit is set."""
    total = 0
    at = first_entry(history, row)
    while at != 0:
        total += entry_at(history, at).diff
        at = entry_at(history, at).next
    return total
