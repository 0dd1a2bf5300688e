"""What updates of some rounds come to, row by row: which updates these are, and their sums in a hash table.

The table is often larger than the cache. So slots are asked for some updates before they are looked at, then the entries that
these name: memory answers while others are looked at.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import bit_length, prefetch, wrapped_product
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.static.hashes import home
from dlog.engine.kernels.static.storage import behind, mix
from dlog.engine.kernels.trace.layers import load_stored, load_value, width_of
from dlog.engine.kernels.trace_structs import Layers, NetChanges

_SLOTS_PER_ENTRY = 2
"""Slots of a hash table: few, for they are to be in the cache, and most rows of a table have gone by the filter."""
_FILTER_BITS, _MAX_FILTER_BITS = 64, 1 << 23
"""Bits at least, for an entry or a row of the table, of the filter by which most rows of a table go: few of those that stay
have another's bits, and it fits the cache."""
WORDS_PER_ENTRY = 4
"""Words of memory for an entry at most, besides its columns: its sum, its slots, and its part of the filter."""
AHEAD = 8
"""Updates, or rows, between one whose slot is asked for, one whose entry is, and one that is looked at."""
SCRATCH = 1024
"""Words of memory for what is known of rows that are looked at next."""
_RING = SCRATCH - 1
_FACTOR = -7046029254386353131
"""Odd, its bits without a pattern: 2^64 divided by the golden ratio."""
_ROW = 0xFFFFFFFF
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


@kernel
def pick_all(layers: Layers, count, after, upto, picked: Words):
    """Picks in one part: each update is written, and stays where another one follows it. Which of a few rounds an update is of
    no processor can guess."""
    found = 0
    for k in range(count):
        layer = layers[k]
        field = layer.fields[layer.arity]
        first, data, width = k << 32, field.data, field.width
        if width == 4 and upto == after + 1:
            numbers = Numbers(data)
            for row in range(layer.rows):
                picked[found] = first | row
                found += numbers[row] == upto
        elif width == 4:
            numbers = Numbers(data)
            for row in range(layer.rows):
                picked[found] = first | row
                found += (numbers[row] > after) & (numbers[row] <= upto)
        else:
            for row in range(layer.rows):
                round = load_stored(data, width, row)
                picked[found] = first | row
                found += (round > after) & (round <= upto)
    return found


@entry()
def pick_updates(layers: Layers, count, after, upto, parts, ends: Words, picked: Words):
    """Writes where the updates of the rounds after one up to another are, the number of the layer times 2^32 plus the row, and
    returns how many there are. The rounds are in equal parts, those of the first part come first: `ends`, zeros for all and
    one, becomes where each part ends. `picked` has room for all updates of the layers and one; their times are rounds."""
    if parts == 1:
        ends[0] = pick_all(layers, count, after, upto, picked)
        return ends[0]
    _count_parts(layers, count, after, upto, parts, ends)
    for k in range(count):
        layer = layers[k]
        field = layer.fields[layer.arity]
        data, width = field.data, field.width
        for row in range(layer.rows):
            round = load_stored(data, width, row)
            if after < round <= upto:
                part = (round - after - 1) * parts // (upto - after)
                picked[ends[part]] = k << 32 | row
                ends[part] += 1
    return ends[parts - 1]


# ------------------------------------------------------------------------------------------------------------ adding up


@kernel
def next_slot(slot, count):
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
def warm_slot(net: NetChanges, hashed):
    """Asks for the slot where a row of this hash is looked for."""
    prefetch(net.slots.address + home(hashed, net.slot_count) * 4)


@kernel
def warm_entry(net: NetChanges, hashed):
    """Asks for the entry that the slot names."""
    number = net.slots[home(hashed, net.slot_count)]
    if number != 0:
        prefetch(net.entries.address + (number - 1) * (net.arity + 1) * 8)


@kernel
def _hash_update(net: NetChanges, picked):
    """The hash of the row of a picked update."""
    layer, row = net.layers[picked >> 32], picked & _ROW
    hashed = 0
    for c in range(net.arity):
        hashed = mix(hashed, load_value(layer, c, row))
    return hashed


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
        slot = next_slot(slot, slot_count)
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
        if most * step >= count:  # no value comes twice
            break
    return best


@kernel
def spot(value, mask):
    """The first bit by which a filter says whether it has a value: it has one more of them than `mask`, a power of two."""
    return (wrapped_product(value, _FACTOR) >> 40) & mask


@kernel
def second_spot(value, mask):
    """Another bit, which is looked at where it has the first one."""
    return (wrapped_product(value, _FACTOR) >> 16) & mask


@kernel
def _set(filter: Words, bit):
    filter[bit >> 6] |= 1 << (bit & 63)


@kernel
def is_spotted(filter: Words, bit):
    return filter[bit >> 6] >> (bit & 63) & 1


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
            _set(filter, spot(entries[at + column], mask))
            _set(filter, second_spot(entries[at + column], mask))
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


@kernel
def _lay_out(net: NetChanges, memory: Words, entries, rows):
    """Makes room for so many entries, with empty slots and an empty filter."""
    net.scratch = memory
    net.entries = behind(memory, SCRATCH)
    slots = behind(net.entries, entries * (net.arity + 1))
    filter = behind(slots, entries * _SLOTS_PER_ENTRY // 2)
    bits = min(1 << bit_length(_FILTER_BITS * min(entries, rows) | 63), _MAX_FILTER_BITS)
    net.slots, net.slot_count = Numbers(slots.address), _SLOTS_PER_ENTRY * entries
    net.filter, net.mask = filter, bits - 1
    for word in range(entries * _SLOTS_PER_ENTRY // 2):
        slots[word] = 0
    for word in range(bits >> 6):
        filter[word] = 0


@kernel
def _add_update(net: NetChanges, picked, hashed, count):
    """Adds a picked update, whose row has this hash, to the entries; returns how many there are."""
    layer, row = net.layers[picked >> 32], picked & _ROW
    entries, arity = net.entries, net.arity
    at, diff = count * (arity + 1), load_value(layer, arity + layer.depth, row)
    for c in range(arity):
        entries[at + c] = load_value(layer, c, row)
    if net.once != 0 and (diff > 0) != (net.sign > 0):  # nobody looks for a row that comes
        entries[at + arity] = diff
        return count + 1
    return _add(net, at, hashed, diff, count)


@entry()
def add_up(net: NetChanges, picked: Words, start, end, memory: Words, rows):
    """Adds up the picked updates from `start` on, before `end`, which are to change a table of so many rows. Memory has
    WORDS_PER_ENTRY words for each update, one more for each column, and SCRATCH."""
    _lay_out(net, memory, end - start, rows)
    hashes = net.scratch
    count = 0
    for at in range(start, end + 2 * AHEAD):
        if at < end:
            hashes[at & _RING] = _hash_update(net, picked[at])
            warm_slot(net, hashes[at & _RING])
        if start <= at - AHEAD < end:
            warm_entry(net, hashes[(at - AHEAD) & _RING])
        added = at - 2 * AHEAD
        if added >= start:
            count = _add_update(net, picked[added], hashes[added & _RING], count)
    _sort_out(net, count)
