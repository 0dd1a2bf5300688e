"""Sorting rows for output."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.formats import order
from dlog.engine.formats.order import sorted_columns
from dlog.engine.ir.rules import Kind
from dlog.engine.values.symbols import SymbolTable
from tests.examples import examples

NARROW = st.integers(-3, 3)
WIDE = st.one_of(NARROW, st.integers(-(2**63), 2**63 - 1))
WORD = st.sampled_from(["", "a", "b", "ab", "\u00e9", "zz"])


@pytest.mark.parametrize("numbers", [NARROW, WIDE], ids=["packed", "loose"])
def test_rows_sort_like_tuples(numbers: st.SearchStrategy[int]) -> None:
    @examples(60)
    @given(st.lists(st.tuples(numbers, WORD, st.integers(0, 2**64 - 1), st.floats(allow_nan=False))), st.integers(0, 3))
    def check(rows: list[tuple], first: int) -> None:
        symbols = SymbolTable()
        symbols.intern_texts(["unused", "b"])
        columns = [
            np.array([r[0] for r in rows], np.int64),
            symbols.intern_texts([r[1] for r in rows]),
            np.array([r[2] for r in rows], np.uint64),
            np.array([r[3] for r in rows], np.float64),
        ]
        kinds = (Kind.NUMBER, Kind.SYMBOL, Kind.UNSIGNED, Kind.FLOAT)
        picked = [first, (first + 1) % 4]
        for chosen in ([first], picked):
            found = sorted_columns(tuple(kinds[c] for c in chosen), tuple(columns[c] for c in chosen), symbols)
            assert [f.dtype for f in found] == [columns[c].dtype for c in chosen]
            values = [f.tolist() for f in found]
            values = [[symbols.text(i) for i in v] if c == 1 else v for c, v in zip(chosen, values, strict=True)]
            naive = sorted((tuple(row[c] for c in chosen) for row in rows), key=lambda row: [key(v) for v in row])
            assert list(map(repr, zip(*values, strict=True))) == list(map(repr, naive))

    check()


def key(value: object) -> object:
    match value:
        case str():
            return value.encode()
        case float():
            return (value, np.copysign(1, value))
        case _:
            return value


def test_few_rows_of_many_symbols_are_ranked_alone() -> None:
    symbols = SymbolTable()
    ids = symbols.intern_texts([f"s{99 - i:02}" for i in range(100)])
    (found,) = sorted_columns((Kind.SYMBOL,), (ids[[3, 50, 97]],), symbols)
    assert [symbols.text(i) for i in found] == ["s02", "s49", "s96"]
    assert not symbols._ranks.size  # no ranks of the whole table were made


def test_too_many_rows_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = np.array([2**62, -(2**62), 0])
    monkeypatch.setattr(order, "MAX_LOOSE_ROWS", 2)
    kinds = (Kind.NUMBER, Kind.NUMBER)
    assert [c.tolist() for c in sorted_columns(kinds, (wide, wide), SymbolTable())] == [wide.tolist()] * 2
    narrow = np.array([2, 1, 0])
    assert [c.tolist() for c in sorted_columns(kinds, (narrow, narrow), SymbolTable())] == [[0, 1, 2]] * 2
    monkeypatch.setattr(order, "MAX_PACKED_ROWS", 2)
    assert [c.tolist() for c in sorted_columns(kinds, (narrow, narrow), SymbolTable())] == [[2, 1, 0]] * 2


@examples(60)
@given(st.integers(0, 64), st.integers(0, 300), st.randoms(use_true_random=False))
def test_words_are_sorted_by_their_digits(bits: int, rows: int, random: Random) -> None:
    words = np.array([random.getrandbits(bits) if bits else 0 for _ in range(rows)], np.uint64)
    words[rows // 2 :] |= np.uint64((1 << bits) - 1 & 0xFFE00)
    expected = np.sort(words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "MIN_RADIX_WORDS", 1)
        assert np.array_equal(order.sorted_words(words, bits), expected)
