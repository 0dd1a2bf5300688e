"""The words of a group: what counts, sums and means keep of its members (layout.py: SUM_COUNT and those that follow)."""

from __future__ import annotations

from dlog.engine.kernels.combine import Combine, joined
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import as_bits, as_float, load_i64, store_i64
from dlog.engine.kernels.layout import (
    CO_SUM_WORDS,
    CO_SUMS,
    SUM_COUNT,
    SUM_LOST,
    SUM_ODD,
    SUM_VALUE,
)
from dlog.engine.kernels.values.floats import NAN

_SCALE = 2.0**-64
_TOP = -9223372036854775808
_INFINITE = 9218868437227405312


@kernel
def sum_at(groups, group):
    """Address of a group's words."""
    return load_i64(groups, CO_SUMS) + group * (load_i64(groups, CO_SUM_WORDS) * 8)


@kernel
def add_to_sum(op, place, value, diff):
    """Adds `diff` times a value to a group's words.

    Floats are added with compensation (Knuth's two-sum), which keeps twice their precision, and scaled down, so that nothing
    overflows that is taken away again. Those that are not finite are counted apart."""
    store_i64(place, SUM_COUNT, load_i64(place, SUM_COUNT) + diff)
    if op == Combine.COUNT:
        return
    if op not in (Combine.SUM_FLOAT, Combine.MEAN):
        store_i64(place, SUM_VALUE, joined(op, load_i64(place, SUM_VALUE), value, diff))
        return
    number = as_float(value)
    if number - number != 0:
        shift = 0 if number != number else (21 if number > 0 else 42)
        store_i64(place, SUM_ODD, load_i64(place, SUM_ODD) + (diff << shift))
        return
    total = as_float(load_i64(place, SUM_VALUE))
    term = number * _SCALE * diff
    grown = total + term
    part = grown - total
    lost = (total - (grown - part)) + (term - part)
    store_i64(place, SUM_VALUE, as_bits(grown))
    store_i64(place, SUM_LOST, as_bits(as_float(load_i64(place, SUM_LOST)) + lost))


@kernel
def sum_value(op, place):
    """A group's value, as bits."""
    if op == Combine.COUNT:
        return load_i64(place, SUM_COUNT)
    if op not in (Combine.SUM_FLOAT, Combine.MEAN):
        return load_i64(place, SUM_VALUE)
    odd = load_i64(place, SUM_ODD)
    if odd != 0:
        rising = (odd >> 21) & 0x1FFFFF
        falling = (odd >> 42) & 0x1FFFFF
        if odd & 0x1FFFFF != 0 or (rising != 0 and falling != 0):
            return NAN
        return _INFINITE if rising != 0 else _INFINITE | _TOP
    total = as_float(load_i64(place, SUM_VALUE)) + as_float(load_i64(place, SUM_LOST))
    if op == Combine.MEAN:
        return as_bits(total / load_i64(place, SUM_COUNT) / _SCALE)
    return as_bits(total / _SCALE)
