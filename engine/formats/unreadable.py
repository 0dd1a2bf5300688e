"""Text that a file without quotes does not hold as it is: a line end or the delimiter in it parts it when the file is read."""

from __future__ import annotations

import warnings

import numpy as np

from dlog.engine.formats.parameters import text_format
from dlog.engine.ir.rules import Io, Kind, Program, Relation
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table

CHUNK = 1 << 24
"""Bytes that are searched at a time."""


def warn_of_unreadable(io: Io, relation: Relation, program: Program, table: Table, symbols: SymbolTable) -> None:
    """Warns where rows are written that will be read as others: Souffle writes them, too."""
    form = text_format(io, relation, program)
    if form.rfc4180 or Kind.SYMBOL not in relation.kinds:
        return
    needles = {b"\n": "a line end", form.delimiter: f"the delimiter {form.delimiter.decode()!r}"}
    for needle, what in needles.items():
        ids = symbols_with(needle, *symbols.strings)
        for (name, type_), column in zip(relation.attributes, table.columns, strict=True) if len(ids) else ():
            if type_.kind is Kind.SYMBOL and len(found := np.flatnonzero(np.isin(column, ids))):
                text = symbols.text(int(column[found[0]]))
                message = f"`{name}` of `{relation.name}` has text with {what}, which will not be read as it is"
                warnings.warn(f"{message}: {text[:60]!r}; rfc4180=true writes quotes", RuntimeWarning, stacklevel=4)
                break


def symbols_with(needle: bytes, heap: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The ids of the strings that have these bytes in them."""
    used = int(offsets[-1])
    places = []
    for begin in range(0, used, CHUNK):
        chunk = heap[begin : min(begin + CHUNK, used)]
        found = np.flatnonzero(chunk == needle[0]) + begin
        for i, byte in enumerate(needle[1:], 1):
            found = found[found + i < used]
            found = found[heap[found + i] == byte]
        places.append(found)
    at = np.concatenate(places) if places else np.empty(0, np.int64)
    ids = np.searchsorted(offsets, at, side="right") - 1
    return np.unique(ids[at + len(needle) <= offsets[ids + 1]])
