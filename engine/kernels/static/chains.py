"""Growing arrangements: a group is a chain of 32-bit items (the values of the one column that lookups need, or row numbers).

A chain is a head of 16 bytes and a list of chunks in a pool that all chains share. Chunk k holds `chunk_items(k)` items and,
after them, where the next chunk starts; chunks are filled one after the other and never move. As each is about a third of
what the chain holds before it, chains take about 5 bytes per item where groups are not small, and no room is ever freed.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Error, KeyMap
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.machine_structs import Arrangement, Chain, Chains, Numbers, Relation
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.arrange import chain_of, column_of, dense_group, hash_group
from dlog.engine.kernels.static.storage import load_cell, resize

POOL_MAX = 2**32 - 1
"""Most words of a pool: positions are unsigned 32-bit numbers."""
ROWS_AHEAD = 8
"""Rows between asking for a chain's head, for the end of the chain, and appending to it."""


@kernel
def load_position(address, index):
    return Numbers(address)[index] & 0xFFFFFFFF


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
def grow_arrangement(ctl: Control, arrangement: Arrangement, end):
    """Adds the relation's rows [done, end), but those that it need not have. False with ctl.error set when out of
    memory."""
    relation = arrangement.relation
    item = arrangement.item
    data = Numbers(0)
    if item >= 0:
        data = Numbers(column_of(relation, item).data)
    dense = arrangement.map == KeyMap.DENSE
    some = arrangement.only.address != 0
    for row in range(arrangement.arranged_rows, end):
        if some and not is_wanted(arrangement, relation, row):
            continue
        if dense:
            group = dense_group(arrangement, row)
            ask_ahead(arrangement, row, end)
        else:
            known = arrangement.groups
            room = arrangement.group_capacity
            group = hash_group(ctl, arrangement, row)
            if group < 0 or not grow_chains(ctl, arrangement, known, room):
                return False
        value = row
        if item >= 0:
            value = data[row]
        if not append(ctl, arrangement, chain_of(arrangement, group), value):
            return False
    arrangement.arranged_rows = end
    return True


@kernel
def is_wanted(arrangement: Arrangement, relation: Relation, row):
    """Whether the bit of the row's value in column `only_column` is set."""
    column = column_of(relation, arrangement.only_column)
    code = load_cell(column.data, column.width, row) - arrangement.only_low
    if code < 0 or code >= arrangement.only_span:
        return False
    return (arrangement.only[code >> 6] >> (code & 63)) & 1 == 1


@kernel
def ask_ahead(arrangement: Arrangement, row, end):
    """Asks for the chains that rows after this one will be appended to."""
    if row + 2 * ROWS_AHEAD < end:
        prefetch(chain_of(arrangement, dense_group(arrangement, row + 2 * ROWS_AHEAD)).address)
    if row + ROWS_AHEAD < end:
        chain = chain_of(arrangement, dense_group(arrangement, row + ROWS_AHEAD))
        prefetch(arrangement.pool.address + chain.next * 4)


@kernel
def append(ctl: Control, arrangement: Arrangement, chain: Chain, value):
    room = chain.room
    if room == 0:
        if not extend_chain(ctl, arrangement, chain):
            return False
        room = chain.room
    at = chain.next
    arrangement.pool[at] = value
    chain.next = at + 1
    chain.room = room - 1
    chain.count += 1
    return True


@kernel
def extend_chain(ctl: Control, arrangement: Arrangement, chain: Chain):
    """Links a new chunk to a chain whose last one is full: `next` is then the place of its link."""
    count = chain.count
    items = chunk_items(chunk_after(count))
    start = arrangement.pool_size
    end = start + items + 1
    if not reserve_pool(ctl, arrangement, end):
        return False
    arrangement.pool_size = end
    if count == 0:
        chain.start = start
    else:
        arrangement.pool[chain.next] = start
    chain.next = start
    chain.room = items
    return True


@kernel
def reserve_pool(ctl: Control, arrangement: Arrangement, size):
    """Room for `size` words in the pool. False with ctl.error set when there is none."""
    room = arrangement.pool_capacity
    if size <= room:
        return True
    if size > POOL_MAX:
        ctl.error = Error.ROWS
        return False
    wanted = max(room + (room >> 1), size, 4096)
    pool = resize(ctl, arrangement.pool.address, room * 4, wanted * 4)
    if pool == 0:
        return False
    arrangement.pool = Numbers(pool)
    arrangement.pool_capacity = wanted
    return True


@kernel
def grow_chains(ctl: Control, arrangement: Arrangement, known, room):
    """Keeps the table of heads as long as the hash map's group capacity, and a new group's chain empty."""
    capacity = arrangement.group_capacity
    chains = arrangement.chains
    if capacity != room:
        chains = Chains(resize(ctl, chains.address, room * Chain.size, capacity * Chain.size))
        if not chains:
            return False
        arrangement.chains = chains
    if arrangement.groups > known:
        chain = chains[known]
        chain.start = 0
        chain.count = 0
        chain.next = 0
        chain.room = 0
    return True
