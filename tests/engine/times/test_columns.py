"""The lattice over columns says for each time what the lattice says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.times import columns, lattice
from dlog.engine.times.frontier import Antichain
from dlog.engine.times.lattice import Time
from tests.engine.times.strategies import time_lists, times

Lists = tuple[int, list[Time], list[Time]]
two_lists = st.tuples(st.sampled_from((1, 2, 3)), st.integers(0, 6)).flatmap(
    lambda s: st.tuples(st.just(s[0]), *[st.lists(times(s[0]), min_size=s[1], max_size=s[1])] * 2)
)


@given(two_lists)
def test_elementwise_functions(lists: Lists) -> None:
    depth, a, b = lists
    x, y = columns.pack(a, depth), columns.pack(b, depth)
    assert columns.less_equal(x, y).tolist() == [lattice.less_equal(s, t) for s, t in zip(a, b, strict=True)]
    assert columns.unpack(columns.join(x, y)) == [lattice.join(s, t) for s, t in zip(a, b, strict=True)]


@given(two_lists)
def test_one_time_against_many(lists: Lists) -> None:
    depth, a, b = lists
    x = columns.pack(a, depth)
    for time in b:
        assert columns.less_equal(columns.one(time), x).tolist() == [lattice.less_equal(time, t) for t in a]


@given(two_lists)
def test_times_in_advance_of_a_frontier(lists: Lists) -> None:
    depth, a, frontier = lists
    x, f = columns.pack(a, depth), columns.pack(frontier, depth)
    assert columns.in_advance(x, f).tolist() == [Antichain.of(frontier).dominates(t) for t in a]


@given(time_lists(max_size=12))
def test_order_is_lexicographic(given_times: tuple[int, list[Time]]) -> None:
    depth, listed = given_times
    packed = columns.pack(listed, depth)
    assert columns.unpack(packed[:, columns.order(packed)]) == sorted(listed)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_times_at_all(depth: int) -> None:
    none = columns.pack([], depth)
    assert none.shape == (depth, 0)
