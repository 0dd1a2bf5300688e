"""Growing arrangements: a group is a chain of 32-bit items (the values of the one column that lookups need, or row numbers).

A chain is a head of 16 bytes and a list of chunks in a pool that all chains share. Chunk k holds `chunk_items(k)` items and,
after them, where the next chunk starts; chunks are filled one after the other and never move. As each is about a third of
what the chain holds before it, chains take about 5 bytes per item where groups are not small, and no room is ever freed.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.layout import (
    ARR_CHAINS,
    ARR_DONE,
    ARR_GROUP_CAPACITY,
    ARR_GROUPS,
    ARR_ITEM,
    ARR_MAP,
    ARR_ONLY,
    ARR_ONLY_COLUMN,
    ARR_ONLY_LOW,
    ARR_ONLY_SPAN,
    ARR_POOL,
    ARR_POOL_CAPACITY,
    ARR_POOL_SIZE,
    ARR_RELATION,
    CHAIN_COUNT,
    CHAIN_NEXT,
    CHAIN_ROOM,
    CHAIN_SIZE,
    CHAIN_START,
    COL_DATA,
    COL_WIDTH,
    CTL_ERROR,
    ERROR_ROWS,
    MAP_DENSE,
)
from dlog.engine.kernels.static.arrange import chain_of, column_of, dense_group, hash_group
from dlog.engine.kernels.static.storage import load_cell, resize

POOL_MAX = 2**32 - 1
"""Most words of a pool: positions are unsigned 32-bit numbers."""
AHEAD = 8
"""Rows between asking for a chain's head, for the end of the chain, and appending to it."""


@kernel
def load_position(address, index):
    return load_i32(address, index) & 0xFFFFFFFF


@kernel
def chunk_items(number):
    """Items of a chain's chunk `number`: 3, 3, 7, 7, 15, 15 ... With its link a chunk is a power of two of words."""
    return (4 << (number >> 1)) - 1


@kernel
def chunk_after(count):
    """The number of the chunk that comes after the full ones that hold `count` items."""
    number = 0
    while count > 0:
        count -= chunk_items(number)
        number += 1
    return number


@entry()
def grow_arrangement(ctl, arrangement, end):
    """Adds the relation's rows [ARR_DONE, end), but those that it need not have. False with CTL_ERROR set when out of
    memory."""
    relation = load_i64(arrangement, ARR_RELATION)
    item = load_i64(arrangement, ARR_ITEM)
    data = 0
    if item >= 0:
        data = load_i64(column_of(relation, item), COL_DATA)
    dense = load_i64(arrangement, ARR_MAP) == MAP_DENSE
    some = load_i64(arrangement, ARR_ONLY) != 0
    for row in range(load_i64(arrangement, ARR_DONE), end):
        if some and not is_wanted(arrangement, relation, row):
            continue
        if dense:
            group = dense_group(arrangement, row)
            ask_ahead(arrangement, row, end)
        else:
            known = load_i64(arrangement, ARR_GROUPS)
            room = load_i64(arrangement, ARR_GROUP_CAPACITY)
            group = hash_group(ctl, arrangement, row)
            if group < 0 or not grow_chains(ctl, arrangement, known, room):
                return False
        value = row
        if item >= 0:
            value = load_i32(data, row)
        if not append(ctl, arrangement, chain_of(arrangement, group), value):
            return False
    store_i64(arrangement, ARR_DONE, end)
    return True


@kernel
def is_wanted(arrangement, relation, row):
    """Whether the bit of the row's value in column ARR_ONLY_COLUMN is set."""
    column = column_of(relation, load_i64(arrangement, ARR_ONLY_COLUMN))
    code = load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row) - load_i64(arrangement, ARR_ONLY_LOW)
    if code < 0 or code >= load_i64(arrangement, ARR_ONLY_SPAN):
        return False
    return (load_i64(load_i64(arrangement, ARR_ONLY), code >> 6) >> (code & 63)) & 1 == 1


@kernel
def ask_ahead(arrangement, row, end):
    """Asks for the chains that rows after this one will be appended to."""
    if row + 2 * AHEAD < end:
        prefetch(chain_of(arrangement, dense_group(arrangement, row + 2 * AHEAD)))
    if row + AHEAD < end:
        chain = chain_of(arrangement, dense_group(arrangement, row + AHEAD))
        prefetch(load_i64(arrangement, ARR_POOL) + load_position(chain, CHAIN_NEXT) * 4)


@kernel
def append(ctl, arrangement, chain, value):
    room = load_i32(chain, CHAIN_ROOM)
    if room == 0:
        if not extend_chain(ctl, arrangement, chain):
            return False
        room = load_i32(chain, CHAIN_ROOM)
    at = load_position(chain, CHAIN_NEXT)
    store_i32(load_i64(arrangement, ARR_POOL), at, value)
    store_i32(chain, CHAIN_NEXT, at + 1)
    store_i32(chain, CHAIN_ROOM, room - 1)
    store_i32(chain, CHAIN_COUNT, load_i32(chain, CHAIN_COUNT) + 1)
    return True


@kernel
def extend_chain(ctl, arrangement, chain):
    """Links a new chunk to a chain whose last one is full: CHAIN_NEXT is then the place of its link."""
    count = load_i32(chain, CHAIN_COUNT)
    items = chunk_items(chunk_after(count))
    start = load_i64(arrangement, ARR_POOL_SIZE)
    end = start + items + 1
    if not reserve_pool(ctl, arrangement, end):
        return False
    store_i64(arrangement, ARR_POOL_SIZE, end)
    if count == 0:
        store_i32(chain, CHAIN_START, start)
    else:
        store_i32(load_i64(arrangement, ARR_POOL), load_position(chain, CHAIN_NEXT), start)
    store_i32(chain, CHAIN_NEXT, start)
    store_i32(chain, CHAIN_ROOM, items)
    return True


@kernel
def reserve_pool(ctl, arrangement, size):
    """Room for `size` words in the pool. False with CTL_ERROR set when there is none."""
    room = load_i64(arrangement, ARR_POOL_CAPACITY)
    if size <= room:
        return True
    if size > POOL_MAX:
        store_i64(ctl, CTL_ERROR, ERROR_ROWS)
        return False
    wanted = max(room + (room >> 1), size, 4096)
    pool = resize(ctl, load_i64(arrangement, ARR_POOL), room * 4, wanted * 4)
    if pool == 0:
        return False
    store_i64(arrangement, ARR_POOL, pool)
    store_i64(arrangement, ARR_POOL_CAPACITY, wanted)
    return True


@kernel
def grow_chains(ctl, arrangement, known, room):
    """Keeps the table of heads as long as the hash map's group capacity, and a new group's chain empty."""
    capacity = load_i64(arrangement, ARR_GROUP_CAPACITY)
    chains = load_i64(arrangement, ARR_CHAINS)
    if capacity != room:
        chains = resize(ctl, chains, room * CHAIN_SIZE * 4, capacity * CHAIN_SIZE * 4)
        if chains == 0:
            return False
        store_i64(arrangement, ARR_CHAINS, chains)
    if load_i64(arrangement, ARR_GROUPS) > known:
        for word in range(CHAIN_SIZE):
            store_i32(chains, known * CHAIN_SIZE + word, 0)
    return True
