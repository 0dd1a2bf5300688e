"""Changes of a relation: rows with a round and a diff."""

from __future__ import annotations

from collections.abc import Sequence
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


def joined(parts: Sequence[Updates]) -> Updates:
    """Lists of changes one after the other."""
    if len(parts) == 1:
        return parts[0]
    columns = tuple(np.concatenate(pieces) for pieces in zip(*(p.columns for p in parts), strict=True))
    return Updates(columns, np.concatenate([p.diffs for p in parts]), np.concatenate([p.rounds for p in parts]))
