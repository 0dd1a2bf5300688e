"""Records from text, `[1, [two, nil]]`, and values of algebraic data types, `$Node($Leaf, 1)`, whole columns at a time.

The texts of one nesting depth and one type are split together, so the number of steps is the depth times the number of types,
whatever the number of rows. `record_texts` writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.formats.records import RecordTables
from dlog.engine.ir.rules import Kind, Type
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.values.numerals import read_numbers
from dlog.engine.values.domains import code_of, sort_of
from dlog.engine.values.shapes import own_fields, own_types, packed
from dlog.engine.values.symbols import SymbolTable
from dlog.grammar.suggest import closest

MAX_DEPTH = 5_000
"""Records inside each other at most: a level may look at all that is left of a text, and takes a while whatever is left."""


class BadRecord(Exception):
    """Text `index` is not a record of the wanted type."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index


# ------------------------------------------------------------------------------------------------------------- splitting


@kernel
def _blank(byte):  # type: ignore[no-untyped-def]
    return byte == 32 or 9 <= byte <= 13


@kernel
def _in_name(byte):  # type: ignore[no-untyped-def]
    """Whether a byte may be part of a branch's name: letters, digits, `_`, `?` and `.`."""
    return 97 <= byte <= 122 or 65 <= byte <= 90 or 48 <= byte <= 57 or byte == 95 or byte == 63 or byte == 46


@kernel
def _name_end(data, at, end):  # type: ignore[no-untyped-def]
    while at < end and _in_name(data[at]):
        at += 1
    return at


@kernel
def _opens(data, at, end):  # type: ignore[no-untyped-def]
    """Whether `$Branch (` stands at `at`."""
    if data[at] != 36:
        return False
    at = _name_end(data, at + 1, end)
    while at < end and _blank(data[at]):
        at += 1
    return at < end and data[at] == 40


@kernel
def _value_end(data, at, end, nested, closing):  # type: ignore[no-untyped-def]
    """The end of the field at `at`: the next comma, or `closing`, outside nested values and quotes. A bracket opens where a
    value begins; unquoted text may hold others."""
    records = branches = 0
    fresh = True
    while at < end:
        byte = data[at]
        if nested and fresh and byte == 34:
            at += 1
            while at < end and data[at] != 34:
                at += 2 if data[at] == 92 else 1
        elif records + branches == 0 and (byte == 44 or byte == closing):
            return at
        elif nested and fresh and byte == 91:
            records += 1
        elif nested and fresh and byte == 36 and _opens(data, at, end):
            branches += 1
            while data[at] != 40:
                at += 1
            byte = 40
        elif nested and byte == 93 and records > 0:
            records -= 1
        elif nested and byte == 41 and branches > 0:
            branches -= 1
        fresh = (fresh and (_blank(byte) or byte == 91 or byte == 40)) or byte == 44
        at += 1
    return -1


@entry("u8[:]", "i64[:]", "i64")
def _first_deeper(data, offsets, most):  # type: ignore[no-untyped-def]
    """The first text with more brackets open at once, or how many texts there are. Brackets open where a value begins."""
    for i in range(offsets.size - 1):
        at, end, depth, fresh = offsets[i], offsets[i + 1], 0, True
        while at < end:
            byte = data[at]
            if fresh and byte == 34:
                at += 1
                while at < end and data[at] != 34:
                    at += 2 if data[at] == 92 else 1
            elif (fresh and byte == 91) or byte == 40:
                depth += 1
                if depth > most:
                    return i
            elif (byte == 93 or byte == 41) and depth > 0:
                depth -= 1
            fresh = (fresh and (_blank(byte) or byte == 91)) or byte == 40 or byte == 44
            at += 1
    return offsets.size - 1


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


@entry("u8[:]", "i64[:]", "i64[:]", "i64[:]", "i64[:]")
def _read_names(data, starts, ends, name_starts, name_ends):  # type: ignore[no-untyped-def]
    """Where the name of the branch stands in text i, `$Branch(...)`. Returns the first text that has none, or how many there
    are."""
    for i in range(starts.size):
        at, end = starts[i], ends[i]
        while at < end and _blank(data[at]):
            at += 1
        if at >= end or data[at] != 36:
            return i
        at += 1
        while at < end and _blank(data[at]):
            at += 1
        name_starts[i] = at
        name_ends[i] = _name_end(data, at, end)
    return starts.size


@entry("u8[:]", "i64[:]", "i64[:]", "i64[:]", "i64", "i64[:,:]", "i64[:,:]")
def _split(data, starts, ends, kinds, opening, out_starts, out_ends):  # type: ignore[no-untyped-def]
    """Splits text i, `[a, b]`, into its fields: `out_starts[f, i]`, `out_ends[f, i]`, the first start -1 for nil. `kinds` are 0
    for numbers, 1 for symbols, 2 for nested values. `opening` is the bracket, `[` for records, `(` for branches, which are not
    nil and may be without brackets if they have no fields. Returns the first text that is wrong, or how many there are."""
    arity = kinds.size
    closing = 93 if opening == 91 else 41
    for i in range(starts.size):
        at, end = starts[i], ends[i]
        while at < end and _blank(data[at]):
            at += 1
        while end > at and _blank(data[end - 1]):
            end -= 1
        if opening == 91 and end - at == 3 and data[at] == 110 and data[at + 1] == 105 and data[at + 2] == 108:
            out_starts[0, i] = -1
            continue
        if opening == 40 and arity == 0 and at == end:
            continue
        if at >= end or data[at] != opening or data[end - 1] != closing:
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
                all_left = kinds[f] == 2 and f == arity - 1  # its own level says whether that is one value
                at = end - 1 if all_left else _value_end(data, at, end, kinds[f] == 2, closing)
                if at < 0:
                    return i
                out_ends[f, i] = at
                if kinds[f] != 1:
                    while out_ends[f, i] > out_starts[f, i] and _blank(data[out_ends[f, i] - 1]):
                        out_ends[f, i] -= 1
            if at >= end or data[at] != (closing if f == arity - 1 else 44):
                return i
            at += 1
        if at + (1 if arity == 0 else 0) != end:
            return i
    return starts.size


# --------------------------------------------------------------------------------------------------------------- parsing


@dataclass(frozen=True, slots=True)
class _Level:
    """The texts of one record type or branch at one depth: which of its type's texts they are, which text of the outermost
    level each belongs to, and their fields and where the fields that are records begin among the texts of the next depth."""

    type: Type
    places: np.ndarray
    origins: np.ndarray
    present: np.ndarray
    field_starts: np.ndarray
    field_ends: np.ndarray
    below: tuple[int, ...]


_Slices = tuple[np.ndarray, np.ndarray, np.ndarray]


def parse_records(
    texts: SymbolTable, type_: Type, types: Mapping[str, Type], symbols: SymbolTable, records: RecordTables
) -> np.ndarray:
    """The ids of the records that all strings of `texts` denote. Raises `BadRecord`."""
    heap, offsets = texts.strings
    data = heap[: offsets[-1]].copy()  # escapes are undone in place; the heap has room for much more
    if (deep := _first_deeper(data, offsets, MAX_DEPTH)) < len(texts):
        raise BadRecord(deep, f"has more than {MAX_DEPTH} records inside each other")
    waiting: dict[str, _Slices] = {type_.name: (offsets[:-1].copy(), offsets[1:].copy(), np.arange(len(texts)))}
    levels: list[dict[str, tuple[int, list[_Level]]]] = []
    while waiting:
        split: dict[str, tuple[int, list[_Level]]] = {}
        deeper: dict[str, list[_Slices]] = {}
        for name, slices in waiting.items():
            split[name] = len(slices[0]), _split_level(data, slices, types[name], types, deeper)
        levels.append(split)
        waiting = {name: tuple(np.concatenate(c) for c in zip(*parts, strict=True)) for name, parts in deeper.items()}  # type: ignore[misc]
    ids: dict[str, np.ndarray] = {}
    for split in reversed(levels):
        ids = {name: _pack_levels(data, count, parts, types, symbols, records, ids) for name, (count, parts) in split.items()}
    return ids[type_.name] if ids else np.empty(0, np.int32)


def _split_level(
    data: np.ndarray, slices: _Slices, type_: Type, types: Mapping[str, Type], deeper: dict[str, list[_Slices]]
) -> list[_Level]:
    """Splits texts into fields and puts those that are records on the list of the next level."""
    if not type_.branches:
        return [_split_fields(data, slices, np.arange(len(slices[0])), type_, types, deeper)]
    starts, ends, origins = (np.ascontiguousarray(a) for a in slices)
    name_starts, name_ends = np.zeros((2, len(starts)), np.int64)
    done = _read_names(data, starts, ends, name_starts, name_ends)
    nameless = np.flatnonzero(name_starts[:done] == name_ends[:done])
    done = int(nameless[0]) if len(nameless) else done
    if done < len(starts):
        example = types[type_.branches[0]]
        form = f"{example.name}({', '.join(name for name, _ in own_fields(example))})"
        raise BadRecord(int(origins[done]), f"is not a `{type_.name}`, such as `{form.removesuffix('()')}`")
    names = SymbolTable()
    which = names.intern_slices(data, name_starts, name_ends)
    found = []
    for number in range(len(names)):
        places = np.flatnonzero(which == number)
        name = f"${names.text(number)}"
        if name not in type_.branches:
            close = closest(name, type_.branches)
            hint = f"; did you mean `{close}`?" if close else ""
            raise BadRecord(int(origins[places[0]]), f"has the branch `{name}`, which `{type_.name}` does not have{hint}")
        part = (name_ends[places], ends[places], origins[places])
        found.append(_split_fields(data, part, places, types[name], types, deeper))
    return found


def _split_fields(
    data: np.ndarray,
    slices: _Slices,
    places: np.ndarray,
    type_: Type,
    types: Mapping[str, Type],
    deeper: dict[str, list[_Slices]],
) -> _Level:
    starts, ends, origins = (np.ascontiguousarray(a) for a in slices)
    fields = own_types(type_, types)
    kinds = np.array([2 if f.kind is Kind.RECORD else 1 if f.kind is Kind.SYMBOL else 0 for f in fields], np.int64)
    field_starts, field_ends = np.zeros((2, max(len(fields), 1), len(starts)), np.int64)
    done = _split(data, starts, ends, kinds, 40 if type_.adt else 91, field_starts, field_ends)
    if done < len(starts):
        count = f"{len(fields)} field{'' if len(fields) == 1 else 's'}"
        what = f"does not have the {count} of `{type_.name}`" if type_.adt else f"is not a record `{type_.name}` with {count}"
        raise BadRecord(int(origins[done]), what)
    present = field_starts[0] >= 0
    below = []
    for f, field in enumerate(fields):
        if field.kind is not Kind.RECORD or not present.any():
            below.append(-1)
            continue
        parts = deeper.setdefault(field.name, [])
        below.append(sum(len(p[0]) for p in parts))
        parts.append((field_starts[f][present], field_ends[f][present], origins[present]))
    return _Level(type_, places, origins, present, field_starts, field_ends, tuple(below))


def _pack_levels(
    data: np.ndarray,
    count: int,
    parts: list[_Level],
    types: Mapping[str, Type],
    symbols: SymbolTable,
    records: RecordTables,
    deeper: dict[str, np.ndarray],
) -> np.ndarray:
    ids = np.zeros(count, np.int32)
    for level in parts:
        present = int(level.present.sum())
        if present:
            columns = _columns(data, level, present, types, symbols, deeper)
            ids[level.places[level.present]] = packed(level.type, types, columns, present, records)
    return ids


def _columns(
    data: np.ndarray,
    level: _Level,
    count: int,
    types: Mapping[str, Type],
    symbols: SymbolTable,
    deeper: dict[str, np.ndarray],
) -> list[np.ndarray]:
    columns = []
    for f, field in enumerate(own_types(level.type, types)):
        starts, ends = (np.ascontiguousarray(a[f][level.present]) for a in (level.field_starts, level.field_ends))
        match field.kind:
            case Kind.RECORD:
                column = deeper[field.name][level.below[f] : level.below[f] + count]
            case Kind.SYMBOL:
                column = symbols.intern_slices(data, starts, ends)
            case Kind.FLOAT | Kind.NUMBER | Kind.UNSIGNED:
                column = np.empty(count, np.int64)
                done = read_numbers(data, starts, ends, code_of(field), True, column)
                if done < count:
                    wrong = data[starts[done] : ends[done]].tobytes().decode("utf-8", "backslashreplace")
                    reason = f"has the field `{wrong}`, not a valid {sort_of(field)}"
                    raise BadRecord(int(level.origins[level.present][done]), reason)
            case _:
                assert_never(field.kind)
        columns.append(column.astype(np.int64, copy=False))
    return columns
