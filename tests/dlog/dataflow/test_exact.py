"""Sums of floats are exact, and rounded once: those of fractions, whatever comes and goes, and in whatever order."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from dlog.dataflow import Dataflow, col
from dlog.dataflow.exact import digits_by_place, digits_of, rounded_sums
from tests.examples import examples

FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.builds(math.ldexp, st.integers(-(2**53), 2**53), st.integers(-80, 20)),
    st.sampled_from([0.1, 0.2, -0.3, 1e300, -1e300, 5e-324, 2.0**53, 1.0, 2.0**-60, -0.0]),
)
COUNTS = st.sampled_from([1, 1, 1, -1, 2, -3, 2**23, -(2**38), 2**50, -(2**62), 2**63 - 1])
Counted = list[tuple[int, float, int]]
"""Owner, value, and how often."""


def _exact(rows: Counted, owner: int) -> float:
    """The naive twin."""
    total = sum((Fraction(value) * count for of, value, count in rows if of == owner), Fraction(0))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


@examples(500)
@given(st.lists(st.tuples(st.integers(0, 2), FLOATS, COUNTS), max_size=10))
@example([(0, 2.0**53, 1), (0, 1.0, 1), (0, 2.0**-1074, 1)])
@example([(0, 2.0**53, 1), (0, 1.0, 1), (0, 2.0**-1074, -1)])
@example([(1, 1.7976931348623157e308, 2), (2, 1.7976931348623157e308, 2), (2, 1.7976931348623157e308, -1)])
def test_digits_add_up_to_the_nearest_float(rows: Counted) -> None:
    owners, values, counts = (np.array([row[k] for row in rows], dtype) for k, dtype in enumerate((int, float, int)))
    numbers, places, diffs = digits_of(values, counts)
    sums: Counter[tuple[int, int]] = Counter()
    for owner, place, diff in zip(owners[numbers].tolist(), places.tolist(), diffs.tolist(), strict=True):
        sums[owner, place] += diff
    dense = digits_by_place(values)
    if dense is not None:
        assert _by_place(values, dense) == [_exact([(0, value, 1)], 0) for value in values.tolist()]
    kept = sorted((*key, diff) for key, diff in sums.items() if diff)
    if all(abs(diff) < 2**63 for *_, diff in kept):  # else traces refuse it
        fields = (np.array([row[k] for row in kept], np.int64) for k in range(3))
        assert rounded_sums(*fields, 3).tolist() == [_exact(rows, owner) for owner in range(3)]


def _by_place(values: np.ndarray, dense: tuple[np.ndarray, np.ndarray]) -> list[float]:
    """The values again, of their digits at all places."""
    places, digits = dense
    owners, numbers = np.nonzero(digits.T)
    return rounded_sums(owners, places[numbers], digits[numbers, owners], len(values)).tolist()  # type: ignore[no-any-return]


@examples(100)
@given(st.lists(st.tuples(st.sampled_from([0, 1]), FLOATS, st.integers(0, 5), st.sampled_from([1, 1, -1, 2])), max_size=12))
def test_sums_of_floats_are_those_of_fractions(changed: list[tuple[int, float, int, int]]) -> None:
    """Also in a loop, one iteration after the other; a key is there as long as it has rows."""
    flow = Dataflow()
    rows = flow.input(key=int, value=float)
    sums = rows.sum(by="key", total="value").capture(history=True)
    inner = rows.enter_at(flow.scope.loop(), "key")
    looped = inner.explode(diff=(col("value"), 1)).count("total", "rows").capture(history=True)
    for key, value, round, diff in changed:
        rows.update([(key, value)], diff, at=round)
    for end in (2, 6):
        flow.advance_to(end)
    for round in range(6):
        there = [(key, value, diff) for key, value, at, diff in changed if at <= round]
        counts: Counter[int] = Counter()
        for key, _, diff in there:
            counts[key] += diff
        totals = {key: _exact(there, key) for key in counts}
        assert sums.counts(round) == {(key, totals[key]): 1 for key in counts if counts[key] or totals[key]}
        for iteration in range(2):
            entered = [(0, value, diff) for key, value, diff in there if key <= iteration]
            total, count = _exact(entered, 0), sum(diff for *_, diff in entered)
            assert looped.counts((round, iteration)) == ({(total, count): 1} if total or count else {})


def test_a_sum_of_floats_keeps_few_digits_of_many_rows() -> None:
    flow = Dataflow()
    rows = flow.input(key=int, value=float)
    sums = rows.sum(by="key", total="value").capture()
    random = np.random.default_rng(0)
    added = {"key": np.arange(20_000) % 3, "value": random.random(20_000) * 10.0 ** random.integers(-3, 4, 20_000)}
    rows.insert(added)
    flow.commit()
    assert {(key, math.fsum(added["value"][added["key"] == key])) for key in range(3)} == set(sums)
    assert flow.updates < 60
    rows.remove({name: column[:-2] for name, column in added.items()})
    flow.commit()
    assert set(sums) == {(int(key), float(value)) for key, value in zip(added["key"][-2:], added["value"][-2:], strict=True)}


def test_a_key_whose_digits_cancel_has_no_row() -> None:
    """Twice a float, less one that is a little less and one that is as much more: not the same digits, but nothing."""
    flow = Dataflow()
    rows = flow.input(key=int, value=float)
    found = rows.explode("key", diff=(1, col("value"))).count("rows", "sum").capture()
    rows.update([(1, 2.0**25), (1, 2.0**25 - 1), (1, 2.0**25 + 1)], [2, -1, -1])
    rows.update([(2, 2.0**25), (2, 2.0**25 - 1), (2, 2.0**25 + 2)], [2, -1, -1])
    flow.commit()
    assert found.counts() == {(2, 0, -1.0): 1}
