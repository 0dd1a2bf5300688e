"""Rows from outside as a table of a relation.

What is taken: rows as Python tuples, a dict of columns by attribute, a NumPy array of two dimensions, for one attribute
a column (an array of one dimension, a Series, an Arrow array), another relation, whatever speaks Arrow (pyarrow, pandas,
polars, DuckDB ...), and a DataFrame of Spark's, with the types that Spark has for a relation's.
Named columns are matched as `dlog.engine.formats.columns` says: by name where all attributes have one, else by order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dlog.codec import Codec, numbers, value_preview
from dlog.engine.formats.columns import Unclear, places
from dlog.engine.ir.rules import Kind, Relation, Type
from dlog.engine.values import arrow_memory
from dlog.engine.values.table import DTYPES, Table
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.grammar.suggest import closest
from dlog.tabular import Tabular


def table_of(relation: Relation, codec: Codec, rows: Any) -> Table:
    """Raises DlogError for what is no rows of the relation."""
    check_rows(rows)
    if is_frame(rows):
        from dlog.engine.spark.inputs import as_declared

        return fetched(relation, codec, as_declared(relation, rows))
    if isinstance(rows, Mapping):
        return _from_columns(relation, codec, rows)
    if isinstance(rows, np.ndarray):
        return _from_array(relation, codec, rows)
    if isinstance(rows, Tabular) and Kind.RECORD in relation.kinds:  # records are texts in Arrow
        return _reordered(relation, codec, rows)
    if relation.arity == 1 and _is_column(rows):
        return _from_columns(relation, codec, {relation.attributes[0][0]: rows})
    data = arrow_table(relation, rows)
    if data is not None:
        found = _places(relation, data.schema.names)
        return codec.table_from_arrow(relation, data, found)
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        message = f"{value_preview(rows)} is no rows of `{relation.name}`: give tuples, columns or a table"
        raise _mistake("bad-rows", message)
    return from_tuples(relation, codec, rows)


def check_rows(rows: Any) -> None:
    """Raises DlogError for changes: their rows are some that have come, and some that have gone."""
    if isinstance(rows, Tabular) and rows.no_rows:
        raise DlogError(Diagnostic("bad-rows", f"{type(rows).__name__} are no rows", notes=(rows.no_rows,)))


def _reordered(relation: Relation, codec: Codec, rows: Tabular) -> Table:
    found = _places(relation, rows.to_arrow().column_names)
    return from_tuples(relation, codec, rows if found is None else ([row[place] for place in found] for row in rows))


def _places(relation: Relation, columns: Sequence[str]) -> tuple[int, ...] | None:
    try:
        return places(relation.names, columns)
    except Unclear as error:
        listed = f"the columns are {', '.join(columns)}"
        raise _mistake("unclear-columns", f"rows of `{relation.name}`: {error.message}", *error.notes, listed) from None


def _is_column(rows: Any) -> bool:
    """Whether this is a column of pandas, polars or Arrow; one of structs is as good as a table."""
    if "struct" in str(getattr(rows, "dtype", "")).lower():
        return False
    return len(getattr(rows, "shape", (0, 0))) == 1 or (hasattr(rows, "to_pylist") and not hasattr(rows, "num_columns"))


def is_frame(rows: object) -> bool:
    """Whether this is a DataFrame of Spark's."""
    return hasattr(rows, "sparkSession") and hasattr(rows, "toArrow")


def fetched(relation: Relation, codec: Codec, frame: Any) -> Table:
    """Rows of a DataFrame, which has the relation's columns and types."""
    from dlog.engine.spark.arrow import ArrowCodec
    from dlog.engine.spark.inputs import table_here

    return table_here(relation, frame, ArrowCodec(codec.program.types, codec.symbols, codec.records))


def from_tuples(relation: Relation, codec: Codec, rows: Iterable[Sequence[Any]]) -> Table:
    """NumPy's scalars are as good as Python's."""
    return codec.table(relation, [_plain_row(row) for row in rows])


def _from_columns(relation: Relation, codec: Codec, columns: Mapping[str, Any]) -> Table:
    names = [name for name, _ in relation.attributes]
    _check_names(relation, columns, names)
    given = [_column(relation, name, columns[name]) for name in names]
    _check_lengths(relation, names, [len(column) for column in given])
    pairs = list(zip((type for _, type in relation.attributes), given, strict=True))
    if all(_is_plain(type) and _is_array(column, type) for type, column in pairs):
        return Table(relation.kinds, tuple(numbers(type, np.ascontiguousarray(column)) for type, column in pairs))
    if any(kind is Kind.RECORD for kind in relation.kinds):
        return from_tuples(relation, codec, zip(*given, strict=True))
    import pyarrow as pa

    try:
        data = pa.table([arrow_memory.column_of(column) for column in given], names)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # This way takes strings that are no UTF-8, or says what is wrong where.
        return from_tuples(relation, codec, zip(*given, strict=True))
    return codec.table_from_arrow(relation, data)


def _is_plain(type: Type) -> bool:
    return type.kind in DTYPES and not type.is_calendar


def _is_array(column: Any, type: Type) -> bool:
    return isinstance(column, np.ndarray) and column.dtype == DTYPES[type.kind]


def _column(relation: Relation, name: str, values: Any) -> Any:
    """The values of one column, if they are several in an order."""
    ordered = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping | set | frozenset)
    if not ordered or getattr(values, "ndim", 1) != 1:
        note = "give a list, an array of one dimension or an Arrow column"
        raise _mistake("bad-columns", f"{value_preview(values)} is no column `{name}` of `{relation.name}`", note)
    if arrow_memory.is_column(values):
        check_column(relation, name, values)
    return values if hasattr(values, "__len__") else list(values)


def check_column(relation: Relation, name: str, values: Any) -> None:
    """Raises DlogError for a column of Arrow's whose values are not where it says."""
    import pyarrow as pa

    try:
        arrow_memory.all_within_memory(values)
    except pa.ArrowInvalid as error:
        what = f"the column `{name}` of `{relation.name}` is not within its memory"
        raise _mistake("bad-columns", f"{what}: {error}") from None


def _check_lengths(relation: Relation, names: list[str], lengths: list[int]) -> None:
    if len(set(lengths)) > 1:
        listed = ", ".join(f"`{name}` has {count}" for name, count in zip(names, lengths, strict=True))
        raise _mistake("bad-columns", f"the columns of `{relation.name}` are not of one length: {listed} values")


def _check_names(relation: Relation, columns: Mapping[str, Any], names: list[str]) -> None:
    missing = [name for name in names if name not in columns]
    unknown = [name for name in columns if name not in names]
    if unknown or missing:
        message = f"the columns of `{relation.name}` are {', '.join(names)}"
        notes = [f"there is no `{name}`" for name in missing]
        for name in unknown:
            close = closest(str(name), names)
            notes.append(f"`{name}` is unknown" + (f"; did you mean `{close}`?" if close else ""))
        raise _mistake("bad-columns", message, *notes)


def _from_array(relation: Relation, codec: Codec, rows: np.ndarray) -> Table:
    if rows.ndim == relation.arity == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or rows.shape[1] != relation.arity:
        message = f"an array of shape {rows.shape} is no rows of `{relation.name}`, which has {relation.arity} columns"
        raise _mistake("bad-rows", message)
    if not relation.arity:
        return Table((), (), len(rows))
    if type(rows) is not np.ndarray and np.ma.is_masked(rows):  # its module takes long to import
        raise _mistake("bad-rows", f"an array of rows of `{relation.name}` has masked values")
    names = [name for name, _ in relation.attributes]
    return _from_columns(relation, codec, {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(names)})


def arrow_table(relation: Relation, rows: Any) -> Any:
    """An Arrow table of what speaks Arrow or is of pandas or Spark, None for anything else."""
    if is_frame(rows):
        return _collect_frame(relation, rows)
    speaks = hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__")
    if not speaks and not (type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "columns")):
        return None
    import pyarrow as pa

    try:
        return arrow_memory.table_of(rows) if speaks else pa.Table.from_pandas(rows, preserve_index=False)
    except UnicodeEncodeError as error:
        message = f"rows of `{relation.name}`: {value_preview(error.object)} has a lone surrogate, which is no text"
        raise _mistake("bad-rows", message) from None
    except pa.ArrowException as error:
        reason = ": ".join(str(part) for part in reversed(error.args))
        raise _mistake("bad-rows", f"Arrow does not take these rows of `{relation.name}`: {reason}") from None


def _collect_frame(relation: Relation, frame: Any) -> Any:
    from dlog.engine.spark.error_translation import failures, reason_of
    from dlog.engine.spark.foreign_files import without_foreign_types

    try:
        return without_foreign_types(relation.name, relation.names, frame).toArrow()
    except failures() as error:
        raise _mistake("spark-failed", f"the rows for {relation.name} cannot be read: {reason_of(error)}") from error


def _plain_row(row: Any) -> Any:
    """The row with NumPy's scalars as Python's."""
    if not isinstance(row, tuple | list):
        return row
    return tuple([_plain_value(value) if isinstance(value, np.generic) else value for value in row])


def _plain_value(value: np.generic) -> Any:
    if isinstance(value, np.datetime64) and np.datetime_data(value.dtype)[0] not in ("D", "us"):
        exact = value.astype("datetime64[us]")
        return exact.item() if exact == value else value
    return value.item()


def _mistake(code: str, message: str, *notes: str) -> DlogError:
    return DlogError(Diagnostic(code, message, notes=notes))
