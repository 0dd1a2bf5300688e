"""Several aggregates of the same rows, by few groups or many, in rounds of hundreds of rows: as Python adds them up."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from tests.examples import examples

Row = tuple[int, int, int, int]
ROWS = ".decl item(id: number, a: number, b: number, v: number)\n.input item\n"
BY_TWO = """
.decl by(a: number, b: number, n: number, total: number, twice: number, most: number, average: float)
by(a, b, n, t, w, m, e) :- item(_, a, b, _), n = count : { item(_, a, b, _) }, t = sum v : { item(_, a, b, v) },
    w = sum v * 2 : { item(_, a, b, v), v > 3 }, m = max v : { item(_, a, b, v) }, e = mean v : { item(_, a, b, v) }.
"""
ALONE = """
.decl by(a: number, total: number)
by(a, t) :- item(_, a, _, _), t = sum v : { item(_, a, _, v) }.
"""
OF_ALL = """
.decl by(n: number, total: number)
by(n, t) :- item(_, _, _, _), n = count : { item(_, _, _, _) }, t = sum v : { item(_, _, _, v) }.
"""


def by_two(rows: set[Row]) -> set[Any]:
    groups = defaultdict(list)
    for _, a, b, v in rows:
        groups[a, b].append(v)
    return {(a, b, len(v), sum(v), sum(2 * x for x in v if x > 3), max(v), sum(v) / len(v)) for (a, b), v in groups.items()}


def alone(rows: set[Row]) -> set[Any]:
    return {(a, sum(row[3] for row in rows if row[1] == a)) for a in {row[1] for row in rows}}


def of_all(rows: set[Row]) -> set[Any]:
    return {(len(rows), sum(row[3] for row in rows))} if rows else set()


@pytest.mark.parametrize(("rules", "expected"), [(BY_TWO, by_two), (ALONE, alone), (OF_ALL, of_all)])
@examples(25)
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([20, 64, 200, 1100]),
    groups=st.sampled_from([1, 3, 6, 40]),
    rounds=st.sampled_from([1, 1, 3]),
)
def test_aggregates_of_the_same_rows(rules: str, expected: Any, seed: int, size: int, groups: int, rounds: int) -> None:
    random, there, number = Random(seed), set[Row](), 0
    with dlog.session(ROWS + rules, threads=1) as session:
        for _ in range(4):
            changes: list[tuple[int, Row, int]] = []
            for round in range(session.round + 1, session.round + 1 + rounds):
                coming = {(number + k, random.randrange(groups), random.randrange(2), random.choice([0, 1, 5, -7, 2**40]))
                          for k in range(size)}  # fmt: skip
                number += size
                going = set(random.sample(sorted(there), len(there) // 3))
                changes += [(round, row, 1) for row in sorted(coming)] + [(round, row, -1) for row in sorted(going)]
                there = (there | coming) - going
            commit(session, changes, rounds)
            found = set(session["by"])
            assert {tuple(map(rounded, row)) for row in found} == {tuple(map(rounded, row)) for row in expected(there)}
        session.remove("item", list(there))
        session.commit()
        assert not set(session["by"])


def commit(session: dlog.Session, changes: list[tuple[int, Row, int]], rounds: int) -> None:
    """The changes as those of rounds, or of one by tables."""
    if rounds > 1:
        session.commit_rounds({"item": changes})
        return
    for diff, change in ((1, session.insert), (-1, session.remove)):
        listed = [row for _, row, sign in changes if sign == diff]
        if listed:
            change("item", np.array(listed, np.int64))
    session.commit()


def rounded(value: float) -> float:
    return round(value, 3) if isinstance(value, float) else value
