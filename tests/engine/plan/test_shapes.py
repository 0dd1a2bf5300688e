"""The shape of plans: which paths, which operators, in which order, over which arrangements."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping

import pytest

from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.nodes import Extend, Filter, HalfJoin, Insert, LookUp, Scan, Scope, SemiJoin, Unit, arrangements
from dlog.engine.ir.rules import Lattice
from dlog.engine.plan.check import check
from dlog.engine.plan.explain import explain
from dlog.engine.plan.static.build import build_scope
from dlog.engine.plan.statistics import Declared
from dlog.grammar.diagnostics import DlogError, InternalError
from tests.engine.plan.rules_text import program


class Sizes:
    """Statistics from (rows, distinct values of each column); columns are independent."""

    def __init__(self, **sizes: tuple[int, tuple[int, ...]]) -> None:
        self.sizes = sizes

    def rows(self, relation: str) -> int | None:
        return self.sizes[relation][0] if relation in self.sizes else None

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        if relation not in self.sizes:
            return None
        rows, values = self.sizes[relation]
        product = 1
        for c in columns:
            product *= values[c]
        return float(min(rows, product))


def plan(text: str, recursive: bool = False, inputs: tuple[str, ...] = (), **sizes: tuple[int, tuple[int, ...]]) -> Scope:
    stratum, whole = program(text, recursive=recursive, inputs=inputs)
    return build_scope(stratum, whole, Sizes(**sizes))


def drawn(
    text: str, recursive: bool = False, lattices: Mapping[str, Lattice] | None = None, **sizes: tuple[int, tuple[int, ...]]
) -> str:
    stratum, whole = program(text, recursive=recursive, lattices=lattices)
    return explain(build_scope(stratum, whole, Sizes(**sizes)), whole)


EDGE = (1_000_000, (100_000, 100_000))


def test_closure_is_one_delta_path_over_one_arrangement() -> None:
    assert drawn("path(x, y) :- e(x, y).\npath(x, z) :- path(x, y), e(y, z).", recursive=True, e=EDGE) == (
        "stratum path, recursive\n"
        "  arrangements\n"
        "    e[0]                                     1 path\n"
        "  enter: path(x, y) :- e(x, y).\n"
        "    scan e(x, y)\n"
        "    insert path(x, y)\n"
        "  loop: path(x, z) :- path(x, y), e(y, z).\n"
        "    changes path(x, y)\n"
        "    join e[0](y, z)                              ~10 rows each\n"
        "    insert path(x, z)\n"
    )


def test_nonlinear_closure_reads_earlier_atoms_at_neu_and_later_ones_at_alt() -> None:
    loop = plan("path(x, y) :- e(x, y).\npath(x, z) :- path(x, y), path(y, z).", recursive=True, e=EDGE).loop
    steps = [s for p in loop for s in p.steps]
    assert [(s.arrangement.key, s.view) for s in steps if isinstance(s, HalfJoin)] == [((0,), "alt"), ((1,), "neu")]


def test_a_triangle_is_extended_by_its_third_corner() -> None:
    (path,) = plan("p(x, y, z) :- e(x, y), e(y, z), e(x, z).", e=EDGE).enter
    assert path.seed == Scan("e", ((0, 0), (1, 1)), sorted_by=(0,))
    (extend,) = path.steps
    assert isinstance(extend, Extend)
    assert {(p.arrangement.key, p.arrangement.order, p.column) for p in extend.proposers} == {((0,), (1,), 1)}
    assert len(extend.proposers) == 2


def test_a_clique_of_four_meets_two_then_three_readings() -> None:
    (path,) = plan("p(a,b,c,d) :- e(a,b), e(a,c), e(a,d), e(b,c), e(b,d), e(c,d).", e=EDGE).enter
    assert [len(s.proposers) for s in path.steps if isinstance(s, Extend)] == [2, 3]


def test_a_cycle_of_four_joins_once_and_then_meets() -> None:
    (path,) = plan("p(a,b,c,d) :- e(a,b), e(b,c), e(c,d), e(d,a).", e=EDGE).enter
    assert [type(s) for s in path.steps] == [HalfJoin, Extend]


def test_a_cyclic_body_in_recursion_is_extended_in_its_delta_paths() -> None:
    text = "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), t(y, z), f(x, z), f(y, z)."
    loop = plan(text, recursive=True, e=EDGE, f=EDGE).loop
    assert any(isinstance(s, Extend) for p in loop for s in p.steps)


def test_a_functional_side_of_a_triangle_is_joined_not_extended() -> None:
    text = "r(x, y) :- e(x, y).\nr(y, z) :- r(x, y), f(y, z), e(x, z)."
    (path,) = plan(text, recursive=True, e=EDGE, f=(100_000, (100_000, 10))).loop
    assert [type(s) for s in path.steps] == [HalfJoin, SemiJoin]


def test_lookups_by_the_same_columns_share_one_arrangement_whatever_their_order() -> None:
    text = "r(x, y) :- a(x, y).\nr(y, z) :- r(x, y), t(x, y, z).\nr(y, z) :- r(y, x), t(x, y, z)."
    scope = plan(text, recursive=True, a=(9, (9, 9)), t=(999, (9, 9, 9)))
    assert [a.key for a in arrangements(scope) if a.relation == "t"] == [(0, 1)]


def test_a_half_join_uses_the_sorted_arrangement_of_an_extension() -> None:
    scope = plan("p(a,b,c,d) :- e(a,b), e(b,c), e(c,d), e(d,a).", e=EDGE)
    assert all(a.order for a in arrangements(scope))


def test_a_reading_that_only_asks_is_a_semijoin() -> None:
    (path,) = plan("p(x, y) :- n(x, y), e(x, z).", n=EDGE, e=EDGE).enter
    assert [(s.relation, s.args[1:]) for s in path.steps if isinstance(s, SemiJoin)] == [("e", (None,))]


def test_a_count_does_not_lose_its_multiplicities_to_a_semijoin() -> None:
    ((path,),) = plan("p(x, c) :- n(x), c = count : { n(x), e(x, y) }.", n=(10, (10,)), e=EDGE).stages
    assert not any(isinstance(s, SemiJoin) and s.relation == "e" for s in path.steps)


def test_a_small_relation_filters_the_scan_of_a_large_one() -> None:
    (path,) = plan("p(x, y) :- s(x), e(x, y).", s=(10, (10,)), e=EDGE).enter
    assert isinstance(path.seed, Scan)
    assert (path.seed.relation, [type(s) for s in path.steps]) == ("e", [SemiJoin])


def test_an_arrangement_that_is_there_anyway_is_looked_up_by_a_small_seed() -> None:
    scope = plan("r(x) :- s(x).\nr(y) :- r(x), e(x, y).\nr(y) :- s(x), e(x, y).", recursive=True, s=(10, (10,)), e=EDGE)
    assert [p.seed.relation for p in scope.enter if isinstance(p.seed, Scan)] == ["s", "s"]


def test_a_constant_filters_a_scan_unless_an_arrangement_is_shared() -> None:
    (path,) = plan("p(y) :- e(5, y).", e=EDGE).enter
    assert isinstance(path.seed, Scan)
    assert [type(s) for s in path.steps] == [Filter]
    scope = plan("r(y) :- e(5, y).\nr(y) :- r(x), e(x, y).", recursive=True, e=EDGE)
    assert isinstance(scope.enter[0].seed, Unit)
    assert isinstance(scope.enter[0].steps[0], HalfJoin)


def test_a_selective_lookup_comes_before_one_that_multiplies() -> None:
    sizes = {"s": (100, (100,)), "wide": (10**6, (100, 10**6)), "narrow": (10**6, (10**6, 10**6))}
    text = "r(x, y) :- s(x), q(x, y).\nr(y, z) :- r(x, _), wide(x, z), narrow(x, y)."
    loop = plan(text, recursive=True, q=(100, (100, 100)), **sizes).loop
    assert [s.arrangement.relation for s in loop[0].steps if isinstance(s, HalfJoin)] == ["narrow", "wide"]


def test_rows_of_one_injective_rule_cannot_repeat() -> None:
    def distinct(text: str, inputs: tuple[str, ...] = ()) -> list[bool]:
        scope = plan(text, inputs=inputs, e=EDGE, n=(1000, (1000,)))
        return [p.sink.distinct for p in scope.enter if isinstance(p.sink, Insert)]

    assert distinct("p(x, y) :- e(x, y), n(x).") == [False]
    assert distinct("p(y, x, z) :- e(x, y), e(y, z).") == [False]
    assert distinct("p(x, y, z) :- e(x, y), z = x + y.") == [False]
    assert distinct("p(x, z) :- e(x, y), z = x + y.") == [True]
    assert distinct("p(x) :- e(x, _).") == [True]
    assert distinct("p(x, z) :- e(x, y), e(y, z).") == [True]
    assert distinct("p(x, y) :- e(x, y).\np(x, x) :- n(x).") == [True, True]
    assert distinct("p(x, y) :- e(x, y).", inputs=("p",)) == [True]


def test_a_correlated_aggregate_gets_its_outer_variables_from_a_temporary() -> None:
    scope = plan("p(x, c) :- n(x), c = count : { m(y), y < x }.", n=(10, (10,)), m=(10, (10,)))
    assert [t.relation for t in scope.temporaries] == ["@1"]
    assert [(r.relation, r.keys, r.op) for r in scope.reductions] == [("@2", ("number",), "count")]
    assert next(s for s in scope.enter[0].steps if isinstance(s, LookUp)).default == 0


def test_an_aggregate_is_restricted_to_the_few_groups_that_are_asked_for() -> None:
    text = "p(x, c) :- s(x), c = count : { e(x, y), e(y, z) }."
    few = plan(text, s=(10, (10,)), e=EDGE)
    assert [t.relation for t in few.temporaries] == ["@1"]
    many = plan(text, s=(100_000, (100_000,)), e=EDGE)
    assert many.temporaries == ()


def test_rules_that_ask_for_the_same_aggregate_share_it() -> None:
    text = "p(x, c) :- n(x), c = count : { e(x, y), y < x }.\np(b, d) :- m(b), d = count : { a < b, e(b, a) }."
    same = plan(text.replace("a < b, e(b, a)", "e(b, a), a < b"), n=(10, (10,)), m=(10, (10,)), e=EDGE)
    assert [r.relation for r in same.reductions] == ["@1"]
    other = plan(text.replace("a < b", "a > b"), n=(10, (10,)), m=(10, (10,)), e=EDGE)
    assert [r.relation for r in other.reductions] == ["@1", "@2"]


def test_an_aggregate_bound_by_the_recursion_only_is_computed_block_by_block() -> None:
    text = "r(x, 0) :- n(x).\nr(y, c) :- r(x, d), e(x, y), c = count : { n(z), z < d }."
    rule = "r(y, c) :- r(x, d), e(x, y), c = count : { n(z), z < d }."
    assert drawn(text, recursive=True, n=(10, (10,)), e=EDGE) == (
        "stratum r, recursive\n"
        "  arrangements\n"
        "    e[0]                                     1 path\n"
        "  enter: r(x, 0) :- n(x).\n"
        "    scan n(x)\n"
        "    insert r(x, 0)\n"
        f"  loop: {rule}\n"
        "    changes r(x, d)\n"
        "    join e[0](x, y)                              ~10 rows each\n"
        "    generate c = @1(d)\n"
        "    insert r(y, c)\n"
        "  @1 gives @3 for the rows of @2, block by block\n"
        "    arrangements\n"
        "      @2[]                                     1 path\n"
        f"    stage 1: {rule}\n"
        "      scan n(z)\n"
        "      join @2[](d)                                 ~1e+02 rows each\n"
        "      if z < d\n"
        "      accumulate @3[d] with count\n"
    )


def test_an_aggregate_over_the_recursion_is_not_computed_for_what_that_binds() -> None:
    text = "r(x, 0) :- n(x).\nr(y, c) :- r(x, d), e(x, y), c = count : { r(z, w), w < d }."
    with pytest.raises(DlogError, match="not supported yet: an aggregate in a recursive rule"):
        plan(text, recursive=True, n=(10, (10,)), e=EDGE)


def test_shortest_paths_become_a_lattice_with_a_delta_path() -> None:
    text = "d(x, v) :- n(x), v = min c : { s(x), c = 0 ; d(y, b), w(y, x, l), c = b + l }."
    assert drawn(text, True, {"d": Lattice("d", Dominance.LEAST, 1)}, n=(99, (99,)), s=(1, (1,)), w=(500, (99, 99, 9))) == (
        "stratum d, recursive\n"
        "  d keeps the least value of column 1\n"
        "  arrangements\n"
        "    w[0]                                     1 path\n"
        "  enter: d(x, v) :- n(x), v = min c : { s(x), c = 0 ; d(y, b), w(y, x, l), c = b + l }.\n"
        "    scan s(x)\n"
        "    let c = 0\n"
        "    if n(x)\n"
        "    insert d(x, c)\n"
        "  loop: d(x, v) :- n(x), v = min c : { s(x), c = 0 ; d(y, b), w(y, x, l), c = b + l }.\n"
        "    changes d(y, b)\n"
        "    join w[0](y, x, l)                           ~5.1 rows each\n"
        "    let c = (b + l)\n"
        "    if n(x)\n"
        "    insert d(x, c)\n"
    )


BODIES = [
    ["vp(b, bh)", "load(a, b, f)", "hp(bh, f, h)", "t(a)"],
    ["e(x, y)", "e(y, z)", "e(z, w)", "n(w)"],
    ["e(x, y)", "e(y, z)", "e(x, z)", "n(y)"],
    ["e(x, y)", "f(y, z)", "e(z, w)", "x < w", "!n(z)"],
]
SIZES = {
    "vp": (10**6, (10**5, 10**5)),
    "load": (10**5, (10**5, 10**5, 100)),
    "hp": (10**6, (10**5, 100, 10**5)),
    "t": (10, (10,)),
    "e": (10**6, (10**5, 10**5)),
    "f": (10**5, (10**5, 10**5)),
    "n": (1000, (1000,)),
}
HEADS = ["p(a, h)", "p(x, w)", "p(x, z)", "p(x, w)"]


@pytest.mark.parametrize(("body", "head"), list(zip(BODIES, HEADS, strict=True)))
def test_the_order_of_the_text_does_not_matter(body: list[str], head: str) -> None:
    def lines(order: tuple[str, ...]) -> list[str]:
        return drawn(f"{head} :- {', '.join(order)}.", **SIZES).splitlines()

    def without_text(order: tuple[str, ...]) -> list[str]:
        return [x for x in lines(order) if not x.startswith("  enter")]

    expected = without_text(tuple(body))
    assert all(without_text(order) == expected for order in itertools.permutations(body))


def test_a_long_chain_is_planned_along_its_connections() -> None:
    text = "p(x0, x12) :- " + ", ".join(f"e(x{i}, x{i + 1})" for i in [5, 0, 3, 9, 7, 1, 11, 2, 10, 8, 6, 4]) + ", s(x6)."
    (path,) = plan(text, e=EDGE, s=(10, (10,))).enter
    assert all(s.arrangement.key for s in path.steps if isinstance(s, HalfJoin))


def test_a_thousand_rules_are_planned_at_once() -> None:
    rules = [f"p{i}(x, z) :- p{(i * 7 + 1) % 500}(x, y), e{i % 9}(y, z), n(y), x != z." for i in range(500)]
    rules += [f"p{i}(x, y) :- e{i % 9}(x, y), y = x + {i}." for i in range(500)]
    stratum, whole = program("\n".join(rules), recursive=True)
    start = time.process_time()
    build_scope(stratum, whole, Declared())
    assert time.process_time() - start < 30


def test_a_broken_promise_stops_the_run() -> None:
    stratum, whole = program("p(x, y) :- e(x, y).")
    scope = build_scope(stratum, whole, Declared())
    (path,) = scope.enter
    broken = type(path)(path.rule, Scan("e", ((0, 0),)), path.steps, path.sink, path.variables)
    with pytest.raises(InternalError, match="the sink reads an unbound variable"):
        check(Scope(scope.relations, (), scope.rules, (), (), (), (broken,), ()), whole)


def test_a_body_that_does_not_bind_its_head_is_a_broken_promise() -> None:
    with pytest.raises(InternalError, match="unbound"):
        plan("p(x, y) :- n(x), y < x.", n=(10, (10,)))


def test_what_a_body_only_asks_about_is_answered_once() -> None:
    sizes = {"n": (1000, (1000,)), "e": (100_000, (1000, 1000)), "s": (500, (500,))}
    assert drawn("p(x, w) :- n(x), n(w), e(y, z), e(z, y), s(z).", **sizes) == (
        "stratum p\n"
        "  arrangements\n"
        "    n[]                                      1 path\n"
        "  stage 1: p(x, w) :- n(x), n(w), e(y, z), e(z, y), s(z).\n"
        "    scan e(y, z)\n"
        "    if e(z, y)\n"
        "    if s(z)\n"
        "    insert @1()\n"
        "  enter: p(x, w) :- n(x), n(w), e(y, z), e(z, y), s(z).\n"
        "    once\n"
        "    if @1()\n"
        "    join n[](x)                                  ~1,000 rows each\n"
        "    join n[](w)                                  ~1,000 rows each\n"
        "    insert p(x, w)                               no row twice\n"
    )
    scope = plan("p(x) :- n(x), e(x, y), e(y, z), e(z, u), s(u).", **sizes)
    assert len(scope.temporaries) >= 1
    assert len(scope.enter[0].steps) <= 2


def test_a_chain_whose_ends_are_both_used_is_one_path() -> None:
    scope = plan("p(x, w) :- e(x, y), e(y, z), e(z, w).", e=EDGE)
    assert scope.temporaries == ()


def test_a_change_that_binds_a_field_finds_records_by_an_index_of_their_fields() -> None:
    text = "len(r, n) :- start(r, n).\nlen(l, m) :- len(r, n), rec(l), l = [x, r], m = n + 1."
    assert drawn(text, recursive=True, start=(1, (1, 1)), rec=(5000, (5000,))) == (
        "stratum len, recursive\n"
        "  arrangements\n"
        "    @1[1]                                    1 path\n"
        "  stage 1: len(l, m) :- len(r, n), rec(l), l = [x, r], m = n + 1.\n"
        "    scan rec(l)\n"
        "    unpack l as pair: 1 = r\n"
        "    insert @1(l, r)\n"
        "  enter: len(r, n) :- start(r, n).\n"
        "    scan start(r, n)\n"
        "    insert len(r, n)\n"
        "  loop: len(l, m) :- len(r, n), rec(l), l = [x, r], m = n + 1.\n"
        "    changes len(r, n)\n"
        "    let m = (n + 1)\n"
        "    join @1[1](l, r)                             ~0.8 rows each\n"
        "    insert len(l, m)\n"
    )


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("rec(r), r = [x, y], rec(s), s = [y, z]", 1),
        ("e(x, y), x2 = x * 2, e(z, w), z2 = z * 2, x2 = z2", 1),
        ("rec(r), r = [x, y], e(y, z)", 0),
        ("e(x, y), z = x + 1, e(z, w)", 0),
        ("e(x, y), x2 = 10 / x, e(z, w), z2 = 10 / z, x2 = z2", 0),
        ("e(x, y), e(z, w), x < w", 0),
        ("n(x), x2 = x * 2, n(z), z2 = z * 2, x2 = z2", 0),
    ],
)
def test_what_no_lookup_finds_is_computed_before_unless_it_could_stop_the_run(body: str, made: int) -> None:
    """The last one scans ten rows."""
    scope = plan(f"p(x, z) :- {body}.", e=EDGE, rec=(5000, (5000,)), n=(10, (10,)))
    assert len(scope.temporaries) == made


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [", ".join(f"r{i}(x)" for i in range(90)), ", ".join(f"e(x{i}, x{i + 1})" for i in range(40)).replace("x0,", "x,")],
    ids=["star", "chain"],
)
def test_long_bodies_are_planned_without_trying_every_order(body: str) -> None:
    started = time.process_time()
    plan(f"p(x) :- {body}.")
    assert time.process_time() - started < 30  # about one second; every order would take years
