"""The last join of a path and its sink in one loop: each match is tested against the sink's bitmap where it is found, and only
what may be new goes any further.

Most rows that a recursion derives are there already. Here such a row costs a load and a bit test: it never enters a register.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import ArrangementKind, Operation, SetKind
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import atomic_add, bit_length, prefetch, wrapped_product
from dlog.engine.kernels.instructions import Sweep
from dlog.engine.kernels.layout import BLOCK, SWEEP_MARKS
from dlog.engine.kernels.machine_structs import Arrangement, Column, Level, Numbers, Relation, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.arrange import chain_of, column_of
from dlog.engine.kernels.static.bitmaps import reserve_pages, take_bit
from dlog.engine.kernels.static.chains import load_position
from dlog.engine.kernels.static.joins import next_chunk, open_chain
from dlog.engine.kernels.static.storage import load_cell, register, reserve, store_cell

MATCHES = 1 << 14
"""Matches after which a sweep returns, so that interruptions are heeded."""
ROOM = 64
"""Places for candidates that must be free before more matches are looked at."""
SOON = 12
LATER = 24
"""Rows between asking for a group, for its place, and looking at it."""

MIN_REMEMBERED_MATCHES = 8
"""Matches of a row below which it is not worth remembering that they were looked at."""
_MIX = -7046029254386353131  # 0x9E3779B97F4A7C15


@kernel
def sweep(ctl: Control, code: Sweep, level: Level):
    """Goes on with the matches of the level's rows; returns how many it looked at, 0 at the end, -1 with ctl.error set."""
    arrangement = Arrangement(code.source)
    relation = code.relation
    if level.row < 0:
        write_bases(ctl, code, level.rows)
    target = relation
    if ctl.shared != 0:
        target = relation.shares[ctl.number]
    looked = 0
    added = 0
    while looked < MATCHES:
        ctl_candidates(ctl)[BLOCK] = 0
        if code.operation == Operation.SWEEP_RUNS:
            found = sweep_runs(ctl, code, level)
        elif arrangement.kind == ArrangementKind.SORTED:
            found = sweep_ranges(ctl, code, level)
        else:
            found = sweep_chains(ctl, code, level)
        novel = take_candidates(ctl, code, target, ctl_candidates(ctl)[BLOCK])
        if novel < 0:
            return -1
        looked += found
        added += novel
        if level.row >= level.rows:
            break
    path = ctl.run_path
    atomic_add(path.ref.derived, 0, looked)
    atomic_add(path.ref.added, 0, added)
    return looked


@kernel
def ctl_candidates(ctl: Control) -> Words:
    """Candidates of a sweep: their row in the level's block, and in the lower 32 bits how far their value is above the swept
    column's least; at BLOCK, how many."""
    return ctl.scratch


@kernel
def write_bases(ctl: Control, code: Sweep, rows):
    """The dense code of each row of the block with the swept column's least value."""
    columns = code.relation.columns
    swept = code.swept
    bases = register(ctl, code.bases)
    for i in range(rows):
        bases[i] = 0
    for c in range(code.relation.arity):
        if c != swept:
            column = columns[c]
            low = column.low
            stride = column.stride
            values = register(ctl, code.values[c])
            for i in range(rows):
                bases[i] += (values[i] - low) * stride


@kernel
def was_seen(ctl: Control, code: Sweep, bases: Words, row, group):
    """Whether a row with the same base and group (or run) went before; it is remembered, in the place of another, if not.

    It need not go again, not even in a later iteration when the group has grown: the path that begins with the group's changes
    meets it. So what joins on the way to it, and is forgotten, counts once however often it does."""
    place = code.mark_offset
    if place == 0:
        return False
    key = (bases[row] << 32) + group + 1
    at = place + ((wrapped_product(key, _MIX) >> 40) & (SWEEP_MARKS - 1))
    marks = ctl.marks
    if Words(marks)[at] == key:
        return True
    Words(marks)[at] = key
    return False


@kernel
def swept_column(code: Sweep) -> Column:
    return column_of(code.relation, code.swept)


# -------------------------------------------------------------------------------------------------------------- matches


@kernel
def sweep_ranges(ctl: Control, code: Sweep, level: Level):
    """Matches of a sorted arrangement, until all are looked at or there is no room for candidates. Returns how many."""
    arrangement = Arrangement(code.source)
    entry = arrangement.columns[code.column]
    data = entry.data
    width = entry.width
    offsets = arrangement.offsets
    groups = register(ctl, code.start)
    bases = register(ctl, code.bases)
    candidates = ctl_candidates(ctl)
    rows = level.rows
    row = level.row
    at = level.at
    end = level.end
    kept = 0
    looked = 0
    while kept <= BLOCK - ROOM and looked < MATCHES:
        if at >= end:
            row += 1
            if row >= rows:
                break
            prefetch(offsets.address + max(groups[min(row + LATER, rows - 1)], 0) * 4)
            prefetch(data + offsets[max(groups[min(row + SOON, rows - 1)], 0)] * width)
            group = groups[row]
            if group < 0:
                continue
            at = offsets[group]
            end = offsets[group + 1]
            if end - at >= MIN_REMEMBERED_MATCHES and was_seen(ctl, code, bases, row, group):
                at = end
                continue
        count = min(end - at, BLOCK - kept)
        kept = test_matches(code, data, width, at, count, bases[row], row, candidates, kept)
        at += count
        looked += count
    level.row = row
    level.at = at
    level.end = end
    candidates[BLOCK] = kept
    return looked


@kernel
def sweep_chains(ctl: Control, code: Sweep, level: Level):
    """`sweep_ranges` for a growing arrangement."""
    arrangement = Arrangement(code.source)
    pool = arrangement.pool
    groups = register(ctl, code.start)
    bases = register(ctl, code.bases)
    candidates = ctl_candidates(ctl)
    inline = arrangement.item == code.column
    rows = level.rows
    row = level.row
    kept = 0
    looked = 0
    while kept <= BLOCK - ROOM and looked < MATCHES:
        at = level.at
        end = level.end
        if at < end and level.extra != 0:
            kept = test_words(code, level, groups[row], bases[row], row, candidates, kept)
            continue
        if at >= end:
            if level.remaining > 0:
                next_chunk(arrangement, level, load_position(pool.address, end))
            else:
                row += 1
                if row >= rows:
                    break
                prefetch(chain_of(arrangement, max(groups[min(row + LATER, rows - 1)], 0)).address)
                soon = groups[min(row + SOON, rows - 1)]
                if soon >= 0:  # without groups there are no chains
                    prefetch(pool.address + chain_of(arrangement, soon).start * 4)
                group = groups[row]
                if group < 0:
                    continue
                open_chain(arrangement, level, group)
                words = open_words(code, level)
                looked += words
                matches = chain_of(arrangement, group).count
                if words == 0 and matches >= MIN_REMEMBERED_MATCHES and was_seen(ctl, code, bases, row, group):
                    level.at = level.end
                    level.remaining = 0
            continue
        count = min(end - at, BLOCK - kept)
        base = bases[row]
        if inline:
            kept = test_matches(code, pool.address, 4, at, count, base, row, candidates, kept)
        else:
            kept = test_rows(code, at, count, base, row, candidates, kept)
        level.at = at + count
        looked += count
    level.row = row
    candidates[BLOCK] = kept
    return looked


@kernel
def open_words(code: Sweep, level: Level):
    """Points the level at the words of the group that was opened, if it is long enough and has a twin; returns its matches
    then, 0 if not."""
    level.extra = 0
    matches = level.end - level.at + level.remaining
    if code.last == 0 or matches < swept_words(code):
        return 0
    level.extra = 1
    level.remaining = 0
    level.at = 0
    level.end = swept_words(code)
    return matches


@kernel
def sweep_runs(ctl: Control, code: Sweep, level: Level):
    """`sweep_ranges` where the matches of a row are a run of changes."""
    column = column_of(Relation(code.source), code.column)
    data = column.data
    width = column.width
    starts = register(ctl, code.start)
    counts = register(ctl, code.last)
    bases = register(ctl, code.bases)
    candidates = ctl_candidates(ctl)
    rows = level.rows
    row = level.row
    at = level.at
    end = level.end
    kept = 0
    looked = 0
    while kept <= BLOCK - ROOM and looked < MATCHES:
        if at >= end:
            row += 1
            if row >= rows:
                break
            at = starts[row]
            end = at + counts[row]
            if end - at >= MIN_REMEMBERED_MATCHES and was_seen(ctl, code, bases, row, at):
                at = end
                continue
        count = min(end - at, BLOCK - kept)
        kept = test_matches(code, data, width, at, count, bases[row], row, candidates, kept)
        at += count
        looked += count
    level.row = row
    level.at = at
    level.end = end
    candidates[BLOCK] = kept
    return looked


@kernel
def test_matches(code: Sweep, data, width, at, count, base, row, candidates: Words, kept):
    """Keeps the matches [at, at + count) that the sink's bitmap lacks; returns how many candidates there are then.

    Each match is written as a candidate and counted if its bit is clear: no branch, as nobody could guess it. Two may be the
    same row, and a worker's share may have it: `take_candidates` asks again. Codes without a page have page 0, whose bits
    are clear (bitmaps.py)."""
    relation = code.relation
    slots = relation.slots
    column = swept_column(code)
    low = column.low
    stride = column.stride
    mark = row << 32
    if relation.set == SetKind.BITS:
        if width == 4:
            for j in range(count):
                value = Numbers(data)[at + j] - low
                bit = base + value * stride
                candidates[kept] = mark + value
                kept += 1 - ((Words(slots)[bit >> 6] >> (bit & 63)) & 1)
        else:
            for j in range(count):
                value = Words(data)[at + j] - low
                bit = base + value * stride
                candidates[kept] = mark + value
                kept += 1 - ((Words(slots)[bit >> 6] >> (bit & 63)) & 1)
        return kept
    pool = relation.pool
    if not pool:
        for j in range(count):
            candidates[kept + j] = mark + load_cell(data, width, at + j) - low
        return kept + count
    if width == 4:
        for j in range(count):
            value = Numbers(data)[at + j] - low
            bit = base + value * stride
            word = pool[(Numbers(slots)[bit >> 9] << 3) + ((bit >> 6) & 7)]
            candidates[kept] = mark + value
            kept += 1 - ((word >> (bit & 63)) & 1)
    else:
        for j in range(count):
            value = Words(data)[at + j] - low
            bit = base + value * stride
            word = pool[(Numbers(slots)[bit >> 9] << 3) + ((bit >> 6) & 7)]
            candidates[kept] = mark + value
            kept += 1 - ((word >> (bit & 63)) & 1)
    return kept


@kernel
def test_rows(code: Sweep, at, count, base, row, candidates: Words, kept):
    """`test_matches` where the growing arrangement has row numbers."""
    arrangement = Arrangement(code.source)
    pool = arrangement.pool
    source = column_of(arrangement.relation, code.column)
    data = source.data
    width = source.width
    for j in range(count):
        kept = test_matches(code, data, width, pool[at + j], 1, base, row, candidates, kept)
    return kept


# ----------------------------------------------------------------------------------------------------------------- words


@kernel
def swept_words(code: Sweep):
    """Words of the bitmap that one group can touch."""
    column = column_of(Relation(code.last), code.column)
    return (column.range + 63) >> 6


@kernel
def test_words(code: Sweep, level: Level, group, base, row, candidates: Words, kept):
    """Keeps what the twin's bitmap has of the group, from the level's word `at` on, and the sink's lacks; returns how many
    candidates there are then. The twin may have rows of this iteration already: they are as true."""
    twin = Relation(code.last)
    relation = code.relation
    start = column_of(twin, 0).stride * group
    source = Words(twin.slots + (start >> 6) * 8)
    target = Words(relation.slots + (base >> 6) * 8)
    at = level.at
    end = level.end
    mark = row << 32
    while at < end and kept <= BLOCK - ROOM:
        if at + 8 <= end:
            any_new = 0
            for w in range(8):
                any_new |= source[at + w] & ~target[at + w]
            if any_new == 0:
                at += 8
                continue
        lacking = source[at] & ~target[at]
        while lacking != 0:
            last = lacking & -lacking
            candidates[kept] = mark + (at << 6) + bit_length(last) - 1
            kept += 1
            lacking ^= last
        at += 1
    level.at = at
    return kept


# ----------------------------------------------------------------------------------------------------------- candidates


@kernel
def take_candidates(ctl: Control, code: Sweep, target: Relation, count):
    """Adds the candidates that are new to the target, which is the sink's relation or this worker's share of it. Returns how
    many, -1 with ctl.error set."""
    if count == 0:
        return 0
    paged = code.relation.set != SetKind.BITS
    if not reserve(ctl, target, count) or (paged and not reserve_pages(ctl, target, count)):
        return -1
    candidates = ctl_candidates(ctl)
    bases = register(ctl, code.bases)
    stride = swept_column(code).stride
    slots = Words(target.slots)
    # Those that were new move to the front of the list as it is gone through: `novel` never passes k.
    novel = 0
    for k in range(count):
        candidate = candidates[k]
        bit = bases[candidate >> 32] + (candidate & 0xFFFFFFFF) * stride
        candidates[novel] = candidate
        if paged:
            novel += take_bit(target, bit)
        else:
            word = slots[bit >> 6]
            slots[bit >> 6] = word | (1 << (bit & 63))
            novel += 1 - ((word >> (bit & 63)) & 1)
    write_rows(ctl, code, target, novel, candidates)
    return novel


@kernel
def write_rows(ctl: Control, code: Sweep, target: Relation, count, candidates: Words):
    at = target.rows
    columns = target.columns
    swept = code.swept
    low = swept_column(code).low
    for c in range(target.arity):
        column = columns[c]
        data = column.data
        width = column.width
        source = register(ctl, code.values[c])
        if c == swept:
            for k in range(count):
                store_cell(data, width, at + k, low + (candidates[k] & 0xFFFFFFFF))
        else:
            for k in range(count):
                store_cell(data, width, at + k, source[candidates[k] >> 32])
    target.rows = at + count
