"""Rows of table functions for blocks of arguments, where no kernel makes them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from dlog.engine.ir.rules import Kind
from dlog.engine.ir.table_functions import TABLE_FUNCTIONS
from dlog.engine.values.patterns import captures
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import DTYPES

Generated = tuple[np.ndarray, list[np.ndarray]]
"""Where the rows for each row of the block begin, and end; their columns as words."""


ROW_BYTES = 200
"""What a row takes in Python: a tuple, a text and a number or two."""


def generated(name: str, args: Sequence[np.ndarray], kinds: Sequence[Kind], room: int, symbols: SymbolTable) -> Generated:
    """The rows of a table function, made once for each combination of arguments. Raises MemoryError where they take more than
    `room` bytes."""
    words = np.stack([np.ascontiguousarray(a).view(np.int64) for a in args], axis=1)
    distinct, places = np.unique(words, axis=0, return_inverse=True)
    columns = [_scalars(column, kind, symbols) for column, kind in zip(distinct.T, kinds, strict=True)]
    row = TABLE_FUNCTIONS[name]
    made = rows_for(name, kinds[0], list(zip(*columns, strict=True)), room // ROW_BYTES)
    flat = list(chain.from_iterable(made))
    table = [_words([r[c] for r in flat], kind, symbols) for c, kind in enumerate(row.kinds(kinds[0]))]
    counts = np.array([len(found) for found in made], np.int64)
    return _spread(counts, table, places.reshape(-1))


def rows_for(name: str, kind: Kind, given: Sequence[tuple[Any, ...]], most: int = 2**62) -> list[list[tuple[Any, ...]]]:
    """The rows of a table function for each of several combinations of arguments. Raises MemoryError for more than `most`."""
    rows = TABLE_FUNCTIONS[name].rows
    found: list[list[tuple[Any, ...]]] = []
    if rows is not None:
        for args in given:
            found.append(list(islice(rows(kind, *args), most + 1)))
            most -= len(found[-1])
            if most < 0:
                raise MemoryError
        return found
    found = [[] for _ in given]
    for pattern in dict.fromkeys(pattern for pattern, _ in given):
        places = [place for place, (other, _) in enumerate(given) if other == pattern]
        for place, captured in zip(places, captures(pattern, [given[p][1] for p in places]), strict=True):
            found[place] = captured
            most -= len(captured)
        if most < 0:
            raise MemoryError
    return found


def _spread(counts: np.ndarray, columns: list[np.ndarray], places: np.ndarray) -> Generated:
    """The rows of each row of the block, those of a combination again wherever it comes again."""
    ends = np.cumsum(counts)
    sizes = counts[places]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    chosen = np.repeat((ends - counts)[places] - offsets[:-1], sizes) + np.arange(offsets[-1])
    return offsets, [column[chosen] for column in columns]


def _scalars(words: np.ndarray, kind: Kind, symbols: SymbolTable) -> list[object]:
    if kind is Kind.SYMBOL:
        return [symbols.text(number) for number in words.tolist()]
    values: list[object] = np.ascontiguousarray(words).view(DTYPES[kind]).tolist()
    return values


def _words(values: list[object], kind: Kind, symbols: SymbolTable) -> np.ndarray:
    if kind is Kind.SYMBOL:
        return symbols.intern_texts([str(value) for value in values]).astype(np.int64)
    return np.array(values, DTYPES[kind]).view(np.int64)
