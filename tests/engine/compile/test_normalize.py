"""The normal form of rules.py: what each construct becomes."""

from __future__ import annotations

import sys

import pytest

from dlog.engine.ir.rules import Constant, Kind, Record
from tests.engine.compile.rules_of import compiled, mistakes, rules

DECLS = """
.type Pair = [a: number, b: number]
.type List = [head: number, tail: List]
.decl e(x: number, y: number)
.decl n(x: number)
.decl s(x: symbol)
.decl f(x: float)
.decl u(x: unsigned)
.decl pair(p: Pair)
.decl list(l: List)
.decl p(x: number)
.decl q(x: number, y: number)
.decl rp(p: Pair)
.decl rl(l: List)
.decl rs(x: symbol)
.decl rf(x: float)
.decl ru(x: unsigned)
.decl yes()
"""

CASES = [
    # disjunction, several heads, negation, truth
    ("p(x) :- n(x) ; e(x, _).", ["p(x) :- n(x).", "p(x) :- e(x, _)."]),
    ("p(x), q(x, x) :- n(x).", ["p(x) :- n(x).", "q(x, x) :- n(x)."]),
    ("p(x) :- n(x), !(e(x, _), x < 3).", ["p(x) :- n(x), !e(x, _).", "p(x) :- n(x), x >= 3."]),
    ("p(x) :- n(x), !(e(x, _) ; x = 3).", ["p(x) :- n(x), !e(x, _), x != 3."]),
    ("p(x) :- n(x), !!e(x, _).", ["p(x) :- n(x), e(x, _)."]),
    ("rs(x) :- s(x), !match(\"a\", x).", ['rs(x) :- s(x), !match("a", x).']),
    ("p(x) :- n(x), true.", ["p(x) :- n(x)."]),
    ("p(x) :- n(x), false.", []),
    ("p(x) :- n(x), (false ; x > 1).", ["p(x) :- n(x), x > 1."]),
    ("p(x) :- n(x), !false.", ["p(x) :- n(x)."]),
    # equations
    ("q(x, z) :- e(x, y), y = 3, z = x.", ["q(x, x) :- e(x, 3)."]),
    ("p(x) :- n(x), x = y, n(y).", ["p(x) :- n(x)."]),
    ("p(x) :- n(x), 1 = 2.", []),
    ("p(x) :- n(x), x = 1, x = 2.", []),
    ("p(x) :- n(x), 1 < 2.", ["p(x) :- n(x)."]),
    ("p(z) :- n(x), x + 1 = z.", ["p(z) :- n(x), z = (x + 1)."]),
    ("p(x) :- n(x), x + 1 = x * 2.", ["p(x) :- n(x), (x + 1) = (x * 2)."]),
    ("q(x, y) :- n(x), n(x), y = x + 1, n(y).", ["q(x, y) :- n(x), y = (x + 1), n(y)."]),
    # arguments of atoms
    ("p(x) :- n(x), e(x + 1, _).", ["p(x) :- n(x), e(_1, _), _1 = (x + 1)."]),
    ("p(x) :- n(x), !n(x + 1).", ["p(x) :- n(x), !n(_1), _1 = (x + 1)."]),
    ("p(x + 1) :- n(x).", ["p((x + 1)) :- n(x)."]),
    # records
    ("p(x) :- pair([x, 3]).", ["p(x) :- pair(_1), _1 is Pair[x, 3]."]),
    ("p(x) :- list([x, [_, nil]]).", ["p(x) :- list(_1), _1 is List[x, _2], _2 is List[_, nil]."]),
    ("p(x) :- pair(r), r = [x, x].", ["p(x) :- pair(r), r is Pair[x, x]."]),
    ("rp([x, y]) :- e(x, y).", ["rp(Pair[x, y]) :- e(x, y)."]),
    ("rp(r) :- e(x, y), r = [y, x].", ["rp(r) :- e(x, y), r = Pair[y, x]."]),
    ("p(x) :- n(x), !pair([x, x]).", ["p(x) :- n(x), !pair(_1), _1 = Pair[x, x]."]),
    ("p(x) :- e(x, y), pair([x + 1, y]).", ["p(x) :- e(x, y), pair(_1), _1 is Pair[_2, y], _2 = (x + 1)."]),
    ("p(x) :- pair(r), [x, y] = r, [y, x] = r.", ["p(x) :- pair(r), r is Pair[x, y], r is Pair[y, x]."]),
    ("p(x) :- list([x, t]), t = nil.", ["p(x) :- list(_1), _1 is List[x, nil]."]),
    ("p(1) :- list([_, t]), [_, _] = t, t = nil.", []),
    ("p(a) :- pair(r), [a, 1] = as([2, 1], Pair), r = r.", ["p(2) :- pair(r)."]),
    # aggregates
    ("p(c) :- c = count : { n(_) }.", ["p(c) :- c = count : { n(_) }."]),
    ("p(c + 1) :- n(x), c = sum y : { e(x, y) }.", ["p((c + 1)) :- n(x), c = sum y : { e(x, y) } per x."]),
    ("q(x, max y : { e(x, y) }) :- n(x).", ["q(x, _1) :- n(x), _1 = max y : { e(x, y) } per x."]),
    ("p(x) :- n(x), x = count : { e(x, _) }.", ["p(x) :- n(x), x = _1, _1 = count : { e(x, _) } per x."]),
    ("p(x) :- n(x), 2 < count : { e(x, y), y = x }.", ["p(x) :- n(x), 2 < _1, _1 = count : { e(x, x) } per x."]),
    ("p(x) :- x = min x : { n(x) }.", ["p(x) :- x = min x' : { n(x') }."]),
    ("p(y) :- y = min x + z : { e(x, z), z != 0 }.", ["p(y) :- y = min (x + z) : { e(x, z), z != 0 }."]),
    (
        "p(c) :- c = count : { n(x), 1 < count : { e(x, y) } }.",
        ["p(c) :- c = count : { n(x), 1 < _1, _1 = count : { e(x, y) } per x }."],
    ),
    (
        "q(x, m) :- m = max y : { e(x, y) }.",
        ["q(x, m) :- e(x, y), y = m, m = max y' : { e(x', y') }."],
    ),
    ("p(c) :- c = sum v : { n(v) ; e(v, _) }.", ["p(c) :- c = sum v : { n(v) ; e(v, _) }."]),
    ("p(c) :- c = sum v : { n(v) ; n(x), v = x }.", ["p(c) :- c = sum v : { n(v) ; n(v) }."]),
    ("p(c) :- c = sum v : { n(v), false }.", ["p(c) :- c = 0."]),
    ("p(c) :- c = min v : { n(v), false }.", []),
    ("p(c) :- c = count : { e(x, _), e(x, _) }.", ["p(c) :- c = count : { e(x, _), e(x, _) }."]),
    # functors by kind
    ('rs(x + "b") :- s(x).', ['rs(cat(x, "b")) :- s(x).']),
    ("rf(x + 1) :- f(x), x < 2.", ["rf((x +f 1.0)) :- f(x), x <f 2.0."]),
    ("ru(x / 2) :- u(x).", ["ru((x /u 2u)) :- u(x)."]),
    ("rf(to_float(x)) :- n(x).", ["rf(itof(x)) :- n(x)."]),
    ("rf(to_float(x)) :- f(x).", ["rf(x) :- f(x)."]),
    ("p(to_number(x)) :- s(x).", ["p(to_number(x)) :- s(x)."]),
    ("p(to_number(x)) :- u(x).", ["p(utoi(x)) :- u(x)."]),
    ("rs(to_string(x)) :- f(x).", ["rs(to_string(x)) :- f(x)."]),
    ("rs(cat(x)) :- s(x).", ["rs(x) :- s(x)."]),
    ("p(ord(x)) :- n(x).", ["p(x) :- n(x)."]),
    ("p(ord(x)) :- s(x).", ["p(ord(x)) :- s(x)."]),
    ("p(max(x, 1, -2)) :- n(x).", ["p(max(x, 1, -2)) :- n(x)."]),
    ("p(-x) :- n(x).", ["p(-x) :- n(x)."]),
    ("p(bnot x bor 1) :- n(x).", ["p((bnot x bor 1)) :- n(x)."]),
    ("ru(as(x, unsigned)) :- n(x).", ["ru(itou(x)) :- n(x)."]),
    ("p(strlen(substr(cat(x, x, \"c\"), 0, 2))) :- s(x).", ['p(strlen(substr(cat(x, x, "c"), 0, 2))) :- s(x).']),
    ("rf(m) :- m = mean x : { n(x) }.", ["rf(m) :- m = mean itof(x) : { n(x) }."]),
    # rules without bodies
    ("p(1 + 2).", ["p((1 + 2))."]),
    ("p(x) :- x = 3.", []),
    ("p(x) :- x = 1 + 2.", ["p(x) :- x = (1 + 2)."]),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[c[0] for c in CASES])
def test_a_clause_becomes(text: str, expected: list[str]) -> None:
    assert rules(DECLS + text) == expected


def test_facts_of_literals_are_rows_of_constants() -> None:
    text = 'n(1). n(-2). n(0x1f). n(0b101). u(7u). u(7). f(1). f(-1.5). s("a\\tb"). list([1, [2, nil]]). yes(). n(1).'
    number = Kind.NUMBER
    nil = Constant(None, Kind.RECORD)
    assert compiled(DECLS + text).facts == {
        "n": tuple((Constant(v, number),) for v in (1, -2, 31, 5)),
        "u": ((Constant(7, Kind.UNSIGNED),),),
        "f": ((Constant(1.0, Kind.FLOAT),), (Constant(-1.5, Kind.FLOAT),)),
        "s": ((Constant("a\tb", Kind.SYMBOL),),),
        "list": ((Record("List", (Constant(1, number), Record("List", (Constant(2, number), nil)))),),),
        "yes": ((),),
    }


def test_rules_that_always_hold_with_constants_are_facts() -> None:
    program = compiled(DECLS + "p(x) :- x = 3. q(1, 2) :- true.")
    assert program.facts == {"p": ((Constant(3, Kind.NUMBER),),), "q": ((Constant(1, Kind.NUMBER), Constant(2, Kind.NUMBER)),)}
    assert program.strata == ()


def test_the_extreme_literals_fit() -> None:
    text = "n(9223372036854775807). n(-9223372036854775808). u(18446744073709551615). u(0xffffffffffffffff)."
    assert mistakes(DECLS + text) == []


def test_variables_are_numbered_from_zero_and_named_apart() -> None:
    (stratum,) = compiled(DECLS + "q(x, c) :- n(x), c = count : { e(y, x) }, e(x + 1, y).").strata
    (rule,) = stratum.rules
    assert rule.variables == ("x", "c", "_1", "y")
    assert rule.kinds == (Kind.NUMBER,) * 4


def test_the_text_of_a_rule_is_what_the_user_wrote() -> None:
    (stratum,) = compiled(DECLS + "p(x) :-\n    n(x),   x < 3.").strata
    assert stratum.rules[0].text == "p(x) :- n(x), x < 3."


@pytest.mark.parametrize("back", [False, True])
def test_equations_in_a_row_take_steps_in_proportion_to_them(back: bool) -> None:
    def steps(count: int) -> int:
        """Calls of functions."""
        equations = [f"x{i + 1} = x{i}" for i in range(count)]
        text = f"{DECLS}q(x0, x{count}) :- n(x0), {', '.join(equations[::-1] if back else equations)}."
        taken = 0

        def count_call(_: object, event: str, __: object) -> None:
            nonlocal taken
            taken += event == "call"

        before = sys.getprofile()
        sys.setprofile(count_call)
        try:
            assert rules(text) == ["q(x0, x0) :- n(x0)."]
        finally:
            sys.setprofile(before)
        return taken

    steps(10)  # what is done once only
    assert steps(1600) < 3 * steps(800)
