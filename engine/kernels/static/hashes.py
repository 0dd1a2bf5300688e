"""Hash sets of rows: open addressing with linear probing over 32-bit words.

A word is a row number plus one, so that zeroed memory is an empty table, and above it as many bits of the row's hash as are
left: rows are compared through the columns only where these agree. A table has any number of slots, not a power of two (the
home of a hash is its upper half scaled to the table), and grows by a half, a large one by a quarter, when it is 4/5 full: from
the columns, after the old one is freed. So it takes 5 to 6.25 bytes per row, also while it grows.

Slots are asked for some rows before they are sought, then the rows these name, before a row is looked at: memory answers while
others are. More at once would be no better: what is on its way for a core is limited.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import inlined, kernel
from dlog.engine.kernels.core.memory import bit_length, prefetch
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Numbers, Relation, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.storage import load_cell, mix, register, release, rows_equal, store_cell, zeroed

ROWS_AHEAD = 16
"""Rows of a block between one whose slot, or row, is asked for and one that is looked at."""
MAX_DOUBLED_SLOTS = 2**21
"""Slots from which on tables grow by a quarter: what that saves is more than the time it takes."""


@kernel
def hash_block(ctl: Control, registers: Words, count, n, hashes: Words):
    for i in range(n):
        hashes[i] = 0
    for k in range(count):
        values = register(ctl, registers[k])
        for i in range(n):
            hashes[i] = mix(hashes[i], values[i])


@kernel
def hash_rows(relation: Relation, first, count, hashes: Words):
    """Hashes of the keys of `count` rows from `first` on, a column at a time."""
    columns = relation.columns
    keys = relation.keys
    for i in range(count):
        hashes[i] = 0
    for k in range(relation.key_count):
        column = columns[keys[k]]
        data = column.data
        width = column.width
        for i in range(count):
            hashes[i] = mix(hashes[i], load_cell(data, width, first + i))


@kernel
def row_equals(relation: Relation, ctl: Control, registers: Words, i, row):
    columns = relation.columns
    keys = relation.keys
    for k in range(relation.key_count):
        column = columns[keys[k]]
        if load_cell(column.data, column.width, row) != register(ctl, registers[k])[i]:
            return False
    return True


@kernel
def home(hashed, count):
    """The slot of `count` where a hash is looked for first: its upper 31 bits as a fraction of the table."""
    return (((hashed >> 33) & 0x7FFFFFFF) * count) >> 31


@kernel
def row_bits(count):
    """Bits of a slot's word that hold the row number plus one: a table of `count` slots has fewer rows than slots."""
    return bit_length(count)


@kernel
def slot_word(hashed, row, bits):
    """The word of a row; only its lower 32 bits are kept."""
    return (hashed << bits) | (row + 1)


@kernel
def may_be(word, hashed, bits):
    """Whether a slot's word can be that of a row with this hash."""
    return ((word ^ (hashed << bits)) & 0xFFFFFFFF) >> bits == 0


@kernel
def row_of(word, bits):
    return (word & ((1 << bits) - 1)) - 1


@kernel
def prefetch_homes(table: Numbers, count, hashes: Words, n):
    """Asks for the homes of the first of n hashes, before a loop that calls `prefetch_later`."""
    for i in range(min(n, ROWS_AHEAD)):
        prefetch(table.address + home(hashes[i], count) * 4)


@inlined
def prefetch_later(table: Numbers, count, hashes: Words, i, n):
    """Asks for the home of the hash ROWS_AHEAD behind that of row i in a block of n."""
    if i + ROWS_AHEAD < n:
        prefetch(table.address + home(hashes[i + ROWS_AHEAD], count) * 4)


@kernel
def grow_hash(ctl: Control, relation: Relation, rows):
    """Makes the hash table large enough for `rows` rows at a load of at most 4/5, with the rows present in it."""
    slots = relation.slot_count
    if rows * 5 <= slots * 4:
        return True
    count = max(slots, 1024)
    while rows * 5 > count * 4:
        count += count >> (1 if count < MAX_DOUBLED_SLOTS else 2)
    release(ctl, relation.slots, slots * 4)
    relation.slots = 0
    relation.slot_count = 0
    hashes = Words(zeroed(ctl, BLOCK * 8))
    if not hashes:
        return False
    table = Numbers(zeroed(ctl, count * 4))
    if table:
        relation.slots = table.address
        relation.slot_count = count
        enter_rows(relation, 0, relation.rows, table, count, hashes)
    release(ctl, hashes.address, BLOCK * 8)
    return table.address != 0


@kernel
def enter_rows(relation: Relation, start, end, table: Numbers, count, hashes: Words):
    """Enters rows [start, end), which are distinct, into a table that has none equal to them. `hashes` is a scratch block."""
    bits = row_bits(count)
    for first in range(start, end, BLOCK):
        n = min(BLOCK, end - first)
        hash_rows(relation, first, n, hashes)
        prefetch_homes(table, count, hashes, n)
        for i in range(n):
            prefetch_later(table, count, hashes, i, n)
            hashed = hashes[i]
            at = home(hashed, count)
            while table[at] != 0:
                at += 1
                if at == count:
                    at = 0
            table[at] = slot_word(hashed, first + i, bits)


@kernel
def seek_slot(table: Numbers, count, bits, hashed, at):
    """The first slot from `at` on that is free or whose row can have this hash."""
    while True:
        word = table[at]
        if word == 0 or may_be(word, hashed, bits):
            return at
        at += 1
        if at == count:
            at = 0


@kernel
def find_hash(relation: Relation, ctl: Control, registers, i, hashed, at):
    """Row number with the key of block row i, or -1 - slot where it would go; looks from slot `at` on."""
    return find_in(relation, Numbers(relation.slots), relation.slot_count, ctl, registers, i, hashed, at)


@kernel
def find_in(relation: Relation, table: Numbers, count, ctl: Control, registers, i, hashed, at):
    """`find_hash` in a table of `count` slots."""
    bits = row_bits(count)
    while True:
        at = seek_slot(table, count, bits, hashed, at)
        word = table[at]
        if word == 0:
            return -1 - at
        row = row_of(word, bits)
        if row_equals(relation, ctl, Words(registers), i, row):
            return row
        at += 1
        if at == count:
            at = 0


@kernel
def find_rest(relation: Relation, table: Numbers, count, ctl: Control, registers: Words, n, hashes: Words, found: Words):
    """Looks for the block rows with found[i] = -1 in a table of `count` slots: found[i] = their row number, or -1."""
    begin_seeking(relation, table, count, n, hashes, found)
    for i in range(n):
        seek_later(relation, table, count, i, n, hashes, found)
        if found[i] < 0:
            found[i] = max(find_in(relation, table, count, ctl, registers.address, i, hashes[i], -1 - found[i]), -1)


@kernel
def begin_seeking(relation: Relation, table: Numbers, count, n, hashes: Words, slots: Words):
    """Before a loop that calls `seek_later` for each block row."""
    for i in range(min(n, 2 * ROWS_AHEAD)):
        prefetch(table.address + home(hashes[i], count) * 4)
    for i in range(min(n, ROWS_AHEAD)):
        seek_row(relation, table, count, i, hashes, slots)


@kernel
def seek_later(relation: Relation, table: Numbers, count, i, n, hashes: Words, slots: Words):
    """While block row i is looked at: seeks the one ROWS_AHEAD behind, and asks for the home of the one as far behind that."""
    if i + 2 * ROWS_AHEAD < n:
        prefetch(table.address + home(hashes[i + 2 * ROWS_AHEAD], count) * 4)
    if i + ROWS_AHEAD < n:
        seek_row(relation, table, count, i + ROWS_AHEAD, hashes, slots)


@kernel
def seek_row(relation: Relation, table: Numbers, count, i, hashes: Words, slots: Words):
    """slots[i] = -1 - the slot that `find_in` shall begin at, where slots[i] < 0; asks for the row that is in it."""
    if slots[i] >= 0:
        return
    hashed = hashes[i]
    bits = row_bits(count)
    at = seek_slot(table, count, bits, hashed, home(hashed, count))
    slots[i] = -1 - at
    word = table[at]
    if word != 0:
        row = row_of(word, bits)
        for k in range(relation.key_count):
            column = relation.columns[relation.keys[k]]
            prefetch(column.data + row * column.width)


@kernel
def insert_hash(ctl: Control, relation: Relation, registers: Words, n, codes: Words, known: Words):
    """Adds the block's rows that are not in the hash set, but for those with known[i] >= 0. Room is there already."""
    hash_block(ctl, registers, relation.key_count, n, codes)
    return insert_in(ctl, relation, Numbers(relation.slots), relation.slot_count, registers, n, codes, known)


@kernel
def insert_in(ctl: Control, relation: Relation, table: Numbers, count, registers: Words, n, hashes: Words, known: Words):
    """`insert_hash` of rows with these hashes into a table of `count` slots."""
    begin_seeking(relation, table, count, n, hashes, known)
    bits = row_bits(count)
    columns = relation.columns
    arity = relation.arity
    rows = relation.rows
    start = rows
    for i in range(n):
        seek_later(relation, table, count, i, n, hashes, known)
        if known[i] >= 0:
            continue
        hashed = hashes[i]
        slot = find_in(relation, table, count, ctl, registers.address, i, hashed, -1 - known[i])
        if slot < 0:
            for c in range(arity):
                column = columns[c]
                store_cell(
                    column.data,
                    column.width,
                    rows,
                    register(ctl, registers[c])[i],
                )
            table[-1 - slot] = slot_word(hashed, rows, bits)
            rows += 1
    relation.rows = rows
    return rows - start


@kernel
def take_slot(relation: Relation, table: Numbers, count, bits, hashed, row, kept):
    """Enters a row, that will be row `kept`, into a table of `count` slots unless an equal row is there. Returns whether it
    was new. `bits` hold any row number plus one."""
    at = home(hashed, count)
    while True:
        at = seek_slot(table, count, bits, hashed, at)
        word = table[at]
        if word == 0:
            table[at] = slot_word(hashed, kept, bits)
            return True
        if rows_equal(relation, row, row_of(word, bits)):
            return False
        at += 1
        if at == count:
            at = 0
