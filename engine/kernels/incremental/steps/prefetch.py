"""Prefetches what the next rounds will touch while the current one runs.

A recursive scope goes round by round, and where these have few changes each, memory would be waited for at every step from a
change to the group of a lattice that it contributes to. The changes of later rounds are known: step by step, from the furthest
on, what they lead to is prefetched. Only for paths of one look-up (small_deltas.py) by a column of the seed, in scopes of many
groups.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Few
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.reduce.candidate import candidate_at, next_candidate
from dlog.engine.kernels.incremental.reduce.group_links import current_of, first_candidate, head_place
from dlog.engine.kernels.incremental.store.direct import are_many, find_direct, has_place, prefetch_direct
from dlog.engine.kernels.incremental.store.groups import row_at, slab_at, slab_first
from dlog.engine.kernels.incremental.store.implied import cell_at, warm_cell
from dlog.engine.kernels.instructions import RowsOf, ScanChanges
from dlog.engine.kernels.round_structs import Collection, Index, Path, Reduction, Scope, Seed
from dlog.engine.kernels.row_structs import Changes

STEP = 8
"""Changes between two steps of what is asked for."""
STEPS = 5
"""Steps behind a change's values: what they lead to, what this leads to, and so on."""
MAX_CHANGES_PER_ROUND = 16
"""Changes of a round up to which later ones are worth a look."""


@kernel
def warm_rounds(scope: Scope):
    """Asks for what the changes that come soon will touch, as many as the present round has."""
    seeds = scope.seeds
    for i in range(scope.seed_count):
        warm_paths(seeds[i])


@kernel
def warm_paths(seeding: Seed):
    """`warm_rounds` of the paths of one seed."""
    paths = seeding.paths
    for p in range(seeding.path_count):
        path = paths[p]
        changes = path.list
        if path.few in (Few.NOT, Few.ALONE) or path.sought < 0 or path.group < 0:
            continue
        seed = ScanChanges(path.code[0]).collection
        plain = changes.data.address != 0 and seed.grouped.address == 0 and seed.packed == 0
        if not plain or not are_many(path.target):
            continue
        first = changes.lo
        for at in range(first, min(changes.hi, first + MAX_CHANGES_PER_ROUND)):
            warm_change(path, seed, changes, at)


@kernel
def warm_change(path: Path, seed: Collection, changes: Changes, at):
    """Takes the changes some steps behind the one at a place one step nearer to memory."""
    last = changes.count
    columns = seed.columns
    sought = columns[path.sought]
    grouped = columns[path.group]
    if at + (STEPS + 1) * STEP < last:
        row = changes.data[at + (STEPS + 1) * STEP].row
        warm_cell(sought, row)
        warm_cell(grouped, row)
    index = RowsOf(path.code[1]).index
    reduction = path.reduction
    for step in range(1, STEPS + 1):
        if at + step * STEP < last:
            row = changes.data[at + step * STEP].row
            if step >= STEPS - 2:
                warm_sought(index, cell_at(sought, row), step)
            warm_group(reduction, cell_at(grouped, row), step)


@kernel
def warm_sought(index: Index, key, step):
    """Asks for the rows with a key, so many steps ahead: for their slab, its place in the pool, the first of them."""
    if index.dense == 0 or index.key_count != 1:
        return
    group = key - index.low
    if not 0 <= group < index.groups:
        return
    slab = slab_at(index, group)
    if step == STEPS:
        prefetch(slab.address)
    elif slab.count > 0:
        pool = index.pool
        first = slab_first(slab)
        alone = slab.capacity == 0
        if alone == (step == STEPS - 1):
            warm_row(index.collection, row_at(pool, first))
        elif step == STEPS - 1:
            prefetch(pool.address + first * 4)


@kernel
def warm_row(collection: Collection, row):
    """Asks for the values of a row, and when it is there in its own scope."""
    inner = collection.inner
    if inner:
        prefetch(inner.bits.address + (row >> 6) * 8)
        prefetch(inner.iters.address + row * 4)
    columns = collection.columns
    for c in range(collection.arity):
        warm_cell(columns[c], row)


@kernel
def warm_group(reduction: Reduction, key, step):
    """Asks for a lattice's group with a key, so many steps ahead: for its number, what it leads to, its result and, one after
    the other, its first candidates."""
    groups = reduction.groups
    if step == STEPS:
        if has_place(groups, key):
            prefetch_direct(groups, key)
        return
    group = find_direct(groups, key)
    if group < 0:
        return
    if step == STEPS - 1:
        prefetch(head_place(groups, group))
        prefetch(groups.stamps.address + group * 4)
        return
    candidates = reduction.candidates
    number = first_candidate(groups, group)
    for _ in range(STEPS - 2 - step):
        if number != 0:
            number = next_candidate(candidates, number - 1)
    prefetch(candidate_at(candidates, number - 1).address)
    if step == STEPS - 2:
        warm_row(reduction.result, current_of(groups, group) - 1)
