"""Diffs that are tuples of sums and of extremes: what they come to, what is kept of them, and what is refused."""

from __future__ import annotations

import operator
from math import fsum, gcd
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.dataflow import Collection, Dataflow, Input, col, lit, semigroup
from dlog.dataflow.folds import Elements
from dlog.grammar.diagnostics import DlogError
from tests.dlog.dataflow.test_insert_only import VALUES
from tests.examples import examples

Added = list[tuple[str, int, Any, int, int]]
"""Key, number, value, round and how often."""


@st.composite
def cases(draw: st.DrawFn) -> tuple[type, Added, list[int]]:
    kind = draw(st.sampled_from(list(VALUES)))
    row = st.tuples(
        st.sampled_from("kl"), st.integers(-3, 3), st.sampled_from(VALUES[kind]), st.integers(0, 11), st.integers(1, 3)
    )
    return kind, draw(st.lists(row, max_size=30)), draw(st.lists(st.integers(1, 5), max_size=6))


def _run(flow: Dataflow, rows: Input, added: Added, steps: list[int]) -> None:
    for key, number, value, round, diff in added:
        rows.update([(key, number, value)], diff, at=round)
    for step in [*steps, 12]:
        flow.advance_to(flow.round + step)


@examples(100)
@given(cases(), st.booleans())
def test_3_1_diffs_may_be_tuples_of_sums_and_extremes(case: tuple[type, Added, list[int]], keyed: bool) -> None:
    """At every round they are those of a list of what has come, and those that are taken one by one."""
    kind, added, steps = case
    flow = Dataflow()
    rows = flow.input(key=str, number=int, value=kind)
    diff = (semigroup.min("value"), col("number"), semigroup.max("value"), 1, col("number") * 0.1)
    names = ("least", "total", "greatest", "rows", "tenths")
    found = rows.explode(*["key"] * keyed, diff=diff).count(*names).capture(history=True)
    by = "key" if keyed else None
    for name, one in (("least", rows.min("value", by=by)), ("greatest", rows.max("value", by=by))):
        again = rows.explode(*["key"] * keyed, diff=diff).count(*names)
        again.map(*["key"] * keyed, value=col(name)).assert_eq(one)
    _run(flow, rows, added, steps)
    for round in range(12):
        groups: dict[Any, list] = {}
        for key, number, value, at, diff_then in added:
            if at <= round:
                groups.setdefault((key,) * keyed, []).extend([(number, value)] * diff_then)
        assert _close(found.counts(round)) == _close({(*key, *_totals(group)): 1 for key, group in groups.items()})


def _totals(group: list[tuple[int, Any]]) -> tuple[Any, ...]:
    numbers, values = zip(*group, strict=True)
    return min(values), sum(numbers), max(values), len(group), fsum(number * 0.1 for number in numbers)


def _close(counts: dict[Any, int]) -> dict[Any, int]:
    return {(*row[:-1], round(row[-1], 9) + 0.0): count for row, count in counts.items()}


@examples(50)
@given(cases())
def test_extremes_alone_and_of_expressions(case: tuple[type, Added, list[int]]) -> None:
    _, added, steps = case
    flow = Dataflow()
    rows = flow.input(key=str, number=int, value=object)
    one = rows.explode("key", diff=semigroup.max(col("number") * -2)).count("greatest").capture()
    constant = rows.explode(diff=(semigroup.min(lit(7)), semigroup.min("key"))).count("seven", "first").capture()
    _run(flow, rows, added, steps)
    keys = {key for key, *_ in added}
    assert set(one) == {(key, max(-2 * n for k, n, *_ in added if k == key)) for key in keys}
    assert list(constant) == [(7, key) for key in sorted(keys)[:1]]


SETS = semigroup.of(
    object, plus=operator.or_, lift=lambda value: frozenset([value]), lower=lambda found: tuple(sorted(map(repr, found)))
)
DIVISORS = semigroup.of(int, plus=np.gcd, times=lambda x, n: x, lift=lambda x: abs(x) + 1)


@examples(100)
@given(cases(), st.booleans())
def test_3_1_diffs_may_be_of_any_semigroup(case: tuple[type, Added, list[int]], keyed: bool) -> None:
    """At every round they are those of a list of what has come, alone and beside sums."""
    kind, added, steps = case
    flow = Dataflow()
    rows = flow.input(key=str, number=int, value=kind)
    keys, diff = ["key"] * keyed, (1, DIVISORS("number"), semigroup.max("number"), SETS("value"))
    found = rows.explode(*keys, diff=diff).count("rows", "divisor", "greatest", "set").capture(history=True)
    alone = rows.explode(*keys, diff=SETS("value")).count("set").capture(history=True)
    _run(flow, rows, added, steps)
    for round in range(12):
        groups: dict[Any, list] = {}
        for key, number, value, at, diff_then in added:
            if at <= round:
                groups.setdefault((key,) * keyed, []).extend([(number, value)] * diff_then)
        assert found.counts(round) == {(*key, *_folded(group)): 1 for key, group in groups.items()}
        assert alone.counts(round) == {(*key, _folded(group)[-1]): 1 for key, group in groups.items()}


def _folded(group: list[tuple[int, Any]]) -> tuple[Any, ...]:
    numbers, values = zip(*group, strict=True)
    return len(group), gcd(*(abs(number) + 1 for number in numbers)), max(numbers), tuple(sorted(map(repr, {*values})))


def test_what_goes_from_a_semigroup_is_refused() -> None:
    flow, seen = Dataflow(), []
    rows = flow.input(item=str, shop=str)
    exploded = rows.explode("item", diff=(1, SETS("shop")))
    exploded.consolidate().inspect(lambda *update: seen.append(update))
    shops = exploded.count("offers", "shops").capture()
    rows.insert([("tea", "x"), ("tea", "y")])
    flow.commit()
    assert list(shops) == [("tea", 2, ("'x'", "'y'"))] and seen == [(("tea",), 0, (2, frozenset("xy")))]
    rows.remove([("tea", "x")])
    with pytest.raises(DlogError, match=r"`semigroup.of` is given a row that goes, in round 1: item='tea', shops='x'"):
        flow.commit()
    again = Dataflow().input(a=int)
    with pytest.raises(DlogError, match=r"`count` of `semigroup.of` is in a loop"):
        again.explode(diff=(1, SETS("a"))).enter(again.scope.loop()).count("rows", "set")
    with pytest.raises(DlogError, match=r"breaks a law: plus\(x, y\) is 3, plus\(y, x\) is 4, where x = 3, y = 4"):
        _told(semigroup.of(int, plus=lambda a, b: a))


def _told(wrong: Elements) -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    rows.explode(diff=wrong("x")).count("total").capture()
    rows.insert([3, 4])
    flow.commit()


def test_updates_show_their_extremes() -> None:
    """Tuples of a join with what only counts, which is there twice."""
    flow, seen = Dataflow(), []
    rows, names = flow.input(key=int, text=str), flow.input(key=int, name=str)
    weighted = rows.explode("key", diff=(1, semigroup.max("text"), semigroup.min("text")))
    joined = weighted.join(names)
    joined.consolidate().inspect(lambda row, time, diff: seen.append((row, time, diff)))
    report = joined.map("name").count("rows", "last", "first").capture()
    rows.insert([(1, "b"), (1, "c"), (2, "a")])
    names.update([(1, "x"), (2, "x")], 2)
    flow.commit()
    assert seen == [((1, "x"), 0, (4, "c", "b")), ((2, "x"), 0, (2, "a", "a"))]
    assert list(report) == [("x", 6, "c", "a")]


def _held(build: Any, rounds: int) -> tuple[int, int]:
    """Updates and bytes that a dataflow holds after so many rounds of 50 rows of 20 keys."""
    flow = Dataflow()
    rows = flow.input(key=int, value=int)
    build(rows).inspect(lambda *update: None)
    for round in range(rounds):
        numbers = range(50 * round, 50 * (round + 1))
        rows.insert({"key": [n % 20 for n in numbers], "value": [n * 7919 % 100_003 for n in numbers]})
        flow.commit()
    return flow.updates, sum(trace.spine.nbytes for operator in flow.operators for trace in operator.traces)


def test_of_extremes_no_more_is_kept_than_they_are() -> None:
    def build(rows: Collection) -> Collection:
        diff = (1, col("value"), semigroup.min("value"), semigroup.max("value"))
        return rows.explode("key", diff=diff).count("rows", "total", "least", "greatest")

    short, long, all_rows = _held(build, 20), _held(build, 400), _held(lambda rows: rows.min("value", by="key"), 400)
    assert long[0] <= 40 * 20 and long[1] < 2 * short[1] + 2_000
    assert all_rows[0] == 20_000 and long[1] * 4 < all_rows[1]


def test_a_row_that_goes_is_refused_in_its_round() -> None:
    flow = Dataflow()
    prices = flow.input(item=str, shop=str, cents=int)
    diff = (1, semigroup.min("cents"), col("cents"))
    least = prices.explode("item", diff=diff).count("offers", "least", "total").capture()
    prices.insert([("tea", "x", 300), ("tea", "y", 250)])
    prices.insert([("rum", "x", 900)], at=1)
    prices.remove([("rum", "x", 900)], at=1)  # the same round: it never was there
    flow.advance_to(2)
    assert list(least) == [("tea", 2, 250, 550)]
    prices.remove([("tea", "y", 250)], at=2)
    prices.insert([("tea", "z", 250)], at=2)  # nothing comes to the minimum, and nothing goes from it
    flow.advance_to(3)
    assert list(least) == [("tea", 2, 250, 550)]
    prices.remove([("tea", "x", 300)], at=4)
    flow.advance_to(4)
    with pytest.raises(DlogError) as refused:
        flow.commit()
    (mistake,) = refused.value.diagnostics
    assert mistake.code == "row-gone"
    assert mistake.message == "`count` of `semigroup.min` is given a row that goes, in round 4: item='tea', least=300"


def test_sums_without_an_extreme_are_refused() -> None:
    """A row takes another's place that has never come: the number changes, of the least value nothing is known."""
    for columns, shown in ((["item"], "item='tea'"), ([], "the only one")):
        flow = Dataflow()
        prices = flow.input(item=str, pieces=int, cents=int)
        prices.explode(*columns, diff=(col("pieces"), semigroup.min("cents"))).count("pieces", "least").capture()
        prices.remove([("tea", 1, 300)])
        prices.insert([("tea", 2, 300)])
        with pytest.raises(DlogError, match=f"is given a row that goes and has not come: {shown}"):
            flow.commit()


def test_extremes_are_outside_of_loops_and_of_rules() -> None:
    flow = Dataflow()
    rows = flow.input("rows", a=int, b=int, text=str)
    weighted = rows.explode("a", diff=(1, semigroup.max("b")))
    with pytest.raises(DlogError, match=r"`count` of `semigroup.max` is in a loop"):
        weighted.enter(flow.scope.loop()).count("rows", "b")
    with pytest.raises(DlogError, match="needs diffs that are integers"):
        weighted.distinct()
    with pytest.raises(DlogError, match=r"one are tuples \(int, semigroup.max of int\), .* other tuples \(int, int\)"):
        weighted.concat(rows.explode("a", diff=(1, col("b"))))
    with pytest.raises(DlogError, match="`diff` must be a number, or a tuple of one or more numbers, extremes and"):
        rows.explode("a", diff=(1, "text"))
    with pytest.raises(DlogError, match=r"`explode` cannot be said by rules: `semigroup.max.col.'b'..` is no sum of numbers"):
        dlog.rules(weighted=weighted.count("rows", "b"))
