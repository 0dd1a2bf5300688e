"""Commits are cut into batches of rounds that follow one another, and that leave out none that has changes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.runtime.incremental.batches.changes import batches

INPUTS = st.lists(st.lists(st.integers(1, 60) | st.integers(1, 10**9), max_size=20).map(sorted), min_size=1, max_size=3)


def one_by_one(rounds: set[int], most: int) -> list[tuple[int, int]]:
    """`batches`, a round at a time."""
    found: list[list[int]] = []
    for round in sorted(rounds):
        if not found or round >= found[-1][0] + most:
            found.append([round, round])
        found[-1][1] = round
    return [(first, last) for first, last in found]


@given(INPUTS, st.integers(1, 20), st.integers(0, 3))
def test_batches_take_all_rounds_in_turn(inputs: list[list[int]], most: int, before: int) -> None:
    rounds = {round for one in inputs for round in one} | {1}
    first, last = max(min(rounds) - before, 1), max(rounds)
    found = list(batches([np.array(one, np.int64) for one in inputs], first, last, most))
    assert found == ([(first, last)] if last - first < most else one_by_one(rounds | {first}, most))
