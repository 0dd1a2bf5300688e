"""Reading several layers at once: the updates whose rows begin with each of many keys, one key after the other."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.static.storage import behind
from dlog.engine.kernels.trace.layers import load_value
from dlog.engine.kernels.trace.seeking import seek
from dlog.engine.kernels.trace_structs import LayerHeader, Layers


@entry()
def seek_layers(layers: Layers, count, keys: Words, columns, probes, ranges: Words):
    """Writes for each of `count` layers where each probe's rows start, then where they end (`seek`); returns how many there are
    in all. `ranges` has room for 2 * `probes` words for each layer."""
    total = 0
    for k in range(count):
        starts = behind(ranges, 2 * probes * k)
        ends = behind(starts, probes)
        seek(layers[k], keys, columns, probes, starts, ends)
        for p in range(probes):
            total += ends[p] - starts[p]
    return total


@entry()
def gather_layers(layers: Layers, count, ranges: Words, probes, total, numbers: Words, fields: Words):
    """Writes the updates that `seek_layers` found, those of the first probe first: the number of the probe to `numbers`, and
    field by field, each `total` words long, to `fields`."""
    first = layers[0]
    width = first.arity + first.depth + 1
    at = 0
    for p in range(probes):
        for k in range(count):
            starts = behind(ranges, 2 * probes * k)
            low, high = starts[p], starts[probes + p]
            layer = layers[k]
            for row in range(low, high):
                numbers[at] = p
                for f in range(width):
                    fields[f * total + at] = load_value(layer, f, row)
                at += 1


@entry()
def unpack_layer(layer: LayerHeader, fields: Words):
    """Writes all fields, one after the other, as words."""
    rows = layer.rows
    for f in range(layer.arity + layer.depth + 1):
        field, out = layer.fields[f], behind(fields, f * rows)
        data, width = field.data, field.width
        if width == 4:
            for row in range(rows):
                out[row] = Numbers(data)[row]
        elif width == 8:
            for row in range(rows):
                out[row] = Words(data)[row]
        else:
            for row in range(rows):
                out[row] = data


@entry()
def count_groups(
    probes, runs: Words, rows: Words, rounds: Words, diffs: Words, active: Words, times: Words, sizes: Words
):
    """How many different rows each group has. A group is a probe at one of its active times.

    Probe p has the runs from `runs[p]` up to `runs[p + 1]`; run k the updates, all of one row, from `rows[k]` up to `rows[k +
    1]`, in ascending order of `rounds`; and the groups from `active[p]` up to `active[p + 1]`, whose `times` ascend. A row is
    in a group unless its diffs at or before the time add up to zero. Returns the sum of all `sizes`."""
    total = 0
    for p in range(probes):
        for k in range(runs[p], runs[p + 1]):
            at, end, weight = rows[k], rows[k + 1], 0
            for g in range(active[p], active[p + 1]):
                time = times[g]
                while at < end and rounds[at] <= time:
                    weight += diffs[at]
                    at += 1
                if weight != 0:
                    sizes[g] += 1
                    total += 1
    return total


@entry()
def fill_groups(
    probes,
    runs: Words,
    rows: Words,
    rounds: Words,
    diffs: Words,
    active: Words,
    times: Words,
    places: Words,
    found: Words,
    weights: Words,
):
    """Writes for each row of each group the first of its updates to `found` and the sum of its diffs to `weights`, from where
    `places` has the group begin, which is moved along."""
    for p in range(probes):
        for k in range(runs[p], runs[p + 1]):
            at, end, weight = rows[k], rows[k + 1], 0
            for g in range(active[p], active[p + 1]):
                time = times[g]
                while at < end and rounds[at] <= time:
                    weight += diffs[at]
                    at += 1
                if weight != 0:
                    place = places[g]
                    places[g] = place + 1
                    found[place] = rows[k]
                    weights[place] = weight
