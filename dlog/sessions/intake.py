"""Rows from outside as words of the engine: one row quickly, many rows as columns.

What is taken: a tuple (one row), rows as Python tuples, a dict of columns by attribute, a two-dimensional NumPy array, another
relation, whatever speaks Arrow (pyarrow, pandas, polars, DuckDB ...), and a DataFrame of Spark's, with the types that Spark
has for a relation's. Named columns go by their names if those are the attributes' names, else by their order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dlog.api import Relation as Rows
from dlog.engine.program.rules import Kind, Relation
from dlog.engine.values.differences import Columns, words
from dlog.engine.values.table import Table
from dlog.grammar.suggest import closest
from dlog.sessions.mistakes import mistake
from dlog.sessions.staging import Words
from dlog.values import Codec, shown

FEW = 64
"""So many rows are taken one by one."""
_LOW, _HIGH = -(2**63), 2**63 - 1
_KEPT_TEXTS = 1 << 16

_Encode = Callable[[Any], int]


class Intake:
    """Takes the rows of one relation."""

    def __init__(self, relation: Relation, codec: Codec) -> None:
        self.relation = relation
        self.arity = relation.arity
        self._codec = codec
        self._numbers = all(kind is Kind.NUMBER for kind in relation.kinds)
        self._encoders = [self._encoder(kind) for kind in relation.kinds]
        self._texts: dict[str, int] = {}

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
        columns = self._table([row]).columns
        return tuple([int(words(column)[0]) for column in columns])

    def _encoder(self, kind: Kind) -> _Encode:
        match kind:
            case Kind.NUMBER:
                return _number
            case Kind.UNSIGNED:
                return _unsigned
            case Kind.FLOAT:
                return _float
            case Kind.SYMBOL:
                return self._symbol
            case Kind.RECORD:
                return _record

    def _symbol(self, value: object) -> int:
        if type(value) is not str:
            raise _Unusual
        found = self._texts.get(value)
        if found is None:
            if len(self._texts) >= _KEPT_TEXTS:
                self._texts.clear()
            try:
                found = self._texts[value] = self._codec.symbols.intern(value)
            except UnicodeEncodeError:
                raise _Unusual from None
        return found

    # ----------------------------------------------------------------------------------------------------------- many rows

    def few(self, rows: object) -> list[Words] | None:
        """The rows one by one if they are few Python tuples."""
        if type(rows) is tuple:
            return [self.row(rows)]
        if isinstance(rows, list | set | frozenset) and len(rows) <= FEW and all(type(row) is tuple for row in rows):
            return [self.row(row) for row in rows]
        return None

    def columns(self, rows: Any) -> tuple[Columns, int]:
        """Any rows as columns of words, and how many there are."""
        if _is_frame(rows):
            from dlog.engine.spark.inputs import as_declared

            return self.fetched(as_declared(self.relation, rows))
        table = self._taken(rows)
        return tuple([words(column) for column in table.columns]), table.rows

    def fetched(self, frame: Any) -> tuple[Columns, int]:
        """Rows of a DataFrame, which has the relation's columns and types, as columns of words."""
        from dlog.engine.spark.arrow import ArrowCodec
        from dlog.engine.spark.inputs import table_here

        codec = ArrowCodec(self._codec.program.types, self._codec.symbols, self._codec.records)
        table = table_here(self.relation, frame, codec)
        return tuple([words(column) for column in table.columns]), table.rows

    def _taken(self, rows: Any) -> Table:
        if isinstance(rows, Rows):
            return self._table(rows)
        if isinstance(rows, Mapping):
            return self._from_columns(rows)
        if isinstance(rows, np.ndarray):
            return self._from_array(rows)
        data = arrow_table(self.relation, rows)
        if data is not None:
            names = [name for name, _ in self.relation.attributes]
            if len(set(names)) == len(data.column_names) and set(names) == set(data.column_names):
                data = data.select(names)
            return self._codec.table_from_arrow(self.relation, data)
        if isinstance(rows, tuple):
            rows = [rows]
        if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
            message = f"{shown(rows)} is no rows of `{self.relation.name}`: give tuples, columns or a table"
            raise mistake("bad-rows", message)
        return self._table(rows)

    def _table(self, rows: Iterable[Sequence[Any]]) -> Table:
        return self._codec.table(self.relation, [_plain_row(row) for row in rows])

    def _from_columns(self, columns: Mapping[str, Any]) -> Table:
        names = [name for name, _ in self.relation.attributes]
        self._check_names(columns, names)
        given = [self._column(name, columns[name]) for name in names]
        self._check_lengths(names, [len(column) for column in given])
        if any(kind is Kind.RECORD for kind in self.relation.kinds):
            return self._table(zip(*given, strict=True))
        import pyarrow as pa

        try:
            data = pa.table([pa.array(column) for column in given], names)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return self._table(zip(*given, strict=True))  # which takes strings that are no UTF-8, or says what is wrong where
        return self._codec.table_from_arrow(self.relation, data)

    def _column(self, name: str, values: Any) -> Any:
        """The values of one column, if they are several in an order."""
        ordered = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping | set | frozenset)
        if not ordered or getattr(values, "ndim", 1) != 1:
            note = "give a list, an array of one dimension or an Arrow column"
            raise mistake("bad-columns", f"{shown(values)} is no column `{name}` of `{self.relation.name}`", note)
        return values if hasattr(values, "__len__") else list(values)

    def _check_lengths(self, names: list[str], lengths: list[int]) -> None:
        if len(set(lengths)) > 1:
            listed = ", ".join(f"`{name}` has {count}" for name, count in zip(names, lengths, strict=True))
            raise mistake("bad-columns", f"the columns of `{self.relation.name}` are not of one length: {listed} values")

    def _check_names(self, columns: Mapping[str, Any], names: list[str]) -> None:
        missing = [name for name in names if name not in columns]
        unknown = [name for name in columns if name not in names]
        if unknown or missing:
            message = f"the columns of `{self.relation.name}` are {', '.join(names)}"
            notes = [f"there is no `{name}`" for name in missing]
            for name in unknown:
                close = closest(str(name), names)
                notes.append(f"`{name}` is unknown" + (f"; did you mean `{close}`?" if close else ""))
            raise mistake("bad-columns", message, *notes)

    def _from_array(self, rows: np.ndarray) -> Table:
        if rows.ndim != 2 or rows.shape[1] != self.arity:
            message = f"an array of shape {rows.shape} is no rows of `{self.relation.name}`, which has {self.arity} columns"
            raise mistake("bad-rows", message)
        if not self.arity:
            return Table((), (), len(rows))
        if np.ma.is_masked(rows):
            raise mistake("bad-rows", f"an array of rows of `{self.relation.name}` has masked values")
        names = [name for name, _ in self.relation.attributes]
        return self._from_columns({name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(names)})


def arrow_table(relation: Relation, rows: Any) -> Any:
    """An Arrow table of what speaks Arrow or is of pandas or Spark, None for anything else."""
    if _is_frame(rows):
        return _brought(relation, rows)
    speaks = hasattr(rows, "__arrow_c_stream__")
    if not speaks and type(rows).__module__.partition(".")[0] != "pandas":
        return None
    import pyarrow as pa

    try:
        return pa.table(rows) if speaks else pa.Table.from_pandas(rows, preserve_index=False)
    except pa.ArrowException as error:
        reason = ": ".join(str(part) for part in reversed(error.args))
        raise mistake("bad-rows", f"Arrow does not take these rows of `{relation.name}`: {reason}") from None


def _is_frame(rows: Any) -> bool:
    return hasattr(rows, "sparkSession") and hasattr(rows, "toArrow")


def _brought(relation: Relation, frame: Any) -> Any:
    from dlog.engine.spark.reasons import failures, reason_of

    try:
        return frame.toArrow()
    except failures() as error:
        raise mistake("spark-failed", f"the rows for {relation.name} cannot be read: {reason_of(error)}") from error


class _Unusual(Exception):
    """A value that the quick way does not know; the codec takes it or says what is wrong."""


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
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _record(value: object) -> int:
    raise _Unusual


def _plain_row(row: Any) -> Any:
    """The row with NumPy's scalars as Python's."""
    if not isinstance(row, tuple | list):
        return row
    return tuple([value.item() if isinstance(value, np.generic) else value for value in row])
