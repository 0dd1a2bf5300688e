"""Doubles as words, for kernels: there is one NaN, so rows with it are equal where their bits are."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import as_bits

NAN = 0x7FF8000000000000
"""The bits of Python's NaN. Processors make others, with a sign; files and arrays have any."""


@kernel
def float_word(value):
    """The bits of a double that was computed or read."""
    return as_bits(value) if value == value else NAN
