"""Stocks of a pool's items: what a worker has taken of a pool from which others take at the same time.

The pool has room for all that they may take: it does not move meanwhile.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import atomic_add
from dlog.engine.kernels.incremental.store.lists import list_room, pool_give
from dlog.engine.kernels.layout import STOCK
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control, Share
from dlog.engine.kernels.row_structs import Pool
from dlog.engine.kernels.static.storage import behind, resize

TRIES = 1000
"""Times that a worker asks for a pool's free items while another one takes some; then it takes new ones."""


@kernel
def open_stocks(ctl: Control, share: Share, pool: Pool, most):
    """Before workers take up to so many items; false with ctl.error set."""
    share.room = pool.capacity
    clear_stocks(share)
    return list_room(ctl, pool, most + share.workers * STOCK)


@kernel
def clear_stocks(share: Share):
    for number in range(share.workers):
        share.stocks[number * STOCK] = 0


@kernel
def take_stocked(share: Share, stock: Words, pool: Pool):
    """Number of an item from the stock."""
    if stock[0] == 0:
        fill_stock(share, stock, pool)
    left = stock[0]
    stock[0] = left - 1
    return stock[left]


@kernel
def fill_stock(share: Share, stock: Words, pool: Pool):
    """Takes freed items of the pool or, where there are none, new ones."""
    n = take_freed(share, stock, pool)
    if n == 0:
        n = STOCK - 1
        first = atomic_add(pool.ref.count, 0, n)
        for i in range(n):
            stock[n - i] = first + i
    stock[0] = n


@kernel
def take_freed(share: Share, stock: Words, pool: Pool):
    """Takes freed items of the pool; returns how many. Nobody waits for one that has the lock, and may not run at all."""
    words = pool.words
    n = 0
    for _ in range(TRIES):
        if pool.free == 0:
            break
        mine = atomic_add(share.ref.lock, 0, 1) == 0
        if mine:
            while n < STOCK - 1 and pool.free != 0:
                n += 1
                stock[n] = pool.free - 1
                pool.free = pool.data[stock[n] * words]
        atomic_add(share.ref.lock, 0, -1)
        if mine:
            break
    return n


@kernel
def close_stocks(ctl: Control, share: Share, pool: Pool):
    """Gives back what is left in stocks, and most of the room that nobody has taken, unless it is little: others will take
    some soon. False with ctl.error set."""
    for number in range(share.workers):
        stock = behind(share.stocks, number * STOCK)
        for i in range(stock[0]):
            pool_give(pool, stock[i + 1])
    capacity = pool.capacity
    target = max(pool.count + (pool.count >> 3), share.room)
    if capacity <= target + (target >> 3):
        return True
    size = pool.words * 8
    moved = resize(ctl, pool.data.address, capacity * size, target * size)
    if moved == 0:
        return False
    pool.data = Words(moved)
    pool.capacity = target
    return True


@kernel
def give_stocked(stock: Words, pool: Pool, number):
    """Frees an item for the pool to have later: the stock has the last one, plus one, and the first one."""
    pool.data[number * pool.words] = stock[0]
    if stock[0] == 0:
        stock[1] = number
    stock[0] = number + 1


@kernel
def return_stocked(share: Share, pool: Pool):
    """Gives the pool what workers have freed."""
    for number in range(share.workers):
        stock = behind(share.stocks, number * STOCK)
        if stock[0] != 0:
            pool.data[stock[1] * pool.words] = pool.free
            pool.free = stock[0]
