"""The work of a batch of rounds, from its inputs' changes to its outputs', without leaving compiled code.

A batch runs task by task in the order of strata: so each path reads collections that are complete for all rounds of the batch.
Scopes that are not recursive take all rounds at once; a recursive scope takes them one after the other, and within one the
iterations where something changes. Paths without a changed seed are skipped. All state is in tables: a run stops and resumes
anywhere (see machine).
"""

from __future__ import annotations

from dlog.engine.kernels.ahead import warm_rounds
from dlog.engine.kernels.batches import begin, settle
from dlog.engine.kernels.changes import flush_distinct, next_tick
from dlog.engine.kernels.collections import enter_indexes
from dlog.engine.kernels.distinct import end_distinct, process_distinct
from dlog.engine.kernels.few import run_few
from dlog.engine.kernels.jit import entry, kernel
from dlog.engine.kernels.lattices import end_lattice, process_lattice
from dlog.engine.kernels.layout import (
    CHANGE_TIME,
    CO_EXPECTED,
    CO_INNER_LOG,
    CO_OLD,
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
    SC_COLLECTION_COUNT,
    SC_COLLECTIONS,
    SC_DONE,
    SC_ENTER,
    SC_ENTER_COUNT,
    SC_IMPORT_COUNT,
    SC_IMPORTS,
    SC_ITERATION,
    SC_LAST,
    SC_LATTICE_COUNT,
    SC_LATTICES,
    SC_LOOP,
    SC_LOOP_COUNT,
    SC_PATH,
    SC_PHASE,
    SC_ROUND,
    SC_ROUND_TICK,
    SC_STAGGERED,
    SC_TICK,
    TASK_DISTINCT,
    TASK_PATH,
    TASK_REDUCE,
    WORK_AT,
    WORK_BEGUN,
    WORK_COLLECTION_COUNT,
    WORK_COLLECTIONS,
    WORK_COUNT,
    WORK_COUNTS,
    WORK_FIRST,
    WORK_LIMIT,
    WORK_ROUNDS,
    WORK_SPARE,
    WORK_TASKS,
)
from dlog.engine.kernels.lists import change_at, list_empty
from dlog.engine.kernels.loading import bring_in
from dlog.engine.kernels.machine import run_path
from dlog.engine.kernels.memory import load_i64, store_i64
from dlog.engine.kernels.reductions import flush_reduction
from dlog.engine.kernels.slots import meet_expectation

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
        if load_i64(load_i64(gates, g), CO_OLD) == 0:
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
def run_some(scope, paths, count, work, ctl):
    """Runs the paths of a phase from SC_PATH on."""
    while load_i64(scope, SC_PATH) < count:
        status = run_seeded(load_i64(paths, load_i64(scope, SC_PATH)), work, ctl, False)
        if status != DONE:
            return status
        store_i64(scope, SC_PATH, load_i64(scope, SC_PATH) + 1)
    store_i64(scope, SC_PATH, 0)
    return DONE


@entry()
def log_time(log, at):
    """Time of a change; one without data has all its changes at the first round (a fresh collection's)."""
    if load_i64(log, LIST_DATA) == 0:
        return ROUND
    return load_i64(change_at(log, at), CHANGE_TIME)


@entry()
def next_round(scope, work):
    """Finds the next round in which an import changed and points the imports' logs at it; false when there is none."""
    imports = load_i64(scope, SC_IMPORTS)
    count = load_i64(scope, SC_IMPORT_COUNT)
    time = 0
    for i in range(count):
        log = load_i64(imports, i)
        at = load_i64(log, LIST_HI)
        if at < load_i64(log, LIST_COUNT):
            other = log_time(log, at)
            if time == 0 or other < time:
                time = other
    if load_i64(work, WORK_FIRST) != 0 and load_i64(scope, SC_ROUND) == 0:
        time = ROUND
    if time == 0:
        return False
    for i in range(count):
        log = load_i64(imports, i)
        at = load_i64(log, LIST_HI)
        store_i64(log, LIST_LO, at)
        last = load_i64(log, LIST_COUNT)
        if load_i64(log, LIST_DATA) == 0:
            at = last
        while at < last and log_time(log, at) == time:
            at += 1
        store_i64(log, LIST_HI, at)
    store_i64(scope, SC_ROUND, time)
    return True


@entry()
def next_iteration(scope):
    """The next iteration, from SC_ITERATION on, at which something is scheduled; -1 if there is none."""
    at = load_i64(scope, SC_ITERATION)
    bits = load_i64(scope, SC_BITS)
    words = min(load_i64(scope, SC_BIT_WORDS), (load_i64(scope, SC_LAST) >> 6) + 1)
    word = at >> 6
    if word >= words:
        return -1
    current = load_i64(bits, word) >> (at & 63) << (at & 63)
    while current == 0:
        word += 1
        if word >= words:
            return -1
        current = load_i64(bits, word)
    bit = 0
    while (current >> bit) & 1 == 0:
        bit += 1
    store_i64(bits, word, load_i64(bits, word) ^ (current & -current))
    return word * 64 + bit


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
    time = load_i64(scope, SC_ROUND) + iteration
    collections = load_i64(scope, SC_COLLECTIONS)
    for i in range(load_i64(scope, SC_COLLECTION_COUNT)):
        collection = load_i64(collections, i)
        log = load_i64(collection, CO_INNER_LOG)
        store_i64(log, LIST_COUNT, 0)
        if not enter_indexes(ctl, collection) or not process_distinct(ctl, scope, collection, iteration, time):
            return False
        store_i64(log, LIST_LO, 0)
        store_i64(log, LIST_HI, load_i64(log, LIST_COUNT))
    lattices = load_i64(scope, SC_LATTICES)
    for i in range(load_i64(scope, SC_LATTICE_COUNT)):
        lattice = load_i64(lattices, i)
        log = load_i64(load_i64(lattice, RD_RESULT), CO_INNER_LOG)
        store_i64(log, LIST_COUNT, 0)
        if not process_lattice(ctl, scope, lattice, iteration, time):
            return False
        store_i64(log, LIST_LO, 0)
        store_i64(log, LIST_HI, load_i64(log, LIST_COUNT))
    return True


@entry()
def end_round(ctl, scope):
    """Ends a round of a recursive scope; false with CTL_ERROR set."""
    time = load_i64(scope, SC_ROUND)
    collections = load_i64(scope, SC_COLLECTIONS)
    for i in range(load_i64(scope, SC_COLLECTION_COUNT)):
        collection = load_i64(collections, i)
        if not enter_indexes(ctl, collection) or not end_distinct(ctl, collection, time):
            return False
    lattices = load_i64(scope, SC_LATTICES)
    for i in range(load_i64(scope, SC_LATTICE_COUNT)):
        lattice = load_i64(lattices, i)
        if not end_lattice(ctl, lattice, time) or not enter_indexes(ctl, load_i64(lattice, RD_RESULT)):
            return False
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
            status = run_some(scope, load_i64(scope, SC_ENTER), load_i64(scope, SC_ENTER_COUNT), work, ctl)
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
            status = run_some(scope, load_i64(scope, SC_LOOP), load_i64(scope, SC_LOOP_COUNT), work, ctl)
            if status != DONE:
                return status
            store_i64(scope, SC_PHASE, _BUCKETS)


# ----------------------------------------------------------------------------------------------------------------- batch


@entry()
def begin_batch(work, ctl, rounds):
    """Begins a batch of so many rounds."""
    store_i64(work, WORK_ROUNDS, rounds)
    store_i64(work, WORK_AT, 0)
    collections = load_i64(work, WORK_COLLECTIONS)
    for i in range(load_i64(work, WORK_COLLECTION_COUNT)):
        begin(ctl, load_i64(collections, i), rounds)


@entry()
def start_scope(scope):
    """Prepares a recursive scope for a batch."""
    store_i64(scope, SC_PHASE, _NEXT)
    store_i64(scope, SC_ROUND, 0)
    store_i64(scope, SC_PATH, 0)
    imports = load_i64(scope, SC_IMPORTS)
    for i in range(load_i64(scope, SC_IMPORT_COUNT)):
        store_i64(load_i64(imports, i), LIST_HI, 0)


@entry()
def run_task(work, task, ctl):
    """Runs (or resumes) a task: [kind, address]."""
    kind = load_i64(task, 0)
    what = load_i64(task, 1)
    if kind == TASK_PATH:
        return run_seeded(what, work, ctl, True)
    if kind == TASK_DISTINCT:
        done = flush_distinct(ctl, work, what, load_i64(work, WORK_SPARE), load_i64(work, WORK_COUNTS))
        return DONE if done else FAILED
    if kind == TASK_REDUCE:
        if load_i64(what, RD_MISSING) != 0:
            list_empty(ctl, load_i64(what, RD_MISSING))
        done = flush_reduction(ctl, work, what, load_i64(work, WORK_SPARE), load_i64(work, WORK_COUNTS))
        return DONE if done else FAILED
    if load_i64(work, WORK_BEGUN) == 0:
        start_scope(what)
        store_i64(work, WORK_BEGUN, 1)
    status = run_scope(what, work, ctl)
    if status == DONE:
        store_i64(work, WORK_BEGUN, 0)
    return status


@entry()
def run_batch(work, ctl):
    """Runs (or resumes) the tasks of a batch, then settles. Returns DONE, YIELD, EXTERNAL or FAILED."""
    tasks = load_i64(work, WORK_TASKS)
    count = load_i64(work, WORK_COUNT)
    while load_i64(work, WORK_AT) < count:
        status = run_task(work, tasks + load_i64(work, WORK_AT) * 16, ctl)
        if status != DONE:
            return status
        store_i64(work, WORK_AT, load_i64(work, WORK_AT) + 1)
    # What is needed to settle is little, and there is no way back from half of it: the limit does not count here.
    limit = load_i64(ctl, CTL_LIMIT)
    store_i64(ctl, CTL_LIMIT, _UNLIMITED)
    settled = True
    collections = load_i64(work, WORK_COLLECTIONS)
    for i in range(load_i64(work, WORK_COLLECTION_COUNT)):
        settled = settled and settle(ctl, load_i64(collections, i))
    store_i64(ctl, CTL_LIMIT, limit)
    store_i64(work, WORK_FIRST, 0)
    return DONE if settled else FAILED


@entry()
def commit_one(work, ctl, collection, updates, count, rounds):
    """A whole batch with changes of one input: begin, apply, run. Returns as `run_batch`."""
    begin_batch(work, ctl, rounds)
    if not bring_in(ctl, collection, updates, 0, count):
        return FAILED
    return run_batch(work, ctl)
