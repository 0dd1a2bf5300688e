"""Loading text files: a file is cut into blocks at line ends, threads parse blocks, the loading thread interns their symbols.

Interning follows the order of the file, so ids do not depend on the number of threads. A quoted field may hold line ends, so a
file with RFC 4180 quotes is parsed from front to back by one thread.
"""

from __future__ import annotations

import mmap
import os
import sys
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

import numpy as np

from dlog.caches import stays
from dlog.engine.formats.parameters import TextFormat
from dlog.engine.formats.scan import BRACKETS, LOOSE, NESTED, QUOTES, SKIP, TEXT, parse_rows
from dlog.engine.ir.rules import Kind
from dlog.engine.kernels.values.numerals import FLOAT, NUMBER, UNSIGNED
from dlog.engine.values.symbols import NotText, SymbolTable
from dlog.engine.values.table import Table

BLOCK = 1 << 22
"""Bytes a thread parses at a time."""

CODES = {Kind.NUMBER: NUMBER, Kind.UNSIGNED: UNSIGNED, Kind.FLOAT: FLOAT, Kind.SYMBOL: TEXT, Kind.RECORD: NESTED}


class BadLine(Exception):
    """A line that cannot be parsed starts at `position` of `data`."""

    def __init__(self, data: np.ndarray, position: int) -> None:
        super().__init__(position)
        self.data = data
        self.position = position


class BadText(Exception):
    """The text of an attribute, which starts at `start` of `data`, is not UTF-8."""

    def __init__(self, data: np.ndarray, start: int, attribute: int) -> None:
        super().__init__(start)
        self.data = data
        self.start = start
        self.attribute = attribute


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a line for `parse_rows`: a code and a slot for each, in the file's order."""

    delimiter: np.ndarray
    codes: np.ndarray
    slots: np.ndarray
    flags: int
    places: tuple[int, ...]
    """The slot of each attribute."""
    height: int
    """How many slots there are."""


@dataclass(frozen=True, slots=True)
class Block:
    """Parsed rows: per attribute its numbers, or the start and end of its texts in `data`."""

    data: np.ndarray
    fields: tuple[tuple[np.ndarray, ...], ...]
    rows: int
    position: int
    wrong: bool


def layout_of(kinds: tuple[Kind, ...], form: TextFormat) -> Layout:
    """The destinations of the fields of a line."""
    columns = form.columns if form.columns is not None else tuple(range(len(kinds)))
    codes = np.full(max(columns, default=-1) + 1, SKIP, np.int64)
    slots = np.zeros(len(codes), np.int64)
    places, height = [], 0
    for kind, column in zip(kinds, columns, strict=True):
        codes[column], slots[column] = CODES[kind], height
        places.append(height)
        height += 2 if CODES[kind] in (TEXT, NESTED) else 1
    flags = (BRACKETS if b"," in form.delimiter and not form.rfc4180 else 0) | (QUOTES if form.rfc4180 else 0)
    flags |= LOOSE if form.columns is not None else 0
    return Layout(np.frombuffer(form.delimiter, np.uint8), codes, slots, flags, tuple(places), height)


def read_bytes(path: Path | None) -> np.ndarray:
    """The bytes of a file, unpacked if it is gzip; standard input for None. Plain files that stay as they are are mapped, not
    copied."""
    if path is None:
        return _unpacked(sys.stdin.buffer.read())
    with path.open("rb") as file:
        about = os.fstat(file.fileno())
        if about.st_size == 0:
            return np.empty(0, np.uint8)
        try:
            own = stays(path, about)
            mapped: mmap.mmap | bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if own else file.read()
        except (OSError, ValueError):  # a pipe, or a file system without mapping
            mapped = file.read()
    return _unpacked(mapped)


def _unpacked(data: mmap.mmap | bytes) -> np.ndarray:
    """The bytes, those of all members one after the other where they are gzip."""
    if data[:2] != b"\x1f\x8b":
        return np.frombuffer(data, np.uint8)
    pieces, rest = [], bytes(data)
    while rest[:2] == b"\x1f\x8b":
        member = zlib.decompressobj(31)
        pieces.append(member.decompress(rest))
        if not member.eof:
            raise EOFError("it ends before its end mark")
        rest = member.unused_data
    return np.frombuffer(b"".join(pieces), np.uint8)


def load_text(
    data: np.ndarray,
    kinds: tuple[Kind, ...],
    form: TextFormat,
    symbols: SymbolTable,
    texts: dict[int, SymbolTable],
    threads: int,
) -> Table:
    """Parses a whole file. Texts of attribute i are interned in `texts[i]` where that is given (records), else in `symbols`.
    Raises `BadLine` and `BadText`."""
    layout = layout_of(kinds, form)
    blocks = []
    for block in _parse(data, _after_headers(data) if form.headers else 0, layout, threads):
        blocks.append(_interned(data, block, [texts.get(i, symbols) for i in range(len(kinds))]))
        if block.wrong:
            raise BadLine(data, block.position)
    columns = []
    for i, kind in enumerate(kinds):
        columns.append(_joined(kind, [read[i] for read, _ in blocks]))
        for read, _ in blocks:
            read[i] = np.empty(0, np.int32)  # let memory go column by column
    return Table(kinds, tuple(columns), sum(rows for _, rows in blocks))


def _after_headers(data: np.ndarray) -> int:
    return _line_end(data, 0)


def _line_end(data: np.ndarray, position: int) -> int:
    """The place behind the first line end at or after `position`."""
    while position < len(data):
        ends = np.flatnonzero(data[position : position + 4096] == 10)
        if len(ends):
            return position + int(ends[0]) + 1
        position += 4096
    return len(data)


def _parse(data: np.ndarray, begin: int, layout: Layout, threads: int) -> Iterator[Block]:
    if layout.flags & QUOTES:
        yield from _parse_quoted(data.copy(), begin, layout)
    elif threads <= 1 or len(data) - begin <= BLOCK:
        for start, stop in _cuts(data, begin):
            yield _parse_block(data, start, stop, layout)
    else:
        yield from _parse_threaded(data, begin, layout, threads)


def _cuts(data: np.ndarray, begin: int) -> Iterator[tuple[int, int]]:
    while begin < len(data):
        end = _line_end(data, min(begin + BLOCK, len(data)))
        yield begin, end
        begin = end


def _parse_threaded(data: np.ndarray, begin: int, layout: Layout, threads: int) -> Iterator[Block]:
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[Block]] = deque()
        for start, stop in _cuts(data, begin):
            pending.append(pool.submit(_parse_block, data, start, stop, layout))
            if len(pending) > 2 * threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _parse_block(data: np.ndarray, begin: int, end: int, layout: Layout) -> Block:
    lines = int(np.count_nonzero(data[begin:end] == 10)) + (data[end - 1] != 10)
    return _parse_some(data, begin, end, int(lines), layout)


def _parse_quoted(data: np.ndarray, begin: int, layout: Layout) -> Iterator[Block]:
    """`data` is written to: quotes are undoubled in place."""
    while begin < len(data):
        block = _parse_some(data, begin, len(data), BLOCK // 16, layout)
        yield block
        if block.wrong:
            return
        begin = block.position


def _parse_some(data: np.ndarray, begin: int, end: int, capacity: int, layout: Layout) -> Block:
    out = np.empty((layout.height, capacity), np.int64)
    wide = np.zeros(layout.height, np.int64)
    state = np.zeros(2, np.int64)
    # An address, as a mapped file is a read-only array: another type, for which the kernel would be compiled again.
    address, shape = data.ctypes.data, (layout.delimiter, layout.codes, layout.slots, layout.flags)
    rows = parse_rows(address, begin, end, *shape, out, wide, state)
    code_at = dict(zip(layout.slots.tolist(), layout.codes.tolist(), strict=True))
    fields: list[tuple[np.ndarray, ...]] = []
    for slot in layout.places:
        values = out[slot, :rows]
        if code_at[slot] in (TEXT, NESTED):
            fields.append((values, out[slot + 1, :rows]))
        else:
            fields.append((values.astype(np.int32) if code_at[slot] == NUMBER and not wide[slot] else values,))
    return Block(data, tuple(fields), rows, int(state[0]), bool(state[1]))


def _interned(data: np.ndarray, block: Block, tables: list[SymbolTable]) -> tuple[list[np.ndarray], int]:
    columns = []
    for i, (field, table) in enumerate(zip(block.fields, tables, strict=True)):
        try:
            columns.append(field[0] if len(field) == 1 else table.intern_slices(block.data, *field))
        except NotText as mistake:
            raise BadText(data, int(field[0][mistake.index]), i) from None
    return columns, block.rows


def _joined(kind: Kind, parts: list[np.ndarray]) -> np.ndarray:
    """One column from its blocks: numbers are int32 where all of them fit."""
    match kind:
        case Kind.NUMBER:
            joined = np.concatenate(parts) if parts else np.empty(0, np.int32)
        case Kind.UNSIGNED:
            joined = (np.concatenate(parts) if parts else np.empty(0, np.int64)).view(np.uint64)
        case Kind.FLOAT:
            joined = (np.concatenate(parts) if parts else np.empty(0, np.int64)).view(np.float64)
        case Kind.SYMBOL | Kind.RECORD:
            joined = np.concatenate(parts) if parts else np.empty(0, np.int32)
        case _:
            assert_never(kind)
    return joined
