"""Rows of an input that come in blocks: found by their slots, written column by column.

Tags are asked for some rows before they are looked at, then the rows that they lead to. A row that nobody has gets
its number and its slot at once; its values, bits and changes wait for those of others, and are written with them: before a row
that may be one of them is compared, and before something is noted that is to stand behind them. Room for all of it is made
first, so nothing fails once a row has a slot.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.changes import announce
from dlog.engine.kernels.incremental.store.base import search_base
from dlog.engine.kernels.incremental.store.bits import clear_bit, fill_bits, get_bit, put_bit
from dlog.engine.kernels.incremental.store.collections import (
    add_values,
    born_absent,
    clear_row,
    make_wide,
    room_for_rows,
    take_number,
)
from dlog.engine.kernels.incremental.store.histories import add_entry, is_here, room_for_items, warm_item
from dlog.engine.kernels.incremental.store.implied import cell_at, warm_cell
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.incremental.store.slot_room import make_slots_for
from dlog.engine.kernels.incremental.store.slots import MAX_REHASHED_COLUMNS, enter_slot, next_match, slot_of
from dlog.engine.kernels.layout import IMPLIED, ROUND, TAG_FREE
from dlog.engine.kernels.machine_structs import Column, Numbers, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.row_structs import Change, ChangeArray
from dlog.engine.kernels.static.storage import behind, mix, store_cell

STEP = 64
"""Rows of a block."""
TAGS_AHEAD, ROWS_AHEAD = 32, 16
"""Rows between one whose tags are asked for, one that is sought and one that is entered: with more of them at once many are
lost."""
MANY = 1 << 12
MOST_EXPECTED = 1 << 16
"""Changes from which on, and up to which, room is made for all of them: what grows block by block is moved again and again."""
IN_BASE = 1 << 40
"""A place from here on is that of a base row."""


@kernel
def enter_rows(
    ctl: Control, collection: Collection, columns: WordColumns, step, changes: WordColumns, start, count, block: Words
):
    """Applies changes of rows: value c of row r is columns[c][r * step]. `changes` are the columns of diffs and of rounds, the
    batch's first one being `start`, or null: all rows come, and nothing is noted of them. `block` has room for 5 * STEP words.
    False with ctl.error set."""
    if changes.address != 0 and count >= MANY and not expect_changes(ctl, collection, changes, step, count):
        return False
    hashes = block
    others = behind(block, STEP)
    wide = hash_block(collection, columns, step, 0, min(STEP, count), hashes)
    for i in range(min(TAGS_AHEAD, count)):
        warm_tags(collection, hashes[i])
    for first in range(0, count, STEP):
        n = min(STEP, count - first)
        # The tags of the next block are asked for while this one is looked at.
        wide_next = hash_block(collection, columns, step, first + n, min(STEP, count - first - n), others)
        if wide != 0 and not widen_for(ctl, collection, columns, step, changes, first, n):
            return False
        if not enter_block(ctl, collection, columns, step, changes, start, first, n, hashes, others, behind(block, 2 * STEP)):
            return False
        hashes, others = others, hashes
        wide = wide_next
    return True


@kernel
def enter_block(
    ctl: Control,
    collection: Collection,
    columns: WordColumns,
    step,
    changes: WordColumns,
    start,
    first,
    n,
    hashes: Words,
    others: Words,
    block: Words,
):
    """`enter_rows` of changes [first, first + n), whose rows have these hashes, and those of a block behind them others;
    columns are wide enough for their values."""
    places = block
    rows = behind(block, STEP)
    sources = behind(block, 2 * STEP)
    noted = changes.address != 0
    coming = count_coming(changes, step, first, n) if noted else n
    if coming != 0 and not (room_for_new(ctl, collection, coming) and (not noted or room_for_notes(ctl, collection, n))):
        return False
    if collection.base.rows != 0:
        search_base(collection, columns, step, first, n, places, ctl.scratch)
    for i in range(min(ROWS_AHEAD, n)):
        seek(collection, hashes, i, places)
    in_order = collection.free_count == 0
    waiting = 0
    for i in range(n):
        warm_tags(collection, hashes[i + TAGS_AHEAD] if i + TAGS_AHEAD < STEP else others[i + TAGS_AHEAD - STEP])
        if i + ROWS_AHEAD < n:
            seek(collection, hashes, i + ROWS_AHEAD, places)
        source = first + i
        hashed = hashes[i]
        at = places[i]
        row = at - IN_BASE if at >= IN_BASE else -1
        if at < 0:
            at = next_match(collection, hashed, -1 - at)
        while row < 0 <= at:
            # What waits may be the row that is found.
            write_rows(ctl, collection, columns, step, changes, start, rows, sources, waiting, in_order)
            waiting = 0
            row = collection.row_slots[at]
            if not has_cells(collection, row, columns, step, source):
                row = -1
                at = next_match(collection, hashed, at + 1)
        comes = not noted or changes[0][source * step] > 0
        if row < 0:
            if comes:
                rows[waiting] = place_new(ctl, collection, -1 - at, hashed)
                sources[waiting] = source
                waiting += 1
        elif noted and comes != (is_living(collection, row) and is_here(collection, row)):
            write_rows(ctl, collection, columns, step, changes, start, rows, sources, waiting, in_order)
            waiting = 0
            if not change_row(ctl, collection, columns, step, changes, start, source, row, hashed):
                return False
    write_rows(ctl, collection, columns, step, changes, start, rows, sources, waiting, in_order)
    return True


@kernel
def is_living(collection: Collection, row):
    """Whether a row that has been found, which may be a dead one of the base, is alive."""
    return row >= collection.base.rows or get_bit(collection.alive, row) != 0


@kernel
def time_of(changes: WordColumns, step, start, source):
    return (changes[1][source * step] - start + 1) * ROUND


@kernel
def change_row(
    ctl: Control, collection: Collection, columns: WordColumns, step, changes: WordColumns, start, source, row, hashed
):
    """A row that has been found becomes present or absent; false with ctl.error set."""
    if not is_living(collection, row):
        values = ctl.scratch
        for c in range(collection.arity):
            values[c] = columns[c][source * step]
        if add_values(ctl, collection, values, hashed) < 0:
            return False
    return announce(ctl, collection, row, time_of(changes, step, start, source), changes[0][source * step])


# ---------------------------------------------------------------------------------------------------------------- finding


@kernel
def hash_block(collection: Collection, columns: WordColumns, step, first, n, hashes: Words):
    """Hashes the values of rows [first, first + n). Returns 0 if each value fits 4 bytes."""
    wide = 0
    for i in range(n):
        hashes[i] = 0
    for c in range(collection.arity):
        column = behind(columns[c], first * step)
        if step == 1:
            for i in range(n):
                value = column[i]
                hashes[i] = mix(hashes[i], value)
                wide |= value ^ (value << 32 >> 32)
        else:
            for i in range(n):
                value = column[i * step]
                hashes[i] = mix(hashes[i], value)
                wide |= value ^ (value << 32 >> 32)
    return wide


@kernel
def warm_tags(collection: Collection, hashed):
    """Asks for the slots where the search for a hash begins."""
    at = slot_of(collection, hashed)
    prefetch(collection.tags.address + at)
    prefetch(collection.row_slots.address + at * 4)


@kernel
def seek(collection: Collection, hashes: Words, i, places: Words):
    """places[i] = the first slot that may be that of row i of a block, or -1 - the slot where a new one goes, unless another
    one of the block takes it; IN_BASE + the row of the base that it is, dead or alive, which is there where there is a base.
    What the slot leads to is asked for."""
    if collection.base.rows != 0 and places[i] >= 0:
        warm_presence(collection, places[i])
        places[i] += IN_BASE
        return
    at = next_match(collection, hashes[i], slot_of(collection, hashes[i]))
    places[i] = at
    if at >= 0:
        row = collection.row_slots[at]
        for c in range(collection.arity):
            warm_cell(collection.columns[c], row)
        warm_presence(collection, row)
    elif collection.arity > MAX_REHASHED_COLUMNS:
        prefetch(collection.slot_hashes.address + (-1 - at) * 4)


@kernel
def warm_presence(collection: Collection, row):
    """Asks for what tells whether a row is present, and for what a change of that is noted in."""
    prefetch(collection.alive.address + (row >> 6) * 8)
    warm_item(collection.outer, row)

@kernel
def has_cells(collection: Collection, row, columns: WordColumns, step, source):
    """Whether a row has the values of row `source` of columns."""
    for c in range(collection.arity):
        column = collection.columns[c]
        if cell_at(column, row) != columns[c][source * step]:
            return False
    return True


# ------------------------------------------------------------------------------------------------------------------- room


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
def expect_changes(ctl: Control, collection: Collection, changes: WordColumns, step, count):
    """Makes room for many changes at once, or, of very many, for the first of them: those of rows that are as they should be
    already need none. False with ctl.error set."""
    n = min(count, MOST_EXPECTED)
    coming = min(count_coming(changes, step, 0, count), n)
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
    else:
        for i in range(n):
            born_absent(ctl, outer, rows[i], fresh)
            if fresh == 0:
                add_entry(ctl, outer, rows[i], time_of(changes, step, start, sources[i]), 1)
    if fresh == 0:
        log_rows(collection, changes, step, start, rows, sources, n)


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
