"""Activation: a collection takes part in a batch from its first change on; a task runs when something that it reads has
changed.

Tasks are numbered in topological order and wait as bits: the lowest is the next to run, and one marks only later ones. So a
task runs at most once in a batch, and what no change reaches is not visited (Streamulus' queue of nodes, ordered so). Within a
recursive scope the same holds for a round: seeds with changes have their paths run, and an iteration knows the collections with
rows to look at.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i64, store_i64
from dlog.engine.kernels.incremental.loop.batches import begin
from dlog.engine.kernels.incremental.store.histories import next_bit, put_bit
from dlog.engine.kernels.layout import (
    CO_ACTIVE,
    CO_BEGUN,
    CO_FLUSH,
    CO_LOG,
    CO_SCOPE,
    CTL_BATCH,
    LIST_COUNT,
    LOG_READER_COUNT,
    LOG_READERS,
    RD_CANDIDATES,
    RD_RESULT,
    SC_CHANGED,
    SC_CHANGED_COUNT,
    SC_SEED_COUNT,
    SC_SEEDS,
    SC_TOUCHED,
    SC_TOUCHED_COUNT,
    SEED_SCOPE,
    WORK_MARKS,
    WORK_ROUNDS,
    WORK_TOUCHED,
    WORK_TOUCHED_COUNT,
)

# --------------------------------------------------------------------------------------------------------------- touched


@entry()
def touch(ctl, collection):
    """Before a collection's first change in a batch: it begins, and the task that completes it will run."""
    if load_i64(collection, CO_BEGUN) != 0:
        return
    work = load_i64(ctl, CTL_BATCH)
    begin(ctl, collection, load_i64(work, WORK_ROUNDS))
    append(work, WORK_TOUCHED, WORK_TOUCHED_COUNT, collection)
    task = load_i64(collection, CO_FLUSH)
    if task != 0:
        mark_task(work, task - 1)


@kernel
def touch_derived(ctl, collection):
    """`touch` of a collection that paths derive rows of; in a recursive scope it takes part in the round, too."""
    touch(ctl, collection)
    if load_i64(collection, CO_SCOPE) != 0:
        touch_round(collection)


@kernel
def touch_reduced(ctl, reduction):
    """`touch_derived` of a reduction that paths contribute to."""
    touch(ctl, load_i64(reduction, RD_RESULT))
    candidates = load_i64(reduction, RD_CANDIDATES)
    if candidates != 0 and load_i64(candidates, CO_SCOPE) != 0:
        touch_round(candidates)


@kernel
def touch_round(collection):
    """Notes that the round of its scope has changed a collection."""
    if load_i64(collection, CO_ACTIVE) == 0:
        store_i64(collection, CO_ACTIVE, 1)
        append(load_i64(collection, CO_SCOPE), SC_TOUCHED, SC_TOUCHED_COUNT, collection)


@kernel
def append(struct, field, counter, value):
    """Adds to a list that has room for all that it may ever hold: its words at a field, how many there are at another."""
    count = load_i64(struct, counter)
    store_i64(load_i64(struct, field), count, value)
    store_i64(struct, counter, count + 1)


# ----------------------------------------------------------------------------------------------------------------- tasks


@kernel
def mark_task(work, task):
    """Has a task run in this batch."""
    put_bit(load_i64(work, WORK_MARKS), task)


@kernel
def next_task(work, first, last):
    """The first of tasks [first, last) that is marked; `last` if none is."""
    return next_bit(load_i64(work, WORK_MARKS), first, last)


@kernel
def mark_readers(work, log):
    """Has those run that read a log, or another list that seeds paths, if it has changes."""
    if load_i64(log, LIST_COUNT) == 0:
        return
    readers = load_i64(log, LOG_READERS)
    for i in range(0, load_i64(log, LOG_READER_COUNT), 2):
        task = load_i64(readers, i)
        seed = load_i64(readers, i + 1)
        if task != 0:
            mark_task(work, task - 1)
        if seed != 0:
            append(load_i64(seed, SEED_SCOPE), SC_CHANGED, SC_CHANGED_COUNT, seed)


@kernel
def mark_readers_from(work, first):
    """`mark_readers` of the logs of all collections touched but for the first so many."""
    touched = load_i64(work, WORK_TOUCHED)
    for i in range(first, load_i64(work, WORK_TOUCHED_COUNT)):
        mark_readers(work, load_i64(load_i64(touched, i), CO_LOG))


@kernel
def push_seed(scope, seed):
    """Has the paths of a seed run in this phase of a recursive scope."""
    append(scope, SC_SEEDS, SC_SEED_COUNT, seed)
