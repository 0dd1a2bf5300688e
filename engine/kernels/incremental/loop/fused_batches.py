"""Changes of one input over many rounds, which go through the dataflow in short batches without leaving compiled code.

A row that comes or goes in a batch is met, and passed by, in all its later rounds; so batches are to be short where there are
few rows. What each of them changes is kept, as its log is written over by the next.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i64, store_i64
from dlog.engine.kernels.incremental.loop.activation import append, touch
from dlog.engine.kernels.incremental.loop.reading import copy_changes, may_repeat
from dlog.engine.kernels.incremental.loop.rounds import begin_batch, run_batch
from dlog.engine.kernels.incremental.store.lists import list_again
from dlog.engine.kernels.incremental.store.loading import bring_changes
from dlog.engine.kernels.layout import (
    CO_GROUPED,
    CO_KEPT,
    CO_LOG,
    CTL_LIMIT,
    CTL_RUNNING,
    CTL_SCRATCH,
    DONE,
    FAILED,
    LIST_CAPACITY,
    LIST_COUNT,
    LIST_DATA,
    LIST_WORDS,
    REL_ARITY,
    ST_AT,
    ST_BATCH,
    ST_BEGUN,
    ST_COLUMNS,
    ST_COUNT,
    ST_FIRST,
    ST_INPUT,
    ST_REPEATED,
    ST_ROUNDS,
    WORK_BEGUN,
    WORK_KEPT,
    WORK_KEPT_COUNT,
    WORK_TOUCHED,
    WORK_TOUCHED_COUNT,
)
from dlog.engine.kernels.static.storage import resize

FEWEST = 1024
"""Changes that there is room for at first."""
_UNLIMITED = 4611686018427387904


@entry()
def run_stretch(stretch, work, ctl):
    """Runs (or resumes) the batches of a stretch. Returns DONE, YIELD, EXTERNAL or FAILED."""
    while True:
        if load_i64(stretch, ST_BEGUN) == 0:
            if load_i64(stretch, ST_AT) == load_i64(stretch, ST_COUNT):
                return DONE
            if not next_batch(stretch, work, ctl):
                return FAILED
        status = run_batch(work, ctl)
        if status != DONE:
            return status
        if not keep_changes(stretch, work, ctl):
            return FAILED
        store_i64(stretch, ST_BEGUN, 0)


@kernel
def next_batch(stretch, work, ctl):
    """Begins a batch with the changes of the next rounds; false with CTL_ERROR set."""
    arity = load_i64(load_i64(stretch, ST_INPUT), REL_ARITY)
    columns = load_i64(stretch, ST_COLUMNS)
    rounds = load_i64(columns, arity + 1)
    first = load_i64(stretch, ST_AT)
    start = load_i64(rounds, first)
    last = first
    count = load_i64(stretch, ST_COUNT)
    limit = start + load_i64(stretch, ST_ROUNDS)
    while last < count and load_i64(rounds, last) < limit:
        last += 1
    batch = load_i64(stretch, ST_BATCH)
    for c in range(arity + 2):
        store_i64(batch, c, load_i64(columns, c) + first * 8)
    store_i64(stretch, ST_AT, last)
    store_i64(stretch, ST_FIRST, start)
    store_i64(stretch, ST_BEGUN, 1)
    store_i64(ctl, CTL_RUNNING, 0)
    store_i64(work, WORK_BEGUN, 0)
    begin_batch(work, ctl, load_i64(stretch, ST_ROUNDS))
    touch(ctl, load_i64(stretch, ST_INPUT))
    return bring_changes(ctl, load_i64(stretch, ST_INPUT), batch, start, last - first)


@kernel
def keep_changes(stretch, work, ctl):
    """Keeps what a batch has changed, whatever the limit of memory: the batch is over. False with CTL_ERROR set."""
    limit = load_i64(ctl, CTL_LIMIT)
    store_i64(ctl, CTL_LIMIT, _UNLIMITED)
    touched = load_i64(work, WORK_TOUCHED)
    done = True
    for i in range(load_i64(work, WORK_TOUCHED_COUNT)):
        collection = load_i64(touched, i)
        kept = load_i64(collection, CO_KEPT)
        changes = load_i64(load_i64(collection, CO_LOG), LIST_COUNT)
        if kept != 0 and changes > 0:
            if load_i64(kept, LIST_COUNT) == 0:
                append(work, WORK_KEPT, WORK_KEPT_COUNT, collection)
            done = done and keep_log(ctl, collection, load_i64(stretch, ST_FIRST), changes)
    store_i64(ctl, CTL_LIMIT, limit)
    if may_repeat(load_i64(load_i64(stretch, ST_INPUT), CO_LOG)):
        store_i64(stretch, ST_REPEATED, 1)
    return done


@kernel
def keep_log(ctl, collection, first, changes):
    """Appends the changes of a log of so many entries, rounds counted from `first` on, to those kept; false with CTL_ERROR
    set."""
    kept = load_i64(collection, CO_KEPT)
    count = load_i64(kept, LIST_COUNT)
    room = changes if load_i64(collection, CO_GROUPED) == 0 else 2 * changes
    if not columns_room(ctl, kept, count + room):
        return False
    data = load_i64(kept, LIST_DATA) + count * 8
    step = load_i64(kept, LIST_CAPACITY) * 8
    arity = load_i64(collection, REL_ARITY)
    places = load_i64(ctl, CTL_SCRATCH)
    for c in range(arity):
        store_i64(places, c, data + c * step)
    written = copy_changes(collection, first, places, data + arity * step, data + (arity + 1) * step)
    store_i64(kept, LIST_COUNT, count + written)
    return True


@kernel
def columns_room(ctl, kept, wanted):
    """Makes room for so many items in columns one after the other; false with CTL_ERROR set."""
    capacity = load_i64(kept, LIST_CAPACITY)
    if wanted <= capacity:
        return True
    columns = load_i64(kept, LIST_WORDS)
    target = max(wanted, capacity * 2, FEWEST)
    moved = resize(ctl, load_i64(kept, LIST_DATA), capacity * columns * 8, target * columns * 8)
    if moved == 0:
        return False
    for c in range(columns - 1, 0, -1):
        for i in range(load_i64(kept, LIST_COUNT) - 1, -1, -1):
            store_i64(moved, c * target + i, load_i64(moved, c * capacity + i))
    store_i64(kept, LIST_DATA, moved)
    store_i64(kept, LIST_CAPACITY, target)
    return True


@entry()
def forget_kept(work, ctl):
    """Lets go of the changes that an earlier stretch has kept."""
    kept = load_i64(work, WORK_KEPT)
    for i in range(load_i64(work, WORK_KEPT_COUNT)):
        list_again(ctl, load_i64(load_i64(kept, i), CO_KEPT))
    store_i64(work, WORK_KEPT_COUNT, 0)
