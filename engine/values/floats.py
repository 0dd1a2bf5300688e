"""Doubles from outside: every NaN becomes the one that kernels know (kernels/values/floats.py). -0.0 and 0.0 stay two."""

from __future__ import annotations

import numpy as np


def one_nan(values: np.ndarray) -> np.ndarray:
    """Float64 values with one NaN; the same array where there is none."""
    strange = np.isnan(values)
    return np.where(strange, np.nan, values) if strange.any() else values
