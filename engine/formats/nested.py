"""Records as text, `[1, [two, nil]]`, both ways, whole columns at a time.

Both directions work level by level: the records of one nesting depth and one type are split or assembled together, so the
number of steps is the depth times the number of types, whatever the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np

from dlog.engine.formats.records import RecordTables
from dlog.engine.formats.render import NO_TEXTS, Texts
from dlog.engine.formats.text import CODES
from dlog.engine.ir.rules import Kind, Type
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.values.numerals import number_texts, read_numbers
from dlog.engine.values.symbols import SymbolTable, gather_slices


class BadRecord(Exception):
    """Text `index` is not a record of the wanted type."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index


def _field_types(type_: Type, types: dict[str, Type]) -> list[Type]:
    return [types[name] for _, name in type_.fields]


# -------------------------------------------------------------------------------------------------------------- writing

_PUNCTUATION = np.frombuffer(b"nil[, ]", np.uint8)
_NIL, _OPEN, _COMMA, _CLOSE = (0, 3), (3, 1), (4, 2), (6, 1)  # (start, length) in the above


def record_texts(
    type_: Type, ids: np.ndarray, types: dict[str, Type], symbols: SymbolTable, records: RecordTables, quote: bool
) -> tuple[Texts, np.ndarray]:
    """The texts of the distinct records among `ids`, and which of them each row has. `quote` quotes symbols in them."""
    distinct, inverse = np.unique(ids, return_inverse=True)
    levels = [{type_.name: distinct}]
    fields: list[dict[str, list[np.ndarray]]] = []
    while levels[-1]:
        fields.append({name: records.fields(len(types[name].fields), found[found != 0]) for name, found in levels[-1].items()})
        levels.append(_children(fields[-1], types))
    below: dict[str, Texts] = {}
    for depth in range(len(fields) - 1, -1, -1):
        level, columns, deeper = levels[depth], fields[depth], levels[depth + 1]
        below = {
            name: _assemble(level[name] != 0, _piece_texts(types[name], columns[name], types, symbols, deeper, below, quote))
            for name in level
        }
    return below[type_.name], inverse


def _children(columns: dict[str, list[np.ndarray]], types: dict[str, Type]) -> dict[str, np.ndarray]:
    """The distinct records that occur in the fields of a level, by type."""
    found: dict[str, list[np.ndarray]] = {}
    for name, fields in columns.items():
        for type_, field in zip(_field_types(types[name], types), fields, strict=True):
            if type_.kind is Kind.RECORD and len(field):
                found.setdefault(type_.name, []).append(field)
    return {name: np.unique(np.concatenate(parts)) for name, parts in found.items()}


def _piece_texts(
    type_: Type,
    fields: list[np.ndarray],
    types: dict[str, Type],
    symbols: SymbolTable,
    deeper: dict[str, np.ndarray],
    below: dict[str, Texts],
    quote: bool,
) -> list[tuple[Texts, np.ndarray]]:
    """For each field its texts and which of them each record has."""
    pieces = []
    for field_type, field in zip(_field_types(type_, types), fields, strict=True):
        match field_type.kind:
            case Kind.RECORD if len(field):
                pieces.append((below[field_type.name], np.searchsorted(deeper[field_type.name], field)))
            case Kind.RECORD:
                pieces.append((NO_TEXTS, field))
            case Kind.SYMBOL:
                distinct, inverse = np.unique(field, return_inverse=True)
                texts = Texts(*symbols.gather(distinct))
                pieces.append((_quoted(texts) if quote else texts, inverse))
            case Kind.FLOAT | Kind.NUMBER | Kind.UNSIGNED:
                pieces.append((Texts(*number_texts(field, CODES[field_type.kind])), np.arange(len(field))))
            case _:
                assert_never(field_type.kind)
    return pieces


def _quoted(texts: Texts) -> Texts:
    """Texts in double quotes, with a backslash before quotes and backslashes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    buffers = [None, pa.py_buffer(np.ascontiguousarray(texts.offsets)), pa.py_buffer(texts.data)]
    plain = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(texts.offsets) - 1, buffers)
    escaped = pc.replace_substring(pc.replace_substring(plain, "\\", "\\\\"), '"', '\\"')
    mark = pa.scalar(b'"', pa.large_binary())
    joined = pc.binary_join_element_wise(mark, escaped, mark, pa.scalar(b"", pa.large_binary()))
    _, offsets, data = joined.buffers()
    return Texts(np.frombuffer(data or b"", np.uint8), np.frombuffer(offsets, np.int64)[: len(joined) + 1])


def _assemble(present: np.ndarray, fields: list[tuple[Texts, np.ndarray]]) -> Texts:
    """`[f0, f1]` for each record that is present, `nil` for the others; the fields have an entry per present record."""
    heap = np.concatenate([_PUNCTUATION, *(texts.data for texts, _ in fields)])
    count, pieces = len(present), 2 * len(fields) + 1
    starts, lengths = np.zeros((count, pieces), np.int64), np.zeros((count, pieces), np.int64)
    starts[:, 0], lengths[:, 0] = _NIL
    for p in range(0, pieces, 2):
        starts[present, p], lengths[present, p] = _OPEN if p == 0 else _CLOSE if p == pieces - 1 else _COMMA
    if len(fields) == 0:
        starts[present, 0], lengths[present, 0] = _OPEN
    base = len(_PUNCTUATION)
    for i, (texts, which) in enumerate(fields):
        starts[present, 2 * i + 1] = base + texts.offsets[:-1][which]
        lengths[present, 2 * i + 1] = np.diff(texts.offsets)[which]
        base += len(texts.data)
    data, offsets = gather_slices(heap, starts.ravel(), lengths.ravel())
    return Texts(data, np.ascontiguousarray(offsets[::pieces]))


# -------------------------------------------------------------------------------------------------------------- reading


@kernel
def _blank(byte):  # type: ignore[no-untyped-def]
    return byte == 32 or 9 <= byte <= 13


@kernel
def _value_end(data, at, end, nested):  # type: ignore[no-untyped-def]
    """The end of the field at `at`: the next comma or bracket that closes, outside nested records and quotes."""
    depth = 0
    fresh = True
    while at < end:
        byte = data[at]
        if nested and fresh and byte == 34:
            at += 1
            while at < end and data[at] != 34:
                at += 2 if data[at] == 92 else 1
        elif depth == 0 and (byte == 44 or byte == 93):
            return at
        elif nested and byte == 91:
            depth += 1
        elif nested and byte == 93:
            depth -= 1
        fresh = byte == 91 or byte == 44 or (fresh and _blank(byte))
        at += 1
    return -1


@kernel
def _unescape(data, at, end):  # type: ignore[no-untyped-def]
    """Undoes the backslashes of the quoted text at `at`, in place. Returns its end and the place behind the quote, or -1."""
    target = at
    while at < end and data[at] != 34:
        if data[at] == 92:
            at += 1
            if at >= end:
                break
        data[target] = data[at]
        target += 1
        at += 1
    return target, (at + 1 if at < end else -1)


@entry("u8[:]", "i64[:]", "i64[:]", "i64[:]", "i64[:,:]", "i64[:,:]")
def _split(data, starts, ends, kinds, out_starts, out_ends):  # type: ignore[no-untyped-def]
    """Splits text i, `[a, b]`, into its fields: `out_starts[f, i]`, `out_ends[f, i]`, the first start -1 for nil. `kinds` are 0
    for numbers, 1 for symbols, 2 for records. Returns the first text that is wrong, or how many there are."""
    arity = kinds.size
    for i in range(starts.size):
        at, end = starts[i], ends[i]
        while at < end and _blank(data[at]):
            at += 1
        while end > at and _blank(data[end - 1]):
            end -= 1
        if end - at == 3 and data[at] == 110 and data[at + 1] == 105 and data[at + 2] == 108:
            out_starts[0, i] = -1
            continue
        if at >= end or data[at] != 91 or data[end - 1] != 93:
            return i
        at += 1
        for f in range(arity):
            while at < end and _blank(data[at]):
                at += 1
            if kinds[f] == 1 and data[at] == 34:
                out_starts[f, i] = at + 1
                stop, at = _unescape(data, at + 1, end)
                if at < 0:
                    return i
                out_ends[f, i] = stop
                while at < end and _blank(data[at]):
                    at += 1
            else:
                out_starts[f, i] = at
                at = _value_end(data, at, end, kinds[f] == 2)
                if at < 0:
                    return i
                out_ends[f, i] = at
                if kinds[f] != 1:
                    while out_ends[f, i] > out_starts[f, i] and _blank(data[out_ends[f, i] - 1]):
                        out_ends[f, i] -= 1
            if at >= end or data[at] != (93 if f == arity - 1 else 44):
                return i
            at += 1
        if at + (1 if arity == 0 else 0) != end:
            return i
    return starts.size


@dataclass(frozen=True, slots=True)
class _Level:
    """The texts of one type at one depth: where they lie, which text of the outermost level each belongs to, and, once split,
    their fields and where the fields that are records begin among the texts of the next depth."""

    starts: np.ndarray
    ends: np.ndarray
    origins: np.ndarray
    present: np.ndarray
    field_starts: np.ndarray
    field_ends: np.ndarray
    below: tuple[int, ...]


_Slices = tuple[np.ndarray, np.ndarray, np.ndarray]


def parse_records(
    texts: SymbolTable, type_: Type, types: dict[str, Type], symbols: SymbolTable, records: RecordTables
) -> np.ndarray:
    """The ids of the records that all strings of `texts` denote. Raises `BadRecord`."""
    heap, offsets = texts.strings
    data = heap.copy()  # escapes are undone in place
    waiting: dict[str, _Slices] = {type_.name: (offsets[:-1].copy(), offsets[1:].copy(), np.arange(len(texts)))}
    levels: list[dict[str, _Level]] = []
    while waiting:
        split: dict[str, _Level] = {}
        deeper: dict[str, list[_Slices]] = {}
        for name, slices in waiting.items():
            split[name] = _split_level(data, slices, types[name], types, deeper)
        levels.append(split)
        waiting = {name: tuple(np.concatenate(c) for c in zip(*parts, strict=True)) for name, parts in deeper.items()}  # type: ignore[misc]
    ids: dict[str, np.ndarray] = {}
    for split in reversed(levels):
        ids = {name: _pack_level(data, level, types[name], types, symbols, records, ids) for name, level in split.items()}
    return ids[type_.name] if ids else np.empty(0, np.int32)


def _split_level(
    data: np.ndarray, slices: _Slices, type_: Type, types: dict[str, Type], deeper: dict[str, list[_Slices]]
) -> _Level:
    """Splits texts into fields and puts those that are records on the list of the next level."""
    starts, ends, origins = (np.ascontiguousarray(a) for a in slices)
    fields = _field_types(type_, types)
    kinds = np.array([2 if f.kind is Kind.RECORD else 1 if f.kind is Kind.SYMBOL else 0 for f in fields], np.int64)
    field_starts, field_ends = np.zeros((2, max(len(fields), 1), len(starts)), np.int64)
    done = _split(data, starts, ends, kinds, field_starts, field_ends)
    if done < len(starts):
        raise BadRecord(int(origins[done]), f"is not a record `{type_.name}` with {len(fields)} fields")
    present = field_starts[0] >= 0
    below = []
    for f, field in enumerate(fields):
        if field.kind is not Kind.RECORD or not present.any():
            below.append(-1)
            continue
        parts = deeper.setdefault(field.name, [])
        below.append(sum(len(p[0]) for p in parts))
        parts.append((field_starts[f][present], field_ends[f][present], origins[present]))
    return _Level(starts, ends, origins, present, field_starts, field_ends, tuple(below))


def _pack_level(
    data: np.ndarray,
    level: _Level,
    type_: Type,
    types: dict[str, Type],
    symbols: SymbolTable,
    records: RecordTables,
    deeper: dict[str, np.ndarray],
) -> np.ndarray:
    columns = []
    count = int(level.present.sum())
    for f, field in enumerate(_field_types(type_, types)):
        starts, ends = (np.ascontiguousarray(a[f][level.present]) for a in (level.field_starts, level.field_ends))
        match field.kind:
            case Kind.RECORD if count:
                column = deeper[field.name][level.below[f] : level.below[f] + count]
            case Kind.SYMBOL:
                column = symbols.intern_slices(data, starts, ends)
            case Kind.FLOAT | Kind.NUMBER | Kind.RECORD | Kind.UNSIGNED:
                column = np.empty(count, np.int64)
                done = read_numbers(data, starts, ends, CODES[field.kind], True, column) if count else 0
                if done < count:
                    wrong = data[starts[done] : ends[done]].tobytes().decode("utf-8", "backslashreplace")
                    reason = f"has the field `{wrong}`, not a valid {field.kind.value}"
                    raise BadRecord(int(level.origins[level.present][done]), reason)
            case _:
                assert_never(field.kind)
        columns.append(column.astype(np.int64, copy=False))
    ids = np.zeros(len(level.present), np.int32)
    if count:
        ids[level.present] = records.pack(len(columns), columns)
    return ids
