"""Algebraic data types as a user of Python meets them: rows in and out, sessions, states, questions, proofs, streams."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dlog
from dlog import Branch, DlogError
from tests.dlog.command import dlog as command

PROGRAM = """
.type Expr = Num {value: number} | Var {name: symbol} | Add {left: Expr, right: Expr}
.type Sign = Minus {} | Zero {} | Plus {}
.decl expr(e: Expr)
.input expr
.decl sub(e: Expr)
sub(e) :- expr(e).
sub(l), sub(r) :- sub($Add(l, r)).
.decl value(e: Expr, v: number)
value($Num(v), v) :- sub($Num(v)).
value($Add(l, r), v + w) :- sub($Add(l, r)), value(l, v), value(r, w).
.decl sign(e: Expr, s: Sign)
sign(e, $Plus) :- value(e, v), v > 0.
sign(e, $Zero) :- value(e, 0).
sign(e, $Minus) :- value(e, v), v < 0.
.decl open(e: Expr)
open(e) :- sub(e), !value(e, _).
.decl signs(s: Sign, n: number)
signs(s, n) :- sign(_, s), n = count : { sign(_, s) }.
.output sub, value, sign, open, signs
"""


def num(value: int) -> Branch:
    return Branch("Num", value)


def add(left: Branch, right: Branch) -> Branch:
    return Branch("Add", left, right)


X, PLUS, ZERO = Branch("Var", "x"), Branch("Plus"), Branch("Zero")
SUM = add(num(1), add(num(2), num(-3)))


def test_rows_come_and_go_as_branches() -> None:
    result = dlog.run(PROGRAM, {"expr": [(SUM,), (add(X, num(1)),)]})
    assert set(result["value"]) == {(num(1), 1), (num(2), 2), (num(-3), -3), (add(num(2), num(-3)), -1), (SUM, 0)}
    assert set(result["sign"]) >= {(num(1), PLUS), (SUM, ZERO)}
    assert set(result["open"]) == {(X,), (add(X, num(1)),)}
    assert {(row[0].name, row[1]) for row in result["signs"]} == {("Plus", 2), ("Zero", 1), ("Minus", 2)}


def test_a_branch_is_a_tuple_that_says_its_name() -> None:
    match SUM:
        case Branch("Add", (left, right)):
            assert (left, right.name, right.args) == (num(1), "Add", (num(2), num(-3)))
        case _:
            pytest.fail("the pattern does not match")
    assert repr(SUM) == "Branch('Add', Branch('Num', 1), Branch('Add', Branch('Num', 2), Branch('Num', -3)))"
    assert repr(PLUS) == "Branch('Plus')"
    assert SUM == ("Add", ("Num", 1), ("Add", ("Num", 2), ("Num", -3))) and hash(PLUS) == hash(("Plus",))
    again = pickle.loads(pickle.dumps(SUM))
    assert again == SUM and type(again) is type(again.args[0]) is Branch


def test_tuples_and_lists_that_begin_with_the_name_are_taken() -> None:
    result = dlog.run(PROGRAM, {"expr": [(("Add", ("Num", 1), ["Num", 2]),)]})
    assert (add(num(1), num(2)), 3) in result["value"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Branch("Nun", 1), "Branch('Nun', 1)"),
        (Branch("Num"), "Branch('Num')"),
        (Branch("Num", "1"), "'1'"),
        (Branch("Plus"), "Branch('Plus')"),
        (None, "None"),
        ((), "()"),
        ("$Num(1)", "'$Num(1)'"),
        (1, "1"),
    ],
)
def test_other_values_are_refused(value: object, shown: str) -> None:
    with pytest.raises(DlogError) as raised:
        dlog.run(PROGRAM, {"expr": [(num(1),), (value,)]})
    type_name = "number" if shown == "'1'" else "Expr"
    assert raised.value.diagnostics[0].message == f"facts for expr, row 2: e: {shown} is not of type {type_name}"


def test_arrow_has_them_as_text_both_ways() -> None:
    result = dlog.run(PROGRAM, {"expr": pa.table({"e": ["$Add($Num(1), $Num(2))", '$Var("x y")']})})
    assert set(result["open"]) == {(Branch("Var", "x y"),)}
    assert sorted(result["sub"].to_arrow()["e"].to_pylist()) == ["$Add($Num(1), $Num(2))", "$Num(1)", "$Num(2)", "$Var(x y)"]
    with pytest.raises(DlogError, match=r"facts for expr: e: `\$Num\(one\)` has the field `one`, not a valid number"):
        dlog.run(PROGRAM, {"expr": pa.table({"e": ["$Num(one)"]})})


def test_a_session_follows_changes() -> None:
    with dlog.session(PROGRAM) as session:
        session.insert("expr", [(SUM,)])
        first = session.commit()
        assert ((SUM, ZERO), 1) in set(first.changes("sign"))
        session.insert("expr", [(add(SUM, X),)])
        session.remove("expr", [(SUM,)])
        second = session.commit()
        assert set(second.changes("open")) == {((X,), 1), ((add(SUM, X),), 1)} and not set(second.changes("value"))
        session.remove("expr", [(add(SUM, X),)])
        session.commit()
        assert all(not session[name] for name in ("sub", "value", "sign", "open", "signs"))


def test_a_state_keeps_them(tmp_path: Path) -> None:
    with dlog.session(PROGRAM, state=tmp_path / "state") as session:
        session.insert("expr", [(SUM,), (X,)])
        session.commit()
    with dlog.session(PROGRAM, state=tmp_path / "state") as session:
        assert (SUM, 0) in session["value"] and set(session["open"]) == {(X,)}
        session.remove("expr", [(SUM,)])
        session.commit()
        assert not session["value"] and set(session["sub"]) == {(X,)}
    other = PROGRAM.replace("Var {name: symbol}", "Var {name: symbol, sort: number}")
    with pytest.raises(DlogError, match="the state has rows of expr"):
        dlog.session(other, state=tmp_path / "state")


def test_questions_build_and_take_apart() -> None:
    with dlog.session(PROGRAM) as session:
        session.insert("expr", [(SUM,)])
        session.commit()
        assert set(session.query("value($Add(l, $Num(n)), v)")) == {(num(2), -3, -1)}
        assert set(session.query("sign(e, $Zero)")) == {(SUM,)}
        assert set(session.query("value(e, 0), e = $Add($Num(n), _)")) == {(SUM, 1)}
        with pytest.raises(DlogError, match=r"unknown branch `\$Nim`"):
            session.query("value($Nim(n), v)")


def test_proofs_write_them_as_the_program_does() -> None:
    with dlog.session(PROGRAM) as session:
        session.insert("expr", [(add(num(1), num(2)),)])
        session.commit()
        shown = str(session.why("value", (add(num(1), num(2)), 3)))
    assert "value($Add($Num(1), $Num(2)), 3)" in shown and "expr($Add($Num(1), $Num(2)))" in shown


@pytest.mark.parametrize("form", ["csv", "json"])
def test_changes_on_the_command_line(form: str, tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    lines = {
        "csv": '1,expr,+1,"$Add($Num(1), $Num(-1))"\n2,expr,-1,"$Add($Num(1), $Num(-1))"\n',
        "json": '{"round": 1, "relation": "expr", "diff": 1, "row": ["$Add($Num(1), $Num(-1))"]}\n'
        '{"round": 2, "relation": "expr", "diff": -1, "row": ["$Add($Num(1),$Num(-1))"]}\n',
    }
    finished = command("watch", "p.dl", "--format", form, cwd=tmp_path, stdin=lines[form])
    assert (finished.code, finished.err) == (0, "")
    expected = {
        "csv": '1,sign,+1,"$Add($Num(1), $Num(-1))",$Zero',
        "json": '{"round": 1, "relation": "sign", "diff": 1, "row": ["$Add($Num(1), $Num(-1))", "$Zero"]}',
    }
    assert expected[form] in finished.out.splitlines()


def test_wrong_changes_are_told(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    wrong = '{"round": 1, "relation": "expr", "diff": 1, "row": [["Num", 1]]}\n'
    finished = command("watch", "p.dl", cwd=tmp_path, stdin=wrong)
    assert finished.code == 1 and '`["Num", 1]` is not a `Expr` as text' in finished.err


@pytest.mark.parametrize("facts", [{"expr": [(SUM,)]}, {"expr": [(add(SUM, SUM),), (X,)]}])
def test_the_same_by_every_way(facts: dict[str, Any]) -> None:
    with dlog.session(PROGRAM) as session:
        for name, rows in facts.items():
            session.insert(name, rows)
        session.commit()
        result = dlog.run(PROGRAM, facts)
        assert all(set(session[name]) == set(result[name]) for name in ("sub", "value", "sign", "open", "signs"))
