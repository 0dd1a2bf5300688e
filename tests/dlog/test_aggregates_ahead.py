"""Aggregates in recursive rules whose variables only the recursion binds: computed for the bindings as they come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dlog
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from dlog.pipeline import explain_rounds
from tests.naive import evaluate
from tests.shards import run_sharded

DECLARED = ".decl point(x: number, y: number)\n.decl out(r: number, z: number)\nout(0, 0).\n"
COUNTED = DECLARED + "out(r + 1, z) :- r < 30, out(r, _), z = count : { point(x, y), x <= r + 1, x >= -r - 1, y <= r + 1 }.\n"
POINTS = [(0, 0), (1, 1), (2, 2), (-1, 1), (-1, -1), (3, -3)]


def test_it_is_computed_for_each_binding_and_has_a_value_where_nothing_matches() -> None:
    found = set(dlog.run_text(COUNTED, {"point": POINTS})["out"])
    expected = {(r + 1, sum(-r - 1 <= x <= r + 1 and y <= r + 1 for x, y in POINTS)) for r in range(30)}
    assert found == expected | {(0, 0)}
    assert set(dlog.run_text(COUNTED, {"point": []})["out"]) == {(r, 0) for r in range(31)}


@pytest.mark.parametrize(
    "rule",
    [
        "out(r + 1, z) :- r < 9, out(r, _), z = min x : { point(x, y), y > r }.",
        "out(r + 1, z) :- r < 9, out(r, n), z = n + max x : { point(x, y), y > r - 3 ; point(y, x), y = r }.",
        "out(r + 1, z) :- r < 9, out(r, _), z = sum x : { point(x, _), x < r }.",
        "out(r + 1, z) :- r < 9, out(r, _), to_float(z) > mean x : { point(x, y), x < r }, z = range(0, 3).",
        "out(r + 1, z) :- r < 9, out(r, _), z = count : { point(x, _), !point(_, r), x > sum y : { point(y, _), y < r } }.",
    ],
)
def test_every_aggregate_equals_naive_evaluation(rule: str) -> None:
    text, facts = DECLARED + rule, {"point": [(x, (x * 7) % 5) for x in range(-4, 9)]}
    expected = evaluate(parse(Source(text)), facts)["out"]
    assert len(expected) > 1
    assert set(dlog.run_text(text, facts)["out"]) == expected
    assert run_sharded(text, facts, workers=3)["out"] == expected


def test_many_bindings_come_at_once() -> None:
    text = ".decl n(x: number)\n.decl r(x: number, c: number)\nr(x, x) :- n(x).\n"
    text += "r(x, c) :- r(x, y), y > 0, c = count : { n(z), z * 2 < y }.\n"
    expected, rows = set(), {(x, x) for x in range(3000)}
    while rows:
        expected |= rows
        rows = {(x, (y + 1) // 2) for x, y in rows if y > 0} - expected
    assert set(dlog.run_text(text, {"n": [(x,) for x in range(3000)]})["r"]) == expected


def test_a_users_aggregate_is_computed_ahead() -> None:
    text = DECLARED + ".functor add(state: number, x: number): number\n"
    text += "out(r + 1, z) :- r < 3, out(r, n), z = @@add x : n, { point(x, y), y > r }.\n"
    found = dlog.run(text, facts={"point": [(1, 1), (2, 2), (4, 1)]}, functors={"add": lambda state, x: state * 10 + x})
    assert set(found["out"]) == {(0, 0), (1, 124), (2, 1242), (3, 1242)}


def test_a_session_computes_its_stratum_anew(tmp_path: Path) -> None:
    with dlog.session(COUNTED) as session:
        for turn in range(3):
            for point in POINTS:
                (session.remove if turn == 1 else session.insert)("point", [point])
                session.commit()
                given: dict[str, Any] = {"point": set(session["point"])}
                assert set(session["out"]) == set(dlog.run_text(COUNTED, given)["out"])
    path = tmp_path / "p.dl"
    path.write_text(COUNTED)
    assert "only the recursion says for what an aggregate is computed" in explain_rounds(path, (), ())


def test_a_mistake_within_is_told_at_its_rule() -> None:
    text = DECLARED + "out(r + 1, z) :- r < 3, out(r, _), z = sum 1 / y : { point(_, y), y < r }.\n"
    with pytest.raises(DlogError, match=r"(?s)division by zero.*while evaluating this rule") as raised:
        dlog.run_text(text, {"point": [(0, 0)]})
    assert "out(r + 1, z)" in str(raised.value)
