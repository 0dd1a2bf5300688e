"""Columns that determine rows: which are found, that they do in relations that were computed, and that no row comes twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from dlog.pipeline import explain_plan, explain_workers
from tests.engine.runtime.runs import executor_of, load, rows_of
from tests.examples import examples
from tests.naive import evaluate
from tests.shards import run_sharded

Row = tuple[Any, ...]
Facts = Mapping[str, Iterable[Row]]

INPUTS = """.decl e(x: number, y: number)
.input e
.decl v(x: number)
.input v
.decl one(x: number)
.input one
"""
EDGES = [(0, 1), (0, 2), (1, 2), (2, 2), (3, 1)]
GIVEN: dict[str, list[Row]] = {"e": [*EDGES], "v": [(x,) for x in range(4)], "one": [(7,)]}


def program(*rules: str) -> str:
    """Relations of two numbers, r0, r1 ..., each with the rules of one line."""
    declared = "".join(f".decl r{i}(x: number, y: number)\n.output r{i}\n" for i in range(len(rules)))
    return INPUTS + declared + "\n".join(rules) + "\n"


def keys_of(text: str, facts: Facts) -> dict[str, list[tuple[int, ...]]]:
    executor = executor_of(text, facts)
    executor.run()
    found: dict[str, list[tuple[int, ...]]] = {}
    for scope in executor.scopes:
        for relation, key in scope.keys:
            found.setdefault(relation, []).append(key)
    return found


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        ("r0(x, c) :- v(x), c = count : { e(x, _) }.", (0,)),
        ("r0(c, x) :- v(x), c = count : { e(x, _) }.", (1,)),
        ("r0(x, x + 1) :- v(x).", (0,)),
        ("r0(x, y) :- v(x), one(y).", (0,)),
        ("r0(x, y + z) :- v(x), one(y), one(z).", (0,)),
        ("r0(n, m) :- n = count : { v(_) }, m = count : { e(_, _) }.", ()),
        ("r0(3, n) :- one(n).", ()),
        ("r0(x, y) :- e(x, y).", (0, 1)),
        ("r0(x, y) :- v(x), v(y).", (0, 1)),
        ("r0(x, x + y) :- e(x, y).", None),
        ("r0(x, y) :- e(x, z), e(z, y).", None),
        ("r0(x, x) :- v(x).\nr0(x, x + 1) :- v(x).", None),
        ("r0(x, y) :- e(x, y).\nr0(x, z) :- r0(x, y), e(y, z).", None),
    ],
)
def test_the_least_columns_that_determine_a_match_are_a_key(rule: str, key: tuple[int, ...] | None) -> None:
    assert keys_of(program(rule), GIVEN) == ({} if key is None else {"r0": [key]})


def test_keys_lead_to_keys() -> None:
    text = program(
        "r0(x, c) :- v(x), c = count : { e(x, _) }.",
        "r1(x, a + b) :- r0(x, a), one(b).",
        "r2(x, a * b) :- r0(x, a), r1(x, b).",
        "r3(b, x) :- r2(x, b).",
        "r4(x, a + b) :- r3(a, x), r3(b, x).",
    )
    assert keys_of(text, GIVEN) == {"r0": [(0,)], "r1": [(0,)], "r2": [(0,)], "r3": [(1,)], "r4": [(0,)]}


def test_a_relation_of_two_rows_is_no_constant() -> None:
    assert keys_of(program("r0(x, y) :- v(x), one(y)."), {**GIVEN, "one": [(7,), (8,)]}) == {"r0": [(0, 1)]}


def test_a_lattice_has_one_row_for_each_key() -> None:
    text = program("r0(x, d) :- v(x), d = min c : { one(x), c = 0 ; r0(y, b), e(y, x), c = b + 1 }.", "r1(x, -d) :- r0(x, d).")
    assert keys_of(text, {**GIVEN, "one": [(0,)]}) == {"r0": [(0,)], "r1": [(0,)]}


def test_rows_from_elsewhere_are_not_what_the_rule_says() -> None:
    text = program("r0(x, x + 1) :- v(x).", "r1(x, -y) :- r0(x, y).")
    assert keys_of(text.replace(".output r0", ".input r0"), {**GIVEN, "r0": [(0, 5), (0, 6)]}) == {}
    executor = executor_of(text, {**GIVEN, "r0": [(0, 5), (0, 6)]})
    executor.run()
    assert sorted(rows_of(executor, "r1")) == [(0, -6), (0, -5), (0, -1), (1, -2), (2, -3), (3, -4)]


RULES = (
    "r{i}(x, c) :- v(x), c = count : {{ e(x, _) }}.",
    "r{i}(x, c) :- v(x), c = sum y : {{ r{j}(x, y) }}.",
    "r{i}(x, a + b) :- r{j}(x, a), r{k}(x, b).",
    "r{i}(a, x) :- r{j}(x, a).",
    "r{i}(x, a) :- r{j}(x, a), e(x, _).",
    "r{i}(y, a) :- r{j}(x, a), e(x, y).",
    "r{i}(x, a * b) :- r{j}(x, a), one(b).",
    "r{i}(x, b) :- r{j}(x, a), r{k}(a, b).",
    "r{i}(x, a % 3) :- r{j}(x, a), !r{k}(a, x).",
    "r{i}(x, y) :- e(x, y).",
)


@st.composite
def chains(draw: st.DrawFn) -> tuple[str, dict[str, list[Row]]]:
    """Relations each of which has one rule over those before it, and rows."""
    rules = [draw(st.sampled_from((RULES[0], RULES[-1]))).format(i=0)]
    for i in range(1, draw(st.integers(2, 6))):
        before = st.integers(0, i - 1)
        rules.append(draw(st.sampled_from(RULES)).format(i=i, j=draw(before), k=draw(before)))
    number = st.integers(0, 3)
    edges = draw(st.lists(st.tuples(number, number), max_size=8))
    ones = draw(st.lists(st.tuples(number), max_size=2))
    return program(*rules), {"e": edges, "v": draw(st.lists(st.tuples(number), max_size=4)), "one": ones}


@examples(150)
@given(chains())
def test_keys_determine_the_rows_that_are_computed(case: tuple[str, dict[str, list[Row]]]) -> None:
    text, facts = case
    expected = evaluate(parse(Source(text)), facts, 10**6)
    executor = executor_of(text, facts)
    executor.run()
    for name in (r for r in executor.program.relations if r.startswith("r")):
        rows = rows_of(executor, name)
        assert len(rows) == len(set(rows)) and set(rows) == expected[name]
    for relation, key in (found for scope in executor.scopes for found in scope.keys):
        rows = rows_of(executor, relation)
        assert len({tuple(row[c] for c in key) for row in rows}) == len(rows), (relation, key)


@examples(60)
@given(chains(), st.sampled_from((0, 10**6)))
def test_no_row_comes_twice_on_several_workers(case: tuple[str, dict[str, list[Row]]], everywhere: int) -> None:
    text, facts = case
    expected = evaluate(parse(Source(text)), facts, 10**6)
    found = run_sharded(text, facts, 3, everywhere)
    assert {name: found[name] for name in found if name.startswith("r")} == {n: expected[n] for n in found if n.startswith("r")}


def test_a_plan_for_fewer_rows_says_nothing_of_more() -> None:
    executor = executor_of(program("r0(x, y) :- v(x), one(y).", "r1(x, x) :- r0(x, _)."), {"v": GIVEN["v"]})
    executor.explain()
    load(executor, "one", [(7,), (8,)])
    executor.run()
    assert sorted(rows_of(executor, "r1")) == [(x, x) for x in range(4)]


def test_the_plan_that_is_shown_knows_keys_of_earlier_strata(tmp_path: Path) -> None:
    text = program("r0(x, c) :- v(x), c = count : { e(x, _) }.", "r1(x, a * 2) :- r0(x, a).")
    (tmp_path / "p.dl").write_text(text)
    for show in (explain_plan, explain_workers):
        shown = show(tmp_path / "p.dl", (), (), None)
        assert [line.count("no row twice") for line in shown.splitlines() if "insert r" in line] == [1, 1], shown
