"""The work of a batch of rounds, from its inputs' changes to its outputs', without leaving compiled code.

A batch runs task by task in the order of strata: so each path reads collections that are complete for all rounds of the batch.
Scopes that are not recursive take all rounds at once; a recursive scope takes them one after the other, and within one the
iterations where something changes. Only tasks, paths and collections that a change reaches are visited (activation.py). All
state is in tables: a run stops and resumes anywhere (see machine).
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i64, store_i64
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
from dlog.engine.kernels.incremental.loop.distinct import end_distinct, process_distinct
from dlog.engine.kernels.incremental.loop.supports import bucket_at
from dlog.engine.kernels.incremental.reduce.lattices import end_lattice, process_lattice
from dlog.engine.kernels.incremental.reduce.reductions import flush_reduction
from dlog.engine.kernels.incremental.steps.prefetch import warm_rounds
from dlog.engine.kernels.incremental.steps.small_deltas import run_few
from dlog.engine.kernels.incremental.store.collections import enter_indexes
from dlog.engine.kernels.incremental.store.histories import clear_bit, next_bit
from dlog.engine.kernels.incremental.store.lists import change_at
from dlog.engine.kernels.incremental.store.loading import bring_in
from dlog.engine.kernels.incremental.store.slot_room import meet_expectation
from dlog.engine.kernels.layout import (
    BUCKET_NEXT,
    CHANGE_TIME,
    CO_ACTIVE,
    CO_EXPECTED,
    CO_INNER_LOG,
    CO_LOG,
    CO_REDUCTION,
    CTL_BATCH,
    CTL_ERROR,
    CTL_ITERATION,
    CTL_LEVEL,
    CTL_LEVELS,
    CTL_LIMIT,
    CTL_PC,
    CTL_RUN_PATH,
    CTL_RUNNING,
    DONE,
    ERROR_ITERATIONS,
    FAILED,
    LEVEL_AT,
    LEVEL_END,
    LEVEL_EXTRA,
    LEVEL_SIZE,
    LIST_COUNT,
    LIST_DATA,
    LIST_HI,
    LIST_LO,
    LOG_SEED,
    PATH_GATE_COUNT,
    PATH_GATES,
    PATH_LEVELS,
    PATH_LIST,
    PATH_TARGET,
    RD_MISSING,
    RD_RESULT,
    ROUND,
    SC_BIT_WORDS,
    SC_BITS,
    SC_CHANGED,
    SC_CHANGED_COUNT,
    SC_DONE,
    SC_HEAD_COUNT,
    SC_HEADS,
    SC_IMPORT_COUNT,
    SC_IMPORTS,
    SC_ITERATION,
    SC_LAST,
    SC_PATH,
    SC_PHASE,
    SC_ROUND,
    SC_ROUND_TICK,
    SC_SEED,
    SC_SEED_COUNT,
    SC_SEEDS,
    SC_STAGGERED,
    SC_TAIL,
    SC_TICK,
    SC_TOUCHED,
    SC_TOUCHED_COUNT,
    SC_UNIT,
    SEED_LIST,
    SEED_OWN,
    SEED_PATH_COUNT,
    SEED_PATHS,
    TASK_DISTINCT,
    TASK_PATH,
    TASK_REDUCE,
    WORK_AT,
    WORK_BEGUN,
    WORK_COUNT,
    WORK_COUNTS,
    WORK_FIRST,
    WORK_LIMIT,
    WORK_MARKS,
    WORK_OVER,
    WORK_PROCESSED,
    WORK_RAN,
    WORK_ROUNDS,
    WORK_SEEDED,
    WORK_SPARE,
    WORK_TASKS,
    WORK_TOUCHED,
    WORK_TOUCHED_COUNT,
)
from dlog.engine.kernels.machine import run_path

_ENTER, _BUCKETS, _LOOP, _NEXT = 1, 2, 3, 0
_UNLIMITED = 4611686018427387904


@kernel
def start_changes(path, ctl, first, last):
    """Points the worker at changes [first, last) of a path's seed (a path without one has a single row)."""
    levels = load_i64(ctl, CTL_LEVELS)
    for number in range(load_i64(path, PATH_LEVELS)):
        store_i64(levels + number * (LEVEL_SIZE * 8), LEVEL_EXTRA, 0)
    store_i64(levels, LEVEL_AT, first)
    store_i64(levels, LEVEL_END, last)
    store_i64(ctl, CTL_RUN_PATH, path)
    store_i64(ctl, CTL_LEVEL, 0)
    store_i64(ctl, CTL_PC, 0)


@kernel
def is_closed(path, work):
    """Whether a path can find nothing: it reads, before any change, a collection that had no rows before this one round."""
    if load_i64(work, WORK_ROUNDS) != 1:
        return False
    gates = load_i64(path, PATH_GATES)
    for g in range(load_i64(path, PATH_GATE_COUNT)):
        if rows_before(load_i64(gates, g)) == 0:
            return True
    return False


@entry("i64", "i64", "i64", "bool")
def run_seeded(path, work, ctl, whole):
    """Runs (or resumes) a path over its seed's changes: all of them, or the part in use."""
    if load_i64(ctl, CTL_RUNNING) == 0:
        changes = load_i64(path, PATH_LIST)
        if changes == 0:
            if load_i64(work, WORK_FIRST) == 0:
                return DONE
            start_changes(path, ctl, 0, 1)
        else:
            first = 0
            last = load_i64(changes, LIST_COUNT)
            if not whole:
                first = load_i64(changes, LIST_LO)
                last = load_i64(changes, LIST_HI)
            if first >= last or is_closed(path, work):
                return DONE
            store_i64(work, WORK_SEEDED, load_i64(work, WORK_SEEDED) + 1)
            first = run_few(path, ctl, first, last)
            if first < 0:
                return FAILED
            if first == last:
                return DONE
            if load_i64(changes, LIST_DATA) == 0:
                store_i64(load_i64(path, PATH_TARGET), CO_EXPECTED, last)
            start_changes(path, ctl, first, last)
        store_i64(ctl, CTL_RUNNING, 1)
    status = run_path(path, ctl)
    if status == DONE:
        store_i64(ctl, CTL_RUNNING, 0)
        if load_i64(load_i64(path, PATH_TARGET), CO_EXPECTED) != 0 and not meet_expectation(ctl, load_i64(path, PATH_TARGET)):
            return FAILED
    return status


# ----------------------------------------------------------------------------------------------------------------- scope


@entry()
def run_seeds(scope, work, ctl):
    """Runs (or resumes) the paths of a phase: those of the seeds in SC_SEEDS, which have been gone through then."""
    seeds = load_i64(scope, SC_SEEDS)
    while load_i64(scope, SC_SEED) < load_i64(scope, SC_SEED_COUNT):
        seed = load_i64(seeds, load_i64(scope, SC_SEED))
        paths = load_i64(seed, SEED_PATHS)
        while load_i64(scope, SC_PATH) < load_i64(seed, SEED_PATH_COUNT):
            status = run_seeded(load_i64(paths, load_i64(scope, SC_PATH)), work, ctl, False)
            if status != DONE:
                return status
            store_i64(scope, SC_PATH, load_i64(scope, SC_PATH) + 1)
        store_i64(scope, SC_PATH, 0)
        store_i64(scope, SC_SEED, load_i64(scope, SC_SEED) + 1)
        if load_i64(seed, SEED_OWN) != 0:
            store_i64(load_i64(seed, SEED_LIST), LIST_COUNT, 0)
    store_i64(scope, SC_SEED, 0)
    store_i64(scope, SC_SEED_COUNT, 0)
    return DONE


@kernel
def log_time(log, at):
    """Time of a change; one without data has all its changes at the first round (a fresh collection's)."""
    if load_i64(log, LIST_DATA) == 0:
        return ROUND
    return load_i64(change_at(log, at), CHANGE_TIME)


@entry()
def round_to_come(scope, work):
    """The time of the next round in which an import changed; 0 when there is none."""
    if load_i64(work, WORK_FIRST) != 0 and load_i64(scope, SC_ROUND) == 0:
        return ROUND
    changed = load_i64(scope, SC_CHANGED)
    time = 0
    for i in range(load_i64(scope, SC_CHANGED_COUNT)):
        log = load_i64(load_i64(changed, i), SEED_LIST)
        at = load_i64(log, LIST_HI)
        if at < load_i64(log, LIST_COUNT):
            other = log_time(log, at)
            if time == 0 or other < time:
                time = other
    return time


@entry()
def next_round(scope, work):
    """Goes to the next round in which an import changed: the paths of such imports are to run, over its changes. False when
    there is none."""
    time = round_to_come(scope, work)
    if time == 0:
        return False
    if load_i64(scope, SC_ROUND) == 0 and load_i64(work, WORK_FIRST) != 0 and load_i64(scope, SC_UNIT) != 0:
        push_seed(scope, load_i64(scope, SC_UNIT))
    changed = load_i64(scope, SC_CHANGED)
    for i in range(load_i64(scope, SC_CHANGED_COUNT)):
        seed = load_i64(changed, i)
        log = load_i64(seed, SEED_LIST)
        at = load_i64(log, LIST_HI)
        first = at
        last = load_i64(log, LIST_COUNT)
        if load_i64(log, LIST_DATA) == 0:
            at = last
        while at < last and log_time(log, at) == time:
            at += 1
        store_i64(log, LIST_LO, first)
        store_i64(log, LIST_HI, at)
        if first < at:
            push_seed(scope, seed)
    store_i64(scope, SC_ROUND, time)
    return True


@entry()
def next_iteration(scope):
    """The next iteration, from SC_ITERATION on, at which something is scheduled; -1 if there is none."""
    at = load_i64(scope, SC_ITERATION)
    bits = load_i64(scope, SC_BITS)
    words = min(load_i64(scope, SC_BIT_WORDS), (load_i64(scope, SC_LAST) >> 6) + 1)
    found = next_bit(bits, at, words << 6)
    if found == words << 6:
        return -1
    clear_bit(bits, found)
    return found


@kernel
def iterations_of(scope, iteration):
    """How many iterations a round has had when it comes to one: its number where rows enter at the first."""
    done = load_i64(scope, SC_DONE) + 1
    store_i64(scope, SC_DONE, done)
    return iteration if load_i64(scope, SC_STAGGERED) == 0 else done


@entry()
def process_iteration(ctl, scope, work, iteration):
    """What was derived at an iteration becomes its changes, the seeds of the loop paths; false with CTL_ERROR set."""
    store_i64(scope, SC_TICK, next_tick(work))
    if iteration >= load_i64(scope, SC_HEAD_COUNT):
        return True
    collection = load_i64(load_i64(scope, SC_HEADS), iteration)
    store_i64(load_i64(scope, SC_HEADS), iteration, 0)
    while collection != 0:
        following = load_i64(bucket_at(collection, iteration), BUCKET_NEXT)
        if not process_collection(ctl, scope, collection, iteration):
            return False
        store_i64(work, WORK_PROCESSED, load_i64(work, WORK_PROCESSED) + 1)
        collection = following
    return True


@kernel
def process_collection(ctl, scope, collection, iteration):
    """`process_iteration` of a collection, or of a lattice's candidates; false with CTL_ERROR set."""
    time = load_i64(scope, SC_ROUND) + iteration
    lattice = load_i64(collection, CO_REDUCTION)
    result = collection
    if lattice != 0:
        result = load_i64(lattice, RD_RESULT)
        done = process_lattice(ctl, scope, lattice, iteration, time)
    else:
        done = enter_indexes(ctl, collection) and process_distinct(ctl, scope, collection, iteration, time)
    log = load_i64(result, CO_INNER_LOG)
    store_i64(log, LIST_LO, 0)
    store_i64(log, LIST_HI, load_i64(log, LIST_COUNT))
    if done and load_i64(log, LIST_COUNT) > 0:
        push_seed(scope, load_i64(log, LOG_SEED))
    return done


@entry()
def end_round(ctl, scope):
    """Ends a round of a recursive scope; false with CTL_ERROR set."""
    time = load_i64(scope, SC_ROUND)
    touched = load_i64(scope, SC_TOUCHED)
    for i in range(load_i64(scope, SC_TOUCHED_COUNT)):
        collection = load_i64(touched, i)
        store_i64(collection, CO_ACTIVE, 0)
        lattice = load_i64(collection, CO_REDUCTION)
        if lattice == 0:
            done = enter_indexes(ctl, collection) and end_distinct(ctl, collection, time)
        else:
            done = end_lattice(ctl, lattice, time) and enter_indexes(ctl, load_i64(lattice, RD_RESULT))
        if not done:
            return False
    store_i64(scope, SC_TOUCHED_COUNT, 0)
    store_i64(scope, SC_LAST, 0)
    return True


@kernel
def run_scope(scope, work, ctl):
    """Runs (or resumes) a recursive scope over all rounds of the batch."""
    while True:
        phase = load_i64(scope, SC_PHASE)
        if phase == _NEXT:
            if not next_round(scope, work):
                return DONE
            store_i64(scope, SC_ITERATION, 0)
            store_i64(scope, SC_DONE, -1)
            store_i64(scope, SC_ROUND_TICK, next_tick(work))
            store_i64(scope, SC_TICK, load_i64(scope, SC_ROUND_TICK))
            store_i64(scope, SC_PHASE, _ENTER)
            warm_rounds(scope)
        elif phase == _ENTER:
            status = run_seeds(scope, work, ctl)
            if status != DONE:
                return status
            store_i64(scope, SC_PHASE, _BUCKETS)
        elif phase == _BUCKETS:
            iteration = next_iteration(scope)
            if iteration < 0:
                if not end_round(ctl, scope):
                    return FAILED
                store_i64(scope, SC_PHASE, _NEXT)
                continue
            if iterations_of(scope, iteration) > load_i64(work, WORK_LIMIT):
                store_i64(ctl, CTL_ERROR, ERROR_ITERATIONS)
                return FAILED
            store_i64(ctl, CTL_ITERATION, iteration)
            if not process_iteration(ctl, scope, work, iteration):
                return FAILED
            store_i64(scope, SC_ITERATION, iteration + 1)
            store_i64(scope, SC_PHASE, _LOOP)
        else:
            status = run_seeds(scope, work, ctl)
            if status != DONE:
                return status
            store_i64(scope, SC_PHASE, _BUCKETS)


# ----------------------------------------------------------------------------------------------------------------- batch


@entry()
def begin_batch(work, ctl, rounds):
    """Begins a batch of so many rounds: what the one before has changed is forgotten."""
    touched = load_i64(work, WORK_TOUCHED)
    for i in range(load_i64(work, WORK_TOUCHED_COUNT)):
        forget_changes(ctl, load_i64(touched, i))
    store_i64(work, WORK_TOUCHED_COUNT, 0)
    store_i64(work, WORK_ROUNDS, rounds)
    store_i64(work, WORK_AT, -1)
    store_i64(work, WORK_OVER, 0)
    store_i64(ctl, CTL_BATCH, work)
    if load_i64(work, WORK_FIRST) != 0:
        for task in range(load_i64(work, WORK_COUNT)):
            mark_task(work, task)


@entry()
def start_scope(scope, work):
    """Prepares a recursive scope for a batch. In the first one it looks at all its imports: some may have rows of old."""
    store_i64(scope, SC_PHASE, _NEXT)
    store_i64(scope, SC_ROUND, 0)
    store_i64(scope, SC_PATH, 0)
    store_i64(scope, SC_TAIL, load_i64(work, WORK_TOUCHED_COUNT))
    changed = load_i64(scope, SC_CHANGED)
    if load_i64(work, WORK_FIRST) != 0:
        imports = load_i64(scope, SC_IMPORTS)
        store_i64(scope, SC_CHANGED_COUNT, load_i64(scope, SC_IMPORT_COUNT))
        for i in range(load_i64(scope, SC_IMPORT_COUNT)):
            store_i64(changed, i, load_i64(imports, i))
    for i in range(load_i64(scope, SC_CHANGED_COUNT)):
        store_i64(load_i64(load_i64(changed, i), SEED_LIST), LIST_HI, 0)


@entry()
def end_scope(scope, work):
    """Ends a recursive scope's part in a batch: those run that read what it has changed."""
    store_i64(scope, SC_CHANGED_COUNT, 0)
    mark_readers_from(work, load_i64(scope, SC_TAIL))


@kernel
def run_task(work, task, ctl):
    """Runs (or resumes) a task: [kind, address]."""
    kind = load_i64(task, 0)
    what = load_i64(task, 1)
    if kind == TASK_PATH:
        return run_seeded(what, work, ctl, True)
    if kind == TASK_DISTINCT:
        done = flush_distinct(ctl, work, what, load_i64(work, WORK_SPARE), load_i64(work, WORK_COUNTS))
        mark_readers(work, load_i64(what, CO_LOG))
        return DONE if done else FAILED
    if kind == TASK_REDUCE:
        done = flush_reduction(ctl, work, what, load_i64(work, WORK_SPARE), load_i64(work, WORK_COUNTS))
        mark_readers(work, load_i64(load_i64(what, RD_RESULT), CO_LOG))
        if load_i64(what, RD_MISSING) != 0:
            mark_readers(work, load_i64(what, RD_MISSING))
        return DONE if done else FAILED
    if load_i64(work, WORK_BEGUN) == 0:
        start_scope(what, work)
        store_i64(work, WORK_BEGUN, 1)
    status = run_scope(what, work, ctl)
    if status == DONE:
        store_i64(work, WORK_BEGUN, 0)
        end_scope(what, work)
    return status


@entry()
def run_tasks(work, ctl, last):
    """Runs (or resumes) the marked ones of the tasks before the `last`. Returns DONE, YIELD, EXTERNAL or FAILED."""
    if load_i64(work, WORK_AT) < 0:
        mark_readers_from(work, 0)
        store_i64(work, WORK_AT, 0)
    tasks = load_i64(work, WORK_TASKS)
    while True:
        at = next_task(work, load_i64(work, WORK_AT), last)
        store_i64(work, WORK_AT, at)
        if at == last:
            return DONE
        status = run_task(work, tasks + at * 16, ctl)
        if status != DONE:
            return status
        clear_bit(load_i64(work, WORK_MARKS), at)
        store_i64(work, WORK_RAN, load_i64(work, WORK_RAN) + 1)


@entry()
def settle_batch(work, ctl):
    """Ends a batch of which all tasks have run; false with CTL_ERROR set."""
    # What is needed to settle is little, and there is no way back from half of it: the limit does not count here.
    limit = load_i64(ctl, CTL_LIMIT)
    store_i64(ctl, CTL_LIMIT, _UNLIMITED)
    store_i64(work, WORK_OVER, 1)
    settled = True
    touched = load_i64(work, WORK_TOUCHED)
    for i in range(load_i64(work, WORK_TOUCHED_COUNT)):
        settled = settled and settle(ctl, load_i64(touched, i))
    store_i64(ctl, CTL_LIMIT, limit)
    store_i64(work, WORK_FIRST, 0)
    return settled


@entry()
def run_batch(work, ctl):
    """Runs (or resumes) the tasks of a batch, then settles. Returns DONE, YIELD, EXTERNAL or FAILED."""
    status = run_tasks(work, ctl, load_i64(work, WORK_COUNT))
    if status != DONE:
        return status
    return DONE if settle_batch(work, ctl) else FAILED


@entry()
def commit_one(work, ctl, collection, updates, count, rounds):
    """A whole batch with changes of one input: begin, apply, run. Returns as `run_batch`."""
    begin_batch(work, ctl, rounds)
    touch(ctl, collection)
    if not bring_in(ctl, collection, updates, 0, count):
        return FAILED
    return run_batch(work, ctl)
