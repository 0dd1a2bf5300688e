"""Extensions of paths over rounds by a new variable: one of several indexes gives the values, the others are asked.

For each row the proposer with the fewest rows proposes (worst-case optimal joins: Ngo et al., Skew Strikes Back; Ammar et al.,
Distributed Evaluation of Subgraph Queries). Where another proposer's group is short and holds values (indexes.py), what it
does not have is left out here: a few words tell, where a search for the rows would wait for memory. That is a sieve: what
passes is asked for at its view by the instructions that follow.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i64, wrapped_product
from dlog.engine.kernels.generate import copy_carried
from dlog.engine.kernels.incremental.steps.finding import scratch_block
from dlog.engine.kernels.incremental.store.collections import cell
from dlog.engine.kernels.incremental.store.groups import row_at, slab_at, slab_first
from dlog.engine.kernels.incremental.store.histories import presence
from dlog.engine.kernels.layout import (
    BLOCK,
    CO_OUTER,
    COL_DATA,
    COL_WIDTH,
    IX_COLLECTION,
    IX_POOL,
    IX_VALUES,
    IXS_COUNT,
    LEVEL_AT,
    LEVEL_END,
    LEVEL_EXTRA,
    LEVEL_ROW,
    LEVEL_ROWS,
    RUN,
)
from dlog.engine.kernels.static.arrange import column_of
from dlog.engine.kernels.static.storage import load_cell, register

SIEVED = 128
"""Values of a group up to which it sieves."""
WORTH = 8
"""Values of a group that are read for one that is proposed, rather than to search for that one."""
WORDS = 8
"""Words of a sieve: 512 bits."""
_MIX = -7046029254386353131


@kernel
def proposer_at(code, number):
    """Address of a proposer of `propose_some`: index, group, column, neu."""
    return code + (7 + number * 4) * 8


@kernel
def group_slab(ctl, proposer, row):
    """The slab of a proposer's group for a block row, or 0."""
    group = load_i64(register(ctl, load_i64(proposer, 1)), row)
    return slab_at(load_i64(proposer, 0), group) if group >= 0 else 0


@kernel
def smallest(ctl, code, row):
    """The proposer with the fewest rows for a block row, or -1 where one of them has none."""
    best = -1
    fewest = 0
    for p in range(load_i64(code, 5)):
        slab = group_slab(ctl, proposer_at(code, p), row)
        if slab == 0:
            return -1
        count = load_i32(slab, IXS_COUNT)
        if count <= 0:
            return -1
        if best < 0 or count < fewest:
            best = p
            fewest = count
    return best


@kernel
def propose_values(ctl, code, level):
    """Runs `propose_some` until something is left of what it proposes."""
    while True:
        n = propose_some(ctl, code, level)
        if n > 0 or load_i64(level, LEVEL_ROW) >= load_i64(level, LEVEL_ROWS):
            return n


@kernel
def propose_some(ctl, code, level):
    """[op, length, dst, chosen dst, T, proposers, carried, (index, group, column, neu)*, (src, dst)*]: values of a new variable
    from the proposer with the fewest rows; instructions that follow ask the proposers. Values of rows by number are left out
    here where they are not present at their view, and `chosen` tells which proposer need not be asked again (negative: all
    must). One with neu -1 is of the own scope: nothing of it is left out, and it is asked, too."""
    target = register(ctl, load_i64(code, 2))
    choice = register(ctl, load_i64(code, 3))
    source = scratch_block(ctl, 0)
    rows = load_i64(level, LEVEL_ROWS)
    row = load_i64(level, LEVEL_ROW)
    at = load_i64(level, LEVEL_AT)
    end = load_i64(level, LEVEL_END)
    chosen = load_i64(level, LEVEL_EXTRA)
    n = 0
    while n < BLOCK:
        if at >= end:
            row += 1
            if row >= rows:
                break
            chosen = smallest(ctl, code, row)
            if chosen >= 0:
                slab = group_slab(ctl, proposer_at(code, chosen), row)
                at = slab_first(slab)
                end = at + load_i32(slab, IXS_COUNT)
            continue
        last = min(end, at + BLOCK - n)
        copy_places(proposer_at(code, chosen), at, last, target + n * 8)
        while at < last:
            store_i64(source, n, row)
            store_i64(choice, n, chosen)
            n += 1
            at += 1
    store_i64(level, LEVEL_ROW, row)
    store_i64(level, LEVEL_AT, at)
    store_i64(level, LEVEL_END, end)
    store_i64(level, LEVEL_EXTRA, chosen)
    kept = values_at_view(ctl, code, target, choice, source, n)
    kept = sieve(ctl, code, target, choice, source, kept)
    copy_carried(ctl, proposer_at(code, load_i64(code, 5)), load_i64(code, 6), source, kept)
    return kept


@kernel
def copy_places(proposer, at, last, target):
    """Writes what an index has at positions [at, last) of a slab: values, or row numbers the values of which are asked for."""
    index = load_i64(proposer, 0)
    pool = load_i64(index, IX_POOL)
    column = column_of(load_i64(index, IX_COLLECTION), load_i64(proposer, 2))
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    if load_i64(index, IX_VALUES) == 0:
        for i in range(last - at):
            number = row_at(pool, at + i)
            prefetch(data + number * width)
            store_i64(target, i, number)
    elif at >= RUN:
        for i in range(last - at):
            store_i64(target, i, load_cell(data, width, at - RUN + i))
    else:
        for i in range(last - at):
            store_i64(target, i, load_i32(pool, at + i))


@kernel
def values_at_view(ctl, code, target, choice, source, n):
    """Turns row numbers of chosen proposers into their values, without those that are not present at the proposer's view;
    returns how many are left. What are values already has to be asked for."""
    times = register(ctl, load_i64(code, 4))
    kept = 0
    for i in range(n):
        chosen = load_i64(choice, i)
        proposer = proposer_at(code, chosen)
        index = load_i64(proposer, 0)
        value = load_i64(target, i)
        row = load_i64(source, i)
        asked = chosen
        if load_i64(index, IX_VALUES) == 0:
            collection = load_i64(index, IX_COLLECTION)
            neu = load_i64(proposer, 3)
            if neu >= 0 and presence(load_i64(collection, CO_OUTER), value, load_i64(times, row) + neu) <= 0:
                continue
            value = cell(collection, load_i64(proposer, 2), value)
        else:
            asked = -1 - chosen
        store_i64(target, kept, value)
        store_i64(choice, kept, asked)
        store_i64(source, kept, row)
        kept += 1
    return kept


# ----------------------------------------------------------------------------------------------------------------- sieve


@kernel
def sieve(ctl, code, target, choice, source, n):
    """Leaves out values that another proposer's group does not have; returns how many are left."""
    if not has_values_of_others(code):
        return n
    bits = scratch_block(ctl, 1)
    kept = 0
    first = 0
    while first < n:
        row = load_i64(source, first)
        own = load_i64(choice, first)
        last = first + 1
        while last < n and load_i64(source, last) == row:
            last += 1
        start = kept
        kept += move_values(target, choice, source, first, last, kept)
        for p in range(load_i64(code, 5)):
            if p != (own if own >= 0 else -1 - own):
                proposer = proposer_at(code, p)
                if fill_sieve(proposer, group_slab(ctl, proposer, row), kept - start, bits):
                    kept = start + pass_sieve(target, start, kept, bits)
        first = last
    return kept


@kernel
def has_values_of_others(code):
    """Whether an index of the proposers holds values."""
    for p in range(load_i64(code, 5)):
        if load_i64(load_i64(proposer_at(code, p), 0), IX_VALUES) != 0:
            return True
    return False


@kernel
def move_values(target, choice, source, first, last, to):
    """Moves proposed values [first, last) of one row to place `to`, which is not behind them; returns how many."""
    for i in range(last - first):
        store_i64(target, to + i, load_i64(target, first + i))
        store_i64(choice, to + i, load_i64(choice, first + i))
        store_i64(source, to + i, load_i64(source, first + i))
    return last - first


@kernel
def sieve_bit(value):
    """Place of a value among the bits of a sieve."""
    return (wrapped_product(value, _MIX) >> 40) & (WORDS * 64 - 1)


@kernel
def fill_sieve(proposer, slab, wanted, bits):
    """Sets the bits of the values of a proposer's group; false where it is long for so many proposed values, or holds none."""
    index = load_i64(proposer, 0)
    if slab == 0 or load_i64(index, IX_VALUES) == 0:
        return False
    count = load_i32(slab, IXS_COUNT)
    if count > SIEVED or count > wanted * WORTH:
        return False
    for word in range(WORDS):
        store_i64(bits, word, 0)
    at = slab_first(slab)
    pool = load_i64(index, IX_POOL)
    column = column_of(load_i64(index, IX_COLLECTION), load_i64(proposer, 2))
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    for i in range(count):
        value = load_cell(data, width, at - RUN + i) if at >= RUN else load_i32(pool, at + i)
        place = sieve_bit(value)
        store_i64(bits, place >> 6, load_i64(bits, place >> 6) | (1 << (place & 63)))
    return True


@kernel
def pass_sieve(target, first, last, bits):
    """Keeps those of the values [first, last) of one row whose bits are set; returns how many."""
    kept = 0
    for i in range(first, last):
        value = load_i64(target, i)
        place = sieve_bit(value)
        store_i64(target, first + kept, value)
        kept += (load_i64(bits, place >> 6) >> (place & 63)) & 1
    return kept
