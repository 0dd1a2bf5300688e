"""Equal updates taken together in one pass, by a hash table: in the order in which they come first.

Updates are fields of words: columns, coordinates, diffs, and then their weights, a column for each of some *components*.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.machine_structs import Numbers, WordColumns, Words
from dlog.engine.kernels.static.hashes import home
from dlog.engine.kernels.static.storage import behind, clear_words, mix
from dlog.engine.kernels.trace_structs import EqualSums, VariedFields

_SIZE = EqualSums.place.size
HEAVY = 2.0**62
"""Sums that cannot come to as much do not need more than 64 bits."""


@kernel
def largest_size(words: Words, rows):
    """A word with the bits of all sizes of words: no size is greater, but that of the least word, for which it stands."""
    bits = 0
    for row in range(rows):
        bits |= words[row] ^ (words[row] >> 63)
    return bits


@kernel
def float_size(bits):
    """At least as much as the sizes that `largest_size` has found."""
    return float(bits) + 1.0


@kernel
def _vary(updates: WordColumns, rows, fields, varied: VariedFields, limit):
    """Finds the fields that vary; returns how many there are, and the words for all, 0 where these are more than `limit`."""
    count, words, dense = 0, 1, True
    for f in range(fields):
        field = updates[f]
        low = high = field[0]
        for row in range(1, rows):
            low, high = min(low, field[row]), max(high, field[row])
        if low < high:
            each = varied[count]
            each.field = f
            each.low = low
            each.stride = words
            count += 1
            if np.uint64(high) - np.uint64(low) >= np.uint64(limit // words):
                dense = False
            if dense:
                words *= high - low + 1
    return count, words if dense else 0


@kernel
def _dense_slots(updates: WordColumns, rows, varied: VariedFields, count, places: Words):
    """Writes for each update the word that tells the fields that vary."""
    clear_words(places, rows)
    for k in range(count):
        field, low, stride = updates[varied[k].field], varied[k].low, varied[k].stride
        for row in range(rows):
            places[row] += (field[row] - low) * stride


@kernel
def _hashed_slot(updates: WordColumns, row, varied: VariedFields, fields, slots: Numbers, count, firsts: Words):
    """The slot of the group that a row is of, at the same time, or the empty one where it is the first of another."""
    hashed = 0
    for k in range(fields):
        hashed = mix(hashed, updates[varied[k].field][row])
    slot = home(hashed, count)
    while slots[slot] != 0:
        other, equal = firsts[slots[slot] - 1], True
        for k in range(fields):
            field = updates[varied[k].field]
            if field[other] != field[row]:
                equal = False
                break
        if equal:
            return slot
        slot = 0 if slot + 1 == count else slot + 1
    return slot


@kernel
def _group(updates: WordColumns, rows, fields, found: EqualSums):
    """Writes the first of each group of updates with equal rows and times, and of each update the number of its group; returns
    how many groups there are."""
    groups, count, slots, firsts, places = 0, 2 * rows + 1, found.slots, found.firsts, found.places
    varied, words = _vary(updates, rows, fields, found.varied, count)
    clear_words(Words(slots.address), (words if words > 0 else count) // 2 + 1)
    if words > 0:
        _dense_slots(updates, rows, found.varied, varied, places)
    for row in range(rows):
        slot = places[row] if words > 0 else _hashed_slot(updates, row, found.varied, varied, slots, count, firsts)
        if slots[slot] == 0:
            firsts[groups] = row
            groups += 1
            slots[slot] = groups
        places[row] = slots[slot] - 1
    return groups


@kernel
def _may_be_heavy(updates: WordColumns, diffs, rows, components):
    """Whether a sum of weights times diffs may need more than 64 bits."""
    size = float(rows) * float_size(largest_size(updates[diffs], rows))
    for c in range(components):
        if size * float_size(largest_size(updates[diffs + 1 + c], rows)) >= HEAVY:
            return True
    return False


@entry()
def sum_equal_updates(updates: WordColumns, rows, arity, depth, components, checked, scratch: Words, room, parts: Words):
    """Sums for each group of updates with equal rows and times each component's weight times the diff. Returns how many sums
    are not 0, and writes them (`write_equal_sums`) where there is room for so many; or -1 where some may need more than 64
    bits, and it has not been `checked` that they do not. `scratch` has the words of an `EqualSums`, (components + 3) more an
    update, one, and a `Varied` for each column and coordinate."""
    fields, count = arity + depth, 0
    if checked == 0 and _may_be_heavy(updates, fields, rows, components):
        return -1
    found = EqualSums(scratch.address)
    found.firsts = behind(scratch, _SIZE)
    found.places = behind(found.firsts, rows)
    found.sums = behind(found.places, rows)
    found.slots = Numbers(behind(found.sums, components * rows).address)
    found.varied = VariedFields(behind(found.sums, (components + 1) * rows + 1).address)
    groups = _group(updates, rows, fields, found)
    found.groups = groups
    sums, places, diffs = found.sums, found.places, updates[fields]
    clear_words(sums, groups * components)
    for row in range(rows):
        at, times = places[row] * components, diffs[row]
        for c in range(components):
            sums[at + c] += updates[fields + 1 + c][row] * times
    for k in range(groups * components):
        count += 1 if sums[k] != 0 else 0
    if count <= room:
        write_equal_sums(updates, arity, depth, components, scratch, count, parts)
    return count


@entry()
def write_equal_sums(updates: WordColumns, arity, depth, components, scratch: Words, room, parts: Words):
    """Writes each sum that is not 0 as an update of the row with two columns behind, the component and 0; groups in the order
    of their first ones. Each field of `parts` has as much room as there are such sums."""
    found, at = EqualSums(scratch.address), 0
    firsts, sums = found.firsts, found.sums
    for group in range(found.groups):
        row = firsts[group]
        for c in range(components):
            total = sums[group * components + c]
            if total != 0:
                for f in range(arity):
                    parts[f * room + at] = updates[f][row]
                parts[arity * room + at] = c
                parts[(arity + 1) * room + at] = 0
                for f in range(arity, arity + depth):
                    parts[(f + 2) * room + at] = updates[f][row]
                parts[(arity + depth + 2) * room + at] = total
                at += 1
