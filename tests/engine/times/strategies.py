"""Times, frontiers and sets of updates for hypothesis, small enough to try every time of the lattice against."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from dlog.engine.times.lattice import Time

SPAN = 4
DEPTHS = (1, 2, 3)


def times(depth: int) -> st.SearchStrategy[Time]:
    return st.tuples(*[st.integers(0, SPAN - 1)] * depth)


def all_times(depth: int) -> list[Time]:
    return list(itertools.product(range(SPAN + 1), repeat=depth))


@st.composite
def time_lists(draw: st.DrawFn, min_size: int = 0, max_size: int = 6) -> tuple[int, list[Time]]:
    """A depth and some times of it."""
    depth = draw(st.sampled_from(DEPTHS))
    return depth, draw(st.lists(times(depth), min_size=min_size, max_size=max_size))
