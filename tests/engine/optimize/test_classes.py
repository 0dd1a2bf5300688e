"""Equivalence relations become the classes of their values, and rules that join over classes ask for what each class has."""

from __future__ import annotations

import pytest

from dlog.engine.optimize.classes import with_classes
from tests.engine.compile.rules_of import compiled
from tests.engine.optimize.passing import after, shown, unchanged

DECLARED = """.decl e(x: number, y: number) .decl p(x: number, y: number) .decl q(x: number) .decl n(n: number)
.decl same(x: number, y: number) eqrel same(x, y) :- e(x, y). """
CLASSES = [
    "same(x, y) :- e(x, y).",
    "same{class}(x, class) :- class = min n : { same(x, _), n = x ; same(_, x), n = x ; "
    "same(x, y), same{class}(y, n) ; same(y, x), same{class}(y, n) } per x.",
]


@pytest.mark.parametrize(
    ("rule", "made"),
    [
        ("q(x) :- same(x, 3).", ["q(x) :- same{class}(x, class), same{class}(3, class)."]),
        ("q(x) :- same(x, _).", ["q(x) :- same{class}(x, _)."]),
        ("q(x) :- same(x, x).", ["q(x) :- same{class}(x, _)."]),
        ("p(x, z) :- same(x, y), same(z, y), e(z, 1).", ["p(x, z) :- same{class}(x, class), same{class}(z, class), e(z, 1)."]),
        ("q(x) :- e(x, _), same(_, _).", ["q(x) :- e(x, _), same{class}(_, _)."]),
        ("q(x) :- e(x, _), !same(x, x).", ["q(x) :- e(x, _), !same{class}(x, _)."]),
        ("q(x) :- e(x, _), !same(_, x).", ["q(x) :- e(x, _), !same{class}(x, _)."]),
        ("q(x) :- e(x, _), !same(_, _).", ["q(x) :- e(x, _), !same{class}(_, _)."]),
        (
            "q(x) :- e(x, y), !same(x, y).",
            [
                "q(x) :- e(x, y), !same{class}(x, _).",
                "q(x) :- e(x, y), same{class}(x, class), !same{class}(y, class).",
            ],
        ),
        ("q(x) :- e(_, x), same(x, _), !same(1, x).", ["q(x) :- e(_, x), same{class}(x, class), !same{class}(1, class)."]),
        ("n(n) :- n = count : { same(_, _) }.", ["n(n) :- n = count : { same{class}(_, class), same{class}(_2, class) }."]),
        (
            "p(x, n) :- e(x, _), n = count : { same(x, y), e(y, _) }.",
            ["p(x, n) :- e(x, _), n = count : { same{class}(x, class), same{class}(y, class), e(y, _) } per x."],
        ),
        (
            "n(n) :- n = count : { e(x, _), !same(x, 1) }.",
            ["n(n) :- n = count : { e(x, _), !same{class}(x, _) ; e(x, _), same{class}(x, class), !same{class}(1, class) }."],
        ),
    ],
)
def test_what_a_body_reads(rule: str, made: list[str]) -> None:
    found = [r for r in after(with_classes, DECLARED + rule, "q", "p", "n", "same") if r not in CLASSES]
    assert [r.replace("_1, class)", "_, class)").replace("e(x, _2)", "e(x, _)") for r in found] == made


def test_the_number_of_a_symbol_names_its_class() -> None:
    text = '.decl same(x: symbol, y: symbol) eqrel same("a", "b").'
    assert after(with_classes, text, "same") == [
        "same{class}(x, class) :- class = min n : { same(x, _), n = ord(x) ; same(_, x), n = ord(x) ; "
        "same(x, y), same{class}(y, n) ; same(y, x), same{class}(y, n) } per x."
    ]


@pytest.mark.parametrize(
    "rule", ["same(x, x) :- same(x, y).", "same(x, z) :- same(y, x), same(y, z), q(y).", "same(x, x) :- same(_, x), q(x)."]
)
def test_rules_that_follow_from_classes_are_gone(rule: str) -> None:
    assert after(with_classes, DECLARED + rule, "same") == CLASSES


def test_pairs_may_follow_from_classes() -> None:
    """The two applications of the rule of congruence have one form, and share a relation."""
    text = """.decl f(y: number, x: number) .decl same(x: number, y: number) eqrel
    same(y, v) :- f(y, x), f(v, u), same(x, u)."""
    assert after(with_classes, text, "same")[0] == "same(y, v) :- same{side}(y, class), same{side}(v, class)."
    assert "same{side}(y, class) :- f(y, x), same{class}(x, class)." in after(with_classes, text, "same")


def test_parts_that_meet_in_a_class_are_evaluated_alone() -> None:
    found = after(with_classes, DECLARED + "p(x, w) :- e(x, y), same(y, z), e(z, w), w > 3.", "p")
    assert [r for r in found if r not in CLASSES] == [
        "p{side}(x, class) :- e(x, y), same{class}(y, class).",
        "p{side}'(class, w) :- same{class}(z, class), e(z, w), w > 3.",
        "p(x, w) :- p{side}(x, class), p{side}'(class, w).",
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "p(x, y) :- same(x, y), e(x, _), e(y, _).",
        "q(y) :- same(7, x), e(x, y).",
        "p(y, v) :- e(x, y), same(x, u), e(u, v), x != u.",
        'p(y, v) :- e(x, y), same(x, u), e(u, v), y = to_number("1"), v = to_number("2").',
    ],
)
def test_bodies_that_stay_in_one_piece(rule: str) -> None:
    """All values are wanted, a constant says which class it is, parts share a variable, or a functor may stop the run."""
    assert not [r for r in after(with_classes, DECLARED + rule, "p", "q") if r.startswith(("p{side}", "q{side}"))]


@pytest.mark.parametrize(
    "text",
    [
        DECLARED + ".limitsize same(n=5)",
        DECLARED + "same(x, y) :- e(x, y), count : { same(x, _) } > 2.",
    ],
)
def test_relations_whose_rows_are_counted_meanwhile_keep_their_pairs(text: str) -> None:
    program = with_classes(compiled(text), frozenset({"same"}))
    assert (program.classes, "same(x, z) :- same(x, y), same(y, z)." in shown(program)) == ({}, True)


def test_an_equivalence_relation_that_nobody_reads_is_not_computed() -> None:
    assert after(with_classes, DECLARED + "q(x) :- e(x, _).", "q") == ["q(x) :- e(x, _)."]
    assert unchanged(with_classes, ".decl e(x: number) .decl q(x: number) q(x) :- e(x).", "q")
