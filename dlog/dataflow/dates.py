"""Dates and times as integers, which are those that sessions have: days since 1970-01-01, and microseconds, in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.codec import value_preview
from dlog.engine.values.arrow_memory import is_column
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)


class _Sort(Enum):
    """What a value is."""

    DATE = "dates"
    TIME = "times"
    OTHER = "others"


def numbers_of_dates(values: Any) -> np.ndarray | None:
    """The numbers of a column, an array or a list, that begins with a date or a time; of another one None. Raises DlogError
    where something else is among them."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        return _numbers(values)
    if not len(values) or (sort := _sort(values[0])) is _Sort.OTHER:
        return None
    for value in values:
        if _sort(value) is not sort:
            raise _bad_date(f"{value_preview(value)} is among {sort.value}")
    return np.array([_number(value) for value in values], np.int64)


def has_dates(rows: Any) -> bool:
    """Whether rows - tuples, a dict of columns, an array or a table - begin with a date or a time in some column."""
    if type(rows).__module__ == "pyarrow.lib" and hasattr(rows, "schema"):
        return any(map(_is_calendar, rows.schema.types))
    if isinstance(rows, np.ndarray):
        return bool(rows.dtype.kind == "M")
    if isinstance(rows, Mapping):
        return any(_is_calendar(column.type) if is_column(column) else has_dates(column) for column in rows.values())
    first = next(iter(rows), None) if isinstance(rows, list | set | frozenset) else rows
    return any(_sort(value) is not _Sort.OTHER for value in (first if isinstance(first, list | tuple) else (first,)))


def _sort(value: Any) -> _Sort:
    if isinstance(value, np.datetime64):
        return _Sort.DATE if np.datetime_data(value.dtype)[0] == "D" else _Sort.TIME
    if isinstance(value, datetime):
        return _Sort.TIME
    return _Sort.DATE if isinstance(value, date) else _Sort.OTHER


def _number(value: Any) -> int:
    if hasattr(value, "to_datetime64"):  # pandas has nanoseconds
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        return int(_numbers(np.array([value]))[0])
    if isinstance(value, datetime):
        return (value - _EPOCH.replace(tzinfo=UTC if value.tzinfo else None)) // _MICROSECOND
    return int(value.toordinal() - _EPOCH.toordinal())


def _numbers(given: np.ndarray) -> np.ndarray:
    """Days as they are, all else in microseconds. Raises DlogError for parts of such, or where they need more than 64 bits."""
    found = given if np.datetime_data(given.dtype)[0] == "D" else given.astype("M8[us]")
    if len(wrong := np.flatnonzero(found.astype(given.dtype) != given)):  # NaT is unlike itself
        raise _bad_date(f"{given[wrong[0]]} is no whole number of microseconds of 64 bits")
    return np.ascontiguousarray(found).view(np.int64)


def numbers_in_arrow(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The numbers of a column of Arrow's that has dates or times; another one as it is. Raises Arrow's errors where there are
    parts of microseconds."""
    import pyarrow as pa

    if not _is_calendar(column.type):
        return column
    if pa.types.is_date(column.type):
        return column.cast(pa.date32()).cast(pa.int32())
    return column.cast(pa.timestamp("us")).cast(pa.int64())


def _is_calendar(type: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_date(type) or pa.types.is_timestamp(type))


def _bad_date(message: str) -> DlogError:
    return DlogError(Diagnostic("bad-rows", message))
