"""Reductions: which keys are looked at when, the rows of their groups or the sums of their diffs, what changes in the outcome.

The *active* rounds of probe p, numbers of keys, lie from `active[p]` up to `active[p + 1]`, and ascend.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.static.storage import behind
from dlog.engine.kernels.trace.layers import load_value
from dlog.engine.kernels.trace.seeking import seek
from dlog.engine.kernels.trace_structs import LayerHeader, Layers


@kernel
def _same_key(layer: LayerHeader, keys, a, b):
    for c in range(keys):
        if load_value(layer, c, a) != load_value(layer, c, b):
            return False
    return True


@entry()
def active_rounds(layer: LayerHeader, keys, before, firsts: Words, active: Words, owners: Words, rounds: Words):
    """Writes the rounds at which there are updates of each key, the first `keys` columns, and to `firsts` where it begins; with
    `before` 1 the round before its first one is active, too. Of each key rounds ascend: it is the whole row, or all are of one
    round. Returns how many keys there are. `firsts` and `active` have room for one more than there are rows, `owners` and
    `rounds` for twice as many."""
    probes, at = 0, 0
    for row in range(layer.rows):
        round = load_value(layer, layer.arity, row)
        if row == 0 or not _same_key(layer, keys, row - 1, row):
            firsts[probes] = row
            active[probes] = at
            if before != 0:
                owners[at] = probes
                rounds[at] = round - 1
                at += 1
            probes += 1
        elif rounds[at - 1] == round:
            continue
        owners[at] = probes - 1
        rounds[at] = round
        at += 1
    active[probes] = at
    return probes


@kernel
def _first_at(rounds: Words, low, high, round):
    """The first place whose round is this one or later."""
    while low < high:
        middle = (low + high) >> 1
        if rounds[middle] < round:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _add_up(layer: LayerHeader, ranges: Words, columns, probes, active: Words, rounds: Words, groups, components, sums: Words):
    """Adds the diffs of a layer, of the rows of each probe, to the first active round at or after theirs."""
    arity = layer.arity
    for p in range(probes):
        first, end = active[p], active[p + 1]
        for row in range(ranges[p], ranges[probes + p]):
            group = _first_at(rounds, first, end, load_value(layer, arity, row))
            if group < end:  # else it is of a round that is still to come
                if components > 1:
                    group += load_value(layer, columns, row) * groups
                sums[group] += load_value(layer, arity + layer.depth, row)


@entry()
def sum_groups(
    changed: LayerHeader, columns, layers: Layers, count, components, keys: Words, active: Words, rounds: Words, sums: Words
):
    """For each active round of each key that has changed (`active_rounds`, with the ones before) the sum of the diffs up to it
    of the rows with this key, the first columns, in some layers. With several `components` the column behind the key says to
    which one a diff belongs: their sums lie one component after the other. Returns how many keys there are. With n one more
    than there are updates, there is room for n words in each of the `columns` of keys, for n active rounds, 2n rounds and 4n
    words behind them, and 2n sums in each component."""
    room = changed.rows + 1
    owners, ranges = behind(rounds, 2 * room), behind(rounds, 4 * room)
    probes = active_rounds(changed, columns, 1, ranges, active, owners, rounds)
    for p in range(probes):
        owners[p] = ranges[p]
    for c in range(columns):
        for p in range(probes):
            keys[c * probes + p] = load_value(changed, c, owners[p])
    groups = active[probes]
    for group in range(components * groups):
        sums[group] = 0
    for k in range(count):
        seek(layers[k], keys, columns, probes, ranges, behind(ranges, probes))
        _add_up(layers[k], ranges, columns, probes, active, rounds, groups, components, sums)
    for c in range(components):
        for p in range(probes):
            for group in range(c * groups + active[p] + 1, c * groups + active[p + 1]):
                sums[group] += sums[group - 1]
    return probes


@kernel
def _same_outcome(outcome: Words, diffs: Words, groups, width, a, b):
    """Whether two groups have the same outcome."""
    if diffs[a] != diffs[b]:
        return False
    for c in range(width):
        if outcome[c * groups + a] != outcome[c * groups + b]:
            return False
    return True


@entry()
def change_outcomes(
    probes, columns, keys: Words, active: Words, rounds: Words, outcome: Words, width, diffs: Words, room, found: Words
):
    """What changes at the active rounds of each probe behind its first one, where each has one row as outcome: its key,
    `width` columns, which lie for all rounds one after the other, and the diff; none where that is 0. Writes keys, columns,
    rounds and diffs, each with so much room; returns how many changes there are."""
    groups, at = active[probes], 0
    for p in range(probes):
        for group in range(active[p] + 1, active[p + 1]):
            if _same_outcome(outcome, diffs, groups, width, group - 1, group):
                continue
            for shown in range(group - 1, group + 1):
                if diffs[shown] != 0:
                    for c in range(columns):
                        found[c * room + at] = keys[c * probes + p]
                    for c in range(width):
                        found[(columns + c) * room + at] = outcome[c * groups + shown]
                    found[(columns + width) * room + at] = rounds[group]
                    found[(columns + width + 1) * room + at] = diffs[shown] if shown == group else -diffs[shown]
                    at += 1
    return at


@kernel
def _end_of_row(layer: LayerHeader, row):
    """The place behind the updates of a row."""
    end = row + 1
    while end < layer.rows and _same_key(layer, layer.arity, row, end):
        end += 1
    return end


@entry()
def count_groups(layer: LayerHeader, active: Words, rounds: Words, sizes: Words):
    """How many different rows each group has: a probe, which is the first column, at one of its active rounds. A row is in a
    group unless its diffs at or before the round add up to zero. `sizes` are zeros; returns their sum."""
    diff, row, total = layer.arity + layer.depth, 0, 0
    while row < layer.rows:
        probe, end, weight = load_value(layer, 0, row), _end_of_row(layer, row), 0
        for g in range(active[probe], active[probe + 1]):
            while row < end and load_value(layer, layer.arity, row) <= rounds[g]:
                weight += load_value(layer, diff, row)
                row += 1
            if weight != 0:
                sizes[g] += 1
                total += 1
        row = end
    return total


@entry()
def fill_groups(layer: LayerHeader, active: Words, rounds: Words, places: Words, total, found: Words):
    """Writes the rows of each group from where `places` has it begin, which is moved along: the columns behind the probe, and
    the sum of the diffs, each `total` words long."""
    arity, row = layer.arity, 0
    while row < layer.rows:
        first, probe, end, weight = row, load_value(layer, 0, row), _end_of_row(layer, row), 0
        for g in range(active[probe], active[probe + 1]):
            while row < end and load_value(layer, arity, row) <= rounds[g]:
                weight += load_value(layer, arity + layer.depth, row)
                row += 1
            if weight != 0:
                place = places[g]
                places[g] = place + 1
                for c in range(1, arity):
                    found[(c - 1) * total + place] = load_value(layer, c, first)
                found[(arity - 1) * total + place] = weight
        row = end


@kernel
def _write_change(row, rows, outcome: Words, width, owner, round, sign, found: Words, at):
    """Writes that a row of an outcome comes or goes."""
    for c in range(width):
        found[c * 2 * rows + at] = outcome[c * rows + row]
    found[width * 2 * rows + at] = sign * outcome[width * rows + row]
    found[(width + 1) * 2 * rows + at] = owner
    found[(width + 2) * 2 * rows + at] = round


@entry()
def write_changes(
    rows, numbers: Words, outcome: Words, width, active: Words, owners: Words, rounds: Words, after, found: Words
):
    """Each row of an outcome, `width` columns and the diff, comes at its active round and goes at the next one of its key,
    unless that has it too; with `after` 1 what comes at the first round of a key is left out. `numbers` are the active rounds
    of the rows, in order. Writes columns, diff, key and round, each with room for twice the rows; returns how many changes."""
    at, comes = 0, True
    for row in range(rows):
        number = numbers[row]
        owner = owners[number]
        if comes and (after == 0 or number > active[owner]):
            _write_change(row, rows, outcome, width, owner, rounds[number], 1, found, at)
            at += 1
        stays = row + 1 < rows and numbers[row + 1] == number + 1 and number + 1 < active[owner + 1]
        if stays:
            for c in range(width + 1):
                if outcome[c * rows + row] != outcome[c * rows + row + 1]:
                    stays = False
        if not stays and number + 1 < active[owner + 1]:
            _write_change(row, rows, outcome, width, owner, rounds[number + 1], -1, found, at)
            at += 1
        comes = not stays
    return at
