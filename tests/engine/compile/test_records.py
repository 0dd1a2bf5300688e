"""Records without a declared type, and values of algebraic data types, where they are compared, built and taken apart."""

from __future__ import annotations

from typing import Any

import pytest

from dlog import Branch, run_text
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from tests.naive import evaluate

DECLARATIONS = """
.type Id <: number
.type Shape = Dot {} | Circle {radius: number} | Box {low: Point, high: Point}
.type Point = [x: number, y: number]
.type Colour = Red {} | Green {} | Blue {}
.type Paint = Colour
.decl e(x: number, y: number)
.decl id(x: Id)
.decl s(s: Shape)
.decl c(c: Colour)
.decl paint(p: Paint)
e(1, 2). e(2, 2). e(3, 1).
id(1). id(2).
s($Dot). s($Circle(1)). s($Circle(2)). s($Box([1, 2], [3, 4])). s($Box(nil, [3, 4])).
c($Red). c($Blue).
.decl r(x: number)
.decl q(x: Id)
.decl t(s: Shape)
"""


@pytest.mark.parametrize(
    ("rules", "relation", "expected"),
    [
        ("r(x) :- [x] = [1].", "r", {(1,)}),
        ("r(x) :- e(x, y), [x, 2] = [y, x].", "r", {(2,)}),
        ("r(x) :- e(x, y), a = [x, y], b = a, b = [v, v].", "r", {(2,)}),
        ("r(x) :- e(x, y), [x, [y, 7]] != [3, [1, 7]].", "r", {(1,), (2,)}),
        ("r(z) :- a = [1, [y, z]], [1, b] = a, b = [1, 4].", "r", {(4,)}),
        ("r(x) :- e(x, _), _ = [x], [] = [].", "r", {(1,), (2,), (3,)}),
        ("r(x) :- e(x, _), [[_], x] = [[[1]], 3].", "r", {(3,)}),
        ("q(x) :- id(x), a = [x, 1], a = [y, _], y = 2.", "q", {(2,)}),
        ("r(n) :- n = count : { e(x, y), [x, y] != [2, 2] }.", "r", {(2,)}),
        ("r(x) :- s($Circle(x)).", "r", {(1,), (2,)}),
        ("r(x) :- s($Box([x, _], _)).", "r", {(1,)}),
        ("r(x) :- e(x, _), !s($Circle(x)).", "r", {(3,)}),
        ("r(n) :- n = sum x : { s($Circle(x)) }.", "r", {(3,)}),
        ("t(x) :- s(x), x != $Dot, x != $Circle(1), x != $Box(nil, [3, 4]).", "t", {("Circle", 2), ("Box", (1, 2), (3, 4))}),
        ("t($Circle(x + 10)) :- s($Circle(x)). t(y) :- $Dot = y.", "t", {("Circle", 11), ("Circle", 12), ("Dot",)}),
        ("r(1) :- $Circle(1) != $Dot, $Dot = $Dot(). r(2) :- $Circle(1) = $Dot.", "r", {(1,)}),
        ("r(x) :- $Circle(x) = $Circle(5).", "r", {(5,)}),
        ("r(ord(x)) :- c(x). r(10 + as(x, number)) :- c(x).", "r", {(0,), (2,), (10,), (12,)}),
        ("r(x) :- c(y), x = max ord(z) : { c(z), ord(z) >= ord(y) }, ord(y) < ord($Red).", "r", {(2,)}),
        ("paint(x) :- c(x). r(1) :- paint($Red). r(2) :- paint($Green).", "r", {(1,)}),
    ],
)
def test_rules_with_records(rules: str, relation: str, expected: set[Any]) -> None:
    rows = {row if relation != "t" else row[0] for row in run_text(DECLARATIONS + rules, {})[relation]}
    assert rows == expected
    naive = evaluate(parse(Source(DECLARATIONS + rules)), {})[relation]
    assert {row if relation != "t" else row[0] for row in naive} == expected


def test_a_subtype_of_an_algebraic_data_type_has_its_values() -> None:
    text = """
    .type Shape = Dot {} | Circle {radius: number}
    .type Big <: Shape
    .decl big(b: Big)
    .decl s(s: Shape)
    big(as($Circle(9), Big)).
    s(x) :- big(x).
    """
    assert run_text(text, {})["s"] == {(Branch("Circle", 9),)}
