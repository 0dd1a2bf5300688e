"""Equivalence relations in runs and sessions: what they hold, what they cost, and that they hold it on every engine."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import dlog
from dlog.memory import peak_bytes
from dlog.pipeline import explain_plan, explain_rounds
from tests.conftest import RunText
from tests.dlog.command import dlog as command
from tests.engines import EVERY_ENGINE

Pairs = set[tuple[Any, Any]]

SAME = ".decl e(x: number, y: number)\n.decl same(x: number, y: number) eqrel\nsame(x, y) :- e(x, y).\n"


def classes_of(pairs: Iterable[tuple[Any, Any]]) -> Pairs:
    """All pairs that follow."""
    components = nx.connected_components(nx.Graph(list(pairs)))
    return {pair for found in components for pair in itertools.product(found, repeat=2)}


# ------------------------------------------------------------------------------------------------------------------- runs


@EVERY_ENGINE
def test_it_is_reflexive_over_its_values_symmetric_and_transitive(run_text: RunText) -> None:
    text = SAME + ".decl q(x: number) q(x) :- same(2, x). .decl no(x: number) no(x) :- e(x, _), !same(x, 1).\n"
    found = run_text(text, {"e": [(1, 2), (2, 3), (5, 4), (6, 6)]}, threads=2)
    assert found["same"] == {(x, y) for x in (1, 2, 3) for y in (1, 2, 3)} | {(4, 4), (4, 5), (5, 4), (5, 5), (6, 6)}
    assert (found["q"], found["no"]) == ({(1,), (2,), (3,)}, {(5,), (6,)})


@EVERY_ENGINE
@pytest.mark.parametrize(
    ("type_name", "values"),
    [
        ("symbol", ["a", "b", "c", "d"]),
        ("unsigned", [0, 2**64 - 1, 5, 2**63]),
        ("float", [0.25, -1e300, 1.5, float("inf")]),
        ("P", [None, (1, "x"), (1, "y"), (2, "x")]),
    ],
)
def test_values_of_every_type(run_text: RunText, type_name: str, values: list[Any]) -> None:
    a, b, c, d = values
    text = f""".type P = [n: number, s: symbol]
.decl e(x: {type_name}, y: {type_name})
.decl same(x: {type_name}, y: {type_name}) eqrel
same(x, y) :- e(x, y).
"""
    found = run_text(text, {"e": [(a, b), (d, c), (c, a)], "same": []}, threads=2)
    assert sorted(map(repr, found["same"])) == sorted(repr(pair) for pair in itertools.product(values, repeat=2))


@EVERY_ENGINE
def test_aggregates_count_pairs(run_text: RunText) -> None:
    text = SAME + """.decl n(n: number) n(n) :- n = count : { same(_, _) }.
.decl size(x: number, n: number) size(x, n) :- same(x, x), n = count : { same(x, _) }.
.decl least(x: number, y: number) least(x, y) :- same(x, x), y = min z : { same(x, z) }.
.decl apart(n: number) apart(n) :- n = count : { e(x, _), !same(x, 1) }.
"""
    found = run_text(text, {"e": [(1, 2), (2, 3), (7, 8)]}, threads=2)
    assert (found["n"], found["apart"]) == ({(13,)}, {(1,)})
    assert found["size"] == {(1, 3), (2, 3), (3, 3), (7, 2), (8, 2)}
    assert found["least"] == {(1, 1), (2, 1), (3, 1), (7, 7), (8, 7)}


@EVERY_ENGINE
def test_facts_and_rules_make_one_relation(run_text: RunText) -> None:
    text = SAME + ".input same\nsame(3, 4).\nsame(9, 9)."
    found = run_text(text, {"e": [(1, 2)], "same": [(2, 3)]}, threads=2)
    assert found["same"] == classes_of([(1, 2), (2, 3), (3, 4), (9, 9)])


CONGRUENCE = """.decl f(y: number, a: number, b: number)
.decl given(x: number, y: number)
.decl same(x: number, y: number) eqrel
same(x, y) :- given(x, y).
same(x, x) :- f(x, _, _) ; f(_, x, _) ; f(_, _, x).
same(y, v) :- f(y, a, b), f(v, c, d), same(a, c), same(b, d).
"""


def congruence(terms: list[tuple[int, int, int]], given: Pairs) -> Pairs:
    """By repetition."""
    found = classes_of([*given, *((x, x) for term in terms for x in term)])
    while True:
        more = {(y, v) for y, a, b in terms for v, c, d in terms if (a, c) in found and (b, d) in found}
        if more <= found:
            return found
        found = classes_of(found | more)


@EVERY_ENGINE
@pytest.mark.parametrize("seed", range(3))
def test_congruence_closure(run_text: RunText, seed: int) -> None:
    chosen = random.Random(seed)
    terms = [(40 + n, chosen.randrange(40 + n), chosen.randrange(40 + n)) for n in range(60)]
    given = {(chosen.randrange(40), chosen.randrange(40)) for _ in range(25)}
    assert run_text(CONGRUENCE, {"f": terms, "given": given}, threads=2)["same"] == congruence(terms, given)


STEENSGAARD = """.decl new(v: symbol, o: symbol)
.decl assign(to: symbol, from: symbol)
.decl load(to: symbol, base: symbol)
.decl store(base: symbol, from: symbol)
.decl points(v: symbol, o: symbol)
.decl alias(x: symbol, y: symbol) eqrel
points(v, o) :- new(v, o).
points(v, o) :- points(w, o), alias(v, w).
alias(v, w) :- assign(v, w).
alias(v, o) :- load(v, base), points(base, o).
alias(o, w) :- store(base, w), points(base, o).
alias(o, p) :- points(v, o), points(v, p).
"""


@EVERY_ENGINE
def test_recursion_through_other_relations(run_text: RunText) -> None:
    facts = {
        "new": [("p", "a"), ("q", "b"), ("r", "c")],
        "assign": [("s", "p"), ("s", "q")],
        "load": [("t", "s")],
        "store": [("p", "r")],
    }
    found = run_text(STEENSGAARD, facts, threads=2)
    assert found["alias"] == classes_of([("s", "p"), ("s", "q"), ("a", "b"), ("t", "a"), ("a", "r"), ("c", "c")])
    assert found["points"] == {(v, o) for v in "pqs" for o in "ab"} | {(v, "c") for v in "tabr"}


@EVERY_ENGINE
def test_several_in_one_stratum(run_text: RunText) -> None:
    text = SAME + """.decl w(x: number, y: number)
.decl alike(x: number, y: number) eqrel
alike(x, z) :- same(x, y), w(y, z).
same(x, z) :- alike(x, y), w(z, y).
"""
    found = run_text(text, {"e": [(1, 2)], "w": [(2, 10), (4, 10), (5, 11), (4, 11)]}, threads=2)
    assert found["same"] == classes_of([(1, 2), (1, 10), (4, 10), (5, 11), (4, 11)]) == found["alike"]


# ------------------------------------------------------------------------------------------------------------------ costs

VALUES = 300_000
CHAIN = [(n, n + 1) for n in range(VALUES - 1)]


def test_a_large_class_takes_memory_for_its_values_alone() -> None:
    text = SAME + """.decl p(x: number, y: number)
.decl q(x: number) q(y) :- same(7, y).
.decl t(x: number, y: number) t(x, w) :- p(x, y), same(y, z), p(z, w).
.decl no(x: number) no(x) :- p(x, y), !same(x, y).
"""
    before = peak_bytes()
    result = dlog.run(text, {"e": CHAIN, "p": [(-1, 100), *((n, n * 100) for n in range(1, 1001))]}, threads=1)
    assert len(result["q"]) == VALUES
    assert result["t"].rows == 1_001_000
    assert set(result["no"]) == {(-1,)}
    assert "90000000000" in repr(result)
    with pytest.raises(dlog.DlogError, match="an equivalence relation of 90,000,000,000 pairs cannot be listed"):
        result["same"]
    assert peak_bytes() - before < 400 * 2**20


def test_the_size_is_printed_without_making_the_pairs(tmp_path: Path) -> None:
    (tmp_path / "e.facts").write_text("".join(f"{x}\t{y}\n" for x, y in CHAIN))
    (tmp_path / "p.dl").write_text(SAME + ".input e\n.printsize same\n")
    assert command("run", "p.dl", cwd=tmp_path).out == "same\t90000000000\n"


def test_a_large_class_that_grows_in_its_own_recursion() -> None:
    """One value after the other comes to the class, which is walked by none of them."""
    text = """.decl next(x: number, y: number)
.decl same(x: number, y: number) eqrel
same(0, 0).
same(x, y) :- same(x, 0), next(x, y).
"""
    result = dlog.run(text, {"next": [(n, n + 1) for n in range(3000)]})
    assert "9006001" in repr(result)


# --------------------------------------------------------------------------------------------------------------- sessions


def test_rounds_tell_the_pairs_that_come_and_go() -> None:
    with dlog.session(SAME + ".decl q(x: number) q(x) :- same(1, x).\n", {"e": [(1, 2), (3, 4)]}) as s:
        s.insert("e", [(2, 3)])
        joined = s.commit()
        across = {(x, y) for x in (1, 2) for y in (3, 4)}
        assert dict(joined.changes("same")) == dict.fromkeys(across | {(y, x) for x, y in across}, 1)
        assert dict(joined.changes("q")) == {(3,): 1, (4,): 1}
        s.remove("e", [(1, 2)])
        alone = s.commit()
        gone = {(1, 1), *((1, x) for x in (2, 3, 4)), *((x, 1) for x in (2, 3, 4))}
        assert dict(alone.changes("same")) == dict.fromkeys(gone, -1)
        assert set(s["same"]) == classes_of([(2, 3), (3, 4)])
        assert (s.rows("same"), set(s["q"])) == (9, set())


def test_pairs_are_inserted_where_no_rule_makes_them() -> None:
    with dlog.session(".decl same(x: symbol, y: symbol) eqrel\nsame(\"a\", \"b\").\n") as s:
        s.insert("same", [("b", "c"), ("d", "e")])
        s.commit()
        assert set(s["same"]) == classes_of(["ab", "bc", "de"])
        s.remove("same", [("a", "b")])
        s.commit()
        assert set(s["same"]) == classes_of(["bc", "de"])


def test_pairs_of_a_relation_with_rules_are_not_inserted() -> None:
    with dlog.session(SAME) as s, pytest.raises(dlog.DlogError, match="`same` follows from rules"):
        s.insert("same", [(1, 2)])


def test_recursion_through_its_own_classes() -> None:
    terms = [(10, 1, 1), (11, 2, 1), (12, 10, 3), (13, 11, 3)]
    given: Pairs = set()
    with dlog.session(CONGRUENCE, {"f": terms}) as s:
        for change in ([(1, 2)], [(3, 4)]):
            s.insert("given", change)
            given |= set(change)
            s.commit()
            assert set(s["same"]) == congruence(terms, given)
        s.remove("given", [(1, 2)])
        s.commit()
        assert set(s["same"]) == congruence(terms, {(3, 4)})


def test_questions() -> None:
    with dlog.session(SAME, {"e": [(1, 2), (2, 3), (4, 5)]}) as s:
        assert set(s.query("?- same(1, x)")) == {(1,), (2,), (3,)}
        assert set(s.query("?- same(x, y), x < y")) == {(1, 2), (1, 3), (2, 3), (4, 5)}


def test_proofs_go_from_pair_to_pair() -> None:
    with dlog.session(SAME, {"e": [(1, 2), (3, 2)]}) as s:
        assert str(s.why("same", (1, 3))).splitlines() == [
            "same(1, 3)  by same(x, z) :- same(x, y), same(y, z).",
            "|-- same(1, 2)  by same(x, y) :- e(x, y).",
            "|   `-- e(1, 2)  fact",
            "`-- same(2, 3)  by same(y, x) :- same(x, y).",
            "    `-- same(3, 2)  by same(x, y) :- e(x, y).",
            "        `-- e(3, 2)  fact",
        ]
        with pytest.raises(dlog.DlogError, match="does not hold"):
            s.why("same", (1, 4))


def test_rules_come_and_go_while_a_session_lives() -> None:
    with dlog.session(SAME, {"e": [(1, 2), (4, 5)]}) as s:
        s.add_rules("same(x, x + 1) :- e(x, _), x > 3.\n.decl q(x: number) q(x) :- same(5, x).\n")
        assert set(s["q"]) == {(4,), (5,)}
        s.add_rules("same(2, 4) :- e(1, 2).")
        assert (set(s["q"]), s.rows("same")) == ({(1,), (2,), (4,), (5,)}, 16)
        s.drop_rules("same(2, 4) :- e(1, 2).")
        assert (set(s["q"]), s.rows("same")) == ({(4,), (5,)}, 8)


def test_a_state_goes_on(tmp_path: Path) -> None:
    text = SAME + ".decl given(x: number, y: number) eqrel\n.decl q(x: number) q(x) :- same(1, x), !given(x, 3).\n"
    with dlog.session(text, state=tmp_path / "s") as s:
        s.insert("e", [(1, 2), (2, 3)])
        s.insert("given", [(3, 4)])
        s.commit()
    for _ in range(2):
        with dlog.session(text, state=tmp_path / "s") as s:
            assert set(s["same"]) == classes_of([(1, 2), (2, 3)])
            assert set(s["given"]) == classes_of([(3, 4)])
            assert set(s["q"]) == {(1,), (2,)}
    with dlog.session(text, state=tmp_path / "s") as s:
        s.remove("e", [(1, 2)])
        s.insert("given", [(4, 5)])
        s.commit()
        assert (set(s["same"]), set(s["q"])) == (classes_of([(2, 3)]), set())
        assert set(s["given"]) == classes_of([(3, 4), (4, 5)])


def test_a_state_does_not_write_the_pairs_of_large_classes(tmp_path: Path) -> None:
    chain = [(n, n + 1) for n in range(20_000)]
    text = SAME + ".decl q(x: number) q(x) :- same(7, x), x < 3.\n"
    with dlog.session(text, {"e": chain}, state=tmp_path / "s") as s:
        assert s.rows("same") == 20_001**2
    assert sum(file.stat().st_size for file in (tmp_path / "s").rglob("*") if file.is_file()) < 20 * 2**20
    with dlog.session(text, state=tmp_path / "s") as s:
        assert (s.rows("same"), set(s["q"])) == (20_001**2, {(0,), (1,), (2,)})


# ------------------------------------------------------------------------------------------------------------------ plans


def test_plans_say_what_is_united(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(SAME + ".output same\n")
    assert "same{class} has the classes of same: united, after each iteration" in explain_plan(tmp_path / "p.dl", (), (), None)


@pytest.mark.parametrize("text", [SAME, CONGRUENCE])
def test_plans_say_what_is_computed_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.dl").write_text(text)
    assert "the values of `same` are united to classes" in explain_rounds(tmp_path / "p.dl", (), ())
