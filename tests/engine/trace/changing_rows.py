"""Sets of rows that change round by round: what changes, the rows after each round, and both as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates

Row = tuple[int, ...]
VALUES = st.sampled_from([0, 1, 2, -1, 2**31, -(2**63), 2**63 - 1])
ROUNDS = st.lists(st.lists(st.tuples(VALUES, VALUES), max_size=4), min_size=1, max_size=12)
"""The rows that each round turns: out of the set if they are there, else in."""


def stories(rounds: list[list[Row]], held: set[Row]) -> list[dict[Row, int]]:
    """The diffs of each round, and the rows after all of them in `held`."""
    found = []
    for rows in rounds:
        diffs = {row: -1 if row in held else 1 for row in rows}
        held.symmetric_difference_update(diffs)
        found.append(diffs)
    return found


def columns_of(rows: list[Row], dtype: Any = np.int64) -> tuple[np.ndarray, ...]:
    table = np.array(rows, np.int64).reshape(len(rows), 2)
    return tuple(np.ascontiguousarray(table[:, c].astype(dtype)) for c in range(2))


def updates_of(diffs: dict[Row, int], round: int) -> Updates:
    values = np.array(list(diffs.values()), np.int64)
    return Updates(columns_of(list(diffs)), values, np.full(len(diffs), round))


def table_of(rows: list[Row], dtype: Any = np.int64, fresh: bool = False) -> Table:
    return Table((Kind.NUMBER,) * 2, columns_of(rows, dtype), fresh=fresh)


def set_of(table: Table) -> set[Row]:
    """The rows of a table that has each once."""
    rows = list(zip(*(c.tolist() for c in table.columns), strict=True))
    assert len(set(rows)) == len(rows) == table.rows
    return set(rows)


def states_of(story: list[dict[Row, int]]) -> list[set[Row]]:
    """The rows after each round."""
    found: list[set[Row]] = [set()]
    for diffs in story[1:]:
        found.append({row for row in found[-1] | diffs.keys() if (row in found[-1]) ^ (row in diffs)})
    return found
