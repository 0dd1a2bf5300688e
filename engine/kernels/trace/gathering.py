"""Reading several layers at once: the updates whose rows begin with each of many keys, one key after the other."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry
from dlog.engine.kernels.core.memory import load_i64, store_i64
from dlog.engine.kernels.trace.layers import LAYER_ARITY, LAYER_DEPTH, load_value
from dlog.engine.kernels.trace.seeking import seek


@entry()
def seek_layers(layers, count, keys, columns, probes, ranges):  # type: ignore[no-untyped-def]
    """Writes for each of `count` layers where each probe's rows start, then where they end (`seek`); returns how many there are
    in all. `ranges` has room for 2 * `probes` words for each layer."""
    total = 0
    for k in range(count):
        starts = ranges + 16 * probes * k
        ends = starts + 8 * probes
        seek(load_i64(layers, k), keys, columns, probes, starts, ends)
        for p in range(probes):
            total += load_i64(ends, p) - load_i64(starts, p)
    return total


@entry()
def gather_layers(layers, count, ranges, probes, total, numbers, fields):  # type: ignore[no-untyped-def]
    """Writes the updates that `seek_layers` found, those of the first probe first: the number of the probe to `numbers`, and
    field by field, each `total` words long, to `fields`."""
    first = load_i64(layers, 0)
    width = load_i64(first, LAYER_ARITY) + load_i64(first, LAYER_DEPTH) + 1
    at = 0
    for p in range(probes):
        for k in range(count):
            starts = ranges + 16 * probes * k
            low, high = load_i64(starts, p), load_i64(starts, probes + p)
            layer = load_i64(layers, k)
            for row in range(low, high):
                store_i64(numbers, at, p)
                for f in range(width):
                    store_i64(fields, f * total + at, load_value(layer, f, row))
                at += 1


@entry()
def count_groups(probes, runs, rows, rounds, diffs, active, times, sizes):  # type: ignore[no-untyped-def]
    """How many different rows each group has. A group is a probe at one of its active times.

    Probe p has the runs from `runs[p]` up to `runs[p + 1]`; run k the updates, all of one row, from `rows[k]` up to `rows[k +
    1]`, in ascending order of `rounds`; and the groups from `active[p]` up to `active[p + 1]`, whose `times` ascend. A row is
    in a group unless its diffs at or before the time add up to zero. Returns the sum of all `sizes`."""
    total = 0
    for p in range(probes):
        for k in range(load_i64(runs, p), load_i64(runs, p + 1)):
            at, end, weight = load_i64(rows, k), load_i64(rows, k + 1), 0
            for g in range(load_i64(active, p), load_i64(active, p + 1)):
                time = load_i64(times, g)
                while at < end and load_i64(rounds, at) <= time:
                    weight += load_i64(diffs, at)
                    at += 1
                if weight != 0:
                    store_i64(sizes, g, load_i64(sizes, g) + 1)
                    total += 1
    return total


@entry()
def fill_groups(probes, runs, rows, rounds, diffs, active, times, places, found, weights):  # type: ignore[no-untyped-def]
    """Writes for each row of each group the first of its updates to `found` and the sum of its diffs to `weights`, from where
    `places` has the group begin, which is moved along."""
    for p in range(probes):
        for k in range(load_i64(runs, p), load_i64(runs, p + 1)):
            at, end, weight = load_i64(rows, k), load_i64(rows, k + 1), 0
            for g in range(load_i64(active, p), load_i64(active, p + 1)):
                time = load_i64(times, g)
                while at < end and load_i64(rounds, at) <= time:
                    weight += load_i64(diffs, at)
                    at += 1
                if weight != 0:
                    place = load_i64(places, g)
                    store_i64(places, g, place + 1)
                    store_i64(found, place, load_i64(rows, k))
                    store_i64(weights, place, weight)
