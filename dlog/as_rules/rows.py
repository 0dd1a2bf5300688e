"""Rows of inputs as relations have them, and relations as rows and how often each is there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.arguments import bad_argument
from dlog.as_rules.bodies import Stored
from dlog.dataflow.kinds import Kind, Objects, decode
from dlog.dataflow.rows import Row, words_of
from dlog.dataflow.schema import Schema
from dlog.engine.operators.delta import Delta
from dlog.engine.values.arrow_memory import table_of

if TYPE_CHECKING:
    from dlog.tabular import Tabular

Columns = dict[str, np.ndarray]


def stored_of(name: Any, *relations: Mapping[str, Stored]) -> Stored:
    """The relation of this name. Raises DlogError where there is none."""
    for each in relations:
        if isinstance(name, str) and name in each:
            return each[name]
    raise bad_argument("name", f"one of {', '.join(known for each in relations for known in each)}", name)


def as_facts(stored: Stored, rows: Any) -> Any:
    """Rows of an input as those of its relation: of one that is no set, each different one with its number."""
    if not stored.weighted:
        return as_set(stored, rows)
    words, number = words_of(_schema(stored), [rows] if isinstance(rows, tuple) else rows, objects := Objects())
    found = Delta(words, np.zeros((1, number), np.int64), np.ones(number, np.int64)).consolidated()
    columns = _decoded(stored, found.columns, objects)
    return {**columns, stored.attributes[-1]: found.diffs}


def as_set(stored: Stored, rows: Any) -> Any:
    """Rows of an input that is a set; as they are where the relation takes them so."""
    if stored.names == stored.attributes and set(stored.kinds) <= {int, str} and len(stored.names) > 1:
        return rows
    words, _ = words_of(_schema(stored), [rows] if isinstance(rows, tuple) else rows, objects := Objects())
    return _decoded(stored, words, objects)


def tuples_of(stored: Stored, rows: Any) -> list[Row]:
    """Rows of an input as tuples."""
    words, number = words_of(_schema(stored), [rows] if isinstance(rows, tuple) else rows, objects := Objects())
    values = zip(_decoded(stored, words, objects).values(), stored.kinds, strict=True)
    columns = [_listed(column, kind) for column, kind in values]
    return list(zip(*columns, strict=True)) if columns else [()] * number


def columns_of(stored: Stored, rows: Iterable[Row], **others: Iterable[int]) -> Columns:
    """Tuples as columns of a relation, beside others of numbers."""
    words, _ = words_of(_schema(stored), list(rows), objects := Objects())
    return {**_decoded(stored, words, objects), **{name: np.array(list(each), np.int64) for name, each in others.items()}}


def stream_of(stored: Stored, changes: Any) -> tuple[list[Row], list[int], list[int]]:
    """A stream of changes as rows, their rounds and their diffs: from columns or a table with `round` and `diff` among them, or
    from (round, row, diff) tuples."""
    rows: Any
    if hasattr(changes, "__arrow_c_stream__"):
        changes = table_of(changes).to_pydict()
    if isinstance(changes, Mapping):
        rows = {name: column for name, column in changes.items() if name not in ("round", "diff")}
        rounds = changes.get("round", ())
        diffs = changes.get("diff", [1] * len(rounds))
    else:
        listed = list(changes)
        if not all(isinstance(each, tuple) and len(each) == 3 for each in listed):
            raise bad_argument("changes", "columns with `round` and `diff`, or (round, row, diff) tuples", changes)
        rounds, rows, diffs = ([each[k] for each in listed] for k in range(3))
    found = tuples_of(stored, rows)
    return found, whole_numbers("round", rounds, len(found)), whole_numbers("diff", diffs, len(found))


def whole_numbers(name: str, given: Any, rows: int) -> list[int]:
    """A whole number for each row, from one for all or as many as there are rows."""
    array = np.asarray(given)
    if array.dtype.kind not in "iu" and array.size:
        raise bad_argument(name, "a whole number, or one for each row", given)
    if array.ndim > 1 or (array.ndim and len(array) != rows):
        raise bad_argument(name, f"as many numbers as rows, {rows}", given)
    return np.broadcast_to(array, (rows,)).tolist()  # type: ignore[no-any-return]


def counted(stored: Stored, relation: Tabular) -> dict[Row, int]:
    """How often each row of a relation is there."""
    if not stored.attributes:
        return {(): 1} if len(relation) else {}
    given = relation.to_numpy()
    columns = [given[attribute] for attribute in stored.attributes]
    counts = columns.pop().tolist() if stored.weighted else [1] * len(columns[0])
    values = [_listed(column, kind) for column, kind in zip(columns, stored.kinds, strict=True)]
    rows = zip(*values, strict=True) if values else [()] * len(counts)
    return dict(zip(rows, counts, strict=True))


def _listed(column: np.ndarray, kind: Kind) -> list[Any]:
    """The values of a column as Python's. There is one NaN, so that rows can be found by it."""
    if kind is float and np.isnan(column).any():
        return [math.nan if value != value else value for value in column.tolist()]
    return (column.astype(bool) if kind is bool else column).tolist()  # type: ignore[no-any-return]


def _schema(stored: Stored) -> Schema:
    return Schema(stored.names, stored.kinds)


def _decoded(stored: Stored, words: tuple[np.ndarray, ...], objects: Objects) -> Columns:
    kinds = ((int if kind is bool else kind) for kind in stored.kinds)
    return {a: decode(kind, column, objects) for a, kind, column in zip(stored.attributes, kinds, words, strict=False)}
