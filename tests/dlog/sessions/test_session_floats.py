"""Least and greatest floats over rounds are, bit by bit, those that evaluation from scratch finds: zeros and NaN too."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import dlog
from tests.examples import examples

PROGRAM = """
.decl e(x: number, v: float)
.decl low(x: number, v: float)
.decl high(x: number, v: float)
.decl reached(x: number, v: float)
low(x, v) :- e(x, _), v = min w : { e(x, w) }.
high(x, v) :- e(x, _), v = max w : { e(x, w) }.
reached(x, v) :- e(x, _), v = min w : { e(x, w) ; reached(y, w), e(y, _), x = y + 1 }.
"""
VALUES = st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5])
CHANGES = st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 2), VALUES), max_size=4), max_size=8)
Bits = list[tuple[int, bytes]]


def bits_of(rows: Iterable[tuple[int, float]]) -> Bits:
    return sorted((x, struct.pack("<d", v)) for x, v in rows)


@examples(60)
@given(rounds=CHANGES)
def test_least_and_greatest_floats_do_not_depend_on_the_order_of_rounds(
    rounds: list[list[tuple[bool, int, float]]],
) -> None:
    with dlog.session(PROGRAM) as s:
        for round in rounds:
            for come, x, value in round:
                (s.insert if come else s.remove)("e", (x, value))
            s.commit()
            fresh = dlog.run(PROGRAM, {"e": list(s["e"])})
            for name in ("e", "low", "high", "reached"):
                assert bits_of(s[name]) == bits_of(fresh[name]), name


@examples(60)
@given(rounds=CHANGES)
def test_sums_know_what_is_not_finite(rounds: list[list[tuple[bool, int, float]]]) -> None:
    """As evaluation from scratch does, whatever has come and gone. (Of a zero that nothing is added to a run has the sign.)"""
    text = ".decl e(x: number, v: float)\n.decl t(v: float)\n.decl m(v: float)\n"
    text += "t(v) :- v = sum w : { e(_, w) }.\nm(v) :- e(_, _), v = mean w : { e(_, w) }.\n"
    with dlog.session(text) as s:
        for round in rounds:
            for come, x, value in round:
                (s.insert if come else s.remove)("e", (x, value))
            s.commit()
            anew = dlog.run(text + ".output t, m\n", {"e": list(s["e"])})
            for name in "tm":
                found, expected = ([repr(value + 0.0) for (value,) in rows] for rows in (s[name], anew[name]))
                assert found == expected


def test_very_many_infinities_stay_what_they_are() -> None:
    rows = 1 << 21
    given = {"x": np.arange(rows), "v": np.full(rows, math.inf)}
    with dlog.session(".decl e(x: number, v: float)\n.decl t(v: float)\nt(v) :- v = sum w : { e(_, w) }.\n", {"e": given}) as s:
        assert list(s["t"]) == [(math.inf,)]
        s.insert("e", (-1, -math.inf))
        s.commit()
        assert math.isnan(next(iter(s["t"]))[0])
        s.remove("e", (-1, -math.inf))
        s.commit()
        assert list(s["t"]) == [(math.inf,)]
