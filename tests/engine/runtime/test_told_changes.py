"""What an engine tells of a commit is what its rows show before and after, round by round: each change once."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.kernels.incremental.loop.reading import MAX_COMPARED_CHANGES
from dlog.engine.runtime.storage import collection
from dlog.engine.values.updates import Updates
from tests.engine.runtime.maintaining import engine_of

TEXT = """.decl given(x: number, y: unsigned, z: float)
.decl shown(z: float, x: number)
.input given
.output shown
shown(z, x) :- given(x, y, z), y > 1.
"""
Row = tuple[int, int, float]

words = st.sampled_from([0, 1, 2, 2**40, -1])
row = st.tuples(words, words, st.sampled_from([0.0, -2.5, 1e300]))
commits = st.lists(st.lists(st.tuples(row, st.booleans(), st.integers(0, 1)), max_size=3 * MAX_COMPARED_CHANGES), max_size=4)


def shown(given: set[Row]) -> set[tuple[object, ...]]:
    return {(z, x) for x, y, z in given if y not in (0, 1)}  # unsigned: -1 is a large number


def between(before: set[Any], after: set[Any], round: int) -> set[tuple[Any, ...]]:
    return {(*row, 1 if row in after else -1, round) for row in before ^ after}


@given(commits, st.sampled_from([2, collection.MAX_COPIED_ROWS]))
def test_changes_are_told_once(made: list[list[tuple[Row, bool, int]]], copied: int) -> None:
    """Whatever comes and goes again within a round, and whichever way the rows of one that was empty are read."""
    with engine_of(TEXT) as engine, patch.object(collection, "MAX_COPIED_ROWS", copied):
        there: set[Row] = set()
        for listed in filter(None, made):
            first = engine.round + 1
            expected: dict[str, set[tuple[Any, ...]]] = {"given": set(), "shown": set()}
            for round in (first, first + 1):
                before = set(there)
                for row, comes, at in listed:
                    if first + at == round:
                        (there.add if comes else there.discard)(row)
                expected["given"] |= between(before, there, round)
                expected["shown"] |= between(shown(before), shown(there), round)
            engine.commit({"given": updates(sorted(listed, key=lambda change: change[2]), first)})
            for name, types in (("given", "qqd"), ("shown", "dq")):
                found = engine.changes(name)
                values = [column.view(kind).tolist() for column, kind in zip(found.columns, types, strict=True)]
                told = list(zip(*values, found.diffs.tolist(), found.rounds.tolist(), strict=True))
                assert sorted(told) == sorted(expected[name]), name


def updates(listed: list[tuple[Row, bool, int]], first: int) -> Updates:
    fields = zip(zip(*[row for row, _, _ in listed], strict=True), "qqd", strict=True)
    columns = tuple(np.array(values, kind).view(np.int64) for values, kind in fields)
    diffs = np.array([1 if comes else -1 for _, comes, _ in listed])
    return Updates(columns, diffs, first + np.array([at for _, _, at in listed]))
