"""Rows of an input that come in blocks: they become a base's that grows (base_growing.py), or are found by their slots.

Tags are asked for some rows before they are looked at, then the rows that they lead to. A row that nobody has gets
its number and its slot at once; its values, bits and changes wait for those of others, and are written with them: before a row
that may be one of them is compared, and before something is noted that is to stand behind them (row_writing.py).
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.inputs.base_growing import (
    begin_growing,
    count_following,
    count_others,
    may_grow,
    note_keys,
    room_for_keys,
)
from dlog.engine.kernels.incremental.inputs.row_leaving import leave_block, may_leave, warm_presence
from dlog.engine.kernels.incremental.inputs.row_writing import (
    count_coming,
    expect_changes,
    place_new,
    room_for_new,
    room_for_notes,
    time_of,
    widen_for,
    write_rows,
)
from dlog.engine.kernels.incremental.loop.changes import announce
from dlog.engine.kernels.incremental.store.base import begin_search, find_base_groups, search_groups
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.collections import add_values, room_for_rows
from dlog.engine.kernels.incremental.store.histories import is_here
from dlog.engine.kernels.incremental.store.implied import cell_at, note_samples, room_for_samples, warm_cell
from dlog.engine.kernels.incremental.store.slots import MAX_REHASHED_COLUMNS, next_match, slot_of
from dlog.engine.kernels.machine_structs import WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import behind, mix

STEP = 64
"""Rows of a block."""
TAGS_AHEAD, ROWS_AHEAD = 32, 16
"""Rows between one whose tags are asked for, one that is sought and one that is entered: with more of them at once many are
lost."""
MANY = 1 << 12
"""Changes from which on room is made for all of them: what grows block by block is moved again and again."""
IN_BASE = 1 << 40
"""A place from here on is that of a base row."""


@kernel
def enter_rows(
    ctl: Control,
    collection: Collection,
    columns: WordColumns,
    step,
    changes: WordColumns,
    start,
    count,
    found: Words,
    block: Words,
):
    """Applies changes of rows: value c of row r is columns[c][r * step]. `changes` are the columns of diffs and of rounds, the
    batch's first one being `start`, or null: all rows come, and nothing is noted of them. `found` has the base's rows that they
    are (`seek_based`), or is null. `block` has room for 6 * STEP words. False with ctl.error set."""
    if changes.address == 0:
        return enter_sought(ctl, collection, columns, step, changes, start, 0, count, found, block)
    if not begin_growing(ctl, collection, columns, step, changes[0], count):
        return False
    first = 0
    while first < count:
        n = count - first
        if may_grow(collection):
            n = count_following(collection, columns, step, changes[0], first, count, block)
            if n > 0:
                if not append_rows(ctl, collection, columns, step, changes, start, first, n, block):
                    return False
                first += n
                found = Words(0)  # which rows of the base changes are is not true any more
                continue
            n = count_others(collection, columns, step, changes[0], first, count, block)
        if not enter_sought(ctl, collection, columns, step, changes, start, first, first + n, found, block):
            return False
        first += n
    return True


@kernel
def append_rows(
    ctl: Control, collection: Collection, columns: WordColumns, step, changes: WordColumns, start, first, n, block: Words
):
    """`enter_rows` of n changes that become rows of a base that grows; false with ctl.error set."""
    keys = columns[collection.base.key]
    if not (room_for_rows(ctl, collection, n) and room_for_notes(ctl, collection, n)):
        return False
    if not widen_for(ctl, collection, columns, step, changes, first, n):
        return False
    before = collection.rows
    if not (room_for_samples(ctl, collection, before + n) and room_for_keys(ctl, collection, keys[(first + n - 1) * step])):
        return False
    rows = block
    sources = behind(block, STEP)
    for at in range(first, first + n, STEP):
        size = min(STEP, first + n - at)
        row = collection.rows
        for i in range(size):
            rows[i] = row + i
            sources[i] = at + i
        collection.rows = row + size
        write_rows(ctl, collection, columns, step, changes, start, rows, sources, size, True)
    note_keys(collection, keys, step, first, n)
    return note_samples(ctl, collection, before, keys, step, first)


@kernel
def seek_based(ctl: Control, collection: Collection, columns: WordColumns, first, last, found: Words):
    """found[r] = the row of the base, dead or alive, with the values of row r of columns, or -1, for rows [first, last)."""
    n = last - first
    rows = behind(found, first)
    find_base_groups(collection, columns[collection.base.key], 1, first, n, rows)
    begin_search(collection, rows, n)
    search_groups(collection, columns, 1, first, n, rows, Words(0), 0, ctl.scratch)


@kernel
def enter_sought(
    ctl: Control,
    collection: Collection,
    columns: WordColumns,
    step,
    changes: WordColumns,
    start,
    first,
    end,
    found: Words,
    block: Words,
):
    """`enter_rows` of changes [first, end), whose rows are looked for."""
    many = changes.address != 0 and end - first >= MANY
    if many and not expect_changes(ctl, collection, changes, step, first, end - first):
        return False
    hashes = block
    others = behind(block, STEP)
    places = behind(block, 2 * STEP)
    groups = behind(block, 3 * STEP)
    sought = collection.base.rows != 0 and found.address == 0
    if sought:
        find_base_groups(collection, columns[collection.base.key], step, first, min(STEP, end - first), places)
        begin_search(collection, places, min(STEP, end - first))
    wide = hash_block(collection, columns, step, first, min(STEP, end - first), hashes)
    for i in range(min(TAGS_AHEAD, end - first)):
        warm_tags(collection, hashes[i])
    for at in range(first, end, STEP):
        n = min(STEP, end - at)
        # The tags of the next block, and rows of the base, are asked for while this one is looked at.
        left = min(STEP, end - at - n)
        wide_next = hash_block(collection, columns, step, at + n, left, others)
        if wide != 0 and not widen_for(ctl, collection, columns, step, changes, at, n):
            return False
        if found.address != 0:
            places = behind(found, at)
        if sought:
            find_base_groups(collection, columns[collection.base.key], step, at + n, left, groups)
            search_groups(collection, columns, step, at, n, places, groups, left, ctl.scratch)
        room = behind(block, 4 * STEP)
        if collection.base.rows != 0 and may_leave(collection, changes, step, start, at, n, places):
            if not leave_block(ctl, collection, n, places, room):
                return False
        elif not enter_block(ctl, collection, columns, step, changes, start, at, n, hashes, others, places, room):
            return False
        hashes, others = others, hashes
        places, groups = groups, places
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
    places: Words,
    block: Words,
):
    """`enter_rows` of changes [first, first + n), whose rows have these hashes, and those of a block behind them others; where
    there is a base `places` has the rows of it that they are. Columns are wide enough for their values."""
    rows = block
    sources = behind(block, STEP)
    noted = changes.address != 0
    coming = count_coming(changes, step, first, n) if noted else n
    if coming != 0 and not (room_for_new(ctl, collection, coming) and (not noted or room_for_notes(ctl, collection, n))):
        return False
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
def has_cells(collection: Collection, row, columns: WordColumns, step, source):
    """Whether a row has the values of row `source` of columns."""
    for c in range(collection.arity):
        column = collection.columns[c]
        if cell_at(column, row) != columns[c][source * step]:
            return False
    return True
