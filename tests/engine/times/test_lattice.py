"""The laws of the lattice of times and of frontiers, against every time of a small box."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.times.frontier import Antichain
from dlog.engine.times.lattice import Time, join, less_equal, meet, minimum
from tests.engine.times.strategies import all_times, time_lists, times

pairs = st.sampled_from((1, 2, 3)).flatmap(lambda depth: st.tuples(times(depth), times(depth)))


@given(pairs)
def test_join_is_the_least_upper_bound(pair: tuple[Time, Time]) -> None:
    a, b = pair
    upper = join(a, b)
    assert less_equal(a, upper) and less_equal(b, upper)
    assert all(less_equal(upper, c) for c in all_times(len(a)) if less_equal(a, c) and less_equal(b, c))


@given(pairs)
def test_meet_is_the_greatest_lower_bound(pair: tuple[Time, Time]) -> None:
    a, b = pair
    lower = meet(a, b)
    assert less_equal(lower, a) and less_equal(lower, b)
    assert all(less_equal(c, lower) for c in all_times(len(a)) if less_equal(c, a) and less_equal(c, b))


@given(pairs)
def test_order_is_partial_and_lexicographic_order_refines_it(pair: tuple[Time, Time]) -> None:
    a, b = pair
    assert less_equal(a, a)
    assert not (less_equal(a, b) and less_equal(b, a)) or a == b
    assert a == b or not less_equal(a, b) or a < b
    assert less_equal(minimum(len(a)), a)


def test_incomparable_times() -> None:
    assert not less_equal((0, 1), (1, 0)) and not less_equal((1, 0), (0, 1))
    assert join((0, 1), (1, 0)) == (1, 1) and meet((0, 1), (1, 0)) == (0, 0)


def test_times_of_different_depth_are_refused() -> None:
    with pytest.raises(ValueError):
        less_equal((1,), (1, 0))


@given(time_lists(), st.data())
def test_2_10_an_antichain_is_minimal_and_keeps_its_meaning(given_times: tuple[int, list[Time]], data: st.DataObject) -> None:
    depth, listed = given_times
    antichain = Antichain.of(listed)
    for a in antichain:
        assert not any(less_equal(b, a) for b in antichain if b != a)
    for time in all_times(depth):
        assert antichain.dominates(time) == any(less_equal(t, time) for t in listed)
    assert antichain == Antichain.of(data.draw(st.permutations(listed)))


@given(st.sampled_from((1, 2, 3)).flatmap(lambda d: st.tuples(*[st.lists(times(d), max_size=4)] * 2, st.just(d))))
def test_joins_of_frontiers(given_lists: tuple[list[Time], list[Time], int]) -> None:
    a, b = Antichain.of(given_lists[0]), Antichain.of(given_lists[1])
    for time in all_times(given_lists[2]):
        assert a.join(b).dominates(time) == (a.dominates(time) and b.dominates(time))
    assert a.precedes(a.join(b)) and b.precedes(a.join(b))
    assert a.precedes(b) == all(a.dominates(t) for t in all_times(given_lists[2]) if b.dominates(t))


def test_the_empty_frontier_comes_last() -> None:
    nothing, some = Antichain.of([]), Antichain.at(3, 0)
    assert some.precedes(nothing) and not nothing.precedes(some)
    assert not nothing.dominates((9, 9))
    assert str(Antichain.of([*some, (1, 5)])) == "{(1, 5), (3, 0)}"
