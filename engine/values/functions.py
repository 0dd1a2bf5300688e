"""Functors and comparisons that touch strings, a block of rows at a time.

Arguments and results are int64 arrays: ids of symbols, numbers, or the bits of unsigned numbers; floats are float64 arrays.
Strings are UTF-8: `strlen` and `substr` count characters, `<` compares code points. Programs run the same functors in
kernels/values/texts.py; what those cannot finish comes here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from dlog.engine.compile.normal.comparisons import COMPARISONS
from dlog.engine.ir.functors import FUNCTORS, fold
from dlog.engine.ir.rules import Kind
from dlog.engine.ir.scalars import Scalar
from dlog.engine.kernels.values.numerals import (
    DATE,
    FLOAT,
    FLOAT32,
    NUMBER,
    NUMBER32,
    TIMESTAMP,
    UNSIGNED,
    UNSIGNED32,
    number_texts,
    read_numbers,
)
from dlog.engine.kernels.values.texts import Text, measure_texts, relate_texts, slice_all
from dlog.engine.values.patterns import match
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import typed
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError

# ------------------------------------------------------------------------------------------------------------ comparisons


def compare(op: str, left: np.ndarray, right: np.ndarray, symbols: SymbolTable) -> np.ndarray:
    """A mask of rows that satisfy `left op right` on symbols: `< <= > >=` by text, `match(pattern, text)`, `contains(part,
    text)` and their negations."""
    left, right = (np.ascontiguousarray(a, np.int64) for a in np.broadcast_arrays(left, right))
    if op in ("match", "not_match"):
        return match(left, right, symbols, op == "match")
    row = COMPARISONS[op]
    if not row.text:
        left, right, row = right, left, COMPARISONS[row.mirrored]
    out = np.empty(len(left), np.int64)
    relate_texts(symbols.address, Text[row.text], left.ctypes.data, right.ctypes.data, len(left), out.ctypes.data)
    holds: np.ndarray = out != 0
    return holds


# --------------------------------------------------------------------------------------------------------------- functors


def evaluate(op: str, args: Sequence[np.ndarray], kinds: Sequence[Kind], symbols: SymbolTable) -> np.ndarray:
    """The values of functor `op` over rows of arguments of these kinds; `cat` takes numbers as their texts."""
    columns = np.broadcast_arrays(*args)
    match op:
        case "cat":
            return _cat([_to_string(c, kind, symbols) for c, kind in zip(columns, kinds, strict=True)], symbols)
        case "strlen":
            return _strlen(columns[0], symbols)
        case "substr":
            return _substr(columns[0], columns[1], columns[2], symbols)
        case "to_string":
            return _to_string(columns[0], kinds[0], symbols)
        case _ if op in _TARGETS:
            return _to_numeric(op, columns[0], symbols)
        case "symbol_of":
            return _symbols_of(columns[0], symbols)
        case "min" | "max":
            return reduce(_better(op, symbols), (c.astype(np.int64) for c in columns))
        case _:
            return _fold(op, columns, kinds, symbols)


def _cat(columns: Sequence[np.ndarray], symbols: SymbolTable) -> np.ndarray:
    """Gathers the strings of each row one after the other, which is their concatenation."""
    data, offsets = symbols.gather(np.stack(columns, axis=1).ravel())
    bounds = offsets[:: len(columns)]
    return symbols.intern_slices(data, bounds[:-1], bounds[1:]).astype(np.int64)


def _strlen(ids: np.ndarray, symbols: SymbolTable) -> np.ndarray:
    ids, out = np.ascontiguousarray(ids, np.int64), np.empty(len(ids), np.int64)
    measure_texts(symbols.address, ids.ctypes.data, len(ids), out.ctypes.data)
    return out


def _substr(ids: np.ndarray, index: np.ndarray, length: np.ndarray, symbols: SymbolTable) -> np.ndarray:
    given = [np.ascontiguousarray(column, np.int64) for column in (ids, index, length)]
    starts, ends = np.empty((2, len(ids)), np.int64)
    slice_all(symbols.address, *(a.ctypes.data for a in given), len(ids), starts.ctypes.data, ends.ctypes.data)
    return symbols.intern_slices(symbols.strings[0], starts, ends).astype(np.int64)


def _symbols_of(numbers: np.ndarray, symbols: SymbolTable) -> np.ndarray:
    unknown = (numbers < 0) | (numbers >= len(symbols))
    if unknown.any():
        raise DlogError(Diagnostic("bad-conversion", f"as({numbers[unknown][0]}, symbol): no symbol has this number"))
    return numbers.astype(np.int64)


def _to_string(values: np.ndarray, kind: Kind, symbols: SymbolTable) -> np.ndarray:
    match kind:
        case Kind.NUMBER | Kind.UNSIGNED:
            data, offsets = number_texts(values.astype(np.int64), UNSIGNED if kind is Kind.UNSIGNED else NUMBER)
            return symbols.intern_slices(data, offsets[:-1], offsets[1:]).astype(np.int64)
        case Kind.FLOAT:
            distinct, inverse = np.unique(values.view(np.int64), return_inverse=True)
            texts = [format(value, "f") for value in distinct.view(np.float64).tolist()]
            return symbols.intern_texts(texts).astype(np.int64)[inverse]
        case Kind.SYMBOL:
            return values.astype(np.int64)
        case Kind.RECORD:
            raise InternalError("evaluation", "to_string of a record")


def _fold(op: str, columns: Sequence[np.ndarray], kinds: Sequence[Kind], symbols: SymbolTable) -> np.ndarray:
    """A functor without a kernel for blocks outside of programs: evaluated once for each combination of arguments."""
    words = np.stack([c.view(np.int64) for c in map(np.ascontiguousarray, columns)], axis=1)
    distinct, inverse = np.unique(words, axis=0, return_inverse=True)
    result = FUNCTORS[op].signature.result or kinds[0]
    given = zip(*(_scalars(column, kind, symbols) for column, kind in zip(distinct.T, kinds, strict=True)), strict=True)
    values = [fold(op, args, result) for args in given]
    if result is Kind.SYMBOL:
        made = symbols.intern_texts([str(value) for value in values]).astype(np.int64)
    else:
        made = np.array(values, {Kind.FLOAT: np.float64, Kind.UNSIGNED: np.uint64}.get(result, np.int64)).view(np.int64)
    return made[inverse.ravel()]


def _scalars(words: np.ndarray, kind: Kind, symbols: SymbolTable) -> list[Scalar]:
    words = np.ascontiguousarray(words)
    match kind:
        case Kind.SYMBOL:
            return [symbols.text(number) for number in words.tolist()]
        case Kind.NUMBER | Kind.UNSIGNED | Kind.FLOAT:
            values: list[Scalar] = typed(words, kind).tolist()
            return values
        case Kind.RECORD:
            raise InternalError("evaluation", "a functor of records")


_TARGETS = {
    "to_number": (NUMBER, "a number"),
    "to_unsigned": (UNSIGNED, "an unsigned number"),
    "to_float": (FLOAT, "a float"),
    "to_short_number": (NUMBER32, "a number of 32 bits"),
    "to_short_unsigned": (UNSIGNED32, "an unsigned number of 32 bits"),
    "to_short_float": (FLOAT32, "a float of 32 bits"),
    "date": (DATE, "a date, as 2026-11-25"),
    "timestamp": (TIMESTAMP, "a time, as 2026-11-25T12:30:00"),
}


def _to_numeric(op: str, ids: np.ndarray, symbols: SymbolTable) -> np.ndarray:
    """Reads the number that each string begins with, `0x` and `0b` included, as Souffle does; having none is an error."""
    code, name = _TARGETS[op]
    heap, offsets = symbols.strings
    out = np.empty(len(ids), np.int64)
    done = read_numbers(heap, offsets[ids], offsets[1:][ids], code, op in ("date", "timestamp"), out)
    if done < len(ids):
        text = symbols.text(int(ids[done]))
        raise DlogError(Diagnostic("bad-conversion", f'{op.replace("_short", "")}("{text}"): the text is not {name}'))
    return out.view(np.float64) if code in (FLOAT, FLOAT32) else out


def _better(op: str, symbols: SymbolTable) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    relation = "<=" if op == "min" else ">="
    return lambda left, right: np.where(compare(relation, left, right, symbols), left, right)
