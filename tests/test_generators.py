"""Ranges, wherever they may stand, on all engines; expected values are written out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.dataflow import Dataflow
from dlog.engine.ir.rules import Kind
from dlog.engine.ir.table_functions import DEEPEST_JSON, TABLE_FUNCTIONS
from dlog.engine.values import backtracking
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from dlog.pipeline import explain_plan, explain_rounds
from tests.conftest import RunText
from tests.engines import EVERY_ENGINE
from tests.examples import examples
from tests.naive import evaluate
from tests.naive_generators import values_of

TOP, BOTTOM, MOST = 2**63 - 1, -(2**63), 2**64 - 1


def in_a_session(text: str, facts: dict[str, list[tuple[Any, ...]]]) -> dict[str, set[tuple[Any, ...]]]:
    """What a session has once the facts have come, gone and come again, one after the other."""
    with dlog.session(text) as session:
        for again in (False, True):
            for name, rows in facts.items():
                for row in rows:
                    session.insert(name, [row])
                    session.commit()
            if not again:
                for name, rows in facts.items():
                    session.remove(name, rows)
                    session.commit()
        return {name: set(session[name]) for name in session}


@pytest.mark.parametrize(
    ("kind", "call", "expected"),
    [
        ("number", "range(0, 3)", [0, 1, 2]),
        ("number", "range(3, 0)", [3, 2, 1]),
        ("number", "range(3, 3)", []),
        ("number", "range(0, 7, 3)", [0, 3, 6]),
        ("number", "range(0, 7, -3)", []),
        ("number", "range(7, 0, -3)", [7, 4, 1]),
        ("number", "range(5, 1, 0)", [5]),
        ("number", "range(5, 5, 0)", []),
        ("number", f"range({TOP - 1}, {TOP}, 5)", [TOP - 1]),
        ("number", f"range({BOTTOM + 1}, {BOTTOM}, -5)", [BOTTOM + 1]),
        ("number", f"range({BOTTOM}, {TOP}, {TOP})", [BOTTOM, -1, TOP - 1]),
        ("unsigned", "range(9, 7)", [9, 8]),
        ("unsigned", "range(7, 9)", [7, 8]),
        ("unsigned", "range(9, 7, 1)", []),
        ("unsigned", f"range({2**63 - 1}, {2**63 + 1})", [2**63 - 1, 2**63]),
        ("unsigned", f"range(1, {MOST}, {2**63})", [1, 2**63 + 1]),
        ("unsigned", f"range({MOST - 1}, {MOST}, 7)", [MOST - 1]),
        ("float", "range(1.25, 3.25)", [1.25, 2.25]),
        ("float", "range(1.5, -0.2, -0.5)", [1.5, 1.0, 0.5, 0.0]),
        ("float", "range(2.5, 0.5)", [2.5, 1.5]),
        ("float", "range(1.0, 2.0, 0.0)", [1.0]),
        ("float", "range(100000000000000000.0, 1000000000000000000.0, 1.0)", [1e17]),
        ("float", "range(1.0, 3.0, 0.0 / 0.0)", [1.0]),
        ("float", "range(0.0 / 0.0, 3.0)", []),
    ],
)
@EVERY_ENGINE
def test_a_range_has_these_values(run_text: RunText, kind: str, call: str, expected: list[Any]) -> None:
    text = f".decl r(x: {kind})\nr(x) :- x = {call}.\n"
    assert run_text(text, {})["r"] == {(x,) for x in expected}


@examples(200)
@given(
    kind=st.sampled_from([Kind.NUMBER, Kind.UNSIGNED]),
    args=st.lists(st.integers(-6, 6) | st.sampled_from([TOP, TOP - 2, BOTTOM, BOTTOM + 2]), min_size=2, max_size=3),
)
def test_pythons_rows_are_those_of_the_oracle(kind: Kind, args: list[int]) -> None:
    args = [a % 2**64 if kind is Kind.UNSIGNED else a for a in args]
    step = args[2] if len(args) > 2 else 1
    if step and abs((args[1] - args[0]) // step) > 100:
        return
    rows_of_range = TABLE_FUNCTIONS["range"].rows
    assert rows_of_range is not None
    rows = [row for (row,) in rows_of_range(kind, *args)]
    assert rows == list(values_of("range", args, kind.value))
    assert len(set(rows)) == len(rows)


NUMBERS = ".decl n(x: number)\n.decl p(x: number, y: number)\n.decl r(x: number)\n"
PLACES = [
    ("r(range(0, 3)).", {0, 1, 2}),
    ("r(range(0, x) * 10) :- n(x).", {0, 10, 20, 30}),
    ("r(x) :- n(x), n(range(1, 3)).", {2, 4}),
    ("r(x) :- p(x, range(0, 3)).", {2}),
    ("r(y) :- n(x), y = range(x, 0).", {4, 3, 2, 1}),
    ("r(range(range(0, 2), range(2, 4))).", {0, 1, 2}),
    ("r(x) :- n(x), x = range(0, 3).", {2}),
    ("r(x) :- n(x), x < range(0, 4).", {2}),
    ("r(x) :- n(x), x != range(2, 3).", {4}),
    ("r(x) :- n(x), !n(range(2, 4)).", {2, 4}),
    ("r(x) :- n(x), !n(range(2, 3)).", set()),
    ("r(x) :- n(x), _ = range(2, x).", {4}),
    ("r(c) :- c = count : { i = range(0, 10), i % 2 = 0 }.", {5}),
    ("r(c) :- n(x), c = count : { _y = range(x, 10) }.", {8, 6}),
    ("r(s) :- n(x), s = sum range(0, x) : { n(2) }.", {1, 6}),
    ("r(s) :- n(x), s = max range(0, y) : { p(x, y) }.", {0, 2}),
    ("r(c) :- c = count : { p(_, _), i = range(0, 2) }.", {2}),
    ("r(x) :- (x = range(0, 2) ; x = range(5, 7)).", {0, 1, 5, 6}),
    ("r(y) :- y = range(z, z + 2), z = x * 4, n(x).", {8, 9, 16, 17}),
    ("r(0). r(y) :- r(x), x < 5, y = range(x, x + 3).", {0, 1, 2, 3, 4, 5, 6}),
    (".decl q(x: number) inline\nq(x) :- n(x), x > 1.\nr(x) :- q(x), q(range(0, 4)), n(x).", {2, 4}),
    (".decl q(x: number) inline\nq(range(0, x)) :- n(x).\nr(x) :- q(x), x > 1.", {2, 3}),
]


@pytest.mark.parametrize(("rules", "expected"), PLACES, ids=[rules for rules, _ in PLACES])
@EVERY_ENGINE
def test_a_range_may_stand_there(run_text: RunText, rules: str, expected: set[int]) -> None:
    facts = {"n": [(2,), (4,)], "p": [(2, 1), (4, 3)]}
    for threads in (1, 2):
        assert run_text(NUMBERS + rules, facts, threads=threads)["r"] == {(x,) for x in expected}


@pytest.mark.parametrize(("rules", "expected"), PLACES, ids=[rules for rules, _ in PLACES])
def test_a_session_maintains_ranges(tmp_path: Path, rules: str, expected: set[int]) -> None:
    facts: dict[str, list[tuple[Any, ...]]] = {"n": [(2,), (4,)], "p": [(2, 1), (4, 3)]}
    text = NUMBERS + rules
    assert in_a_session(text, facts)["r"] == {(x,) for x in expected}
    program = tmp_path / "program.dl"
    program.write_text(text)
    assert "computed anew" not in explain_rounds(program, (), ())


def test_more_values_than_a_block_has_come_in_order_of_need() -> None:
    text = ".decl n(x: number)\n.decl r(x: number, y: number)\nr(x, y) :- n(x), y = range(0, x, 1)."
    facts = {"n": [(x,) for x in (0, 1, 511, 512, 513, 2000)]}
    expected = {(x, y) for (x,) in facts["n"] for y in range(x)}
    assert set(dlog.run(text, facts=facts)["r"]) == expected
    assert in_a_session(text, facts)["r"] == expected


def test_the_plan_shows_the_generator_after_what_binds_its_arguments(tmp_path: Path) -> None:
    program = tmp_path / "program.dl"
    program.write_text(".decl n(x: number)\n.input n\n.decl r(x: number)\n.output r\nr(y) :- y = range(0, x), n(x).\n")
    plan = explain_plan(program, (), (), None)
    assert plan.index("scan n(x)") < plan.index("generate y = range(0, x)") < plan.index("insert r(y)")


def test_a_proof_names_the_range() -> None:
    text = ".decl n(x: number)\n.decl r(x: number)\nr(y) :- n(x), y = range(0, x)."
    with dlog.session(text) as session:
        session.insert("n", [(3,)])
        session.commit()
        assert "n(3)" in str(session.why("r", (2,)))
        assert "range(0, 3) does not give 7" in str(session.why_not("r", (7,)))


TEXTS = """
.decl t(x: number, text: symbol)
.decl part(x: number, part: symbol)
.decl at(x: number, i: number, part: symbol)
.decl parts(x: number, n: number, distinct: number)
.decl common(part: symbol)
.decl member(x: number, key: symbol, type: symbol, value: symbol)
.decl inner(x: number, value: symbol)
.decl without(x: number)
part(x, p) :- t(x, s), p = split(s, ",").
at(x, i, p) :- t(x, s), [i, p] = split(s, ","), i < 2.
parts(x, n, m) :- t(x, s), n = count : { [i, _] = split(s, ",") }, m = count : { p = split(s, ",") }.
common(p) :- t(1, s), t(2, u), p = split(s, ","), p = split(u, ",").
member(x, k, ty, v) :- t(x, s), [k, ty, v] = json_each(s).
inner(x, v) :- member(x, "list", "array", s), v = json_each(s).
without(x) :- t(x, s), !part(x, cat(split(s, ","), "")).
"""
TEXT_ROWS: list[tuple[Any, ...]] = [
    (1, "a,b,a"),
    (2, "b,é,"),
    (3, ""),
    (4, '{"list": [1, 2.50, "1", null], "s": "x, y", "n": {"a": true, "a": 1e3}}'),
    (5, "[[], {}]"),
    (6, "{"),
    (7, "b,é,"),
    (8, '["a", "\\ud800"]'),
    (9, '{"a": [{"\\udfff": 1}]}'),
    (10, "[" * DEEPEST_JSON + "]" * DEEPEST_JSON),
    (11, "[" * (DEEPEST_JSON + 1) + "]" * (DEEPEST_JSON + 1)),
    (12, "[" * 900 + "]" * 900),
    (13, f'["{"[" * 900}"]'),
    (14, "[" * 100_000),
    (15, '["\\ud83d\\ude00"]'),
]
MEMBERS = {
    (4, "list", "array", '[1, 2.50, "1", null]'),
    (4, "s", "string", "x, y"),
    (4, "n", "object", '{"a": true, "a": 1e3}'),
    (5, "0", "array", "[]"),
    (5, "1", "object", "{}"),
    (10, "0", "array", "[" * (DEEPEST_JSON - 1) + "]" * (DEEPEST_JSON - 1)),
    (13, "0", "string", "[" * 900),
    (15, "0", "string", "\U0001f600"),
}


def check_texts(found: dict[str, set[tuple[Any, ...]]]) -> None:
    expected = {(x, part) for x, text in TEXT_ROWS for part in text.split(",")}
    assert found["part"] == expected
    assert found["at"] == {(x, i, p) for x, text in TEXT_ROWS for i, p in enumerate(text.split(",")[:2])}
    assert found["parts"] == {(x, len(t.split(",")), len(set(t.split(",")))) for x, t in TEXT_ROWS}
    assert found["common"] == {("b",)}
    assert found["member"] == MEMBERS
    assert found["inner"] == {(4, "1"), (4, "2.50"), (4, "null")}
    assert found["without"] == set()


@EVERY_ENGINE
def test_texts_are_taken_apart(run_text: RunText) -> None:
    for threads in (1, 2):
        check_texts(run_text(TEXTS, {"t": TEXT_ROWS}, threads=threads))


def test_a_session_takes_texts_apart() -> None:
    check_texts(in_a_session(TEXTS, {"t": TEXT_ROWS}))


CAPTURES = r"""
.decl t(x: number, text: symbol)
.decl pattern(p: symbol)
.decl pair(x: number, n: number, key: symbol, value: symbol)
.decl all(p: symbol, x: number, n: number, g: number, part: symbol)
.decl words(x: number, n: number)
.decl none(x: number)
pair(x, n, k, v) :- t(x, s), [n, 1, k] = regex_captures("(\\w+)=(\\w*)", s), [n, 2, v] = regex_captures("(\\w+)=(\\w*)", s).
all(p, x, n, g, y) :- pattern(p), t(x, s), [n, g, y] = regex_captures(p, s).
words(x, n) :- t(x, s), n = count : { [_, 0, w] = regex_captures("\\w+", s) }.
none(x) :- t(x, s), !pair(x, 0, regex_captures("^", s), _).
"""
CAPTURED_FACTS: dict[str, list[tuple[Any, ...]]] = {
    "t": [(1, "a=1, bc=é"), (2, ""), (3, "x=, é=2 aé"), (4, "aaa"), (5, "a=1, bc=é")],
    "pattern": [("(a)(b)?",), ("",), (r"(.)\1",), ("(?=(a+))",)],
}


@EVERY_ENGINE
def test_groups_of_regular_expressions_are_captured(run_text: RunText) -> None:
    found = run_text(CAPTURES, CAPTURED_FACTS)
    assert found["pair"] == {(x, *row) for x in (1, 5) for row in ((0, "a", "1"), (1, "bc", ""))} | {(3, 0, "x", "")}
    assert found["words"] == {(1, 3), (2, 0), (3, 3), (4, 1), (5, 3)}
    assert {row for row in found["all"] if row[1] == 4 and row[0] != ""} == {
        *(("(a)(b)?", 4, n, g, "a") for n in range(3) for g in range(2)),
        (r"(.)\1", 4, 0, 0, "aa"),
        (r"(.)\1", 4, 0, 1, "a"),
        *(("(?=(a+))", 4, n, 0, "") for n in range(3)),
        *(("(?=(a+))", 4, n, 1, "a" * (3 - n)) for n in range(3)),
    }
    assert found == evaluate(parse(Source(CAPTURES)), CAPTURED_FACTS)


@pytest.mark.slow
def test_a_session_captures_groups() -> None:
    assert in_a_session(CAPTURES, CAPTURED_FACTS)["all"] == evaluate(parse(Source(CAPTURES)), CAPTURED_FACTS)["all"]
    with dlog.session(CAPTURES) as session:
        session.insert("t", [(1, "a=1")])
        session.commit()
        assert "t(1, " in str(session.why("pair", (1, 0, "a", "1")))


def test_a_pattern_that_is_none_captures_nothing_with_a_warning() -> None:
    for pattern in ("(", "a{x}"):
        with pytest.warns(RuntimeWarning, match="wrong pattern provided for regex_captures"):
            found = dlog.run_text(CAPTURES, {"t": [(1, "a=1")], "pattern": [(pattern,)]})
        assert set(found["all"]) == set() and set(found["pair"]) == {(1, 0, "a", "1")}


def test_a_pattern_that_captures_for_ever_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backtracking, "TRIAL_CPU_SECONDS", 1)
    with pytest.raises(dlog.DlogError, match=r"regex_captures\(.*takes more than 1 seconds"):
        dlog.run_text(CAPTURES, {"t": [(1, "a" * 64)], "pattern": [("(a+)+b",)]})


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", ['[n, g, y] = regex_captures("(?=(.*))", s)', '[n, y] = split(s, "")', '[y, _, _] = json_each(s)'], ids=str
)
def test_what_table_functions_make_is_counted(call: str) -> None:
    text = f".decl t(s: symbol)\n.decl r(y: symbol)\nr(y) :- t(s), {call}.\n"
    long = "[" + "1," * 1_000_000 + "1]" if "json" in call else "a" * (6_000 if "(?=" in call else 2_000_000)
    with pytest.raises(dlog.DlogError, match=r"out of memory|takes more than 16,777,216 characters"):
        dlog.run(text, facts={"t": [(long,)]}, memory="100M")


def test_more_rows_than_a_block_has_come_for_each_of_many_texts() -> None:
    text = ".decl t(s: symbol)\n.decl r(s: symbol, i: number, p: symbol)\nr(s, i, p) :- t(s), [i, p] = split(s, \" \").\n"
    texts = [" ".join(f"{n}.{i}" for i in range(n)) for n in (0, 1, 700, 3, 1500)] + [f"t{n} u" for n in range(1200)]
    expected = {(s, i, p) for s in texts for i, p in enumerate(s.split(" "))}
    assert set(dlog.run(text, facts={"t": [(s,) for s in texts]})["r"]) == expected


def test_a_wrong_number_of_columns_is_refused() -> None:
    with pytest.raises(dlog.DlogError, match=r"`split` gives rows of 2 values, but 3 are named"):
        dlog.run(".decl r(x: symbol)\nr(x) :- [i, x, y] = split(y, x), y = \",\".\n")


@pytest.mark.parametrize("kind", ["number", "unsigned"])
def test_a_value_that_is_known_is_compared_with_the_bounds_of_a_range(tmp_path: Path, kind: str) -> None:
    low = 0 if kind == "unsigned" else BOTTOM
    high = MOST if kind == "unsigned" else TOP
    values = [low, low + 1, low + 3, 7, 8, 9, 10, 11, high - 3, high - 1, high]
    steps = ["", ", 1", ", 3", ", 0", *(() if kind == "unsigned" else (", -1", ", -3"))]
    bounds = [(low, high), (high, low), (7, 11), (11, 7), (8, 8), (low + 1, low), (high, 9)]
    text = f".decl n(k: symbol, x: {kind})\n.decl b(k: symbol, x: {kind}, y: {kind})\n"
    text += f".decl r(s: number, x: {kind}, a: {kind}, z: {kind})\n"
    text += "".join(f"r({i}, x, a, z) :- n(k, x), b(k, a, z), x = range(a, z{step}).\n" for i, step in enumerate(steps))
    program = tmp_path / "program.dl"
    program.write_text(text)
    assert "generate" not in explain_plan(program, (), (), None)

    def within(x: int, a: int, z: int, step: str) -> bool:
        by = int(step[2:]) if step else 1 if a <= z else -1
        return x == a != z if by == 0 else x in range(a, z, by)

    expected = {(i, x, a, z) for i, step in enumerate(steps) for x in values for a, z in bounds if within(x, a, z, step)}
    facts = {"n": [("k", x) for x in values], "b": [("k", *pair) for pair in bounds]}
    assert set(dlog.run(text, facts=facts)["r"]) == expected


def test_values_of_a_long_range_are_not_made_to_be_looked_up(tmp_path: Path) -> None:
    program = tmp_path / "program.dl"
    program.write_text(".decl n(x: number)\n.decl r(x: number)\nr(x) :- n(x), x = range(0, 1000000000000).\n")
    assert "generate" not in explain_plan(program, (), (), None)
    declared = ".decl n(x: number, y: number)\n.decl m(x: number)\n.decl r(x: number)\n"
    program.write_text(f"{declared}r(x) :- n(a, b), x = range(a, b), m(x).\n")
    plan = explain_plan(program, (), (), None)
    assert plan.index("scan n(a, b)") < plan.index("generate x = range(a, b)") < plan.index("if m(x)")


COPIES = """.decl bag(x: number, times: number)
.decl copy(x: number, number: number)
copy(x, i) :- bag(x, n), n > 0, i = range(0, n).
.decl often(x: number, times: number)
often(x, c) :- bag(x, _), c = count : { copy(x, _) }.
"""


@examples(20)
@given(st.dictionaries(st.integers(0, 5), st.integers(-3, 6), max_size=6))
def test_copies_of_rows_are_numbered(bag: dict[int, int]) -> None:
    """As often as a collection has a row that is repeated, a relation has the row with a number of its own."""
    flow = Dataflow()
    rows = flow.input(x=int, times=int)
    repeated = rows.repeat_row("times").map("x").capture()
    rows.insert([*bag.items()])
    flow.commit()
    result = dlog.run(COPIES, {"bag": [*bag.items()]})
    assert set(result["copy"]) == {(x, i) for (x,), count in repeated.counts().items() for i in range(count)}
    assert dict(result["often"]) == {x: max(times, 0) for x, times in bag.items()}
    assert in_a_session(COPIES, {"bag": [*bag.items()]})["copy"] == set(result["copy"])


@pytest.mark.parametrize(
    ("call", "note"),
    [
        ("repeat(x)", "number the copies, `i = range(0, n)`"),
        ("repeat_row(x)", "number the copies"),
        ("generate_series(1, x)", "`i = range(1, n + 1)`"),
        ("unnest(x)", "json_each"),
    ],
)
def test_table_functions_of_other_languages_lead_to_those_there_are(call: str, note: str) -> None:
    with pytest.raises(dlog.DlogError) as refused:
        dlog.run(f".decl n(x: number)\n.decl p(x: number)\np(y) :- n(x), y = {call}.\n.output p")
    (mistake,) = refused.value.diagnostics
    assert mistake.code == "unknown-functor" and note in mistake.notes[0]
