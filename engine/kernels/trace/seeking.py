"""Finding rows of a layer by a prefix of their columns."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, store_i64
from dlog.engine.kernels.trace.layers import (
    LAYER_INDEX,
    LAYER_LOW,
    LAYER_RANGE,
    LAYER_ROWS,
    load_value,
)


@kernel
def _compare_key(layer, row, keys, probes, probe, start, count):  # type: ignore[no-untyped-def]
    """-1, 0 or 1 as a row's columns from `start` up to `count` are before, equal to or after the probe's."""
    for c in range(start, count):
        x, y = load_value(layer, c, row), load_i64(keys, c * probes + probe)
        if x != y:
            return -1 if x < y else 1
    return 0


@kernel
def _bisect(layer, low, high, keys, probes, probe, start, count, beyond):  # type: ignore[no-untyped-def]
    """The first row from `low` on, before `high`, that is not before the probe's key; with `beyond` 1, that is after it."""
    while low < high:
        middle = (low + high) >> 1
        if _compare_key(layer, middle, keys, probes, probe, start, count) < beyond:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _gallop(layer, low, high, keys, probes, probe, start, count, beyond):  # type: ignore[no-untyped-def]
    """The same, in steps that double from `low`: fast where the row is near."""
    bound, step = low, 1
    while bound < high and _compare_key(layer, bound, keys, probes, probe, start, count) < beyond:
        low = bound + 1
        bound = low + step
        step *= 2
    return _bisect(layer, low, min(bound, high), keys, probes, probe, start, count, beyond)


@entry()
def seek(layer, keys, count, probes, starts, ends):  # type: ignore[no-untyped-def]
    """Writes for each probe the range of rows that begin with its key: `count` prefix columns of so many probes each, one after
    the other. Probes in ascending order keep the search local; any order is right. The layer must have rows."""
    rows, index = load_i64(layer, LAYER_ROWS), load_i64(layer, LAYER_INDEX)
    first, values = load_i64(layer, LAYER_LOW), load_i64(layer, LAYER_RANGE)
    at = 0
    for p in range(probes):
        low, high, end, start = 0, rows, rows, 0
        if index != 0 and count > 0:
            key = load_i64(keys, p)
            if key < first or key >= first + values:
                store_i64(starts, p, 0)
                store_i64(ends, p, 0)
                continue
            start = 1
            low, end = load_i32(index, key - first), load_i32(index, key - first + 1)
            high = end
        elif at > 0:
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
        store_i64(starts, p, low)
        store_i64(ends, p, end)
        at = low
