"""Minima and maxima over rounds: the best candidate of each group is its result.

Candidates of the `total` model have counts of derivations. Changes come by round, and a group's word is its best candidate,
plus one: while that one stays, and nothing better comes, no other is looked at. Where all that is there comes in one round (a
fresh result), counts change as contributions come, and the best ones are looked for once, in the end.
"""

from __future__ import annotations

from dlog.engine.kernels.combine import dominates
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.reduce.candidate import (
    candidate_at,
    candidate_group,
    candidate_value,
    next_candidate,
    warm_candidate,
)
from dlog.engine.kernels.incremental.reduce.candidates import unlink
from dlog.engine.kernels.incremental.reduce.group_links import first_candidate, head_of
from dlog.engine.kernels.incremental.reduce.results import candidate_result, replace_result
from dlog.engine.kernels.incremental.reduce.warming import warm_best, warm_change, warm_current, warm_rivals, warm_unlinked
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.lists import list_push
from dlog.engine.kernels.layout import ROUND
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Reduction
from dlog.engine.kernels.row_structs import Changes

GROUPS_AHEAD = 16
"""Groups between one whose first candidate is asked for and one that is looked at."""


@kernel
def best_round(ctl: Control, reduction: Reduction, derived: Changes, first, last, tick):
    """One round of a minimum or maximum."""
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
        if not show_best(ctl, reduction, group, best[group] - 1, time):
            return False
    return drop_candidates(ctl, reduction, derived, first, last)


@kernel
def show_best(ctl: Control, reduction: Reduction, group, known, time):
    """Makes a group's best candidate (-1: it has none) its result from `time` on; false with ctl.error set."""
    row = -1
    if known >= 0:
        row = candidate_result(ctl, reduction, group, known)
        if row < 0:
            return False
    elif not list_push(ctl, reduction.groups.maybe_dead, group):
        return False
    return replace_result(ctl, reduction, group, row, time)


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
    if not drop_dead(ctl, reduction):
        return False
    for i in range(first, last):
        warm_unlinked(reduction, derived, i, last)
        if not drop_candidate(ctl, reduction, derived.data[i].row):
            return False
    return True


@kernel
def drop_dead(ctl: Control, reduction: Reduction):
    """Removes the candidates that are listed and have no derivations; false with ctl.error set."""
    maybe_dead = reduction.candidates.maybe_dead
    for i in range(maybe_dead.count):
        if not drop_candidate(ctl, reduction, maybe_dead.data[i]):
            return False
    maybe_dead.count = 0
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


# ---------------------------------------------------------------------------------------------------------------- fresh


@kernel
def count_block(ctl: Control, reduction: Reduction, rows: Words, diffs: Words, n):
    """Counts a block's contributions, so many of candidates rows[i], where the result is fresh; false with ctl.error set."""
    candidates = reduction.candidates
    maybe_dead = candidates.maybe_dead
    for i in range(n):
        candidate_at(candidates, rows[i]).count += diffs[i]
        if diffs[i] <= 0 and not list_push(ctl, maybe_dead, rows[i]):
            return False
    return True


@kernel
def best_of_all(ctl: Control, reduction: Reduction):
    """Gives all groups of a fresh result their best candidates, and drops those without derivations; false with ctl.error
    set."""
    groups = reduction.groups
    best = groups.grouping.sums
    for group in range(groups.rows):
        warm_group(reduction, group)
        if get_bit(groups.alive, group) == 0:
            continue
        known = best_candidate(reduction, group)
        best[group] = known + 1
        if not show_best(ctl, reduction, group, known, ROUND):
            return False
    return drop_dead(ctl, reduction)


@kernel
def warm_group(reduction: Reduction, group):
    """Asks for the first candidate of a group behind this one."""
    ahead = group + GROUPS_AHEAD
    if ahead < reduction.groups.rows:
        warm_candidate(reduction.candidates, first_candidate(reduction.groups, ahead) - 1)
