"""Arrays of NumPy's as words of a relation, where they are numbers as the relation has them: copied into one block. What is
otherwise `dlog.rows` takes, column by column, or says what is wrong with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dlog.engine.ir.rules import Domain, Kind, Relation
from dlog.engine.values.floats import one_nan
from dlog.engine.values.table import DTYPES


class ArrayRows:
    """Reads arrays for one relation."""

    def __init__(self, relation: Relation) -> None:
        types = [type for _, type in relation.attributes]
        self._names = relation.names
        self._dtypes: list[np.dtype[Any]] | None = None
        if types and all(type.kind in DTYPES and type.domain is Domain.PLAIN for type in types):
            self._dtypes = [np.dtype(DTYPES[type.kind]) for type in types]
        self._floats = [place for place, type in enumerate(types) if type.kind is Kind.FLOAT]
        self._numbers = all(type.kind is Kind.NUMBER for type in types)

    def read(self, rows: Any) -> np.ndarray | None:
        """The rows as words, column after column, with room for two columns more; None where they are not such arrays."""
        if self._dtypes is None:
            return None
        if type(rows) is dict:
            return self._of_columns(rows, self._dtypes)
        if type(rows) is np.ndarray and self._numbers and rows.dtype == np.int64 and rows.shape[1:] == (len(self._dtypes),):
            block = np.empty((len(self._dtypes) + 2, len(rows)), np.int64)
            block[:-2] = rows.T
            return block
        return None

    def _of_columns(self, columns: dict[Any, Any], dtypes: list[np.dtype[Any]]) -> np.ndarray | None:
        try:
            given = [columns[name] for name in self._names]
            count = len(given[0])
        except (KeyError, TypeError):
            return None
        if len(columns) != len(given):
            return None
        for column, dtype in zip(given, dtypes, strict=True):
            if type(column) is not np.ndarray or column.dtype != dtype or column.shape != (count,):
                return None
        block = np.empty((len(given) + 2, count), np.int64)
        for place in self._floats:
            given[place] = one_nan(given[place])
        for place, column in enumerate(given):
            block[place] = column.view(np.int64)
        return block
