"""Regular expressions on strings: `match(pattern, text)` holds where the pattern matches the whole text.

A pattern that is no regular expression matches nothing, nor does its negation, with a warning. A `.` matches one
character; `\\w`, `\\d` and the like are ASCII's.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Verdict
from dlog.engine.kernels.values.wildcards import match_parts
from dlog.engine.values.addresses import address_of
from dlog.engine.values.backtracking import WrongPattern, captured, fullmatches
from dlog.engine.values.symbols import SymbolTable
from dlog.grammar.diagnostics import one_line, shortened

MIN_TRIED, MAX_TRIED_AHEAD = 16, 1 << 14
"""Strings that are asked for together from which on a pattern is tried on others before they are, and on how many at most."""
MAX_KNOWN_PATTERNS = 256
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()\n]")
"""What is not itself in a pattern, or is what `.` does not match."""


class Verdicts:
    """The verdicts of one pattern on the strings it has been tried on, for kernels: one of layout's VERDICT_ values by id."""

    def __init__(self) -> None:
        self._first = self._end = 0
        """The ids that the pattern was tried on last, where they were one after the other."""
        self._verdicts = np.zeros(0, np.uint8)
        self._table = np.zeros(L.verdicts.size, np.int64)
        self.address = int(self._table.ctypes.data)

    def of(self, pattern: int, ids: np.ndarray, symbols: SymbolTable) -> np.ndarray:
        """The verdicts on some strings; the pattern, always the same, is tried on those it has not been tried on."""
        if len(self._verdicts) < len(symbols):
            self._reserve(max(len(symbols), 2 * len(self._verdicts)))
        verdicts: np.ndarray = self._verdicts[ids]
        untried = ids[verdicts == Verdict.UNKNOWN]
        if len(untried):
            text = symbols.text(pattern)
            tried = self._with_following(untried, len(symbols)) if is_regular(text) else untried
            self._verdicts[tried] = verdicts_on(text, tried, symbols)
            verdicts = self._verdicts[ids]
        return verdicts

    def _with_following(self, untried: np.ndarray, known: int) -> np.ndarray:
        """Strings and, where most are one after the other, as many that came after them: those of a column come together, and a
        call takes longer than some hundreds of strings do. Twice as many each time these were the next to be asked for."""
        first, end = int(untried.min()), int(untried.max()) + 1
        if len(untried) < MIN_TRIED or end - first > 2 * len(untried):
            return untried
        more = 2 * (self._end - self._first) if first == self._end else len(untried)
        following = np.arange(end, min(end + min(more, MAX_TRIED_AHEAD), known))
        self._first, self._end = first, end + len(following)
        return np.concatenate((untried, following[self._verdicts[following] == Verdict.UNKNOWN]))

    def _reserve(self, count: int) -> None:
        larger = np.zeros(count, np.uint8)
        larger[: len(self._verdicts)] = self._verdicts
        self._verdicts = larger
        self._table[L.verdicts.bytes], self._table[L.verdicts.count] = larger.ctypes.data, count


def match(patterns: np.ndarray, texts: np.ndarray, symbols: SymbolTable, wanted: bool) -> np.ndarray:
    """A mask of rows whose texts match their patterns (or, not `wanted`, do not)."""
    out = np.zeros(len(texts), np.bool_)
    for pattern in np.unique(patterns).tolist():
        rows = np.flatnonzero(patterns == pattern)
        distinct, inverse = np.unique(texts[rows], return_inverse=True)
        out[rows] = verdicts_on(symbols.text(pattern), distinct, symbols)[inverse] == wanted_verdict(wanted)
    return out


def wanted_verdict(wanted: bool) -> int:
    return Verdict.YES if wanted else Verdict.NO


def verdicts_on(pattern: str, ids: np.ndarray, symbols: SymbolTable) -> np.ndarray:
    """Whether the pattern matches each string, as VERDICT_ values. Patterns beyond regular languages (references, look-around)
    are left to Python, in bounded time. Raises DlogError where that is too little."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if (parts := _parts(pattern)) is not None:
        return _verdicts_by_parts(parts, ids, symbols)
    if (place := loose_brace(pattern)) is not None:
        return _neither(pattern, _loose(place), ids)
    data, offsets = symbols.gather(ids)
    if is_regular(pattern):
        strings = pa.LargeStringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(data))
        found = pc.match_substring_regex(strings, pattern=_whole(pattern)).to_numpy(zero_copy_only=False)
        return np.where(found, Verdict.YES, Verdict.NO).astype(np.uint8)
    try:
        found = fullmatches(pattern, data[offsets[0] : offsets[-1]].tobytes(), offsets[1:] - offsets[0])
    except WrongPattern as error:
        return _neither(pattern, str(error), ids)
    return np.where(found, Verdict.YES, Verdict.NO).astype(np.uint8)


@lru_cache(MAX_KNOWN_PATTERNS)
def _parts(pattern: str) -> tuple[bytes, np.ndarray] | None:
    """The texts of a pattern that is nothing but texts with anything between them, and where each ends; None of others."""
    parts = pattern.split(".*")
    if any(map(_SPECIAL.search, parts)):
        return None
    encoded = [part.encode() for part in parts]
    return b"".join(encoded), np.cumsum([len(part) for part in encoded], dtype=np.int64)


def _verdicts_by_parts(parts: tuple[bytes, np.ndarray], ids: np.ndarray, symbols: SymbolTable) -> np.ndarray:
    texts, ends = parts
    heap, offsets = symbols.strings
    wanted, held = np.ascontiguousarray(ids, np.int64), np.frombuffer(texts or b"\0", np.uint8)
    verdicts = np.empty(len(ids), np.uint8)
    strings = address_of(heap), len(heap), address_of(offsets), address_of(wanted), len(wanted)
    match_parts(*strings, address_of(held), address_of(ends), len(ends), address_of(verdicts))
    return verdicts


@lru_cache(MAX_KNOWN_PATTERNS)
def is_regular(pattern: str) -> bool:
    """Whether a pattern is of a regular language, in time that goes with the text: Arrow takes it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.match_substring_regex("", pattern=pattern)  # of `a)|(?:b` only the whole below were one
        pc.match_substring_regex("", pattern=_whole(pattern))
    except pa.ArrowInvalid:
        return False
    return loose_brace(pattern) is None


def _whole(pattern: str) -> str:
    return f"\\A(?:{pattern})\\z"


def captures(pattern: str, texts: Sequence[str]) -> list[list[tuple[int, int, str]]]:
    """For each text what the groups of the pattern take: the number of the match, the group, and the text. Raises DlogError
    where finding out takes too long."""
    if (place := loose_brace(pattern)) is not None:
        reason = _loose(place)
    else:
        try:
            return captured(pattern, texts)
        except WrongPattern as error:
            reason = str(error)
    _warn("regex_captures", pattern, reason)
    return [[] for _ in texts]


def _loose(place: int) -> str:
    return f"a brace at position {place} that counts nothing; a backslash before it makes it a character"


def _warn(name: str, pattern: str, reason: str) -> None:
    message = f'wrong pattern provided for {name}("{shortened(pattern)}"): {shortened(reason)}'
    warnings.warn(one_line(message), RuntimeWarning, stacklevel=6)


def _neither(pattern: str, reason: str, ids: np.ndarray) -> np.ndarray:
    """The verdicts of a pattern that is none."""
    _warn("match", pattern, reason)
    return np.full(len(ids), Verdict.NEITHER, np.uint8)


_BRACES = re.compile(
    r"\\[pPxuN]\{[^}]*(?:\}|\Z)|\\.|\[\^?\]?[^\]\\]*(?:\\.[^\]\\]*)*(?:\]|\\?\Z)|\{[0-9]+(?:,[0-9]*)?\}|\{", re.DOTALL
)
"""What braces may stand in, or one that stands in nothing; what has no end goes on to that of the pattern."""


def loose_brace(pattern: str) -> int | None:
    """Where an opening brace stands that begins no count: Souffle takes no such pattern, other dialects take it as a character.

    >>> loose_brace("fo{2}b[{]"), loose_brace("fo{x}b")
    (None, 2)
    """
    return next((found.start() for found in _BRACES.finditer(pattern) if found[0] == "{"), None)
