"""A check that Arrow data lie within their memory: Arrow itself believes what a file says of where its values are.

Buffers that have been handed on by Arrow's C interface have no sizes any more: nothing can be checked then. So what is Arrow's
already is taken as it is.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def table_of(data: Any) -> pa.Table:
    """An Arrow table of whatever speaks Arrow. Raises ArrowException, or what its own stream does."""
    import pyarrow as pa

    match data:
        case pa.Table():
            return data
        case pa.RecordBatch():
            return pa.Table.from_batches([data])
        case pa.RecordBatchReader():
            return data.read_all()
        case pa.ChunkedArray() | pa.StructArray() if pa.types.is_struct(data.type):
            return pa.Table.from_struct_array(data)
        case _:
            return pa.table(data)


def exported(batch: pa.RecordBatch) -> tuple[Any, int]:
    """A batch by Arrow's C interface: what holds it, and the address of its array (kernels/arrow_structs.py)."""
    _, array = batch.__arrow_c_array__()
    return array, _pointer_of(array, b"arrow_array")


def column_of(values: Any) -> pa.Array | pa.ChunkedArray:
    """An Arrow column of any values. Raises ArrowException, TypeError, ValueError or OverflowError for what are none."""
    import pyarrow as pa

    return values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)


def is_column(values: Any) -> bool:
    """Whether this is a column of Arrow's."""
    return type(values).__module__.partition(".")[0] == "pyarrow" and hasattr(values, "to_pylist") and hasattr(values, "type")


def all_within_memory(values: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """A column, in chunks. Raises ArrowInvalid as `within_memory` does."""
    pa = _arrow()
    return within_memory(values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values]))


def within_memory(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column. Raises ArrowInvalid where values would be read beyond it; whether strings are text is not asked."""
    pa = _arrow()
    try:
        if column.num_chunks == 1:
            _check(column.chunk(0))
        else:
            for chunk in column.chunks:
                _check(chunk)
    except pa.ArrowIndexError as error:  # what views say of a buffer
        raise pa.ArrowInvalid(str(error)) from None
    return column


@cache
def _arrow() -> Any:
    """The library: imported when it is needed, and then at once there for each of many small columns."""
    import pyarrow as pa

    return pa


def _check(chunk: pa.Array) -> None:
    pa = _arrow()
    if chunk.type.id in _plain():
        chunk.validate(full=True)
        return
    if isinstance(chunk.type, pa.BaseExtensionType):
        chunk = chunk.storage
    chunk.validate()
    values = chunk
    if pa.types.is_dictionary(chunk.type):
        values = chunk.dictionary
        places = chunk.indices.drop_null().to_numpy(zero_copy_only=False)
        if len(places) and not 0 <= places.min() <= places.max() < len(values):
            raise pa.ArrowInvalid("a value is not in its dictionary")
    binary = _binaries().get(values.type)
    (values if binary is None else values.view(binary)).validate(full=True)


@cache
def _plain() -> frozenset[int]:
    """The numbers of the types whose values have one width."""
    pa = _arrow()
    whole = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    others = [pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.date64(), pa.duration("us")]
    times = [pa.time32("s"), pa.time64("us"), pa.timestamp("us"), pa.month_day_nano_interval()]
    return frozenset(type.id for type in (*whole, *others, *times) if pa.types.is_primitive(type))


@cache
def _binaries() -> dict[pa.DataType, pa.DataType]:
    """The types of texts, and those of the bytes that they are."""
    pa = _arrow()
    return {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
