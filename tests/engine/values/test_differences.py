"""Sets of rows as arrays, against Python's sets and dicts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.values.differences import Columns, apply_changes, difference, last_of_each, row_groups, words
from tests.examples import examples

Lists = tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]]
"""An arity and two lists of rows."""

WORD = st.sampled_from([0, 1, 2, -1, 2**63 - 1, -(2**63)])


def rows(arity: int, most: int = 12) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[WORD] * arity), max_size=most)


def columns(listed: list[tuple[int, ...]], arity: int) -> Columns:
    return tuple(np.array([row[c] for row in listed], np.int64) for c in range(arity))


def listed(found: Columns, count: int) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in found), strict=True)) if found else [()] * count


@st.composite
def two_lists(draw: st.DrawFn) -> Lists:
    arity = draw(st.integers(0, 3))
    return arity, draw(rows(arity)), draw(rows(arity))


@examples(150)
@given(case=two_lists())
def test_the_difference_of_two_sets(case: Lists) -> None:
    arity, *lists = case
    old, new = (list(dict.fromkeys(rows)) for rows in lists)
    found, diffs = difference(columns(old, arity), len(old), columns(new, arity), len(new))
    pairs = list(zip(listed(found, len(diffs)), diffs.tolist(), strict=True))
    expected = [(row, 1) for row in set(new) - set(old)] + [(row, -1) for row in set(old) - set(new)]
    assert sorted(pairs) == sorted(expected)


@examples(150)
@given(case=two_lists(), signs=st.lists(st.sampled_from([1, -1]), min_size=12, max_size=12))
def test_the_last_change_of_a_row_decides(case: Lists, signs: list[int]) -> None:
    arity, held, changed = case
    held = list(dict.fromkeys(held))
    diffs = signs[: len(changed)]
    found, count = apply_changes(columns(held, arity), len(held), columns(changed, arity), np.array(diffs, np.int64))
    expected = dict.fromkeys(held, 1) | dict(zip(changed, diffs, strict=True))
    assert sorted(listed(found, count)) == sorted(row for row, diff in expected.items() if diff > 0)


@examples(100)
@given(case=two_lists())
def test_groups_hold_equal_rows_in_order(case: Lists) -> None:
    arity, given_rows, _ = case
    order, starts = row_groups(columns(given_rows, arity), len(given_rows))
    groups = [part.tolist() for part in np.split(order, starts[1:])] if given_rows else []
    assert sorted(given_rows[group[0]] for group in groups) == sorted(set(given_rows))
    for group in groups:
        assert group == [i for i, row in enumerate(given_rows) if row == given_rows[group[0]]]
    last = {row: i for i, row in enumerate(given_rows)}
    assert last_of_each(columns(given_rows, arity), len(given_rows)).tolist() == sorted(last.values())


def test_rows_that_differ_in_one_place_of_many_columns_are_told_apart() -> None:
    """Where all hashes differ nothing is sorted by columns."""
    held = [(x, 0, -x, x % 3) for x in range(1000)]
    assert last_of_each(columns(held, 4), 1000).tolist() == list(range(1000))
    assert last_of_each(columns([*held, (7, 0, -7, 1)], 4), 1001).tolist() == [*range(7), *range(8, 1001)]
    swapped = [(1, 2), (2, 1), (1, 2)]
    assert last_of_each(columns(swapped, 2), 3).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([1, -2], np.int32), [1, -2]),
        (np.array([2**63], np.uint64), [-(2**63)]),
        (np.array([1.0]), [0x3FF0000000000000]),
        (np.array([7]), [7]),
    ],
)
def test_words_are_the_bits_of_values(values: np.ndarray, expected: list[int]) -> None:
    assert words(values).tolist() == expected
