"""The last join of a path and its sink in one loop: each match is tested against the sink's bitmap where it is found, and only
what may be new goes any further.

Most rows that a recursion derives are there already. Here such a row costs a load and a bit test: it never enters a register.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import atomic_add, bit_length, load_i32, load_i64, prefetch, store_i64, wrapped_product
from dlog.engine.kernels.generate import next_chunk, open_chain
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
    COL_LOW,
    COL_RANGE,
    COL_SIZE,
    COL_STRIDE,
    COL_WIDTH,
    CTL_MARKS,
    CTL_NUMBER,
    CTL_RUN_PATH,
    CTL_SCRATCH,
    CTL_SHARED,
    LEVEL_AT,
    LEVEL_END,
    LEVEL_EXTRA,
    LEVEL_LEFT,
    LEVEL_ROW,
    LEVEL_ROWS,
    OP_SWEEP_RUNS,
    PATH_ADDED,
    PATH_DERIVED,
    REL_ARITY,
    REL_COLUMNS,
    REL_POOL,
    REL_ROWS,
    REL_SET,
    REL_SHARES,
    REL_SLOTS,
    SEEN,
    SET_BITS,
)
from dlog.engine.kernels.static.arrange import chain_of, column_of
from dlog.engine.kernels.static.bitmaps import reserve_pages, take_bit
from dlog.engine.kernels.static.chains import load_position
from dlog.engine.kernels.static.storage import load_cell, register, reserve, store_cell

MATCHES = 1 << 14
"""Matches after which a sweep returns, so that interruptions are heeded."""
ROOM = 64
"""Places for candidates that must be free before more matches are looked at."""
SOON = 12
LATER = 24
"""Rows between asking for a group, for its place, and looking at it."""

FEWEST = 8
"""Matches of a row below which it is not worth remembering that they were looked at."""
_MIX = -7046029254386353131  # 0x9E3779B97F4A7C15

# OP_SWEEP: [op, length, arrangement, group register, bound column, relation, place in the sink, base register, its twin or 0,
# place of what was seen among the marks or 0, (register of each column)]. The twin is the arrangement's relation where its
# bitmap's rows lie as the sink's: a long group is then taken from it, 64 matches at a time.
# OP_SWEEP_RUNS: [op, length, seed's relation, register of starts, column, relation, place in the sink, base register, register
# of counts, place of what was seen or 0, (register of each column)]: the matches are runs of changes.


@kernel
def sweep(ctl, code, level):
    """Goes on with the matches of the level's rows; returns how many it looked at, 0 at the end, -1 with CTL_ERROR set."""
    arrangement = load_i64(code, 2)
    relation = load_i64(code, 5)
    if load_i64(level, LEVEL_ROW) < 0:
        write_bases(ctl, code, load_i64(level, LEVEL_ROWS))
    target = relation
    if load_i64(ctl, CTL_SHARED) != 0:
        target = load_i64(load_i64(relation, REL_SHARES), load_i64(ctl, CTL_NUMBER))
    looked = 0
    added = 0
    while looked < MATCHES:
        store_i64(ctl_candidates(ctl), BLOCK, 0)
        if load_i64(code, 0) == OP_SWEEP_RUNS:
            found = sweep_runs(ctl, code, level)
        elif load_i64(arrangement, ARR_KIND) == ARR_SORTED:
            found = sweep_ranges(ctl, code, level)
        else:
            found = sweep_chains(ctl, code, level)
        novel = take_candidates(ctl, code, target, load_i64(ctl_candidates(ctl), BLOCK))
        if novel < 0:
            return -1
        looked += found
        added += novel
        if load_i64(level, LEVEL_ROW) >= load_i64(level, LEVEL_ROWS):
            break
    path = load_i64(ctl, CTL_RUN_PATH)
    atomic_add(path, PATH_DERIVED, looked)
    atomic_add(path, PATH_ADDED, added)
    return looked


@kernel
def ctl_candidates(ctl):
    """Candidates of a sweep: their row in the level's block, and in the lower 32 bits how far their value is above the swept
    column's least; at BLOCK, how many."""
    return load_i64(ctl, CTL_SCRATCH)


@kernel
def write_bases(ctl, code, rows):
    """The dense code of each row of the block with the swept column's least value."""
    columns = load_i64(load_i64(code, 5), REL_COLUMNS)
    swept = load_i64(code, 6)
    bases = register(ctl, load_i64(code, 7))
    for i in range(rows):
        store_i64(bases, i, 0)
    for c in range(load_i64(load_i64(code, 5), REL_ARITY)):
        if c != swept:
            column = columns + c * COL_SIZE * 8
            low = load_i64(column, COL_LOW)
            stride = load_i64(column, COL_STRIDE)
            values = register(ctl, load_i64(code, 10 + c))
            for i in range(rows):
                store_i64(bases, i, load_i64(bases, i) + (load_i64(values, i) - low) * stride)


@kernel
def was_seen(ctl, code, bases, row, group):
    """Whether a row with the same base and group (or run) went before; it is remembered, in the place of another, if not.

    It need not go again, not even in a later iteration when the group has grown: the path that begins with the group's changes
    meets it. So what joins on the way to it, and is forgotten, counts once however often it does."""
    place = load_i64(code, 9)
    if place == 0:
        return False
    key = (load_i64(bases, row) << 32) + group + 1
    at = place + ((wrapped_product(key, _MIX) >> 40) & (SEEN - 1))
    marks = load_i64(ctl, CTL_MARKS)
    if load_i64(marks, at) == key:
        return True
    store_i64(marks, at, key)
    return False


@kernel
def swept_column(code):
    return column_of(load_i64(code, 5), load_i64(code, 6))


# -------------------------------------------------------------------------------------------------------------- matches


@kernel
def sweep_ranges(ctl, code, level):
    """Matches of a sorted arrangement, until all are looked at or there is no room for candidates. Returns how many."""
    arrangement = load_i64(code, 2)
    entry = load_i64(arrangement, ARR_COLUMNS) + load_i64(code, 4) * 16
    data = load_i64(entry, 0)
    width = load_i64(entry, 1)
    offsets = load_i64(arrangement, ARR_OFFSETS)
    groups = register(ctl, load_i64(code, 3))
    bases = register(ctl, load_i64(code, 7))
    candidates = ctl_candidates(ctl)
    rows = load_i64(level, LEVEL_ROWS)
    row = load_i64(level, LEVEL_ROW)
    at = load_i64(level, LEVEL_AT)
    end = load_i64(level, LEVEL_END)
    kept = 0
    looked = 0
    while kept <= BLOCK - ROOM and looked < MATCHES:
        if at >= end:
            row += 1
            if row >= rows:
                break
            prefetch(offsets + max(load_i64(groups, min(row + LATER, rows - 1)), 0) * 4)
            prefetch(data + load_i32(offsets, max(load_i64(groups, min(row + SOON, rows - 1)), 0)) * width)
            group = load_i64(groups, row)
            if group < 0:
                continue
            at = load_i32(offsets, group)
            end = load_i32(offsets, group + 1)
            if end - at >= FEWEST and was_seen(ctl, code, bases, row, group):
                at = end
                continue
        count = min(end - at, BLOCK - kept)
        kept = test_matches(code, data, width, at, count, load_i64(bases, row), row, candidates, kept)
        at += count
        looked += count
    store_i64(level, LEVEL_ROW, row)
    store_i64(level, LEVEL_AT, at)
    store_i64(level, LEVEL_END, end)
    store_i64(candidates, BLOCK, kept)
    return looked


@kernel
def sweep_chains(ctl, code, level):
    """`sweep_ranges` for a growing arrangement."""
    arrangement = load_i64(code, 2)
    pool = load_i64(arrangement, ARR_POOL)
    groups = register(ctl, load_i64(code, 3))
    bases = register(ctl, load_i64(code, 7))
    candidates = ctl_candidates(ctl)
    inline = load_i64(arrangement, ARR_ITEM) == load_i64(code, 4)
    rows = load_i64(level, LEVEL_ROWS)
    row = load_i64(level, LEVEL_ROW)
    kept = 0
    looked = 0
    while kept <= BLOCK - ROOM and looked < MATCHES:
        at = load_i64(level, LEVEL_AT)
        end = load_i64(level, LEVEL_END)
        if at < end and load_i64(level, LEVEL_EXTRA) != 0:
            kept = test_words(code, level, load_i64(groups, row), load_i64(bases, row), row, candidates, kept)
            continue
        if at >= end:
            if load_i64(level, LEVEL_LEFT) > 0:
                next_chunk(arrangement, level, load_position(pool, end))
            else:
                row += 1
                if row >= rows:
                    break
                prefetch(chain_of(arrangement, max(load_i64(groups, min(row + LATER, rows - 1)), 0)))
                ahead = chain_of(arrangement, max(load_i64(groups, min(row + SOON, rows - 1)), 0))
                prefetch(pool + load_position(ahead, CHAIN_START) * 4)
                group = load_i64(groups, row)
                if group < 0:
                    continue
                open_chain(arrangement, level, group)
                words = open_words(code, level)
                looked += words
                matches = load_i32(chain_of(arrangement, group), CHAIN_COUNT)
                if words == 0 and matches >= FEWEST and was_seen(ctl, code, bases, row, group):
                    store_i64(level, LEVEL_AT, load_i64(level, LEVEL_END))
                    store_i64(level, LEVEL_LEFT, 0)
            continue
        count = min(end - at, BLOCK - kept)
        base = load_i64(bases, row)
        if inline:
            kept = test_matches(code, pool, 4, at, count, base, row, candidates, kept)
        else:
            kept = test_rows(code, at, count, base, row, candidates, kept)
        store_i64(level, LEVEL_AT, at + count)
        looked += count
    store_i64(level, LEVEL_ROW, row)
    store_i64(candidates, BLOCK, kept)
    return looked


@kernel
def open_words(code, level):
    """Points the level at the words of the group that was opened, if it is long enough and has a twin; returns its matches
    then, 0 if not."""
    store_i64(level, LEVEL_EXTRA, 0)
    matches = load_i64(level, LEVEL_END) - load_i64(level, LEVEL_AT) + load_i64(level, LEVEL_LEFT)
    if load_i64(code, 8) == 0 or matches < swept_words(code):
        return 0
    store_i64(level, LEVEL_EXTRA, 1)
    store_i64(level, LEVEL_LEFT, 0)
    store_i64(level, LEVEL_AT, 0)
    store_i64(level, LEVEL_END, swept_words(code))
    return matches


@kernel
def sweep_runs(ctl, code, level):
    """`sweep_ranges` where the matches of a row are a run of changes."""
    column = column_of(load_i64(code, 2), load_i64(code, 4))
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    starts = register(ctl, load_i64(code, 3))
    counts = register(ctl, load_i64(code, 8))
    bases = register(ctl, load_i64(code, 7))
    candidates = ctl_candidates(ctl)
    rows = load_i64(level, LEVEL_ROWS)
    row = load_i64(level, LEVEL_ROW)
    at = load_i64(level, LEVEL_AT)
    end = load_i64(level, LEVEL_END)
    kept = 0
    looked = 0
    while kept <= BLOCK - ROOM and looked < MATCHES:
        if at >= end:
            row += 1
            if row >= rows:
                break
            at = load_i64(starts, row)
            end = at + load_i64(counts, row)
            if end - at >= FEWEST and was_seen(ctl, code, bases, row, at):
                at = end
                continue
        count = min(end - at, BLOCK - kept)
        kept = test_matches(code, data, width, at, count, load_i64(bases, row), row, candidates, kept)
        at += count
        looked += count
    store_i64(level, LEVEL_ROW, row)
    store_i64(level, LEVEL_AT, at)
    store_i64(level, LEVEL_END, end)
    store_i64(candidates, BLOCK, kept)
    return looked


@kernel
def test_matches(code, data, width, at, count, base, row, candidates, kept):
    """Keeps the matches [at, at + count) that the sink's bitmap lacks; returns how many candidates there are then."""
    relation = load_i64(code, 5)
    slots = load_i64(relation, REL_SLOTS)
    column = swept_column(code)
    low = load_i64(column, COL_LOW)
    stride = load_i64(column, COL_STRIDE)
    mark = row << 32
    if load_i64(relation, REL_SET) == SET_BITS:
        if width == 4:
            for j in range(count):
                value = load_i32(data, at + j) - low
                bit = base + value * stride
                store_i64(candidates, kept, mark + value)
                kept += 1 - ((load_i64(slots, bit >> 6) >> (bit & 63)) & 1)
        else:
            for j in range(count):
                value = load_i64(data, at + j) - low
                bit = base + value * stride
                store_i64(candidates, kept, mark + value)
                kept += 1 - ((load_i64(slots, bit >> 6) >> (bit & 63)) & 1)
        return kept
    pool = load_i64(relation, REL_POOL)
    if pool == 0:
        for j in range(count):
            store_i64(candidates, kept + j, mark + load_cell(data, width, at + j) - low)
        return kept + count
    if width == 4:
        for j in range(count):
            value = load_i32(data, at + j) - low
            bit = base + value * stride
            word = load_i64(pool, (load_i32(slots, bit >> 9) << 3) + ((bit >> 6) & 7))
            store_i64(candidates, kept, mark + value)
            kept += 1 - ((word >> (bit & 63)) & 1)
    else:
        for j in range(count):
            value = load_i64(data, at + j) - low
            bit = base + value * stride
            word = load_i64(pool, (load_i32(slots, bit >> 9) << 3) + ((bit >> 6) & 7))
            store_i64(candidates, kept, mark + value)
            kept += 1 - ((word >> (bit & 63)) & 1)
    return kept


@kernel
def test_rows(code, at, count, base, row, candidates, kept):
    """`test_matches` where the growing arrangement has row numbers."""
    arrangement = load_i64(code, 2)
    pool = load_i64(arrangement, ARR_POOL)
    source = column_of(load_i64(arrangement, ARR_RELATION), load_i64(code, 4))
    data = load_i64(source, COL_DATA)
    width = load_i64(source, COL_WIDTH)
    for j in range(count):
        kept = test_matches(code, data, width, load_i32(pool, at + j), 1, base, row, candidates, kept)
    return kept


# ----------------------------------------------------------------------------------------------------------------- words


@kernel
def swept_words(code):
    """Words of the bitmap that one group can touch."""
    column = column_of(load_i64(code, 8), load_i64(code, 4))
    return (load_i64(column, COL_RANGE) + 63) >> 6


@kernel
def test_words(code, level, group, base, row, candidates, kept):
    """Keeps what the twin's bitmap has of the group, from word LEVEL_AT on, and the sink's lacks; returns how many candidates
    there are then. The twin may have rows of this iteration already: they are as true."""
    twin = load_i64(code, 8)
    relation = load_i64(code, 5)
    start = load_i64(column_of(twin, 0), COL_STRIDE) * group
    source = load_i64(twin, REL_SLOTS) + (start >> 6) * 8
    target = load_i64(relation, REL_SLOTS) + (base >> 6) * 8
    at = load_i64(level, LEVEL_AT)
    end = load_i64(level, LEVEL_END)
    mark = row << 32
    while at < end and kept <= BLOCK - ROOM:
        if at + 8 <= end:
            any_new = 0
            for w in range(8):
                any_new |= load_i64(source, at + w) & ~load_i64(target, at + w)
            if any_new == 0:
                at += 8
                continue
        lacking = load_i64(source, at) & ~load_i64(target, at)
        while lacking != 0:
            last = lacking & -lacking
            store_i64(candidates, kept, mark + (at << 6) + bit_length(last) - 1)
            kept += 1
            lacking ^= last
        at += 1
    store_i64(level, LEVEL_AT, at)
    return kept


# ----------------------------------------------------------------------------------------------------------- candidates


@kernel
def take_candidates(ctl, code, target, count):
    """Adds the candidates that are new to the target, which is the sink's relation or this worker's share of it. Returns how
    many, -1 with CTL_ERROR set."""
    if count == 0:
        return 0
    paged = load_i64(load_i64(code, 5), REL_SET) != SET_BITS
    if not reserve(ctl, target, count) or (paged and not reserve_pages(ctl, target, count)):
        return -1
    candidates = ctl_candidates(ctl)
    bases = register(ctl, load_i64(code, 7))
    stride = load_i64(swept_column(code), COL_STRIDE)
    slots = load_i64(target, REL_SLOTS)
    novel = 0
    for k in range(count):
        candidate = load_i64(candidates, k)
        bit = load_i64(bases, candidate >> 32) + (candidate & 0xFFFFFFFF) * stride
        store_i64(candidates, novel, candidate)
        if paged:
            novel += take_bit(target, bit)
        else:
            word = load_i64(slots, bit >> 6)
            store_i64(slots, bit >> 6, word | (1 << (bit & 63)))
            novel += 1 - ((word >> (bit & 63)) & 1)
    write_rows(ctl, code, target, novel, candidates)
    return novel


@kernel
def write_rows(ctl, code, target, count, candidates):
    at = load_i64(target, REL_ROWS)
    columns = load_i64(target, REL_COLUMNS)
    swept = load_i64(code, 6)
    low = load_i64(swept_column(code), COL_LOW)
    for c in range(load_i64(target, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        data = load_i64(column, COL_DATA)
        width = load_i64(column, COL_WIDTH)
        source = register(ctl, load_i64(code, 10 + c))
        if c == swept:
            for k in range(count):
                store_cell(data, width, at + k, low + (load_i64(candidates, k) & 0xFFFFFFFF))
        else:
            for k in range(count):
                store_cell(data, width, at + k, load_i64(source, load_i64(candidates, k) >> 32))
    store_i64(target, REL_ROWS, at + count)
