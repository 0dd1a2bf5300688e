"""What a round of a reduction looks at is asked for before: sums, or candidates that change and the groups that they touch,
each of which leads to something else."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.reduce.candidate import candidate_at, candidate_group, next_candidate, warm_candidate
from dlog.engine.kernels.incremental.reduce.group_links import current_of, first_candidate, head_place
from dlog.engine.kernels.incremental.reduce.sums import sum_at
from dlog.engine.kernels.incremental.store.implied import warm_cell
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Reduction
from dlog.engine.kernels.row_structs import Changes

UNLINKED_AHEAD, UNLINKED_STEP = 3, 8
"""Candidates of a list that are asked for before one is taken out of it, and changes between two of these steps."""
AHEAD = 12
"""Changes, or groups, between those of which one thing is asked for and those of which the next is."""


@kernel
def warm_change(reduction: Reduction, derived: Changes, at, last):
    """Asks for candidates, and for when their groups were last touched, of changes behind `at`."""
    candidates = reduction.candidates
    if at + 2 * AHEAD < last:
        warm_candidate(candidates, derived.data[at + 2 * AHEAD].row)
    if at + AHEAD < last:
        group = candidate_group(candidates, derived.data[at + AHEAD].row)
        prefetch(reduction.groups.stamps.address + group * 4)


@kernel
def warm_rivals(reduction: Reduction, derived: Changes, at, last):
    """Asks for candidates, and for the best ones of their groups, of changes behind `at`."""
    candidates = reduction.candidates
    best = reduction.groups.grouping.sums
    if at + 3 * AHEAD < last:
        warm_candidate(candidates, derived.data[at + 3 * AHEAD].row)
    if at + 2 * AHEAD < last:
        prefetch(best.address + candidate_group(candidates, derived.data[at + 2 * AHEAD].row) * 8)
    if at + AHEAD < last:
        warm_candidate(candidates, best[candidate_group(candidates, derived.data[at + AHEAD].row)] - 1)


@kernel
def warm_best(reduction: Reduction, touched: Words, at, last):
    """Asks for the best candidates of groups behind `at`."""
    best = reduction.groups.grouping.sums
    if at + 2 * AHEAD < last:
        prefetch(best.address + touched[at + 2 * AHEAD] * 8)
    if at + AHEAD < last:
        warm_candidate(reduction.candidates, best[touched[at + AHEAD]] - 1)


@kernel
def warm_current(reduction: Reduction, touched: Words, at, last):
    """Asks for the results that groups behind `at` have."""
    groups = reduction.groups
    result = reduction.result
    if at + 2 * AHEAD < last:
        warm_links(groups, touched[at + 2 * AHEAD])
    if at + AHEAD < last:
        row = current_of(groups, touched[at + AHEAD]) - 1
        if row >= 0:
            warm_cell(result.columns[reduction.value], row)


@kernel
def warm_links(groups: Collection, group):
    """Asks for what says which row is a group's result."""
    if groups.grouping.heads:
        prefetch(head_place(groups, group))
    else:
        prefetch(groups.grouping.current.address + group * 4)


@kernel
def warm_sum(groups: Collection, group):
    """Asks for a group's sum, and for when it was touched."""
    prefetch(sum_at(groups, group).address)
    prefetch(groups.stamps.address + group * 4)


@kernel
def warm_unlinked(reduction: Reduction, derived: Changes, at, last):
    """Asks for candidates of changes behind `at` and, of those without derivations, for the ones before them in their lists:
    the nearer a change, the more of these."""
    candidates = reduction.candidates
    groups = reduction.groups
    ahead = at + (UNLINKED_AHEAD + 2) * UNLINKED_STEP
    if ahead < last:
        warm_candidate(candidates, derived.data[ahead].row)
    for step in range(UNLINKED_AHEAD + 1, 0, -1):
        ahead -= UNLINKED_STEP
        if ahead >= last:
            continue
        row = derived.data[ahead].row
        place = candidate_at(candidates, row)
        if place.count != 0 or place.group < 0:
            continue
        if step > UNLINKED_AHEAD:
            prefetch(head_place(groups, place.group))
            continue
        number = first_candidate(groups, place.group)
        for _ in range(UNLINKED_AHEAD - step):
            if number != 0 and number != row + 1:
                number = next_candidate(candidates, number - 1)
        warm_candidate(candidates, number - 1)
