"""Finding rows of a layer by a prefix of their columns."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.trace.layers import load_value
from dlog.engine.kernels.trace_structs import LayerHeader


@kernel
def _compare_key(layer: LayerHeader, row, keys: Words, probes, probe, start, count):
    """-1, 0 or 1 as a row's columns from `start` up to `count` are before, equal to or after the probe's."""
    for c in range(start, count):
        x, y = load_value(layer, c, row), keys[c * probes + probe]
        if x != y:
            return -1 if x < y else 1
    return 0


@kernel
def _bisect(layer: LayerHeader, low, high, keys: Words, probes, probe, start, count, beyond):
    """The first row from `low` on, before `high`, that is not before the probe's key; with `beyond` 1, that is after it."""
    while low < high:
        middle = (low + high) >> 1
        if _compare_key(layer, middle, keys, probes, probe, start, count) < beyond:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _gallop(layer: LayerHeader, low, high, keys: Words, probes, probe, start, count, beyond):
    """The same, in steps that double from `low`: fast where the row is near."""
    bound, step = low, 1
    while bound < high and _compare_key(layer, bound, keys, probes, probe, start, count) < beyond:
        low = bound + 1
        bound = low + step
        step *= 2
    return _bisect(layer, low, min(bound, high), keys, probes, probe, start, count, beyond)


@entry()
def seek(layer: LayerHeader, keys: Words, count, probes, starts: Words, ends: Words):
    """Writes for each probe the range of rows that begin with its key: `count` prefix columns of so many probes each, one after
    the other. Probes in ascending order keep the search local; any order is right. The layer must have rows."""
    rows, index = layer.rows, layer.index
    first, values = layer.low, layer.range
    at = 0
    for p in range(probes):
        low, high, end, start = 0, rows, rows, 0
        if index and count > 0:
            key = keys[p]
            if key < first or key >= first + values:
                starts[p] = 0
                ends[p] = 0
                continue
            # The index has the range of the first column: what is left to compare are the others.
            start = 1
            low, end = index[key - first], index[key - first + 1]
            high = end
        elif at > 0:
            # All rows before `at` were before the last probe's key: this one's is to the same side of that row, or the other.
            if _compare_key(layer, at - 1, keys, probes, p, 0, count) < 0:
                low = at
            else:
                high = at - 1
        if start < count:
            if 0 < at == low:
                low = _gallop(layer, low, high, keys, probes, p, start, count, 0)
            else:
                low = _bisect(layer, low, high, keys, probes, p, start, count, 0)
            end = _gallop(layer, low, end, keys, probes, p, start, count, 1)
        starts[p] = low
        ends[p] = end
        at = low
