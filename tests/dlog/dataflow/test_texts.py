"""Expressions of texts against Python's own functions, whatever way rows have come, whether anybody keeps the texts or not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.dataflow import Collection, Dataflow, Input, col, lit, when
from dlog.dataflow import text_functions as F
from dlog.dataflow import texts as evaluation
from dlog.dataflow.expressions import Expression
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

Twin = Callable[[str], Any]
Pair = tuple[Expression, Twin]

S = col("s")
SPECIAL = st.text("aAbB%_\\.$()[]|*é\nß \0😀x", max_size=8)
PLAIN = st.text("aAbBéÉñ1 .", max_size=8)
TEXTS = st.one_of(SPECIAL, SPECIAL, PLAIN, st.text(max_size=20), st.sampled_from(["", "special", "no special requests here"]))
PARTS = st.one_of(st.text("ab%_\\.é\n", max_size=3), st.sampled_from(["", "a", "ab", "special", "%special%requests%"]))
PATTERNS = ["[ab]+", "a.b", "(a|é)b", "^a", r"\.", "a?b{2}", "[^a]", r"\Ax\z", "sp.*q"]


def like_twin(pattern: str) -> Twin:
    """A pattern of `LIKE` as a regular expression of Python's, character by character."""
    found, characters = "", iter(pattern)
    for each in characters:
        if each == "\\":
            found += re.escape(next(characters))
        else:
            found += {"%": ".*", "_": "."}.get(each, re.escape(each))
    return lambda text: re.fullmatch(found, text, re.DOTALL) is not None


def slice_twin(offset: int, length: int | None) -> Twin:
    def cut(text: str) -> str:
        start = offset if offset >= 0 else len(text) + offset
        end = len(text) if length is None else start + length
        return "".join(c for k, c in enumerate(text) if start <= k < end)

    return cut


def contains_twin(pattern: str) -> Twin:
    return lambda text: re.search(pattern.replace(r"\z", r"\Z"), text) is not None


def literal(make: Callable[[str], Expression], twin: Callable[[str, str], Any]) -> st.SearchStrategy[Pair]:
    return PARTS.map(lambda part: (make(part), lambda text: twin(text, part)))


OFFSETS = st.integers(-6, 6)
NEW = st.text("ab$\\1é", max_size=3)
ESCAPED = PARTS.filter(lambda part: part.replace("\\\\", "")[-1:] != "\\")
FUNCTIONS: st.SearchStrategy[Pair] = st.one_of(
    literal(lambda part: S.str.contains(part, literal=True), lambda text, part: part in text),
    literal(S.str.starts_with, str.startswith),
    literal(S.str.ends_with, str.endswith),
    literal(lambda part: part == S, str.__eq__),
    literal(lambda part: part < S, str.__gt__),
    ESCAPED.map(lambda pattern: (S.str.like(pattern), like_twin(pattern))),
    st.sampled_from(PATTERNS).map(lambda pattern: (S.str.contains(pattern), contains_twin(pattern))),
    st.just((S.str.len_bytes(), lambda text: len(text.encode()))),
    st.just((S.str.len_chars(), len)),
    st.builds(lambda at, size: (S.str.slice(at, size), slice_twin(at, size)), OFFSETS, st.none() | st.integers(0, 4)),
    st.builds(lambda chars: (S.str.strip_chars(chars), lambda text: text.strip(chars)), st.text("ab é\n", min_size=1)),
    st.builds(
        lambda old, new: (S.str.replace_all(old, new, literal=True), lambda text: text.replace(old, new)),
        PARTS.filter(bool),
        NEW,
    ),
    st.just((S.str.replace_all("(a|é)b", "<$1$$${1}>"), lambda text: re.sub("(a|é)b", r"<\1$\1>", text))),
    st.just((S.str.replace_all(r"[ab]+", "\\"), lambda text: re.sub("[ab]+", r"\\", text))),
    st.lists(TEXTS, max_size=3).map(lambda among: (S.is_in(among), lambda text: text in among)),
    st.just((S.str.slice(0, 2).str.len_bytes() + 1, lambda text: len(text[:2].encode()) + 1)),
    st.just((S.str.replace_all("a", "b").str.contains("bb").alias("y"), lambda text: "bb" in text.replace("a", "b"))),
    st.just(((S + "!").str.ends_with("a!"), lambda text: text.endswith("a"))),
    st.just((when(S.str.contains("a")).then("s").otherwise(lit("none")), lambda text: text if "a" in text else "none")),
)
TYPES = {
    "arrow": pa.string(),
    "large": pa.large_string(),
    "view": pa.string_view(),
    "dictionary": pa.dictionary(pa.int8(), pa.string()),
}
WAYS = ["tuples", "columns", *TYPES, "sliced", "chunks", "arrays"]


def rows_by(way: str, rows: list[tuple[int, str]]) -> Any:
    """Rows as a collection takes them."""
    ids, texts = [id for id, _ in rows], [text for _, text in rows]
    match way:
        case "tuples":
            return rows
        case "columns":
            return {"id": ids, "s": texts}
        case "sliced":
            table = pa.table({"id": [0, *ids, 0], "s": pa.array(["before", *texts, "behind"], pa.string())})
            return table.slice(1, len(rows))
        case "chunks":
            parts = [rows[:1], rows[1:1], rows[1:]]
            return pa.concat_tables([rows_by("arrow", part) for part in parts])
        case "arrays":
            return {"id": pa.array(ids, pa.int64()), "s": pa.array(texts, pa.string())}
        case _:
            return pa.table({"id": pa.array(ids, pa.int64()), "s": pa.array(texts, pa.string()).cast(TYPES[way])})


def made_of(rows: Input, expression: Expression, kept: bool) -> Collection:
    """The values of an expression, by id; with `kept` somebody keeps the texts, too."""
    if kept:
        rows.map("s").capture()
    return rows.map("id", y=expression)


def counted(found: Iterable[tuple[tuple[int, str], int]], twin: Twin) -> dict[tuple[Any, ...], int]:
    sums: Counter[tuple[Any, ...]] = Counter()
    for (id, text), diff in found:
        sums[id, twin(text)] += diff
    return {row: diff for row, diff in sums.items() if diff}


BATCHES = st.lists(
    st.tuples(st.lists(st.tuples(st.integers(0, 2), TEXTS), max_size=6), st.sampled_from(WAYS), st.sampled_from([1, 1, -1, 2]),
              st.integers(0, 2)), max_size=5)  # fmt: skip


@examples(400)
@given(FUNCTIONS, BATCHES, st.booleans())
def test_functions_of_texts_are_those_of_python(pair: Pair, batches: list[Any], kept: bool) -> None:
    expression, twin = pair
    flow = Dataflow()
    rows = flow.input(id=int, s=str)
    found = made_of(rows, expression, kept).capture(history=True)
    for given_rows, way, diff, at in batches:
        rows.update(rows_by(way, given_rows), diff, at)
    flow.advance_to(2)
    flow.advance_to(3)
    for round in range(3):
        expected = [(row, diff) for given_rows, _, diff, at in batches if at <= round for row in given_rows]
        assert found.counts(round) == counted(expected, twin)
    assert not flow.scope.graph.objects.held


@examples(200)
@given(FUNCTIONS.filter(lambda pair: isinstance(pair[1]("a"), bool)), BATCHES, st.booleans(), st.booleans())
def test_predicates_of_texts_keep_the_rows_for_which_they_hold(pair: Pair, batches: list[Any], kept: bool, loop: bool) -> None:
    expression, twin = pair
    flow = Dataflow()
    rows = flow.input(id=int, s=str)
    if kept:
        rows.map("s").capture()
    inner: Any = rows.enter(flow.scope.loop()) if loop else rows
    chosen = inner.filter(~expression).map(id=col("id") + 1)
    found = (chosen.leave() if loop else chosen).capture()
    expected: Counter[tuple[int]] = Counter()
    for given_rows, way, diff, _ in batches:
        rows.update(rows_by(way, given_rows), diff)
        expected.update({})
        for id, text in given_rows:
            expected[(id + 1,)] += 0 if twin(text) else diff
        flow.commit()
        assert found.counts() == {row: diff for row, diff in expected.items() if diff}


@examples(100)
@given(FUNCTIONS, st.lists(st.lists(st.text("abé%", max_size=3), max_size=30), max_size=4), st.sampled_from([0, 5, 1 << 20]))
def test_outcomes_are_kept_by_number_as_far_as_there_is_room(pair: Pair, rounds: list[list[str]], most: int) -> None:
    expression, twin = pair
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "MOST_OUTCOMES", most)
        flow = Dataflow()
        rows = flow.input(id=int, s=str)
        found = made_of(rows, expression, True).capture()
        for texts in rounds:
            rows.insert([(0, text) for text in texts])
            flow.commit()
    assert found.counts() == counted((((0, text), 1) for texts in rounds for text in texts), twin)


def test_each_text_that_has_a_number_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def note(texts: pa.Array) -> pa.Array:
        asked.extend(texts.to_pylist())
        return pa.array([len(text) for text in texts.to_pylist()], pa.int64())

    monkeypatch.setattr(F, "len_chars", lambda: F.TextFunction("len_chars", (), int, note))
    flow = Dataflow()
    rows = flow.input(id=int, s=str)
    found = made_of(rows, S.str.len_chars(), True).capture()
    for texts in (["a", "bb", "a"], ["bb", "ccc"], ["a"]):
        rows.insert([(0, text) for text in texts])
        flow.commit()
    assert sorted(asked) == ["a", "bb", "ccc"]
    assert found.counts() == {(0, 1): 3, (0, 2): 2, (0, 3): 1}


@examples(100)
@given(st.lists(PLAIN), st.booleans())
def test_letters_change_one_by_one(texts: list[str], kept: bool) -> None:
    flow = Dataflow()
    rows = flow.input(id=int, s=str)
    changed = rows.map(upper=S.str.to_uppercase(), lower=S.str.to_lowercase(), stripped=S.str.strip_chars()).capture()
    if kept:
        rows.map("s").capture()
    rows.insert(rows_by("arrow", [(0, text) for text in texts]))
    flow.commit()
    assert changed.counts() == Counter((text.upper(), text.lower(), text.strip()) for text in texts)


@examples(200)
@given(st.lists(TEXTS, min_size=1), ESCAPED, st.integers(0, 2))
def test_patterns_are_found_in_slices_of_columns(texts: list[str], pattern: str, skipped: int) -> None:
    column = pa.array(texts, pa.string()).slice(skipped)
    if len(column):
        found = F.like(pattern).apply(column)
        listed = found.tolist() if isinstance(found, np.ndarray) else found.to_pylist()
        assert [bool(each) for each in listed] == [like_twin(pattern)(text) for text in texts[skipped:]]


def test_texts_of_a_session_are_those_of_its_relation() -> None:
    s = dlog.session(".decl comment(id: number, text: symbol)\n")
    comments = s.collection("comment")
    special = comments.filter(col("text").str.like("%special%requests%")).map("id").capture()
    lengths = comments.map("id", size=col("text").str.len_chars()).capture()
    s.insert("comment", [(1, "special: two requests"), (2, "requests, special"), (3, "é")])
    s.commit()
    assert (sorted(special), sorted(lengths)) == ([(1,)], [(1, 21), (2, 17), (3, 1)])
    s.remove("comment", [(1, "special: two requests")])
    s.insert("comment", [(4, "especially requests")])
    s.commit()
    assert (sorted(special), sorted(lengths)) == ([(4,)], [(2, 17), (3, 1), (4, 19)])


def test_texts_that_several_read_are_right_for_all() -> None:
    flow = Dataflow()
    rows = flow.input(id=int, s=str, t=str)
    renamed = rows.rename(u="s").filter(col("u").str.contains("a")).map("u", "t")
    found = renamed.filter(col("t") != "x").map(n=col("u").str.len_chars()).capture()
    texts = rows.map("t").count().capture()
    python = rows.map_batches(lambda columns: {"y": [a + b for a, b in zip(columns["s"], columns["t"], strict=True)]}, y=str)
    joined = python.capture()
    rows.insert(pa.table({"id": [1, 2, 3], "s": ["ab", "b", "a"], "t": ["x", "y", "z"]}))
    rows.insert(pa.table({"id": [4], "s": ["aaa"], "t": ["z"]}))
    flow.commit()
    assert (found.counts(), sorted(texts)) == ({(1,): 1, (3,): 1}, [("x", 1), ("y", 1), ("z", 2)])
    assert sorted(joined) == [("aaaz",), ("abx",), ("az",), ("by",)]
    assert len(flow.scope.graph.objects.encode(["ab"])) == 1


STEPS: st.SearchStrategy[Callable[[Collection], Collection]] = st.sampled_from([
    lambda rows: rows.filter(S.str.contains("a", literal=True)),
    lambda rows: rows.filter((S != "a") & (col("id") > 0)),
    lambda rows: rows.filter(col("id") < 2),
    lambda rows: rows.with_columns(id=S.str.len_chars() + col("id")),
    lambda rows: rows.with_columns(s=S.str.to_uppercase()),
    lambda rows: rows.with_columns(s=S + "a"),
    lambda rows: rows.rename(t="s").map("id", s="t"),
    lambda rows: rows.map("s", id=when(S < "b").then("id").otherwise(7)),
    lambda rows: rows.negate(),
    lambda rows: rows.repeat_row(S.str.len_bytes()),
    lambda rows: rows.explode("s", id="id", diff=S.str.len_chars() - 1),
    lambda rows: rows.concat(rows.filter(S.str.ends_with("b"))),
    lambda rows: rows.map_batches(lambda given: {"id": given["id"] + 1, "s": given["s"][::-1][::-1]}, id=int, s=str),
    lambda rows: rows.map("id", "s").flat_map(lambda id, s: [(id, s), (id, s[:1])], id=int, s=str),
    lambda rows: rows.temporal("id", None),
    lambda rows: rows.tumbling_window("id", 2).map("id", "s"),
])  # fmt: skip
LASTS: st.SearchStrategy[Callable[[Collection], Collection]] = st.sampled_from([
    lambda rows: rows, lambda rows: rows.map("id"), lambda rows: rows.map("s").count(), lambda rows: rows.max("s", by="id"),
    lambda rows: rows.explode("id", diff=(1, S.str.len_chars())).count("n", "sum"),
    lambda rows: rows.map(s=S.str.slice(0, 1)).distinct(), lambda rows: rows.join(rows.map("s", other="id"), on="s"),
])  # fmt: skip


@examples(400)
@given(st.lists(STEPS, max_size=4), LASTS, BATCHES)
def test_nobody_can_tell_whether_texts_are_held(
    steps: list[Callable[[Collection], Collection]], last: Callable[[Collection], Collection], batches: list[Any]
) -> None:
    found = []
    for kept in (False, True):
        flow = Dataflow()
        rows: Any = flow.input(id=int, s=str)
        made = rows
        for step in steps:
            made = step(made)
        shown = last(made).capture()
        if kept:
            rows.capture()
        for given_rows, way, diff, at in batches:
            rows.update(rows_by(way, given_rows), diff, at)
        flow.advance_to(10)
        found.append((shown.counts(), bool(flow.scope.graph.objects.held)))
    assert found[0] == found[1] and not found[0][1]


def test_what_is_refused_holds_no_texts() -> None:
    flow = Dataflow()
    rows = flow.input(s=str, id=int)
    rows.filter(S.str.contains("a")).map("id").capture()
    table = pa.table({"s": ["a", "b"], "id": pa.array([1, None], pa.int64())})
    refused: list[Callable[[], None]] = [
        lambda: rows.insert(table), lambda: rows.insert([("a", "b")]), lambda: rows.update([("a", 1)], 1, at=[-1]),
        lambda: rows.update([("a", 1)], [1, 2]),
    ]  # fmt: skip
    for insert in refused:
        with pytest.raises(DlogError):
            insert()
    rows.update([("a", 1)], 0)
    assert not flow.scope.graph.objects.held
    rows.insert([("a", 1)], at=5)
    flow.commit()
    assert flow.scope.graph.objects.held
    flow.advance_to(6)
    assert not flow.scope.graph.objects.held


def test_who_comes_later_may_keep_what_has_come() -> None:
    flow = Dataflow()
    rows = flow.input(s=str, t=str)
    lengths = rows.map(n=col("t").str.len_chars()).capture()
    rows.insert([("a", "b"), ("\udcff", "cc"), ("a", "")])
    rows.insert(pa.table({"s": ["a", "c"], "t": ["b", "b"]}))
    kept = rows.map("s").count().capture()
    flow.commit()
    rows.insert([("c", "\u00e9")])
    flow.commit()
    assert sorted(kept) == [("a", 3), ("c", 2), ("\udcff", 1)]
    assert lengths.counts() == {(0,): 1, (1,): 4, (2,): 1}
    assert not flow.scope.graph.objects.held


def test_a_batch_that_fails_holds_no_texts() -> None:
    flow = Dataflow()
    rows = flow.input(s=str)
    rows.map(n=S.cast(int)).capture()
    rows.insert(["1", "x"])
    rows.insert(["2"], at=3)
    with pytest.raises(DlogError, match="'x' is no int"):
        flow.commit()
    assert len(flow.scope.graph.objects.held._parts) == 1


def test_texts_that_arrow_has_not_are_compared_nevertheless() -> None:
    flow = Dataflow()
    rows, kept = flow.input(s=str), flow.input(s=str)
    found = [given.filter(S != "\udcff").filter(S == "a").count().capture() for given in (rows, kept)]
    kept.capture()
    one = rows.map_batches(lambda columns: {"n": [len(text) for text in columns["s"]]}, n=int).capture()
    for given_rows in (rows, kept):
        given_rows.insert(["a", "\udcff", "a"])
    flow.commit()
    assert [sorted(each) for each in found] == [[("a", 2)], [("a", 2)]]
    assert one.counts() == {(1,): 3}
    rows.insert(["\udcff"])
    other = Dataflow()
    searched = other.input(s=str)
    searched.filter(S.str.contains("a")).capture()
    searched.insert(["\udcff"])
    with pytest.raises(DlogError, match="a text is none: 'utf-8' codec"):
        other.commit()


REFUSED: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: S.str.contains("a("), "bad-argument", "`pattern` must be a regular expression"),
    (lambda: S.str.contains(3), "bad-argument", "`pattern` must be a regular expression, not 3"),
    (lambda: S.str.contains("\ud800", literal=True), "bad-argument", "`pattern` is no text"),
    (lambda: S.str.like("a\\"), "bad-argument", "does not end in the middle of an escape"),
    (lambda: S.str.like(None), "bad-argument", "`pattern` must be a text in which"),
    (lambda: S.str.starts_with(b"a"), "bad-argument", "`prefix` must be a text"),
    (lambda: S.str.slice("a"), "bad-argument", "`offset` must be a whole number"),
    (lambda: S.str.slice(0, -1), "bad-argument", "`length` must be a whole number of characters"),
    (lambda: S.str.replace_all("", "a", literal=True), "bad-argument", "`old` must be something to be found"),
    (lambda: S.str.replace_all("(a", "b"), "bad-argument", "`pattern` must be a regular expression"),
    (lambda: S.str.replace_all("(a)", "$2"), "bad-argument", "`new` must be a text with groups that the expression has"),
    (lambda: S.str.replace_all("(a)", "$name"), "bad-argument", "`new` must be a text with numbers of groups"),
    (lambda: S.str.strip_chars(1), "bad-argument", "`characters` must be a text"),
    (lambda: rows_of(col("id").str.contains("a")), "bad-expression", "there is no `.str.contains` of int: it is for texts"),
    (lambda: rows_of(S.abs()), "bad-expression", "there is no `abs` of str"),
    (lambda: rows_of(S.cast(bool)), "bad-expression", "there is no cast of str to bool"),
    (lambda: rows_of(col("o").cast(int)), "bad-expression", "there is no cast of object to int"),
    (lambda: S.cast(list), "bad-argument", "`kind` must be int, float, bool, str or object"),
    (lambda: rows_of(S.is_in([1])), "bad-argument", "`values` must be values that a column of str may have, not 1"),
    (lambda: rows_of(col("id").is_in(["a"])), "bad-argument", "`values` must be values that a column of int may have, not 'a'"),
    (lambda: S.is_in("abc"), "bad-argument", "`values` must be a list of values, not 'abc'"),
    (lambda: S.is_in([col("s")]), "bad-argument", "not of expressions"),
    (lambda: S.is_in([[]]), "bad-argument", "hashable"),
    (lambda: rows_of(when(col("id")).then(1).otherwise(2)), "bad-argument", "`condition` must be an expression that is true"),
    (lambda: rows_of(when(S == "a").then("s").otherwise(2)), "bad-expression", "values of one kind, not str and int"),
    (lambda: rows_of(when(S == "a").then(1)), "bad-expression", "`when` has no `.otherwise\\(...\\)` behind it"),
    (lambda: rows_of(when(S == "a")), "bad-expression", "`when` has no `.then"),
]


def rows_of(expression: Any) -> Collection:
    return Dataflow().input(id=int, s=str, o=object).map(y=expression)


@pytest.mark.parametrize(("make", "code", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_what_is_no_expression_is_refused(make: Callable[[], Any], code: str, message: str) -> None:
    with pytest.raises(DlogError, match=message) as error:
        make()
    assert error.value.diagnostics[0].code == code


def test_expressions_are_shown_as_they_are_written() -> None:
    shown = [
        'col("s").str.contains("a+")', 'col("s").str.contains("a", literal=True)', 'col("s").str.slice(1, 2).str.len_chars()',
        'col("x").is_in([1, 2])', 'col("x").abs()', 'col("x").cast(float)',
        'when(col("x") == 1).then(col("y")).otherwise(lit(2))',
    ]  # fmt: skip
    for written in shown:
        made = eval(written, {"col": col, "when": when, "lit": lit, "float": float})
        assert repr(made).replace("'", '"') == written
