"""A check that Arrow data lie within their memory: Arrow itself believes what a file says of where its values are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def within_memory(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column. Raises ArrowInvalid where values would be read beyond it; whether strings are text is not asked."""
    import pyarrow as pa

    try:
        for chunk in column.chunks:
            _check(chunk)
    except pa.ArrowIndexError as error:  # what views say of a buffer
        raise pa.ArrowInvalid(str(error)) from None
    return column


def _check(chunk: pa.Array) -> None:
    import pyarrow as pa

    chunk.validate()
    values = chunk
    if pa.types.is_dictionary(chunk.type):
        values = chunk.dictionary
        places = chunk.indices.drop_null().to_numpy(zero_copy_only=False)
        if len(places) and not 0 <= places.min() <= places.max() < len(values):
            raise pa.ArrowInvalid("a value is not in its dictionary")
    texts = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    (values.view(texts[values.type]) if values.type in texts else values).validate(full=True)
