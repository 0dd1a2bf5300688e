"""Plans over rounds: golden text, the nudge and what goes wrong without it, what is refused, promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from dlog.engine.compiler import compile_source
from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.nodes import AntiJoin, Extend, Filter, HalfJoin, Insert, LookUp, Scan, Scope, SemiJoin, Unit
from dlog.engine.ir.nodes import Path as DeltaPath
from dlog.engine.ir.rules import Lattice
from dlog.engine.plan.incremental import build
from dlog.engine.plan.incremental.build import NotIncremental, build_rounds_scope, explain_maintenance
from dlog.engine.plan.incremental.check import check_rounds
from dlog.engine.plan.incremental.paths import FEW_ROWS
from dlog.engine.plan.incremental.repeated import CanonicalOrders
from dlog.engine.plan.incremental.thresholds import weighted
from dlog.engine.plan.query import Query, canonical
from dlog.engine.plan.statistics import Declared
from dlog.grammar.diagnostics import InternalError
from dlog.grammar.preprocess import preprocess
from dlog.pipeline import compile_program
from tests.bench.shapes import SHAPES
from tests.engine.plan.maintain import Maintained, all_at_neu
from tests.engine.plan.rules_text import program

PROGRAMS = sorted((Path(__file__).resolve().parents[3] / "programs").glob("*/*.dl"))


def plan(text: str, recursive: bool = False) -> Scope:
    stratum, whole = program(text, recursive=recursive)
    return build_rounds_scope(stratum, whole, Declared())


def drawn(text: str, recursive: bool = False, lattices: Mapping[str, Lattice] | None = None) -> str:
    stratum, whole = program(text, recursive=recursive, lattices=lattices)
    return explain_maintenance(stratum, whole, Declared())


def all_paths(scope: Scope) -> list[DeltaPath]:
    return [*(p for stage in scope.stages for p in stage), *scope.enter, *scope.loop]


class Compared(CanonicalOrders):
    """Compares each query with the canonical one."""

    asked = 0

    def __call__(self, query: Query) -> Query:
        self.asked += 1
        found = super().__call__(query)
        assert found == canonical(query)
        return found


def test_the_canonical_order_is_found_once_for_queries_of_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = Compared()
    monkeypatch.setattr(build, "CanonicalOrders", lambda: orders)
    monkeypatch.setattr(build, "MIN_BODIES_WITH_SHAPES", 0)
    for text in (SHAPES[name](40) for name in ("groups", "mutual", "one_head", "wide", "analysis")):
        whole = compile_program(text)
        for stratum in whole.strata:
            build_rounds_scope(stratum, whole, Declared())
    assert len(orders._orders) < orders.asked // 4


# -------------------------------------------------------------------------------------------------------------- golden


def test_triangles_have_one_path_per_side_over_two_indexes() -> None:
    assert drawn("p(x, y, z) :- e(x, y), e(y, z), e(x, z).") == (
        "stratum p, over rounds\n"
        "  arrangements\n"
        "    e[0; 1]                                  2 paths\n"
        "    e[1; 0]                                  2 paths\n"
        "  enter: p(x, y, z) :- e(x, y), e(y, z), e(x, z).\n"
        "    changes e(x, z)\n"
        "    extend y by e[1; 0](y, z) at alt and e[0; 1](x, y) at alt ~0.64 rows each\n"
        "    insert p(x, y, z)\n"
        "  enter: p(x, y, z) :- e(x, y), e(y, z), e(x, z).\n"
        "    changes e(y, z)\n"
        "    extend x by e[1; 0](x, z) at neu and e[1; 0](x, y) at alt ~0.64 rows each\n"
        "    insert p(x, y, z)\n"
        "  enter: p(x, y, z) :- e(x, y), e(y, z), e(x, z).\n"
        "    changes e(x, y)\n"
        "    extend z by e[0; 1](x, z) at neu and e[0; 1](y, z) at neu ~0.64 rows each\n"
        "    insert p(x, y, z)\n"
    )


@pytest.mark.parametrize("rows", [0, 1, FEW_ROWS])
def test_few_rows_are_joined_as_they_are_connected(rows: int) -> None:
    stratum, whole = program("p(x, z) :- a(x), b(y), e(x, y), f(y, z).")
    scope = build_rounds_scope(stratum, whole, Declared(otherwise=rows))
    joins = [step.arrangement for path in all_paths(scope) for step in path.steps if isinstance(step, HalfJoin)]
    assert {(a.relation, a.key) for a in joins} == {("e", (0,)), ("e", (1,)), ("f", (0,))}


def test_few_rows_are_extended_where_readings_meet() -> None:
    stratum, whole = program("p(x, y, z) :- e(x, y), e(y, z), e(z, x), x < 9.")
    scope = build_rounds_scope(stratum, whole, Declared(otherwise=FEW_ROWS))
    steps = [{type(step) for step in path.steps} for path in all_paths(scope)]
    assert steps == [{Extend, Filter}] * 3


def test_linear_closure_enters_by_edges_and_loops_by_paths() -> None:
    assert drawn("p(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).", recursive=True) == (
        "stratum p, recursive, over rounds and iterations\n"
        "  arrangements\n"
        "    e[0]                                     1 path\n"
        "    p[1]                                     1 path\n"
        "  enter: p(x, y) :- e(x, y).\n"
        "    changes e(x, y)\n"
        "    insert p(x, y)\n"
        "  enter: p(x, z) :- p(x, y), e(y, z).\n"
        "    changes e(y, z)\n"
        "    join p[1](x, y) at alt                       ~32 rows each\n"
        "    insert p(x, z)                               an iteration later\n"
        "  loop: p(x, z) :- p(x, y), e(y, z).\n"
        "    changes p(x, y)\n"
        "    join e[0](y, z) at neu                       ~8 rows each\n"
        "    insert p(x, z)                               an iteration later\n"
    )


def test_nonlinear_closure_meets_itself_on_both_sides_of_the_change() -> None:
    assert drawn("p(x, y) :- e(x, y).\np(x, z) :- p(x, y), p(y, z).", recursive=True) == (
        "stratum p, recursive, over rounds and iterations\n"
        "  arrangements\n"
        "    p[0]                                     1 path\n"
        "    p[1]                                     1 path\n"
        "  enter: p(x, y) :- e(x, y).\n"
        "    changes e(x, y)\n"
        "    insert p(x, y)\n"
        "  loop: p(x, z) :- p(x, y), p(y, z).\n"
        "    changes p(y, z)\n"
        "    join p[1](x, y) at alt                       ~32 rows each\n"
        "    insert p(x, z)                               an iteration later\n"
        "  loop: p(x, z) :- p(x, y), p(y, z).\n"
        "    changes p(x, y)\n"
        "    join p[0](y, z) at neu                       ~32 rows each\n"
        "    insert p(x, z)                               an iteration later\n"
    )


def test_negated_atoms_are_seeds_and_open_ones_ask_a_temporary() -> None:
    assert drawn("p(x) :- n(x), !f(x, _), !m(x).") == (
        "stratum p, over rounds\n"
        "  stage 1: p(x) :- n(x), !f(x, _), !m(x).\n"
        "    changes f(x, _)\n"
        "    insert @1(x)\n"
        "  enter: p(x) :- n(x), !f(x, _), !m(x).\n"
        "    changes not @1(x)\n"
        "    if not m(x) at alt\n"
        "    if n(x) at alt\n"
        "    insert p(x)\n"
        "  enter: p(x) :- n(x), !f(x, _), !m(x).\n"
        "    changes not m(x)\n"
        "    if not @1(x) at neu\n"
        "    if n(x) at alt\n"
        "    insert p(x)\n"
        "  enter: p(x) :- n(x), !f(x, _), !m(x).\n"
        "    changes n(x)\n"
        "    if not @1(x) at neu\n"
        "    if not m(x) at neu\n"
        "    insert p(x)\n"
    )


def test_a_count_is_a_seed_twice_for_its_values_and_for_its_default() -> None:
    assert drawn("p(x, c) :- n(x), c = count : { e(x, _) }.") == (
        "stratum p, over rounds\n"
        "  stage 1: p(x, c) :- n(x), c = count : { e(x, _) }.\n"
        "    changes e(x, _)\n"
        "    accumulate @1[x] with count\n"
        "  enter: p(x, c) :- n(x), c = count : { e(x, _) }.\n"
        "    changes @1(x, c)\n"
        "    if n(x) at alt\n"
        "    insert p(x, c)\n"
        "  enter: p(x, c) :- n(x), c = count : { e(x, _) }.\n"
        "    changes missing @1(x, _)\n"
        "    let c = 0\n"
        "    if n(x) at alt\n"
        "    insert p(x, c)\n"
        "  enter: p(x, c) :- n(x), c = count : { e(x, _) }.\n"
        "    changes n(x)\n"
        "    let c = @1[x] or 0 at neu\n"
        "    insert p(x, c)\n"
    )


def test_shortest_paths_are_candidates_of_a_lattice() -> None:
    rule = "d(x, v) :- n(x), v = min c : { s(x), c = 0 ; d(y, b), w(y, x, l), c = b + l }."
    assert drawn(rule, True, {"d": Lattice("d", Dominance.LEAST, 1)}) == (
        "stratum d, recursive, over rounds and iterations\n"
        "  d keeps the least value of column 1\n"
        "  arrangements\n"
        "    d[0]                                     2 paths\n"
        "    w[0]                                     1 path\n"
        "    w[1]                                     1 path\n"
        f"  enter: {rule}\n"
        "    changes s(x)\n"
        "    let c = 0\n"
        "    if n(x) at alt\n"
        "    insert d(x, c)                               small values first\n"
        f"  enter: {rule}\n"
        "    changes n(x)\n"
        "    let c = 0\n"
        "    if s(x) at neu\n"
        "    insert d(x, c)                               small values first\n"
        f"  enter: {rule}\n"
        "    changes n(x)\n"
        "    join w[1](y, x, l) at alt                    ~64 rows each\n"
        "    join d[0](y, b) at alt                       ~4 rows each\n"
        "    let c = (b + l)\n"
        "    insert d(x, c)                               an iteration later, small values first\n"
        f"  enter: {rule}\n"
        "    changes w(y, x, l)\n"
        "    if n(x) at neu\n"
        "    join d[0](y, b) at alt                       ~4 rows each\n"
        "    let c = (b + l)\n"
        "    insert d(x, c)                               an iteration later, small values first\n"
        f"  loop: {rule}\n"
        "    changes d(y, b)\n"
        "    join w[0](y, x, l) at neu                    ~1 rows each\n"
        "    let c = (b + l)\n"
        "    if n(x) at neu\n"
        "    insert d(x, c)                               an iteration later, small values first\n"
    )


# ----------------------------------------------------------------------------------------------------------- the nudge


def inserted(*edges: tuple[int, int]) -> dict[str, list[tuple[tuple[int, int], int]]]:
    return {"e": [(edge, 1) for edge in edges]}


def test_three_sides_at_once_make_one_triangle() -> None:
    _, whole = program("p(x, y, z) :- e(x, y), e(y, z), e(x, z).")
    maintained = Maintained(whole)
    maintained.commit(inserted((1, 2), (1, 3), (2, 3)))
    assert maintained.derivations("p", (1, 2, 3)) == 1


def test_without_the_nudge_three_sides_at_once_make_three_triangles() -> None:
    stratum, whole = program("p(x, y, z) :- e(x, y), e(y, z), e(x, z).")
    maintained = Maintained(whole, scopes=[all_at_neu(build_rounds_scope(stratum, whole, Declared()))])
    maintained.commit(inserted((1, 2), (1, 3), (2, 3)))
    assert maintained.derivations("p", (1, 2, 3)) == 3


def test_derivations_of_a_self_join_of_five_are_counted_once_each() -> None:
    _, whole = program("p(a) :- e(a, b), e(b, c), e(c, d), e(d, f), e(f, g).", recursive=False)
    maintained = Maintained(whole)
    maintained.commit(inserted((0, 1), (1, 0), (1, 1)), inserted((0, 0)))
    maintained.commit({"e": [((0, 0), -1), ((1, 1), -1)]})
    assert maintained.rows("p") == {(0,), (1,)}


def test_a_self_join_counts_the_walks_of_a_complete_graph() -> None:
    _, whole = program("p(a, b, c, d) :- e(a, b), e(b, c), e(c, d).")
    maintained = Maintained(whole)
    maintained.commit(inserted((0, 1), (1, 0), (1, 1), (0, 0)))
    assert {maintained.derivations("p", row) for row in maintained.rows("p")} == {1}
    assert len(maintained.rows("p")) == 2**4


# ------------------------------------------------------------------------------------------------------------ the parts


def test_only_the_last_part_meets_all_others_after_the_change() -> None:
    scope = plan("p(x) :- n(x), e(x, y), f(y, x), !m(y), c = count : { g(x) }, c < 3.")
    views = [[s.view for s in p.steps if isinstance(s, HalfJoin | SemiJoin | AntiJoin | LookUp)] for p in scope.enter]
    assert all("alt" in v for v in views[:-1])
    assert set(views[-1]) == {"neu"}


def test_the_last_part_is_where_a_full_evaluation_starts() -> None:
    stratum, whole = program("p(x, z) :- big(x, y), small(x), medium(y, z).")
    scope = build_rounds_scope(stratum, whole, Declared({"small": 10, "medium": 10_000, "big": 1_000_000}))
    assert [p.seed.relation for p in scope.enter if isinstance(p.seed, Scan)][-1] == "small"


def test_imports_come_before_variables() -> None:
    scope = plan("r(x, y) :- e(x, y).\nr(x, z) :- r(x, y), r(y, z), e(x, w), !f(w, z).", recursive=True)
    assert {s.relation for p in scope.enter if isinstance(s := p.seed, Scan)} == {"e", "f"}
    assert {s.relation for p in scope.loop if isinstance(s := p.seed, Scan)} == {"r"}
    assert [p.advance for p in scope.enter] == [0, 1, 1]
    assert [p.advance for p in scope.loop] == [1, 1]


def test_a_body_that_holds_of_nothing_begins_with_the_unit() -> None:
    assert isinstance(plan("p(7) :- !n(3).").enter[0].seed, Unit)
    assert isinstance(plan("p(c) :- c = count : { n(_) }.").enter[0].seed, Unit)
    assert not any(isinstance(p.seed, Unit) for p in plan("p(x) :- n(x), !m(x).").enter)
    assert not any(isinstance(p.seed, Unit) for p in plan("p(c) :- c = max x : { n(x) }.").enter)


def test_a_variable_whose_row_is_known_is_joined_with_its_times() -> None:
    scope = plan("r(x, y) :- e(x, y).\nr(y, x) :- r(x, y), r(y, y), n(x).", recursive=True)
    assert not any(isinstance(s, SemiJoin) and s.relation == "r" for p in all_paths(scope) for s in p.steps)


def test_projections_are_shared() -> None:
    scope = plan("p(x) :- n(x), !f(x, _).\np(y) :- m(y), c = count : { n(y), !f(y, _) }, c > 0.")
    assert len(scope.temporaries) == 1


def test_what_a_body_only_asks_about_does_not_multiply() -> None:
    scope = plan("p(x) :- e(x, _), f(x, _).")
    assert [len(t.kinds) for t in scope.temporaries] == [1, 1]
    assert plan("p(x) :- e(x, _).").temporaries == ()
    assert plan("p(x, y, z) :- e(x, y), f(x, z).").temporaries == ()


def test_every_match_of_an_aggregate_counts() -> None:
    scope = plan("p(x, c) :- n(x), c = count : { e(x, y), f(y, z) }.")
    assert scope.temporaries == ()
    assert not any(isinstance(s, SemiJoin) for p in scope.stages[0] for s in p.steps)


def test_a_value_that_is_always_there_and_not_used_is_not_looked_up() -> None:
    scope = plan("p(x) :- n(x), c = count : { e(x, _) }.")
    assert [s.relation for p in scope.enter if isinstance(s := p.seed, Scan)] == ["n"]


def test_cyclic_bodies_are_extended_whatever_changes() -> None:
    scope = plan("p(a, b, c, d) :- e(a, b), e(b, c), e(c, d), e(d, a).")
    assert all(any(isinstance(s, Extend) for s in p.steps) for p in scope.enter)


# --------------------------------------------------------------------------------------------------------------- risks


def test_a_division_sees_no_row_that_a_negation_excludes_in_the_same_round() -> None:
    _, whole = program("p(x, z) :- e(x, y), !n(y), z = x / y.")
    maintained = Maintained(whole)
    maintained.commit({"e": [((6, 0), 1), ((6, 2), 1)], "n": [((0,), 1)]})
    assert maintained.rows("p") == {(6, 3)}


def test_a_division_in_the_head_sees_no_row_that_never_was() -> None:
    _, whole = program("p(x / y) :- e(x, y), f(x, y).")
    maintained = Maintained(whole)
    maintained.commit({"e": [((6, 2), 1)], "f": [((6, 0), 1), ((6, 2), 1)]})
    maintained.commit({"e": [((6, 0), 1)], "f": [((6, 0), -1)]})
    assert maintained.rows("p") == {(3,)}


def test_a_sum_of_quotients_keeps_its_multiplicities() -> None:
    _, whole = program("p(s) :- s = sum z : { t(x, y, _), !n(y), z = x / y }.")
    maintained = Maintained(whole)
    maintained.commit({"t": [((6, 2, 0), 1), ((6, 2, 1), 1), ((6, 0, 1), 1)], "n": [((0,), 1)]})
    assert maintained.rows("p") == {(6,)}
    maintained.commit({"t": [((6, 2, 1), -1)]})
    assert maintained.rows("p") == {(3,)}


def test_a_value_that_others_ask_for_is_found_by_an_index() -> None:
    bodies = ("e(x, y), z = x / y, n(z)", "e(x, y), z = x * y, !n(z), m(x)", "n(x), rec(r), r = [x, _]")
    for body in bodies:
        scope = plan(f"p(x) :- {body}.")
        assert len(scope.temporaries) == 1
        assert all(s.arrangement.key for p in all_paths(scope) for s in p.steps if isinstance(s, HalfJoin))
    assert plan("p(x) :- e(x, y), z = x * y, f(x, z).").temporaries == ()


def test_sums_and_differences_are_solved_from_either_side() -> None:
    scope = plan("p(x) :- e(x, t), u = 7 - t, f(u, _), g(u - 1).".replace("g(u - 1)", "v = u - 1, g(v)"))
    assert [len(t.kinds) for t in scope.temporaries] == [1]
    assert all(s.arrangement.key for p in all_paths(scope) for s in p.steps if isinstance(s, HalfJoin))


def test_a_division_over_a_join_of_the_recursion_is_computed_anew() -> None:
    text = "r(x) :- n(x).\nr(z) :- r(x), e(x, y), z = x / y."
    with pytest.raises(NotIncremental, match="a functor that can stop the run"):
        plan(text, recursive=True)
    assert drawn(text, recursive=True).startswith("stratum r, computed anew in each round\n  a functor")
    assert plan("r(x) :- n(x).\nr(z) :- r(x), z = x / 2, e(x, z).", recursive=True).loop


# ------------------------------------------------------------------------------------------------------------ promises


def broken(text: str, recursive: bool, match: str, **changes: object) -> None:
    """The scope with its first `enter` path changed is refused."""
    stratum, whole = program(text, recursive=recursive)
    scope = build_rounds_scope(stratum, whole, Declared())
    first = replace(scope.enter[0], **changes)  # type: ignore[arg-type]
    with pytest.raises(InternalError, match=match):
        check_rounds(replace(scope, enter=(first, *scope.enter[1:])), whole)


def test_broken_promises_are_named() -> None:
    text = "p(x, y) :- e(x, y)."
    binds = ((0, 0), (1, 1))
    broken(text, False, "a seed scans all rows", seed=Scan("e", binds))
    broken(text, False, "the iteration of the results is wrong", advance=1)
    broken(text, False, "derivations of rows are counted", sink=Insert("p", plan(text).enter[0].sink.terms, distinct=False))  # type: ignore[union-attr]
    broken(text, False, "`e` is read at no time", steps=(SemiJoin("e", plan(text).enter[0].sink.terms),))  # type: ignore[union-attr]
    broken(text, False, "an argument open", steps=(SemiJoin("e", (None, None), "alt"),))
    broken(text, False, "a default is given for what is no reduction", seed=Scan("e", binds, changes=True, missing=True))
    loop = "p(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z)."
    broken(loop, True, "a path seeded by the scope's changes enters", seed=Scan("p", binds, changes=True), advance=1)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_every_program_is_maintained_but_for_what_alternates(path: Path) -> None:
    whole = weighted(compile_source(preprocess(path)))
    for stratum in (s for s in whole.strata if whole.alternating.isdisjoint(s.relations)):
        assert build_rounds_scope(stratum, whole, Declared()).model == ("partial" if stratum.recursive else "total")


def test_a_relation_with_rules_and_rows_of_its_own_keeps_what_either_gives() -> None:
    _, whole = program("p(x, y) :- e(x, y).\np(x, z) :- p(x, y), p(y, z).", recursive=True)
    maintained = Maintained(whole)
    maintained.commit({"e": [((1, 2), 1)], "p": [((2, 3), 1), ((1, 2), 1)]})
    assert maintained.rows("p") == {(1, 2), (2, 3), (1, 3)}
    maintained.commit({"e": [((1, 2), -1)]}, {"p": [((1, 2), -1)]})
    assert maintained.rows("p", 2) == {(1, 2), (2, 3), (1, 3)}
    assert maintained.rows("p", 3) == {(2, 3)}
