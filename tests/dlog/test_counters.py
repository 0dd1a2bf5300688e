"""`autoinc()` and `$`: numbers that differ, one for each match."""

from __future__ import annotations

from pathlib import Path

import pytest

import dlog
from dlog.engine.plan.exchange.numbering import counts, refuse_for_workers
from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import compile_program, explain_rounds

ROWS = ".decl p(x: number, y: number)\np(1, 1). p(1, 2). p(2, 5). p(7, 5).\n"
NUMBERED = ROWS + ".decl r(n: number, x: number)\nr($, x) :- p(x, _).\n"


def test_each_match_has_a_number_of_its_own() -> None:
    result = dlog.run(NUMBERED)
    assert sorted(n for n, _ in result["r"]) == [0, 1, 2, 3]
    assert sorted(x for _, x in result["r"]) == [1, 1, 2, 7]


def test_the_counter_goes_on_from_rule_to_rule_and_from_stratum_to_stratum() -> None:
    rules = ".decl a(n: number)\na($) :- p(2, _). a($) :- p(2, _).\n.decl b(n: number, m: number)\nb(autoinc(), m) :- a(m).\n"
    result = dlog.run(ROWS + rules)
    assert sorted(result["a"]) == [(0,), (1,)]
    assert sorted(n for n, _ in result["b"]) == [2, 3]


def test_a_number_that_has_a_name_is_the_same_wherever_it_is_used() -> None:
    result = dlog.run(ROWS + ".decl r(n: number, m: number, x: number)\nr(n, n * 10, x) :- p(x, _), n = $.\n")
    assert sorted((n, m) for n, m, _ in result["r"]) == [(n, 10 * n) for n in range(4)]


def test_two_counters_of_one_rule_give_different_numbers() -> None:
    result = dlog.run(ROWS + ".decl r(n: number, m: number)\nr($, $) :- p(_, _).\n")
    assert len({n for row in result["r"] for n in row}) == 8


def test_filters_are_not_numbered() -> None:
    result = dlog.run(ROWS + ".decl r(n: number, y: number)\nr(n, y) :- p(x, y), n = $, x < 2, !p(_, 0).\n")
    assert sorted(n for n, _ in result["r"]) == [0, 1]


def test_a_session_numbers_anew_what_is_read_and_says_so(tmp_path: Path) -> None:
    text = NUMBERED + ".decl s(n: number, m: number)\ns(autoinc(), n) :- r(n, _).\n"
    with dlog.session(text) as session:
        session.insert("p", [(3, 3)])
        session.remove("p", [(7, 5)])
        session.commit()
        assert sorted(x for _, x in session["r"]) == [1, 1, 2, 3]
        numbers = [n for name in ("r", "s") for n, _ in session[name]]
        assert len(set(numbers)) == 8
        assert "p(2, 5)" in str(session.why("r", next((n, x) for n, x in session["r"] if x == 2)))
    program = tmp_path / "program.dl"
    program.write_text(text)
    assert explain_rounds(program, (), ()).count("`autoinc()` may give another value each time") == 2


def test_one_worker_counts() -> None:
    program = compile_program(NUMBERED)
    assert counts(program)
    with pytest.raises(DlogError, match=r"not supported on Spark: `autoinc\(\)`"):
        refuse_for_workers(program)
