"""Rows of relations: columns that grow, on the account of the worker that grows them.

Row numbers are 32-bit. Blocks come as registers (addresses of int64 values); lists of registers are addresses of words.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Error, SetKind
from dlog.engine.kernels.core.blocks import clear_rest, cleared_block, dirty_bytes, free_block, resized_block
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import atomic_add, wrapped_product
from dlog.engine.kernels.layout import BLOCK, REGISTER
from dlog.engine.kernels.machine_structs import Numbers, Relation, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.pages import note_pages

_MIX = -7046029254386353131  # 0x9E3779B97F4A7C15
ROWS_MAX = 2**31 - 2
_UNLIMITED = 4611686018427387904
MAX_DOUBLED_ITEMS = 1 << 17
"""Items above which arrays grow by an eighth: their bytes count for more than the time to move them."""
STRIDE = 1 << 15
"""The most items by which they grow, so that growing takes no time: of what is that large the system moves pages, not bytes."""


@kernel
def register(ctl: Control, number) -> Words:
    """Address of a register of this worker."""
    return Words(ctl.registers + number * (REGISTER * 8))


@kernel
def scratch_block(ctl: Control, number) -> Words:
    """Address of one of the worker's scratch blocks."""
    return Words(ctl.scratch.address + number * (BLOCK * 8))


@kernel
def behind(words: Words, count) -> Words:
    """The words behind so many."""
    return Words(words.address + count * 8)


@kernel
def copy_words(target: Words, source: Words, count):
    for i in range(count):
        target[i] = source[i]


@kernel
def clear_words(words: Words, count):
    for i in range(count):
        words[i] = 0


@kernel
def load_cell(address, width, row):
    if width == 4:
        return Numbers(address)[row]
    return Words(address)[row]


@kernel
def store_cell(address, width, row, value):
    if width == 4:
        Numbers(address)[row] = value
    else:
        Words(address)[row] = value


@entry()
def resize(ctl: Control, address, old_bytes, new_bytes):
    """`resized_block` on the worker's account; 0 and ctl.error set when over the limit or out of memory."""
    return resize_by(ctl, address, old_bytes, new_bytes, ctl.account.small)


@kernel
def resize_by(ctl: Control, address, old_bytes, new_bytes, gradual):
    """`resize` where the caller says whether the block is one that should have a mapping early."""
    grown = atomic_add(ctl.account.ref.bytes, 0, new_bytes - old_bytes) + new_bytes - old_bytes
    if grown > ctl.limit and new_bytes > old_bytes:
        atomic_add(ctl.account.ref.bytes, 0, old_bytes - new_bytes)
        ctl.error = Error.MEMORY
        return 0
    moved = resized_block(address, new_bytes, gradual)
    if moved == 0:
        atomic_add(ctl.account.ref.bytes, 0, old_bytes - new_bytes)
        ctl.error = Error.MEMORY
        return 0
    note_pages(ctl.account, moved, old_bytes, new_bytes)
    return moved


@kernel
def without_limit(ctl: Control):
    """Lifts the worker's limit of memory, and returns it: for what must be done whole, as there is no way back from half of it.
    The limit is asked before, or afterwards (`within_limit`)."""
    limit = ctl.limit
    ctl.limit = _UNLIMITED
    return limit


@kernel
def within_limit(ctl: Control, limit, done):
    """Sets the limit of memory again; whether what was done has been, and is within it, else ctl.error is set."""
    ctl.limit = limit
    if done and ctl.account.bytes > limit:
        ctl.error = Error.MEMORY
        return False
    return done


@kernel
def grown(room):
    """Room after growing: half as much again, or less where that is much."""
    if room < MAX_DOUBLED_ITEMS:
        return room + (room >> 1)
    return room + min(room >> 3, STRIDE)


@kernel
def spare(items):
    """Room that is left for more of what has come in one go."""
    return items >> 6


@entry()
def zeroed(ctl: Control, size):
    """Zeroed bytes on the worker's account, or 0 and ctl.error set."""
    grown = atomic_add(ctl.account.ref.bytes, 0, size) + size
    if grown > ctl.limit:
        atomic_add(ctl.account.ref.bytes, 0, -size)
        ctl.error = Error.MEMORY
        return 0
    address = cleared_block(size, ctl.account.small)
    if address == 0:
        atomic_add(ctl.account.ref.bytes, 0, -size)
        ctl.error = Error.MEMORY
        return 0
    note_pages(ctl.account, address, 0, size)
    return address


@kernel
def lengthen(ctl: Control, field: Words, old_bytes, new_bytes):
    """Gives the array that a field points at more bytes, which are zero; false with ctl.error set. Pages of a large one move,
    and are touched when they are used: this takes no time that depends on their number."""
    address = field[0]
    dirty = dirty_bytes(address, old_bytes, new_bytes)
    moved = resize(ctl, address, old_bytes, new_bytes)
    if moved == 0:
        return False
    field[0] = moved
    clear_rest(moved, old_bytes, new_bytes, dirty)
    return True


@entry()
def release(ctl: Control, address, size):
    """Frees memory that `resize` or `zeroed` gave."""
    if address != 0:
        free_block(address)
        atomic_add(ctl.account.ref.bytes, 0, -size)


@entry()
def reserve(ctl: Control, relation: Relation, extra):
    """Makes room for `extra` more rows; false with ctl.error set when there is none."""
    rows = relation.rows + extra
    capacity = relation.capacity
    if rows <= capacity:
        return True
    if rows > ROWS_MAX:
        ctl.error = Error.ROWS
        return False
    target = max(rows, capacity + (capacity >> 1), 1024)
    gradual = 1 if relation.set == SetKind.GRADUAL else ctl.account.small
    columns = relation.columns
    for c in range(relation.arity):
        column = columns[c]
        width = column.width
        moved = resize_by(ctl, column.data, capacity * width, target * width, gradual)
        if moved == 0:
            return False
        column.data = moved
    relation.capacity = target
    return True


@kernel
def mix(hashed, value):
    """One step of a multiplicative hash over int64 words."""
    x = wrapped_product(hashed ^ value, _MIX)
    return x ^ ((x >> 29) & 0x7FFFFFFFF)


@kernel
def append_rows(relation: Relation, ctl: Control, registers: Words, chosen: Words, count, at):
    """Writes block rows chosen[0..count) to rows [at, at + count); room is reserved already."""
    columns = relation.columns
    for c in range(relation.arity):
        column = columns[c]
        data = column.data
        values = register(ctl, registers[c])
        if column.width == 4:
            for j in range(count):
                Numbers(data)[at + j] = values[chosen[j]]
        else:
            for j in range(count):
                Words(data)[at + j] = values[chosen[j]]


@kernel
def append_block(ctl: Control, relation: Relation, registers: Words, n):
    """Adds n rows unchecked: the plan promises that they are distinct. Returns rows added, -1 on error."""
    if not reserve(ctl, relation, n):
        return -1
    at = relation.rows
    relation.rows = at + n
    columns = relation.columns
    for c in range(relation.arity):
        column = columns[c]
        data = column.data
        values = register(ctl, registers[c])
        if column.width == 4:
            for j in range(n):
                Numbers(data)[at + j] = values[j]
        else:
            for j in range(n):
                Words(data)[at + j] = values[j]
    return n


@kernel
def move_row(relation: Relation, source, target):
    columns = relation.columns
    for c in range(relation.arity):
        column = columns[c]
        data = column.data
        width = column.width
        store_cell(data, width, target, load_cell(data, width, source))


@kernel
def rows_equal(relation: Relation, left, right):
    columns = relation.columns
    for c in range(relation.arity):
        column = columns[c]
        data = column.data
        width = column.width
        if load_cell(data, width, left) != load_cell(data, width, right):
            return False
    return True


@entry()
def strictly_sorted(relation: Relation):
    """Whether the rows are in strictly ascending lexicographic order (so that none repeats)."""
    columns = relation.columns
    arity = relation.arity
    for row in range(1, relation.rows):
        below = False
        for c in range(arity):
            column = columns[c]
            data = column.data
            width = column.width
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
