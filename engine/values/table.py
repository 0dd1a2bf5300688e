"""A relation at rest: its kinds and one array per column."""

from __future__ import annotations

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Kind

DTYPES: dict[Kind, type[np.generic]] = {Kind.NUMBER: np.int64, Kind.UNSIGNED: np.uint64, Kind.FLOAT: np.float64}
"""The kinds that are numbers, and what arrays of them are of; symbols and records are int32 ids."""


def typed(words: np.ndarray, kind: Kind) -> np.ndarray:
    """Words of 8 bytes as the numbers of a kind: a view; ids stay words."""
    return words.view(DTYPES.get(kind, np.int64))


def from_words(words: np.ndarray, kind: Kind) -> np.ndarray:
    """A column of a table from int64 words: a view where it is of numbers, a copy where it is of ids."""
    return typed(np.ascontiguousarray(words), kind) if kind in DTYPES else words.astype(np.int32)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as columns of equal length: NUMBER int64 or int32, UNSIGNED uint64, FLOAT float64, SYMBOL and RECORD int32 ids.

    Rows may repeat; whoever stores them as a set removes duplicates. A relation without attributes has no column to count
    by, so `height` says how many rows there are.
    """

    kinds: tuple[Kind, ...]
    columns: tuple[np.ndarray, ...]
    height: int = -1
    """Number of rows where there are no columns; -1 where the columns say it."""
    fresh: bool = False
    """Whether nobody else has the columns, so that who gets them may write to them."""

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else max(self.height, 0)
