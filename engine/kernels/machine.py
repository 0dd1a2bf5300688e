"""The machine: runs delta-query paths over blocks, and the whole fixed point of a recursive scope, without leaving compiled
code.

A path is a list of levels. A level is one generator, then instructions on the block it made, then either `OP_NEXT` (the block
feeds the next level's generator) or a sink. Control goes depth first: a level hands each block on as soon as it has one. All
state is in tables, so a run stops and resumes anywhere: it returns YIELD when its budget of work is used up (for Ctrl-C and
progress), EXTERNAL when Python must evaluate an instruction on the block, FAILED with CTL_ERROR set, or DONE.
"""

from __future__ import annotations

from dlog.engine.kernels.arithmetic import arithmetic_block
from dlog.engine.kernels.block import (
    compact,
    gather,
    select_compare,
    select_flag,
    select_nonzero,
)
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import atomic_add, cycles, load_i64, store_i64
from dlog.engine.kernels.generate import extend, join, scan, scan_queue
from dlog.engine.kernels.incremental.steps.derive import derive
from dlog.engine.kernels.incremental.steps.lookups import entries_of, once, rows_of, scan_changes, step_lookup
from dlog.engine.kernels.incremental.steps.proposals import propose_values
from dlog.engine.kernels.layout import (
    BLOCK,
    BULK,
    CTL_BUDGET,
    CTL_BULK,
    CTL_CHANGES,
    CTL_CURSOR,
    CTL_ERROR,
    CTL_ERROR_PATH,
    CTL_ITERATION,
    CTL_LEVEL,
    CTL_LEVELS,
    CTL_NUMBER,
    CTL_PATH,
    CTL_PC,
    CTL_PHASE,
    CTL_ROWS,
    CTL_RUN_PATH,
    CTL_RUNNING,
    CTL_SCRATCH,
    CTL_SHARED,
    CTL_WORK,
    DONE,
    EXTERNAL,
    FAILED,
    LEVEL_AT,
    LEVEL_END,
    LEVEL_LEFT,
    LEVEL_ROW,
    LEVEL_ROWS,
    LEVEL_SIZE,
    LOOP_ALT,
    LOOP_ALT_COUNT,
    LOOP_ARRANGEMENT_COUNT,
    LOOP_ARRANGEMENTS,
    LOOP_NEU,
    LOOP_NEU_COUNT,
    LOOP_RELATION_COUNT,
    LOOP_RELATIONS,
    LOOP_RUN_COUNT,
    LOOP_RUNS,
    OP_APPEND,
    OP_ARITHMETIC,
    OP_CHANGES,
    OP_COMPARE,
    OP_CONTAINS,
    OP_DERIVE,
    OP_ENTRIES,
    OP_EXTEND,
    OP_EXTERNAL,
    OP_FETCH,
    OP_FIND,
    OP_GROUP,
    OP_HAS_GROUP,
    OP_INDEX,
    OP_INSERT,
    OP_JOIN,
    OP_MASK,
    OP_MERGE,
    OP_MOVE,
    OP_NEXT,
    OP_ONCE,
    OP_PROPOSE,
    OP_QUEUE,
    OP_ROWS_OF,
    OP_RUNS,
    OP_SCAN,
    OP_SWEEP,
    OP_SWEEP_RUNS,
    OP_UNPACK,
    PATH_ADDED,
    PATH_CHANGES,
    PATH_CODE,
    PATH_CYCLES,
    PATH_DERIVED,
    PATH_LIST,
    PATH_RUN_CODE,
    PATH_RUNS,
    PATH_SEED,
    REL_ARITY,
    REL_HEAP,
    REL_HI,
    REL_LIMIT,
    REL_LO,
    REL_QUEUE_ROWS,
    REL_ROWS,
    REL_SHARES,
    RUNS_READY,
    YIELD,
)
from dlog.engine.kernels.static.arrange import column_of, find_groups, group_size
from dlog.engine.kernels.static.chains import grow_arrangement
from dlog.engine.kernels.static.merge import merge_block, next_changes
from dlog.engine.kernels.static.runs import scan_runs, sort_changes
from dlog.engine.kernels.static.sets import find_rows, insert_block, share_block
from dlog.engine.kernels.static.storage import append_block, register
from dlog.engine.kernels.static.sweep import sweep
from dlog.engine.kernels.values.texts import text_block

_FAIL = -1


@entry()
def read_ticks():
    """The time-stamp counter that PATH_CYCLES counts in."""
    return cycles()


@kernel
def scratch(ctl, number):
    """Address of one of the worker's scratch blocks."""
    return load_i64(ctl, CTL_SCRATCH) + number * (BLOCK * 8)


@kernel
def generate(ctl, code, level):
    """Runs a level's generator; returns the rows it made, 0 when exhausted, _FAIL with CTL_ERROR set."""
    op = load_i64(code, 0)
    if op in (OP_SWEEP, OP_SWEEP_RUNS):
        return sweep(ctl, code, level)
    if op == OP_SCAN:
        return scan(ctl, code, level)
    if op == OP_JOIN:
        return join(ctl, code, level, scratch(ctl, 0), scratch(ctl, 1))
    if op == OP_EXTEND:
        return extend(ctl, code, level, scratch(ctl, 0))
    if op == OP_QUEUE:
        return scan_queue(ctl, code, level)
    if op == OP_RUNS:
        return scan_runs(ctl, code, level)
    if op == OP_ROWS_OF:
        return rows_of(ctl, code, level)
    if op == OP_CHANGES:
        return scan_changes(ctl, code, level)
    if op == OP_ENTRIES:
        return entries_of(ctl, code, level)
    if op == OP_PROPOSE:
        return propose_values(ctl, code, level)
    if op == OP_ONCE:
        return once(ctl, code, level)
    # OP_UNIT: one empty row, made by whichever worker comes first.
    return 1 if atomic_add(load_i64(ctl, CTL_CURSOR), 0, 1) == 0 else 0


@kernel
def keep(ctl, live, count, kept, n):
    """Compacts the live registers to the chosen rows (scratch 0), unless all were chosen."""
    if 0 < kept < n:
        compact(ctl, live, count, scratch(ctl, 0), kept)
    return kept


@kernel
def step(ctl, pc, n):
    """Runs one instruction on the level's block of n rows; returns the rows left, or _FAIL."""
    op = load_i64(pc, 0)
    if op == OP_GROUP:
        # [arrangement, dst, key registers ...]
        find_groups(load_i64(pc, 2), ctl, pc + 32, n, register(ctl, load_i64(pc, 3)))
        return n
    if op == OP_COMPARE:
        # [comparison, left, right, live count, live ...]
        left = register(ctl, load_i64(pc, 3))
        right = register(ctl, load_i64(pc, 4))
        kept = select_compare(load_i64(pc, 2), left, right, n, scratch(ctl, 0))
        return keep(ctl, pc + 48, load_i64(pc, 5), kept, n)
    if op in (OP_CONTAINS, OP_HAS_GROUP):
        return step_member(ctl, pc, n)
    if op == OP_ARITHMETIC:
        # [operation, left, right, dst]
        left = register(ctl, load_i64(pc, 3))
        right = register(ctl, load_i64(pc, 4))
        error = arithmetic_block(load_i64(pc, 2), left, right, n, register(ctl, load_i64(pc, 5)))
        if error != 0:
            store_i64(ctl, CTL_ERROR, error)
            return _FAIL
        return n
    if op == OP_MOVE:
        # [src, dst]
        source = register(ctl, load_i64(pc, 2))
        target = register(ctl, load_i64(pc, 3))
        for i in range(n):
            store_i64(target, i, load_i64(source, i))
        return n
    if op == OP_MASK:
        # [register, live count, live ...]
        kept = select_nonzero(register(ctl, load_i64(pc, 2)), n, scratch(ctl, 0))
        return keep(ctl, pc + 32, load_i64(pc, 3), kept, n)
    if op >= OP_INDEX:
        return step_lookup(ctl, pc, n)
    return step_rows(ctl, pc, n)


@kernel
def step_member(ctl, pc, n):
    flags = scratch(ctl, 1)
    if load_i64(pc, 0) == OP_CONTAINS:
        # [relation, wanted, live count, live ..., key registers ...]
        relation = load_i64(pc, 2)
        keys = pc + (5 + load_i64(pc, 4)) * 8
        find_rows(relation, ctl, keys, n, scratch(ctl, 2), flags)
    else:
        # [arrangement, wanted, live count, live ..., group register]
        arrangement = load_i64(pc, 2)
        groups = register(ctl, load_i64(pc, 5 + load_i64(pc, 4)))
        for i in range(n):
            store_i64(flags, i, 0 if group_size(arrangement, load_i64(groups, i)) > 0 else -1)
    kept = select_flag(flags, load_i64(pc, 3), n, scratch(ctl, 0))
    return keep(ctl, pc + 40, load_i64(pc, 4), kept, n)


@kernel
def step_rows(ctl, pc, n):
    """Instructions that read or make rows by number: reductions and records."""
    op = load_i64(pc, 0)
    relation = load_i64(pc, 2)
    if op == OP_FIND:
        # [relation, dst, key registers ...]
        find_rows(relation, ctl, pc + 32, n, scratch(ctl, 2), register(ctl, load_i64(pc, 3)))
        return n
    if op == OP_FETCH:
        # [relation, column, row register, dst, has default, default, live count, live ...]
        rows = register(ctl, load_i64(pc, 4))
        target = register(ctl, load_i64(pc, 5))
        if load_i64(relation, REL_ROWS) > 0:
            gather(column_of(relation, load_i64(pc, 3)), rows, n, target)
        if load_i64(pc, 6) != 0:
            for i in range(n):
                if load_i64(rows, i) < 0:
                    store_i64(target, i, load_i64(pc, 7))
            return n
        kept = select_flag(rows, 1, n, scratch(ctl, 0))
        return keep(ctl, pc + 72, load_i64(pc, 8), kept, n)
    if op == OP_UNPACK:
        # [relation, register, bound, live count, (column, dst)*, live ...]: ids are row numbers plus one, 0 is nil
        bound = load_i64(pc, 4)
        ids = register(ctl, load_i64(pc, 3))
        rows = scratch(ctl, 1)
        kept = select_nonzero(ids, n, scratch(ctl, 0))
        for j in range(kept):
            store_i64(rows, j, load_i64(ids, load_i64(scratch(ctl, 0), j)) - 1)
        keep(ctl, pc + (6 + bound * 2) * 8, load_i64(pc, 5), kept, n)
        for c in range(bound):
            gather(column_of(relation, load_i64(pc, 6 + c * 2)), rows, kept, register(ctl, load_i64(pc, 7 + c * 2)))
        return kept
    # OP_PACK: [relation, dst, field registers ...]
    before = insert_block(ctl, relation, pc + 32, n, scratch(ctl, 1), scratch(ctl, 0))
    if before < 0:
        return _FAIL
    target = register(ctl, load_i64(pc, 3))
    find_rows(relation, ctl, pc + 32, n, scratch(ctl, 2), target)
    for i in range(n):
        store_i64(target, i, load_i64(target, i) + 1)
    return n


@kernel
def sink(ctl, path, pc, n):
    """Runs a path's last instruction; returns false with CTL_ERROR set on error."""
    op = load_i64(pc, 0)
    if op >= OP_DERIVE:
        return derive(ctl, pc, n)
    relation = load_i64(pc, 2)
    target = relation
    if load_i64(ctl, CTL_SHARED) != 0:
        target = load_i64(load_i64(relation, REL_SHARES), load_i64(ctl, CTL_NUMBER))
    rows = load_i64(target, REL_ROWS)
    if op == OP_INSERT and target == relation:
        done = insert_block(ctl, relation, pc + 24, n, scratch(ctl, 1), scratch(ctl, 0))
    elif op == OP_INSERT:
        done = share_block(ctl, relation, target, pc + 24, n, scratch(ctl, 1), scratch(ctl, 0))
    elif op == OP_APPEND:
        done = append_block(ctl, target, pc + 24, n)
    else:
        keys = pc + (3 + load_i64(relation, REL_ARITY)) * 8
        done = merge_block(ctl, target, pc + 24, keys, n, scratch(ctl, 1))
    if done < 0:
        return False
    atomic_add(path, PATH_DERIVED, n)
    atomic_add(path, PATH_ADDED, load_i64(target, REL_ROWS) - rows)
    return True


@entry()
def start_path(path, ctl):
    """Points a worker at the beginning of a path. The shared cursor is the caller's to set, unless the worker is alone."""
    level = load_i64(ctl, CTL_LEVELS)
    store_i64(ctl, CTL_RUN_PATH, path)
    relation = load_i64(path, PATH_SEED)
    first = 0
    end = 0
    if relation != 0:
        if load_i64(path, PATH_CHANGES) == 0:
            end = load_i64(relation, REL_ROWS)
        elif load_i64(relation, REL_HEAP) != 0:
            end = load_i64(relation, REL_QUEUE_ROWS)
        else:
            first = load_i64(relation, REL_LO)
            end = load_i64(relation, REL_HI)
    store_i64(level, LEVEL_END, end)
    store_i64(ctl, CTL_LEVEL, 0)
    store_i64(ctl, CTL_PC, 0)
    if load_i64(ctl, CTL_SHARED) == 0:
        store_i64(load_i64(ctl, CTL_CURSOR), 0, first)


@kernel
def run_path(path, ctl):
    """Runs (or resumes) a path to its end. Returns DONE, YIELD, EXTERNAL or FAILED."""
    codes = load_i64(path, PATH_CODE)
    runs = load_i64(path, PATH_RUNS)
    if runs != 0 and load_i64(runs, RUNS_READY) != 0:
        codes = load_i64(path, PATH_RUN_CODE)
    levels = load_i64(ctl, CTL_LEVELS)
    depth = load_i64(ctl, CTL_LEVEL)
    pc = load_i64(ctl, CTL_PC)
    n = load_i64(ctl, CTL_ROWS)
    work = load_i64(ctl, CTL_WORK)
    budget = load_i64(ctl, CTL_BUDGET)
    # Paths over rounds run too often, and too briefly, to be timed.
    timed = load_i64(path, PATH_LIST) == 0
    started = cycles() if timed else 0
    status = DONE
    while True:
        if pc == 0:
            if work > budget:
                status = YIELD
                break
            code = load_i64(codes, depth)
            n = generate(ctl, code, levels + depth * (LEVEL_SIZE * 8))
            work += n + 8
            if n == 0:
                if depth == 0:
                    break
                depth -= 1
                continue
            if n < 0:
                status = FAILED
                break
            if load_i64(code, 0) in (OP_SWEEP, OP_SWEEP_RUNS):
                continue
            pc = code + load_i64(code, 1) * 8
        op = load_i64(pc, 0)
        if op == OP_NEXT:
            depth += 1
            below = levels + depth * (LEVEL_SIZE * 8)
            store_i64(below, LEVEL_ROWS, n)
            store_i64(below, LEVEL_ROW, -1)
            store_i64(below, LEVEL_AT, 0)
            store_i64(below, LEVEL_END, 0)
            store_i64(below, LEVEL_LEFT, 0)
            pc = 0
        elif op >= OP_DERIVE or op in (OP_INSERT, OP_APPEND, OP_MERGE):
            if not sink(ctl, path, pc, n):
                status = FAILED
                break
            pc = 0
        elif op == OP_EXTERNAL:
            if not text_block(ctl, pc, n):
                status = EXTERNAL
                break
            pc += load_i64(pc, 1) * 8
        else:
            n = step(ctl, pc, n)
            if n < 0:
                status = FAILED
                break
            pc = 0 if n == 0 else pc + load_i64(pc, 1) * 8
    store_i64(ctl, CTL_LEVEL, depth)
    store_i64(ctl, CTL_PC, pc)
    store_i64(ctl, CTL_ROWS, n)
    store_i64(ctl, CTL_WORK, 0 if status == YIELD else work)
    if status == FAILED:
        store_i64(ctl, CTL_ERROR_PATH, path)
    if timed:
        atomic_add(path, PATH_CYCLES, cycles() - started)
    return status


# ----------------------------------------------------------------------------------------------------------------- loop


@kernel
def run_paths(ctl, paths, count):
    """Runs the paths of one phase from CTL_PATH on, skipping those whose seed has no changes."""
    while load_i64(ctl, CTL_PATH) < count:
        path = load_i64(paths, load_i64(ctl, CTL_PATH))
        if load_i64(ctl, CTL_RUNNING) == 0:
            start_path(path, ctl)
            if load_i64(load_i64(ctl, CTL_LEVELS), LEVEL_END) <= load_i64(load_i64(ctl, CTL_CURSOR), 0):
                store_i64(ctl, CTL_PATH, load_i64(ctl, CTL_PATH) + 1)
                continue
            store_i64(ctl, CTL_RUNNING, 1)
        status = run_path(path, ctl)
        if status != DONE:
            return status
        store_i64(ctl, CTL_RUNNING, 0)
        store_i64(ctl, CTL_PATH, load_i64(ctl, CTL_PATH) + 1)
    store_i64(ctl, CTL_PATH, 0)
    return DONE


@kernel
def include_changes(ctl, loop):
    """Adds this iteration's changes to the growing arrangements. False with CTL_ERROR set when out of memory."""
    arrangements = load_i64(loop, LOOP_ARRANGEMENTS)
    for a in range(load_i64(loop, LOOP_ARRANGEMENT_COUNT)):
        arrangement = load_i64(arrangements, a)
        relation = load_i64(arrangement, 1)
        end = load_i64(relation, REL_HI)
        if load_i64(relation, REL_HEAP) != 0:
            end = load_i64(relation, REL_ROWS)
        if not grow_arrangement(ctl, arrangement, end):
            return False
    return True


@kernel
def advance(ctl, loop):
    """Makes the rows that this iteration added the next one's changes. Returns how many, -1 with CTL_ERROR set on error."""
    relations = load_i64(loop, LOOP_RELATIONS)
    changes = 0
    full = False
    for r in range(load_i64(loop, LOOP_RELATION_COUNT)):
        relation = load_i64(relations, r)
        if load_i64(relation, REL_HEAP) != 0:
            count = next_changes(ctl, relation)
            if count < 0:
                return -1
            changes += count
        else:
            store_i64(relation, REL_LO, load_i64(relation, REL_HI))
            store_i64(relation, REL_HI, load_i64(relation, REL_ROWS))
            changes += load_i64(relation, REL_HI) - load_i64(relation, REL_LO)
        limit = load_i64(relation, REL_LIMIT)
        full = full or 0 < limit <= load_i64(relation, REL_ROWS)
    for r in range(load_i64(loop, LOOP_RUN_COUNT)):
        sort_changes(ctl, load_i64(load_i64(loop, LOOP_RUNS), r))
    store_i64(ctl, CTL_CHANGES, changes)
    store_i64(ctl, CTL_ITERATION, load_i64(ctl, CTL_ITERATION) + 1)
    return 0 if full else changes


@kernel
def run_loop(loop, ctl):
    """Iterates a scope to its fixed point. Phase 0: paths that read `alt`; 1: changes enter the arrangements, then
    paths that read `neu`; 2: advance. Returns BULK before an iteration of at least CTL_BULK changes, for several workers to
    run.
    """
    while True:
        phase = load_i64(ctl, CTL_PHASE)
        if phase == 0:
            status = run_paths(ctl, load_i64(loop, LOOP_ALT), load_i64(loop, LOOP_ALT_COUNT))
            if status != DONE:
                return status
            if not include_changes(ctl, loop):
                return FAILED
            store_i64(ctl, CTL_PHASE, 1)
        elif phase == 1:
            status = run_paths(ctl, load_i64(loop, LOOP_NEU), load_i64(loop, LOOP_NEU_COUNT))
            if status != DONE:
                return status
            store_i64(ctl, CTL_PHASE, 2)
        else:
            changes = advance(ctl, loop)
            if changes < 0:
                return FAILED
            if changes == 0:
                return DONE
            store_i64(ctl, CTL_PHASE, 0)
            if changes >= load_i64(ctl, CTL_BULK):
                return BULK


@entry()
def run(task, ctl):
    """The one entry point, so that the machine is compiled and loaded once: `task` is a path (CTL_PHASE -1) or a loop."""
    if load_i64(ctl, CTL_PHASE) < 0:
        return run_path(task, ctl)
    return run_loop(task, ctl)
