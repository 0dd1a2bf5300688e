"""The clock in filters: a row is there in the rounds for which the filter holds."""

from __future__ import annotations

import operator
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import Dataflow, Expression, col, linear, now
from dlog.dataflow.bounds import LAST
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
signs = st.sampled_from(sorted(COMPARED))
comparisons = st.lists(st.tuples(signs, st.sampled_from("ab"), st.integers(-1, 2), st.booleans()), min_size=1, max_size=3)
changes = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 4), st.sampled_from([1, 1, -1])), max_size=8)


def _predicate(compared: list[tuple[str, str, int, bool]]) -> Expression:
    parts = []
    for sign, name, more, mirrored in compared:
        bound = col(name) + more
        parts.append(COMPARED[MIRRORED[sign]](bound, now()) if mirrored else COMPARED[sign](now(), bound))
    found = parts[0]
    for part in parts[1:]:
        found = found & part
    return found


@examples(60)
@given(comparisons, changes)
def test_a_row_is_there_while_all_comparisons_hold(compared: list, changed: list) -> None:
    flow = Dataflow()
    rows = flow.input(a=int, b=int)
    shown = rows.filter(_predicate(compared) & (col("a") != 3)).capture()
    there: Counter[tuple[int, int]] = Counter()
    for round in range(10):
        for a, b, at, diff in changed:
            if at == round:
                rows.update([(a, b)], diff)
                there[a, b] += diff
        flow.commit()
        holds = {
            (a, b): count
            for (a, b), count in there.items()
            if count and a != 3 and all(COMPARED[s](round, {"a": a, "b": b}[n] + more) for s, n, more, _ in compared)
        }
        assert shown.counts() == holds


def test_the_last_round_is_never_over() -> None:
    flow = Dataflow()
    rows = flow.input(end=int)
    shown = rows.filter(now() <= col("end")).capture()
    rows.insert([(LAST,), (LAST - 1,), (0,)])
    flow.advance_to(2)
    assert set(shown) == {(LAST,), (LAST - 1,)}


def test_filters_with_the_clock_are_composed_as_others_are() -> None:
    flow = Dataflow()
    rows = flow.input(a=int)
    rows.join_function(linear.filter(now() >= col("a")).map(b="a")).assert_eq(rows.temporal("a").map(b="a"))
    rows.insert([(0,), (2,), (5,)])
    flow.advance_to(4)


@pytest.mark.parametrize(
    "misplaced",
    [
        lambda rows: rows.map(a=now()),
        lambda rows: rows.filter(now() + 1 > col("a")),
        lambda rows: rows.filter((now() > col("a")) | (col("a") > 1)),
        lambda rows: rows.filter(~(now() > col("a"))),
        lambda rows: rows.filter(now() > now()),
        lambda rows: rows.filter(now() != col("a")),
    ],
)
def test_the_clock_stands_nowhere_else(misplaced) -> None:
    with pytest.raises(DlogError, match="can only be compared, as it is, in a filter"):
        misplaced(Dataflow().input(a=int))


def test_the_clock_is_compared_with_integers() -> None:
    with pytest.raises(DlogError, match="integers"):
        Dataflow().input(a=str).filter(now() < col("a"))
