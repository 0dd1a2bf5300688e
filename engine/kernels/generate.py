"""Generators: the instructions that make rows. Each fills the registers of its level with up to one block of rows and
remembers where it stopped in the level's state; it returns 0 only when it is exhausted.

A join first writes, for each output row, which input row it comes from and at which position of the arrangement its match
stands; then it fills one output register at a time. So a path runs depth first over blocks, and no intermediate result is
ever larger than a block per level.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import ArrangementKind
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import atomic_add, bit_length
from dlog.engine.kernels.instructions import Binds, Extend, Join, Moves, Scan, ScanQueue
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Arrangement, KeptColumn, Level, Marks, Numbers, Proposer, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.arrange import chain_of, column_of, group_size
from dlog.engine.kernels.static.chains import chunk_items, load_position
from dlog.engine.kernels.static.storage import behind, load_cell, register

SMALL = 4
"""Matches of a group that are written without a branch on how many there are."""


@kernel
def copy_carried(ctl: Control, moves: Moves, count, source: Words, n):
    """target[i] = values[source[i]] for `count` registers."""
    for c in range(count):
        values = register(ctl, moves[c].source)
        target = register(ctl, moves[c].target)
        for i in range(n):
            target[i] = values[source[i]]


# ----------------------------------------------------------------------------------------------------------------- scan


@kernel
def scan(ctl: Control, code: Scan, level: Level):
    """Rows claimed from the workers' shared cursor."""
    end = level.end
    start = atomic_add(ctl.cursor, 0, BLOCK)
    n = min(BLOCK, end - start)
    if n <= 0:
        return 0
    relation = code.relation
    for c in range(code.bound):
        column = column_of(relation, code.binds[c].column)
        target = register(ctl, code.binds[c].target)
        data = column.data
        if column.width == 4:
            for i in range(n):
                target[i] = Numbers(data)[start + i]
        else:
            for i in range(n):
                target[i] = Words(data)[start + i]
    return n


@kernel
def scan_queue(ctl: Control, code: ScanQueue, level: Level):
    """The changed rows of a lattice relation, in the order of its queue, claimed from the workers' shared cursor."""
    end = level.end
    start = atomic_add(ctl.cursor, 0, BLOCK)
    n = min(BLOCK, end - start)
    if n <= 0:
        return 0
    relation = code.relation
    queue = relation.queue
    for c in range(code.bound):
        column = column_of(relation, code.binds[c].column)
        target = register(ctl, code.binds[c].target)
        data = column.data
        width = column.width
        for i in range(n):
            target[i] = load_cell(data, width, queue[start + i])
    return n


# ----------------------------------------------------------------------------------------------------------------- join


@kernel
def join(ctl: Control, code: Join, level: Level, source: Words, places: Words):
    """Matches of the block's rows: what is carried over, and the columns bound."""
    arrangement = code.arrangement
    groups = register(ctl, code.group)
    n = match_groups(arrangement, groups, level, source, places)
    if n > 0:
        carried = code.carried
        copy_carried(ctl, code.moves, carried, source, n)
        bind_columns(ctl, arrangement, Binds(code.moves[carried]), code.bound, places, n)
    return n


@kernel
def match_groups(arrangement: Arrangement, groups: Words, level: Level, source: Words, places: Words):
    """Walks the rows' groups: source[k] and places[k] are the row and the position of match k. Returns how many."""
    if arrangement.kind == ArrangementKind.SORTED:
        return match_sorted(arrangement.offsets, groups, level, source, places)
    return match_chains(arrangement, groups, level, source, places)


@kernel
def match_sorted(offsets: Numbers, groups: Words, level: Level, source: Words, places: Words):
    """`match_groups` where a group is a range. Of a small one SMALL matches are written whatever its size, and the next group's
    go over those that are none: how many there are is nothing that a processor could guess."""
    rows = level.rows
    row = level.row
    at = level.at
    end = level.end
    n = 0
    while n < BLOCK:
        if at >= end:
            row += 1
            if row >= rows:
                break
            group = groups[row]
            at = offsets[max(group, 0)]
            end = offsets[max(group, 0) + 1]
            if group < 0:
                end = at
            if end - at <= SMALL <= BLOCK - n:
                for j in range(SMALL):
                    source[n + j] = row
                    places[n + j] = at + j
                n += end - at
                at = end
            continue
        count = min(end - at, BLOCK - n)
        for j in range(count):
            source[n + j] = row
            places[n + j] = at + j
        n += count
        at += count
    level.row = row
    level.at = at
    level.end = end
    return n


@kernel
def match_chains(arrangement: Arrangement, groups: Words, level: Level, source: Words, places: Words):
    """`match_groups` where a group is a chain of chunks."""
    rows = level.rows
    row = level.row
    at = level.at
    end = level.end
    n = 0
    while n < BLOCK:
        if at >= end:
            if level.left > 0:
                next_chunk(arrangement, level, load_position(arrangement.pool.address, end))
            else:
                row += 1
                if row >= rows:
                    break
                group = groups[row]
                if group < 0:
                    continue
                open_chain(arrangement, level, group)
            at = level.at
            end = level.end
            continue
        count = min(end - at, BLOCK - n)
        for j in range(count):
            source[n + j] = row
            places[n + j] = at + j
        n += count
        at += count
    level.row = row
    level.at = at
    level.end = end
    return n


@kernel
def open_chain(arrangement: Arrangement, level: Level, group):
    """Points the level at the first chunk of a growing arrangement's group."""
    chain = chain_of(arrangement, group)
    level.chunk = -1
    level.left = chain.count
    next_chunk(arrangement, level, chain.start)


@kernel
def next_chunk(arrangement: Arrangement, level: Level, start):
    """Points the level at the chain's next chunk, which starts at `start`."""
    number = level.chunk + 1
    left = level.left
    count = min(left, chunk_items(number))
    level.chunk = number
    level.left = left - count
    level.at = start
    level.end = start + count


@kernel
def bind_columns(ctl: Control, arrangement: Arrangement, binds: Binds, count, places: Words, n):
    """target[i] = the column's value at places[i], for `count` columns."""
    ordered = arrangement.kind == ArrangementKind.SORTED
    pool = arrangement.pool
    for c in range(count):
        number = binds[c].column
        target = register(ctl, binds[c].target)
        if ordered:
            entry = arrangement.columns[number]
            data = entry.data
            if entry.width == 4:
                for i in range(n):
                    target[i] = Numbers(data)[places[i]]
            else:
                for i in range(n):
                    target[i] = Words(data)[places[i]]
        elif arrangement.item == number:
            for i in range(n):
                target[i] = pool[places[i]]
        else:
            column = column_of(arrangement.relation, number)
            data = column.data
            width = column.width
            for i in range(n):
                target[i] = load_cell(data, width, pool[places[i]])


# --------------------------------------------------------------------------------------------------------------- extend
# Worst-case optimal extension by one variable (the generic join of Ngo, Re and Rudra, Skew Strikes Back): the proposer that
# makes the least work proposes, the sorted others validate; growing ones are validated by the set of their relation, in an
# instruction after this one. When consecutive rows share a proposer's group, its values are marked in a bitmap once and each
# candidate is one bit test (the marker of triangle counting).


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
            if level.left > 0:
                arrangement = code.listed[marks.chosen].arrangement
                next_chunk(arrangement, level, load_position(arrangement.pool.address, end))
                continue
            row += 1
            if row >= rows:
                break
            chosen = choose_proposer(ctl, code, row)
            if chosen >= 0:
                marks.chosen = chosen
                open_proposer(ctl, code, level, chosen, row)
            continue
        chosen = marks.chosen
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
