"""Rows of a table as of another round: the table without what updates in between come to, or with that.

Most rows of a table are in no update: they go by two bits of one of their values in a filter, without a look at the hash table.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import copy_bytes
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.static.hashes import home
from dlog.engine.kernels.static.storage import behind, mix
from dlog.engine.kernels.trace.adding_up import LAST_BIT, add_up, is_spotted, next_slot, pick_all, second_spot, spot
from dlog.engine.kernels.trace.layers import load_stored
from dlog.engine.kernels.trace_structs import NetChanges, StoredColumns

MANY, UNCHANGED, NEEDS_ROOM = -1, -2, -3
"""What `change_at_once` returns where it has changed nothing: there are too many updates, or none, or what they come to has no
room."""


@kernel
def _goes(net: NetChanges, columns: StoredColumns, row):
    """Whether a row whose first bit the filter has is one of those that go."""
    value = load_stored(columns[net.column].data, columns[net.column].width, row)
    return is_spotted(net.filter, second_spot(value, net.mask)) != 0 and _has_gone(net, columns, row)


@kernel
def _has_gone(net: NetChanges, columns: StoredColumns, row):
    """Whether the entry of a row says that it goes."""
    slots, count, entries, arity = net.slots, net.slot_count, net.entries, net.arity
    hashed = 0
    for c in range(arity):
        hashed = mix(hashed, load_stored(columns[c].data, columns[c].width, row))
    slot = home(hashed, count)
    while slots[slot] != 0:
        at = (slots[slot] - 1) * (arity + 1)
        equal = True
        for c in range(arity):
            if entries[at + c] != load_stored(columns[c].data, columns[c].width, row):
                equal = False
                break
        if equal:
            diff = entries[at + arity]
            return diff != 0 and (diff > 0) == (net.sign > 0)
        slot = next_slot(slot, count)
    return False


@kernel
def _before_spotted(data, width, row, filter: Words, mask):
    """The last row before `row` whose value the filter has; -1 where there is none."""
    row -= 1
    if width == 4:
        numbers = Numbers(data)
        while row >= 0 and not is_spotted(filter, spot(numbers[row], mask)):
            row -= 1
    else:
        words = Words(data)
        while row >= 0 and not is_spotted(filter, spot(words[row], mask)):
            row -= 1
    return row


@kernel
def _store(columns: StoredColumns, c, row, value):
    column = columns[c]
    if column.width == 4:
        Numbers(column.data)[row] = value
    else:
        Words(column.data)[row] = value


@kernel
def _next_coming(net: NetChanges, entry):
    """The first entry from `entry` on that comes; how many there are if none does."""
    entries, arity = net.entries, net.arity
    while entry < net.entry_count:
        diff = entries[entry * (arity + 1) + arity]
        if diff != 0 and (diff > 0) != (net.sign > 0):
            break
        entry += 1
    return entry


@kernel
def _write_entry(net: NetChanges, columns: StoredColumns, entry, row):
    for c in range(net.arity):
        _store(columns, c, row, net.entries[entry * (net.arity + 1) + c])


@kernel
def _copy_columns(source: StoredColumns, target: StoredColumns, columns, rows):
    """Copies so many rows, column by column, to where they are not yet; values of 4 bytes may become wider."""
    for c in range(columns):
        data, width, to = source[c].data, source[c].width, target[c].data
        if data == to:
            continue
        if width == target[c].width:
            copy_bytes(to, data, width * rows)
        else:
            words, numbers = Words(to), Numbers(data)
            for row in range(rows):
                words[row] = numbers[row]


@entry()
def change_rows(net: NetChanges, source: StoredColumns, columns: StoredColumns, rows, room):
    """Copies a table of so many rows, each there once, and changes it by what `add_up` has found; returns how many it has then,
    no more than `room`, which is at least as many as there are now. Rows that come, and the last ones, go where others have
    gone: so rows are looked at from the end on."""
    _copy_columns(source, columns, net.arity, rows)
    coming, left = _next_coming(net, 0), net.gone
    data, width = columns[net.column].data, columns[net.column].width
    row = _before_spotted(data, width, rows, net.filter, net.mask) if left else -1
    while row >= 0:
        if _goes(net, columns, row):
            left -= 1
            if coming < net.entry_count:
                _write_entry(net, columns, coming, row)
                coming = _next_coming(net, coming + 1)
            else:
                rows -= 1
                for c in range(net.arity):
                    _store(columns, c, row, load_stored(columns[c].data, columns[c].width, rows))
            if not left:
                break
        row = _before_spotted(data, width, row, net.filter, net.mask)
    while coming < net.entry_count and rows < room:
        _write_entry(net, columns, coming, rows)
        coming = _next_coming(net, coming + 1)
        rows += 1
    return rows


@kernel
def _has_room(net: NetChanges, columns: StoredColumns):
    """Whether columns take what comes, where there is room for as many rows as there are."""
    if net.came > net.gone:
        return False
    if net.wide:
        for c in range(net.arity):
            if columns[c].width == 4 and net.wide >> min(c, LAST_BIT) & 1:
                return False
    return True


@entry()
def change_at_once(
    net: NetChanges, count, after, upto, memory: Words, most, source: StoredColumns, columns: StoredColumns, rows
):
    """Picks, adds up and changes in one go: as calls from Python these take longer than a few updates do. `net` has so many
    layers, and is filled up to `once`. Memory is for all updates of the layers and one, and for what `add_up` makes of `most`
    after as many."""
    picked = pick_all(net.layers, count, after, upto, memory)
    if picked > most:
        return MANY
    if picked == 0:
        return UNCHANGED
    add_up(net, memory, 0, picked, behind(memory, picked), rows)
    if not _has_room(net, columns):
        return NEEDS_ROOM
    return change_rows(net, source, columns, rows, rows)
