"""The words of a group: what counts, sums and means keep of its members (`Sums`)."""

from __future__ import annotations

from dlog.engine.kernels.combine import Combine, joined
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import as_bits, as_float
from dlog.engine.kernels.round_structs import Collection
from dlog.engine.kernels.row_structs import Sums
from dlog.engine.kernels.values.floats import NAN

_SCALE = 2.0**-64
_TOP = -9223372036854775808
_INFINITE = 9218868437227405312


@kernel
def sum_at(groups: Collection, group) -> Sums:
    """Address of a group's words."""
    return Sums(groups.grouping.sums.address + group * (groups.grouping.sum_words * 8))


@kernel
def is_additive(op):
    """Whether contributions to a group are added up before they come to it: those of integers are, floats are rounded."""
    return op < Combine.SUM_FLOAT


@kernel
def total_of(op, value, diff):
    """What `diff` times a value are together, where that can be added up, else the value."""
    if op == Combine.COUNT:
        return 0
    return joined(op, 0, value, diff) if is_additive(op) else value


@kernel
def add_to_sum(op, place: Sums, value, diff):
    """Adds `diff` times a value to a group's words; of integers the value is what they are together (`total_of`).

    Floats are added with compensation (Knuth's two-sum), which keeps twice their precision, and scaled down, so that nothing
    overflows that is taken away again. Those that are not finite are counted apart, a NaN as an infinity of either sign."""
    place.count += diff
    if op == Combine.COUNT:
        return
    if op not in (Combine.SUM_FLOAT, Combine.MEAN):
        place.value = joined(op, place.value, value, 1)
        return
    number = as_float(value)
    if number - number != 0:
        if not number < 0:
            place.odd += diff
        if not number > 0:
            place.odd += diff << 32
        return
    total = as_float(place.value)
    term = number * _SCALE * diff
    grown = total + term
    part = grown - total
    lost = (total - (grown - part)) + (term - part)
    place.value = as_bits(grown)
    place.compensation = as_bits(as_float(place.compensation) + lost)


@kernel
def sum_value(op, place: Sums):
    """A group's value, as bits."""
    if op == Combine.COUNT:
        return place.count
    if op not in (Combine.SUM_FLOAT, Combine.MEAN):
        return place.value
    odd = place.odd
    if odd != 0:
        rising = odd & 0xFFFFFFFF
        if rising == 0:
            return _INFINITE | _TOP
        return _INFINITE if rising == odd else NAN
    total = as_float(place.value) + as_float(place.compensation)
    if op == Combine.MEAN:
        return as_bits(total / place.count / _SCALE)
    return as_bits(total / _SCALE)
