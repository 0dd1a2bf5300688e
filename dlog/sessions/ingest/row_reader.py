"""Rows from outside as words of the engine: one row quickly, many rows as columns.

A tuple is one row; what else is taken, `dlog.rows` says.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np

from dlog.codec import Codec
from dlog.engine.ir.kinds import NUMERIC
from dlog.engine.ir.rules import Domain, Kind, Relation, Type
from dlog.engine.kernels.values.floats import NAN
from dlog.engine.values.differences import Columns, words
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.rows import fetched, from_tuples, table_of
from dlog.sessions.ingest.array_rows import ArrayRows
from dlog.sessions.ingest.arrow_rows import ArrowRows, is_arrow
from dlog.sessions.ingest.staged_relation import Words
from dlog.tabular import Tabular

MAX_ROWS_ONE_BY_ONE = 64
"""Rows that are taken one by one: arrays cost more to make for so few."""
_LOW, _HIGH = -(2**63), 2**63 - 1
_CACHED_TEXTS = 1 << 16
_EPOCH = date(1970, 1, 1).toordinal()

_Encode = Callable[[Any], int]


class RowReader:
    """Takes the rows of one relation."""

    def __init__(self, relation: Relation, codec: Codec) -> None:
        self.relation = relation
        self.arity = relation.arity
        self._codec = codec
        types = [type for _, type in relation.attributes]
        self._numbers = all(type.kind is Kind.NUMBER and type.domain is Domain.PLAIN for type in types)
        self._encoders = [_encoder(type, codec.symbols) for type in types]
        self._arrow, self._arrays = ArrowRows(relation), ArrayRows(relation)

    # ------------------------------------------------------------------------------------------------------------- one row

    def row(self, row: tuple[Any, ...]) -> Words:
        """One row of Python values as words."""
        if len(row) == self.arity:
            if self._numbers:
                for value in row:
                    if type(value) is not int or not _LOW <= value <= _HIGH:
                        break
                else:
                    return row
            else:
                try:
                    return tuple([encode(value) for encode, value in zip(self._encoders, row, strict=True)])
                except _Unusual:
                    pass
        columns = from_tuples(self.relation, self._codec, [row]).columns
        return tuple([int(words(column)[0]) for column in columns])

    # ----------------------------------------------------------------------------------------------------------- many rows

    def few(self, rows: object) -> list[Words] | None:
        """The rows one by one if they are few Python tuples."""
        if type(rows) is tuple:
            return [self.row(rows)]
        if (
            isinstance(rows, list | set | frozenset)
            and len(rows) <= MAX_ROWS_ONE_BY_ONE
            and all(type(row) is tuple for row in rows)
        ):
            return [self.row(row) for row in rows]
        return None

    def columns(self, rows: Any) -> tuple[Columns, int]:
        """Any rows as columns of words, and how many there are."""
        if (block := self.block(rows)) is not None:
            return tuple(block[:-2]), block.shape[1]
        if isinstance(rows, tuple):
            rows = [rows]
        return _in_words(table_of(self.relation, self._codec, rows))

    def block(self, rows: Any) -> np.ndarray | None:
        """The columns of a table, or of arrays, in a block with room for two more; None where they are not read in one go."""
        return self._arrow.read(rows, self._codec.symbols) if is_arrow(rows) else self._arrays.read(rows)

    def own_columns(self, rows: Any) -> tuple[Columns, int]:
        """The columns of what is no block, which nobody else writes to."""
        columns, count = self.columns(rows)
        return tuple([column.copy() if _is_shared(column, rows) else column for column in columns]), count

    def fetched(self, frame: Any) -> tuple[Columns, int]:
        """Rows of a DataFrame, which has the relation's columns and types, as columns of words."""
        return _in_words(fetched(self.relation, self._codec, frame))


def _in_words(table: Table) -> tuple[Columns, int]:
    return tuple([words(column) for column in table.columns]), table.rows


def _is_shared(column: np.ndarray, rows: object) -> bool:
    """Whether who gave the rows may still write to the column's memory. That a column is not written to through Arrow, which
    takes the arrays of others as they are, says nothing but of tables that are Arrow's own."""
    if type(rows) is np.ndarray:
        return np.may_share_memory(column, rows)
    return column.flags.writeable or not (is_arrow(rows) or isinstance(rows, Tabular))


class _Unusual(Exception):
    """A value that the quick way does not know; the codec takes it or says what is wrong."""


def _encoder(type: Type, symbols: SymbolTable) -> _Encode:
    if type.kind in NUMERIC and type.domain is not Domain.PLAIN:
        return _day if type.domain is Domain.DATE else _other
    match type.kind:
        case Kind.NUMBER:
            return _number
        case Kind.UNSIGNED:
            return _unsigned
        case Kind.FLOAT:
            return _float
        case Kind.SYMBOL:
            return _Symbols(symbols)
        case Kind.RECORD:
            return _other


class _Symbols:
    """Texts as symbols, the last ones of which are known. It knows nothing of its reader: a circle of the two would keep all
    texts of a session that is closed until the collector comes."""

    def __init__(self, symbols: SymbolTable) -> None:
        self._symbols = symbols
        self._texts: dict[str, int] = {}

    def __call__(self, value: object) -> int:
        if type(value) is not str:
            raise _Unusual
        found = self._texts.get(value)
        if found is None:
            if len(self._texts) >= _CACHED_TEXTS:
                self._texts.clear()
            try:
                found = self._texts[value] = self._symbols.intern(value)
            except UnicodeEncodeError:
                raise _Unusual from None
        return found


def _number(value: object) -> int:
    if type(value) is int and _LOW <= value <= _HIGH:
        return value
    raise _Unusual


def _unsigned(value: object) -> int:
    if type(value) is int and 0 <= value < 2**64:
        return value if value <= _HIGH else value - 2**64
    raise _Unusual


def _float(value: object) -> int:
    if type(value) is not float:
        raise _Unusual
    return int(struct.unpack("<q", struct.pack("<d", value))[0]) if value == value else NAN


def _day(value: object) -> int:
    if type(value) is date:
        return value.toordinal() - _EPOCH
    raise _Unusual


def _other(value: object) -> int:
    raise _Unusual
