"""Extensions of paths over rounds by a new variable: one of several indexes gives the values, the others are asked.

For each row the proposer with the fewest rows proposes (worst-case optimal joins: Ngo et al., Skew Strikes Back; Ammar et al.,
Distributed Evaluation of Subgraph Queries). Where another proposer's group is short and holds values (indexes.py), what it
does not have is left out here: a few words tell, where a search for the rows would wait for memory. That is a sieve: what
passes is asked for at its view by the instructions that follow.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch, wrapped_product
from dlog.engine.kernels.incremental.store.collections import cell
from dlog.engine.kernels.incremental.store.groups import row_at, slab_at, slab_first
from dlog.engine.kernels.incremental.store.histories import presence
from dlog.engine.kernels.incremental.store.indexes import begin_groups, warm_groups
from dlog.engine.kernels.instructions import Moves, Propose, ViewedProposer
from dlog.engine.kernels.layout import BLOCK, RUN
from dlog.engine.kernels.machine_structs import Level, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.row_structs import Slab
from dlog.engine.kernels.static.arrange import column_of
from dlog.engine.kernels.static.joins import copy_carried
from dlog.engine.kernels.static.storage import behind, load_cell, register, scratch_block

SIEVED = 128
"""Values of a group up to which it sieves."""
WORTH = 8
"""Values of a group that are read for one that is proposed, rather than to search for that one."""
WORDS = 8
"""Words of a sieve: 512 bits."""
_MIX = -7046029254386353131


@kernel
def group_slab(ctl: Control, proposer: ViewedProposer, row) -> Slab:
    """The slab of a proposer's group for a block row, or 0."""
    group = register(ctl, proposer.group)[row]
    return slab_at(proposer.index, group) if group >= 0 else Slab(0)


@kernel
def smallest(ctl: Control, code: Propose, row):
    """The proposer with the fewest rows for a block row, or -1 where one of them has none."""
    best = -1
    fewest = 0
    for p in range(code.proposers):
        slab = group_slab(ctl, code.listed[p], row)
        if not slab:
            return -1
        count = slab.count
        if count <= 0:
            return -1
        if best < 0 or count < fewest:
            best = p
            fewest = count
    return best


@kernel
def propose_values(ctl: Control, code: Propose, level: Level):
    """Runs `propose_some` until something is left of what it proposes."""
    while True:
        n = propose_some(ctl, code, level)
        if n > 0 or level.row >= level.rows:
            return n


@kernel
def propose_some(ctl: Control, code: Propose, level: Level):
    """Values of a new variable from the proposer with the fewest rows; instructions that follow ask the proposers. Values of
    rows by number are left out here where they are not present at their view, and `choice` tells which proposer need not be
    asked again (negative: all must). One with neu -1 is of the own scope: nothing of it is left out, and it is asked, too."""
    target = register(ctl, code.target)
    choice = register(ctl, code.choice)
    source = scratch_block(ctl, 0)
    rows = level.rows
    row = level.row
    at = level.at
    end = level.end
    chosen = level.extra  # who proposes for this row
    n = 0
    if row < 0:
        for p in range(code.proposers):
            begin_groups(code.listed[p].index, register(ctl, code.listed[p].group), rows)
    while n < BLOCK:
        if at >= end:
            row += 1
            if row >= rows:
                break
            for p in range(code.proposers):
                warm_groups(code.listed[p].index, register(ctl, code.listed[p].group), row, rows)
            chosen = smallest(ctl, code, row)
            if chosen >= 0:
                slab = group_slab(ctl, code.listed[chosen], row)
                at = slab_first(slab)
                end = at + slab.count
            continue
        last = min(end, at + BLOCK - n)
        copy_places(code.listed[chosen], at, last, behind(target, n))
        while at < last:
            source[n] = row
            choice[n] = chosen
            n += 1
            at += 1
    level.row = row
    level.at = at
    level.end = end
    level.extra = chosen
    kept = values_at_view(ctl, code, target, choice, source, n)
    kept = sieve(ctl, code, target, choice, source, kept)
    copy_carried(ctl, Moves(code.listed[code.proposers]), code.carried, source, kept)
    return kept


@kernel
def copy_places(proposer: ViewedProposer, at, last, target: Words):
    """Writes what an index has at positions [at, last) of a slab: values, or row numbers the values of which are asked for."""
    index = proposer.index
    pool = index.pool
    column = column_of(index.collection, proposer.column)
    data = column.data
    width = column.width
    if index.values == 0:
        for i in range(last - at):
            number = row_at(pool, at + i)
            prefetch(data + number * width)
            target[i] = number
    elif at >= RUN:
        for i in range(last - at):
            target[i] = load_cell(data, width, at - RUN + i)
    else:
        for i in range(last - at):
            target[i] = pool[at + i]


@kernel
def values_at_view(ctl: Control, code: Propose, target: Words, choice: Words, source: Words, n):
    """Turns row numbers of chosen proposers into their values, without those that are not present at the proposer's view;
    returns how many are left. What are values already has to be asked for."""
    times = register(ctl, code.time)
    kept = 0
    for i in range(n):
        chosen = choice[i]
        proposer = code.listed[chosen]
        index = proposer.index
        value = target[i]
        row = source[i]
        asked = chosen
        if index.values == 0:
            collection = index.collection
            neu = proposer.neu
            if neu >= 0 and presence(collection.outer, value, times[row] + neu) <= 0:
                continue
            value = cell(collection, proposer.column, value)
        else:
            asked = -1 - chosen
        target[kept] = value
        choice[kept] = asked
        source[kept] = row
        kept += 1
    return kept


# ----------------------------------------------------------------------------------------------------------------- sieve


@kernel
def sieve(ctl: Control, code: Propose, target: Words, choice: Words, source: Words, n):
    """Leaves out values that another proposer's group does not have; returns how many are left.

    An index has every row that a view of the batch may show, so what it lacks is absent at any; and a sieve lets
    through all that it was filled with, and some that only share a bit: a Bloom filter of one hash."""
    if not has_values_of_others(code):
        return n
    bits = scratch_block(ctl, 1)
    kept = 0
    first = 0
    while first < n:
        row = source[first]
        own = choice[first]
        last = first + 1
        while last < n and source[last] == row:
            last += 1
        start = kept
        kept += move_values(target, choice, source, first, last, kept)
        for p in range(code.proposers):
            if p != (own if own >= 0 else -1 - own):
                proposer = code.listed[p]
                if fill_sieve(proposer, group_slab(ctl, proposer, row), kept - start, bits):
                    kept = start + pass_sieve(target, start, kept, bits)
        first = last
    return kept


@kernel
def has_values_of_others(code: Propose):
    """Whether an index of the proposers holds values."""
    for p in range(code.proposers):
        if code.listed[p].index.values != 0:
            return True
    return False


@kernel
def move_values(target: Words, choice: Words, source: Words, first, last, to):
    """Moves proposed values [first, last) of one row to place `to`, which is not behind them; returns how many."""
    for i in range(last - first):
        target[to + i] = target[first + i]
        choice[to + i] = choice[first + i]
        source[to + i] = source[first + i]
    return last - first


@kernel
def sieve_bit(value):
    """Place of a value among the bits of a sieve."""
    return (wrapped_product(value, _MIX) >> 40) & (WORDS * 64 - 1)


@kernel
def fill_sieve(proposer: ViewedProposer, slab: Slab, wanted, bits: Words):
    """Sets the bits of the values of a proposer's group; false where it is long for so many proposed values, or holds none."""
    index = proposer.index
    if not slab or index.values == 0:
        return False
    count = slab.count
    if count > SIEVED or count > wanted * WORTH:
        return False
    for word in range(WORDS):
        bits[word] = 0
    at = slab_first(slab)
    pool = index.pool
    column = column_of(index.collection, proposer.column)
    data = column.data
    width = column.width
    for i in range(count):
        value = load_cell(data, width, at - RUN + i) if at >= RUN else pool[at + i]
        place = sieve_bit(value)
        bits[place >> 6] |= 1 << (place & 63)
    return True


@kernel
def pass_sieve(target: Words, first, last, bits: Words):
    """Keeps those of the values [first, last) of one row whose bits are set; returns how many."""
    kept = 0
    for i in range(first, last):
        value = target[i]
        place = sieve_bit(value)
        target[first + kept] = value
        kept += (bits[place >> 6] >> (place & 63)) & 1
    return kept
