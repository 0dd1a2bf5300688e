"""A base (base.py) that grows: rows that come behind its last one become rows of it, as those do whose key is a number that is
counted up. They need not be sought, have no slots, and lie where those before them do.

That goes on while all rows of the collection are its base's. One that comes where the base has passed gets a slot, and so do
all that come after it.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.inputs.base_order import is_behind, ordered_key
from dlog.engine.kernels.incremental.store.base import KEYS_PER_ROW, compare_base, offset_room
from dlog.engine.kernels.machine_structs import Numbers, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import resize

MIN_ORDERED_ROWS = 8
"""Rows below which it is chance that they come in order."""


@kernel
def may_grow(collection: Collection):
    """Whether rows that come may become a base's: there is one, or just begun, and it has all rows."""
    base = collection.base
    return base.offsets.address != 0 and base.rows == collection.rows


@kernel
def begin_growing(ctl: Control, collection: Collection, columns: WordColumns, step, diffs: Words, count):
    """Begins a base without rows where a collection has none and some come, in the order of a column, close to each other.
    False with ctl.error set."""
    if collection.rows != 0 or collection.base.offsets.address != 0 or count < MIN_ORDERED_ROWS or collection.unkeyed != 0:
        return True
    for source in range(count):
        if diffs[source * step] <= 0:
            return True
    key = ordered_key(columns, step, collection.arity, count)
    if key < 0:
        return True
    offsets = Numbers(resize(ctl, 0, 0, offset_room(0) * 4))
    if not offsets:
        return False
    offsets[0] = 0
    base = collection.base
    base.offsets = offsets
    base.key = key
    base.low = columns[key][0]
    base.keys = 0
    base.dead = 0
    return True


@kernel
def follows_base(collection: Collection, columns: WordColumns, step, source, buffer: Words):
    """Whether a row of columns is behind all of the base, and close enough. `buffer` has room for a row."""
    base = collection.base
    value = columns[base.key][source * step]
    if value < base.low + base.keys - 1 or not is_close(collection, value, 1):
        return False
    if base.rows == 0 or value >= base.low + base.keys:
        return True
    for c in range(collection.arity):
        buffer[c] = columns[c][source * step]
    return compare_base(collection, base.rows - 1, buffer) < 0


@kernel
def is_close(collection: Collection, value, more):
    """Whether a key is one that a base may have with so many more rows: offsets take memory for each."""
    base = collection.base
    return base.low <= value <= 2147483647 and value - base.low < (base.rows + more) * KEYS_PER_ROW


@kernel
def count_following(collection: Collection, columns: WordColumns, step, diffs: Words, first, count, buffer: Words):
    """How many of the changes [first, count) are rows that come, each behind the one before, and the first behind the base."""
    if diffs[first * step] <= 0 or not follows_base(collection, columns, step, first, buffer):
        return 0
    key = collection.base.key
    keys = columns[key]
    source = first + 1
    while source < count and diffs[source * step] > 0:
        value = keys[source * step]
        former = keys[(source - 1) * step]
        if value < former or (value == former and not is_behind(columns, step, collection.arity, key, source)):
            break
        if not is_close(collection, value, source - first + 1):
            break
        source += 1
    return source - first


@kernel
def count_others(collection: Collection, columns: WordColumns, step, diffs: Words, first, count, buffer: Words):
    """How many of the changes [first, count) there are up to the first row, but that at `first`, that follows the base."""
    source = first + 1
    while source < count and (diffs[source * step] <= 0 or not follows_base(collection, columns, step, source, buffer)):
        source += 1
    return source - first


@kernel
def room_for_keys(ctl: Control, collection: Collection, last):
    """Makes room for offsets of keys up to a last one, which have no rows yet; false with ctl.error set."""
    base = collection.base
    keys = max(last - base.low + 1, base.keys)
    room = offset_room(base.keys)
    wanted = offset_room(keys)
    offsets = base.offsets
    if wanted != room:
        offsets = Numbers(resize(ctl, base.offsets.address, room * 4, wanted * 4))
        if not offsets:
            return False
        base.offsets = offsets
    for group in range(base.keys + 1, keys + 1):
        offsets[group] = base.rows
    base.keys = keys
    return True


@kernel
def note_keys(collection: Collection, keys: Words, step, first, n):
    """Makes n rows, which are those behind the base, rows of it: they have keys from one of a column on, which there is room
    for."""
    base = collection.base
    offsets = base.offsets
    low = base.low
    row = base.rows
    group = keys[first * step] - low
    for source in range(first, first + n):
        following = keys[source * step] - low
        while group < following:
            group += 1
            offsets[group] = row
        row += 1
    for behind in range(group + 1, base.keys + 1):
        offsets[behind] = row
    base.rows = row
