"""Rows of relations: columns that grow, on the account of the worker that grows them.

Row numbers are 32-bit. Blocks come as registers (addresses of int64 values); lists of registers are addresses of words.
"""

from __future__ import annotations

from dlog.engine.kernels.core.blocks import clear_rest, cleared_block, dirty_bytes, free_block, resized_block
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import (
    atomic_add,
    load_i32,
    load_i64,
    store_i32,
    store_i64,
    wrapped_product,
)
from dlog.engine.kernels.layout import (
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    CTL_BYTES,
    CTL_ERROR,
    CTL_LIMIT,
    CTL_REGISTERS,
    ERROR_MEMORY,
    ERROR_ROWS,
    REGISTER,
    REL_ARITY,
    REL_CAPACITY,
    REL_COLUMNS,
    REL_ROWS,
)

_MIX = -7046029254386353131  # 0x9E3779B97F4A7C15
ROWS_MAX = 2**31 - 2
SMALL = 1 << 17
"""Items above which arrays grow by an eighth: their bytes count for more than the time to move them."""
STRIDE = 1 << 15
"""The most items by which they grow, so that growing takes no time: of what is that large the system moves pages, not bytes."""


@kernel
def register(ctl, number):
    """Address of a register of this worker."""
    return load_i64(ctl, CTL_REGISTERS) + number * (REGISTER * 8)


@kernel
def load_cell(address, width, row):
    if width == 4:
        return load_i32(address, row)
    return load_i64(address, row)


@kernel
def store_cell(address, width, row, value):
    if width == 4:
        store_i32(address, row, value)
    else:
        store_i64(address, row, value)


@entry()
def resize(ctl, address, old_bytes, new_bytes):
    """`resized_block` on the worker's account; 0 and CTL_ERROR set when over the limit or out of memory."""
    grown = atomic_add(load_i64(ctl, CTL_BYTES), 0, new_bytes - old_bytes) + new_bytes - old_bytes
    if grown > load_i64(ctl, CTL_LIMIT) and new_bytes > old_bytes:
        atomic_add(load_i64(ctl, CTL_BYTES), 0, old_bytes - new_bytes)
        store_i64(ctl, CTL_ERROR, ERROR_MEMORY)
        return 0
    moved = resized_block(address, new_bytes)
    if moved == 0:
        atomic_add(load_i64(ctl, CTL_BYTES), 0, old_bytes - new_bytes)
        store_i64(ctl, CTL_ERROR, ERROR_MEMORY)
    return moved


@kernel
def grown(room):
    """Room after growing: half as much again, or less where that is much."""
    if room < SMALL:
        return room + (room >> 1)
    return room + min(room >> 3, STRIDE)


@kernel
def spare(items):
    """Room that is left for more of what has come in one go."""
    return items >> 6


@entry()
def zeroed(ctl, size):
    """Zeroed bytes on the worker's account, or 0 and CTL_ERROR set."""
    grown = atomic_add(load_i64(ctl, CTL_BYTES), 0, size) + size
    if grown > load_i64(ctl, CTL_LIMIT):
        atomic_add(load_i64(ctl, CTL_BYTES), 0, -size)
        store_i64(ctl, CTL_ERROR, ERROR_MEMORY)
        return 0
    address = cleared_block(size)
    if address == 0:
        atomic_add(load_i64(ctl, CTL_BYTES), 0, -size)
        store_i64(ctl, CTL_ERROR, ERROR_MEMORY)
    return address


@kernel
def lengthen(ctl, struct, field, old_bytes, new_bytes):
    """Gives the array at a field more bytes, which are zero if it has never been shortened by others; false with CTL_ERROR set.
    Pages of a large one move, and are touched when they are used: this takes no time that depends on their number."""
    address = load_i64(struct, field)
    dirty = dirty_bytes(address, old_bytes, new_bytes)
    moved = resize(ctl, address, old_bytes, new_bytes)
    if moved == 0:
        return False
    store_i64(struct, field, moved)
    clear_rest(moved, old_bytes, new_bytes, dirty)
    return True


@entry()
def release(ctl, address, size):
    """Frees memory that `resize` or `zeroed` gave."""
    if address != 0:
        free_block(address)
        atomic_add(load_i64(ctl, CTL_BYTES), 0, -size)


@entry()
def reserve(ctl, relation, extra):
    """Makes room for `extra` more rows; false with CTL_ERROR set when there is none."""
    rows = load_i64(relation, REL_ROWS) + extra
    capacity = load_i64(relation, REL_CAPACITY)
    if rows <= capacity:
        return True
    if rows > ROWS_MAX:
        store_i64(ctl, CTL_ERROR, ERROR_ROWS)
        return False
    target = max(rows, capacity + (capacity >> 1), 1024)
    columns = load_i64(relation, REL_COLUMNS)
    for c in range(load_i64(relation, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        width = load_i64(column, COL_WIDTH)
        moved = resize(ctl, load_i64(column, COL_DATA), capacity * width, target * width)
        if moved == 0:
            return False
        store_i64(column, COL_DATA, moved)
    store_i64(relation, REL_CAPACITY, target)
    return True


@kernel
def mix(hashed, value):
    """One step of a multiplicative hash over int64 words."""
    x = wrapped_product(hashed ^ value, _MIX)
    return x ^ ((x >> 29) & 0x7FFFFFFFF)


@kernel
def append_rows(relation, ctl, registers, chosen, count, at):
    """Writes block rows chosen[0..count) to rows [at, at + count); room is reserved already."""
    columns = load_i64(relation, REL_COLUMNS)
    for c in range(load_i64(relation, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        data = load_i64(column, COL_DATA)
        values = register(ctl, load_i64(registers, c))
        if load_i64(column, COL_WIDTH) == 4:
            for j in range(count):
                store_i32(data, at + j, load_i64(values, load_i64(chosen, j)))
        else:
            for j in range(count):
                store_i64(data, at + j, load_i64(values, load_i64(chosen, j)))


@kernel
def append_block(ctl, relation, registers, n):
    """Adds n rows unchecked: the plan promises that they are distinct. Returns rows added, -1 on error."""
    if not reserve(ctl, relation, n):
        return -1
    at = load_i64(relation, REL_ROWS)
    store_i64(relation, REL_ROWS, at + n)
    columns = load_i64(relation, REL_COLUMNS)
    for c in range(load_i64(relation, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        data = load_i64(column, COL_DATA)
        values = register(ctl, load_i64(registers, c))
        if load_i64(column, COL_WIDTH) == 4:
            for j in range(n):
                store_i32(data, at + j, load_i64(values, j))
        else:
            for j in range(n):
                store_i64(data, at + j, load_i64(values, j))
    return n


@kernel
def move_row(relation, source, target):
    columns = load_i64(relation, REL_COLUMNS)
    for c in range(load_i64(relation, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        data = load_i64(column, COL_DATA)
        width = load_i64(column, COL_WIDTH)
        store_cell(data, width, target, load_cell(data, width, source))


@kernel
def rows_equal(relation, left, right):
    columns = load_i64(relation, REL_COLUMNS)
    for c in range(load_i64(relation, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        data = load_i64(column, COL_DATA)
        width = load_i64(column, COL_WIDTH)
        if load_cell(data, width, left) != load_cell(data, width, right):
            return False
    return True


@entry()
def strictly_sorted(relation):
    """Whether the rows are in strictly ascending lexicographic order (so that none repeats)."""
    columns = load_i64(relation, REL_COLUMNS)
    arity = load_i64(relation, REL_ARITY)
    for row in range(1, load_i64(relation, REL_ROWS)):
        below = False
        for c in range(arity):
            column = columns + c * COL_SIZE * 8
            data = load_i64(column, COL_DATA)
            width = load_i64(column, COL_WIDTH)
            left = load_cell(data, width, row - 1)
            right = load_cell(data, width, row)
            if left < right:
                below = True
                break
            if left > right:
                return False
        if not below:
            return False
    return True
