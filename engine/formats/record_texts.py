"""Records as text, `[1, [two, nil]]`, and values of algebraic data types, `$Node($Leaf, 1)`, whole columns at a time.

The records of one nesting depth and one type are put together at once, so the number of steps is the depth times the number of
types, whatever the number of rows. `nested` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import numpy as np

from dlog.engine.formats.records import RecordTables
from dlog.engine.formats.render import NO_TEXTS, Texts
from dlog.engine.ir.rules import Kind, Type
from dlog.engine.kernels.values.numerals import number_texts
from dlog.engine.values.domains import code_of
from dlog.engine.values.shapes import Shape, own_types, shapes
from dlog.engine.values.symbols import SymbolTable, gather_slices

_NIL = b"nil"
_Level = dict[str, tuple[np.ndarray, list[Shape]]]
"""The distinct ids of each type at a depth, and what they are."""


def record_texts(
    type_: Type, ids: np.ndarray, types: Mapping[str, Type], symbols: SymbolTable, records: RecordTables, quote: bool
) -> tuple[Texts, np.ndarray]:
    """The texts of the distinct records among `ids`, and which of them each row has. `quote` quotes symbols in them."""
    distinct, inverse = np.unique(ids, return_inverse=True)
    levels: list[_Level] = []
    wanted = {type_.name: distinct}
    while wanted:
        levels.append({name: (found, shapes(types[name], types, found, records)) for name, found in wanted.items()})
        wanted = _children(levels[-1], types)
    below: dict[str, tuple[np.ndarray, Texts]] = {}
    for level in reversed(levels):
        below = {
            name: (found, _level_texts(found, made, types, symbols, below, quote)) for name, (found, made) in level.items()
        }
    return below[type_.name][1], inverse


def _children(level: _Level, types: Mapping[str, Type]) -> dict[str, np.ndarray]:
    """The distinct records that occur in the fields of a level, by type."""
    found: dict[str, list[np.ndarray]] = {}
    for _, made in level.values():
        for shape in made:
            for type_, field in zip(own_types(shape.type, types), shape.columns, strict=True):
                if type_.kind is Kind.RECORD and len(field):
                    found.setdefault(type_.name, []).append(field)
    return {name: np.unique(np.concatenate(parts)) for name, parts in found.items()}


def _level_texts(
    ids: np.ndarray,
    made: list[Shape],
    types: Mapping[str, Type],
    symbols: SymbolTable,
    below: dict[str, tuple[np.ndarray, Texts]],
    quote: bool,
) -> Texts:
    """The texts of the records of one type, in the order of their ids; of 0 it is `nil`."""
    parts = [(s.places, _assemble(s, _piece_texts(s, types, symbols, below, quote))) for s in made]
    if len(parts) == 1 and len(parts[0][0]) == len(ids):
        return parts[0][1]
    heap = np.concatenate([np.frombuffer(_NIL, np.uint8), *(texts.data for _, texts in parts)])
    starts, lengths = np.zeros(len(ids), np.int64), np.full(len(ids), len(_NIL), np.int64)
    base = len(_NIL)
    for places, texts in parts:
        starts[places], lengths[places] = base + texts.offsets[:-1], np.diff(texts.offsets)
        base += len(texts.data)
    return Texts(*gather_slices(heap, starts, lengths))


def _piece_texts(
    shape: Shape, types: Mapping[str, Type], symbols: SymbolTable, below: dict[str, tuple[np.ndarray, Texts]], quote: bool
) -> list[tuple[Texts, np.ndarray]]:
    """For each field its texts and which of them each record has."""
    pieces = []
    for field_type, field in zip(own_types(shape.type, types), shape.columns, strict=True):
        match field_type.kind:
            case Kind.RECORD if len(field):
                ids, texts = below[field_type.name]
                pieces.append((texts, np.searchsorted(ids, field)))
            case Kind.RECORD:
                pieces.append((NO_TEXTS, field))
            case Kind.SYMBOL:
                distinct, inverse = np.unique(field, return_inverse=True)
                texts = Texts(*symbols.gather(distinct))
                pieces.append((_quoted(texts) if quote else texts, inverse))
            case Kind.FLOAT | Kind.NUMBER | Kind.UNSIGNED:
                pieces.append((Texts(*number_texts(field, code_of(field_type))), np.arange(len(field))))
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


def _assemble(shape: Shape, fields: list[tuple[Texts, np.ndarray]]) -> Texts:
    """`[f0, f1]` for each record of a record type, `$Branch(f0, f1)` of a branch, `$Branch` of one without fields."""
    adt = bool(shape.type.adt)
    opening = f"{shape.type.name}{'(' if fields else ''}".encode() if adt else b"["
    closing = b")" if adt and fields else b"" if adt else b"]"
    marks = np.frombuffer(opening + b", " + closing, np.uint8)
    heap = np.concatenate([marks, *(texts.data for texts, _ in fields)])
    count, pieces = len(shape.places), 2 * max(len(fields), 1) + 1
    starts, lengths = np.zeros((count, pieces), np.int64), np.zeros((count, pieces), np.int64)
    starts[:, 2:-1:2], lengths[:, 2:-1:2] = len(opening), 2
    lengths[:, 0] = len(opening)
    starts[:, -1], lengths[:, -1] = len(opening) + 2, len(closing)
    base = len(marks)
    for i, (texts, which) in enumerate(fields):
        starts[:, 2 * i + 1] = base + texts.offsets[:-1][which]
        lengths[:, 2 * i + 1] = np.diff(texts.offsets)[which]
        base += len(texts.data)
    data, offsets = gather_slices(heap, starts.ravel(), lengths.ravel())
    return Texts(data, np.ascontiguousarray(offsets[::pieces]))
