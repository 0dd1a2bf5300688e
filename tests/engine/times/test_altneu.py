"""Times before and after their changes form a lattice; its columns say what the wrapper says."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.times import altneu, columns
from dlog.engine.times.altneu import AltNeu
from tests.engine.times.strategies import times

POINTS = [AltNeu(t, neu) for t in itertools.product(range(3), repeat=2) for neu in (False, True)]


def test_joins_and_meets_are_the_closest_bounds() -> None:
    for a, b in itertools.product(POINTS, repeat=2):
        upper, lower = a.join(b), a.meet(b)
        assert a.less_equal(upper) and b.less_equal(upper) and lower.less_equal(a) and lower.less_equal(b)
        assert all(upper.less_equal(c) for c in POINTS if a.less_equal(c) and b.less_equal(c))
        assert all(c.less_equal(lower) for c in POINTS if c.less_equal(a) and c.less_equal(b))


def test_order_is_partial() -> None:
    for a, b, c in itertools.product(POINTS, repeat=3):
        assert not (a.less_equal(b) and b.less_equal(a)) or a == b
        assert not (a.less_equal(b) and b.less_equal(c)) or a.less_equal(c)


def test_the_nudge_counts_at_equal_times_only() -> None:
    assert AltNeu((1,)).less_equal(AltNeu((1,), True)) and not AltNeu((1,), True).less_equal(AltNeu((1,)))
    assert AltNeu((1,), True).less_equal(AltNeu((2,)))


points = st.builds(AltNeu, times(2), st.booleans())


@given(st.lists(points, min_size=1, max_size=3), points, points)
def test_advance_keeps_the_answers_of_later_readers(frontier: list[AltNeu], time: AltNeu, reader: AltNeu) -> None:
    if any(f.less_equal(reader) for f in frontier):
        assert time.less_equal(reader) == time.advance(frontier).less_equal(reader)
    assert time.advance([]) == time


def packed(listed: list[AltNeu]) -> altneu.NudgedTimes:
    return columns.pack([t.time for t in listed], 2), np.array([t.neu for t in listed], bool)


def unpacked(found: altneu.NudgedTimes) -> list[AltNeu]:
    return [AltNeu(time, bool(neu)) for time, neu in zip(columns.unpack(found[0]), found[1], strict=True)]


def test_columns_say_the_same() -> None:
    a, b = (list(side) for side in zip(*itertools.product(POINTS, repeat=2), strict=True))
    x, y = packed(a), packed(b)
    assert altneu.less_equal(x, y).tolist() == [s.less_equal(t) for s, t in zip(a, b, strict=True)]
    assert unpacked(altneu.join(x, y)) == [s.join(t) for s, t in zip(a, b, strict=True)]
    assert unpacked(altneu.meet(x, y)) == [s.meet(t) for s, t in zip(a, b, strict=True)]
    keys = [((s.time, s.neu), (t.time, t.neu)) for s, t in zip(a, b, strict=True)]
    assert altneu.compare(x, y).tolist() == [(s > t) - (s < t) for s, t in keys]
