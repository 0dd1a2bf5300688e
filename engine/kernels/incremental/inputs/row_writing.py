"""Rows that come to an input in blocks are written column by column, with what is noted of them. Room for all of it is made
first, so nothing fails on the way."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.store.bits import clear_bit, fill_bits, put_bit
from dlog.engine.kernels.incremental.store.collections import born_absent, clear_row, make_wide, room_for_rows, take_number
from dlog.engine.kernels.incremental.store.histories import BORN, born_at, make_shared, room_for_items
from dlog.engine.kernels.incremental.store.history_items import open_items
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.incremental.store.slot_room import make_slots_for
from dlog.engine.kernels.incremental.store.slots import enter_slot
from dlog.engine.kernels.layout import IMPLIED, ROUND, TAG_FREE
from dlog.engine.kernels.machine_structs import Column, Numbers, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.row_structs import Change, ChangeArray
from dlog.engine.kernels.static.storage import behind, store_cell

MOST_EXPECTED = 1 << 17
"""Changes up to which room is made for all of them at once."""


@kernel
def time_of(changes: WordColumns, step, start, source):
    return (changes[1][source * step] - start + 1) * ROUND


@kernel
def widen_for(ctl: Control, collection: Collection, columns: WordColumns, step, changes: WordColumns, first, n):
    """Gives columns 8 bytes a value where values of rows that come need them; false with ctl.error set."""
    for c in range(collection.arity):
        column = collection.columns[c]
        if column.width != 8:
            values = columns[c]
            wide = 0
            for source in range(first, first + n):
                value = values[source * step]
                if changes.address == 0 or changes[0][source * step] > 0:
                    wide |= value ^ (value << 32 >> 32)
            if wide != 0 and not make_wide(ctl, collection, column):
                return False
    return True


@kernel
def count_coming(changes: WordColumns, step, first, n):
    """How many of rows [first, first + n) come."""
    diffs = changes[0]
    coming = 0
    for source in range(first, first + n):
        coming += 1 if diffs[source * step] > 0 else 0
    return coming


@kernel
def expect_changes(ctl: Control, collection: Collection, changes: WordColumns, step, first, count):
    """Makes room for many changes at once, or, of very many, for the first of them: those of rows that are as they should be
    already need none. False with ctl.error set."""
    n = min(count, MOST_EXPECTED)
    coming = min(count_coming(changes, step, first, count), n)
    return room_for_new(ctl, collection, coming) and room_for_notes(ctl, collection, n)


@kernel
def room_for_new(ctl: Control, collection: Collection, n):
    """Makes room for n new rows and their slots; false with ctl.error set."""
    return room_for_rows(ctl, collection, n) and make_slots_for(ctl, collection, n)


@kernel
def room_for_notes(ctl: Control, collection: Collection, n):
    """Makes room for what is noted of n changes: those of rows that have been found take some of it before others that have
    waited. False with ctl.error set."""
    fresh = collection.fresh
    if fresh == 0:
        new_rows = collection.new_rows
        if not list_room(ctl, collection.log, n) or (new_rows and not list_room(ctl, new_rows, n)):
            return False
    if collection.no_readers == 0 and not room_for_items(ctl, collection.outer, fresh, n):
        return False
    return room_for_items(ctl, collection.inner, fresh | collection.read_between_rounds, n)


# ---------------------------------------------------------------------------------------------------------------- writing


@kernel
def place_new(ctl: Control, collection: Collection, at, hashed):
    """The number of a new row, which gets a slot that no row has. There is room."""
    if collection.tags[at] == TAG_FREE:
        collection.used_slots += 1
    row = take_number(ctl, collection)
    enter_slot(collection, at, hashed, row)
    return row


@kernel
def write_rows(
    ctl: Control,
    collection: Collection,
    columns: WordColumns,
    step,
    changes: WordColumns,
    start,
    rows: Words,
    sources: Words,
    n,
    in_order,
):
    """Writes what has waited of new rows: rows[i] is row sources[i] of columns. `in_order`: the numbers are consecutive."""
    if n == 0:
        return
    for c in range(collection.arity):
        column = collection.columns[c]
        write_cells(collection, column, columns[c], step, rows, sources, n, in_order)
    alive = collection.alive
    if changes.address != 0:
        note_rows(ctl, collection, changes, step, start, rows, sources, n)
    if in_order:
        fill_bits(alive, rows[0], rows[0] + n)
    else:
        for i in range(n):
            put_bit(alive, rows[i])
    collection.live += n


@kernel
def write_cells(collection: Collection, column: Column, values: Words, step, rows: Words, sources: Words, n, in_order):
    """Writes a column of `write_rows`. It has the width for the values."""
    width = column.width
    data = column.data
    if width == IMPLIED:
        width = 4
        data = collection.base.tail.address - collection.base.rows * 4
    first = sources[0]
    if step != 1 or not in_order or sources[n - 1] - first != n - 1:
        for i in range(n):
            store_cell(data, width, rows[i], values[sources[i] * step])
        return
    values = behind(values, first)
    if width == 8:
        wide = Words(data + rows[0] * 8)
        for i in range(n):
            wide[i] = values[i]
    else:
        narrow = Numbers(data + rows[0] * 4)
        for i in range(n):
            narrow[i] = values[i]


@kernel
def note_rows(ctl: Control, collection: Collection, changes: WordColumns, step, start, rows: Words, sources: Words, n):
    """Notes that new rows are there from their rounds on, and were not before."""
    fresh = collection.fresh
    outer = collection.outer
    inner = collection.inner
    plain = fresh | collection.read_between_rounds
    for i in range(n):
        clear_row(collection, rows[i])
    if inner:
        for i in range(n):
            born_absent(ctl, inner, rows[i], plain)
    if collection.no_readers != 0:
        for i in range(n):
            clear_bit(outer.bits, rows[i])
    elif fresh == 0 and come_first(changes, step, start, sources, n):
        make_shared(ctl, outer)
        open_items(outer, rows, n, BORN)
    elif fresh == 0:
        for i in range(n):
            born_at(ctl, outer, rows[i], time_of(changes, step, start, sources[i]))
    if fresh == 0:
        log_rows(collection, changes, step, start, rows, sources, n)


@kernel
def come_first(changes: WordColumns, step, start, sources: Words, n):
    """Whether all changes that are listed are of the batch's first round."""
    rounds = changes[1]
    first = True
    for i in range(n):
        first = first and rounds[sources[i] * step] == start
    return first


@kernel
def log_rows(collection: Collection, changes: WordColumns, step, start, rows: Words, sources: Words, n):
    """Appends new rows to the log and to the rows made in this batch."""
    log = collection.log
    logged = ChangeArray(log.data.address + log.count * Change.size)
    for i in range(n):
        change = logged[i]
        change.row = rows[i]
        change.time = time_of(changes, step, start, sources[i])
        change.diff = 1
        change.value = 0
    log.count += n
    new_rows = collection.new_rows
    if new_rows:
        made = behind(new_rows.data, new_rows.count)
        for i in range(n):
            made[i] = rows[i]
        new_rows.count += n
