"""Generators: the instructions that make rows. Each fills the registers of its level with up to one block of rows and
remembers where it stopped in the level's state; it returns 0 only when it is exhausted.

A join first writes, for each output row, which input row it comes from and at which position of the arrangement its match
stands; then it fills one output register at a time. So a path runs depth first over blocks, and no intermediate result is
ever larger than a block per level.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import atomic_add, bit_length, load_i32, load_i64, store_i64
from dlog.engine.kernels.layout import (
    ARR_COLUMNS,
    ARR_ITEM,
    ARR_KIND,
    ARR_OFFSETS,
    ARR_POOL,
    ARR_RELATION,
    ARR_SORTED,
    BLOCK,
    CHAIN_COUNT,
    CHAIN_START,
    COL_DATA,
    COL_WIDTH,
    CTL_CURSOR,
    CTL_MARKS,
    LEVEL_AT,
    LEVEL_CHUNK,
    LEVEL_END,
    LEVEL_LEFT,
    LEVEL_ROW,
    LEVEL_ROWS,
    MARK_BITS,
    MARK_CHOSEN,
    MARK_COST,
    MARK_CURSOR,
    MARK_GROUP,
    MARK_LAST,
    MARK_PROPOSERS,
    MARK_ROWS,
    MARK_SIZE,
    REL_QUEUE,
)
from dlog.engine.kernels.static.arrange import chain_of, column_of, group_size
from dlog.engine.kernels.static.chains import chunk_items, load_position
from dlog.engine.kernels.static.storage import load_cell, register

SMALL = 4
"""Matches of a group that are written without a branch on how many there are."""


@kernel
def copy_carried(ctl, pairs, count, source, n):
    """dst[i] = src[source[i]] for `count` (src, dst) pairs of registers."""
    for c in range(count):
        values = register(ctl, load_i64(pairs, c * 2))
        target = register(ctl, load_i64(pairs, c * 2 + 1))
        for i in range(n):
            store_i64(target, i, load_i64(values, load_i64(source, i)))


# ----------------------------------------------------------------------------------------------------------------- scan


@kernel
def scan(ctl, code, level):
    """[op, length, relation, changes, columns, (column, dst)*]: rows claimed from the workers' shared cursor."""
    end = load_i64(level, LEVEL_END)
    start = atomic_add(load_i64(ctl, CTL_CURSOR), 0, BLOCK)
    n = min(BLOCK, end - start)
    if n <= 0:
        return 0
    relation = load_i64(code, 2)
    for c in range(load_i64(code, 4)):
        column = column_of(relation, load_i64(code, 5 + c * 2))
        target = register(ctl, load_i64(code, 6 + c * 2))
        data = load_i64(column, COL_DATA)
        if load_i64(column, COL_WIDTH) == 4:
            for i in range(n):
                store_i64(target, i, load_i32(data, start + i))
        else:
            for i in range(n):
                store_i64(target, i, load_i64(data, start + i))
    return n


@kernel
def scan_queue(ctl, code, level):
    """[op, length, relation, columns, (column, dst)*]: the changed rows of a lattice relation."""
    end = load_i64(level, LEVEL_END)
    start = atomic_add(load_i64(ctl, CTL_CURSOR), 0, BLOCK)
    n = min(BLOCK, end - start)
    if n <= 0:
        return 0
    relation = load_i64(code, 2)
    queue = load_i64(relation, REL_QUEUE)
    for c in range(load_i64(code, 3)):
        column = column_of(relation, load_i64(code, 4 + c * 2))
        target = register(ctl, load_i64(code, 5 + c * 2))
        data = load_i64(column, COL_DATA)
        width = load_i64(column, COL_WIDTH)
        for i in range(n):
            store_i64(target, i, load_cell(data, width, load_i32(queue, start + i)))
    return n


# ----------------------------------------------------------------------------------------------------------------- join


@kernel
def join(ctl, code, level, source, places):
    """[op, length, arrangement, group register, carried, bound, (src, dst)*, (column, dst)*]"""
    arrangement = load_i64(code, 2)
    groups = register(ctl, load_i64(code, 3))
    n = match_groups(arrangement, groups, level, source, places)
    if n > 0:
        carried = load_i64(code, 4)
        copy_carried(ctl, code + 48, carried, source, n)
        bind_columns(ctl, arrangement, code + 48 + carried * 16, load_i64(code, 5), places, n)
    return n


@kernel
def match_groups(arrangement, groups, level, source, places):
    """Walks the rows' groups: source[k] and places[k] are the row and the position of match k. Returns how many."""
    if load_i64(arrangement, ARR_KIND) == ARR_SORTED:
        return match_sorted(load_i64(arrangement, ARR_OFFSETS), groups, level, source, places)
    return match_chains(arrangement, groups, level, source, places)


@kernel
def match_sorted(offsets, groups, level, source, places):
    """`match_groups` where a group is a range. Of a small one as many matches are written as fit, and those kept that are: how
    many there are, and whether any, is nothing a processor could guess."""
    rows = load_i64(level, LEVEL_ROWS)
    row = load_i64(level, LEVEL_ROW)
    at = load_i64(level, LEVEL_AT)
    end = load_i64(level, LEVEL_END)
    n = 0
    while n < BLOCK:
        if at >= end:
            row += 1
            if row >= rows:
                break
            group = load_i64(groups, row)
            at = load_i32(offsets, max(group, 0))
            end = load_i32(offsets, max(group, 0) + 1)
            if group < 0:
                end = at
            if end - at <= SMALL <= BLOCK - n:
                for j in range(SMALL):
                    store_i64(source, n + j, row)
                    store_i64(places, n + j, at + j)
                n += end - at
                at = end
            continue
        count = min(end - at, BLOCK - n)
        for j in range(count):
            store_i64(source, n + j, row)
            store_i64(places, n + j, at + j)
        n += count
        at += count
    store_i64(level, LEVEL_ROW, row)
    store_i64(level, LEVEL_AT, at)
    store_i64(level, LEVEL_END, end)
    return n


@kernel
def match_chains(arrangement, groups, level, source, places):
    """`match_groups` where a group is a chain of chunks."""
    rows = load_i64(level, LEVEL_ROWS)
    row = load_i64(level, LEVEL_ROW)
    at = load_i64(level, LEVEL_AT)
    end = load_i64(level, LEVEL_END)
    n = 0
    while n < BLOCK:
        if at >= end:
            if load_i64(level, LEVEL_LEFT) > 0:
                next_chunk(arrangement, level, load_position(load_i64(arrangement, ARR_POOL), end))
            else:
                row += 1
                if row >= rows:
                    break
                group = load_i64(groups, row)
                if group < 0:
                    continue
                open_chain(arrangement, level, group)
            at = load_i64(level, LEVEL_AT)
            end = load_i64(level, LEVEL_END)
            continue
        count = min(end - at, BLOCK - n)
        for j in range(count):
            store_i64(source, n + j, row)
            store_i64(places, n + j, at + j)
        n += count
        at += count
    store_i64(level, LEVEL_ROW, row)
    store_i64(level, LEVEL_AT, at)
    store_i64(level, LEVEL_END, end)
    return n


@kernel
def open_chain(arrangement, level, group):
    """Points the level at the first chunk of a growing arrangement's group."""
    chain = chain_of(arrangement, group)
    store_i64(level, LEVEL_CHUNK, -1)
    store_i64(level, LEVEL_LEFT, load_i32(chain, CHAIN_COUNT))
    next_chunk(arrangement, level, load_position(chain, CHAIN_START))


@kernel
def next_chunk(arrangement, level, start):
    """Points the level at the chain's next chunk, which starts at `start`."""
    number = load_i64(level, LEVEL_CHUNK) + 1
    left = load_i64(level, LEVEL_LEFT)
    count = min(left, chunk_items(number))
    store_i64(level, LEVEL_CHUNK, number)
    store_i64(level, LEVEL_LEFT, left - count)
    store_i64(level, LEVEL_AT, start)
    store_i64(level, LEVEL_END, start + count)


@kernel
def bind_columns(ctl, arrangement, pairs, count, places, n):
    """dst[i] = column's value at places[i] for `count` (column, dst) pairs."""
    ordered = load_i64(arrangement, ARR_KIND) == ARR_SORTED
    pool = load_i64(arrangement, ARR_POOL)
    for c in range(count):
        number = load_i64(pairs, c * 2)
        target = register(ctl, load_i64(pairs, c * 2 + 1))
        if ordered:
            entry = load_i64(arrangement, ARR_COLUMNS) + number * 16
            data = load_i64(entry, 0)
            if load_i64(entry, 1) == 4:
                for i in range(n):
                    store_i64(target, i, load_i32(data, load_i64(places, i)))
            else:
                for i in range(n):
                    store_i64(target, i, load_i64(data, load_i64(places, i)))
        elif load_i64(arrangement, ARR_ITEM) == number:
            for i in range(n):
                store_i64(target, i, load_i32(pool, load_i64(places, i)))
        else:
            column = column_of(load_i64(arrangement, ARR_RELATION), number)
            data = load_i64(column, COL_DATA)
            width = load_i64(column, COL_WIDTH)
            for i in range(n):
                store_i64(target, i, load_cell(data, width, load_i32(pool, load_i64(places, i))))


# --------------------------------------------------------------------------------------------------------------- extend
# [op, length, dst, marks offset, low, span, proposers, carried, (arrangement, group register, column)*, (src, dst)*]
# Worst-case optimal extension by one variable: the proposer that makes the least work proposes, the sorted others validate;
# growing ones are validated by the set of their relation, in an instruction after this one. When consecutive rows share a
# proposer's group, its values are marked in a bitmap once and each candidate is one bit test (the marker of triangle counting).


@kernel
def proposer_at(code, p):
    return code + (8 + p * 3) * 8


@kernel
def mark_at(ctl, code, p):
    marks = load_i64(ctl, CTL_MARKS) + load_i64(code, 3) * 8
    return marks + (MARK_PROPOSERS + p * MARK_SIZE) * 8


@kernel
def values_of(arrangement, number):
    """(address, width) pair of a sorted arrangement's column."""
    return load_i64(arrangement, ARR_COLUMNS) + number * 16


@kernel
def flip_marks(ctl, code, mark, arrangement, number, group, on):
    """Sets (or clears) the bits of a group's values."""
    bits = load_i64(ctl, CTL_MARKS) + load_i64(mark, MARK_BITS) * 8
    entry = values_of(arrangement, number)
    data = load_i64(entry, 0)
    width = load_i64(entry, 1)
    low = load_i64(code, 4)
    offsets = load_i64(arrangement, ARR_OFFSETS)
    for at in range(load_i32(offsets, group), load_i32(offsets, group + 1)):
        code_ = load_cell(data, width, at) - low
        word = load_i64(bits, code_ >> 6)
        bit = 1 << (code_ & 63)
        store_i64(bits, code_ >> 6, word | bit if on else word & ~bit)


@kernel
def update_mark(ctl, code, mark, arrangement, number, group):
    """Marks a proposer's group when a second row in a row uses it. Returns whether it is marked."""
    marked = load_i64(mark, MARK_GROUP)
    last = load_i64(mark, MARK_LAST)
    store_i64(mark, MARK_LAST, group)
    if marked == group:
        return True
    if group != last or load_i64(code, 5) == 0:
        return False
    if marked >= 0:
        flip_marks(ctl, code, mark, arrangement, number, marked, False)
    flip_marks(ctl, code, mark, arrangement, number, group, True)
    store_i64(mark, MARK_GROUP, group)
    return True


@kernel
def measure_proposers(ctl, code, row):
    """Rows and validation cost of every proposer for this row, kept in its marks. Returns the sum of costs, -1 where one has
    no rows.

    A candidate costs one bit test against a marked group or a growing arrangement (a later instruction's work), a search
    otherwise.
    """
    total = 0
    mark = mark_at(ctl, code, 0)
    proposer = proposer_at(code, 0)
    for _ in range(load_i64(code, 6)):
        arrangement = load_i64(proposer, 0)
        group = load_i64(register(ctl, load_i64(proposer, 1)), row)
        size = group_size(arrangement, group)
        if size == 0:
            return -1
        cost = 1
        if load_i64(arrangement, ARR_KIND) == ARR_SORTED and not update_mark(
            ctl, code, mark, arrangement, load_i64(proposer, 2), group
        ):
            cost = 2 + bit_length(size)
        store_i64(mark, MARK_ROWS, size)
        store_i64(mark, MARK_COST, cost)
        total += cost
        mark += MARK_SIZE * 8
        proposer += 24
    return total


@kernel
def choose_proposer(ctl, code, row):
    """The proposer with the least work for this row, or -1 where one of them has no values."""
    total = measure_proposers(ctl, code, row)
    if total < 0:
        return -1
    best = -1
    least = 0
    mark = mark_at(ctl, code, 0)
    for p in range(load_i64(code, 6)):
        work = load_i64(mark, MARK_ROWS) * (1 + total - load_i64(mark, MARK_COST))
        if best < 0 or work < least:
            best = p
            least = work
        mark += MARK_SIZE * 8
    return best


@kernel
def open_proposer(ctl, code, level, chosen, row):
    """Points the level at the chosen proposer's values and rewinds the others' cursors."""
    proposer = proposer_at(code, chosen)
    arrangement = load_i64(proposer, 0)
    group = load_i64(register(ctl, load_i64(proposer, 1)), row)
    if load_i64(arrangement, ARR_KIND) == ARR_SORTED:
        offsets = load_i64(arrangement, ARR_OFFSETS)
        store_i64(level, LEVEL_AT, load_i32(offsets, group))
        store_i64(level, LEVEL_END, load_i32(offsets, group + 1))
    else:
        open_chain(arrangement, level, group)
    for p in range(load_i64(code, 6)):
        other = proposer_at(code, p)
        arrangement = load_i64(other, 0)
        if load_i64(arrangement, ARR_KIND) == ARR_SORTED:
            group = load_i64(register(ctl, load_i64(other, 1)), row)
            store_i64(mark_at(ctl, code, p), MARK_CURSOR, load_i32(load_i64(arrangement, ARR_OFFSETS), group))


@kernel
def propose(ctl, code, chosen, at, count, target):
    """Writes `count` candidate values from position `at` of the chosen proposer. Returns whether they ascend."""
    proposer = proposer_at(code, chosen)
    arrangement = load_i64(proposer, 0)
    number = load_i64(proposer, 2)
    if load_i64(arrangement, ARR_KIND) == ARR_SORTED:
        entry = values_of(arrangement, number)
        data = load_i64(entry, 0)
        if load_i64(entry, 1) == 4:
            for j in range(count):
                store_i64(target, j, load_i32(data, at + j))
        else:
            for j in range(count):
                store_i64(target, j, load_i64(data, at + j))
        return True
    pool = load_i64(arrangement, ARR_POOL)
    column = column_of(load_i64(arrangement, ARR_RELATION), number)
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    inline = load_i64(arrangement, ARR_ITEM) == number
    for j in range(count):
        item = load_i32(pool, at + j)
        store_i64(target, j, item if inline else load_cell(data, width, item))
    return False


@kernel
def validate(ctl, code, p, row, count, target, ascending):
    """Keeps the candidates that proposer p (sorted) has, in place; returns how many."""
    proposer = proposer_at(code, p)
    arrangement = load_i64(proposer, 0)
    group = load_i64(register(ctl, load_i64(proposer, 1)), row)
    mark = mark_at(ctl, code, p)
    kept = 0
    if load_i64(mark, MARK_GROUP) == group and load_i64(code, 5) > 0:
        bits = load_i64(ctl, CTL_MARKS) + load_i64(mark, MARK_BITS) * 8
        low = load_i64(code, 4)
        span = load_i64(code, 5)
        for j in range(count):
            value = load_i64(target, j)
            offset = value - low
            store_i64(target, kept, value)
            if 0 <= offset < span:
                kept += (load_i64(bits, offset >> 6) >> (offset & 63)) & 1
        return kept
    entry = values_of(arrangement, load_i64(proposer, 2))
    data = load_i64(entry, 0)
    width = load_i64(entry, 1)
    offsets = load_i64(arrangement, ARR_OFFSETS)
    end = load_i32(offsets, group + 1)
    cursor = load_i64(mark, MARK_CURSOR) if ascending else load_i32(offsets, group)
    for j in range(count):
        value = load_i64(target, j)
        at = gallop(data, width, cursor, end, value)
        if ascending:
            cursor = at
        if at < end and load_cell(data, width, at) == value:
            store_i64(target, kept, value)
            kept += 1
    store_i64(mark, MARK_CURSOR, cursor)
    return kept


@kernel
def gallop(data, width, start, end, value):
    """First position in [start, end) whose value is not below `value`: exponential, then binary search."""
    if start >= end or load_cell(data, width, start) >= value:
        return start
    step = 1
    low = start
    while low + step < end and load_cell(data, width, low + step) < value:
        low += step
        step *= 2
    high = min(low + step, end)
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if load_cell(data, width, middle) < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def is_pair_marked(ctl, code, chosen, row):
    """Whether there are two sorted proposers and the other one's group is marked: the case of triangles, worth one fused
    loop."""
    if load_i64(code, 6) != 2 or load_i64(code, 5) == 0:
        return False
    if load_i64(load_i64(proposer_at(code, chosen), 0), ARR_KIND) != ARR_SORTED:
        return False
    other = proposer_at(code, 1 - chosen)
    if load_i64(load_i64(other, 0), ARR_KIND) != ARR_SORTED:
        return False
    group = load_i64(register(ctl, load_i64(other, 1)), row)
    return load_i64(mark_at(ctl, code, 1 - chosen), MARK_GROUP) == group


@kernel
def propose_marked(ctl, code, chosen, row, at, count, target, source, n):
    """Writes the candidates that the other proposer's marks have, from position n on; returns the new n."""
    proposer = proposer_at(code, chosen)
    entry = values_of(load_i64(proposer, 0), load_i64(proposer, 2))
    data = load_i64(entry, 0)
    width = load_i64(entry, 1)
    bits = load_i64(ctl, CTL_MARKS) + load_i64(mark_at(ctl, code, 1 - chosen), MARK_BITS) * 8
    low = load_i64(code, 4)
    for j in range(count):
        value = load_cell(data, width, at + j)
        offset = value - low
        store_i64(target, n, value)
        store_i64(source, n, row)
        n += (load_i64(bits, offset >> 6) >> (offset & 63)) & 1
    return n


@kernel
def extend(ctl, code, level, source):
    rows = load_i64(level, LEVEL_ROWS)
    row = load_i64(level, LEVEL_ROW)
    proposers = load_i64(code, 6)
    marks = load_i64(ctl, CTL_MARKS) + load_i64(code, 3) * 8
    target = register(ctl, load_i64(code, 2))
    n = 0
    while n < BLOCK:
        at = load_i64(level, LEVEL_AT)
        end = load_i64(level, LEVEL_END)
        if at >= end:
            if load_i64(level, LEVEL_LEFT) > 0:
                arrangement = load_i64(proposer_at(code, load_i64(marks, MARK_CHOSEN)), 0)
                next_chunk(arrangement, level, load_position(load_i64(arrangement, ARR_POOL), end))
                continue
            row += 1
            if row >= rows:
                break
            chosen = choose_proposer(ctl, code, row)
            if chosen >= 0:
                store_i64(marks, MARK_CHOSEN, chosen)
                open_proposer(ctl, code, level, chosen, row)
            continue
        chosen = load_i64(marks, MARK_CHOSEN)
        count = min(end - at, BLOCK - n)
        store_i64(level, LEVEL_AT, at + count)
        if is_pair_marked(ctl, code, chosen, row):
            n = propose_marked(ctl, code, chosen, row, at, count, target, source, n)
            continue
        ascending = propose(ctl, code, chosen, at, count, target + n * 8)
        for p in range(proposers):
            if p != chosen and load_i64(load_i64(proposer_at(code, p), 0), ARR_KIND) == ARR_SORTED and count > 0:
                count = validate(ctl, code, p, row, count, target + n * 8, ascending)
        for j in range(count):
            store_i64(source, n + j, row)
        n += count
    store_i64(level, LEVEL_ROW, row)
    copy_carried(ctl, code + (8 + proposers * 3) * 8, load_i64(code, 7), source, n)
    return n
