"""Recursive scopes that only grow: their relations had no rows before the batch, and nothing takes derivations away.

A row then is present from the iteration of its first derivation on, whatever else derives it, and there is nothing before the
round to tell it from: neither must rows be looked at where their counts differ, nor when the round is over.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.loop.batches import rows_before
from dlog.engine.kernels.incremental.loop.changes import log_fresh
from dlog.engine.kernels.incremental.store.lists import list_empty, list_room
from dlog.engine.kernels.incremental.store.slot_room import meet_expectation
from dlog.engine.kernels.layout import NEVER
from dlog.engine.kernels.round_structs import Collection, Control, Scope, Seed, Work


@kernel
def begin_growth(scope: Scope, work: Work):
    """Finds out whether a scope only grows in a batch. If so, as many rows of one column may come as there are of what it reads
    most of: whether they are found directly does not depend on which come first."""
    scope.growing = 1 if work.rounds == 1 and only_grows(scope) else 0
    if scope.growing == 0:
        return
    most = 0
    for i in range(scope.changed_count):
        most = max(most, scope.changed[i].list.count)
    for i in range(scope.own_count):
        collection = scope.own[i]
        if collection.arity == 1:
            collection.derivation.expected = most


@kernel
def end_growth(ctl: Control, collection: Collection):
    """`end_distinct` in a scope that grows; false with ctl.error set."""
    log_fresh(collection)
    return collection.derivation.expected == 0 or meet_expectation(ctl, collection)


@kernel
def grows(collection: Collection):
    """Whether a collection is of a scope that grows."""
    return collection.scope.address != 0 and collection.scope.growing != 0


@kernel
def only_grows(scope: Scope):
    """Whether a batch of one round can only bring rows to a recursive scope: none of its relations has rows, what it reads
    comes whole (a log without data), and no path makes less of more. Iterations then need not be told from those of before."""
    own = scope.own
    for i in range(scope.own_count):
        collection = own[i]
        if rows_before(collection) != 0 or collection.reduction or collection.derivation.bound != 0:
            return False
        if not is_monotone(collection.inner_log.seed):
            return False
    for i in range(scope.changed_count):
        seed = scope.changed[i]
        if seed.list.count > 0 and (seed.list.data or not is_monotone(seed)):
            return False
    return scope.own_count > 0 and (not scope.unit or is_monotone(scope.unit))


@kernel
def is_monotone(seed: Seed):
    """Whether what comes to a seed never has its paths take derivations away."""
    paths = seed.paths
    for i in range(seed.path_count):
        if paths[i].monotone == 0:
            return False
    return True


@kernel
def process_growth(ctl: Control, collection: Collection, iteration, time):
    """`process_distinct` in a scope that grows: the rows of a bucket that have not appeared before do so now, which takes
    too little for several workers; false with ctl.error set."""
    if iteration >= collection.derivation.bucket_count:
        return True
    bucket = collection.derivation.buckets[iteration]
    log = collection.inner_log
    if not list_room(ctl, log, bucket.count):
        return False
    iterations = collection.inner.iters
    for i in range(bucket.count):
        row = bucket.data[i]
        if iterations[row] == NEVER:
            iterations[row] = iteration
            change = log.data[log.count]
            change.row = row
            change.time = time
            change.diff = 1
            change.value = 0
            log.count += 1
    list_empty(ctl, bucket)
    return True
