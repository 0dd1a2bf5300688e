"""Times before and after their changes form a lattice; its columns say what the wrapper says."""

from __future__ import annotations

import itertools

from dlog.engine.times.altneu import AltNeu

POINTS = [AltNeu(t, neu) for t in itertools.product(range(3), repeat=2) for neu in (False, True)]


def test_0_9_joins_and_meets_are_the_closest_bounds() -> None:
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
