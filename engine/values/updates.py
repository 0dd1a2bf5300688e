"""Changes of a relation: rows with a round and a diff."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Updates:
    """Rows as columns of raw 64-bit words (int64: numbers and ids as they are, unsigned and floats by their bits), with a diff
    (int64; +1 the row appears, -1 it disappears) and a round (int64, ascending) each. All arrays have equal length, which a
    relation without columns needs `diffs` for."""

    columns: tuple[np.ndarray, ...]
    diffs: np.ndarray
    rounds: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.diffs)
