"""Aggregates of users: functors that fold the values of a group, ascending, from a first state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dlog
from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import explain_rounds
from tests.shards import run_sharded

TEXTS = """
.functor add(state: symbol, x: number): symbol stateful
.decl q(x: number)
.decl e(x: number, y: number, z: number)
.decl r(x: number, s: symbol)
r(x, @@add y : cat(to_string(x), ":"), { e(x, y, _) }) :- q(x).
"""
FACTS: dict[str, Any] = {"q": [(1,), (2,), (3,)], "e": [(1, 20, 0), (1, 3, 1), (1, 3, 2), (2, -7, 0), (4, 9, 9)]}
FOLDED = {(1, "1:3,3,20,"), (2, "2:-7,"), (3, "3:")}

SUMS = """
.functor add(state: number, x: number): number
.decl q(x: number)
.decl e(x: number, y: number)
.decl r(x: number, s: number)
r(x, @@add y : x, { e(x, y) }) :- q(x).
"""


def add(state: str, x: int) -> str:
    return f"{state}{x},"


def test_values_are_folded_in_ascending_order_each_match_once_and_nothing_gives_the_first_state() -> None:
    assert set(dlog.run(TEXTS, facts=FACTS, functors={"add": add})["r"]) == FOLDED


def test_a_session_folds_groups_again_and_says_so(tmp_path: Any) -> None:
    with dlog.session(TEXTS, functors={"add": add}) as session:
        for name, rows in FACTS.items():
            session.insert(name, rows)
        session.commit()
        assert set(session["r"]) == FOLDED
        session.remove("e", [(1, 3, 1)])
        session.insert("e", [(3, 1, 1)])
        session.commit()
        assert set(session["r"]) == {(1, "1:3,20,"), (2, "2:-7,"), (3, "3:1,")}
        assert "@@add y" in str(session.why("r", (1, "1:3,20,")))
        assert sorted(session.query('?- q(x), s = @@add y : "", { e(y, x, _) }.')) == [(1, "3,"), (2, ""), (3, "1,")]
    path = tmp_path / "program.dl"
    path.write_text(TEXTS)
    assert "r, computed anew in each round\n  `@@add` folds all values of a group again" in explain_rounds(path, (), ())


def test_one_worker_folds_for_all() -> None:
    assert run_sharded(TEXTS, FACTS, functors={"add": add}, workers=3)["r"] == FOLDED


def test_records_ascend_by_their_fields_and_nil_comes_first() -> None:
    text = """
    .type Pair = [x: number, s: symbol]
    .type T = Leaf {x: number} | Node {s: symbol}
    .functor pairs(state: symbol, p: Pair): symbol
    .functor trees(state: symbol, t: T): symbol
    .decl p(p: Pair) .decl t(t: T) .decl r(s: symbol)
    p([10, "a"]). p([9, "b"]). p([9, "a"]). p(nil). p([-1, "z"]).
    t($Node("b")). t($Leaf(10)). t($Leaf(9)). t($Node("a")).
    r(@@pairs x : "", { p(x) }). r(@@trees x : "", { t(x) }).
    """
    functors = {
        "pairs": lambda state, p: state + (f"{p[0]}{p[1]} " if p else "nil "),
        "trees": lambda state, t: f"{state}{t.args[0]} ",
    }
    assert set(dlog.run(text, functors=functors)["r"]) == {("nil -1z 9a 9b 10a ",), ("9 10 a b ",)}


def test_floats_and_unsigned_numbers_ascend_as_such() -> None:
    text = """
    .functor floats(state: symbol, x: float): symbol
    .functor big(state: symbol, x: unsigned): symbol
    .decl f(x: float) .decl u(x: unsigned) .decl r(s: symbol)
    f(1.5). f(-2.5). f(-0.5). u(18446744073709551615). u(1).
    r(@@floats x : "", { f(x) }). r(@@big x : "", { u(x) }).
    """
    appended = {name: lambda state, x: f"{state}{x} " for name in ("floats", "big")}
    assert set(dlog.run(text, functors=appended)["r"]) == {("-2.5 -0.5 1.5 ",), ("1 18446744073709551615 ",)}


MANY = {"q": [(x,) for x in range(50)], "e": [(x % 40, x) for x in range(2000)]}
MANY_SUMS = {(x, x + sum(y for z, y in MANY["e"] if z == x)) for (x,) in MANY["q"]}  # type: ignore[misc]


def test_a_compiled_fold_equals_a_called_one() -> None:
    for compiled in (True, False):
        summed = dlog.functor(compiled=compiled)(lambda state, x: state + x)
        assert set(dlog.run(SUMS, facts=MANY, functors={"add": summed})["r"]) == MANY_SUMS


def test_a_compiled_fold_fails_where_python_does() -> None:
    failing = dlog.functor(lambda state, x: state + 100 // (x - 1999))
    with pytest.raises(DlogError, match="ZeroDivisionError"):
        dlog.run(SUMS, facts=MANY, functors={"add": failing})


def test_blocks_are_the_states_the_values_and_where_groups_begin() -> None:
    @dlog.functor(blocks=True)
    def summed(states: np.ndarray, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        sums = np.concatenate([[0], np.cumsum(values)])
        return states + sums[offsets[1:]] - sums[offsets[:-1]]

    assert set(dlog.run(SUMS, facts=MANY, functors={"add": summed})["r"]) == MANY_SUMS


def test_blocks_of_arrow_are_the_states_and_lists_of_values() -> None:
    @dlog.functor(blocks="arrow")
    def joined(states: pa.Array, values: pa.Array) -> pa.Array:
        texts = [
            f"{s}{''.join(f'{v},' for v in of_one)}" for s, of_one in zip(states.to_pylist(), values.to_pylist(), strict=True)
        ]
        return pa.array(texts)

    assert set(dlog.run(TEXTS, facts=FACTS, functors={"add": joined})["r"]) == FOLDED


MISTAKES: list[tuple[Any, list[str]]] = [
    (
        lambda state, x: 1 // (x - 3),
        [
            "the functor `@add` failed: ZeroDivisionError",
            "while evaluating this rule",
            "r(x, @@add y",
            "= it was called for @add(1, 3)",
            f"in {__file__}, line ",
        ],
    ),
    (lambda state, x: None, ["the functor `@add` gives what it must not: None is not of type number", "= of @add("]),
    (dlog.functor(blocks=True)(lambda states, values, offsets: values), ["gives an array of shape (4,) for 3 rows"]),
    (dlog.functor(blocks="arrow")(lambda states, values: 3), ["gives a value of type `int`, which is no Arrow array"]),
    (None, ["there is no function for the functor `@add`"]),
]


@pytest.mark.parametrize(("function", "said"), MISTAKES)
def test_what_goes_wrong_in_a_fold_is_told_with_its_place(function: Any, said: list[str]) -> None:
    facts = {"q": FACTS["q"], "e": [row[:2] for row in FACTS["e"][:2]] + [(1, 4), (2, 5)]}
    with pytest.raises(DlogError) as raised:
        dlog.run(SUMS, facts=facts, functors={} if function is None else {"add": function})
    assert [text for text in said if text not in str(raised.value)] == []


def test_a_fold_that_fails_leaves_a_session_as_it_was() -> None:
    with dlog.session(SUMS, functors={"add": lambda state, x: state + 10 // x}) as session:
        session.insert("q", [(1,)])
        session.insert("e", [(1, 5)])
        session.commit()
        session.insert("e", [(1, 0)])
        with pytest.raises(DlogError, match="ZeroDivisionError"):
            session.commit()
        assert set(session["r"]) == {(1, 3)}
