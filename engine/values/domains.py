"""Numbers as they are outside of the engine: dates and times, and numbers of 32 bits, by the domain of their type.

Within, a date is its days and a time its microseconds since 1970, both int64; floats of 32 bits are doubles that have no more
digits. Everything that goes in or out by the column, and is of numbers, goes through here.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dlog.engine.ir.rules import Domain, Kind, Type
from dlog.engine.kernels.values import numerals
from dlog.engine.kernels.values.numerals import number_texts, read_numbers
from dlog.engine.values.floats import one_nan
from dlog.engine.values.table import DTYPES

if TYPE_CHECKING:
    import pyarrow as pa

_CODES: Final = {
    Kind.NUMBER: (numerals.NUMBER, numerals.NUMBER32),
    Kind.UNSIGNED: (numerals.UNSIGNED, numerals.UNSIGNED32),
    Kind.FLOAT: (numerals.FLOAT, numerals.FLOAT32),
}
_CALENDAR_CODES: Final = {Domain.DATE: numerals.DATE, Domain.TIMESTAMP: numerals.TIMESTAMP}
_CALENDAR_DTYPES: Final = {Domain.DATE: np.dtype("datetime64[D]"), Domain.TIMESTAMP: np.dtype("datetime64[us]")}
_RANGES: Final = {
    (Kind.NUMBER, False): range(-(2**63), 2**63),
    (Kind.NUMBER, True): range(-(2**31), 2**31),
    (Kind.UNSIGNED, False): range(2**64),
    (Kind.UNSIGNED, True): range(2**32),
}
_NO_FLOAT: Final = {False: 2**1024 - 2**970, True: 2**128 - 2**103}
"""The smallest whole numbers that round to no float, of 64 and of 32 bits."""
_DAYS: Final = range(-(2**31), 2**31)
"""What Arrow's days can be."""


class OutOfDomain(Exception):
    """Values are not of the type; says why."""


def code_of(type_: Type) -> int:
    """The code of kernels that read and write the numbers of a type."""
    return _CALENDAR_CODES.get(type_.domain) or _CODES[type_.kind][type_.domain is Domain.SHORT]


def name_of(type_: Type) -> str:
    """What a value of the type is called."""
    names = {Kind.NUMBER: "a number", Kind.UNSIGNED: "an unsigned number", Kind.FLOAT: "a float", Kind.SYMBOL: "text"}
    calendar = {Domain.DATE: "a date, as 2026-11-25", Domain.TIMESTAMP: "a time, as 2026-11-25T12:30:00"}
    return calendar.get(type_.domain) or names[type_.kind]


def sort_of(type_: Type) -> str:
    """The word for what the type is of."""
    return type_.domain.value if type_.is_calendar else type_.kind.value


def range_of(type_: Type) -> range:
    """What integers of a type may be."""
    return _RANGES[type_.kind, type_.domain is Domain.SHORT]


# ---------------------------------------------------------------------------------------------------------------- Python


def fits(type_: Type, value: object) -> bool:
    """Whether a value of Python is a number of the type."""
    match type_.domain:
        case Domain.DATE:
            return isinstance(value, date) and not isinstance(value, datetime)
        case Domain.TIMESTAMP:
            return isinstance(value, datetime)
        case _ if type_.kind is Kind.FLOAT:
            most = _NO_FLOAT[type_.domain is Domain.SHORT]
            return isinstance(value, float | int) and (not abs(value) >= most or value in (float("inf"), float("-inf")))
        case _:
            return isinstance(value, int) and value in range_of(type_)


def from_python(type_: Type, values: list[Any]) -> np.ndarray:
    """Values that fit, as a column."""
    if type_.is_calendar:
        return np.array([_plain(value) for value in values], _CALENDAR_DTYPES[type_.domain]).view(np.int64)
    return normal(type_, np.array(values, DTYPES[type_.kind]))


def to_python(type_: Type, column: np.ndarray) -> list[Any]:
    """The numbers of a column. Days and microseconds for which Python has no date or time stay as they are."""
    values: list[Any] = (to_numpy(type_, column) if type_.is_calendar else column).tolist()
    if type_.is_calendar and None in values:  # NumPy's least number is no time
        return [-(2**63) if value is None else value for value in values]
    return values


def _plain(value: date) -> date:
    """A time with a zone as that of UTC without one."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def normal(type_: Type, values: np.ndarray) -> np.ndarray:
    """Numbers from outside with the dtype of their kind, as a column. Raises OutOfDomain."""
    if type_.kind is Kind.FLOAT:
        values = one_nan(values)
        if type_.domain is Domain.SHORT:
            with np.errstate(over="ignore"):
                rounded = values.astype(np.float32).astype(np.float64)
            if (np.isinf(rounded) & ~np.isinf(values)).any():
                raise OutOfDomain(f"{values[np.isinf(rounded) & ~np.isinf(values)][0]} does not fit a float of 32 bits")
            return rounded
    elif type_.domain is Domain.SHORT and len(values):
        low, high = range_of(type_)[0], range_of(type_)[-1]
        wrong = values[(values < low) | (values > high)]
        if len(wrong):
            raise OutOfDomain(f"{wrong[0]} does not fit a {type_.kind.value} of 32 bits")
    return values


# ------------------------------------------------------------------------------------------------------- NumPy and Arrow


def dtype_of(type_: Type) -> np.dtype[Any]:
    """The dtype of a type's numbers outside."""
    return _CALENDAR_DTYPES.get(type_.domain) or np.dtype(DTYPES[type_.kind])


def to_numpy(type_: Type, column: np.ndarray) -> np.ndarray:
    """A column of numbers as NumPy has them: days are datetime64[D], microseconds datetime64[us]."""
    values = column.astype(DTYPES[type_.kind], copy=False)
    return np.ascontiguousarray(values).view(_CALENDAR_DTYPES[type_.domain]) if type_.is_calendar else values


def arrow_type(type_: Type) -> pa.DataType:
    return _arrow_type(type_.kind, type_.domain)


@cache
def _arrow_type(kind: Kind, domain: Domain) -> pa.DataType:
    return _arrow_types()[domain.value if domain in _CALENDAR_DTYPES else kind.value]


@cache
def _arrow_types() -> dict[str, pa.DataType]:
    import pyarrow as pa

    numbers = {kind.value: pa.from_numpy_dtype(dtype) for kind, dtype in DTYPES.items()}
    return {Domain.DATE.value: pa.date32(), Domain.TIMESTAMP.value: pa.timestamp("us"), **numbers}


def to_arrow(type_: Type, column: np.ndarray) -> pa.Array:
    """A column of numbers as an Arrow array. Raises OutOfDomain for a day that Arrow does not have."""
    import pyarrow as pa

    values = column.astype(DTYPES[type_.kind], copy=False)
    if type_.domain is Domain.DATE:
        if len(values) and not (int(values.min()) in _DAYS and int(values.max()) in _DAYS):
            raise OutOfDomain("a day is further from 1970 than 32 bits can say")
        return pa.array(values.astype(np.int32)).view(pa.date32())
    found = pa.array(np.ascontiguousarray(values))
    return found.view(arrow_type(type_)) if type_.is_calendar else found


def from_arrow(type_: Type, column: pa.ChunkedArray) -> np.ndarray:
    """An Arrow column without nulls as a column. Raises OutOfDomain, or Arrow's errors, where values are not of the type."""
    wanted = arrow_type(type_)
    if column.type != wanted:
        if type_.is_calendar and not _has_calendar(type_, column.type):
            raise OutOfDomain(f"{column.type} is not {type_.domain.value}")
        column = whole_decimals(column, wanted).cast(wanted)
    values = np.ascontiguousarray(column.to_numpy())
    return values.view(np.int64) if type_.is_calendar else normal(type_, values)  # NumPy's days have 64 bits


def whole_decimals(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """The column. Raises OutOfDomain for decimals with digits behind the point where whole numbers are wanted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_decimal(column.type) and pa.types.is_integer(wanted):
        same = pc.all(pc.equal(pc.floor(column), column)).as_py()
        if same is False:
            times = 10**column.type.scale
            raise OutOfDomain(
                f"a decimal has digits behind the point: give how many units of the last digit it is, {times} times as much, "
                "or declare the column as float"
            )
    return column


def _has_calendar(type_: Type, found: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_date(found) or (type_.domain is Domain.TIMESTAMP and pa.types.is_timestamp(found)))


# ----------------------------------------------------------------------------------------------------------------- texts


def to_texts(type_: Type, column: np.ndarray) -> list[str]:
    """The numbers of a column as files have them."""
    data, offsets = number_texts(column.astype(DTYPES[type_.kind], copy=False), code_of(type_))
    heap, ends = data.tobytes().decode(), offsets.tolist()
    return [heap[a:b] for a, b in pairwise(ends)]


def from_texts(type_: Type, texts: list[str]) -> tuple[np.ndarray, int]:
    """The numbers that texts are, and how many there are before the first that is none."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    heap, out = np.frombuffer(b"".join(encoded) or b"\0", np.uint8), np.zeros(len(texts), np.int64)
    done = read_numbers(heap, np.ascontiguousarray(ends[:-1]), np.ascontiguousarray(ends[1:]), code_of(type_), True, out)
    return out.view(DTYPES[type_.kind]), int(done)
