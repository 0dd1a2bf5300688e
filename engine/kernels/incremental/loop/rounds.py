"""The work of a batch of rounds, from its inputs' changes to its outputs', without leaving compiled code.

A batch runs task by task in the order of strata: so each path reads collections that are complete for all rounds of the batch.
Scopes that are not recursive take all rounds at once; a recursive scope takes them one after the other, and within one the
iterations where something changes. Only tasks, paths and collections that a change reaches are visited (activation.py). All
state is in tables: a run stops and resumes anywhere (see machine).
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Status, TaskKind
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.inputs.loading import bring_changes, bring_in
from dlog.engine.kernels.incremental.loop.activation import (
    mark_readers,
    mark_readers_from,
    mark_task,
    next_task,
    touch,
)
from dlog.engine.kernels.incremental.loop.batches import forget_changes, settle
from dlog.engine.kernels.incremental.loop.changes import flush_distinct
from dlog.engine.kernels.incremental.loop.scopes import end_scope, run_scope, start_scope
from dlog.engine.kernels.incremental.loop.seeded import run_seeded
from dlog.engine.kernels.incremental.reduce.reductions import flush_reduction
from dlog.engine.kernels.incremental.store.bits import clear_bit
from dlog.engine.kernels.machine_structs import WordColumns
from dlog.engine.kernels.round_structs import Collection, Control, Path, Reduction, Scope, Task, Work
from dlog.engine.kernels.static.pages import begin_small, end_small
from dlog.engine.kernels.static.storage import without_limit


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
    limit = without_limit(ctl)
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
