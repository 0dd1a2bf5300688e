"""The machine: runs delta-query paths over blocks, and the whole fixed point of a recursive scope, without leaving compiled
code.

A path is a list of levels. A level is one generator, then instructions on the block it made, then either NEXT (the block feeds
the next level's generator) or a sink. Control goes depth first: a level hands each block on as soon as it has one. All state is
in tables, so a run stops and resumes anywhere: the `Status` that it returns says why it stopped. YIELD, which comes when its
budget of work is used up, is for Ctrl-C and progress.
"""

from __future__ import annotations

from dlog.engine.kernels.arithmetic import arithmetic_block
from dlog.engine.kernels.block import compact, gather, select_compare, select_flag, select_nonzero
from dlog.engine.kernels.codes import Move, Operation, Status
from dlog.engine.kernels.core.jit import entry, inlined, kernel
from dlog.engine.kernels.core.memory import atomic_add, cycles
from dlog.engine.kernels.core.structs import Array, Pointer
from dlog.engine.kernels.incremental.steps.derive import derive
from dlog.engine.kernels.incremental.steps.joins import entries_of, once, rows_of, scan_changes
from dlog.engine.kernels.incremental.steps.lookups import step_lookup
from dlog.engine.kernels.incremental.steps.proposals import propose_values
from dlog.engine.kernels.instructions import (
    CalledRows,
    Compare,
    Compute,
    Contains,
    Copy,
    EntriesOf,
    Extend,
    External,
    Fetch,
    Find,
    FindGroup,
    HasGroup,
    Instruction,
    Join,
    Mask,
    Once,
    Pack,
    Propose,
    Range,
    RowsOf,
    Scan,
    ScanChanges,
    ScanQueue,
    ScanRuns,
    Sink,
    Sweep,
    Unpack,
)
from dlog.engine.kernels.machine_structs import Level, Words
from dlog.engine.kernels.round_structs import Control, Cycle, CycleMove, Loop, Path
from dlog.engine.kernels.static.arrange import column_of, find_groups, group_size
from dlog.engine.kernels.static.chains import grow_arrangement
from dlog.engine.kernels.static.emptying import empty_arrangement, empty_relation
from dlog.engine.kernels.static.extend import extend
from dlog.engine.kernels.static.generators import called_rows, range_values
from dlog.engine.kernels.static.joins import copy_carried, join, scan, scan_queue
from dlog.engine.kernels.static.merge import merge_block, next_changes
from dlog.engine.kernels.static.runs import scan_runs, sort_changes
from dlog.engine.kernels.static.sets import find_rows, insert_block, share_block
from dlog.engine.kernels.static.storage import append_block, behind, register, reserve, scratch_block, store_cell
from dlog.engine.kernels.static.sweep import sweep
from dlog.engine.kernels.static.unions import unite_changes
from dlog.engine.kernels.values.texts import text_block

_FAIL = -1


@entry()
def read_ticks():
    """The time-stamp counter that a path's `cycles` count in."""
    return cycles()


@inlined
def generate(ctl: Control, code: Instruction, level: Level):
    """Runs a level's generator; returns the rows it made, 0 when exhausted, _FAIL with ctl.error set."""
    op = code.operation
    if op in (Operation.SWEEP, Operation.SWEEP_RUNS):
        return sweep(ctl, Sweep(code), level)
    if op == Operation.SCAN:
        return scan(ctl, Scan(code), level)
    if op == Operation.JOIN:
        return join(ctl, Join(code), level, scratch_block(ctl, 0), scratch_block(ctl, 1))
    if op == Operation.EXTEND:
        return extend(ctl, Extend(code), level, scratch_block(ctl, 0))
    if op == Operation.RANGE:
        return step_range(ctl, Range(code), level)
    if op == Operation.CALLED:
        return step_called(ctl, CalledRows(code), level)
    if op == Operation.QUEUE:
        return scan_queue(ctl, ScanQueue(code), level)
    if op == Operation.RUNS:
        return scan_runs(ctl, ScanRuns(code), level)
    if op == Operation.ROWS_OF:
        return rows_of(ctl, RowsOf(code), level)
    if op == Operation.CHANGES:
        return scan_changes(ctl, ScanChanges(code), level)
    if op == Operation.ENTRIES:
        return entries_of(ctl, EntriesOf(code), level)
    if op == Operation.PROPOSE:
        return propose_values(ctl, Propose(code), level)
    if op == Operation.ONCE:
        return once(ctl, Once(code), level)
    # UNIT: one empty row, made by whichever worker comes first.
    return 1 if atomic_add(ctl.cursor, 0, 1) == 0 else 0


@kernel
def step_range(ctl: Control, code: Range, level: Level):
    n = range_values(ctl, code, level, scratch_block(ctl, 0))
    copy_carried(ctl, code.moves, code.carried, scratch_block(ctl, 0), n)
    return n


@kernel
def step_called(ctl: Control, code: CalledRows, level: Level):
    n = called_rows(ctl, code, level, scratch_block(ctl, 0), scratch_block(ctl, 1))
    copy_carried(ctl, code.moves, code.carried, scratch_block(ctl, 0), n)
    return n


@kernel
def keep(ctl: Control, live: Words, count, kept, n):
    """Compacts the live registers to the chosen rows (scratch 0), unless all were chosen."""
    if 0 < kept < n:
        compact(ctl, live, count, scratch_block(ctl, 0), kept)
    return kept


@kernel
def step(ctl: Control, pc: Instruction, n):
    """Runs one instruction on the level's block of n rows; returns the rows left, or _FAIL."""
    op = pc.operation
    if op == Operation.GROUP:
        sought = FindGroup(pc)
        find_groups(sought.arrangement, ctl, sought.keys, n, register(ctl, sought.group))
        return n
    if op == Operation.COMPARE:
        compare = Compare(pc)
        left = register(ctl, compare.left)
        right = register(ctl, compare.right)
        kept = select_compare(compare.comparison, left, right, n, scratch_block(ctl, 0))
        return keep(ctl, compare.registers, compare.live, kept, n)
    if op == Operation.CONTAINS:
        return step_contains(ctl, Contains(pc), n)
    if op == Operation.HAS_GROUP:
        return step_has_group(ctl, HasGroup(pc), n)
    if op == Operation.ARITHMETIC:
        compute = Compute(pc)
        left = register(ctl, compute.left)
        right = register(ctl, compute.right)
        error = arithmetic_block(compute.function, left, right, n, register(ctl, compute.target))
        if error != 0:
            ctl.error = error
            return _FAIL
        return n
    if op == Operation.MOVE:
        source = register(ctl, Copy(pc).source)
        target = register(ctl, Copy(pc).target)
        for i in range(n):
            target[i] = source[i]
        return n
    if op == Operation.MASK:
        mask = Mask(pc)
        kept = select_nonzero(register(ctl, mask.mask), n, scratch_block(ctl, 0))
        return keep(ctl, mask.registers, mask.live, kept, n)
    if op >= Operation.INDEX:
        return step_lookup(ctl, pc, n)
    return step_rows(ctl, pc, n)


@kernel
def step_contains(ctl: Control, pc: Contains, n):
    flags = scratch_block(ctl, 1)
    find_rows(pc.relation, ctl, behind(pc.registers, pc.live), n, scratch_block(ctl, 2), flags)
    kept = select_flag(flags, pc.is_positive, n, scratch_block(ctl, 0))
    return keep(ctl, pc.registers, pc.live, kept, n)


@kernel
def step_has_group(ctl: Control, pc: HasGroup, n):
    flags = scratch_block(ctl, 1)
    groups = register(ctl, pc.registers[pc.live])
    for i in range(n):
        flags[i] = 0 if group_size(pc.arrangement, groups[i]) > 0 else -1
    kept = select_flag(flags, pc.is_positive, n, scratch_block(ctl, 0))
    return keep(ctl, pc.registers, pc.live, kept, n)


@kernel
def step_rows(ctl: Control, pc: Instruction, n):
    """Instructions that read or make rows by number: reductions and records."""
    op = pc.operation
    if op == Operation.FIND:
        find = Find(pc)
        find_rows(find.relation, ctl, find.keys, n, scratch_block(ctl, 2), register(ctl, find.row))
        return n
    if op == Operation.FETCH:
        return step_fetch(ctl, Fetch(pc), n)
    if op == Operation.UNPACK:
        return step_unpack(ctl, Unpack(pc), n)
    # PACK: the number of a record is its row's plus one.
    pack = Pack(pc)
    before = insert_block(ctl, pack.relation, pack.values, n, scratch_block(ctl, 1), scratch_block(ctl, 0))
    if before < 0:
        return _FAIL
    target = register(ctl, pack.target)
    find_rows(pack.relation, ctl, pack.values, n, scratch_block(ctl, 2), target)
    for i in range(n):
        target[i] += 1
    return n


@kernel
def step_fetch(ctl: Control, pc: Fetch, n):
    rows = register(ctl, pc.row)
    target = register(ctl, pc.target)
    if pc.relation.rows > 0:
        gather(column_of(pc.relation, pc.column), rows, n, target)
    if pc.has_default != 0:
        for i in range(n):
            if rows[i] < 0:
                target[i] = pc.default
        return n
    kept = select_flag(rows, 1, n, scratch_block(ctl, 0))
    return keep(ctl, pc.registers, pc.live, kept, n)


@kernel
def step_unpack(ctl: Control, pc: Unpack, n):
    """Records are numbers of rows plus one; 0 is nil, which has no fields."""
    records = register(ctl, pc.record)
    rows = scratch_block(ctl, 1)
    kept = select_nonzero(records, n, scratch_block(ctl, 0))
    for j in range(kept):
        rows[j] = records[scratch_block(ctl, 0)[j]] - 1
    keep(ctl, Words(pc.binds[pc.bound]), pc.live, kept, n)
    for c in range(pc.bound):
        gather(column_of(pc.relation, pc.binds[c].column), rows, kept, register(ctl, pc.binds[c].target))
    return kept


@kernel
def sink(ctl: Control, path: Path, pc: Sink, n):
    """Runs a path's last instruction; returns false with ctl.error set on error."""
    op = pc.operation
    if op >= Operation.DERIVE:
        return derive(ctl, Instruction(pc), n)
    relation = pc.relation
    target = relation
    if ctl.shared != 0:
        target = relation.shares[ctl.number]
    rows = target.rows
    if op == Operation.INSERT and target == relation:
        done = insert_block(ctl, relation, pc.values, n, scratch_block(ctl, 1), scratch_block(ctl, 0))
    elif op == Operation.INSERT:
        done = share_block(ctl, relation, target, pc.values, n, scratch_block(ctl, 1), scratch_block(ctl, 0))
    elif op == Operation.APPEND:
        done = append_block(ctl, target, pc.values, n)
    else:
        keys = behind(pc.values, relation.arity)
        done = merge_block(ctl, target, pc.values, keys, n, scratch_block(ctl, 1))
    if done < 0:
        return False
    atomic_add(path.ref.derived, 0, n)
    atomic_add(path.ref.added, 0, target.rows - rows)
    return True


@entry()
def start_path(path: Path, ctl: Control):
    """Points a worker at the beginning of a path. The shared cursor is the caller's to set, unless the worker is alone."""
    level = ctl.levels[0]
    ctl.run_path = path
    relation = path.seed
    first = 0
    end = 0
    if relation:
        if path.changes == 0:
            end = relation.rows
        elif relation.heap:
            end = relation.queue_rows
        else:
            first = relation.lo
            end = relation.hi
    level.end = end
    ctl.level = 0
    ctl.pc = 0
    if ctl.shared == 0:
        ctl.cursor[0] = first


@kernel
def run_path(path: Path, ctl: Control):
    """Runs (or resumes) a path to its end. Returns a `Status`."""
    codes = path.code
    runs = path.runs
    if runs and runs.ready != 0:
        codes = path.run_code
    levels = ctl.levels
    depth = ctl.level
    pc = ctl.pc  # 0: the level's generator is to make its next block; else its block has n rows left
    n = ctl.rows
    work = ctl.work
    budget = ctl.budget
    # Paths over rounds run too often, and too briefly, to be timed.
    timed = path.list.address == 0
    started = cycles() if timed else 0
    status = Status.DONE
    while True:
        if pc == 0:
            if work > budget:
                status = Status.YIELD
                break
            code = Instruction(codes[depth])
            n = generate(ctl, code, levels[depth])
            work += n + 8
            if n == 0:
                # The block above is done with: its level goes on with the next, at `pc` 0 still.
                if depth == 0:
                    break
                depth -= 1
                continue
            if n < 0:
                status = Status.FAILED
                break
            if code.operation in (Operation.SWEEP, Operation.SWEEP_RUNS):
                continue
            pc = code.address + code.length * 8
        op = Instruction(pc).operation
        if op == Operation.NEXT:
            depth += 1
            below = levels[depth]
            below.rows = n
            below.row = -1
            below.at = 0
            below.end = 0
            below.remaining = 0
            pc = 0
        elif op >= Operation.DERIVE or op in (Operation.INSERT, Operation.APPEND, Operation.MERGE, Operation.MERGE_AND):
            if not sink(ctl, path, Sink(pc), n):
                status = Status.FAILED
                break
            pc = pc + Instruction(pc).length * 8 if op in (Operation.MERGE_AND, Operation.REDUCE_AND) else 0
        elif op == Operation.EXTERNAL:
            if not text_block(ctl, External(pc), n):
                status = Status.EXTERNAL
                break
            pc += Instruction(pc).length * 8
        else:
            n = step(ctl, Instruction(pc), n)
            if n < 0:
                status = Status.FAILED
                break
            pc = 0 if n == 0 else pc + Instruction(pc).length * 8
    ctl.level = depth
    ctl.pc = pc
    ctl.rows = n
    ctl.work = 0 if status == Status.YIELD else work
    if status == Status.FAILED:
        ctl.error_path = path.address
    if timed:
        atomic_add(path.ref.cycles, 0, cycles() - started)
    return status


# ----------------------------------------------------------------------------------------------------------------- loop


@kernel
def run_paths(ctl: Control, paths: Array[Pointer[Path]], count):
    """Runs the paths of one phase from `ctl.path` on, skipping those whose seed has no changes."""
    while ctl.path < count:
        path = paths[ctl.path]
        if ctl.running == 0:
            start_path(path, ctl)
            if ctl.levels[0].end <= ctl.cursor[0]:
                ctl.path += 1
                continue
            ctl.running = 1
        status = run_path(path, ctl)
        if status != Status.DONE:
            return status
        ctl.running = 0
        ctl.path += 1
    ctl.path = 0
    return Status.DONE


@kernel
def include_changes(ctl: Control, loop: Loop):
    """Adds this iteration's changes to the growing arrangements. False with ctl.error set when out of memory."""
    arrangements = loop.arrangements
    for a in range(loop.arrangement_count):
        arrangement = arrangements[a]
        relation = arrangement.relation
        end = relation.hi
        if relation.heap:
            end = relation.rows
        if not grow_arrangement(ctl, arrangement, end):
            return False
    return True


@kernel
def advance(ctl: Control, loop: Loop):
    """Makes the rows that this iteration added the next one's changes. Returns how many, -1 with ctl.error set on error."""
    for u in range(loop.union_count):
        if not unite_changes(ctl, loop.unions[u]):
            return -1
    relations = loop.relations
    changes = 0
    full = False
    for r in range(loop.relation_count):
        relation = relations[r]
        if relation.heap:
            count = next_changes(ctl, relation)
            if count < 0:
                return -1
            changes += count
        else:
            relation.lo = relation.hi
            relation.hi = relation.rows
            changes += relation.hi - relation.lo
        limit = relation.limit
        full = full or 0 < limit <= relation.rows
    for r in range(loop.run_count):
        sort_changes(ctl, loop.runs[r])
    ctl.changes = changes
    ctl.iteration += 1
    return 0 if full else changes


@kernel
def run_loop(loop: Loop, ctl: Control):
    """Iterates a scope to its fixed point. Phase 0: paths that read `alt`; 1: changes enter the arrangements, then
    paths that read `neu`; 2: advance. Returns BULK before an iteration of at least `ctl.bulk` changes, for several
    workers to run.
    """
    while True:
        phase = ctl.phase
        if phase == 0:
            status = run_paths(ctl, loop.alt, loop.alt_count)
            if status != Status.DONE:
                return status
            if not include_changes(ctl, loop):
                return Status.FAILED
            ctl.phase = 1
        elif phase == 1:
            status = run_paths(ctl, loop.neu, loop.neu_count)
            if status != Status.DONE:
                return status
            ctl.phase = 2
        else:
            changes = advance(ctl, loop)
            if changes < 0:
                return Status.FAILED
            if changes == 0:
                return Status.DONE
            ctl.phase = 0
            if changes >= ctl.bulk:
                return Status.BULK


# ---------------------------------------------------------------------------------------------------------------- cycle


@kernel
def run_cycle(cycle: Cycle, ctl: Control):
    """Makes the moves of a cycle to its end, or up to what is Python's: then `cycle.at` is that move."""
    while True:
        if cycle.at == cycle.move_count:
            cycle.at = 0
            if cycle.moves[0].kind != Move.BEGIN:
                return Status.DONE
        move = cycle.moves[cycle.at]
        kind = move.kind
        if kind == Move.RUN:
            status = run_each(ctl, move.paths, move.path_count)
            if status != Status.DONE:
                return status
        elif kind == Move.UNLESS:
            if not move.relation or move.relation.rows == 0:
                cycle.at += move.further
        elif kind == Move.BEGIN:
            if not begin(ctl, cycle):
                return Status.DONE
        elif kind == Move.CALL:
            return Status.CALL
        elif not change(ctl, move, kind):
            return Status.FAILED
        cycle.at += 1


@kernel
def begin(ctl: Control, cycle: Cycle):
    """Begins an iteration; false where there is none: nothing to go on from, or no room for more."""
    changes = 0
    for r in range(cycle.relation_count):
        grown = cycle.grown[r]
        if 0 < grown.limit <= grown.rows:
            return False
        changes += cycle.deltas[r].rows
    ctl.changes = changes
    ctl.iteration += changes > 0
    return changes > 0


@kernel
def change(ctl: Control, move: CycleMove, kind):
    """A move that changes a relation or its arrangements. False with ctl.error set when out of memory."""
    relation = move.relation
    if kind == Move.ARRANGE:
        for a in range(move.arrangement_count):
            if not grow_arrangement(ctl, move.arrangements[a], relation.rows):
                return False
        return True
    for a in range(move.arrangement_count):
        empty_arrangement(move.arrangements[a])
    empty_relation(relation, scratch_block(ctl, 0))
    if kind == Move.COUNT:
        if not reserve(ctl, relation, 1):
            return False
        store_cell(relation.columns[0].data, relation.columns[0].width, 0, ctl.iteration)
        relation.rows = 1
    return True


@kernel
def run_each(ctl: Control, paths: Array[Pointer[Path]], count):
    """Runs paths from `ctl.path` on, each whole; returns BULK before one that is for several workers."""
    while ctl.path < count:
        path = paths[ctl.path]
        if ctl.running == 0:
            start_path(path, ctl)
            rows = ctl.levels[0].end
            if path.seed and rows == 0:
                ctl.path += 1
                continue
            if path.divisible != 0 and rows >= ctl.bulk:
                return Status.BULK
            ctl.running = 1
        status = run_path(path, ctl)
        if status != Status.DONE:
            return status
        ctl.running = 0
        ctl.path += 1
    ctl.path = 0
    return Status.DONE


@entry()
def run(task, ctl: Control):
    """The one entry point, so that the machine is compiled and loaded once: `task` is a path (`ctl.phase` -1), a cycle (-2) or
    a loop."""
    if ctl.phase == -2:
        return run_cycle(Cycle(task), ctl)
    if ctl.phase < 0:
        return run_path(Path(task), ctl)
    return run_loop(Loop(task), ctl)
