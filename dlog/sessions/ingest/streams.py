"""Changes of many rounds at once, from whatever they come in, as updates of the engine.

Rounds ascend in the result; of the changes of one row in one round the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dlog.arguments import MAX_COUNT, bad_argument
from dlog.codec import Row, value_preview
from dlog.engine.ir.rules import Relation
from dlog.engine.values.arrow_memory import is_column
from dlog.engine.values.differences import Columns, last_of_each
from dlog.engine.values.updates import Updates
from dlog.rows import arrow_table, check_column
from dlog.sessions.follow.changes import Changes, mark_names
from dlog.sessions.ingest.row_reader import RowReader
from dlog.sessions.mistakes import mistake

COMPARED_CHANGES = 8
"""Changes of a round that are compared with each other: one pass over all changes for each distance, where sorting them takes
as long as some fifteen passes."""
_STREAM = "changes: (round, relation, diff, row) tuples"


def rounds_of(row_reader: RowReader, changes: Any, after: int) -> Updates:
    """The changes of one relation: another session's `Changes`, (round, row, diff) tuples, named columns of which `round` and
    `diff` (without it: +1) are marks, as a dict or a table, or `Updates` as the engine has them, in any order."""
    if isinstance(changes, Updates):
        return netted(row_reader.relation, changes, after)
    if isinstance(changes, Changes):
        rows, rounds, diffs = [row for row, _ in changes], changes.rounds, changes.diffs
    elif isinstance(changes, Mapping):
        rows, rounds, diffs = _marked(row_reader.relation, dict(changes))
    else:
        data = arrow_table(row_reader.relation, changes)
        if data is not None:
            rows, rounds, diffs = _marked(row_reader.relation, dict(zip(data.column_names, data.columns, strict=True)))
        else:
            rows, rounds, diffs = _listed(row_reader.relation, changes)
    columns, count = row_reader.columns(rows)
    marks = _integers(row_reader.relation, "round", rounds, count), _integers(row_reader.relation, "diff", diffs, count)
    return netted(row_reader.relation, Updates(columns, marks[1], marks[0]), after)


def by_relation_of(stream: Any) -> dict[str, list[tuple[int, Row, int]]]:
    """A stream of (round, relation, diff, row) as changes for each relation."""
    if not isinstance(stream, Iterable):
        raise bad_argument("stream", _STREAM, stream)
    found: dict[str, list[tuple[int, Row, int]]] = {}
    for item in stream:
        if not isinstance(item, tuple | list) or len(item) != 4 or not isinstance(item[1], str):
            raise mistake("bad-rows", f"{value_preview(item)} is not a change: (round, relation, diff, row)")
        round, relation, diff, row = item
        found.setdefault(relation, []).append((round, row, diff))
    return found


def netted(relation: Relation, updates: Updates, after: int) -> Updates:
    """Checked, in the order of rounds, each row once a round."""
    rounds, diffs, columns = updates.rounds, updates.diffs, updates.columns
    if not updates.rows:
        return updates
    if not (np.abs(diffs) == 1).all():
        wrong = diffs[np.abs(diffs) != 1][0]
        raise mistake("bad-diff", f"a change of `{relation.name}` has diff {wrong}: relations are sets, it is 1 or -1")
    if (rounds[1:] < rounds[:-1]).any():
        order = np.argsort(rounds, kind="stable")
        rounds, diffs, columns = rounds[order], diffs[order], tuple(column[order] for column in columns)
    if rounds[0] <= after:
        message = f"changes of `{relation.name}` are for round {rounds[0]}, but round {after} is committed"
        raise mistake("past-round", message)
    if rounds[-1] > MAX_COUNT:
        raise mistake("past-round", f"changes of `{relation.name}` are for round {rounds[-1]}, but the last one is {MAX_COUNT}")
    if diffs.min() == diffs.max() or not _may_repeat(rounds, columns):
        return Updates(columns, diffs, rounds)
    places = last_of_each((rounds, *columns), len(rounds))
    return Updates(tuple(column[places] for column in columns), diffs[places], rounds[places])


def _may_repeat(rounds: np.ndarray, columns: Columns) -> bool:
    """Whether a row may have several changes in one round (ascending), as far as can be told without sorting: the changes of
    small rounds are compared with each other."""
    same = together = rounds[1:] == rounds[:-1]
    for distance in range(1, COMPARED_CHANGES):
        if not same.any():
            return False
        repeated = same
        for column in columns:
            repeated = repeated & (column[distance:] == column[:-distance])
        if repeated.any():
            return True
        same = same[:-1] & together[distance:]
    return bool(same.any())


def _marked(relation: Relation, columns: dict[str, Any]) -> tuple[Any, Any, Any]:
    diff, round = mark_names(relation)
    if round not in columns:
        raise mistake("bad-columns", f"the changes of `{relation.name}` need a column `{round}`")
    rounds = columns.pop(round)
    return (columns if relation.arity else [()] * len(rounds)), rounds, columns.pop(diff, None)


def _listed(relation: Relation, changes: Any) -> tuple[Any, Any, Any]:
    if not isinstance(changes, Iterable) or isinstance(changes, str | bytes):
        note = "give (round, row, diff) tuples, a dict of columns, a table or `Changes`"
        raise mistake("bad-rows", f"{value_preview(changes)} is no changes of `{relation.name}`", note)
    listed = list(changes)
    for item in listed:
        if not isinstance(item, tuple | list) or len(item) != 3:
            raise mistake("bad-rows", f"{value_preview(item)} is not a change of `{relation.name}`: (round, row, diff)")
    return [row for _, row, _ in listed], [round for round, _, _ in listed], [diff for _, _, diff in listed]


def _integers(relation: Relation, name: str, values: Any, count: int) -> np.ndarray:
    """A column of marks as int64; diffs that are not given are 1."""
    if values is None:
        return np.ones(count, np.int64)
    column = f"the column `{name}` of the changes of `{relation.name}`"
    if is_column(values):
        check_column(relation, name, values)
    try:
        found = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    except ValueError:
        raise mistake("bad-columns", f"{column} is not of integers, but {value_preview(values)}") from None
    if found.ndim != 1:
        raise mistake("bad-columns", f"{column} is not a list of integers, but {value_preview(values)}")
    if len(found) and not np.issubdtype(found.dtype, np.integer):
        raise mistake("bad-columns", f"{column} is not of integers, but {value_preview(values)}")
    if len(found) != count:
        raise mistake("bad-columns", f"the changes of `{relation.name}` have {count} rows, but {len(found)} in `{name}`")
    if found.dtype == np.uint64 and len(found) and int(found.max()) > MAX_COUNT:
        raise mistake("bad-columns", f"{column} has {found.max()}: the largest number is {MAX_COUNT}")
    return np.ascontiguousarray(found, np.int64)
