"""Scans and joins: the instructions that make rows. Each fills the registers of its level with up to one block of rows and
remembers where it stopped in the level's state; it returns 0 only when it is exhausted.

A join first writes, for each output row, which input row it comes from and at which position of the arrangement its match
stands; then it fills one output register at a time. So a path runs depth first over blocks, and no intermediate result is
ever larger than a block per level.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import ArrangementKind
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import atomic_add
from dlog.engine.kernels.instructions import Binds, Join, Moves, Scan, ScanQueue
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Arrangement, Level, Numbers, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.arrange import chain_of, column_of
from dlog.engine.kernels.static.chains import chunk_items, load_position
from dlog.engine.kernels.static.storage import load_cell, register

BRANCHLESS_MATCHES = 4
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
    """`match_groups` where a group is a range. Of a small one BRANCHLESS_MATCHES matches are written whatever its size, and the
    next group's go over those that are none: how many there are is nothing that a processor could guess."""
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
            if end - at <= BRANCHLESS_MATCHES <= BLOCK - n:
                for j in range(BRANCHLESS_MATCHES):
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
            if level.remaining > 0:
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
    level.remaining = chain.count
    next_chunk(arrangement, level, chain.start)


@kernel
def next_chunk(arrangement: Arrangement, level: Level, start):
    """Points the level at the chain's next chunk, which starts at `start`."""
    number = level.chunk + 1
    left = level.remaining
    count = min(left, chunk_items(number))
    level.chunk = number
    level.remaining = left - count
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
