"""Rows that have certain values in some columns, and their updates: a search where these are the first columns of a layer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dlog.engine.kernels.trace.seeking import seek
from dlog.engine.trace.layer import Described, Layer
from dlog.engine.values.addresses import address_of
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


class Sought:
    """What is looked for in layers, whose times are rounds: the updates of rows with certain values."""

    def __init__(self, values: Values) -> None:
        prefix: list[int] = []
        while len(prefix) in values:
            prefix.append(values[len(prefix)])
        self._others = [(column, value) for column, value in values.items() if column >= len(prefix)]
        self._key, self._columns, self._range = np.array(prefix, np.int64), len(prefix), np.empty(2, np.int64)
        self._addresses = address_of(self._key), address_of(self._range), address_of(self._range) + 8

    def places(self, layer: Layer | Described, after: int, upto: int) -> np.ndarray:
        """Where those of the rounds after one up to another are."""
        if isinstance(layer, Layer) and self._columns:
            key, start, end = self._addresses
            seek(layer.address, key, self._columns, 1, start, end)
            first, behind = self._range.tolist()
            places, others = np.arange(first, behind), self._others
        else:
            places, others = np.arange(layer.rows), [*enumerate(self._key.tolist()), *self._others]
        for column, value in others:
            places = places[layer.values(column, places) == value]
        if not len(places):
            return places
        rounds = layer.values(layer.fields - 2, places)
        return places[(rounds > after) & (rounds <= upto)]
