"""Changes of one input over many rounds, which go through the dataflow in short batches without leaving compiled code.

A row that comes or goes in a batch is met, and passed by, in all its later rounds; so batches are to be short where there are
few rows. What each of them changes is kept, as its log is written over by the next.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Status
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.inputs.loading import bring_changes
from dlog.engine.kernels.incremental.loop.activation import append, touch
from dlog.engine.kernels.incremental.loop.reading import copy_changes, may_repeat
from dlog.engine.kernels.incremental.loop.rounds import begin_batch, run_batch
from dlog.engine.kernels.incremental.store.lists import list_again
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Fused, Work
from dlog.engine.kernels.row_structs import List
from dlog.engine.kernels.static.storage import behind, resize, without_limit

INITIAL_CHANGES = 1024
"""Changes that there is room for at first."""


@entry()
def run_fused(fused: Fused, work: Work, ctl: Control):
    """Runs (or resumes) the fused batches. Returns a `Status`."""
    while True:
        if fused.is_open == 0:
            if fused.at == fused.count:
                return Status.DONE
            if not next_batch(fused, work, ctl):
                return Status.FAILED
        status = run_batch(work, ctl)
        if status != Status.DONE:
            return status
        if not keep_changes(fused, work, ctl):
            return Status.FAILED
        fused.is_open = 0


@kernel
def next_batch(fused: Fused, work: Work, ctl: Control):
    """Begins a batch with the changes of the next rounds; false with ctl.error set."""
    arity = fused.input.arity
    columns = fused.columns
    rounds = Words(columns[arity + 1])
    first = fused.at
    start = rounds[first]
    last = first
    count = fused.count
    limit = start + fused.rounds
    while last < count and rounds[last] < limit:
        last += 1
    batch = fused.batch
    for c in range(arity + 2):
        batch[c] = behind(columns[c], first)
    fused.at = last
    fused.first = start
    fused.is_open = 1
    ctl.running = 0
    work.has_begun = 0
    begin_batch(work, ctl, fused.rounds)
    touch(ctl, fused.input)
    return bring_changes(ctl, fused.input, batch, start, last - first)


@kernel
def keep_changes(fused: Fused, work: Work, ctl: Control):
    """Keeps what a batch has changed, whatever the limit of memory: the batch is over. False with ctl.error set."""
    limit = without_limit(ctl)
    touched = work.touched
    done = True
    for i in range(work.touched_count):
        collection = touched[i]
        kept = collection.fused_log
        changes = collection.log.count
        if kept and changes > 0:
            if kept.count == 0:
                append(work.fused_collections, work.ref.fused_count, collection)
            done = done and keep_log(ctl, collection, fused.first, changes)
    ctl.limit = limit
    if may_repeat(fused.input.log):
        fused.repeated = 1
    return done


@kernel
def keep_log(ctl: Control, collection: Collection, first, changes):
    """Appends the changes of a log of so many entries, rounds counted from `first` on, to those kept; false with ctl.error
    set."""
    kept = collection.fused_log
    count = kept.count
    room = changes if not collection.grouped else 2 * changes
    if not columns_room(ctl, kept, count + room):
        return False
    data = kept.data.address + count * 8
    step = kept.capacity * 8
    arity = collection.arity
    places = ctl.scratch
    for c in range(arity):
        places[c] = data + c * step
    written = copy_changes(collection, first, places, Words(data + arity * step), Words(data + (arity + 1) * step))
    kept.count = count + written
    return True


@kernel
def columns_room(ctl: Control, kept: List, wanted):
    """Makes room for so many items in columns one after the other; false with ctl.error set."""
    capacity = kept.capacity
    if wanted <= capacity:
        return True
    columns = kept.words
    target = max(wanted, capacity * 2, INITIAL_CHANGES)
    moved = Words(resize(ctl, kept.data.address, capacity * columns * 8, target * columns * 8))
    if not moved:
        return False
    for c in range(columns - 1, 0, -1):
        for i in range(kept.count - 1, -1, -1):
            moved[c * target + i] = moved[c * capacity + i]
    kept.data = moved
    kept.capacity = target
    return True


@entry()
def forget_fused_logs(work: Work, ctl: Control):
    """Lets go of the changes that earlier fused batches have kept."""
    kept = work.fused_collections
    for i in range(work.fused_count):
        list_again(ctl, kept[i].fused_log)
    work.fused_count = 0
