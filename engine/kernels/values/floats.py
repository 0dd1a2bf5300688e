"""Doubles as words, for kernels: there is one NaN, so rows with it are equal where their bits are."""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import as_bits, as_float
from dlog.engine.kernels.machine_structs import Words

NAN = 0x7FF8000000000000
"""The bits of Python's NaN. Processors make others, with a sign; files and arrays have any."""

_SIGN, _REST = -(2**63), 2**63 - 1
_INFINITY = 0x7FF0000000000000
_DENORMAL = 2.0**149
"""The least float of 32 bits is the reciprocal."""


@kernel
def float_word(value):
    """The bits of a double that was computed or read."""
    return as_bits(value) if value == value else NAN


@kernel
def one_nan(bits):
    """The bits of a double, read from elsewhere."""
    return NAN if bits & _REST > _INFINITY else bits


@kernel
def ordered_word(bits):
    """A word that compares as the double of these bits does; there is one zero and one NaN, after all others."""
    bits = 0 if bits == _SIGN else one_nan(bits)
    return bits ^ ((bits >> 63) & _REST)


@entry()
def order_floats(values: Words, rows, words: Words):
    """Writes the words of doubles, given by their bits, that compare as they do."""
    for row in range(rows):
        words[row] = ordered_word(values[row])


@kernel
def round_float(value):
    """The nearest float of 32 bits, as a double."""
    return np.float64(np.float32(value))


@kernel
def short_bits(value):
    """The bits of a double as a float of 32 bits, read as a signed number."""
    bits = as_bits(value)
    exponent = ((bits >> 52) & 0x7FF) - 1023
    fraction = (bits >> 29) & 0x7FFFFF
    sign = -0x80000000 if bits < 0 else 0
    if value != value:
        return 0x7FC00000
    if exponent > 127:
        return sign + 0x7F800000
    if exponent < -126:
        return sign + int(abs(value) * _DENORMAL)
    return sign + ((exponent + 127) << 23) + fraction


@kernel
def float_of_short_bits(bits):
    """The float of 32 bits that has these low bits, as a double."""
    exponent = (bits >> 23) & 0xFF
    fraction = bits & 0x7FFFFF
    if exponent == 255:
        value = np.inf if fraction == 0 else np.nan
    elif exponent == 0:
        value = float(fraction) / _DENORMAL
    else:
        value = as_float(((exponent + 896) << 52) + (fraction << 29))
    return -value if (bits >> 31) & 1 else value
