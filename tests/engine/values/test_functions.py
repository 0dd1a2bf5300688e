"""String functors and comparisons against Python's own strings."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.values.functions import compare, evaluate
from dlog.engine.values.symbols import SymbolTable
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

PLANTED = ["", "a", "ab", "abcdefgh", "abcdefghi", "abcdefghj", "b" * 20, "b" * 19 + "a"]
TEXT = st.one_of(st.sampled_from(PLANTED), st.text(max_size=9))
ROWS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=20)
S, N, U, F = Kind.SYMBOL, Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT


class Strings:
    """A symbol table with short ways in and out."""

    def __init__(self) -> None:
        self.table = SymbolTable()
        self.table.intern("something before")

    def ids(self, *texts: str) -> np.ndarray:
        return self.table.intern_texts(texts).astype(np.int64)

    def texts(self, ids: np.ndarray) -> list[str]:
        assert ids.dtype == np.int64
        return [self.table.text(i) for i in ids.tolist()]


@pytest.fixture
def strings() -> Strings:
    return Strings()


@examples(60)
@given(ROWS)
def test_symbols_compare_by_their_bytes(rows: list[tuple[str, str]]) -> None:
    s = Strings()
    left, right = s.ids(*(a for a, _ in rows)), s.ids(*(b for _, b in rows))
    pairs = [(a.encode(), b.encode()) for a, b in rows]
    assert compare("<", left, right, s.table).tolist() == [a < b for a, b in pairs]
    assert compare("<=", left, right, s.table).tolist() == [a <= b for a, b in pairs]
    assert compare(">", left, right, s.table).tolist() == [a > b for a, b in pairs]
    assert compare(">=", left, right, s.table).tolist() == [a >= b for a, b in pairs]
    assert compare("contains", left, right, s.table).tolist() == [a in b for a, b in pairs]
    assert compare("not_contains", left, right, s.table).tolist() == [a not in b for a, b in pairs]
    assert s.texts(evaluate("min", [left, right], [S, S], s.table)) == [min(p, key=str.encode) for p in rows]
    assert s.texts(evaluate("max", [left, right], [S, S], s.table)) == [max(p, key=str.encode) for p in rows]


@examples(60)
@given(st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=20))
def test_cat_joins_and_strlen_counts_characters(rows: list[tuple[str, str, str]]) -> None:
    s = Strings()
    columns = [s.ids(*column) for column in zip(*rows, strict=True)]
    joined = evaluate("cat", columns, [S, S, S], s.table)
    assert s.texts(joined) == ["".join(row) for row in rows]
    assert evaluate("strlen", [joined], [S], s.table).tolist() == [len("".join(row)) for row in rows]


@pytest.mark.parametrize(
    ("text", "index", "length", "expected"),
    [
        ("hello", 1, 3, "ell"),
        ("hello", 0, 100, "hello"),
        ("hello", 5, 1, ""),
        ("hello", 6, 1, ""),
        ("hello", -1, 2, ""),
        ("hello", 2, -1, "llo"),
        ("hello", 2, 0, ""),
        ("h\u00e9\U0001f600o", 1, 2, "\u00e9\U0001f600"),
        ("h\u00e9\U0001f600o", 3, 1, "o"),
        ("h\u00e9\U0001f600o", 5, 1, ""),
        ("", 0, 1, ""),
    ],
)
def test_substr(strings: Strings, text: str, index: int, length: int, expected: str) -> None:
    args = [strings.ids(text), np.array([index]), np.array([length])]
    assert strings.texts(evaluate("substr", args, [S, N, N], strings.table)) == [expected]


def test_substr_takes_from_a_table_that_grows_meanwhile(strings: Strings) -> None:
    text = "".join(chr(33 + i % 90) for i in range(5000))
    starts = np.arange(4000)
    pieces = evaluate("substr", [np.repeat(strings.ids(text), 4000), starts, np.full(4000, 900)], [S, N, N], strings.table)
    assert strings.texts(pieces) == [text[i : i + 900] for i in range(4000)]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (N, np.array([0, -5, 2**63 - 1, -(2**63)]), ["0", "-5", "9223372036854775807", "-9223372036854775808"]),
        (U, np.array([2**64 - 1], np.uint64).view(np.int64), ["18446744073709551615"]),
        (F, np.array([3.14, 2.0, -0.0, 1e-9]), ["3.140000", "2.000000", "-0.000000", "0.000000"]),
        (F, np.array([1e20]), ["100000000000000000000.000000"]),
    ],
)
def test_to_string(strings: Strings, kind: Kind, values: np.ndarray, expected: list[str]) -> None:
    assert strings.texts(evaluate("to_string", [values], [kind], strings.table)) == expected


@pytest.mark.parametrize(
    ("op", "text", "expected"),
    [
        ("to_number", "42", 42),
        ("to_number", "-42", -42),
        ("to_number", " 7", 7),
        ("to_number", "12 apples", 12),
        ("to_number", "0x1F", 31),
        ("to_number", "-0b101", -5),
        ("to_unsigned", "0xff", 255),
        ("to_unsigned", "18446744073709551615", -1),
        ("to_float", "2.5", 2.5),
        ("to_float", "1e3x", 1000.0),
        ("to_float", "-inf", -np.inf),
    ],
)
def test_numbers_from_text(strings: Strings, op: str, text: str, expected: float) -> None:
    assert evaluate(op, [strings.ids(text)], [S], strings.table).tolist() == [expected]


@pytest.mark.parametrize(
    ("op", "text", "name"),
    [
        ("to_number", "abc", "a number"),
        ("to_number", "", "a number"),
        ("to_number", "9223372036854775808", "a number"),
        ("to_unsigned", "-1", "an unsigned number"),
        ("to_float", "x1", "a float"),
    ],
)
def test_text_that_is_no_number_is_an_error(strings: Strings, op: str, text: str, name: str) -> None:
    with pytest.raises(DlogError) as caught:
        evaluate(op, [strings.ids("1", text)], [S], strings.table)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("bad-conversion", f'{op}("{text}"): the text is not {name}')


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a.*", "abc", True),
        ("a", "abc", False),
        ("a|ab", "ab", True),
        ("", "", True),
        (".", "\n", False),
        (".", "\u00e4", True),
        ("..", "\u00e4", False),
        ("[\u00e0-\u00ff]", "\u00e4", True),
        (r"(.)\1", "\u00e4\u00e4", True),
        (r"(?=\w).", "\u00e4", False),
        (r"\w", "\u00e4", False),
        ("[0-9]+", "123", True),
        (r"(.)\1", "aa", True),
        (r"(.)\1", "ab", False),
        ("(?=a).*", "abc", True),
    ],
)
def test_match_is_on_the_whole_text(strings: Strings, pattern: str, text: str, expected: bool) -> None:
    left, right = strings.ids(pattern), strings.ids(text)
    assert compare("match", left, right, strings.table).tolist() == [expected]
    assert compare("not_match", left, right, strings.table).tolist() == [not expected]


PIECES = st.text("ab\u00e9\n", max_size=9)


@examples(200)
@given(
    parts=st.lists(st.text("ab\u00e9", max_size=4), min_size=1, max_size=4),
    texts=st.lists(st.one_of(PIECES, st.text("ab\u00e9", max_size=60)), min_size=1, max_size=9),
    fitting=st.lists(PIECES, min_size=3, max_size=3),
)
def test_texts_with_anything_between_them_match_as_by_an_automaton(
    parts: list[str], texts: list[str], fitting: list[str]
) -> None:
    strings, pattern = Strings(), ".*".join(parts)
    between = [*fitting[: len(parts) - 1], ""]
    texts = [*texts, "".join(part + more for part, more in zip(parts, between, strict=True))]
    found = compare("match", strings.ids(*[pattern] * len(texts)), strings.ids(*texts), strings.table)
    assert found.tolist() == [re.fullmatch(pattern, text) is not None for text in texts]


def test_match_takes_a_pattern_per_row(strings: Strings) -> None:
    patterns, texts = ["a+", "b+", "a+", "b+"] * 5, ["aa", "aa", "bb", "bb"] * 5
    found = compare("match", strings.ids(*patterns), strings.ids(*texts), strings.table)
    assert found.tolist() == [re.fullmatch(p, t) is not None for p, t in zip(patterns, texts, strict=True)]


@pytest.mark.parametrize("pattern", ["(a", "a)|(?:a", "fo{x}", "{", "a{,2}", "[a]{b"])
def test_a_pattern_that_is_none_matches_nothing_and_warns(strings: Strings, pattern: str) -> None:
    for op in ("match", "not_match"):
        with pytest.warns(RuntimeWarning, match="wrong pattern"):
            assert compare(op, strings.ids(pattern), strings.ids("a"), strings.table).tolist() == [False]
