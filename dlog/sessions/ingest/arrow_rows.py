"""Tables of Arrow's as words of a relation: a kernel reads their columns in one go, where these are numbers and texts as most
are. What it does not read, `Codec.table_from_arrow` does, column by column, which also says what is wrong with a table."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.engine.formats.columns import Unclear, places
from dlog.engine.ir.rules import Domain, Kind, Relation, Type
from dlog.engine.kernels.codes import ArrowStatus, ArrowValues
from dlog.engine.kernels.values.arrow_columns import read_rows
from dlog.engine.values.addresses import address_of
from dlog.engine.values.arrow_memory import exported
from dlog.engine.values.symbols import SymbolTable

if TYPE_CHECKING:
    import pyarrow as pa


class ArrowRows:
    """Reads tables for one relation, which as a rule have one schema of Arrow's."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self._seen: pa.Schema | None = None
        self._places: list[int] | None = None

    def read(self, table: pa.Table | pa.RecordBatch, symbols: SymbolTable) -> np.ndarray | None:
        """The rows as words, column after column, with room for two columns more; None where the kernel does not read the
        table."""
        if self._seen is None or not self._seen.equals(table.schema):
            self._prepare(table.schema)
        if self._places is None or not table.num_rows:
            return None
        table = table.select(self._places)
        found, end = np.empty((len(self._places) + 2, table.num_rows), np.int64), 0
        for batch in table.to_batches() if hasattr(table, "to_batches") else (table,):
            start, end = end, end + batch.num_rows
            if start < end and not self._read(batch, found, start, symbols):
                return None
        return found

    def _prepare(self, given: pa.Schema) -> None:
        """Finds out how tables of this schema of Arrow's are read."""
        self._seen, self._places = given, None
        try:
            found = places(self._relation.names, given.names)
        except Unclear:
            return
        if not found:
            return
        types = [given.types[place] for place in found]
        values = [_value(kind, type) for (_, kind), type in zip(self._relation.attributes, types, strict=True)]
        if all(values):
            self._places = list(found)
            self._values = np.array(values, np.int64)
            self._values_at = address_of(self._values)

    def _read(self, batch: pa.RecordBatch, found: np.ndarray, start: int, symbols: SymbolTable) -> bool:
        """Has the kernel read a batch's columns, from a row on; false where it does not."""
        try:
            batch.validate()
        except (ValueError, IndexError):  # Arrow's are such
            return False
        _held, array = exported(batch)
        given = array, self._values_at, address_of(found) + 8 * start, found.shape[1]
        return symbols.interning(lambda table, hashes: read_rows(*given, table, hashes)) == ArrowStatus.READ


def is_arrow(rows: Any) -> bool:
    """Whether this is a table of Arrow's, or a batch of one."""
    kind = type(rows)
    return kind.__module__ == "pyarrow.lib" and kind.__name__ in ("Table", "RecordBatch")


def _value(given: Type, type: pa.DataType) -> ArrowValues:
    """What the kernel reads of a column."""
    return next((value for kind, domain, read, value in _read_types()
                 if kind is given.kind and domain is given.domain and read == type), ArrowValues.NOTHING)  # fmt: skip


@cache
def _read_types() -> tuple[tuple[Kind, Domain, pa.DataType, ArrowValues], ...]:
    """The kinds and domains of columns that the kernel reads, of what types of Arrow's. (Others may have no hash.)"""
    import pyarrow as pa

    return (
        (Kind.NUMBER, Domain.PLAIN, pa.int64(), ArrowValues.WORDS),
        (Kind.NUMBER, Domain.PLAIN, pa.int32(), ArrowValues.NUMBERS),
        (Kind.NUMBER, Domain.PLAIN, pa.uint32(), ArrowValues.UNSIGNED),
        (Kind.NUMBER, Domain.DATE, pa.date32(), ArrowValues.NUMBERS),
        (Kind.NUMBER, Domain.TIMESTAMP, pa.timestamp("us"), ArrowValues.WORDS),
        (Kind.UNSIGNED, Domain.PLAIN, pa.uint64(), ArrowValues.WORDS),
        (Kind.UNSIGNED, Domain.PLAIN, pa.uint32(), ArrowValues.UNSIGNED),
        (Kind.FLOAT, Domain.PLAIN, pa.float64(), ArrowValues.BITS),
        (Kind.SYMBOL, Domain.PLAIN, pa.string(), ArrowValues.SYMBOLS),
    )
