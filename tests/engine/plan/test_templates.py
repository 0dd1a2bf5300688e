"""Plans that are made once for strata of one shape are the ones that each stratum would get."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dlog.engine.compiler import compile_source
from dlog.engine.ir.nodes import Path, Scope
from dlog.engine.ir.rules import Program
from dlog.engine.plan.incremental import build, repeated, templates
from dlog.engine.plan.incremental.build import build_rounds_scope
from dlog.engine.plan.incremental.paths import RoundsPaths
from dlog.engine.plan.incremental.renaming import Named
from dlog.engine.plan.incremental.templates import Templates
from dlog.engine.plan.statistics import Declared
from dlog.engine.runtime.incremental.plan_changes.planner_statistics import RecordingStatistics
from dlog.grammar.source import Source
from tests.bench.shapes import SHAPES

SIZES = {"e": 3, "edge": 3, "named": 50}


def _plans(program: Program, sizes: Mapping[str, int]) -> list[Scope]:
    """Those that templates give, each compared with the planner's own."""
    made, found = Templates(program), []
    for stratum in program.strata:
        if stratum.rules:
            figures = RecordingStatistics(Declared(sizes))
            scope = made.scope(stratum, figures)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(build, "MIN_BODIES_WITH_SHAPES", 1 << 30)  # each body for itself
                own = build_rounds_scope(stratum, program, (again := RecordingStatistics(Declared(sizes))))
            assert repr(scope) == repr(own)
            assert figures.entries() == again.entries()
            found.append(scope)
    return found


def _of(text: str, sizes: Mapping[str, int] = SIZES) -> list[Scope]:
    return _plans(compile_source(Source(text)), sizes)


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The relations whose plans were not made anew."""
    names: list[str] = []
    fill = templates.Template.filled

    def noted(self: templates.Template, *args: object) -> Scope:
        scope = fill(self, *args)  # type: ignore[arg-type]
        names.extend(scope.relations)
        return scope

    monkeypatch.setattr(templates.Template, "filled", noted)
    return names


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_plans_are_the_planner_s_own(shape: str) -> None:
    _of(SHAPES[shape](60))


def test_bodies_of_one_shape_in_a_large_stratum_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    entered = repeated._Paths.entered

    def noted(self: repeated._Paths, named: Named, paths: RoundsPaths, rule: int) -> tuple[Path, ...]:
        made.append(rule)
        return entered(self, named, paths, rule)

    monkeypatch.setattr(repeated._Paths, "entered", noted)
    _of(SHAPES["one_head"](40))
    assert len(made) == 38  # not the first one, which compares with zero, nor the next


@pytest.mark.parametrize(
    "condition", ["!f(y, _)", "y = count : { f(x, _) }", "f(_, _)", "!f(_, _)", "0 < count : { f(_, _), !e(_, _) }"]
)
def test_bodies_of_a_large_stratum_share_a_temporary(condition: str) -> None:
    rules = "".join(f"p(x) :- e(x, y), {condition}, x > {i}.\n" for i in range(1, 20))
    head = ".decl e(x: number, y: number)\n.input e\n.decl f(x: number, y: number)\n.input f\n.decl p(x: number)\n"
    (scope,) = _of(head + rules, {"e": 10, "f": 10})
    assert 1 <= len(scope.temporaries) + len(scope.reductions) <= 3


def test_one_plan_serves_strata_that_differ_in_names_and_constants(filled: list[str]) -> None:
    _of(
        ".decl e(x: number, y: number)\ne(1, 2).\n"
        ".decl f(x: number, y: number)\nf(1, 2).\n"
        ".decl a(x: number, y: number)\na(x, y + 5) :- e(x, z), e(z, y), x > 3.\n"
        ".decl b(x: number, y: number)\nb(x, y + 7) :- f(x, z), f(z, y), x > 4.\n",
        {"e": 10, "f": 10},
    )
    assert filled == ["b"]


def test_other_figures_need_another_plan(filled: list[str]) -> None:
    text = (
        ".decl e(x: number, y: number)\n.input e\n.decl f(x: number, y: number)\n.input f\n.decl s(x: number)\n.input s\n"
        ".decl a(x: number)\na(y) :- e(x, y), s(x).\n.decl b(x: number)\nb(y) :- f(x, y), s(x).\n"
    )
    _of(text, {"e": 10, "f": 10, "s": 100})
    assert filled == ["b"]
    filled.clear()
    _of(text, {"e": 10, "f": 1000, "s": 100})
    assert filled == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("a(x / 2) :- e(x, _), x > 2.", "b(x / 0) :- e(x, _), x > 0.", id="a divisor of zero"),
        pytest.param("a(x) :- e(x, y), x > 3, y < 3.", "b(x) :- e(x, y), x > 3, y < 4.", id="constants that are equal"),
        pytest.param("a(x) :- e(x, y), f(y, x).", "b(x) :- f(x, y), f(y, x).", id="a relation that is read twice"),
        pytest.param("a(x) :- e(x, y), f(y, x).", "b(x) :- e(x, y), f(x, y).", id="variables elsewhere"),
        pytest.param("a(x) :- e(x, y), g(y, x).", "b(x) :- e(x, y), f(y, x).", id="a relation that copies another"),
        pytest.param("a(x) :- e(x, y), f(y, x).", "b(x) :- f(x, y), e(y, x).", id="names in another order"),
    ],
)
def test_what_the_planner_tells_apart_is_of_another_shape(filled: list[str], one: str, other: str) -> None:
    _of(
        ".decl e(x: number, y: number)\n.input e\n.decl f(x: number, y: number)\n.input f\n"
        ".decl g(x: number, y: number)\ng(x, y) :- e(y, x).\n"
        f".decl a(x: number)\n{one}\n.decl b(x: number)\n{other}\n",
        {"e": 10, "f": 10},
    )
    assert "b" not in filled
