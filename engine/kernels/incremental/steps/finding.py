"""Finding rows of a collection for a whole block: all hashes first, then all slots, then the rows, each asked for some rows
before it is looked at, so that memory answers while the block goes on."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.base import search_base
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.collections import add_values
from dlog.engine.kernels.incremental.store.direct import find_direct, has_place, prefetch_direct
from dlog.engine.kernels.incremental.store.implied import cell_at, warm_cell
from dlog.engine.kernels.incremental.store.slots import (
    ABSENT,
    ROWS_AHEAD,
    UNKNOWN,
    find_slotted,
    find_values,
    search_ahead,
    warm_others,
)
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Numbers, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import behind, clear_words, mix, register, scratch_block

MAX_COLUMNS = BLOCK // 2
"""Columns that fit half a block."""
SAMPLED = 64
"""Rows at the start of a block that tell whether most of its rows repeat others."""
KNOWN = 64
"""Places of a table that remembers rows of a block by their hash or number, the last one for each place."""

MADE_WORDS = 64
"""Words of bits for the hashes of rows that are made for a block: few of 512 rows share one."""
_MADE = 11
"""The scratch block that these are in."""


@kernel
def hash_registers(ctl: Control, registers: Words, arity, n, hashes: Words):
    """hashes[i] = hash of block row i."""
    for i in range(n):
        hashes[i] = 0
    for c in range(arity):
        values = register(ctl, registers[c])
        for i in range(n):
            hashes[i] = mix(hashes[i], values[i])


@kernel
def find_directly(ctl: Control, collection: Collection, values: Words, n, rows: Words, making):
    """`find_block` of a collection with a direct table."""
    if n > 1:
        for i in range(min(ROWS_AHEAD, n)):
            warm_direct(collection, values[i])
    for i in range(n):
        if i + ROWS_AHEAD < n:
            warm_direct(collection, values[i + ROWS_AHEAD])
        row = find_direct(collection, values[i])
        if row < 0 and making:
            hashed = mix(0, values[i])
            if collection.direct.count == 0:
                # A row of this block was too far away from the others: the table has given way to slots.
                row = find_values(collection, behind(values, i), hashed)
            if row < 0:
                row = add_values(ctl, collection, behind(values, i), hashed)
            if row < 0:
                return False
        rows[i] = row
    return True


@kernel
def warm_direct(collection: Collection, value):
    """Asks for the place of a value in a direct table, if it has one."""
    if has_place(collection, value):
        prefetch_direct(collection, value)


@kernel
def find_in_base(ctl: Control, collection: Collection, registers: Words, n, rows: Words, making):
    """`find_block` of a collection with a base."""
    arity = collection.arity
    buffer = scratch_block(ctl, 2)
    columns = WordColumns(buffer.address + MAX_COLUMNS * 8)
    hashes = scratch_block(ctl, 3)
    for c in range(arity):
        columns[c] = register(ctl, registers[c])
    search_base(collection, columns, 1, 0, n, rows, buffer)
    warm_others(collection, columns, 1, 0, n, rows, hashes)
    alive = collection.alive
    for i in range(n):
        row = rows[i]
        if row >= 0 and get_bit(alive, row) != 0:
            continue
        for c in range(arity):
            buffer[c] = columns[c][i]
        row = find_slotted(collection, buffer, hashes[i]) if row < 0 else -1
        if row < 0 and making:
            row = add_values(ctl, collection, buffer, hashes[i])
            if row < 0:
                return False
            alive = collection.alive
        rows[i] = row
    return True


@kernel
def drop_others(ctl: Control, collection: Collection, registers: Words, n, rows: Words):
    """Makes UNKNOWN of each row that does not have the values of its block row, column after column."""
    for c in range(collection.arity):
        column = collection.columns[c]
        values = register(ctl, registers[c])
        for i in range(min(ROWS_AHEAD, n)):
            warm_cell(column, max(rows[i], 0))
        if column.width == 4:
            narrow = Numbers(column.data)
            for i in range(n):
                if i + ROWS_AHEAD < n:
                    prefetch(column.data + max(rows[i + ROWS_AHEAD], 0) * 4)
                if rows[i] >= 0 and narrow[rows[i]] != values[i]:
                    rows[i] = UNKNOWN
        else:
            for i in range(n):
                if i + ROWS_AHEAD < n:
                    warm_cell(column, max(rows[i + ROWS_AHEAD], 0))
                if rows[i] >= 0 and cell_at(column, rows[i]) != values[i]:
                    rows[i] = UNKNOWN


@kernel
def forget_known(known: Words):
    for place in range(KNOWN):
        known[place] = -1


@kernel
def is_repetitive(hashes: Words, n, known: Words):
    """Whether most of the first rows of a block are like others before them."""
    if n < SAMPLED:
        return False
    forget_known(known)
    repeated = 0
    for i in range(SAMPLED):
        place = (hashes[i] >> 32) & (KNOWN - 1)
        first = known[place]
        repeated += 1 if first >= 0 and hashes[first] == hashes[i] else 0
        known[place] = i
    return repeated * 2 > SAMPLED


@kernel
def are_alike(ctl: Control, registers: Words, arity, first, second):
    """Whether two rows of a block have the same values."""
    for c in range(arity):
        values = register(ctl, registers[c])
        if values[first] != values[second]:
            return False
    return True


@kernel
def find_repeated(
    ctl: Control, collection: Collection, registers: Words, n, hashes: Words, buffer: Words, known: Words, rows: Words, making
):
    """`find_block` of rows most of which are like others before them: these are not looked for again."""
    arity = collection.arity
    forget_known(known)
    for i in range(n):
        place = (hashes[i] >> 32) & (KNOWN - 1)
        first = known[place]
        if first >= 0 and hashes[first] == hashes[i] and are_alike(ctl, registers, arity, first, i):
            rows[i] = rows[first]
            continue
        rows[i] = find_row(ctl, collection, registers, i, hashes[i], buffer, True, making)
        if rows[i] < 0 and making:
            return False
        known[place] = i
    return True


@kernel
def find_row(ctl: Control, collection: Collection, registers: Words, i, hashed, buffer: Words, sought, making):
    """The row with the values of block row i, a new one with `making` if there is none, as is known unless it is `sought`; else
    -1, with `making` ctl.error is set."""
    arity = collection.arity
    for c in range(arity):
        buffer[c] = register(ctl, registers[c])[i]
    row = find_values(collection, buffer, hashed) if sought else -1
    return add_values(ctl, collection, buffer, hashed) if row < 0 and making else row


@kernel
def find_block(ctl: Control, collection: Collection, registers: Words, n, rows: Words, making):
    """rows[i] = the collection's row with the values of block row i; where there is none -1 or, with `making`, a new one. False
    with ctl.error set. Uses scratch blocks 2, 3 and 4."""
    if collection.direct.count != 0 and collection.base.rows == 0:
        return find_directly(ctl, collection, register(ctl, registers[0]), n, rows, making)
    arity = collection.arity
    if collection.base.rows != 0 and n > 1 and arity <= MAX_COLUMNS:
        return find_in_base(ctl, collection, registers, n, rows, making)
    buffer = scratch_block(ctl, 2)
    hashes = scratch_block(ctl, 3)
    places = scratch_block(ctl, 4)
    hash_registers(ctl, registers, arity, n, hashes)
    if is_repetitive(hashes, n, places):
        return find_repeated(ctl, collection, registers, n, hashes, buffer, places, rows, making)
    search_ahead(collection, hashes, n, making, places)
    drop_others(ctl, collection, registers, n, places)
    made = scratch_block(ctl, _MADE)
    clear_words(made, MADE_WORDS)
    for i in range(n):
        row = places[i]
        if row == UNKNOWN or (row == ABSENT and making):
            sought = row == UNKNOWN or not may_be_first(made, hashes[i])
            row = find_row(ctl, collection, registers, i, hashes[i], buffer, sought, making)
            if row < 0 and making:
                return False
        rows[i] = row
    return True


@kernel
def may_be_first(made: Words, hashed):
    """Whether no row with such a hash has been made for this block; notes that one is."""
    word = (hashed >> 40) & (MADE_WORDS - 1)
    bit = 1 << ((hashed >> 32) & 63)
    known = made[word]
    made[word] = known | bit
    return known & bit == 0
