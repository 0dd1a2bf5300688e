"""The struct of Arrow's C data interface, arrays as their libraries hand them to each other, and texts read before."""

from __future__ import annotations

from dlog.engine.kernels.core.structs import Array, Inside, Pointer, Struct, i64
from dlog.engine.kernels.machine_structs import Words


class ArrowArray(Struct):
    """An array of Arrow's: of a table without nulls its columns are the children."""

    length: i64
    null_count: i64  # -1: unknown
    offset: i64  # where it begins in its buffers
    buffer_count: i64
    child_count: i64
    buffers: Words  # addresses: of the bits of what is no null, or null; then of the values, or of offsets and bytes
    children: Array[Pointer[ArrowArray]]


class KnownText(Struct):
    """A text that has a number."""

    start: i64  # address of its bytes
    length: i64
    number: i64


class KnownTexts(Struct):
    """Some texts that are known to be in a column."""

    count: i64
    limit: i64  # where the memory of their bytes ends
    texts: Inside[Array[KnownText]]


KnownColumns = Array[Pointer[KnownTexts]]
