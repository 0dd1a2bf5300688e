"""Functors and comparisons that touch strings, a block of rows at a time.

Arguments and results are int64 arrays: ids of symbols, numbers, or the bits of unsigned numbers; floats are float64 arrays.
Strings are bytes, as in Souffle: `strlen` and `substr` count bytes, `<` compares bytes, and a `.` in a pattern matches one.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from dlog.engine.kernels.jit import kernel
from dlog.engine.program.rules import Kind
from dlog.engine.values.numerals import FLOAT, NUMBER, UNSIGNED, number_texts, read_numbers
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.words import load_word
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError

_LESS, _LESS_EQUAL, _GREATER, _GREATER_EQUAL, _CONTAINS, _CONTAINS_NOT = range(6)
_RELATIONS = {
    "<": _LESS,
    "<=": _LESS_EQUAL,
    ">": _GREATER,
    ">=": _GREATER_EQUAL,
    "contains": _CONTAINS,
    "not_contains": _CONTAINS_NOT,
}

# ------------------------------------------------------------------------------------------------------------ comparisons


@kernel
def _order(heap, at, length, other, other_length):  # type: ignore[no-untyped-def]
    """Negative, zero or positive as the one string of `heap` comes before, is, or comes after the other."""
    base = np.int64(heap.ctypes.data)
    common = min(length, other_length)
    i = 0
    while i + 8 <= common and load_word(base + at + i) == load_word(base + other + i):
        i += 8
    while i < common:
        difference = np.int64(heap[at + i]) - np.int64(heap[other + i])
        if difference != 0:
            return difference
        i += 1
    return length - other_length


@kernel
def _contained(heap, needle, needle_length, text, length):  # type: ignore[no-untyped-def]
    """Whether one string of `heap` occurs in the other."""
    for start in range(length - needle_length + 1):
        i = 0
        while i < needle_length and heap[text + start + i] == heap[needle + i]:
            i += 1
        if i == needle_length:
            return True
    return False


@kernel
def _relate(heap, offsets, left, right, relation, out):  # type: ignore[no-untyped-def]
    """Sets `out[i]` to whether string `left[i]` stands in the relation to string `right[i]`."""
    for i in range(left.size):
        a, b = offsets[left[i]], offsets[right[i]]
        a_length, b_length = offsets[left[i] + 1] - a, offsets[right[i] + 1] - b
        if relation >= _CONTAINS:
            out[i] = _contained(heap, a, a_length, b, b_length) == (relation == _CONTAINS)
            continue
        order = 0 if left[i] == right[i] else _order(heap, a, a_length, b, b_length)
        if relation == _LESS:
            out[i] = order < 0
        elif relation == _LESS_EQUAL:
            out[i] = order <= 0
        elif relation == _GREATER:
            out[i] = order > 0
        else:
            out[i] = order >= 0


def compare(op: str, left: np.ndarray, right: np.ndarray, symbols: SymbolTable) -> np.ndarray:
    """Which rows satisfy `left op right` on symbols: `< <= > >=` by text, `match(pattern, text)`, `contains(part, text)` and
    their negations. A pattern that is no regular expression matches nothing, nor does its negation, with a warning."""
    left, right = (np.ascontiguousarray(a, np.int64) for a in np.broadcast_arrays(left, right))
    if op in ("match", "not_match"):
        return _match(left, right, symbols, op == "match")
    out = np.empty(len(left), np.bool_)
    heap, offsets = symbols.strings
    _relate(heap, np.ascontiguousarray(offsets), left, right, _RELATIONS[op], out)
    return out


def _match(patterns: np.ndarray, texts: np.ndarray, symbols: SymbolTable, wanted: bool) -> np.ndarray:
    out = np.zeros(len(texts), np.bool_)
    for pattern in np.unique(patterns).tolist():
        rows = np.flatnonzero(patterns == pattern)
        distinct, inverse = np.unique(texts[rows], return_inverse=True)
        found = _full_matches(symbols.text(pattern), distinct, symbols)
        if found is not None:
            out[rows] = found[inverse] == wanted
    return out


def _full_matches(pattern: str, ids: np.ndarray, symbols: SymbolTable) -> np.ndarray | None:
    """Which strings the whole pattern matches; None for a pattern that is none. Patterns beyond regular languages (references,
    look-around) are left to Python, a string at a time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    data, offsets = symbols.gather(ids)
    strings = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(ids), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    source = pattern.encode("utf-8", "surrogateescape")
    try:
        return pc.match_substring_regex(strings, pattern=b"\\A(?:" + source + b")\\z").to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        pass
    try:
        compiled = re.compile(source)
    except re.error as error:
        warnings.warn(f'wrong pattern provided for match("{pattern}"): {error}', RuntimeWarning, stacklevel=4)
        return None
    return np.array([compiled.fullmatch(text) is not None for text in strings.to_pylist()], np.bool_)


# --------------------------------------------------------------------------------------------------------------- functors


def evaluate(op: str, args: Sequence[np.ndarray], kinds: Sequence[Kind], symbols: SymbolTable) -> np.ndarray:
    """The values of functor `op` over rows of arguments of these kinds."""
    columns = np.broadcast_arrays(*args)
    match op:
        case "cat":
            return _cat(columns, symbols)
        case "strlen":
            offsets = symbols.strings[1]
            return offsets[columns[0] + 1] - offsets[columns[0]]
        case "substr":
            return _substr(columns[0], columns[1], columns[2], symbols)
        case "ord":
            return columns[0].astype(np.int64)
        case "to_string":
            return _to_string(columns[0], kinds[0], symbols)
        case "to_number" | "to_unsigned" | "to_float":
            return _to_numeric(op, columns[0], symbols)
        case "min" | "max":
            return reduce(_better(op, symbols), (c.astype(np.int64) for c in columns))
        case _:
            raise InternalError("evaluation", f"no functor `{op}` on strings")


def _cat(columns: Sequence[np.ndarray], symbols: SymbolTable) -> np.ndarray:
    """Gathers the strings of each row one after the other, which is their concatenation."""
    data, offsets = symbols.gather(np.stack(columns, axis=1).ravel())
    bounds = offsets[:: len(columns)]
    return symbols.intern_slices(data, bounds[:-1], bounds[1:]).astype(np.int64)


def _substr(ids: np.ndarray, index: np.ndarray, length: np.ndarray, symbols: SymbolTable) -> np.ndarray:
    """From `index`, at most `length` bytes, a negative length meaning all; nothing where the index lies outside the string."""
    heap, offsets = symbols.strings
    starts, ends = offsets[ids], offsets[1:][ids]
    size = ends - starts
    inside = (index >= 0) & (index <= size)
    start = np.where(inside, index, 0)
    taken = np.where(inside, np.where(length < 0, size - start, np.minimum(length, size - start)), 0)
    return symbols.intern_slices(heap, starts + start, starts + start + taken).astype(np.int64)


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


_TARGETS = {
    "to_number": (NUMBER, "a number"),
    "to_unsigned": (UNSIGNED, "an unsigned number"),
    "to_float": (FLOAT, "a float"),
}


def _to_numeric(op: str, ids: np.ndarray, symbols: SymbolTable) -> np.ndarray:
    """Reads the number that each string begins with, `0x` and `0b` included, as Souffle does; having none is an error."""
    code, name = _TARGETS[op]
    heap, offsets = symbols.strings
    out = np.empty(len(ids), np.int64)
    done = read_numbers(heap, offsets[ids], offsets[1:][ids], code, False, out)
    if done < len(ids):
        text = symbols.text(int(ids[done]))
        raise DlogError(Diagnostic("bad-conversion", f'{op}("{text}"): the text is not {name}'))
    return out.view(np.float64) if code == FLOAT else out


def _better(op: str, symbols: SymbolTable) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    relation = "<=" if op == "min" else ">="
    return lambda left, right: np.where(compare(relation, left, right, symbols), left, right)
