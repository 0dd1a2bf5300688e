"""Least and greatest floats over rounds are, bit by bit, those that evaluation from scratch finds: zeros and NaN too."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

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
