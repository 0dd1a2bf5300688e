"""Rows of a table as of another round: which updates lie in between, what they come to, and the table without these, or with.

Most rows of a table are in no update: they go by a byte of one of their values in a filter, without a look at the hash table.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_u8, store_u8, wrapped_product
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.static.hashes import home
from dlog.engine.kernels.static.storage import mix
from dlog.engine.kernels.trace.layers import load_stored, load_value, width_of
from dlog.engine.kernels.trace_structs import Layers, NetChanges, StoredColumns

_FACTOR = -7046029254386353131
"""Odd, its bits without a pattern: 2^64 divided by the golden ratio."""
_SAMPLE = 32
"""Entries that are looked at for the column to filter by."""
LAST_BIT = 62
"""Of a word that has a bit for each column: this one stands for all others."""


# -------------------------------------------------------------------------------------------------------------- picking


@kernel
def _count_parts(layers: Layers, count, after, upto, parts, ends: Words):
    """Writes where each part of the rounds begins among the updates."""
    for k in range(count):
        layer = layers[k]
        field = layer.fields[layer.arity]
        data, width = field.data, field.width
        for row in range(layer.rows):
            round = load_stored(data, width, row)
            if after < round <= upto:
                ends[(round - after - 1) * parts // (upto - after) + 1] += 1
    for part in range(parts):
        ends[part + 1] += ends[part]


@entry()
def pick_updates(layers: Layers, count, after, upto, parts, ends: Words, picked: Words):
    """Writes where the updates of the rounds after one up to another are, the number of the layer times 2^32 plus the row, and
    returns how many there are. The rounds are in equal parts, those of the first part come first: `ends`, zeros for all and
    one, becomes where each part ends. `picked` has room for all updates of the layers; their times are rounds."""
    if parts > 1:
        _count_parts(layers, count, after, upto, parts, ends)
    for k in range(count):
        layer = layers[k]
        field = layer.fields[layer.arity]
        data, width = field.data, field.width
        for row in range(layer.rows):
            round = load_stored(data, width, row)
            if after < round <= upto:
                part = (round - after - 1) * parts // (upto - after) if parts > 1 else 0
                picked[ends[part]] = k << 32 | row
                ends[part] += 1
    return ends[parts - 1]


# ------------------------------------------------------------------------------------------------------------ adding up


@kernel
def _next(slot, count):
    """The slot after one, around the end."""
    return 0 if slot + 1 == count else slot + 1


@kernel
def _equal(entries: Words, one, other, arity):
    """Whether two entries, which begin at these words, are of the same row."""
    for c in range(arity):
        if entries[one + c] != entries[other + c]:
            return False
    return True


@kernel
def _add(net: NetChanges, at, hashed, diff, count):
    """Adds a diff to the entry of a row that lies at the word `at`, where it becomes the next one if there is none yet; returns
    how many there are."""
    slots, slot_count, entries, arity = net.slots, net.slot_count, net.entries, net.arity
    slot = home(hashed, slot_count)
    while slots[slot] != 0:
        other = (slots[slot] - 1) * (arity + 1)
        if _equal(entries, at, other, arity):
            entries[other + arity] += diff
            return count
        slot = _next(slot, slot_count)
    slots[slot] = count + 1
    entries[at + arity] = diff
    return count + 1


@kernel
def _most_selective(entries: Words, count, arity):
    """The column with the most values, of entries all over."""
    step, best, most = count // _SAMPLE + 1, 0, 0
    for c in range(arity):
        values = 0
        for e in range(0, count, step):
            value, before = entries[e * (arity + 1) + c], 0
            while before < e and entries[before * (arity + 1) + c] != value:
                before += step
            values += before >= e
        if values > most:
            best, most = c, values
    return best


@kernel
def _spot(value, mask):
    """Where a filter says whether it has a value: in the lower bits, which `mask` has, of its hash."""
    return (wrapped_product(value, _FACTOR) >> 40) & mask


@kernel
def _sort_out(net: NetChanges, count):
    """Says which of so many entries go and come."""
    entries, arity, sign, filter, mask = net.entries, net.arity, net.sign, net.filter, net.mask
    column = _most_selective(entries, count, arity)
    gone, came, wide = 0, 0, 0
    for e in range(count):
        at = e * (arity + 1)
        diff = entries[at + arity]
        if diff == 0:
            continue
        if (diff > 0) == (sign > 0):
            gone += 1
            store_u8(filter, _spot(entries[at + column], mask), 1)
        else:
            came += 1
            for c in range(arity):
                if width_of(entries[at + c], entries[at + c]) == 8:
                    wide |= 1 << min(c, LAST_BIT)
    net.entry_count = count
    net.column = column
    net.gone = gone
    net.came = came
    net.wide = wide


@entry()
def add_up(net: NetChanges, picked: Words, start, end):
    """Adds up the picked updates from `start` on, before `end`. There is room for as many entries, and twice as many slots at
    least, which are zeros, as is the filter."""
    layers, entries, arity = net.layers, net.entries, net.arity
    count = 0
    for i in range(start, end):
        layer, row = layers[picked[i] >> 32], picked[i] & 0xFFFFFFFF
        at, hashed = count * (arity + 1), 0
        for c in range(arity):
            value = load_value(layer, c, row)
            entries[at + c] = value
            hashed = mix(hashed, value)
        count = _add(net, at, hashed, load_value(layer, arity + layer.depth, row), count)
    _sort_out(net, count)


# ------------------------------------------------------------------------------------------------------------- changing


@kernel
def _goes(net: NetChanges, columns: StoredColumns, row):
    """Whether a row is one of those that go."""
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
        slot = _next(slot, count)
    return False


@kernel
def _before_spotted(data, width, row, filter, mask):
    """The last row before `row` whose value the filter has; -1 where there is none."""
    row -= 1
    if width == 4:
        numbers = Numbers(data)
        while row >= 0 and load_u8(filter, _spot(numbers[row], mask)) == 0:
            row -= 1
    else:
        words = Words(data)
        while row >= 0 and load_u8(filter, _spot(words[row], mask)) == 0:
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


@entry()
def change_rows(net: NetChanges, columns: StoredColumns, rows, room):
    """Changes a table of so many rows, each there once, by what `add_up` has found; returns how many it has then, no more than
    `room`. Rows that come, and the last ones, go where others have gone: so rows are looked at from the end on."""
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
