"""Rows of a collection as others see them: those of the last commit, while the next one runs too."""

from __future__ import annotations

import numpy as np

from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.values.table import Table


def table_of(collection: Collection) -> Table | None:
    """The rows that are present, copied; None where they have gone with their engine."""
    if _is_over(collection):
        return None
    read, rows = collection.read(before=_is_changing(collection))
    columns = tuple(_typed(values, kind.value) for values, kind in zip(read, collection.kinds, strict=True))
    return Table(collection.kinds, columns, rows, fresh=True)


def rows_of(collection: Collection) -> int:
    """How many rows are present."""
    return 0 if _is_over(collection) else collection.rows(before=_is_changing(collection))


def ranks_of(collection: Collection) -> np.ndarray:
    """The iteration at which each of these rows appears (int32)."""
    return np.empty(0, np.int32) if _is_over(collection) else collection.ranks(before=_is_changing(collection))


def _is_changing(collection: Collection) -> bool:
    """Whether a batch runs that is not to be seen yet."""
    return collection.status is not None and collection.status.running


def _is_over(collection: Collection) -> bool:
    """Whether the rows have gone with the engine that had them in the end."""
    return collection.status is not None and collection.status.over


def _typed(values: np.ndarray, kind: str) -> np.ndarray:
    if kind == "float":
        return values.view(np.float64)
    if kind == "unsigned":
        return values.astype(np.int64).view(np.uint64)
    return values
