"""Rows of a table as of another round: the table without what updates in between come to, or with that.

Most rows of a table are in no update: they go by two bits of one of their values in a filter, without a look at the hash table.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import copy_bytes
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.static.hashes import home
from dlog.engine.kernels.static.storage import behind, mix
from dlog.engine.kernels.trace.adding_up import (
    AHEAD,
    LAST_BIT,
    SCRATCH,
    add_up,
    is_spotted,
    next_slot,
    pick_all,
    second_spot,
    spot,
    warm_entry,
    warm_slot,
)
from dlog.engine.kernels.trace.layers import load_stored
from dlog.engine.kernels.trace_structs import NetChanges, StoredColumns

STEP = SCRATCH // 2
"""Rows of a table that are looked at together."""
MANY, UNCHANGED, NEEDS_ROOM = -1, -2, -3
"""What `change_at_once` returns where it has changed nothing: there are too many updates, or none, or what they come to has no
room."""


@kernel
def _hash_row(net: NetChanges, columns: StoredColumns, row):
    hashed = 0
    for c in range(net.arity):
        hashed = mix(hashed, load_stored(columns[c].data, columns[c].width, row))
    return hashed


@kernel
def _has_gone(net: NetChanges, columns: StoredColumns, row, hashed):
    """Whether the entry of a row with this hash says that it goes."""
    slots, count, entries, arity = net.slots, net.slot_count, net.entries, net.arity
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
def _list_spotted(net: NetChanges, columns: StoredColumns, low, high, found: Words):
    """Lists those of rows [low, high), from the last one on, whose value the filter has; returns how many these are. No branch:
    which rows they are cannot be foretold."""
    data, width, filter, mask = columns[net.column].data, columns[net.column].width, net.filter, net.mask
    count = 0
    if width == 4:
        numbers = Numbers(data)
        for row in range(high - 1, low - 1, -1):
            found[count] = row
            count += is_spotted(filter, spot(numbers[row], mask))
    else:
        words = Words(data)
        for row in range(high - 1, low - 1, -1):
            found[count] = row
            count += is_spotted(filter, spot(words[row], mask))
    both = 0
    for k in range(count):
        found[both] = found[k]
        both += is_spotted(filter, second_spot(load_stored(data, width, found[k]), mask))
    return both


@kernel
def _list_gone(net: NetChanges, columns: StoredColumns, low, high, rows: Words):
    """Lists those of rows [low, high), from the last one on, that go; returns how many these are."""
    hashes = behind(rows, STEP)
    count, gone = _list_spotted(net, columns, low, high, rows), 0
    if count == 0:
        return 0
    for at in range(count + 2 * AHEAD):
        if at < count:
            hashes[at] = _hash_row(net, columns, rows[at])
            warm_slot(net, hashes[at])
        if 0 <= at - AHEAD < count:
            warm_entry(net, hashes[at - AHEAD])
        sought = at - 2 * AHEAD
        if sought >= 0:
            row = rows[sought]
            rows[gone] = row
            gone += 1 if _has_gone(net, columns, row, hashes[sought]) else 0
    return gone


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
def _move_row(net: NetChanges, columns: StoredColumns, row, to):
    for c in range(net.arity):
        _store(columns, c, to, load_stored(columns[c].data, columns[c].width, row))


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
    coming, left, high = _next_coming(net, 0), net.gone, rows
    while high > 0 and left > 0:
        low = max(high - STEP, 0)
        gone = _list_gone(net, columns, low, high, net.scratch)
        for k in range(gone):
            if coming < net.entry_count:
                _write_entry(net, columns, coming, net.scratch[k])
                coming = _next_coming(net, coming + 1)
            else:
                rows -= 1
                _move_row(net, columns, rows, net.scratch[k])
        left -= gone
        high = low
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
