"""The kernel that writes rows as text, and the loop that drives it from several threads.

A column is an address and a code; texts come from one of two heaps, the symbols' or one made for the occasion (records).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_u8, store_u8
from dlog.engine.kernels.machine_structs import Bytes, Numbers, Words
from dlog.engine.kernels.values.numerals import WIDEST, write_value
from dlog.engine.kernels.values.words import copy_bytes

SYMBOL, TEXT = 4, 5
"""Codes of columns beside those of `numerals`: text of an id in the symbols' heap, in the made heap."""

ROWS = 1 << 16
"""Rows a thread writes at a time."""


@kernel
def _write_quoted(source, length, out):  # type: ignore[no-untyped-def]
    """Writes text in double quotes, its own doubled."""
    store_u8(out, 0, 34)
    at = 1
    for i in range(length):
        byte = load_u8(source, i)
        if byte == 34:
            store_u8(out, at, 34)
            at += 1
        store_u8(out, at, byte)
        at += 1
    store_u8(out, at, 34)
    return at + 1


@entry("i64[:,:]", "i64", "i64", "u8[:]", "bool", "u8[:]", "i64[:]", "u8[:]", "i64[:]", "u8[:]")
def write_rows(columns, begin, end, delimiter, quote, heap, offsets, made, made_offsets, out):  # type: ignore[no-untyped-def]
    """Writes rows from `begin` until `end` or `out` is full. `columns` are rows of (address, code, narrow). Returns (row
    reached, bytes written)."""
    base, delimiter_address = np.int64(out.ctypes.data), np.int64(delimiter.ctypes.data)
    heap_address, made_address = np.int64(heap.ctypes.data), np.int64(made.ctypes.data)
    limit = base + out.size
    address = base
    for row in range(begin, end):
        start = address
        for c in range(columns.shape[0]):
            code = columns[c, 1]
            narrow = columns[c, 2] != 0
            if code not in (SYMBOL, TEXT):
                if address + WIDEST + delimiter.size >= limit:
                    return row, start - base
                address += write_value(Bytes(address), columns[c, 0], row, code, narrow)
            else:
                id = Numbers(columns[c, 0])[row] if narrow else Words(columns[c, 0])[row]
                ends = offsets if code == SYMBOL else made_offsets
                source = (heap_address if code == SYMBOL else made_address) + ends[id]
                length = ends[id + 1] - ends[id]
                if address + 2 * length + 2 + delimiter.size >= limit:
                    return row, start - base
                if quote:
                    address += _write_quoted(source, length, address)
                else:
                    behind = (heap_address + heap.size) if code == SYMBOL else (made_address + made.size)
                    copy_bytes(source, address, length, behind, limit)
                    address += length
            if c + 1 < columns.shape[0]:
                for i in range(delimiter.size):
                    store_u8(address, i, load_u8(delimiter_address, i))
                address += delimiter.size
        store_u8(address, 0, 10)
        address += 1
    return end, address - base


@dataclass(frozen=True, slots=True)
class Texts:
    """Strings one after the other: string i is `data[offsets[i]:offsets[i + 1]]`."""

    data: np.ndarray
    offsets: np.ndarray


NO_TEXTS = Texts(np.empty(0, np.uint8), np.zeros(1, np.int64))


@dataclass(frozen=True, slots=True)
class Rendering:
    """Columns ready to be written: arrays of int32 or 64 bits and their codes."""

    columns: tuple[np.ndarray, ...]
    codes: tuple[int, ...]
    symbols: Texts
    texts: Texts = NO_TEXTS
    delimiter: bytes = b"\t"
    quote: bool = False


def render(rendering: Rendering, threads: int) -> Iterator[np.ndarray]:
    """The lines of a relation that has columns, in pieces."""
    rows = len(rendering.columns[0])
    columns = tuple(np.ascontiguousarray(c) for c in rendering.columns)
    table = np.array([(c.ctypes.data, k, c.itemsize == 4) for c, k in zip(columns, rendering.codes, strict=True)], np.int64)
    cuts = [(i, min(i + ROWS, rows)) for i in range(0, rows, ROWS)]
    if threads <= 1 or len(cuts) <= 1:
        for begin, end in cuts:
            yield _render_block(rendering, table, begin, end)
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[np.ndarray]] = deque()
        for begin, end in cuts:
            pending.append(pool.submit(_render_block, rendering, table, begin, end))
            if len(pending) > 2 * threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    del columns  # not earlier: `table` holds their addresses


def _render_block(rendering: Rendering, table: np.ndarray, begin: int, end: int) -> np.ndarray:
    delimiter = np.frombuffer(rendering.delimiter, np.uint8)
    out = np.empty((end - begin) * 16 * len(table) + 256, np.uint8)
    pieces, symbols, made = [], rendering.symbols, rendering.texts
    while begin < end:
        reached, size = write_rows(
            table, begin, end, delimiter, rendering.quote, symbols.data, symbols.offsets, made.data, made.offsets, out
        )
        pieces.append(out[:size])
        out = np.empty(2 * len(out), np.uint8)
        begin = reached
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
