"""Rows that have certain values in some columns, and their updates: a search where these are the first columns of a layer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dlog.engine.trace.layer import Described, Layer
from dlog.engine.values.table import Table

Values = Mapping[int, int]
"""By column the one value that rows are to have there, as a word."""
ANY: Values = {}


def rows_with(values: Values, table: Table) -> Table:
    """The rows of a table that have these values, of which there are some; nobody else has the columns."""
    first, *others = values.items()
    places = np.flatnonzero(_words(table.columns[first[0]]) == first[1])
    for column, value in others:
        places = places[_words(table.columns[column])[places] == value]
    return Table(table.kinds, tuple(column[places] for column in table.columns), fresh=True)


def _words(column: np.ndarray) -> np.ndarray:
    return column.view(np.int64) if column.itemsize == 8 else column


def places_with(values: Values, layer: Layer | Described, after: int, upto: int) -> np.ndarray:
    """The updates of a layer, whose times are rounds, of rows with these values in the rounds after one up to another."""
    left = dict(values)
    places = _sought(left, layer) if isinstance(layer, Layer) else np.arange(layer.rows)
    for column, value in left.items():
        places = places[layer.values(column, places) == value]
    rounds = layer.values(layer.fields - 2, places)
    return places[(rounds > after) & (rounds <= upto)]


def _sought(values: dict[int, int], layer: Layer) -> np.ndarray:
    """The updates of a layer that begin with these values, as far as they are of its first columns; those are taken out."""
    key: list[int] = []
    while len(key) in values:
        key.append(values.pop(len(key)))
    if not key:
        return np.arange(layer.rows)
    (start,), (end,) = layer.seek(np.array(key, np.int64)[:, None])
    return np.arange(start, end)
