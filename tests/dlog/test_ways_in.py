"""Whichever way a program comes in, passes rewrite it before it is executed, and every relation of it can be read."""

import subprocess
import sys

import pytest

import dlog

CLOSURE = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.decl far(x: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
far(y) :- path(0, y).
"""
NODES = 60
CHAIN = [(i, i + 1) for i in range(NODES)]
PATHS = {(i, j) for i in range(NODES + 1) for j in range(i + 1, NODES + 1)}
LOOKED_UP = " path[0]"
"""Is in a plan that goes on from a path with a path."""


def test_a_run_that_shows_all_derives_each_path_once() -> None:
    result = dlog.run(CLOSURE, {"edge": CHAIN}, threads=1)
    assert set(result["path"]) == PATHS and set(result["far"]) == {(n,) for n in range(1, NODES + 1)}
    assert set(result) == {"edge", "path", "far"}
    profile = result._executor.profile
    assert sum(rule.derived for rule in profile if rule.text.startswith("path")) <= 2 * len(PATHS)


def test_a_session_follows_paths_step_by_step() -> None:
    with dlog.session(CLOSURE, {"edge": CHAIN}) as s:
        assert LOOKED_UP not in s.explain()
        assert set(s) == {"edge", "path", "far"} and set(s["path"]) == PATHS
        s.remove("edge", (0, 1))
        round = s.commit()
        assert {row for row, diff in round.changes("path")} == {row for row in PATHS if row[0] == 0}


def test_relations_that_passes_made_are_not_shown() -> None:
    program = CLOSURE + ".decl road(x: number, y: number)\npath(x, y) :- road(y, x).\n"
    with dlog.session(program, {"edge": [(1, 2)], "road": [(3, 2)]}) as s:
        assert "path{step}" in s.explain()
        assert set(s) == {"edge", "path", "far", "road"} and set(s["path"]) == {(1, 2), (2, 3), (1, 3)}
        with pytest.raises(dlog.DlogError, match="unknown relation"):
            s["path{step}"]
    assert set(dlog.run(program, {"edge": [(1, 2)]})) == {"edge", "path", "far", "road"}


@pytest.mark.slow
def test_the_plan_that_is_shown_is_the_one_of_sessions(tmp_path) -> None:
    program = tmp_path / "closure.dl"
    program.write_text(CLOSURE)
    command = [sys.executable, "-m", "dlog", "plan", "--rounds", str(program)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "changes path(x, y)" in shown and LOOKED_UP not in shown


@pytest.mark.parametrize("edges", [[(2, 3), (3, 4)], []])
def test_rows_given_of_a_relation_with_rules_are_steps_too(edges) -> None:
    result = dlog.run(CLOSURE, {"path": [(0, 1), (1, 2)], "edge": edges})
    last = 4 if edges else 2
    assert set(result["path"]) == {(i, j) for i in range(last + 1) for j in range(i + 1, last + 1)}


def test_rows_that_came_before_a_relation_had_rules_are_steps_too(tmp_path) -> None:
    declared, rules = CLOSURE.split("path(x, y) :-", 1)
    with dlog.session(declared, state=tmp_path / "s") as s:
        s.insert("path", [(0, 1), (1, 2)])
        s.insert("edge", [(2, 3)])
        s.commit()
        s.add_rules("path(x, y) :-" + rules)
        everything = {(i, j) for i in range(4) for j in range(i + 1, 4)}
        assert set(s["path"]) == everything
        s.insert("edge", (3, 4))
        s.commit()
        everything |= {(i, 4) for i in range(4)}
        assert set(s["path"]) == everything
    with dlog.session(None, state=tmp_path / "s") as s:
        s.insert("edge", (4, 5))
        s.commit()
        assert set(s["path"]) == everything | {(i, 5) for i in range(5)}


def test_facts_of_a_relation_with_rules_are_steps_of_a_session_that_goes_on(tmp_path) -> None:
    program = f"{CLOSURE}path(0, 1). path(1, 2).\n"
    for last in range(2, 5):
        with dlog.session(program, state=tmp_path / "s") as s:
            s.insert("edge", (last, last + 1))
            s.commit()
            assert set(s["path"]) == {(i, j) for i in range(last + 2) for j in range(i + 1, last + 2)}


def test_rules_that_come_and_go_leave_a_closure_as_it_is() -> None:
    with dlog.session(CLOSURE, {"edge": CHAIN}) as s:
        s.add_rules(".decl near(x: number) near(x) :- path(x, 7).\n.decl to(x: number) to(x) :- path(x, 9).")
        assert "kept as it was when the rules changed: path" in s.explain()
        assert set(s["near"]) == {(i,) for i in range(7)}
        s.drop_rules("path(x, z) :- path(x, y), path(y, z).")
        assert set(s["path"]) == set(CHAIN)
        s.add_rules("path(x, z) :- path(x, y), path(y, z).")
        assert set(s["path"]) == PATHS and LOOKED_UP not in s.explain()


def test_proofs_are_of_the_rules_that_were_written() -> None:
    with dlog.session(CLOSURE, {"edge": CHAIN}) as s:
        proof = s.why("path", (3, 7))
        assert proof.rule == "path(x, z) :- path(x, y), path(y, z)."
        assert str(proof).count("fact") == 4
        assert "path(x, z) :- path(x, y), path(y, z)." in str(s.why_not("path", (7, 3)))
