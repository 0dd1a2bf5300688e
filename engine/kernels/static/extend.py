"""Worst-case optimal extension by one variable (the generic join of Ngo, Re and Rudra, Skew Strikes Back): the proposer that
makes the least work proposes, the sorted others validate; growing ones are validated by the set of their relation, in an
instruction after this one. When consecutive rows share a proposer's group, its values are marked in a bitmap once and each
candidate is one bit test (the marker of triangle counting).

It makes rows as scans and joins do (joins.py).
"""

from __future__ import annotations

from dlog.engine.kernels.codes import ArrangementKind
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import bit_length
from dlog.engine.kernels.instructions import Extend, Moves
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Arrangement, KeptColumn, Level, Marks, Numbers, Proposer, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.arrange import column_of, group_size
from dlog.engine.kernels.static.chains import load_position
from dlog.engine.kernels.static.joins import copy_carried, next_chunk, open_chain
from dlog.engine.kernels.static.storage import behind, load_cell, register


@kernel
def mark_at(ctl: Control, code: Extend, p) -> Proposer:
    return Marks(ctl.marks + code.marks * 8).proposers[p]


@kernel
def values_of(arrangement: Arrangement, number) -> KeptColumn:
    """(address, width) pair of a sorted arrangement's column."""
    return arrangement.columns[number]


@kernel
def flip_marks(ctl: Control, code: Extend, mark: Proposer, arrangement: Arrangement, number, group, on):
    """Sets (or clears) the bits of a group's values."""
    bits = Words(ctl.marks + mark.bits * 8)
    entry = values_of(arrangement, number)
    data = entry.data
    width = entry.width
    low = code.low
    offsets = arrangement.offsets
    for at in range(offsets[group], offsets[group + 1]):
        code_ = load_cell(data, width, at) - low
        word = bits[code_ >> 6]
        bit = 1 << (code_ & 63)
        bits[code_ >> 6] = word | bit if on else word & ~bit


@kernel
def update_mark(ctl: Control, code: Extend, mark: Proposer, arrangement: Arrangement, number, group):
    """Marks a proposer's group when a second row in a row uses it. Returns whether it is marked."""
    marked = mark.group
    last = mark.last
    mark.last = group
    if marked == group:
        return True
    if group != last or code.span == 0:
        return False
    if marked >= 0:
        flip_marks(ctl, code, mark, arrangement, number, marked, False)
    flip_marks(ctl, code, mark, arrangement, number, group, True)
    mark.group = group
    return True


@kernel
def measure_proposers(ctl: Control, code: Extend, row):
    """Rows and validation cost of every proposer for this row, kept in its marks. Returns the sum of costs, -1 where one has
    no rows.

    A candidate costs one bit test against a marked group or a growing arrangement (a later instruction's work), a search
    otherwise.
    """
    total = 0
    for p in range(code.proposers):
        proposer = code.listed[p]
        mark = mark_at(ctl, code, p)
        arrangement = proposer.arrangement
        group = register(ctl, proposer.group)[row]
        size = group_size(arrangement, group)
        if size == 0:
            return -1
        cost = 1
        if arrangement.kind == ArrangementKind.SORTED and not update_mark(ctl, code, mark, arrangement, proposer.column, group):
            cost = 2 + bit_length(size)
        mark.rows = size
        mark.cost = cost
        total += cost
    return total


@kernel
def choose_proposer(ctl: Control, code: Extend, row):
    """The proposer with the least work for this row, or -1 where one of them has no values."""
    total = measure_proposers(ctl, code, row)
    if total < 0:
        return -1
    best = -1
    least = 0
    for p in range(code.proposers):
        mark = mark_at(ctl, code, p)
        # Each of its rows is written, and validated by all the others.
        work = mark.rows * (1 + total - mark.cost)
        if best < 0 or work < least:
            best = p
            least = work
    return best


@kernel
def open_proposer(ctl: Control, code: Extend, level: Level, chosen, row):
    """Points the level at the chosen proposer's values and rewinds the others' cursors."""
    proposer = code.listed[chosen]
    arrangement = proposer.arrangement
    group = register(ctl, proposer.group)[row]
    if arrangement.kind == ArrangementKind.SORTED:
        offsets = arrangement.offsets
        level.at = offsets[group]
        level.end = offsets[group + 1]
    else:
        open_chain(arrangement, level, group)
    for p in range(code.proposers):
        other = code.listed[p]
        arrangement = other.arrangement
        if arrangement.kind == ArrangementKind.SORTED:
            group = register(ctl, other.group)[row]
            mark_at(ctl, code, p).cursor = arrangement.offsets[group]


@kernel
def propose(ctl: Control, code: Extend, chosen, at, count, target: Words):
    """Writes `count` candidate values from position `at` of the chosen proposer. Returns whether they ascend."""
    proposer = code.listed[chosen]
    arrangement = proposer.arrangement
    number = proposer.column
    if arrangement.kind == ArrangementKind.SORTED:
        entry = values_of(arrangement, number)
        data = entry.data
        if entry.width == 4:
            for j in range(count):
                target[j] = Numbers(data)[at + j]
        else:
            for j in range(count):
                target[j] = Words(data)[at + j]
        return True
    pool = arrangement.pool
    column = column_of(arrangement.relation, number)
    data = column.data
    width = column.width
    inline = arrangement.item == number
    for j in range(count):
        item = pool[at + j]
        target[j] = item if inline else load_cell(data, width, item)
    return False


@kernel
def validate(ctl: Control, code: Extend, p, row, count, target: Words, ascending):
    """Keeps the candidates that proposer p (sorted) has, in place; returns how many."""
    proposer = code.listed[p]
    arrangement = proposer.arrangement
    group = register(ctl, proposer.group)[row]
    mark = mark_at(ctl, code, p)
    kept = 0
    if mark.group == group and code.span > 0:
        bits = Words(ctl.marks + mark.bits * 8)
        low = code.low
        span = code.span
        for j in range(count):
            value = target[j]
            offset = value - low
            target[kept] = value
            if 0 <= offset < span:
                kept += (bits[offset >> 6] >> (offset & 63)) & 1
        return kept
    entry = values_of(arrangement, proposer.column)
    data = entry.data
    width = entry.width
    offsets = arrangement.offsets
    end = offsets[group + 1]
    cursor = mark.cursor if ascending else offsets[group]
    for j in range(count):
        value = target[j]
        at = gallop(data, width, cursor, end, value)
        if ascending:
            cursor = at
        if at < end and load_cell(data, width, at) == value:
            target[kept] = value
            kept += 1
    mark.cursor = cursor
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
def is_pair_marked(ctl: Control, code: Extend, chosen, row):
    """Whether there are two sorted proposers and the other one's group is marked: the case of triangles, worth one fused
    loop."""
    if code.proposers != 2 or code.span == 0:
        return False
    if code.listed[chosen].arrangement.kind != ArrangementKind.SORTED:
        return False
    other = code.listed[1 - chosen]
    if other.arrangement.kind != ArrangementKind.SORTED:
        return False
    group = register(ctl, other.group)[row]
    return mark_at(ctl, code, 1 - chosen).group == group


@kernel
def propose_marked(ctl: Control, code: Extend, chosen, row, at, count, target: Words, source: Words, n):
    """Writes the candidates that the other proposer's marks have, from position n on; returns the new n. Marks cover the values
    of all proposers (`_mark_range` in lowering), so none is outside."""
    proposer = code.listed[chosen]
    entry = values_of(proposer.arrangement, proposer.column)
    data = entry.data
    width = entry.width
    bits = Words(ctl.marks + mark_at(ctl, code, 1 - chosen).bits * 8)
    low = code.low
    for j in range(count):
        value = load_cell(data, width, at + j)
        offset = value - low
        target[n] = value
        source[n] = row
        n += (bits[offset >> 6] >> (offset & 63)) & 1
    return n


@kernel
def extend(ctl: Control, code: Extend, level: Level, source: Words):
    rows = level.rows
    row = level.row
    proposers = code.proposers
    marks = Marks(ctl.marks + code.marks * 8)
    target = register(ctl, code.target)
    n = 0
    while n < BLOCK:
        at = level.at
        end = level.end
        if at >= end:
            if level.remaining > 0:
                arrangement = code.listed[marks.proposer].arrangement
                next_chunk(arrangement, level, load_position(arrangement.pool.address, end))
                continue
            row += 1
            if row >= rows:
                break
            chosen = choose_proposer(ctl, code, row)
            if chosen >= 0:
                marks.proposer = chosen
                open_proposer(ctl, code, level, chosen, row)
            continue
        chosen = marks.proposer
        count = min(end - at, BLOCK - n)
        level.at = at + count
        if is_pair_marked(ctl, code, chosen, row):
            n = propose_marked(ctl, code, chosen, row, at, count, target, source, n)
            continue
        ascending = propose(ctl, code, chosen, at, count, behind(target, n))
        for p in range(proposers):
            if p != chosen and code.listed[p].arrangement.kind == ArrangementKind.SORTED and count > 0:
                count = validate(ctl, code, p, row, count, behind(target, n), ascending)
        for j in range(count):
            source[n + j] = row
        n += count
    level.row = row
    copy_carried(ctl, Moves(code.listed[proposers]), code.carried, source, n)
    return n
