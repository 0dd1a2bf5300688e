"""Sums of diffs by key in a hash table, at totally ordered times: no history, only what has been added up so far.

Updates are added in *groups*, of a key at a round: `noted` has two words for each, its entry and its round, and `sums` the sums
of all components before it, then those after it.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.static.hashes import ROWS_AHEAD, home
from dlog.engine.kernels.static.storage import behind, copy_words, mix
from dlog.engine.kernels.trace.layers import describe_block, load_value
from dlog.engine.kernels.trace_structs import LayerHeader, SumTable

NEAR_SLOTS = 1 << 14
"""Slots up to which a table is in the cache."""


@kernel
def _words_of(table: SumTable, place) -> Words:
    return behind(table.words, place * (table.keys + table.components + 1))


@kernel
def _has_key(words: Words, keys, updates: LayerHeader, row):
    for c in range(keys):
        if words[c] != load_value(updates, c, row):
            return False
    return True


@kernel
def _home_of(table: SumTable, updates: LayerHeader, row):
    """The slot where the key of a row is looked for first."""
    hashed = 0
    for c in range(table.keys):
        hashed = mix(hashed, load_value(updates, c, row))
    return home(hashed, table.slot_count)


@kernel
def _ask_ahead(table: SumTable, updates: LayerHeader, row):
    """Asks memory for a slot that a later row needs, and for the words that the slot of a nearer one names."""
    if row + 2 * ROWS_AHEAD < updates.rows:
        prefetch(table.slots.address + 4 * _home_of(table, updates, row + 2 * ROWS_AHEAD))
    if row + ROWS_AHEAD < updates.rows:
        named = table.slots[_home_of(table, updates, row + ROWS_AHEAD)]
        if named != 0:
            prefetch(_words_of(table, named - 1).address)


@kernel
def _slot_of(table: SumTable, updates: LayerHeader, row):
    """The slot of the key of a row, or the empty one where it would be."""
    count, slots, slot = table.slot_count, table.slots, _home_of(table, updates, row)
    while slots[slot] != 0 and not _has_key(_words_of(table, slots[slot] - 1), table.keys, updates, row):
        slot = 0 if slot + 1 == count else slot + 1
    return slot


@kernel
def _enter(table: SumTable, slot, updates: LayerHeader, row):
    """Adds an entry for the key of a row, whose sums are 0."""
    place = table.entries
    words = _words_of(table, place)
    for c in range(table.keys):
        words[c] = load_value(updates, c, row)
    for c in range(table.keys, table.keys + table.components + 1):
        words[c] = 0
    table.slots[slot] = place + 1
    table.entries = place + 1
    table.zeros += 1


@kernel
def _all_zero(sums: Words, components):
    for c in range(components):
        if sums[c] != 0:
            return False
    return True


@kernel
def _end_group(table: SumTable, words: Words, group, sums: Words):
    """Writes the sums of an entry as those after a group."""
    components = table.components
    before, now = behind(sums, 2 * group * components), behind(words, table.keys)
    copy_words(behind(before, components), now, components)
    table.zeros += (1 if _all_zero(now, components) else 0) - (1 if _all_zero(before, components) else 0)


@entry()
def add_to_sums(table: SumTable, updates: LayerHeader, block, total, noted: Words, sums: Words):
    """Adds updates, of each key in ascending order of rounds, from `table.row` on: those described as a layer is, or `total`
    that lie in a block, which are described first. With several components the column behind the key says to which one a diff
    belongs. Returns 1, or 0 where the table has to grow first (`move_sums`). There is room for as many groups as updates."""
    if block != 0:
        describe_block(updates, block, total, table.keys + (2 if table.components > 1 else 0), 1)
    keys, components = table.keys, table.components
    rows, diff, last = updates.rows, updates.arity + updates.depth, keys + components
    for row in range(table.row, rows):
        if table.slot_count > NEAR_SLOTS:
            _ask_ahead(table, updates, row)
        slot = _slot_of(table, updates, row)
        if table.slots[slot] == 0:
            if table.entries == table.capacity:
                table.row = row
                return 0
            _enter(table, slot, updates, row)
        place, round = table.slots[slot] - 1, load_value(updates, updates.arity, row)
        words = _words_of(table, place)
        group = words[last] - 1
        if group < 0 or noted[2 * group + 1] != round:
            if group >= 0:
                _end_group(table, words, group, sums)
            group = table.groups
            table.groups = group + 1
            words[last] = group + 1
            noted[2 * group] = place
            noted[2 * group + 1] = round
            copy_words(behind(sums, 2 * group * components), behind(words, keys), components)
        words[keys + (load_value(updates, keys, row) if components > 1 else 0)] += load_value(updates, diff, row)
    for group in range(table.groups):
        words = _words_of(table, noted[2 * group])
        if words[last] == group + 1:
            _end_group(table, words, group, sums)
            words[last] = 0
    return 1


@entry()
def move_sums(table: SumTable, target: SumTable, noted: Words):
    """Moves the entries that have sums, or a group, to an empty table with room for all of them, whose slots are 0. Old entries
    are written to."""
    keys, components, last = table.keys, table.components, table.keys + table.components
    count, slots = target.slot_count, target.slots
    at = 0
    for place in range(table.entries):
        words = _words_of(table, place)
        if words[last] == 0 and _all_zero(behind(words, keys), components):
            continue
        hashed = 0
        for c in range(keys):
            hashed = mix(hashed, words[c])
        slot = home(hashed, count)
        while slots[slot] != 0:
            slot = 0 if slot + 1 == count else slot + 1
        slots[slot] = at + 1
        copy_words(_words_of(target, at), words, last + 1)
        words[last] = at
        at += 1
    for group in range(table.groups):
        noted[2 * group] = _words_of(table, noted[2 * group])[last]
    target.entries = at
    target.zeros = table.zeros - (table.entries - at)
    target.row = table.row
    target.groups = table.groups


@kernel
def _diff_of(sums: Words, components, diffs: Words, side):
    """How often the row is there before a group, or after it."""
    if diffs:
        return diffs[side]
    return 0 if _all_zero(behind(sums, side * components), components) else 1


@entry()
def write_sum_changes(table: SumTable, noted: Words, sums: Words, shown, diffs: Words, found: Words):
    """What changes in each group, where its key has one row as outcome: the first `shown` sums and a diff, none where that is
    0. There are two `diffs` for each group, before and after; without any, a row is there once unless all sums are 0. Writes
    keys, sums, rounds and diffs, each with room for two changes a group; returns how many there are."""
    keys, components, at, room = table.keys, table.components, 0, 2 * table.groups
    for group in range(table.groups):
        first = 2 * group
        same = _diff_of(sums, components, diffs, first) == _diff_of(sums, components, diffs, first + 1)
        for c in range(shown):
            same = same and sums[first * components + c] == sums[(first + 1) * components + c]
        if same:
            continue
        words, round = _words_of(table, noted[first]), noted[first + 1]
        for side in range(2):
            diff = _diff_of(sums, components, diffs, first + side)
            if diff != 0:
                for c in range(keys):
                    found[c * room + at] = words[c]
                for c in range(shown):
                    found[(keys + c) * room + at] = sums[(first + side) * components + c]
                found[(keys + shown) * room + at] = round
                found[(keys + shown + 1) * room + at] = diff if side == 1 else -diff
                at += 1
    return at


@entry()
def change_sums(table: SumTable, updates: LayerHeader, block, total, noted: Words, sums: Words, shown, found: Words):
    """Adds updates and writes what changes where a row is there once unless all sums are 0; returns how many changes there are,
    -1 where the table has to grow first."""
    if add_to_sums(table, updates, block, total, noted, sums) == 0:
        return -1
    return write_sum_changes(table, noted, sums, shown, Words(0), found)
