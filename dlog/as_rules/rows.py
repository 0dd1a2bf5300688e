"""Rows of inputs as relations have them, and relations as rows and how often each is there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.arguments import bad_argument
from dlog.as_rules.bodies import Stored
from dlog.dataflow.dates import has_dates
from dlog.dataflow.kinds import Kind, Objects, decode
from dlog.dataflow.rows import Row, words_of
from dlog.dataflow.schema import Schema
from dlog.engine.operators.delta import Delta
from dlog.engine.values.arrow_memory import table_of
from dlog.grammar.diagnostics import DlogError

if TYPE_CHECKING:
    from dlog.sessions.ingest.row_reader import RowReader
    from dlog.sessions.ingest.staged_relation import Words
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
    """Rows of an input without numbers; as they are where the relation takes them so."""
    plain = stored.names == stored.attributes[: len(stored.names)] and set(stored.kinds) <= {int, str}
    if plain and (len(stored.names) > 1 or (stored.names and isinstance(rows, Mapping))) and not has_dates(rows):
        return rows
    words, number = words_of(_schema(stored), [rows] if isinstance(rows, tuple) else rows, objects := Objects())
    return _decoded(stored, words, objects) if stored.names else [()] * number


def words_in(reader: RowReader, stored: Stored, rows: Any) -> tuple[tuple[np.ndarray, ...], int]:
    """Rows of an input as columns of words of the engine, without numbers, and how many there are."""
    found = as_set(stored, rows)
    columns, number = reader.columns(found)
    return tuple([column.copy() if column.flags.writeable else column for column in columns]), number


def few_in(reader: RowReader, stored: Stored, rows: Any) -> list[Words] | None:
    """The same of few rows, one by one, if they are few Python tuples that can be taken so."""
    if not set(stored.kinds) <= {int, float, str}:
        return None
    if float in stored.kinds:
        rows = _one_zero(rows)
    try:
        return reader.few(rows)
    except DlogError:  # unless they have dates, they are refused as columns, too
        return None


def _one_zero(rows: Any) -> Any:
    """A row with 0.0 for -0.0; of others none is taken one by one."""
    return tuple([value + 0.0 if type(value) is float else value for value in rows]) if type(rows) is tuple else None


def stream_of(changes: Any) -> tuple[Any, Any, Any]:
    """A stream of changes as rows, their rounds and their diffs: from columns or a table with `round` and `diff` among them, or
    from (round, row, diff) tuples."""
    rows: Any
    if hasattr(changes, "__arrow_c_stream__"):
        table = table_of(changes)
        changes = dict(zip(table.column_names, table.columns, strict=True))
    if isinstance(changes, Mapping):
        rows = {name: column for name, column in changes.items() if name not in ("round", "diff")}
        rounds = changes.get("round", ())
        return rows or [()] * np.size(rounds), rounds, changes.get("diff", 1)
    listed = list(changes)
    if not all(isinstance(each, tuple) and len(each) == 3 for each in listed):
        raise bad_argument("changes", "columns with `round` and `diff`, or (round, row, diff) tuples", changes)
    rounds, rows, diffs = ([each[k] for each in listed] for k in range(3))
    return rows, rounds, diffs


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
