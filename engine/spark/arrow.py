"""Between a worker's columns and the Arrow batches that Spark hands over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from dlog.engine.formats.nested import BadRecord, parse_records
from dlog.engine.formats.record_texts import record_texts
from dlog.engine.formats.records import RecordTables
from dlog.engine.ir.rules import Domain, Kind, Relation, Type
from dlog.engine.values.domains import OutOfDomain, from_arrow, sort_of, to_arrow
from dlog.engine.values.symbols import NotText, SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import Diagnostic, DlogError

ARROW_TYPES = {
    Kind.NUMBER: pa.int64(),
    Kind.UNSIGNED: pa.decimal128(20, 0),
    Kind.FLOAT: pa.float64(),
    Kind.SYMBOL: pa.string(),
    Kind.RECORD: pa.string(),
}
CALENDAR_TYPES = {Domain.DATE: pa.date32(), Domain.TIMESTAMP: pa.timestamp("us")}
ROWS_MAX = 1 << 20
PIECE_BYTES = 32 << 20
"""Rows and bytes of a batch on the way out: what reads it may have little memory."""


class ArrowCodec:
    """Translates for one worker, whose symbols and records it knows."""

    def __init__(self, types: Mapping[str, Type], symbols: SymbolTable, records: RecordTables) -> None:
        self._types = dict(types)
        self._symbols = symbols
        self._records = records

    # --------------------------------------------------------------------------------------------------------------- in

    def read(self, relation: Relation, data: pa.Table) -> Table:
        """A table of the relation from its columns in order. Raises DlogError for values that the types do not have."""
        pairs = zip(relation.attributes, data.columns, strict=True)
        columns = tuple(self._read(relation, name, type, column) for (name, type), column in pairs)
        return Table(relation.kinds, columns, data.num_rows if not columns else -1)

    def _read(self, relation: Relation, name: str, type: Type, column: pa.ChunkedArray) -> np.ndarray:
        if column.null_count:
            raise _bad(relation, name, "the column has nulls", "filter them out, or coalesce them")
        if type.kind is Kind.SYMBOL:
            return _interned(relation, name, column, self._symbols)
        if type.kind is Kind.RECORD:
            return self._read_records(relation, name, type, column)
        try:
            return from_arrow(type, column)
        except (OutOfDomain, pa.ArrowInvalid) as error:
            what = sort_of(type)
            raise _bad(relation, name, f"a value is no {what}: {error}") from None

    def _read_records(self, relation: Relation, name: str, type: Type, column: pa.ChunkedArray) -> np.ndarray:
        texts = SymbolTable()
        which = _interned(relation, name, column, texts)
        try:
            ids: np.ndarray = parse_records(texts, type, self._types, self._symbols, self._records)[which]
            return ids
        except BadRecord as error:
            raise _bad(relation, name, f"{texts.text(error.index)!r} is no {type.name}: {error}") from None

    # -------------------------------------------------------------------------------------------------------------- out

    def write(self, relation: Relation, table: Table) -> Iterator[list[pa.Array]]:
        """The columns of a table, some rows at a time: as many as will take `PIECE_BYTES` if they are like those before."""
        start, rows = 0, ROWS_MAX >> 6
        while start < table.rows:
            columns = [c[start : start + rows] for c in table.columns]
            made = [self._write(t, c) for (_, t), c in zip(relation.attributes, columns, strict=True)]
            yield made
            start += rows
            taken = max(sum(column.nbytes for column in made), 1)
            rows = max(1, min(ROWS_MAX, len(made[0]) * PIECE_BYTES // taken))

    def _write(self, type: Type, column: np.ndarray) -> pa.Array:
        if type.kind is Kind.SYMBOL:
            return self._symbols.to_arrow(column).cast(pa.string())
        if type.kind is Kind.RECORD:
            texts, places = record_texts(type, column, self._types, self._symbols, self._records, quote=False)
            offsets = np.ascontiguousarray(texts.offsets)
            distinct = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(texts.data))
            return distinct.take(pa.array(places)).cast(pa.string())
        try:
            return to_arrow(type, column).cast(arrow_type(type))
        except OutOfDomain as error:
            raise DlogError(Diagnostic("number-out-of-range", str(error))) from None


def schema_of(relation: Relation) -> pa.Schema:
    return pa.schema([(name, arrow_type(type)) for name, type in relation.attributes])


def arrow_type(type: Type) -> pa.DataType:
    """What Arrow has for a type of the program on the way to Spark."""
    return CALENDAR_TYPES.get(type.domain) or ARROW_TYPES[type.kind]


def _interned(relation: Relation, name: str, column: pa.ChunkedArray, symbols: SymbolTable) -> np.ndarray:
    try:
        return symbols.intern_arrow(column)
    except NotText as mistake:
        raise _bad(relation, name, mistake.reason, "decode(bytes, 'UTF-8') makes text of bytes") from None


def _bad(relation: Relation, attribute: str, message: str, *notes: str) -> DlogError:
    return DlogError(Diagnostic("bad-fact", f"input of {relation.name}, {attribute}: {message}", notes=notes))
