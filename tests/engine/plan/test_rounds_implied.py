"""What a body says anyway is not asked again: which readings go, which stay, and that the rows remain those of the program."""

from __future__ import annotations

import pytest

from dlog.engine.compiler import compile_source
from dlog.engine.ir.nodes import Accumulate, Scan, Scope
from dlog.engine.ir.rules import Kind, Program, Variable
from dlog.engine.plan.incremental.build import build_rounds_scope
from dlog.engine.plan.incremental.implied import without_implied
from dlog.engine.plan.query import Query, Reading
from dlog.engine.plan.statistics import Declared
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from tests.engine.plan.maintain import Maintained
from tests.engine.plan.test_rounds_law import AT_ONCE, commit, stream
from tests.naive import evaluate

DECLARATIONS = """
.decl e(x: number, y: number)
.input e
.decl n(x: number)
.input n
.decl node(x: number)
.decl p(x: number, y: number)
"""
BOTH_ENDS = "node(x) :- e(x, _).\nnode(y) :- e(_, y).\n"


def compiled(text: str) -> Program:
    return compile_source(Source(DECLARATIONS + text))


def scope_of(text: str, relation: str = "p") -> Scope:
    program = compiled(text)
    stratum = next(s for s in program.strata if relation in s.relations)
    return build_rounds_scope(stratum, program, Declared())


def seeds(scope: Scope) -> list[str]:
    return sorted(p.seed.relation for p in (*scope.enter, *scope.loop) if isinstance(p.seed, Scan))


# ------------------------------------------------------------------------------------------------------------- readings


@pytest.mark.parametrize("body", ["node(x), e(x, y)", "node(y), e(x, y)", "node(x), node(y), e(x, y)", "node(_), e(x, y)"])
def test_a_reading_that_follows_from_another_one_is_not_read(body: str) -> None:
    assert seeds(scope_of(f"{BOTH_ENDS}p(x, y) :- {body}.")) == ["e"]


@pytest.mark.parametrize(
    "rules",
    [
        "node(x) :- e(x, _).\np(x, y) :- node(y), e(x, y).",
        "node(x) :- e(x, _), n(x).\np(x, y) :- node(x), e(x, y).",
        "node(x) :- e(x, x).\np(x, y) :- node(x), e(x, y).",
        "node(x) :- e(x, 3).\np(x, y) :- node(x), e(x, y).",
        "node(x + 1) :- e(x, _).\np(x, y) :- node(x), e(x, y).",
        "node(x) :- !e(x, 3), n(x).\np(x, y) :- node(x), e(x, y).",
    ],
)
def test_a_reading_that_does_not_follow_stays(rules: str) -> None:
    assert "node" in seeds(scope_of(rules))


def test_a_constant_is_matched() -> None:
    rule = "node(x) :- e(x, 3).\n"
    assert seeds(scope_of(f"{rule}p(x, 0) :- node(x), e(x, 3).")) == ["e"]
    assert "node" in seeds(scope_of(f"{rule}p(x, 0) :- node(x), e(x, 4)."))


def test_a_relation_of_the_same_recursion_comes_later_and_stays() -> None:
    rules = "node(x) :- e(x, _).\nnode(y) :- p(y, _).\np(x, y) :- node(x), e(x, y)."
    assert "node" in seeds(scope_of(rules))


def test_an_anonymous_argument_stays_where_each_match_counts() -> None:
    program = compiled(".decl t(x: number, y: number)\nt(x, y) :- e(x, y).\np(x, y) :- t(x, y).")
    x, y = Variable(0), Variable(1)
    whole, open_one = Reading("t", (x, y)), Reading("t", (x, None))
    edge = Reading("e", (x, y))

    def left(reading: Reading, bag: bool) -> tuple[Reading, ...]:
        query = Query((reading, edge), (), (x,), bag, (Kind.NUMBER, Kind.NUMBER))
        return without_implied(query, program, frozenset(), {}).readings

    assert left(whole, bag=True) == left(whole, bag=False) == left(open_one, bag=False) == (edge,)
    assert left(open_one, bag=True) == (open_one, edge)


def test_a_lattice_does_not_keep_all_that_its_rule_says() -> None:
    text = ".decl d(x: number, y: number)\nd(x, m) :- n(x), m = min c : { e(x, c) ; d(y, b), e(y, x), c = b + 1 }.\n"
    assert seeds(scope_of(text + "p(x, y) :- d(x, y), e(x, y).")) == ["d", "e"]


# --------------------------------------------------------------------------------------------------------------- groups


@pytest.mark.parametrize(
    "aggregate", ["count : { e(x, _) }", "sum y : { e(x, y) }", "min y : { e(x, y) }", "mean y : { e(x, y) }"]
)
def test_an_aggregate_of_the_rows_that_name_its_groups_is_its_relation(aggregate: str) -> None:
    kind = "float" if "mean" in aggregate else "number"
    target = "to_float(y)" if "mean" in aggregate else "y"
    text = f".decl q(x: number, c: {kind})\nq(x, c) :- e(x, _), c = {aggregate.replace(' y ', f' {target} ')}."
    scope = scope_of(text, "q")
    assert [r.relation for r in scope.reductions] == ["q"]
    assert scope.enter == () and scope.temporaries == ()


def test_a_total_of_rows_that_must_be_there_is_its_relation() -> None:
    text = ".decl q(c: number)\nq(c) :- n(_), c = count : { n(_) }."
    assert [r.relation for r in scope_of(text, "q").reductions] == ["q"]
    text = ".decl q(c: number)\nq(c) :- c = count : { n(_) }."
    assert [r.relation for r in scope_of(text, "q").reductions] == ["@1"]


@pytest.mark.parametrize(
    "rules",
    [
        "p(x, c) :- e(x, _), c = count : { e(x, _) }.\np(3, 4).",
        "p(x, c) :- e(x, _), c = count : { e(x, _) }.\np(x, 0) :- n(x).",
        "p(c, x) :- e(x, _), c = count : { e(x, _) }.",
        "p(x, c) :- e(x, _), c = count : { e(x, _) }, c > 1.",
        ".input p\np(x, c) :- e(x, _), c = count : { e(x, _) }.",
    ],
)
def test_a_relation_that_has_more_or_less_than_the_groups_is_filled_from_them(rules: str) -> None:
    scope = scope_of(rules)
    assert [r.relation for r in scope.reductions] == ["@1"]
    assert "@1" in seeds(scope)


def test_a_group_that_may_be_empty_keeps_its_default() -> None:
    for body in ("e(_, x), c = count : { e(x, _) }", "e(x, _), c = count : { e(x, y), n(y) }", "e(x, c), c = count : { n(x) }"):
        scope = scope_of(f"p(x, c) :- {body}.")
        assert any(isinstance(p.seed, Scan) and p.seed.missing for p in scope.enter), body


def test_a_group_that_cannot_be_empty_has_none() -> None:
    scope = scope_of("p(x, c) :- e(x, y), n(y), c = count : { e(x, _) }.")
    assert not any(isinstance(p.seed, Scan) and p.seed.missing for p in scope.enter)
    assert "e" in seeds(scope)


def test_a_reading_that_binds_what_is_used_stays() -> None:
    assert "e" in seeds(scope_of("p(y, c) :- e(x, y), c = count : { e(x, _) }."))
    assert "e" in seeds(scope_of("p(x, c) :- e(x, c), c = count : { e(x, _) }."))


def test_relations_above_read_the_aggregate_in_its_place() -> None:
    text = ".decl degree(x: number, d: number)\ndegree(x, d) :- e(x, _), d = count : { e(x, _) }.\n"
    (stage,) = scope_of(text + "p(d, c) :- degree(_, d), c = count : { degree(_, d) }.").stages
    assert [(p.seed.relation, type(p.sink)) for p in stage if isinstance(p.seed, Scan)] == [("degree", Accumulate)]


# ------------------------------------------------------------------------------------------------------------------ law

DEGREE = ".decl degree(x: number, d: number)\ndegree(x, d) :- e(x, _), d = count : { e(x, _) }.\n"
PROGRAMS = [
    BOTH_ENDS + "p(x, z) :- node(x), e(x, y), node(y), e(y, z), !n(z).",
    BOTH_ENDS + "p(x, c) :- node(x), c = count : { node(y), e(x, y), node(x) }.",
    BOTH_ENDS + "p(x, y) :- e(x, y).\np(x, z) :- node(z), p(x, y), e(y, z), node(x).",
    BOTH_ENDS + "p(x, d) :- node(x), d = min c : { n(x), c = 0 ; p(y, b), e(y, x), c = b + 1 }.",
    "node(x) :- e(x, 3).\np(x, y) :- node(x), e(x, y), e(x, 3).",
    "node(x) :- n(x).\n.input node\np(x, y) :- node(x), n(x), e(x, y).",
    DEGREE + "p(d, c) :- degree(_, d), c = count : { degree(_, d) }.",
    DEGREE + "p(x, d) :- degree(x, d), !degree(_, x).",
    DEGREE + "p(x, y) :- e(x, y), degree(x, d), degree(y, d).",
    "p(x, c) :- e(x, _), e(_, x), c = sum y : { e(x, y) }.",
    "p(x, c) :- e(x, y), n(y), c = min z : { e(x, z) }.",
    "p(x, c) :- e(x, 2), c = count : { e(x, _) }.",
    "p(x, c) :- e(x, x), n(x), c = count : { e(y, y), y = x }.",
    "p(c, d) :- n(c), e(c, _), c = count : { e(c, _) }, d = max y : { e(c, y) }.",
    "p(c, c) :- n(_), c = count : { n(_) }.",
]


@pytest.mark.slow
@AT_ONCE
@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_asked_is_not_missed(text: str, seed: int, at_once: bool) -> None:
    program = compiled(text)
    inputs = {"e": 2, "n": 1} | ({"node": 1} if ".input node" in text else {})
    batch, states = stream(seed, 6, inputs)
    maintained = Maintained(program)
    commit(maintained, batch, at_once)
    for number, given in enumerate(states, 1):
        expected = evaluate(parse(Source(DECLARATIONS + text)), {name: sorted(rows) for name, rows in given.items()})
        for name in ("p", *(["degree"] if DEGREE in text else [])):
            assert maintained.rows(name, number) == expected[name]
