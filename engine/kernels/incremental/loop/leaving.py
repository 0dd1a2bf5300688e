"""Rows that are absent after a batch leave: the indexes of their collection, each by itself, and the table."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.bits import clear_bit, get_bit
from dlog.engine.kernels.incremental.store.collections import free_row
from dlog.engine.kernels.incremental.store.histories import sum_before, warm_history
from dlog.engine.kernels.incremental.store.history_items import close_item, item_of, open_item
from dlog.engine.kernels.incremental.store.implied import warm_cell, warm_key
from dlog.engine.kernels.incremental.store.indexes import (
    index_remove,
    known_group,
    leave_group,
    warm_group,
    warm_index,
    warm_slab,
    warming_steps,
)
from dlog.engine.kernels.incremental.store.removals import leave_groups
from dlog.engine.kernels.incremental.store.slots import warm_row_slot
from dlog.engine.kernels.layout import NEVER
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Index
from dlog.engine.kernels.row_structs import History, List
from dlog.engine.kernels.static.storage import behind

GONE_AHEAD = 4
"""Rows between two of which other things are asked for, and between those and one that is removed."""
NEEDS_AHEAD = 16
"""Rows between one of which is asked for what may keep it, and one that is looked at."""
STEP = 1024
"""Rows that are listed before the first of them is removed."""


@kernel
def next_gone(history: History, first, rows: Words):
    """Lists rows that are absent after the batch, STEP at most, of items from `first` on. Returns how many there are, and the
    first item that has not been looked at."""
    items = history.items
    n = 0
    at = first
    while at < items.count and n < STEP:
        item = items.data[at]
        rows[n] = item.row
        n += 1 if sum_before(history, item.head, 9223372036854775807) <= 0 else 0
        at += 1
    return n, at


@kernel
def leave_index(ctl: Control, collection: Collection, number):
    """Takes absent rows out of an index; false with ctl.error set."""
    outer = collection.outer
    index = collection.indexes[number]
    rows = ctl.scratch
    at = 0
    while at < outer.items.count:
        n, at = next_gone(outer, at, rows)
        if not leave_rows(ctl, collection, index, rows, n):
            return False
    return leave_groups(ctl, index)


@kernel
def leave_rows(ctl: Control, collection: Collection, index: Index, rows: Words, n):
    """Takes n rows, STEP at most, out of an index; false with ctl.error set. There is room for as many words behind them."""
    if n > 1 and index.dense != 0 and index.key_count == 1:
        return leave_dense(ctl, collection, index, rows, n)
    begin_gone(collection, index, rows, n)
    for i in range(n):
        warm_gone(collection, index, rows, i, n)
        if not index_remove(ctl, index, rows[i]):
            return False
    return True


@kernel
def leave_dense(ctl: Control, collection: Collection, index: Index, rows: Words, n):
    """Takes n rows out of a dense index: what is read of each is asked for in four steps, and its group, which an implied key
    is looked for, found once. False with ctl.error set."""
    groups = behind(rows, STEP)
    for at in range(n + 4 * GONE_AHEAD):
        if at < n:
            warm_values(collection, rows[at])
        keyed = at - GONE_AHEAD
        if 0 <= keyed < n:
            warm_key(collection, rows[keyed])
        found = keyed - GONE_AHEAD
        if 0 <= found < n:
            groups[found] = known_group(index, rows[found])
            warm_group(index, groups[found])
        warmed = found - GONE_AHEAD
        if 0 <= warmed < n:
            warm_slab(index, groups[warmed])
        gone = warmed - GONE_AHEAD
        if gone >= 0 and not leave_group(ctl, index, groups[gone], 0, rows[gone]):
            return False
    return True


@kernel
def begin_gone(collection: Collection, index: Index, rows: Words, n):
    """Before n rows are taken out of an index, each with `warm_gone`: asks for what is read of the first."""
    if n > 1:
        for step in range(warming_steps(index) + 2, 0, -1):
            for i in range(min(n, step * GONE_AHEAD)):
                warm_step(collection, index, rows[i], step)


@kernel
def warm_gone(collection: Collection, index: Index, rows: Words, i, n):
    """While a row is taken out of an index, asks for what is read of those behind it."""
    for step in range(warming_steps(index) + 2, 0, -1):
        if i + step * GONE_AHEAD < n:
            warm_step(collection, index, rows[i + step * GONE_AHEAD], step)


@kernel
def warm_step(collection: Collection, index: Index, row, step):
    """One step of what is asked for of a row that goes: its values; its key, where offsets imply that; what an index has."""
    last = warming_steps(index)
    if step == last + 2:
        warm_values(collection, row)
    elif step == last + 1:
        warm_key(collection, row)
    else:
        warm_index(index, row, step)


@kernel
def free_gone(ctl: Control, collection: Collection):
    """Frees absent rows, which are or will be in no index any more; false with ctl.error set."""
    outer = collection.outer
    rows = ctl.scratch
    at = 0
    while at < outer.items.count:
        n, at = next_gone(outer, at, rows)
        if not free_rows(ctl, collection, rows, n):
            return False
    return True


@kernel
def free_rows(ctl: Control, collection: Collection, rows: Words, n):
    """Frees n rows that are or will be in no index any more; false with ctl.error set."""
    if n > 1:
        for i in range(min(n, 2 * GONE_AHEAD)):
            warm_values(collection, rows[i])
        for i in range(min(n, GONE_AHEAD)):
            warm_row_slot(collection, rows[i])
    for i in range(n):
        if i + 2 * GONE_AHEAD < n:
            warm_values(collection, rows[i + 2 * GONE_AHEAD])
        if i + GONE_AHEAD < n:
            warm_row_slot(collection, rows[i + GONE_AHEAD])
        if not free_row(ctl, collection, rows[i]):
            return False
    return True


@kernel
def warm_values(collection: Collection, row):
    """Asks for a row's values."""
    columns = collection.columns
    for c in range(collection.arity):
        column = columns[c]
        warm_cell(column, row)


# ------------------------------------------------------------------------------------------------------------- unread rows


@kernel
def settle_unread(ctl: Control, collection: Collection, listed: List, words):
    """Removes the absent ones of rows listed as the first of so many words, of a collection in which no path looks rows up,
    unless something keeps them; false with ctl.error set."""
    rows = ctl.scratch
    at = 0
    while listed.data and at < listed.count:
        n, at = next_absent(collection, listed, words, at, rows)
        if n == 0:
            continue
        n = leave_needed(ctl, collection, rows, n)
        if n < 0:
            return False
        for i in range(collection.index_count):
            if not leave_rows(ctl, collection, collection.indexes[i], rows, n):
                return False
        if not free_rows(ctl, collection, rows, n):
            return False
    return True


@kernel
def next_absent(collection: Collection, listed: List, words, first, rows: Words):
    """Lists the absent ones, STEP at most, of listed rows from `first` on. Returns how many there are, and the first listed one
    that has not been looked at."""
    bits = collection.outer.bits
    n = 0
    at = first
    while at < listed.count and n < STEP:
        row = listed.data[at * words]
        rows[n] = row
        n += 1 if get_bit(bits, row) != 0 and get_bit(collection.alive, row) != 0 else 0
        at += 1
    return n, at


@kernel
def leave_needed(ctl: Control, collection: Collection, rows: Words, n):
    """Keeps those of n absent rows that something needs, and lists the others, each once. Returns how many, or -1 with
    ctl.error set."""
    outer = collection.outer
    inner = collection.inner
    left = 0
    for i in range(n):
        if i + NEEDS_AHEAD < n:
            warm_needs(collection, rows[i + NEEDS_AHEAD])
        row = rows[i]
        if get_bit(outer.bits, row) == 0:
            continue
        if inner and is_needed(collection, row):
            if not keep_absent(ctl, collection, row):
                return -1
            continue
        if inner and get_bit(inner.bits, row) != 0:
            close_item(inner, row)
        clear_bit(outer.bits, row)
        rows[left] = row
        left += 1
    return left


@kernel
def warm_needs(collection: Collection, row):
    """Asks for what may keep an absent row."""
    if collection.inner:
        warm_history(collection.inner, row)
        prefetch(collection.derivation.support.address + row * 4)


@kernel
def is_needed(collection: Collection, row):
    """Whether something besides its presence keeps a row: derivations, or iterations at which it is present."""
    support = collection.derivation.support
    if support and support[row] != 0:
        return True
    counts = collection.derivation.counts
    if counts and counts[row] != 0:
        return True
    inner = collection.inner
    if not inner:
        return False
    if get_bit(inner.bits, row) == 0:
        return inner.iters[row] != NEVER
    return item_of(inner, row).head != 0


@kernel
def keep_absent(ctl: Control, collection: Collection, row):
    """Notes of a row that is kept that it is present at no iteration, unless there is something of it: without a note it would
    be a new one. False with ctl.error set."""
    inner = collection.inner
    if not inner or get_bit(inner.bits, row) != 0 or inner.iters[row] != NEVER:
        return True
    return open_item(ctl, inner, row).address != 0
