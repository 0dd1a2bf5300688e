"""Rows from outside as words, and words as rows.

Rows come as tuples (of one column as bare values, too), a dict of columns, a NumPy array of two dimensions, or as whatever
speaks Arrow, a relation of a session included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.arguments import bad_argument
from dlog.codec import value_preview
from dlog.dataflow.kinds import Kind, Objects, Repeated, decode, encode, unnumbered
from dlog.dataflow.schema import Schema
from dlog.engine.operators.delta import Columns
from dlog.engine.times.altneu import AltNeu
from dlog.engine.values.arrow_memory import all_within_memory, is_column, table_of
from dlog.engine.values.texts import different_texts
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.rows import is_frame

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[Any, ...]
MAX_TEXT_BYTES = (1 << 31) - 1
"""Bytes of texts that fit into one array of Arrow's usual type."""


def words_of(schema: Schema, rows: Any, objects: Objects, numbered: bool = True) -> tuple[Columns, int]:
    """The columns of rows, and how many rows there are; if not `numbered`, those of texts as they are. Raises DlogError for
    what is no rows of the schema."""
    columns, count = _columns(schema, rows)
    given = zip(schema.kinds, columns, strict=True)
    words = (encode(k, column, objects) if numbered or k is not str else unnumbered(column) for k, column in given)
    return tuple(words), count


def _columns(schema: Schema, rows: Any) -> tuple[list[Any], int]:
    if isinstance(rows, Mapping):
        return _named(schema, dict(rows))
    if is_frame(rows):
        return _of_arrow(schema, _of_spark(schema, rows))
    if hasattr(rows, "__arrow_c_stream__"):
        return _of_arrow(schema, table_of(rows))
    if isinstance(rows, np.ndarray):
        if rows.ndim == 1 and len(schema.names) == 1:
            rows = rows[:, None]
        if rows.ndim != 2 or rows.shape[1] != len(schema.names):
            raise _bad_rows(f"an array of shape {rows.shape} is no rows of ({schema})")
        return [np.ascontiguousarray(column) for column in rows.T], len(rows)
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise _bad_rows(f"{value_preview(rows)} is no rows of ({schema}): give tuples, columns or a table")
    return _of_tuples(schema, list(rows))


def _of_tuples(schema: Schema, rows: list[Any]) -> tuple[list[Any], int]:
    arity = len(schema.names)
    if arity == 1:
        rows = [row if isinstance(row, tuple) and len(row) == 1 else (row,) for row in rows]
    for row in rows:
        if not isinstance(row, tuple | list) or len(row) != arity:
            raise _bad_rows(f"{value_preview(row)} is no row of ({schema})")
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * arity, len(rows)


def _named(schema: Schema, columns: dict[str, Any]) -> tuple[list[Any], int]:
    if set(columns) != set(schema.names):
        raise _bad_rows(f"the columns are {', '.join(schema.names)}, not {', '.join(map(str, columns))}")
    given = zip(schema.kinds, (columns[name] for name in schema.names), strict=True)
    found = [_of_chunks(k, c) if is_column(c) else c if isinstance(c, np.ndarray) else list(c) for k, c in given]
    lengths = {len(column) for column in found}
    if len(lengths) > 1:
        raise _bad_rows("the columns are not of one length")
    return found, lengths.pop() if lengths else 0


def _of_spark(schema: Schema, frame: Any) -> pa.Table:
    from dlog.engine.spark.error_translation import failures, reason_of
    from dlog.engine.spark.foreign_files import without_foreign_types

    try:
        return without_foreign_types("a collection", schema.names, frame).toArrow()
    except failures() as error:
        raise _bad_rows(f"rows of ({schema}) cannot be read: {reason_of(error)}") from error


def _of_arrow(schema: Schema, table: pa.Table) -> tuple[list[Any], int]:
    names = list(schema.names)
    given = table.column_names
    if given != names and set(given) == set(names):
        table = table.select(names)
    if table.num_columns != len(schema.names):
        raise _bad_rows(f"a table of {', '.join(table.column_names)} is no rows of ({schema})")
    kinds = zip(schema.kinds, table.columns, strict=True)
    return [_of_chunks(kind, column) for kind, column in kinds], table.num_rows


def _of_chunks(kind: Kind, given: pa.Array | pa.ChunkedArray) -> Any:
    """An array, or Python's values: of texts each different one once."""
    import pyarrow as pa

    try:
        column = all_within_memory(given)
    except pa.ArrowInvalid as error:
        raise _bad_rows(f"a column is not within its memory: {error}") from None
    if kind is str and not column.null_count and (repeated := _repeated(column)) is not None:
        return repeated
    return column.to_pylist() if kind in (str, object) else column.to_numpy()


def _repeated(column: pa.ChunkedArray) -> Repeated | None:
    """The texts of a column without nulls; None where it has none, or they are many for one array."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        encoded = column.unify_dictionaries().combine_chunks()
        whole = encoded.dictionary.type in (pa.string(), pa.large_string()) and not encoded.dictionary.null_count
        return Repeated(encoded.dictionary.to_pylist(), encoded.indices.to_numpy()) if whole else None
    if column.type in (pa.large_string(), pa.string_view()) and column.nbytes < MAX_TEXT_BYTES:
        column = column.cast(pa.string())
    if not pa.types.is_string(column.type):
        return None
    return Repeated(*different_texts(column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()))


def rows_of(schema: Schema, columns: Columns, rows: int, objects: Objects) -> list[Row]:
    """Words of the named columns as tuples."""
    if not schema.names:
        return [()] * rows
    values = (decode(k, words, objects).tolist() for k, words in zip(schema.kinds, columns, strict=False))
    return list(zip(*values, strict=True))


def shown_time(time: tuple[int, ...], scale: int) -> Any:
    """A time as users have it: a round, (round, iteration, ...) in loops, AltNeu of these in an alt/neu scope."""
    if scale == 1:
        return time[0] if len(time) == 1 else time
    return AltNeu((time[0] // 2, *time[1:]), bool(time[0] % 2))


def time_words(time: Any, depth: int, scale: int) -> tuple[int, ...]:
    """A time as words: a round alone is at the first iterations. Raises DlogError for what is no time of such a scope."""
    neu = False
    if isinstance(time, AltNeu):
        neu, time = time.neu, time.time
    listed = (time,) if isinstance(time, int | np.integer) else tuple(time) if isinstance(time, tuple) else ()
    if not 1 <= len(listed) <= depth or not all(isinstance(t, int | np.integer) and t >= 0 for t in listed):
        raise DlogError(Diagnostic("bad-time", f"{value_preview(time)} is no time of {depth} coordinates here"))
    return (int(listed[0]) * scale + neu, *map(int, listed[1:]), *(0,) * (depth - len(listed)))


def _bad_rows(message: str) -> DlogError:
    return DlogError(Diagnostic("bad-rows", message))


def whole_numbers(name: str, given: Any, rows: int) -> np.ndarray:
    """A whole number for each row, from one for all or as many as there are rows."""
    if type(given) is int and -(2**63) <= given < 2**63:
        return np.full(rows, given, np.int64)
    array = np.asarray(given)
    if array.size and (array.dtype.kind not in "iu" or (array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max)):
        raise bad_argument(name, "a whole number of 64 bits, or one for each row", given)
    if array.ndim > 1 or (array.ndim and len(array) != rows):
        raise bad_argument(name, f"as many numbers as rows, {rows}", given)
    return np.array(np.broadcast_to(array, (rows,)), np.int64)
