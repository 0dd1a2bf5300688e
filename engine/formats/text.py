"""Loading text files: a file is cut into blocks at line ends, threads parse blocks, the loading thread interns their symbols.

Interning follows the order of the file, so ids do not depend on the number of threads. A quoted field may hold line ends, so a
file with RFC 4180 quotes is parsed from front to back by one thread.
"""

from __future__ import annotations

import mmap
import os
import sys
import zlib
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, assert_never

import numpy as np

from dlog.caches import stays
from dlog.dataclass import dataclass
from dlog.engine.formats.budget import Part
from dlog.engine.formats.parameters import TextFormat
from dlog.engine.formats.scan import BRACKETS, LOOSE, NESTED, QUOTES, SKIP, TEXT, parse_rows
from dlog.engine.formats.wrong_lines import line_end, row_end
from dlog.engine.ir.rules import Kind, Type
from dlog.engine.kernels.values.numerals import DATE, NUMBER, NUMBER32
from dlog.engine.values.domains import code_of
from dlog.engine.values.symbols import NotText, SymbolTable
from dlog.engine.values.table import Table

PIECE, PACKED = 1 << 20, 1 << 14
"""Bytes that are read, and unpacked, at a time."""
BLOCK = 1 << 22
"""Bytes a thread parses at a time."""

_WHOLE = (NUMBER, NUMBER32, DATE)
"""Codes of columns that are kept in 32 bits where all values fit."""


def column_code(type_: Type) -> int:
    """The code of a column for `parse_rows`."""
    return {Kind.SYMBOL: TEXT, Kind.RECORD: NESTED}.get(type_.kind) or code_of(type_)


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


def layout_of(types: tuple[Type, ...], form: TextFormat) -> Layout:
    """The destinations of the fields of a line."""
    columns = form.columns if form.columns is not None else tuple(range(len(types)))
    codes = np.full(max(columns, default=-1) + 1, SKIP, np.int64)
    slots = np.zeros(len(codes), np.int64)
    places, height = [], 0
    for type_, column in zip(types, columns, strict=True):
        codes[column], slots[column] = column_code(type_), height
        places.append(height)
        height += 2 if codes[column] in (TEXT, NESTED) else 1
    flags = (BRACKETS if b"," in form.delimiter and not form.rfc4180 else 0) | (QUOTES if form.rfc4180 else 0)
    flags |= LOOSE if form.columns is not None else 0
    return Layout(np.frombuffer(form.delimiter, np.uint8), codes, slots, flags, tuple(places), height)


def read_bytes(path: Path | None, budget: Part, file_name: str) -> np.ndarray:
    """The bytes of a file, unpacked if it is gzip; standard input for None. Plain files that stay as they are are mapped, not
    copied."""
    if path is None:
        return _unpacked(_read_all(sys.stdin.buffer, budget, file_name), budget, file_name)
    with path.open("rb") as file:
        about = os.fstat(file.fileno())
        if about.st_size == 0:
            return np.empty(0, np.uint8)
        try:
            own = stays(path, about)
            mapped: mmap.mmap | bytearray = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if own else bytearray()
        except (OSError, ValueError):  # a pipe, or a file system without mapping
            own, mapped = False, bytearray()
        if not own:
            mapped = _read_all(file, budget, file_name)
    return _unpacked(mapped, budget, file_name)


def _read_all(file: BinaryIO, budget: Part, name: str) -> bytearray:
    content = bytearray()
    while piece := file.read(PIECE):
        budget.take(len(piece), name)
        content += piece
    return content


def _unpacked(data: mmap.mmap | bytearray, budget: Part, name: str) -> np.ndarray:
    """The bytes, those of all members one after the other where they are gzip."""
    if data[:2] != b"\x1f\x8b":
        return np.frombuffer(data, np.uint8)
    content, at = bytearray(), 0
    while data[at : at + 2] == b"\x1f\x8b":
        member = zlib.decompressobj(31)
        while not member.eof:
            packed = data[at : at + PACKED]
            piece = member.decompress(packed, PIECE)
            at += len(packed) - len(member.unconsumed_tail) - len(member.unused_data)
            if not (packed or piece):
                raise EOFError("it ends before its end mark")
            budget.take(len(piece), name)
            content += piece
    return np.frombuffer(content, np.uint8)


def load_text(
    data: np.ndarray,
    types: tuple[Type, ...],
    form: TextFormat,
    symbols: SymbolTable,
    texts: dict[int, SymbolTable],
    threads: int,
    on_wrong: Callable[[BadLine | BadText], None],
    most_wrong: int,
    take: Callable[[int], None] = lambda size: None,
) -> Table:
    """Parses a whole file. Texts of attribute i are interned in `texts[i]` where that is given (records), else in `symbols`.
    `on_wrong` hears of lines that cannot be read, and raises if there is no going on; with more than `most_wrong` there is
    none. `take` hears of memory before it is kept."""
    layout, kinds = layout_of(types, form), tuple(type_.kind for type_ in types)
    tables = [texts.get(i, symbols) for i in range(len(kinds))]
    blocks: list[tuple[list[np.ndarray], int]] = []
    for block in _parse(data, _begin(data, form), layout, form, threads, most_wrong):
        take(sum(part.nbytes for field in block.fields for part in field[:1]))
        blocks += _interned(data, block, 0, block.rows, tables, on_wrong)
        if block.wrong:
            on_wrong(BadLine(data, block.position))
    columns = []
    for i, kind in enumerate(kinds):
        columns.append(_joined(kind, [read[i] for read, _ in blocks]))
        for read, _ in blocks:
            read[i] = np.empty(0, np.int32)  # let memory go column by column
    return Table(kinds, tuple(columns), sum(rows for _, rows in blocks))


def _begin(data: np.ndarray, form: TextFormat) -> int:
    """Where the rows begin: behind a byte order mark and the line of names."""
    if form.headers:
        return line_end(data, 0)
    return len(BOM_UTF8) if data[: len(BOM_UTF8)].tobytes() == BOM_UTF8 else 0


def _parse(data: np.ndarray, begin: int, layout: Layout, form: TextFormat, threads: int, most_wrong: int) -> Iterator[Block]:
    if layout.flags & QUOTES:
        yield from _parse_quoted(data, begin, layout, form)
    elif threads <= 1 or len(data) - begin <= BLOCK:
        for start, stop in _cuts(data, begin):
            yield from _parse_block(data, start, stop, layout, most_wrong)
    else:
        yield from _parse_threaded(data, begin, layout, threads, most_wrong)


def _cuts(data: np.ndarray, begin: int) -> Iterator[tuple[int, int]]:
    while begin < len(data):
        end = line_end(data, min(begin + BLOCK, len(data)))
        yield begin, end
        begin = end


def _parse_threaded(data: np.ndarray, begin: int, layout: Layout, threads: int, most_wrong: int) -> Iterator[Block]:
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[list[Block]]] = deque()
        for start, stop in _cuts(data, begin):
            pending.append(pool.submit(_parse_block, data, start, stop, layout, most_wrong))
            if len(pending) > 2 * threads:
                yield from pending.popleft().result()
        while pending:
            yield from pending.popleft().result()


def _parse_block(data: np.ndarray, begin: int, end: int, layout: Layout, most_wrong: int) -> list[Block]:
    """The rows of some lines: one block, and one more behind each line that is wrong, until there are too many of these."""
    lines = int(np.count_nonzero(data[begin:end] == 10)) + int(data[end - 1] != 10)
    blocks: list[Block] = []
    while begin < end and len(blocks) < most_wrong:
        block = _parse_some(data, begin, end, lines, layout)
        blocks.append(block)
        lines -= block.rows + 1
        begin = line_end(data, block.position) if block.wrong else end
    return blocks


def _parse_quoted(original: np.ndarray, begin: int, layout: Layout, form: TextFormat) -> Iterator[Block]:
    """Parses a copy, in which quotes are undoubled in place. A row whose quote is never closed takes all that follows."""
    data = original.copy()
    while begin < len(data):
        block = _parse_some(data, begin, len(data), BLOCK // 16, layout)
        yield block
        begin = row_end(original, block.position, form) if block.wrong else block.position


def _parse_some(data: np.ndarray, begin: int, end: int, capacity: int, layout: Layout) -> Block:
    out = np.empty((layout.height, capacity), np.int64)
    wide = np.zeros(layout.height, np.int64)
    state = np.zeros(2, np.int64)
    # An address, as a mapped file is a read-only array: another type, for which the kernel would be compiled again.
    address, shape = data.ctypes.data, (layout.delimiter, layout.codes, layout.slots, layout.flags)
    rows = parse_rows(address, begin, end, *shape, out, wide, state)
    taken = layout.codes != SKIP  # columns that are left out have a slot, too, which is another one's
    code_at = dict(zip(layout.slots[taken].tolist(), layout.codes[taken].tolist(), strict=True))
    fields: list[tuple[np.ndarray, ...]] = []
    for slot in layout.places:
        values = out[slot, :rows] if rows > capacity // 2 else out[slot, :rows].copy()
        if code_at[slot] in (TEXT, NESTED):
            ends = out[slot + 1, :rows]
            fields.append((values, ends if rows > capacity // 2 else ends.copy()))
        else:
            fields.append((values.astype(np.int32) if code_at[slot] in _WHOLE and not wide[slot] else values,))
    return Block(data, tuple(fields), rows, int(state[0]), bool(state[1]))


def _interned(
    data: np.ndarray,
    block: Block,
    begin: int,
    end: int,
    tables: list[SymbolTable],
    on_wrong: Callable[[BadLine | BadText], None],
) -> Iterator[tuple[list[np.ndarray], int]]:
    """The columns of the rows from `begin` to `end`, in pieces between those with text that is none."""
    step = end - begin
    while begin < end:
        stop = min(begin + step, end)
        columns: list[np.ndarray] = []
        try:
            for field, table in zip(block.fields, tables, strict=True):
                parts = [part[begin:stop] for part in field]
                columns.append(parts[0] if len(parts) == 1 else table.intern_slices(block.data, *parts))
        except NotText as mistake:
            row, attribute = begin + mistake.index, len(columns)
            yield from _interned(data, block, begin, row, tables, on_wrong)
            on_wrong(BadText(data, int(block.fields[attribute][0][row]), attribute))
            begin, step = row + 1, 1  # where one is wrong others may be: no column is to be interned again and again
        else:
            yield columns, stop - begin
            begin, step = stop, 2 * step


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
