"""Which candidates of a lattice cannot matter."""

from __future__ import annotations

from dlog.engine.kernels.combine import dominates
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64
from dlog.engine.kernels.incremental.reduce.candidate import value_at
from dlog.engine.kernels.incremental.reduce.group_links import current_of
from dlog.engine.kernels.incremental.store.collections import cell
from dlog.engine.kernels.incremental.store.histories import get_bit
from dlog.engine.kernels.layout import (
    CO_FRESH,
    CO_INNER,
    CO_SCOPE,
    CO_STAMPS,
    HI_BITS,
    HI_ITERS,
    RD_CANDIDATES,
    RD_GROUPS,
    RD_OP,
    RD_RESULT,
    RD_VALUE,
    SC_ROUND_TICK,
)


@kernel
def is_outdone(reduction, group, candidate, iteration):
    """Whether a lattice's candidate (its address) cannot change anything from an iteration on: the group's result is better, is
    there by that iteration, and nothing has disturbed the group in this round. If something does later, the group is evaluated
    then, and after it wherever its history goes on. In the first round there is no history before it to be compared with, and
    the group's result is what was found last (`evaluate_group`)."""
    groups = load_i64(reduction, RD_GROUPS)
    candidates = load_i64(reduction, RD_CANDIDATES)
    result = load_i64(reduction, RD_RESULT)
    tick = load_i64(load_i64(candidates, CO_SCOPE), SC_ROUND_TICK)
    if load_i64(result, CO_FRESH) == 0 and load_i32(load_i64(groups, CO_STAMPS), group) >= tick:
        return False
    best = current_of(groups, group) - 1
    inner = load_i64(result, CO_INNER)
    if best < 0 or get_bit(load_i64(inner, HI_BITS), best) != 0:
        return False
    if load_i32(load_i64(inner, HI_ITERS), best) > iteration:
        return False
    known = cell(result, load_i64(reduction, RD_VALUE), best)
    return dominates(load_i64(reduction, RD_OP), known, value_at(candidates, candidate))
