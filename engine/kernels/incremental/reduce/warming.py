"""What a round of a minimum or maximum looks at is asked for before: candidates that change, and the groups that they touch,
each of which leads to something else."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.reduce.candidate import candidate_group, warm_candidate
from dlog.engine.kernels.incremental.reduce.group_links import current_of, head_place
from dlog.engine.kernels.incremental.store.implied import warm_cell
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Reduction
from dlog.engine.kernels.row_structs import Changes

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
        prefetch(head_place(groups, touched[at + 2 * AHEAD]))
    if at + AHEAD < last:
        row = current_of(groups, touched[at + AHEAD]) - 1
        if row >= 0:
            warm_cell(result.columns[reduction.value], row)
