"""Which candidates of a lattice cannot matter."""

from __future__ import annotations

from dlog.engine.kernels.combine import dominates
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.reduce.candidate import value_at
from dlog.engine.kernels.incremental.reduce.group_links import current_of
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.collections import cell
from dlog.engine.kernels.round_structs import Reduction
from dlog.engine.kernels.row_structs import Candidate


@kernel
def is_outdone(reduction: Reduction, group, candidate: Candidate, iteration):
    """Whether a lattice's candidate (its address) cannot change anything from an iteration on: the group's result is better, is
    there by that iteration, and nothing has disturbed the group in this round. If something does later, the group is evaluated
    then, and after it wherever its history goes on. In the first round there is no history before it to be compared with, and
    the group's result is what was found last (`evaluate_group`)."""
    groups = reduction.groups
    candidates = reduction.candidates
    result = reduction.result
    tick = candidates.scope.round_tick
    if result.fresh == 0 and groups.stamps[group] >= tick:
        return False
    best = current_of(groups, group) - 1
    inner = result.inner
    if best < 0 or get_bit(inner.bits, best) != 0:
        return False
    if inner.iters[best] > iteration:
        return False
    known = cell(result, reduction.value, best)
    return dominates(reduction.op, known, value_at(candidates, candidate))
