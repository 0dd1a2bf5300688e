"""`print(...)` in rules: a line on standard error for each match of the body."""

from __future__ import annotations

from pathlib import Path

import pytest

import dlog
from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import compile_program, explain_rounds
from tests.dlog import command
from tests.shards import run_sharded

EDGES = ".decl e(x: number, y: number)\n.decl p(x: number, y: number)\n"
JOINED = EDGES + 'p(x, z) :- e(x, y), print("from", x, "by", y), e(y, z), x != z.\n'
CLOSURE = EDGES + "p(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z), print(x, z).\n"
CHAIN = [(1, 2), (2, 3), (3, 4)]


def lines(captured: pytest.CaptureFixture[str]) -> list[str]:
    return sorted(captured.readouterr().err.splitlines())


def test_a_line_is_written_for_each_match_of_all_conditions(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(dlog.run_text(JOINED, {"e": [*CHAIN, (2, 1)]})["p"]) == {(1, 3), (2, 4)}
    assert lines(capsys) == ["from 1 by 2", "from 2 by 3"]


def test_recursion_prints_each_derivation(capsys: pytest.CaptureFixture[str]) -> None:
    dlog.run_text(CLOSURE, {"e": [*CHAIN, (2, 4)]})
    assert lines(capsys) == ["1 3", "1 4", "1 4", "2 4"]


def test_values_of_all_types_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    text = """
    .type Pair = [x: number, s: symbol]
    .type Tree = Leaf {} | Node {x: number, t: Tree}
    .decl v(n: number, u: unsigned, f: float, s: symbol, p: Pair, t: Tree)
    v(-1, 18446744073709551615, 0.1, "a b", [1, "x"], $Node(1, $Leaf)). v(0, 0, -0.0, "", nil, $Leaf).
    .decl r(n: number)
    r(n) :- v(n, u, f, s, p, t), print(n, u, f, s, p, t).
    r(n) :- v(n, _, _, _, _, _), n = 0, print().
    """
    dlog.run_text(text, {})
    assert lines(capsys) == ["", '-1 18446744073709551615 0.1 a b [1, "x"] $Node(1, $Leaf)', "0 0 -0.0  nil $Leaf"]


def test_what_nobody_else_reads_is_printed_and_not_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.dl"
    path.write_text(CLOSURE + "e(1, 2). e(2, 3).\n")
    found = command.dlog("run", path, cwd=tmp_path)
    assert (found.code, found.out, found.err) == (0, "", "1 3\n")


def test_a_session_prints_what_is_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with dlog.session(CLOSURE) as session:
        session.insert("e", CHAIN)
        session.commit()
        assert lines(capsys) == ["1 3", "1 4", "2 4"]
        session.insert("e", [(4, 5)])
        session.commit()
        assert lines(capsys) == ["1 5", "2 5", "3 5"]
        session.remove("e", [(4, 5)])
        session.commit()
        assert lines(capsys) == []
        assert set(session["p"]) == {(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)}
        session.query("?- p(1, y), print(y), y > 3.")
        assert lines(capsys) == ["4"]
        assert "e(2, 3)" in str(session.why("p", (1, 3)))
    path = tmp_path / "p.dl"
    path.write_text(CLOSURE)
    assert "`print` writes what all rules derive" in explain_rounds(path, (), ())


def test_one_of_several_workers_prints(capsys: pytest.CaptureFixture[str]) -> None:
    run_sharded(CLOSURE, {"e": CHAIN}, workers=3)
    assert lines(capsys) == ["1 3", "1 4", "2 4"]


def test_print_is_refused_on_spark() -> None:
    from dlog.engine.plan.exchange.numbering import refuse_printing

    with pytest.raises(DlogError, match="not supported on Spark: `print`"):
        refuse_printing(compile_program(CLOSURE))
    refuse_printing(compile_program(EDGES + "p(x, y) :- e(x, y).\n"))


def test_a_relation_may_have_this_name(capsys: pytest.CaptureFixture[str]) -> None:
    text = ".decl print(x: number)\nprint(1).\n.decl r(x: number)\nr(x) :- print(x).\n"
    assert set(dlog.run_text(text, {})["r"]) == {(1,)} and lines(capsys) == []


def test_a_component_prints(capsys: pytest.CaptureFixture[str]) -> None:
    text = ".comp C { .decl q(x: number)\nq(1).\n.decl r(x: number)\nr(x) :- q(x), (print(x) ; print(x + 1)). }\n.init c = C\n"
    dlog.run_text(text, {})
    assert lines(capsys) == ["1", "2"]


def test_controls_and_line_ends_in_strings_are_shown_as_signs(capsys: pytest.CaptureFixture[str]) -> None:
    text = ".type P = [s: symbol]\n.decl s(t: symbol)\n.decl r(t: symbol)\nr(t) :- s(t), print(t, [t])."
    assert dlog.run_text(text, {"s": [("\x1b[2J\tx\nerror: forged",)]})["r"]
    written = capsys.readouterr().err
    assert written.startswith("\u241b[2J\tx\u2424error: forged [") and written.count("\n") == 1 and "\x1b" not in written
