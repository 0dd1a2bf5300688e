"""A relation at rest: its kinds and one array per column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dlog.engine.ir.rules import Kind


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

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else max(self.height, 0)
