"""Rows from outside as words, and words as rows.

Rows come as tuples (of one column as bare values, too), a dict of columns, a NumPy array of two dimensions, or as whatever
speaks Arrow, a relation of a session included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.arguments import bad_argument
from dlog.codec import value_preview
from dlog.dataflow.arrow import TableReader, column_of
from dlog.dataflow.arrow_texts import bad_rows
from dlog.dataflow.kinds import Kind, Objects, decode, encode, objects_of
from dlog.dataflow.schema import Schema
from dlog.engine.operators.delta import Columns, Delta
from dlog.engine.times.altneu import AltNeu
from dlog.engine.values.array_pool import RecurringBlocks
from dlog.engine.values.arrow_memory import is_column, table_of
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.rows import check_rows, is_frame

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[Any, ...]


class RowReader:
    """Reads rows of a schema as words. The texts of some columns, by their places, are `held`, all others get numbers."""

    def __init__(self, schema: Schema, objects: Objects, held: frozenset[int] = frozenset()) -> None:
        self.schema, self.objects, self.held = schema, objects, held
        self._tables = TableReader(schema, objects, held)
        self._blocks = RecurringBlocks()

    def read(self, rows: Any) -> tuple[Columns, int]:
        """The columns of rows, and how many rows there are. Raises DlogError for what is no rows of the schema."""
        table = _table(self.schema, rows)
        if table is None:
            return self._read(rows, [])
        block = np.empty((len(self.schema.names), table.num_rows), np.int64)
        self._tables.fill(table, block, [])
        return tuple(block), table.num_rows

    def updates(self, rows: Any, holds: list[int]) -> Delta:
        """Rows as updates of one coordinate, with memory of their own; times and diffs are still to be written. `holds` gets
        which texts are held for them."""
        table, arity = _table(self.schema, rows), len(self.schema.names)
        if table is not None:
            block = self._blocks.block(arity + 2, table.num_rows)
            self._tables.fill(table, block, holds)
        else:
            given, count = self._read(rows, holds)
            block = self._blocks.block(arity + 2, count)
            for place, column in enumerate(given):
                block[place] = column  # a copy: what is given may be changed later
        return Delta.of_block(block, arity)

    def _read(self, rows: Any, holds: list[int]) -> tuple[Columns, int]:
        columns, count = _columns(self.schema, rows)
        words = []
        for place, (kind, column) in enumerate(zip(self.schema.kinds, columns, strict=True)):
            if place not in self.held:
                words.append(encode(kind, column, self.objects))
                continue
            holds.append(self.objects.held.hold(objects_of(column)))
            words.append(np.arange(holds[-1], holds[-1] + len(column)))
        return tuple(words), count


def words_of(schema: Schema, rows: Any, objects: Objects) -> tuple[Columns, int]:
    """The same of rows that are no more of a kind."""
    return RowReader(schema, objects).read(rows)


def _table(schema: Schema, rows: Any) -> pa.Table | None:
    """What speaks Arrow as a table, also the only column there is."""
    check_rows(rows)
    if is_frame(rows):
        return _of_spark(schema, rows)
    if len(schema.names) == 1 and is_column(rows) and "struct" not in str(rows.type):
        return _arrow_table(schema, {schema.names[0]: rows})
    if not hasattr(rows, "__arrow_c_stream__"):
        return None
    return _of_series(schema, rows) if _is_series(rows) else _arrow_table(schema, rows)


def _is_series(rows: Any) -> bool:
    """Whether what speaks Arrow is one column, as Series of Polars are; of structs it is as good as a table."""
    return len(getattr(rows, "shape", ())) == 1 and "struct" not in str(getattr(rows, "dtype", "")).lower()


def _of_series(schema: Schema, series: Any) -> pa.Table:
    import pyarrow as pa

    if len(schema.names) != 1:
        raise bad_rows(f"a series is one column: it is no rows of ({schema})")
    try:
        return pa.table({schema.names[0]: pa.chunked_array(series)})
    except pa.ArrowException as error:
        raise bad_rows(f"Arrow does not take this series of ({schema}): {error}") from None


def _arrow_table(schema: Schema, rows: Any) -> pa.Table:
    try:
        return table_of(rows)
    except _failures() as error:
        raise bad_rows(f"Arrow does not take these rows of ({schema}): {error}") from None


def _failures() -> type[Exception]:
    """What Arrow raises: it is asked for when something is raised."""
    import pyarrow as pa

    return pa.ArrowException  # type: ignore[no-any-return]


def _columns(schema: Schema, rows: Any) -> tuple[list[Any], int]:
    if isinstance(rows, Mapping):
        return _named(schema, dict(rows))
    if isinstance(rows, np.ndarray):
        if rows.ndim == 1 and len(schema.names) == 1:
            rows = rows[:, None]
        if rows.ndim != 2 or rows.shape[1] != len(schema.names):
            raise bad_rows(f"an array of shape {rows.shape} is no rows of ({schema})")
        given = zip(schema.names, schema.kinds, rows.T, strict=True)
        return [np.ascontiguousarray(_unmasked(*each)) for each in given], len(rows)
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        notes = ("what is lazy is collected first: `rows.collect()`",) if hasattr(rows, "collect") else ()
        raise bad_rows(f"{value_preview(rows)} is no rows of ({schema}): give tuples, columns or a table", *notes)
    return _of_tuples(schema, list(rows))


def _of_tuples(schema: Schema, rows: list[Any]) -> tuple[list[Any], int]:
    arity = len(schema.names)
    if arity == 1:
        one = object in schema.kinds  # of which a tuple of several values is one
        rows = [row if isinstance(row, tuple) and not (one and len(row) != 1) else (row,) for row in rows]
    for row in rows:
        if not isinstance(row, tuple | list) or len(row) != arity:
            raise bad_rows(f"{value_preview(row)} is no row of ({schema})", *_meant(arity, rows, row))
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * arity, len(rows)


def _meant(arity: int, rows: list[Any], row: Any) -> tuple[str, ...]:
    """What the one may have meant who gives these rows, of which one is none."""
    if isinstance(row, Mapping):
        return ("columns go into one dict, of a list each: `{'x': [1, 2], 'y': [3, 4]}`",)
    if len(rows) == arity and not any(isinstance(each, tuple | list) for each in rows):
        return ("rows come as a list of tuples, also where there is one: `[(1, 2)]`, not `(1, 2)`",)
    return ()


def _named(schema: Schema, columns: dict[str, Any]) -> tuple[list[Any], int]:
    if set(columns) != set(schema.names):
        raise bad_rows(f"the columns are {', '.join(schema.names)}, not {', '.join(map(str, columns)) or 'none'}")
    given = ((name, kind, columns[name]) for name, kind in zip(schema.names, schema.kinds, strict=True))
    found = [column_of(n, k, c) if is_column(c) else _listed(n, k, c) for n, k, c in given]
    lengths = {len(column) for column in found}
    if len(lengths) > 1:
        raise bad_rows("the columns are not of one length")
    return found, lengths.pop() if lengths else 0


def _listed(name: str, kind: Kind, given: Any) -> np.ndarray | list[Any]:
    if isinstance(given, np.ndarray):
        if given.ndim != 1:
            raise bad_rows(f"an array of shape {given.shape} is no column")
        return _unmasked(name, kind, given)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        note = "also of one row a column is a list: `{'x': [1]}`"
        raise bad_rows(f"the column `{name}` has a value for each row, and {value_preview(given)} is no list of them", note)
    return list(given)


def _unmasked(name: str, kind: Kind, column: np.ndarray) -> np.ndarray:
    """A column whose masked values are None among objects. Raises DlogError where they are among others."""
    if type(column) is np.ndarray or not np.ma.is_masked(column):  # its module takes long to import
        return column
    if kind is not object:
        row = int(np.ma.getmaskarray(column).argmax())
        raise bad_rows(f"column `{name}` has a masked value in row {row + 1}, where {kind.__name__} is meant")
    found: np.ndarray = np.empty(len(column), object)
    found[:] = column.tolist()
    return found


def _of_spark(schema: Schema, frame: Any) -> pa.Table:
    from dlog.engine.spark.error_translation import failures, reason_of
    from dlog.engine.spark.foreign_files import without_foreign_types

    try:
        table = without_foreign_types("a collection", schema.names, frame).toArrow()
    except failures() as error:
        raise bad_rows(f"rows of ({schema}) cannot be read: {reason_of(error)}") from error
    alike = {name.lower(): name for name in schema.names}  # to Spark upper and lower case are
    return table.rename_columns([n if n in schema.names else alike.get(n.lower(), n) for n in table.column_names])


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
    words = (int(listed[0]) * scale + neu, *map(int, listed[1:]), *(0,) * (depth - len(listed)))
    if max(words) >= 2**63:
        raise DlogError(Diagnostic("bad-time", f"{value_preview(time)} is no time: coordinates have 64 bits"))
    return words


def number_or_numbers(name: str, given: Any, rows: int) -> np.ndarray | int:
    """A whole number for all rows, or one for each."""
    return given if type(given) is int and -(2**63) <= given < 2**63 else whole_numbers(name, given, rows)


def whole_numbers(name: str, given: Any, rows: int) -> np.ndarray:
    """A whole number for each row, from one for all or as many as there are rows."""
    array = np.asarray(given)
    if type(given) is not np.ndarray and isinstance(given, np.ndarray) and np.ma.is_masked(given):
        raise bad_argument(name, "a whole number for each row, of which none is masked", given)
    if array.size and (array.dtype.kind not in "iu" or (array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max)):
        raise bad_argument(name, "a whole number of 64 bits, or one for each row", given)
    if array.ndim > 1 or (array.ndim and len(array) != rows):
        raise bad_argument(name, f"as many numbers as rows, {rows}", given)
    return np.array(np.broadcast_to(array, (rows,)), np.int64)
