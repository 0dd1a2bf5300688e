"""The work of a batch of rounds, from its inputs' changes to its outputs', without leaving compiled code.

A batch runs task by task in the order of strata: so each path reads collections that are complete for all rounds of the batch.
Scopes that are not recursive take all rounds at once; a recursive scope takes them one after the other, and within one the
iterations where something changes. Only tasks, paths and collections that a change reaches are visited (activation.py). All
state is in tables: a run stops and resumes anywhere (see machine).
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Error, Gathers, ScopePhase, Shared, Status, TaskKind
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.inputs.loading import bring_changes, bring_in
from dlog.engine.kernels.incremental.loop.activation import (
    mark_readers,
    mark_readers_from,
    mark_task,
    next_task,
    push_seed,
    touch,
)
from dlog.engine.kernels.incremental.loop.batches import forget_changes, rows_before, settle
from dlog.engine.kernels.incremental.loop.changes import flush_distinct, next_tick
from dlog.engine.kernels.incremental.loop.distinct import process_distinct
from dlog.engine.kernels.incremental.loop.growth import begin_growth, end_growth, grows, process_growth
from dlog.engine.kernels.incremental.loop.running import start_changes
from dlog.engine.kernels.incremental.loop.settling import end_distinct
from dlog.engine.kernels.incremental.reduce.lattices import end_lattice, process_lattice
from dlog.engine.kernels.incremental.reduce.reductions import flush_reduction
from dlog.engine.kernels.incremental.reduce.tallies import begin_tally, forget_tallies
from dlog.engine.kernels.incremental.reduce.tally_groups import end_tallies
from dlog.engine.kernels.incremental.sharing.buckets import begin_bucket, end_bucket
from dlog.engine.kernels.incremental.sharing.derivations import add_alone, begin_supports, end_supports
from dlog.engine.kernels.incremental.sharing.paths import HOPE, begin_path, divide_rest, end_trial, may_divide, run_shared
from dlog.engine.kernels.incremental.sharing.rounds import begin_settling, end_settling
from dlog.engine.kernels.incremental.steps.prefetch import warm_rounds
from dlog.engine.kernels.incremental.steps.small_deltas import run_few
from dlog.engine.kernels.incremental.store.bits import clear_bit, next_bit
from dlog.engine.kernels.incremental.store.index_entering import enter_indexes
from dlog.engine.kernels.incremental.store.slot_room import meet_expectation
from dlog.engine.kernels.layout import ROUND
from dlog.engine.kernels.machine import run_path
from dlog.engine.kernels.machine_structs import WordColumns
from dlog.engine.kernels.round_structs import Collection, Control, Log, Path, Reduction, Scope, Share, Task, Work
from dlog.engine.kernels.static.pages import begin_small, end_small

_UNLIMITED = 4611686018427387904


@kernel
def is_closed(path: Path, work: Work):
    """Whether a path can find nothing: it reads, before any change, a collection that had no rows before this one round."""
    if work.rounds != 1:
        return False
    gates = path.gates
    for g in range(path.gate_count):
        if rows_before(gates[g]) == 0:
            return True
    return False


@entry("i64", "i64", "i64", "bool")
def run_seeded(path: Path, work: Work, ctl: Control, whole):
    """Runs (or resumes) a path over its seed's changes: all of them, or the part in use."""
    share = ctl.share
    if share and share.kind == Shared.SUPPORTS:
        return end_run(path, ctl, share.status) if end_supports(ctl, share) else Status.FAILED
    if ctl.running == 0:
        status = begin_seeded(path, work, ctl, whole)
        if status != Status.YIELD:
            return status
        ctl.running = 1
    elif share and share.last == 0 and share.tried == 0 and may_divide(ctl, share, path, left_of(ctl) * HOPE):
        status = divide_rest(ctl, share, path)
        if status != Status.DONE:
            return status
    if share and share.last != 0:
        status = run_shared(path, ctl, share)
        if status != Status.YIELD:
            return end_run(path, ctl, status)
    status = run_path(path, ctl)
    if status == Status.DONE and share and share.tried != 0:
        end_trial(path, ctl, share)
        if share.last != 0:
            return run_shared(path, ctl, share)
        status = run_path(path, ctl)
    if share and share.items.count > 0:
        if status != Status.DONE and status != Status.YIELD:
            return status
        if share.items.count >= share.least:
            share.status = status
            return Status.BULK if begin_supports(ctl, share, share.items.count) else Status.FAILED
        status = status if add_alone(ctl, share.collection, share.items) else Status.FAILED
    return end_run(path, ctl, status)


@kernel
def left_of(ctl: Control):
    """How many changes of its seed a path that runs has not come to."""
    return ctl.levels[0].end - ctl.levels[0].at


@kernel
def begin_seeded(path: Path, work: Work, ctl: Control, whole):
    """Points the worker at the changes of a path's seed. Returns a `Status`: YIELD if it is to run over them."""
    forget_tallies(ctl)
    changes = path.list
    if not changes:
        if work.first == 0:
            return Status.DONE
        start_changes(path, ctl, 0, 1)
        return Status.YIELD
    first = 0
    last = changes.count
    if not whole:
        first = changes.lo
        last = changes.hi
    if first >= last or is_closed(path, work):
        return Status.DONE
    work.seeded += 1
    first = run_few(path, ctl, first, last)
    if first < 0:
        return Status.FAILED
    if first == last:
        return Status.DONE
    if not changes.data and not grows(path.target):
        path.target.derivation.expected = last
    start_changes(path, ctl, first, last)
    ctl.first = first
    ctl.rows_before = path.target.rows if path.target else 0
    begin_tally(ctl, path, last - first)
    if ctl.share:
        begin_path(ctl, ctl.share, path, first, last)
    return Status.YIELD


@kernel
def end_run(path: Path, ctl: Control, status):
    """Ends a path's run, if it has come to its end."""
    if status == Status.DONE:
        ctl.running = 0
        if ctl.share:
            ctl.share.gathers = Gathers.NOTHING
        if ctl.tally.reduction and not end_tallies(ctl):
            return Status.FAILED
        if path.target.derivation.expected != 0 and not grows(path.target) and not meet_expectation(ctl, path.target):
            return Status.FAILED
    return status


# ----------------------------------------------------------------------------------------------------------------- scope


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
        done = enter_indexes(ctl, collection) and process_growth(ctl, collection, iteration, time)
    else:
        done = enter_indexes(ctl, collection)
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
        done = enter_indexes(ctl, collection) and end_growth(ctl, collection)
    else:
        done = enter_indexes(ctl, collection)
        if done and share and collection.touched.count >= share.least:
            begin_settling(ctl, share, collection)
            return Status.BULK
        done = done and end_distinct(ctl, collection, scope.round)
    return Status.DONE if done else Status.FAILED


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


# ----------------------------------------------------------------------------------------------------------------- batch


@entry()
def begin_batch(work: Work, ctl: Control, rounds):
    """Begins a batch of so many rounds: what the one before has changed is forgotten."""
    touched = work.touched
    for i in range(work.touched_count):
        forget_changes(ctl, touched[i])
    work.touched_count = 0
    work.rounds = rounds
    work.at = -1
    work.over = 0
    ctl.batch = work
    if work.first != 0:
        for task in range(work.count):
            mark_task(work, task)


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


@kernel
def run_task(work: Work, task: Task, ctl: Control):
    """Runs (or resumes) a task. Returns a `Status`."""
    kind = task.kind
    what = task.what
    if kind == TaskKind.PATH:
        return run_seeded(Path(what), work, ctl, True)
    if kind == TaskKind.DISTINCT:
        done = flush_distinct(ctl, Collection(what), work.spare, work.counts)
        mark_readers(work, Collection(what).log)
        return Status.DONE if done else Status.FAILED
    if kind == TaskKind.REDUCE:
        done = flush_reduction(ctl, work, Reduction(what), work.spare, work.counts)
        mark_readers(work, Reduction(what).result.log)
        if Reduction(what).missing:
            mark_readers(work, Reduction(what).missing)
        return Status.DONE if done else Status.FAILED
    if work.has_begun == 0:
        start_scope(Scope(what), work)
        work.has_begun = 1
    status = run_scope(Scope(what), work, ctl)
    if status == Status.DONE:
        work.has_begun = 0
        end_scope(Scope(what), work)
    return status


@entry()
def run_tasks(work: Work, ctl: Control, last):
    """Runs (or resumes) the marked ones of the tasks before the `last`. Returns a `Status`."""
    if work.at < 0:
        mark_readers_from(work, 0)
        work.at = 0
    tasks = work.tasks
    while True:
        at = next_task(work, work.at, last)
        work.at = at
        if at == last:
            return Status.DONE
        status = run_task(work, tasks[at], ctl)
        if status != Status.DONE:
            return status
        clear_bit(work.marks, at)
        work.ran += 1


@entry()
def settle_batch(work: Work, ctl: Control):
    """Ends a batch of which all tasks have run; false with ctl.error set."""
    # What is needed to settle is little, and there is no way back from half of it: the limit does not count here.
    limit = ctl.limit
    ctl.limit = _UNLIMITED
    work.over = 1
    settled = True
    touched = work.touched
    for i in range(work.touched_count):
        settled = settled and settle(ctl, touched[i])
    ctl.limit = limit
    work.first = 0
    return settled


@entry()
def run_batch(work: Work, ctl: Control):
    """Runs (or resumes) the tasks of a batch, then settles. Returns a `Status`."""
    status = run_tasks(work, ctl, work.count)
    if status != Status.DONE:
        return status
    return Status.DONE if settle_batch(work, ctl) else Status.FAILED


@entry()
def commit_one(work: Work, ctl: Control, collection: Collection, updates, columns: WordColumns, start, count, rounds):
    """A whole batch with changes of one input, row after row or, where `updates` is 0, column after column: begin, apply, run.
    Returns as `run_batch`."""
    begin_batch(work, ctl, rounds)
    touch(ctl, collection)
    begin_small(ctl)
    if updates != 0:
        brought = bring_in(ctl, collection, updates, columns, count)
    else:
        brought = bring_changes(ctl, collection, columns, start, count)
    status = run_batch(work, ctl) if brought else Status.FAILED
    end_small(ctl, count)
    return status
