"""Finding rows of a collection for a whole block: all hashes first, then all slots, then the rows, so that memory answers while
the block goes on."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i64, prefetch, store_i64
from dlog.engine.kernels.incremental.store.base import search_base
from dlog.engine.kernels.incremental.store.collections import add_values
from dlog.engine.kernels.incremental.store.direct import find_direct, has_place
from dlog.engine.kernels.incremental.store.histories import get_bit
from dlog.engine.kernels.incremental.store.slots import ABSENT, find_slotted, find_values, has_values, search_ahead, warm_others
from dlog.engine.kernels.layout import (
    BLOCK,
    CO_ALIVE,
    CO_BASE_ROWS,
    CO_DIRECT,
    CO_DIRECT_COUNT,
    CO_DIRECT_LOW,
    CTL_SCRATCH,
    REL_ARITY,
)
from dlog.engine.kernels.static.storage import mix, register

WIDE = BLOCK // 2
"""Columns that fit half a block."""


@kernel
def scratch_block(ctl, number):
    """Address of one of the worker's scratch blocks."""
    return load_i64(ctl, CTL_SCRATCH) + number * (BLOCK * 8)


@kernel
def hash_registers(ctl, registers, arity, n, hashes):
    """hashes[i] = hash of block row i."""
    for i in range(n):
        store_i64(hashes, i, 0)
    for c in range(arity):
        values = register(ctl, load_i64(registers, c))
        for i in range(n):
            store_i64(hashes, i, mix(load_i64(hashes, i), load_i64(values, i)))


@kernel
def find_directly(ctl, collection, values, n, rows, making):
    """`find_block` of a collection with a direct table."""
    if n > 1:
        table = load_i64(collection, CO_DIRECT)
        low = load_i64(collection, CO_DIRECT_LOW)
        for i in range(n):
            if has_place(collection, load_i64(values, i)):
                prefetch(table + (load_i64(values, i) - low) * 4)
    for i in range(n):
        row = find_direct(collection, load_i64(values, i))
        if row < 0 and making:
            hashed = mix(0, load_i64(values, i))
            if load_i64(collection, CO_DIRECT_COUNT) == 0:
                # A row of this block was too far away from the others: the table has given way to slots.
                row = find_values(collection, values + i * 8, hashed)
            if row < 0:
                row = add_values(ctl, collection, values + i * 8, hashed)
            if row < 0:
                return False
        store_i64(rows, i, row)
    return True


@kernel
def find_in_base(ctl, collection, registers, n, rows, making):
    """`find_block` of a collection with a base."""
    arity = load_i64(collection, REL_ARITY)
    buffer = scratch_block(ctl, 2)
    columns = buffer + WIDE * 8
    hashes = scratch_block(ctl, 3)
    for c in range(arity):
        store_i64(columns, c, register(ctl, load_i64(registers, c)))
    search_base(collection, columns, 1, 0, n, rows, buffer)
    warm_others(collection, columns, 1, 0, n, rows, hashes)
    alive = load_i64(collection, CO_ALIVE)
    for i in range(n):
        row = load_i64(rows, i)
        if row >= 0 and get_bit(alive, row) != 0:
            continue
        for c in range(arity):
            store_i64(buffer, c, load_i64(load_i64(columns, c), i))
        row = find_slotted(collection, buffer, load_i64(hashes, i)) if row < 0 else -1
        if row < 0 and making:
            row = add_values(ctl, collection, buffer, load_i64(hashes, i))
            if row < 0:
                return False
            alive = load_i64(collection, CO_ALIVE)
        store_i64(rows, i, row)
    return True


@kernel
def find_block(ctl, collection, registers, n, rows, making):
    """rows[i] = the collection's row with the values of block row i; where there is none -1 or, with `making`, a new one. False
    with CTL_ERROR set. Uses scratch blocks 2, 3 and 4."""
    if load_i64(collection, CO_DIRECT_COUNT) != 0 and load_i64(collection, CO_BASE_ROWS) == 0:
        return find_directly(ctl, collection, register(ctl, load_i64(registers, 0)), n, rows, making)
    arity = load_i64(collection, REL_ARITY)
    if load_i64(collection, CO_BASE_ROWS) != 0 and n > 1 and arity <= WIDE:
        return find_in_base(ctl, collection, registers, n, rows, making)
    buffer = scratch_block(ctl, 2)
    hashes = scratch_block(ctl, 3)
    places = scratch_block(ctl, 4)
    hash_registers(ctl, registers, arity, n, hashes)
    search_ahead(collection, hashes, n, making, places)
    for i in range(n):
        row = load_i64(places, i)
        if row != ABSENT or making:
            for c in range(arity):
                store_i64(buffer, c, load_i64(register(ctl, load_i64(registers, c)), i))
            if row < 0 or not has_values(collection, row, buffer):
                row = find_values(collection, buffer, load_i64(hashes, i))
            if row < 0 and making:
                row = add_values(ctl, collection, buffer, load_i64(hashes, i))
                if row < 0:
                    return False
        store_i64(rows, i, row)
    return True
