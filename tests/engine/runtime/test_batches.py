"""Commits are cut into batches of rounds that follow one another, and that leave out none that has changes; changes of a row in
one round are added up."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.runtime.incremental.batches.changes import batches, net

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


WORDS = st.sampled_from([0, 1, 2, -1, 1 << 32, (1 << 62) + 1, -(1 << 63)])


@given(st.lists(st.tuples(WORDS, st.integers(1, 3), st.sampled_from([-1, 1])), max_size=12), st.booleans())
def test_changes_of_a_row_in_a_round_are_added_up(changes: list[tuple[int, int, int]], in_one: bool) -> None:
    given = [(row, 1 if in_one else round, diff) for row, round, diff in changes]
    expected: dict[tuple[int, int], int] = {}
    for row, round, diff in given:
        expected[row, round] = expected.get((row, round), 0) + diff
    rows, rounds, diffs = np.array(given, np.int64).reshape(-1, 3).T
    places, sums = net(rows, rounds, diffs)
    found = list(zip(zip(rows[places].tolist(), rounds[places].tolist(), strict=True), sums.tolist(), strict=True))
    assert len(dict(found)) == len(found)
    assert {at: diff for at, diff in found if diff} == {at: diff for at, diff in expected.items() if diff}
