"""Recursive scopes: one round after the other, and within one the iterations where something changes."""

from __future__ import annotations

from dlog.engine.kernels.codes import Error, ScopePhase, Shared, Status
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.loop.activation import (
    mark_readers_from,
    push_seed,
)
from dlog.engine.kernels.incremental.loop.changes import next_tick
from dlog.engine.kernels.incremental.loop.distinct import process_distinct
from dlog.engine.kernels.incremental.loop.growth import begin_growth, end_growth, process_growth
from dlog.engine.kernels.incremental.loop.seeded import run_seeded
from dlog.engine.kernels.incremental.loop.settling import end_distinct
from dlog.engine.kernels.incremental.reduce.lattices import end_lattice, process_lattice
from dlog.engine.kernels.incremental.sharing.buckets import begin_bucket, end_bucket
from dlog.engine.kernels.incremental.sharing.loads import begin_indexes
from dlog.engine.kernels.incremental.sharing.rounds import begin_settling, end_settling
from dlog.engine.kernels.incremental.steps.prefetch import warm_rounds
from dlog.engine.kernels.incremental.store.bits import clear_bit, next_bit
from dlog.engine.kernels.incremental.store.index_entering import enter_indexes
from dlog.engine.kernels.layout import ROUND
from dlog.engine.kernels.round_structs import Collection, Control, Log, Scope, Share, Work


@entry()
def start_scope(scope: Scope, work: Work):
    """Prepares a recursive scope for a batch. In the first one it looks at all its imports: some may have rows of old."""
    scope.phase = ScopePhase.NEXT
    scope.round = 0
    scope.path = 0
    scope.tail = work.touched_count
    changed = scope.changed
    if work.first != 0:
        imports = scope.imports
        scope.changed_count = scope.import_count
        for i in range(scope.import_count):
            changed[i] = imports[i]
    for i in range(scope.changed_count):
        changed[i].list.hi = 0
    begin_growth(scope, work)


@entry()
def end_scope(scope: Scope, work: Work):
    """Ends a recursive scope's part in a batch: those run that read what it has changed."""
    scope.changed_count = 0
    mark_readers_from(work, scope.tail)


@entry()
def run_seeds(scope: Scope, work: Work, ctl: Control):
    """Runs (or resumes) the paths of a phase: those of the scope's `seeds`, which have been gone through then."""
    seeds = scope.seeds
    while scope.seed < scope.seed_count:
        seed = seeds[scope.seed]
        paths = seed.paths
        while scope.path < seed.path_count:
            status = run_seeded(paths[scope.path], work, ctl, False)
            if status != Status.DONE:
                return status
            scope.path += 1
        scope.path = 0
        scope.seed += 1
        if seed.own != 0:
            seed.list.count = 0
    scope.seed = 0
    scope.seed_count = 0
    return Status.DONE


@kernel
def log_time(log: Log, at):
    """Time of a change; one without data has all its changes at the first round (a fresh collection's)."""
    if not log.data:
        return ROUND
    return log.data[at].time


@entry()
def round_to_come(scope: Scope, work: Work):
    """The time of the next round in which an import changed; 0 when there is none."""
    if work.first != 0 and scope.round == 0:
        return ROUND
    changed = scope.changed
    time = 0
    for i in range(scope.changed_count):
        log = changed[i].list
        at = log.hi
        if at < log.count:
            other = log_time(log, at)
            if time == 0 or other < time:
                time = other
    return time


@entry()
def next_round(scope: Scope, work: Work):
    """Goes to the next round in which an import changed: the paths of such imports are to run, over its changes. False when
    there is none."""
    time = round_to_come(scope, work)
    if time == 0:
        return False
    if scope.round == 0 and work.first != 0 and scope.unit:
        push_seed(scope, scope.unit)
    changed = scope.changed
    for i in range(scope.changed_count):
        seed = changed[i]
        log = seed.list
        # The part in use moves on: before `hi` are the rounds that the scope has gone through in this batch.
        at = log.hi
        first = at
        last = log.count
        if not log.data:
            at = last
        while at < last and log_time(log, at) == time:
            at += 1
        log.lo = first
        log.hi = at
        if first < at:
            push_seed(scope, seed)
    scope.round = time
    return True


@entry()
def next_iteration(scope: Scope):
    """The next iteration, from the scope's `iteration` on, at which something is scheduled; -1 if there is none.

    Loop paths derive at later iterations than that of their seeds (`advance`), so none is scheduled behind where a round is."""
    at = scope.iteration
    bits = scope.bits
    words = min(scope.bit_words, (scope.last >> 6) + 1)
    found = next_bit(bits, at, words << 6)
    if found == words << 6:
        return -1
    clear_bit(bits, found)
    return found


@kernel
def iterations_of(scope: Scope, iteration):
    """How many iterations a round has had when it comes to one: its number where rows enter at the first."""
    done = scope.productive_iterations + 1
    scope.productive_iterations = done
    return iteration if scope.delayed == 0 else done


@entry()
def process_iteration(ctl: Control, scope: Scope, work: Work, iteration):
    """What was derived at an iteration becomes its changes, the seeds of the loop paths. Returns a `Status`."""
    scope.tick = next_tick(work)
    if iteration >= scope.head_count:
        return Status.DONE
    collection = scope.heads[iteration]
    scope.heads[iteration] = Collection(0)
    while collection:
        following = collection.derivation.buckets[iteration].next
        status = process_collection(ctl, scope, collection, iteration)
        if status != Status.DONE:
            scope.heads[iteration] = collection
            return status
        work.processed += 1
        collection = following
    return Status.DONE


@kernel
def process_collection(ctl: Control, scope: Scope, collection: Collection, iteration):
    """`process_iteration` of a collection, or of a lattice's candidates."""
    time = scope.round + iteration
    lattice = collection.reduction
    share = ctl.share
    result = collection
    if lattice:
        result = lattice.result
        done = process_lattice(ctl, scope, lattice, iteration, time)
    elif share and share.kind == Shared.BUCKET_NOTES:
        done = end_bucket(ctl, share)
    elif scope.growing != 0:
        done = enter_read(ctl, collection) and process_growth(ctl, collection, iteration, time)
    else:
        done = enter_read(ctl, collection)
        if done and share and is_large(collection, iteration, share):
            begin_bucket(ctl, share, collection, iteration, time)
            return Status.BULK
        done = done and process_distinct(ctl, scope, collection, iteration, time)
    log = result.inner_log
    log.lo = 0
    log.hi = log.count
    if done and log.count > 0:
        push_seed(scope, log.seed)
    return Status.DONE if done else Status.FAILED


@kernel
def enter_read(ctl: Control, collection: Collection):
    """Has indexes that iterations read take new rows (`enter_indexes`); others do when the round is over. False with ctl.error
    set."""
    return collection.read_between_rounds != 0 or enter_indexes(ctl, collection)


@kernel
def is_large(collection: Collection, iteration, share: Share):
    """Whether a bucket has rows enough for several workers."""
    known = collection.derivation.bucket_count
    return iteration < known and collection.derivation.buckets[iteration].count >= share.least


@entry()
def end_round(ctl: Control, scope: Scope):
    """Ends a round of a recursive scope. Returns a `Status`."""
    touched = scope.touched
    for i in range(scope.touched_count):
        collection = touched[i]
        if collection.active != 0:
            status = end_collection(ctl, scope, collection)
            if status != Status.DONE:
                return status
            collection.active = 0
    scope.touched_count = 0
    scope.last = 0
    return Status.DONE


@kernel
def end_collection(ctl: Control, scope: Scope, collection: Collection):
    """`end_round` of a collection, or of a lattice's candidates."""
    lattice = collection.reduction
    share = ctl.share
    if lattice:
        done = end_lattice(ctl, lattice, scope.round) and enter_indexes(ctl, lattice.result)
    elif share and share.kind == Shared.ROUND_NOTES:
        done = end_settling(ctl, share)
    elif scope.growing != 0:
        status = enter_made(ctl, share, collection)
        if status != Status.DONE:
            return status
        done = end_growth(ctl, collection)
    else:
        done = enter_indexes(ctl, collection)
        if done and share and collection.touched.count >= share.least:
            begin_settling(ctl, share, collection)
            return Status.BULK
        done = done and end_distinct(ctl, collection, scope.round)
    return Status.DONE if done else Status.FAILED


@kernel
def enter_made(ctl: Control, share: Share, collection: Collection):
    """Has indexes take the rows that a round has made: workers build them where they have none yet, and there are many. Returns
    a `Status`."""
    if share and share.kind == Shared.INDEXED:
        share.kind = Shared.NONE
        return Status.DONE
    if share and collection.indexed == 0 and collection.rows >= share.least:
        return begin_indexes(ctl, share, collection)
    return Status.DONE if enter_indexes(ctl, collection) else Status.FAILED


@kernel
def run_scope(scope: Scope, work: Work, ctl: Control):
    """Runs (or resumes) a recursive scope over all rounds of the batch, in the order of times (round, iteration).

    In each round NEXT finds the imports that changed, ENTER runs the paths that these seed; then, iteration by iteration,
    BUCKETS and PROCESS make changes of what was derived there, and LOOP runs the paths that those seed."""
    while True:
        phase = scope.phase
        if phase == ScopePhase.NEXT:
            if not next_round(scope, work):
                return Status.DONE
            scope.iteration = 0
            scope.productive_iterations = -1
            scope.round_tick = next_tick(work)
            scope.tick = scope.round_tick
            scope.phase = ScopePhase.ENTER
            warm_rounds(scope)
        elif phase == ScopePhase.ENTER:
            status = run_seeds(scope, work, ctl)
            if status != Status.DONE:
                return status
            scope.phase = ScopePhase.BUCKETS
        elif phase == ScopePhase.BUCKETS or phase == ScopePhase.PROCESS:
            if phase == ScopePhase.BUCKETS:
                iteration = next_iteration(scope)
                if iteration < 0:
                    status = end_round(ctl, scope)
                    if status != Status.DONE:
                        return status
                    scope.phase = ScopePhase.NEXT
                    continue
                if iterations_of(scope, iteration) > work.limit:
                    ctl.error = Error.ITERATIONS
                    return Status.FAILED
                ctl.iteration = iteration
                scope.iteration = iteration + 1
                scope.phase = ScopePhase.PROCESS
            status = process_iteration(ctl, scope, work, scope.iteration - 1)
            if status != Status.DONE:
                return status
            scope.phase = ScopePhase.LOOP
        else:
            status = run_seeds(scope, work, ctl)
            if status != Status.DONE:
                return status
            scope.phase = ScopePhase.BUCKETS
