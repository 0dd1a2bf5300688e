"""A journal: the changes of batches that are over, batch by batch, until somebody wants them by collection.

They are in records, one for each collection that a batch has changed: where the next one begins, the collection's address, how
many changes it has, and the words of a column; then the columns, of the values, of rounds and of diffs.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import copy_bytes
from dlog.engine.kernels.incremental.loop.reading import copy_changes
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Work
from dlog.engine.kernels.static.storage import behind

RECORD = 4
"""Words of a record before its columns."""


@kernel
def _room_of(collection: Collection):
    """How many changes the log of a collection may come to."""
    return collection.log.count * 2 if collection.grouped else collection.log.count


@kernel
def _words_of_changes(work: Work):
    """The words of the records of what the last batch has changed; -1 where a log stands for all rows."""
    touched = work.touched
    words = 0
    for i in range(work.touched_count):
        collection = touched[i]
        if collection.log.count > 0:
            if not collection.log.data:
                return -1
            words += RECORD + (collection.arity + 2) * _room_of(collection)
    return words


@kernel
def _write_record(ctl: Control, collection: Collection, first, kept: Words, at):
    """Writes a record from the word `at` on; returns where it ends."""
    room, arity, places = _room_of(collection), collection.arity, ctl.scratch
    columns = kept.address + (at + RECORD) * 8
    for c in range(arity):
        places[c] = columns + c * room * 8
    rounds, diffs = Words(columns + arity * room * 8), Words(columns + (arity + 1) * room * 8)
    end = at + RECORD + (arity + 2) * room
    kept[at] = end
    kept[at + 1] = collection.address
    kept[at + 2] = copy_changes(collection, first, places, rounds, diffs)
    kept[at + 3] = room
    return end


@entry()
def append_records(work: Work, ctl: Control, first, kept: Words, at, most):
    """Writes the records of what the last batch has changed from the word `at` on, rounds counted from `first` on. Returns
    where they end, or -1 where that is behind `most` or a log stands for all rows."""
    words = _words_of_changes(work)
    if words < 0 or at + words > most:
        return -1
    touched = work.touched
    for i in range(work.touched_count):
        if touched[i].log.count > 0:
            at = _write_record(ctl, touched[i], first, kept, at)
    return at


@entry()
def gather_records(kept: Words, records: Words, count, columns, target: Words, rows):
    """Writes the changes of so many records, which begin at these words, one after the other: so many columns of as many rows
    as they have together."""
    done = 0
    for k in range(count):
        record = records[k]
        n, room = kept[record + 2], kept[record + 3]
        for c in range(columns):
            copy_bytes(behind(target, c * rows + done).address, behind(kept, record + RECORD + c * room).address, 8 * n)
        done += n
