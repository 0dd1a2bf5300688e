"""The order of a base's rows: those of one key are put in it, each once, and others come in it."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.store.base import KEYS_PER_ROW
from dlog.engine.kernels.incremental.store.collections import cell
from dlog.engine.kernels.machine_structs import Numbers, WordColumns
from dlog.engine.kernels.round_structs import Collection
from dlog.engine.kernels.static.storage import store_cell

MAX_INSERTION_SORTED_ROWS = 24
"""Rows of a key up to which they are sorted by insertion."""

MAX_ROWS_PER_KEY = 32
"""Rows of a key, on average, of a column by which rows come in order: to find one, those of its key are halved."""


@kernel
def order_values(data: Numbers, first, last, rows):
    """Sorts 4-byte values [first, last) and moves different ones to `rows` and on; returns where they end."""
    for i in range(first + 1, last):
        value = data[i]
        at = i
        while at > first and data[at - 1] > value:
            data[at] = data[at - 1]
            at -= 1
        data[at] = value
    start = rows
    for i in range(first, last):
        value = data[i]
        if rows == start or data[rows - 1] != value:
            data[rows] = value
            rows += 1
    return rows


@kernel
def order_rows(collection: Collection, key, first, last, rows):
    """Sorts rows [first, last) by all columns but the key and moves different ones to `rows` and on; returns where they end."""
    sort_rows(collection, key, first, last)
    start = rows
    for row in range(first, last):
        if rows > start and compare_rows(collection, key, rows - 1, row) == 0:
            continue
        if rows != row:
            move_row(collection, key, row, rows)
        rows += 1
    return rows


@kernel
def compare_rows(collection: Collection, key, left, right):
    """-1, 0 or 1: the order of two rows by all columns but the key."""
    for c in range(collection.arity):
        if c != key:
            one = cell(collection, c, left)
            other = cell(collection, c, right)
            if one != other:
                return -1 if one < other else 1
    return 0


@kernel
def move_row(collection: Collection, key, source, target):
    for c in range(collection.arity):
        if c != key:
            column = collection.columns[c]
            store_cell(column.data, column.width, target, cell(collection, c, source))


@kernel
def swap_rows(collection: Collection, key, left, right):
    for c in range(collection.arity):
        if c != key:
            column = collection.columns[c]
            data = column.data
            width = column.width
            kept = cell(collection, c, left)
            store_cell(data, width, left, cell(collection, c, right))
            store_cell(data, width, right, kept)


@kernel
def sort_rows(collection: Collection, key, first, last):
    """Sorts rows [first, last) by all columns but the key, in place: by insertion where they are few, else as a heap."""
    if last - first <= MAX_INSERTION_SORTED_ROWS:
        for row in range(first + 1, last):
            at = row
            while at > first and compare_rows(collection, key, at - 1, at) > 0:
                swap_rows(collection, key, at - 1, at)
                at -= 1
        return
    ascending = True
    for row in range(first + 1, last):
        if compare_rows(collection, key, row - 1, row) > 0:
            ascending = False
            break
    if ascending:
        return
    count = last - first
    for root in range((count >> 1) - 1, -1, -1):
        sift_down(collection, key, first, root, count)
    for end in range(count - 1, 0, -1):
        swap_rows(collection, key, first, first + end)
        sift_down(collection, key, first, 0, end)


@kernel
def sift_down(collection: Collection, key, first, root, count):
    """Restores a heap of `count` rows, from number `first` on, below a root that may be too small."""
    at = root
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and compare_rows(collection, key, first + child, first + child + 1) < 0:
            child += 1
        if compare_rows(collection, key, first + at, first + child) >= 0:
            return
        swap_rows(collection, key, first + at, first + child)
        at = child


# ------------------------------------------------------------------------------------------------ rows that come in order


@kernel
def ordered_key(columns: WordColumns, step, arity, count):
    """The column by which rows of columns are in order, each behind the one before, and whose values are close to each other,
    and not the same for many; -1 if there is none."""
    for key in range(arity):
        low = columns[key][0]
        high = columns[key][(count - 1) * step]
        close = -2147483648 <= low <= high <= 2147483647 and high - low < count * KEYS_PER_ROW
        if close and (high - low) * MAX_ROWS_PER_KEY >= count and are_ordered(columns, step, arity, key, count):
            return key
    return -1


@kernel
def are_ordered(columns: WordColumns, step, arity, key, count):
    """Whether each row of columns is behind the one before, by the key and then by the other columns."""
    keys = columns[key]
    former = keys[0]
    for source in range(1, count):
        value = keys[source * step]
        if value < former or (value == former and not is_behind(columns, step, arity, key, source)):
            return False
        former = value
    return True


@kernel
def is_behind(columns: WordColumns, step, arity, key, source):
    """Whether a row of columns is behind the one before it by the columns other than the key."""
    for c in range(arity):
        if c != key:
            value = columns[c][source * step]
            former = columns[c][(source - 1) * step]
            if value != former:
                return value > former
    return False
