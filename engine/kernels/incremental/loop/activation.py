"""Activation: a collection takes part in a batch from its first change on; a task runs when something that it reads has
changed.

Tasks are numbered in topological order and wait as bits: the lowest is the next to run, and one marks only later ones. So a
task runs at most once in a batch, and what no change reaches is not visited (Streamulus' queue of nodes, ordered so). Within a
recursive scope the same holds for a round: seeds with changes have their paths run, and an iteration knows the collections with
rows to look at.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.loop.batches import begin
from dlog.engine.kernels.incremental.store.bits import next_bit, put_bit
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Log, Reduction, Scope, Seed, Work

# --------------------------------------------------------------------------------------------------------------- touched


@entry()
def touch(ctl: Control, collection: Collection):
    """Before a collection's first change in a batch: it begins, and the task that completes it will run."""
    if collection.in_batch != 0:
        return
    work = ctl.batch
    begin(ctl, collection, work.rounds)
    append(work.touched, work.ref.touched_count, collection)
    task = collection.derivation.flush
    if task != 0:
        mark_task(work, task - 1)


@kernel
def touch_derived(ctl: Control, collection: Collection):
    """`touch` of a collection that paths derive rows of; in a recursive scope it takes part in the round, too."""
    touch(ctl, collection)
    if collection.scope:
        touch_round(collection)


@kernel
def touch_reduced(ctl: Control, reduction: Reduction):
    """`touch_derived` of a reduction that paths contribute to."""
    touch(ctl, reduction.result)
    candidates = reduction.candidates
    if candidates and candidates.scope:
        touch_round(candidates)


@kernel
def touch_round(collection: Collection):
    """Notes that the round of its scope has changed a collection."""
    if collection.active == 0:
        collection.active = 1
        append(collection.scope.touched, collection.scope.ref.touched_count, collection)


@kernel
def append(items, counter: Words, item):
    """Adds to a list that has room for all that it may ever hold; how many there are is in the word at `counter`."""
    items[counter[0]] = item
    counter[0] += 1


# ----------------------------------------------------------------------------------------------------------------- tasks


@kernel
def mark_task(work: Work, task):
    """Has a task run in this batch."""
    put_bit(work.marks, task)


@kernel
def next_task(work: Work, first, last):
    """The first of tasks [first, last) that is marked; `last` if none is."""
    return next_bit(work.marks, first, last)


@kernel
def mark_readers(work: Work, log: Log):
    """Has those run that read a log, or another list that seeds paths, if it has changes."""
    if log.count == 0:
        return
    readers = log.readers
    for i in range(log.reader_words >> 1):
        reader = readers[i]
        if reader.task != 0:
            mark_task(work, reader.task - 1)
        seed = reader.seed
        if seed:
            append(seed.scope.changed, seed.scope.ref.changed_count, seed)


@kernel
def mark_readers_from(work: Work, first):
    """`mark_readers` of the logs of all collections touched but for the first so many."""
    touched = work.touched
    for i in range(first, work.touched_count):
        mark_readers(work, touched[i].log)


@kernel
def push_seed(scope: Scope, seed: Seed):
    """Has the paths of a seed run in this phase of a recursive scope."""
    append(scope.seeds, scope.ref.seed_count, seed)
