"""Candidates of minima and maxima: the values that each group has, in a list of its own.

Lists are short, nearly always, and searched from their heads. The candidates of one that has grown long are in the reduction's
table besides, by the hash of group and value: CO_PREVIOUS of its head, which has none before it, is `HASHED` then.
"""

from __future__ import annotations

from dlog.engine.kernels.collections import add_values, cell, remove_row
from dlog.engine.kernels.jit import kernel
from dlog.engine.kernels.layout import (
    BLOCK,
    CO_HEADS,
    CO_NEXTS,
    CO_PREVIOUS,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    CTL_SCRATCH,
    RD_CANDIDATES,
    RD_GROUPS,
    RD_TABLE,
    RD_TABLE_COUNT,
    RD_TABLE_USED,
    REL_COLUMNS,
)
from dlog.engine.kernels.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.storage import load_cell, mix, release, zeroed

LONG = 16
"""Candidates of a group from which on they are found by hash."""
HASHED = -1


@kernel
def candidate_row(ctl, reduction, group, value):
    """The candidate of a group with a value, made and linked if there is none; -1 with CTL_ERROR set."""
    candidates = load_i64(reduction, RD_CANDIDATES)
    heads = load_i64(load_i64(reduction, RD_GROUPS), CO_HEADS)
    head = load_i32(heads, group)
    mark = load_i32(load_i64(candidates, CO_PREVIOUS), head - 1) if head != 0 else 0
    if mark == HASHED:
        row = find_hashed(reduction, group, value)
        if row >= 0:
            return row
    else:
        nexts = load_i64(candidates, CO_NEXTS)
        column = load_i64(candidates, REL_COLUMNS) + COL_SIZE * 8
        data = load_i64(column, COL_DATA)
        width = load_i64(column, COL_WIDTH)
        passed = 0
        at = head
        while at != 0:
            if load_cell(data, width, at - 1) == value:
                return at - 1
            passed += 1
            at = load_i32(nexts, at - 1)
        if passed >= LONG:
            if not hash_list(ctl, reduction, head):
                return -1
            mark = HASHED
    if mark == HASHED and not grow_hashed(ctl, reduction):
        return -1
    buffer = load_i64(ctl, CTL_SCRATCH) + 2 * BLOCK * 8
    store_i64(buffer, 0, group)
    store_i64(buffer, 1, value)
    row = add_values(ctl, candidates, buffer, 0)
    if row < 0:
        return -1
    store_i32(load_i64(candidates, CO_NEXTS), row, head)
    store_i32(load_i64(candidates, CO_PREVIOUS), row, mark)
    if head > 0:
        store_i32(load_i64(candidates, CO_PREVIOUS), head - 1, row + 1)
    store_i32(heads, group, row + 1)
    if mark == HASHED:
        place_hashed(reduction, row)
        store_i64(reduction, RD_TABLE_USED, load_i64(reduction, RD_TABLE_USED) + 1)
    return row


@kernel
def unlink(ctl, reduction, group, row):
    """Removes a candidate from its group's list and from the candidates; false with CTL_ERROR set."""
    heads = load_i64(load_i64(reduction, RD_GROUPS), CO_HEADS)
    candidates = load_i64(reduction, RD_CANDIDATES)
    previous = load_i64(candidates, CO_PREVIOUS)
    if load_i32(previous, load_i32(heads, group) - 1) == HASHED:
        remove_hashed(reduction, row)
    following = load_i32(load_i64(candidates, CO_NEXTS), row)
    before = load_i32(previous, row)
    if before > 0:
        store_i32(load_i64(candidates, CO_NEXTS), before - 1, following)
    else:
        store_i32(heads, group, following)
    if following > 0:
        # A new head takes over what the old one says of the list.
        store_i32(previous, following - 1, before)
    return remove_row(ctl, candidates, row)


@kernel
def warm_next(candidates, row):
    """Asks for the candidate behind one in its list."""
    following = load_i32(load_i64(candidates, CO_NEXTS), row) - 1
    if following >= 0:
        column = load_i64(candidates, REL_COLUMNS) + COL_SIZE * 8
        prefetch(load_i64(column, COL_DATA) + following * load_i64(column, COL_WIDTH))
        prefetch(load_i64(candidates, CO_NEXTS) + following * 4)


# ---------------------------------------------------------------------------------------------------------------- table


@kernel
def home_of(group, value, mask):
    return (mix(mix(0, group), value) >> 20) & mask


@kernel
def find_hashed(reduction, group, value):
    """The candidate of a group with a long list that has a value, or -1."""
    candidates = load_i64(reduction, RD_CANDIDATES)
    table = load_i64(reduction, RD_TABLE)
    mask = load_i64(reduction, RD_TABLE_COUNT) - 1
    at = home_of(group, value, mask)
    while True:
        row = load_i32(table, at) - 1
        if row < 0 or (cell(candidates, 1, row) == value and cell(candidates, 0, row) == group):
            return row
        at = (at + 1) & mask


@kernel
def place_hashed(reduction, row):
    """Enters a candidate that the table does not have, and has room for."""
    candidates = load_i64(reduction, RD_CANDIDATES)
    table = load_i64(reduction, RD_TABLE)
    mask = load_i64(reduction, RD_TABLE_COUNT) - 1
    at = home_of(cell(candidates, 0, row), cell(candidates, 1, row), mask)
    while load_i32(table, at) != 0:
        at = (at + 1) & mask
    store_i32(table, at, row + 1)


@kernel
def grow_hashed(ctl, reduction):
    """Makes room for one more candidate in the table; false with CTL_ERROR set."""
    old = load_i64(reduction, RD_TABLE_COUNT)
    if (load_i64(reduction, RD_TABLE_USED) + 1) * 2 <= old:
        return True
    count = max(old * 2, 64)
    table = zeroed(ctl, count * 4)
    if table == 0:
        return False
    before = load_i64(reduction, RD_TABLE)
    store_i64(reduction, RD_TABLE, table)
    store_i64(reduction, RD_TABLE_COUNT, count)
    for at in range(old):
        row = load_i32(before, at) - 1
        if row >= 0:
            place_hashed(reduction, row)
    release(ctl, before, old * 4)
    return True


@kernel
def hash_list(ctl, reduction, head):
    """Enters all candidates of a list (its head plus one) and marks it; false with CTL_ERROR set."""
    candidates = load_i64(reduction, RD_CANDIDATES)
    at = head
    while at != 0:
        if not grow_hashed(ctl, reduction):
            return False
        place_hashed(reduction, at - 1)
        store_i64(reduction, RD_TABLE_USED, load_i64(reduction, RD_TABLE_USED) + 1)
        at = load_i32(load_i64(candidates, CO_NEXTS), at - 1)
    store_i32(load_i64(candidates, CO_PREVIOUS), head - 1, HASHED)
    return True


@kernel
def remove_hashed(reduction, row):
    """Takes a candidate out of the table; later ones of its run move up."""
    candidates = load_i64(reduction, RD_CANDIDATES)
    table = load_i64(reduction, RD_TABLE)
    mask = load_i64(reduction, RD_TABLE_COUNT) - 1
    hole = home_of(cell(candidates, 0, row), cell(candidates, 1, row), mask)
    while load_i32(table, hole) != row + 1:
        hole = (hole + 1) & mask
    at = hole
    while True:
        at = (at + 1) & mask
        other = load_i32(table, at) - 1
        if other < 0:
            break
        home = home_of(cell(candidates, 0, other), cell(candidates, 1, other), mask)
        if (at - home) & mask >= (at - hole) & mask:
            store_i32(table, hole, other + 1)
            hole = at
    store_i32(table, hole, 0)
    store_i64(reduction, RD_TABLE_USED, load_i64(reduction, RD_TABLE_USED) - 1)
