"""A plan gives the rows that its rules say, for every construct and for random rules under random statistics."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.rules import Lattice
from tests.engine.plan.interpret import Random, Relations, Row, naive, run
from tests.engine.plan.rules_text import program
from tests.examples import examples


def data(seed: int = 0, **arities: int) -> Relations:
    rng = random.Random(seed)
    return {name: {tuple(rng.randrange(6) for _ in range(a)) for _ in range(12)} for name, a in arities.items()}


CONJUNCTIVE = [
    "p(x, y) :- e(x, y).",
    "p(x, z) :- e(x, y), e(y, z).",
    "p(x) :- e(x, y), e(y, z).",
    "p(x, y, z) :- e(x, y), e(y, z), e(x, z).",
    "p(a, b, c, d) :- e(a, b), e(b, c), e(c, d), e(d, a).",
    "p(a, b, c, d) :- e(a, b), e(a, c), e(a, d), e(b, c), e(b, d), e(c, d).",
    "p(x) :- e(x, x).",
    "p(x, y) :- n(x), e(y, y).",
    "p(x, y) :- n(x), n(y).",
    "p(x, y) :- n(x), t(x, y, y).",
    "p(x) :- n(x), t(x, y, y).",
    "p(x) :- t(3, x, _).",
    "p(y) :- e(x, y), x = 2.",
    "p(x) :- n(x), e(_, _).",
    "p(7) :- e(_, 2).",
    "p(1, 2) :- .",
    "p(z) :- z = 1 + 2, !n(z).",
    "p(1) :- !n(9).",
    "p() :- n(3).",
    "p(x) :- n(x), q().",
    "p() :- q().",
    "p(x, y) :- e(x, y), !e(y, x), !n(_).",
    "p(x, y) :- e(x, y), !e(y, _).",
    "p(x, y) :- e(x, y), x < y, x != 2.",
    "p(z) :- e(x, y), z = x + y, n(z).",
    "p(z) :- e(x, y), x + y = z, e(z, w), w >= x.",
    "p(x, y) :- n(x), n(y), x = y.",
    "p(x) :- n(x), e(y, z), e(z, y).",
    "p(a, b) :- rec(r), r = [a, b].",
    "p(a) :- rec(r), r = [a, a].",
    "p(b) :- rec(r), r = [3, b], n(b).",
    "p([x, y]) :- e(x, y), x < 3.",
    "p(x, y) :- e(x, y), rec(r), r = [x, y].",
    "p(x) :- e(x, y), rec(r), r = [x, 3].",
    "p(x, y) :- n(x), n(y), rec(r), r = [x, y], rec(s), s = [y, x].",
    "p(r, s, [a, b]) :- rec(r), r = [a, b], rec(s), s = [a, b].",
    "p(r, s) :- rec(r), r = [a, b], rec(s), s = [b, c], x = b, n(x).",
    "p(x, y, z) :- n(x), x = y, y = z, n(z).",
    "p(x) :- n(x), x = x.",
    "p(x) :- e(x, y), z = 10 / y, y != 0, z > 2.",
    "p(x, y) :- e(x, y), z = 10 / x, x != 0.",
]

AGGREGATES = [
    "p(x, c) :- n(x), c = count : { e(x, _) }.",
    "p(c) :- c = count : { e(_, _) }.",
    "p(s) :- s = sum y : { e(_, y) }.",
    "p(x, s) :- n(x), s = sum y : { e(x, y), t(y, _, _) }.",
    "p(x, m) :- n(x), m = min y : { e(x, y), t(y, _, _) }.",
    "p(x, m) :- n(x), m = max y + z : { t(x, y, z), y < z }.",
    "p(x, m) :- n(x), m = mean y : { e(x, y) }.",
    "p(x, m) :- n(x), m = bit_xor y : { e(x, y) }.",
    "p(x, c) :- n(x), c = count : { n(y), y < x }.",
    "p(x, c) :- n(x), e(x, z), c = count : { e(y, z), y < x }.",
    "p(x, c) :- n(x), c = count : { e(x, y) ; e(y, x) }.",
    "p(x, s) :- n(x), s = sum y : { e(x, y) ; t(x, y, _) }.",
    "p(x, s) :- n(x), s = sum y : { e(x, y), y < 4 ; n(y), y > x }.",
    "p(x, c) :- n(x), c = count : { n(y), y < x ; e(y, _) }.",
    "p(x) :- n(x), 2 = c, c = count : { e(x, _) }.",
    "p(x, c) :- e(x, c), c = count : { e(x, _) }.",
    "p(x, d) :- n(x), c = count : { e(x, _) }, d = sum y : { n(y), y < c }.",
    "p(x, s) :- n(x), s = sum c : { e(x, y), c = count : { e(y, _) } }.",
    "p(x, s) :- n(x), s = sum c : { e(x, y), c = count : { n(z), z < y } }.",
    "p(x, s) :- n(x), s = sum c : { e(x, y), c = count : { n(z), z < x, e(z, y) } }.",
    "p(x, s) :- n(x), s = max y : { e(x, y), !n(y) }.",
    "p(x) :- n(x), 0 = c, c = count : { e(x, y), e(y, x) }.",
    "p(c) :- c = count : { e(a, b), e(b, d), e(a, d) }.",
    "p(c) :- c = count : { q() }.",
    "p(x, c) :- n(x), c = count : { z = x }.",
    "p(c) :- e(x, c), c = count : { e(c, _) }.",
    "p(c, d) :- e(c, d), c = count : { e(d, _) }, d = count : { e(c, _) }.",
    "p(x, c) :- n(x), c = sum z : { z = x + 1 }.",
]


@pytest.mark.parametrize("text", CONJUNCTIVE + AGGREGATES)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_construct_gives_the_rows_of_its_rule(text: str, seed: int) -> None:
    facts = data(seed, e=2, n=1, t=3, q=0)
    facts["rec"] = {(row,) for row in data(seed, r=2)["r"]} | {(None,)}
    stratum, whole = program(text, {k: len(next(iter(v))) for k, v in facts.items()})
    assert run(stratum, whole, facts) == naive(stratum, facts)


RECURSIVE = [
    "path(x, y) :- e(x, y).\npath(x, z) :- path(x, y), e(y, z).",
    "path(x, y) :- e(x, y).\npath(x, z) :- path(x, y), path(y, z).",
    "r(0) :- .\nr(y) :- r(x), e(x, y).",
    "r(x) :- n(x), x < 2.\nr(y) :- e(x, y), r(x), !n(y).",
    "a(x, y) :- e(x, y).\nb(x, y) :- a(y, x), n(x).\na(x, z) :- b(x, y), a(y, z), b(x, _).",
    "sg(x, x) :- n(x).\nsg(x, y) :- e(a, x), sg(a, b), e(b, y).",
    "t3(x, y, z) :- t(x, y, z).\nt3(x, y, z) :- t3(x, y, z2), t3(y, z, y2), t3(x, z, x2).",
    "c(x, y) :- e(x, y).\nc(x, y) :- c(x, z), c(z, y), c(x, y2), c(y2, y).\nc(x, y) :- c(x, y), c(y, z), c(x, z).",
    "r(x) :- e(x, 1).\nr(x) :- r(y), r(2), e(y, x), r(x).",
    "r(x, c) :- n(x), c = count : { e(x, _) }.\nr(y, c) :- r(x, d), e(x, y), c = sum z : { e(y, z) }, d < 100.",
    "r(x, 0) :- n(x).\nr(y, c) :- r(x, d), e(x, y), c = count : { n(z), z < y }.",
    "tri(x, y, z) :- e(x, y), e(y, z), e(x, z), tri(x, y, _).\ntri(x, y, y) :- e(x, y).",
]


@pytest.mark.parametrize("text", RECURSIVE)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_recursion_reaches_the_fixed_point(text: str, seed: int) -> None:
    facts = data(seed, e=2, n=1, t=3)
    stratum, whole = program(text, {k: len(next(iter(v))) for k, v in facts.items()}, recursive=True)
    assert run(stratum, whole, facts) == naive(stratum, facts)


@pytest.mark.parametrize("seed", range(5))
def test_a_lattice_keeps_the_least_value(seed: int) -> None:
    text = "d(x, v) :- n(x), v = min c : { c = 0, s(x) ; d(y, b), w(y, x, l), c = b + l }."
    facts = data(seed, n=1, s=1, w=3)
    stratum, whole = program(text, recursive=True, lattices={"d": Lattice("d", Dominance.LEAST, 1)})
    far = {x: 0 for (x,) in facts["s"] if (x,) in facts["n"]}
    for _ in range(10):
        for y, x, length in facts["w"]:
            if y in far and (x,) in facts["n"]:
                far[x] = min(far.get(x, 999), far[y] + length)
    assert run(stratum, whole, facts) == {"d": set(far.items())}


# ------------------------------------------------------------------------------------------------------- random rules


ARITIES = {"e": 2, "f": 2, "n": 1, "t": 3, "q": 0}
terms = st.sampled_from(["a", "b", "c", "d", "a", "b", "c", "_", "1"])


@st.composite
def atoms(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(["e", "e", "f", "t", "n", "q"]))
    return f"{name}({', '.join(draw(terms) for _ in range(ARITIES[name]))})"


@st.composite
def bodies(draw: st.DrawFn) -> list[str]:
    body = draw(st.lists(atoms(), min_size=1, max_size=5))
    bound = sorted({v for v in "abcd" if any(v in x.split("(")[1] for x in body)})
    if bound:
        one = st.sampled_from(bound)
        extra = st.one_of(
            st.builds("{} < {}".format, one, one),
            st.builds("{} != {}".format, one, st.sampled_from([*bound, "2"])),
            st.builds("!f({}, {})".format, one, st.sampled_from([*bound, "_"])),
            st.builds("{} = {} + 1".format, one, one),
            st.builds("z = {} + {}".format, one, one),
        )
        body += draw(st.lists(extra, max_size=2))
    return body


def rule_of(body: list[str], head: list[str]) -> str:
    return f"p({', '.join(head)}) :- {', '.join(body)}."


def bound_names(body: list[str]) -> list[str]:
    found = {c for x in body if not x.startswith("!") for c in x.split("(")[-1] if c in "abcd"}
    return sorted(found | ({"z"} & set(" ".join(body))))


@examples(150)
@given(bodies(), st.data(), st.integers(0, 5), st.integers(0, 50))
def test_random_rules_under_random_statistics(body: list[str], draw: st.DataObject, seed: int, figures: int) -> None:
    names = bound_names(body)
    head = draw.draw(st.lists(st.sampled_from([*names, "7"]), max_size=3)) if names else ["7"]
    facts = small(seed)
    stratum, whole = program(rule_of(body, head), ARITIES)
    assert run(stratum, whole, facts, Random(figures)) == naive(stratum, facts)


@examples(60)
@given(bodies(), st.sampled_from(["count", "sum a", "max a"]), st.integers(0, 5), st.integers(0, 50))
def test_random_aggregates_under_random_statistics(body: list[str], op: str, seed: int, figures: int) -> None:
    if "a" in op and "a" not in bound_names(body):
        op = "count"
    key = [v for v in ("b",) if v in bound_names(body)]
    outer = "n(b), " if key else ""
    facts = small(seed)
    stratum, whole = program(f"p({', '.join([*key, 'r'])}) :- {outer}r = {op} : {{ {', '.join(body)} }}.", ARITIES)
    assert run(stratum, whole, facts, Random(figures)) == naive(stratum, facts)


@examples(60)
@given(bodies(), st.data(), st.integers(0, 5), st.integers(0, 50))
def test_random_recursion_under_random_statistics(body: list[str], draw: st.DataObject, seed: int, figures: int) -> None:
    """The body with some readings of e and f turned into those of the relation being defined."""
    positive = [draw.draw(st.sampled_from([x, "p" + x[1:]])) if x[:2] in ("e(", "f(") else x for x in body if " + " not in x]
    names = bound_names(positive)
    if not names or not any(x.startswith("p(") for x in positive):
        return
    head = [draw.draw(st.sampled_from(names)) for _ in range(2)]
    facts = small(seed)
    stratum, whole = program("p(a, b) :- f(a, b).\n" + rule_of(positive, head), ARITIES, recursive=True)
    assert run(stratum, whole, facts, Random(figures)) == naive(stratum, facts)


def small(seed: int) -> Relations:
    rng = random.Random(seed)
    rows: dict[str, set[Row]] = {n: {tuple(rng.randrange(4) for _ in range(a)) for _ in range(7)} for n, a in ARITIES.items()}
    return rows
