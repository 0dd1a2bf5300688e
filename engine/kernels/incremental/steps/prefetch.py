"""Prefetches what the next rounds will touch while the current one runs.

A recursive scope goes round by round, and where these have few changes each, memory would be waited for at every step from a
change to the group of a lattice that it contributes to. The changes of later rounds are known: step by step, from the furthest
on, what they lead to is prefetched. Only for paths of one look-up (small_deltas.py) by a column of the seed, in scopes of many
groups.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch
from dlog.engine.kernels.incremental.reduce.candidate import candidate_at, next_candidate
from dlog.engine.kernels.incremental.reduce.group_links import current_of, first_candidate, head_place
from dlog.engine.kernels.incremental.store.direct import are_many, find_direct, has_place, prefetch_direct
from dlog.engine.kernels.incremental.store.groups import row_at, slab_at, slab_first
from dlog.engine.kernels.incremental.store.implied import cell_at, warm_cell
from dlog.engine.kernels.incremental.store.lists import change_at
from dlog.engine.kernels.layout import (
    CHANGE_ROW,
    CO_GROUPED,
    CO_INNER,
    CO_PACKED,
    CO_STAMPS,
    COL_SIZE,
    HI_BITS,
    HI_ITERS,
    IX_COLLECTION,
    IX_DENSE,
    IX_GROUPS,
    IX_KEY_COUNT,
    IX_LOW,
    IX_POOL,
    IXS_CAPACITY,
    IXS_COUNT,
    LIST_COUNT,
    LIST_DATA,
    LIST_HI,
    LIST_LO,
    PATH_CODE,
    PATH_FEW,
    PATH_GROUP,
    PATH_LIST,
    PATH_REDUCTION,
    PATH_SOUGHT,
    PATH_TARGET,
    RD_CANDIDATES,
    RD_GROUPS,
    RD_RESULT,
    REL_ARITY,
    REL_COLUMNS,
    SC_SEED_COUNT,
    SC_SEEDS,
    SEED_PATH_COUNT,
    SEED_PATHS,
)

STEP = 8
"""Changes between two steps of what is asked for."""
STEPS = 5
"""Steps behind a change's values: what they lead to, what this leads to, and so on."""
FEW = 16
"""Changes of a round up to which later ones are worth a look."""


@kernel
def warm_rounds(scope):
    """Asks for what the changes that come soon will touch, as many as the present round has."""
    seeds = load_i64(scope, SC_SEEDS)
    for i in range(load_i64(scope, SC_SEED_COUNT)):
        warm_paths(load_i64(seeds, i))


@kernel
def warm_paths(seeding):
    """`warm_rounds` of the paths of one seed."""
    paths = load_i64(seeding, SEED_PATHS)
    for p in range(load_i64(seeding, SEED_PATH_COUNT)):
        path = load_i64(paths, p)
        changes = load_i64(path, PATH_LIST)
        if load_i64(path, PATH_FEW) == 0 or load_i64(path, PATH_SOUGHT) < 0 or load_i64(path, PATH_GROUP) < 0:
            continue
        seed = load_i64(load_i64(load_i64(path, PATH_CODE), 0), 2)
        plain = load_i64(changes, LIST_DATA) != 0 and load_i64(seed, CO_GROUPED) == 0 and load_i64(seed, CO_PACKED) == 0
        if not plain or not are_many(load_i64(path, PATH_TARGET)):
            continue
        first = load_i64(changes, LIST_LO)
        for at in range(first, min(load_i64(changes, LIST_HI), first + FEW)):
            warm_change(path, seed, changes, at)


@kernel
def warm_change(path, seed, changes, at):
    """Takes the changes some steps behind the one at a place one step nearer to memory."""
    last = load_i64(changes, LIST_COUNT)
    columns = load_i64(seed, REL_COLUMNS)
    sought = columns + load_i64(path, PATH_SOUGHT) * COL_SIZE * 8
    grouped = columns + load_i64(path, PATH_GROUP) * COL_SIZE * 8
    if at + (STEPS + 1) * STEP < last:
        row = load_i64(change_at(changes, at + (STEPS + 1) * STEP), CHANGE_ROW)
        warm_cell(sought, row)
        warm_cell(grouped, row)
    index = load_i64(load_i64(load_i64(path, PATH_CODE), 1), 2)
    reduction = load_i64(path, PATH_REDUCTION)
    for step in range(1, STEPS + 1):
        if at + step * STEP < last:
            row = load_i64(change_at(changes, at + step * STEP), CHANGE_ROW)
            if step >= STEPS - 2:
                warm_sought(index, cell_at(sought, row), step)
            warm_group(reduction, cell_at(grouped, row), step)


@kernel
def warm_sought(index, key, step):
    """Asks for the rows with a key, so many steps ahead: for their slab, its place in the pool, the first of them."""
    if load_i64(index, IX_DENSE) == 0 or load_i64(index, IX_KEY_COUNT) != 1:
        return
    group = key - load_i64(index, IX_LOW)
    if not 0 <= group < load_i64(index, IX_GROUPS):
        return
    slab = slab_at(index, group)
    if step == STEPS:
        prefetch(slab)
    elif load_i32(slab, IXS_COUNT) > 0:
        pool = load_i64(index, IX_POOL)
        first = slab_first(slab)
        alone = load_i32(slab, IXS_CAPACITY) == 0
        if alone == (step == STEPS - 1):
            warm_row(load_i64(index, IX_COLLECTION), row_at(pool, first))
        elif step == STEPS - 1:
            prefetch(pool + first * 4)


@kernel
def warm_row(collection, row):
    """Asks for the values of a row, and when it is there in its own scope."""
    inner = load_i64(collection, CO_INNER)
    if inner != 0:
        prefetch(load_i64(inner, HI_BITS) + (row >> 6) * 8)
        prefetch(load_i64(inner, HI_ITERS) + row * 4)
    columns = load_i64(collection, REL_COLUMNS)
    for c in range(load_i64(collection, REL_ARITY)):
        warm_cell(columns + c * COL_SIZE * 8, row)


@kernel
def warm_group(reduction, key, step):
    """Asks for a lattice's group with a key, so many steps ahead: for its number, what it leads to, its result and, one after
    the other, its first candidates."""
    groups = load_i64(reduction, RD_GROUPS)
    if step == STEPS:
        if has_place(groups, key):
            prefetch_direct(groups, key)
        return
    group = find_direct(groups, key)
    if group < 0:
        return
    if step == STEPS - 1:
        prefetch(head_place(groups, group))
        prefetch(load_i64(groups, CO_STAMPS) + group * 4)
        return
    candidates = load_i64(reduction, RD_CANDIDATES)
    number = first_candidate(groups, group)
    for _ in range(STEPS - 2 - step):
        if number != 0:
            number = next_candidate(candidates, number - 1)
    prefetch(candidate_at(candidates, number - 1))
    if step == STEPS - 2:
        warm_row(load_i64(reduction, RD_RESULT), current_of(groups, group) - 1)
