"""Takes all rows out of relations and growing arrangements, in time that goes by these rows and not by the room they had:
what is emptied again and again in a loop of few rows is emptied at once."""

from __future__ import annotations

from dlog.engine.kernels.codes import KeyMap, SetKind
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Arrangement, Numbers, Relation, Words
from dlog.engine.kernels.static.arrange import chain_of, dense_group
from dlog.engine.kernels.static.hashes import hash_rows, home
from dlog.engine.kernels.static.storage import clear_words, load_cell, mix

WIPED = 8
"""Places of a table for each row that is in it up to which all of it is wiped: trades a pass over the table against finding
the rows' own places."""


@entry()
def empty_relation(relation: Relation, hashes: Words):
    """Takes all rows out, of the set too. `hashes` is a scratch block."""
    if relation.rows > 0:
        empty_set(relation, hashes)
    relation.rows = 0
    relation.lo = 0
    relation.hi = 0


@kernel
def empty_set(relation: Relation, hashes: Words):
    kind = relation.set
    if kind == SetKind.HASH:
        empty_hash(relation, hashes)
    elif kind == SetKind.GRADUAL:
        empty_gradual(relation)
    elif kind == SetKind.BITS:
        words = Words(relation.slots)
        count = (relation.slot_count + 63) // 64
        if count <= WIPED * relation.rows:
            clear_words(words, count)
            return
        for row in range(relation.rows):
            words[key_code(relation, row) >> 6] = 0
    elif kind in (SetKind.DENSE, SetKind.PAGES):
        numbers = Numbers(relation.slots)
        shift = 9 if kind == SetKind.PAGES else 0
        count = (relation.slot_count >> shift) + (1 if kind == SetKind.PAGES else 0)
        relation.pool_pages = 0
        if count <= WIPED * relation.rows:
            for at in range(count):
                numbers[at] = 0
            return
        for row in range(relation.rows):
            numbers[key_code(relation, row) >> shift] = 0


@kernel
def key_code(relation: Relation, row):
    """Dense code of a stored row's key."""
    code = 0
    for k in range(relation.key_count):
        column = relation.columns[relation.keys[k]]
        code += (load_cell(column.data, column.width, row) - column.low) * column.stride
    return code


@kernel
def empty_hash(relation: Relation, hashes: Words):
    table = Numbers(relation.slots)
    count = relation.slot_count
    rows = relation.rows
    if count <= WIPED * rows:
        for at in range(count):
            table[at] = 0
        return
    for first in range(0, rows, BLOCK):
        size = min(BLOCK, rows - first)
        hash_rows(relation, first, size, hashes)
        for i in range(size):
            wipe_from(table, home(hashes[i], count), count)


@kernel
def empty_gradual(relation: Relation):
    """One that grows has no more rows to enter."""
    clear_numbers(Numbers(relation.slots), relation.slot_count)
    clear_numbers(Numbers(relation.next_slots), relation.next_count)
    relation.entered = 0
    relation.staying = 0


@kernel
def clear_numbers(numbers: Numbers, count):
    for at in range(count):
        numbers[at] = 0


@kernel
def wipe_from(table: Numbers, at, count):
    """Wipes places up to a free one: what is there from the home of an entry on, to the entry at least, all goes."""
    while table[at] != 0:
        table[at] = 0
        at += 1
        if at == count:
            at = 0


@entry()
def empty_arrangement(arrangement: Arrangement):
    """Takes all rows out of a growing arrangement whose relation still has them."""
    if arrangement.arranged_rows == 0:
        return
    if arrangement.map == KeyMap.DENSE:
        empty_chains(arrangement)
    else:
        empty_groups(arrangement)
    arrangement.arranged_rows = 0
    arrangement.pool_size = 0


@kernel
def empty_chains(arrangement: Arrangement):
    """A chain is two words."""
    if 2 * arrangement.groups <= WIPED * arrangement.arranged_rows:
        clear_words(Words(arrangement.chains.address), 2 * arrangement.groups)
        return
    for row in range(arrangement.arranged_rows):
        clear_words(Words(chain_of(arrangement, dense_group(arrangement, row)).address), 2)


@kernel
def empty_groups(arrangement: Arrangement):
    """Chains of groups are begun anew where a group is."""
    table = arrangement.slots
    count = arrangement.slot_count
    if count <= WIPED * arrangement.groups:
        for at in range(count):
            table[at] = 0
    else:
        for group in range(arrangement.groups):
            hashed = 0
            for k in range(arrangement.key_count):
                hashed = mix(hashed, arrangement.group_keys[k][group])
            wipe_from(table, (hashed >> 8) & (count - 1), count)
    arrangement.groups = 0
