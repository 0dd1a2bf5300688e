"""`min`, `max` and `top_k` of collections that only grow: what they give, what they keep, and what they refuse."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import Collection, Dataflow, Input, col
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

VALUES: dict[type, list] = {
    int: [-(2**63), -1, 0, 5, 2**63 - 1],
    float: [float("-inf"), -0.5, 0.0, 2.5, float("inf")],
    str: ["", "a", "ab", "b", "é"],
    bool: [False, True],
    object: [(1, 2), (1, 3), (0,), (2,), (0, 7)],
}
Added = list[tuple[str, Any, int, int, int]]
"""Key, value, another column, round and how often."""


@st.composite
def cases(draw: st.DrawFn) -> tuple[type, Added, list[int]]:
    kind = draw(st.sampled_from(list(VALUES)))
    row = st.tuples(
        st.sampled_from("kl"), st.sampled_from(VALUES[kind]), st.integers(0, 2), st.integers(0, 11), st.integers(1, 3)
    )
    return kind, draw(st.lists(row, max_size=30)), draw(st.lists(st.integers(1, 5), max_size=6))


def _run(flow: Dataflow, rows: Input, added: Added, steps: list[int]) -> None:
    for key, value, other, round, diff in added:
        rows.update([(key, value, other)], diff, at=round)
    for step in [*steps, 12]:
        flow.advance_to(flow.round + step)


@examples(100)
@given(cases(), st.integers(1, 9), st.booleans(), st.booleans())
def test_3_1_first_rows_of_what_only_grows_are_those_of_all(
    case: tuple[type, Added, list[int]], count: int, keyed: bool, descending: bool
) -> None:
    kind, added, steps = case
    flow = Dataflow()
    rows = flow.input(key=str, value=kind, other=int)
    by = "key" if keyed else None
    for each in (
        lambda insert_only: rows.min("value", by=by, insert_only=insert_only),
        lambda insert_only: rows.max("value", by=by, insert_only=insert_only),
        lambda insert_only: rows.top_k(count, ["value", "other"], by, descending, insert_only=insert_only),
        lambda insert_only: rows.top_k(count, "value", by, descending, insert_only=insert_only),
        lambda insert_only: rows.min("value", by=["other", "key"], insert_only=insert_only),
    ):
        each(True).assert_eq(each(False))
    _run(flow, rows, added, steps)


@examples(100)
@given(cases(), st.integers(1, 6))
def test_first_rows_at_every_round_are_those_of_a_sorted_list(case: tuple[type, Added, list[int]], count: int) -> None:
    kind, added, steps = case
    flow = Dataflow()
    rows = flow.input(key=str, value=kind, other=int)
    least = rows.min("value", by="key", insert_only=True).capture(history=True)
    first = rows.top_k(count, ["value", "other"], by="key", insert_only=True).capture(history=True)
    _run(flow, rows, added, steps)
    for round in range(12):
        groups: dict[str, list] = {}
        for key, value, other, at, diff in added:
            if at <= round:
                groups.setdefault(key, []).extend([(value, other)] * diff)
        assert least.counts(round) == {(key, min(group)[0]): 1 for key, group in groups.items()}
        assert first.counts(round) == Counter((key, *row) for key, group in groups.items() for row in sorted(group)[:count])


def _held(build: Any, rounds: int, groups: int = 20) -> tuple[int, int]:
    """Updates and bytes that a dataflow holds after so many rounds of 50 rows."""
    flow = Dataflow()
    rows = flow.input(key=int, value=int)
    build(rows)
    for round in range(rounds):
        numbers = range(50 * round, 50 * (round + 1))
        rows.insert({"key": [n % groups for n in numbers], "value": [n * 7919 % 100_003 for n in numbers]})
        flow.commit()
    return flow.updates, sum(trace.spine.nbytes for operator in flow.operators for trace in operator.traces)


@pytest.mark.parametrize("count", [1, 3])
def test_what_only_grows_takes_memory_by_its_groups(count: int) -> None:
    def build(insert_only: bool) -> Any:
        def of(rows: Collection) -> Any:
            if count == 1:
                return rows.max("value", by="key", insert_only=insert_only).inspect(lambda *update: None)
            return rows.top_k(count, "value", by="key", insert_only=insert_only).inspect(lambda *update: None)

        return of

    short, long, all_rows = _held(build(True), 20), _held(build(True), 400), _held(build(False), 400)
    assert all_rows[0] == 20_000
    assert max(short[0], long[0]) <= 12 * 20 * count
    assert long[1] * 10 < all_rows[1]
    assert long[1] < 2 * short[1] + 2_000


def test_a_row_that_is_ever_greater_is_no_work_of_its_square() -> None:
    """Each of many rounds in one batch has a new best row: what comes out is two updates a round, of one place."""
    flow = Dataflow()
    rows = flow.input(value=int)
    best = rows.max("value", insert_only=True).capture()
    rows.update({"value": list(range(100_000))}, 1, at=list(range(100_000)))
    flow.advance_to(100_000)
    assert best.counts() == {(99_999,): 1}
    assert flow.statistics()[1].emitted == 2 * 100_000 - 1


def test_many_first_rows_are_no_more_work_than_their_rounds() -> None:
    """A thousand places, of which each round displaces some: one pass a round; and rows that are there very often."""
    flow = Dataflow()
    rows = flow.input(value=int)
    first = rows.top_k(1_000, "value", descending=True, insert_only=True).capture()
    rows.insert({"value": list(range(5_000))})
    flow.commit()
    for value in range(5_000, 5_010):
        rows.insert([value])
        flow.commit()
    assert first.counts() == {(value,): 1 for value in range(4_010, 5_010)}
    rows.update([(9_000,)], 2**61)
    flow.commit()
    assert first.counts() == {(9_000,): 1_000}


def test_a_row_that_goes_is_refused_in_its_round() -> None:
    flow = Dataflow()
    prices = flow.input(item=str, shop=str, cents=int)
    least = prices.min("cents", by="item", insert_only=True).capture()
    prices.insert([("tea", "x", 300), ("tea", "y", 250)])
    prices.insert([("rum", "x", 900)], at=1)
    prices.remove([("rum", "x", 900)], at=1)  # the same round: it never was there
    flow.advance_to(2)
    assert least.counts() == {("tea", 250): 1}
    prices.insert([("tea", "x", 200)], at=2)
    prices.remove([("tea", "x", 300), ("tea", "y", 250)], at=4)
    flow.advance_to(4)
    assert least.counts() == {("tea", 200): 1}
    with pytest.raises(DlogError) as refused:
        flow.commit()
    (mistake,) = refused.value.diagnostics
    assert mistake.code == "row-gone"
    assert mistake.message == "`min` with `insert_only` is given a row that goes, in round 4: item='tea', cents=250"


def test_what_only_grows_is_outside_of_loops() -> None:
    flow = Dataflow()
    rows = flow.input(a=int, b=int)
    with pytest.raises(DlogError, match="`max` with `insert_only` is in a loop"):
        rows.enter(flow.scope.loop()).max("b", by="a", insert_only=True)
    with pytest.raises(DlogError, match="needs diffs that are integers"):
        rows.explode("a", "b", diff=(1, col("b"))).max("b", by="a", insert_only=True)
    with pytest.raises(DlogError, match="`a` is of the key"):
        rows.top_k(2, "a", by="a", insert_only=True)
