"""Recursion through `count` and `sum`, as users meet it: what it gives, what stops it, and what they see of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dlog
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from dlog.pipeline import explain_rounds
from tests.naive import evaluate

SHARES = """
.decl owns(x: number, y: number, s: number)
.decl controls(x: number, y: number)
controls(x, x) :- owns(x, _, _).
controls(x, z) :- owns(x, _, _), owns(_, z, _), sum s : { controls(x, y), owns(y, z, s) } > 50.
"""
CORE = """
.decl edge(x: number, y: number)
.decl removed(x: number)
removed(v) :- edge(v, _), count : { edge(v, u), !removed(u) } < 2.
"""
SHOWN = CORE + ".output removed\n"
PATH = [(i, j) for i in range(5) for j in (i - 1, i + 1) if 0 <= j < 5]
RING = [*PATH, (0, 4), (4, 0)]
Run = Callable[[str, dict[str, Any]], dict[str, set[Any]]]


def at_once(text: str, facts: dict[str, Any]) -> dict[str, set[Any]]:
    return {name: set(rows) for name, rows in dlog.run(text, facts=facts).items()}


def in_a_session(text: str, facts: dict[str, Any]) -> dict[str, set[Any]]:
    with dlog.session(text) as session:
        session.commit()
        for name, rows in facts.items():
            session.insert(name, rows)
        session.commit()
        return {name: set(session[name]) for name in session}


BOTH = pytest.mark.parametrize("run", [at_once, in_a_session])


@BOTH
def test_helpers_do_not_show(run: Run) -> None:
    assert run(CORE, {"edge": RING}).keys() == {"edge", "removed"}


@BOTH
@pytest.mark.parametrize(
    "bound",
    [
        "> 9223372036854775807",
        ">= 9223372036854775807",
        "> 9223372036854775806",
        "> -9223372036854775807 - 1",
        ">= -9223372036854775807 - 1",
        ">= 0",
        "> 0 - 1",
        "> 0",
    ],
)
def test_bounds_at_the_ends_of_numbers(run: Run, bound: str) -> None:
    text = ".decl e(x: number, y: number)\n.decl p(x: number)\np(x) :- e(x, x).\n"
    text += f"p(x) :- e(x, _), count : {{ e(x, y), p(y) }} {bound}.\n"
    facts = {"e": [(1, 1), (2, 1), (3, 2), (4, 4), (5, 6)]}
    assert run(text, facts)["p"] == evaluate(parse(Source(text)), facts)["p"]


@BOTH
@pytest.mark.parametrize(
    "bound", ["< 9223372036854775807", "<= 9223372036854775807", "< 0", "<= -1", "< -9223372036854775808"]
)
def test_upper_bounds_at_the_ends_of_numbers(run: Run, bound: str) -> None:
    text = CORE.replace("< 2", bound)
    facts = {"edge": PATH}
    assert run(text, facts)["removed"] == evaluate(parse(Source(text)), facts)["removed"]


@BOTH
def test_weights_may_be_large_where_bounds_are_small(run: Run) -> None:
    rows = [(1, y, 2**62) for y in range(2, 40)] + [(y, 99, 2**62) for y in range(2, 40)]
    assert (1, 99) in run(SHARES, {"owns": rows})["controls"]


@BOTH
def test_a_negative_value_stops_the_run(run: Run) -> None:
    with pytest.raises(DlogError, match="negative value in a `sum`") as caught:
        run(SHARES, {"owns": [(1, 2, 60), (2, 3, -1)]})
    assert "controls(x, z) :- owns" in str(caught.value)


@BOTH
def test_a_sum_that_is_too_large_stops_the_run(run: Run) -> None:
    rows = [(1, y, 2**62) for y in range(2, 9)] + [(y, 99, 2**60) for y in range(2, 9)]
    with pytest.raises(DlogError, match="is greater than"):
        run(SHARES.replace("> 50", f"> {2**62 - 1}"), {"owns": rows})


@BOTH
def test_unsigned_values_are_never_negative(run: Run) -> None:
    text = SHARES.replace("s: number", "s: unsigned").replace("> 50", "> 50u")
    rows = [(1, 2, 2**64 - 1), (2, 3, 2**63), (3, 4, 50), (3, 5, 51)]
    assert {z for x, z in run(text, {"owns": rows})["controls"] if x == 1} == {1, 2, 3, 5}


def test_a_failed_commit_leaves_the_session_at_its_last_round() -> None:
    with dlog.session(SHARES, {"owns": [(1, 2, 60)]}) as session:
        session.insert("owns", [(2, 3, -1)])
        with pytest.raises(DlogError):
            session.commit()
        session.rollback()
        assert set(session["controls"]) == {(1, 1), (1, 2)}
        session.insert("owns", [(2, 3, 51)])
        session.commit()
        assert (1, 3) in set(session["controls"])


def test_what_supports_only_itself_goes() -> None:
    with dlog.session(CORE, {"edge": RING}) as session:
        assert not set(session["removed"])
        session.remove("edge", [(0, 4), (4, 0)])
        session.commit()
        assert {x for (x,) in session["removed"]} == {0, 1, 2, 3, 4}
        assert sorted(session.changes("removed")) == [((x,), 1) for x in range(5)]
        session.insert("edge", [(0, 4), (4, 0)])
        session.commit()
        assert not set(session["removed"])


def test_it_is_maintained_and_the_plan_says_how() -> None:
    with dlog.session(CORE, {"edge": RING}) as session:
        text = session.explain()
    assert "anew" not in text
    assert "weigh removed%1(v, " in text


def test_proofs_name_what_was_counted_or_is_missing() -> None:
    with dlog.session(SHARES, {"owns": [(1, 2, 60), (1, 3, 30), (2, 3, 30)]}) as session:
        proof = session.why("controls", (1, 3))
        assert {child.row for child in proof.children} >= {(1, 1), (1, 2)}
    with dlog.session(CORE, {"edge": PATH}) as session:
        proof = session.why("removed", (1,))
        assert (0,) in {child.row for child in proof.children if child.relation == "removed"}


def test_rules_may_come_and_go(tmp_path: Any) -> None:
    with dlog.session(".decl edge(x: number, y: number)\n", {"edge": PATH}) as session:
        session.add_rules(CORE.split("\n", 2)[2])
        assert len(session["removed"]) == 5
        session.insert("edge", [(0, 4), (4, 0)])
        session.commit()
        assert not len(session["removed"])


def test_a_state_goes_on(tmp_path: Any) -> None:
    with dlog.session(CORE, state=tmp_path / "state") as session:
        session.insert("edge", RING)
        session.commit()
    with dlog.session(CORE, state=tmp_path / "state") as session:
        session.remove("edge", [(0, 4)])
        session.commit()
        assert {x for (x,) in session["removed"]} == {0, 1, 2, 3, 4}


@pytest.mark.slow
def test_many_of_one_shape_have_bounds_of_their_own() -> None:
    edges = [(x, y) for x in range(12) for y in range(12) if x != y and (x * y) % 5 < 3]
    one = ".decl out{k}(x: number)\nout{k}(x) :- e(x, _), count : {{ e(x, y), !out{k}(y) }} < {k}.\n"
    two = ".decl r{k}(x: number)\nr{k}({k}).\nr{k}(x) :- e(x, _), count : {{ r{k}(y), e(x, y) }} >= {k} / 2.\n"
    declared = ".decl e(x: number, y: number)\n"
    texts = [part.format(k=k) for k in range(1, 12) for part in (one, two)]
    with dlog.session(declared + "".join(texts)) as session:
        session.insert("e", edges)
        session.commit()
        for step in range(3):
            gone = edges[step::7]
            session.remove("e", gone)
            session.commit()
            edges = [e for e in edges if e not in gone]
            for k in range(1, 12):
                for name, part in ((f"out{k}", one), (f"r{k}", two)):
                    with dlog.session(declared + part.format(k=k)) as alone:
                        alone.insert("e", edges)
                        alone.commit()
                        assert set(session[name]) == set(alone[name]), name


def test_plans_over_rounds_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "core.dl"
    path.write_text(SHOWN)
    shown = explain_rounds(path, (), ())
    assert "weigh removed%1(" in shown and "computed anew" not in shown
