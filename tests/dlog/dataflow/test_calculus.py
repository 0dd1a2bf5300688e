"""Differentiation, integration, alt and neu, delta queries, as-of joins."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import AltNeu, Collection, Dataflow, Input, col
from dlog.engine.operators.half_join import Extend
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

ROUNDS = 5
row = st.tuples(st.integers(0, 3), st.integers(0, 3))
change = st.tuples(row, st.integers(0, ROUNDS - 1), st.sampled_from([1, 1, -1]))
ends = st.lists(st.integers(1, ROUNDS - 1), max_size=3, unique=True).map(lambda found: [*sorted(found), ROUNDS])


def run(flow: Dataflow, batches: list[int]) -> None:
    for end in batches:
        flow.advance_to(end)


def test_0_7_a_derivative_has_each_change_at_one_moment() -> None:
    flow = Dataflow()
    names = flow.input(name=str)
    scope = flow.scope.altneu()
    blips = names.differentiate(scope).capture(history=True)
    names.insert(["frank"], at=1)
    names.update(["frank"], -1, at=3)
    flow.advance_to(5)
    there = {t: blips.counts(AltNeu((t,))).get(("frank",), 0) for t in range(5)}
    assert there == {0: 0, 1: 1, 2: 0, 3: -1, 4: 0}
    assert all(blips.counts(AltNeu((t,), True)) == {} for t in range(5))
    assert (("frank",), AltNeu((1,), True), -1) in blips.updates()


@examples(50)
@given(st.lists(change, max_size=12), ends)
def test_0_8_integrating_a_derivative_gives_the_collection(changes: list, batches: list[int]) -> None:
    flow = Dataflow()
    given_rows = flow.input(a=int, b=int)
    back = given_rows.differentiate(flow.scope.altneu()).integrate()
    back.assert_eq(given_rows)
    was, came = given_rows.capture(history=True), back.capture(history=True)
    for each, round, diff in changes:
        given_rows.update([each], diff, at=round)
    run(flow, batches)
    assert was.updates() == came.updates()


# -------------------------------------------------------------------------------------------------------------- triangles


def triangles_in_order(edges: Collection, nudged: bool) -> Collection:
    """The delta query of triangles (a, b), (a, c), (b, c): a rule for the changes of each of the three edges. The rules run
    as if one after the other, where edges that are read before their own rule are nudged to `Neu`."""
    scope = edges.scope.altneu()
    alt, changes = edges.enter(scope), edges.differentiate(scope)
    neu = alt.neu() if nudged else alt
    by_ab = changes.join_map(neu.rename(src="src", c="dst"), "c", a="src", b="dst", on="src")
    by_ab = by_ab.semijoin(neu, on={"b": "src", "c": "dst"})
    by_ac = changes.join_map(alt.rename(src="src", b="dst"), "b", a="src", c="dst", on="src")
    by_ac = by_ac.semijoin(neu, on={"b": "src", "c": "dst"})
    by_bc = changes.join_map(alt.rename(a="src", b="dst"), "a", b="src", c="dst", on={"src": "b"})
    by_bc = by_bc.semijoin(alt, on={"a": "src", "c": "dst"})
    return by_ab.map("a", "b", "c").concat(by_ac.map("a", "b", "c"), by_bc.map("a", "b", "c")).integrate()


def test_0_13_edges_that_come_together_make_one_triangle() -> None:
    flow = Dataflow()
    edges = flow.input(src=int, dst=int)
    right, wrong = triangles_in_order(edges, True).capture(), triangles_in_order(edges, False).capture()
    edges.insert([(1, 2), (1, 3), (2, 3)])
    flow.commit()
    assert right.counts() == {(1, 2, 3): 1}
    assert wrong.counts() == {(1, 2, 3): 3}  # each of the three rules takes it for its own


@examples(50)
@given(st.lists(change, max_size=14), ends)
def test_0_12_delta_queries_of_triangles_are_joins(changes: list, batches: list[int]) -> None:
    flow = Dataflow()
    edges = flow.input(src=int, dst=int)
    plain = edges.join(edges, on="src").rename(a="src", b="dst", c="dst_right").semijoin(edges, on={"b": "src", "c": "dst"})
    triangles_in_order(edges, True).assert_eq(plain)
    half_joined(edges).assert_eq(plain)
    extended(edges).assert_eq(plain)
    for each, round, diff in changes:
        edges.update([each], diff, at=round)
    run(flow, batches)


@examples(50)
@given(st.lists(st.tuples(change, st.integers(0, 2)), max_size=14), ends)
def test_0_16_delta_queries_are_joins_in_loops_too(changes: list, batches: list[int]) -> None:
    """Edges come at rounds and iterations: their times are partially ordered."""
    flow = Dataflow()
    given_edges = flow.input(src=int, dst=int, iteration=int)
    edges = given_edges.enter_at(flow.scope.loop(), "iteration").map("src", "dst")
    plain = edges.join(edges, on="src").rename(a="src", b="dst", c="dst_right").semijoin(edges, on={"b": "src", "c": "dst"})
    half_joined(edges).assert_eq(plain)
    extended(edges).assert_eq(plain)
    for (each, round, diff), iteration in changes:
        given_edges.update([(*each, iteration)], diff, at=round)
    run(flow, batches)


def half_joined(edges: Collection) -> Collection:
    """The same by half-joins: of two edges that change at the same time, the first one's rule does not see the second one."""
    ab, ac, bc = edges.rename(a="src", b="dst"), edges.rename(a="src", c="dst"), edges.rename(b="src", c="dst")
    found = [
        ab.propose().half_join(ac, "a", ties=True).half_join(bc, ("b", "c"), ties=True),
        ac.propose().half_join(ab, "a", ties=False).half_join(bc, ("b", "c"), ties=True),
        bc.propose().half_join(ab, "b", ties=False).half_join(ac, ("a", "c"), ties=False),
    ]
    first, *others = (each.collect().map("a", "b", "c") for each in found)
    return first.concat(*others)


def extended(edges: Collection) -> Collection:
    """The same, an attribute at a time."""
    ab, ac, bc = edges.rename(a="src", b="dst"), edges.rename(a="src", c="dst"), edges.rename(b="src", c="dst")
    found = [
        ab.propose().extend("c", (ac, "a", True), (bc, "b", True)),
        ac.propose().extend("b", (ab, "a", False), (bc.map("c", "b"), "c", True)),
        bc.propose().extend("a", (ab.map("b", "a"), "b", False), (ac.map("c", "a"), "c", False)),
    ]
    first, *others = (each.collect().map("a", "b", "c") for each in found)
    return first.concat(*others)


def test_0_17_no_more_values_are_proposed_than_the_smallest_relation_has() -> None:
    """A node of degree 1,000 has a million pairs of neighbours; each edge looks at about one value."""
    flow = Dataflow()
    edges = flow.input(src=int, dst=int)
    found = extended(edges).capture()
    edges.insert([(0, x) for x in range(1, 1001)] + [(1, 2), (2, 3)])
    flow.commit()
    assert found.counts() == {(0, 1, 2): 1, (0, 2, 3): 1}
    proposed = sum(operator.proposed for operator in flow.operators if isinstance(operator, Extend))
    assert 1000 <= proposed < 1010


def test_what_extends_has_its_key_and_one_column() -> None:
    flow = Dataflow()
    ab, abc = flow.input(a=int, b=int), flow.input(a=int, b=int, c=int)
    with pytest.raises(DlogError, match="has its key and that column"):
        ab.propose().extend("c", (abc, "a", True))
    with pytest.raises(DlogError, match="one new column `b`"):
        ab.propose().extend("b", (ab, "a", True))


def test_half_joins_are_right_where_the_calculus_is_not() -> None:
    """The published counterexample: A changes at (0, 1) and B at (1, 0), so they meet at (1, 1). There is no time at which one
    of the changes happens and the other has happened."""
    flow = Dataflow()
    rows = flow.input(key=int, iteration=int, side=str)
    loop = flow.scope.loop()
    entered = rows.enter_at(loop, "iteration")
    a, b = entered.filter(col("side") == "A"), entered.filter(col("side") == "B")
    forth, back = a.propose().half_join(b, "key", ties=True), b.propose().half_join(a, "key", ties=False)
    met = forth.collect().map("key").concat(back.collect().map("key")).capture(history=True)
    rows.insert([(7, 1, "A")], at=0)
    rows.insert([(7, 0, "B")], at=1)
    flow.commit()
    flow.commit()
    assert met.updates() == [((7,), (1, 1), 1)]
    with pytest.raises(DlogError, match="changes at incomparable ones never meet"):
        loop.altneu()


# ------------------------------------------------------------------------------------------------------------ as-of joins


def shop() -> tuple[Dataflow, Input, Input]:
    flow = Dataflow()
    return flow, flow.input(item=str, customer=str), flow.input(item=str, price=int)


def test_0_10_later_prices_change_no_bill() -> None:
    flow, orders, prices = shop()
    bills = orders.asof_join(prices).map("customer", "price").capture(history=True)
    prices.insert([("bacon", 3), ("latte", 5)])
    orders.insert([("bacon", "ada")], at=1)
    prices.remove([("bacon", 3)], at=2)
    prices.insert([("bacon", 4)], at=2)
    orders.insert([("bacon", "bo")], at=2)
    flow.advance_to(4)
    assert bills.counts(1) == {("ada", 3): 1}
    assert bills.counts(3) == {("ada", 3): 1, ("bo", 4): 1}


def test_0_11_a_retraction_takes_back_the_price_of_now_or_the_original_one() -> None:
    flow, orders, prices = shop()
    now = orders.asof_join(prices).map("customer", "price").capture()
    original = orders.asof_join(prices, retract="original").map("customer", "price").capture()
    prices.insert([("bacon", 3)])
    orders.insert([("bacon", "ada")])
    flow.commit()
    prices.remove([("bacon", 3)])
    prices.insert([("bacon", 4)])
    flow.commit()
    orders.remove([("bacon", "ada")])
    flow.commit()
    assert now.counts() == {("ada", 3): 1, ("ada", 4): -1}  # what integrating changes means
    assert original.counts() == {}


@examples(60)
@given(st.lists(change, max_size=12), st.lists(change, max_size=8), ends)
def test_as_of_joins_are_what_their_definitions_say(orders_changed: list, prices_changed: list, batches: list[int]) -> None:
    flow = Dataflow()
    orders, prices = flow.input(k=int, x=int), flow.input(k=int, price=int)
    now = orders.asof_join(prices).capture(history=True)
    original = orders.asof_join(prices, retract="original").capture(history=True)
    for given_rows, changes in ((orders, orders_changed), (prices, prices_changed)):
        for each, round, diff in changes:
            given_rows.update([each], diff, at=round)
    run(flow, batches)
    for round in range(ROUNDS):
        assert now.counts(round) == met_when_changed(orders_changed, prices_changed, round)
        assert original.counts(round) == met_when_it_came(orders_changed, prices_changed, round)


def at(changes: list, round: int) -> dict[tuple[int, int], int]:
    found: Counter[tuple[int, int]] = Counter()
    for each, when, diff in changes:
        if when <= round:
            found[each] += diff
    return {each: count for each, count in found.items() if count}


def met(order: tuple[int, int], prices: dict[tuple[int, int], int]) -> dict[tuple[int, int, int], int]:
    return {(*order, price): count for (k, price), count in prices.items() if k == order[0]}


def met_when_changed(orders: list, prices: list, round: int) -> dict:
    found: Counter = Counter()
    for order, when, diff in orders:
        if when <= round:
            for each, count in met(order, at(prices, when)).items():
                found[each] += diff * count
    return {each: count for each, count in found.items() if count}


def met_when_it_came(orders: list, prices: list, round: int) -> dict:
    found: dict = {}
    for order in itertools.product(range(4), range(4)):
        came = None
        for when in range(round + 1):
            there = at(orders, when).get(order, 0) > 0
            came = (when if came is None else came) if there else None
        if came is not None:
            found |= met(order, at(prices, came))
    return found
