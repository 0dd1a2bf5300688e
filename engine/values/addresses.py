"""Addresses of arrays, for kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

_byte_of: Callable[[Any], ctypes.c_char] = ctypes.c_char.from_buffer


def address_of(array: np.ndarray) -> int:
    """The address of a contiguous array."""
    try:
        return ctypes.addressof(_byte_of(array))  # several times faster than to ask NumPy
    except (TypeError, ValueError):  # read-only, or empty
        return int(array.ctypes.data)
