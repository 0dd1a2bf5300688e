"""Aggregates over the same matches are filled by one path."""

from __future__ import annotations

import pytest

from dlog.engine.compiler import compile_source
from dlog.engine.ir.nodes import Accumulate, Scan, Scope
from dlog.engine.ir.rules import Variable
from dlog.engine.plan.incremental.build import plan_of_rounds
from dlog.engine.plan.one_pass import in_one_pass
from dlog.engine.plan.static.build import build_scope
from dlog.engine.plan.statistics import Declared
from dlog.grammar.preprocess import preprocess
from tests.engine.plan.rules_text import program


def filled(scope: Scope) -> list[list[list[str]]]:
    """The reductions that each path of each stage fills."""
    return [[[sink.relation for sink in path.sinks] for path in stage] for stage in scope.stages]


def static(text: str) -> Scope:
    stratum, whole = program(text)
    return in_one_pass(build_scope(stratum, whole, Declared()))


def rounds(text: str) -> Scope:
    stratum, whole = program(text)
    return plan_of_rounds(stratum, whole, Declared())


SAME = (
    "p(x, a, b, c) :- e(x, _), a = count : { e(x, y), f(y, z), z > 3 }, "
    "b = sum v : { e(x, w), f(w, v), v > 3 }, c = max w : { e(x, w), f(w, u), u > 3 }."
)


def test_one_path_fills_the_aggregates_of_one_body() -> None:
    assert filled(static(SAME)) == [[["@1", "@2", "@3"]]]


def test_over_rounds_each_changing_part_has_one_path() -> None:
    assert filled(rounds(SAME)) == [[["@1", "@2", "@3"], ["@1", "@2", "@3"]]]


def test_columns_that_only_one_of_them_binds_are_bound_once() -> None:
    scope = rounds("p(x, a, b) :- e(x, _), a = sum y : { w(x, y, _, u), u > 1 }, b = sum v : { w(x, _, v, t), t > 1 }.")
    (path,), _ = scope.stages
    (also,) = path.also
    assert isinstance(path.seed, Scan) and isinstance(path.sink, Accumulate)
    bound = {column: Variable(variable) for column, variable in path.seed.binds}
    assert len(set(bound.values())) == 4
    assert (path.sink.key, path.sink.value) == ((bound[0],), bound[1])
    assert (also.key, also.value) == ((bound[0],), bound[2])


@pytest.mark.parametrize(
    "other",
    [
        "b = sum v : { e(x, w), f(w, v), v > 4 }",
        "b = sum v : { e(x, w), f(v, w), v > 3 }",
        "b = sum v : { e(w, x), f(w, v), v > 3 }",
        "b = sum v : { e(x, w), f(w, v), w > 3 }",
        "b = sum v : { e(x, w), f(w, v), v >= 3 }",
        "b = sum v : { e(x, w), f(w, v), v > 3, !e(v, v) }",
        "b = sum v : { e(x, w), g(w, v), v > 3 }",
    ],
)
def test_bodies_that_differ_have_paths_of_their_own(other: str) -> None:
    text = f"p(x, a, b) :- e(x, _), a = count : {{ e(x, y), f(y, z), z > 3 }}, {other}."
    assert filled(static(text)) == [[["@1"]], [["@2"]]]


def test_what_gives_another_value_each_time_is_computed_for_each() -> None:
    text = ".decl e(x: number, y: number) .decl p(a: number, b: number) e(1, 2).\n"
    text += "p(a, b) :- a = sum y * autoinc() : { e(_, y) }, b = max y * autoinc() : { e(_, y) }."
    whole = compile_source(preprocess(text))
    assert filled(in_one_pass(build_scope(whole.strata[-1], whole, Declared()))) == [[["@1"]], [["@2"]]]
