"""Texts as Arrow has them, from columns of any of its types and from objects, and back."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from dlog.engine.values.arrow_memory import all_within_memory
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    import pyarrow as pa


def bad_rows(message: str, *notes: str) -> DlogError:
    return DlogError(Diagnostic("bad-rows", message, notes=notes))


def beyond_memory(reason: object) -> DlogError:
    return bad_rows(f"a column is not within its memory: {reason}")


def no_text(reason: object) -> DlogError:
    return bad_rows(f"a text is none: {reason}")


def arrow_texts(values: np.ndarray) -> pa.Array:
    """Texts, an array of objects, as Arrow's strings. Raises DlogError where one is none."""
    import pyarrow as pa

    try:
        found = pa.array(values, pa.string(), from_pandas=False)
    except UnicodeEncodeError as error:
        raise no_text(error) from None
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def object_texts(texts: pa.Array) -> np.ndarray:
    """Arrow's strings as an array of objects."""
    return np.asarray(texts.to_numpy(zero_copy_only=False))


def checked_texts(column: pa.ChunkedArray) -> list[pa.Array] | None:
    """A column of texts as Arrow's strings, chunk by chunk; None for one that has others, or nulls. Raises DlogError for one
    that is not within its memory, or where a text is none."""
    import pyarrow as pa

    if column.type == pa.string():
        chunks: list[pa.Array] = column.chunks
    elif _of_texts(column.type):
        try:
            chunks = _strings(all_within_memory(column))
        except pa.ArrowException as error:
            raise beyond_memory(error) from None
    else:
        return None
    for chunk in chunks:
        _check(chunk)
        if chunk.null_count:
            return None
    return chunks


def _check(chunk: pa.Array) -> None:
    try:
        chunk.validate(full=True)
    except (ValueError, IndexError) as error:  # Arrow's are such
        if "UTF8" not in str(error):
            raise beyond_memory(error) from None
        try:
            chunk.to_pylist()
        except UnicodeDecodeError as reason:
            raise no_text(reason) from None


def _of_texts(type: pa.DataType) -> bool:
    import pyarrow as pa

    return type in _types() or (pa.types.is_dictionary(type) and type.value_type in _types())


@cache
def _types() -> tuple[pa.DataType, ...]:
    import pyarrow as pa

    return pa.string(), pa.large_string(), pa.string_view()


def _strings(column: pa.ChunkedArray) -> list[pa.Array]:
    import pyarrow as pa

    return [part for chunk in column.chunks for part in _cast(chunk, pa.string())]


def _cast(chunk: pa.Array, type: pa.DataType) -> list[pa.Array]:
    """A chunk as parts of a type that may have less room than its own."""
    import pyarrow as pa

    try:
        return [chunk.cast(type)]
    except pa.ArrowInvalid:
        half = len(chunk) // 2
        if not half:
            raise
        return [*_cast(chunk.slice(0, half), type), *_cast(chunk.slice(half), type)]
