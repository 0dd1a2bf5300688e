"""The changes of rounds: rows with a diff (+1 came, -1 went) and a round, for a person, NumPy or Arrow.

A `Changes` is made from the engine's columns without looking at them; values are decoded when they are asked for.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.codec import Codec, Row
from dlog.display.preview import SHOWN_ROWS
from dlog.engine.ir.rules import Kind, Relation
from dlog.engine.values.differences import difference, words
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.relation import signature
from dlog.tabular import Tabular

if TYPE_CHECKING:
    import pyarrow as pa

EMPTY = np.empty(0, np.int64)


class Changes(Tabular):
    """The changes of one relation in one or several rounds: each row at most once a round, in no particular order within one.

    Iterating gives pairs of a row and its diff. `bool` tells whether there are any.

    >>> import dlog
    >>> s = dlog.session(".decl edge(x: number, y: number)\\n.decl node(x: number)\\nnode(x), node(y) :- edge(x, y).")
    >>> s.insert("edge", [(1, 2), (2, 3)])
    >>> _ = s.commit()
    >>> s.remove("edge", (2, 3))
    >>> s.commit().changes("node").rows
    [((3,), -1)]
    """

    no_rows = "`inserted` are the rows that have come, `removed` those that have gone; sessions take both by `commit_rounds`"

    def __init__(self, relation: Relation, updates: Updates, codec: Codec) -> None:
        self._relation = relation
        self._updates = updates
        self._codec = codec

    @property
    def name(self) -> str:
        """The relation."""
        return self._relation.name

    @property
    def rows(self) -> list[tuple[Row, int]]:
        """Pairs of a row and its diff, as a list."""
        return list(zip(self._rows(), self._updates.diffs.tolist(), strict=True))

    @property
    def rounds(self) -> np.ndarray:
        """The round of each change (int64), ascending."""
        return self._updates.rounds

    @property
    def diffs(self) -> np.ndarray:
        """The diff of each change (int64)."""
        return self._updates.diffs

    def head(self, changes: int = SHOWN_ROWS) -> Changes:
        """The first so many of the changes."""
        columns = tuple(column[:changes] for column in self._updates.columns)
        first = Updates(columns, self._updates.diffs[:changes], self._updates.rounds[:changes])
        return Changes(self._relation, first, self._codec)

    def inserted(self) -> list[Row]:
        """The rows that came."""
        return [row for row, diff in self if diff > 0]

    def removed(self) -> list[Row]:
        """The rows that went."""
        return [row for row, diff in self if diff < 0]

    def __len__(self) -> int:
        return self._updates.rows

    def __iter__(self) -> Iterator[tuple[Row, int]]:
        return zip(self._rows(), self._updates.diffs.tolist(), strict=True)

    def _title(self) -> str:
        came = int((self._updates.diffs > 0).sum())
        return f"dlog.Changes of {signature(self._relation)}: +{came:,} -{len(self) - came:,}"

    def _first(self, rows: int) -> pa.Table | None:
        return self.head(rows).to_arrow()

    def by_round(self) -> Iterator[tuple[int, Changes]]:
        """The rounds that changed something, each with its changes, in order."""
        for round, updates in split(self._updates):
            yield round, Changes(self._relation, updates, self._codec)

    def to_numpy(self) -> dict[str, np.ndarray]:
        """One array for each column, then `diff` and `round`."""
        table = typed(self._relation.kinds, self._updates)
        columns = zip(self._relation.attributes, table.columns, strict=True)
        found = {name: self._codec.to_numpy(type, column) for (name, type), column in columns}
        return self._with_marks(found)

    def to_arrow(self) -> pa.Table:
        """An Arrow table of the columns, then `diff` and `round`."""
        import pyarrow as pa

        table = typed(self._relation.kinds, self._updates)
        columns = zip(self._relation.attributes, table.columns, strict=True)
        return pa.table(self._with_marks({name: self._codec.to_arrow(type, column) for (name, type), column in columns}))

    def _with_marks(self, columns: dict[str, Any]) -> dict[str, Any]:
        """The columns, then those of diffs and rounds."""
        diff, round = mark_names(self._relation)
        return columns | {diff: self._updates.diffs, round: self._updates.rounds}

    def _rows(self) -> Iterator[Row]:
        if not self._relation.attributes:
            return iter([()] * self._updates.rows)
        columns = zip(self._relation.attributes, self._updates.columns, strict=True)
        return zip(*[self._codec.to_python(type, _typed(type.kind, column)) for (_, type), column in columns], strict=True)


def mark_names(relation: Relation) -> tuple[str, str]:
    """The names of the columns of diffs and rounds beside a relation's own: `diff` and `round`, with an underscore where an
    attribute has the name."""
    attributes = [name for name, _ in relation.attributes]
    return unused_name("diff", attributes), unused_name("round", attributes)


def unused_name(name: str, taken: Container[str]) -> str:
    """A name, with underscores before it where it is taken."""
    while name in taken:
        name = f"_{name}"
    return name


def typed(kinds: tuple[Kind, ...], updates: Updates) -> Table:
    """The rows of updates with the dtypes of their kinds."""
    columns = zip(kinds, updates.columns, strict=True)
    return Table(kinds, tuple(_typed(kind, column) for kind, column in columns), updates.rows)


def _typed(kind: Kind, column: np.ndarray) -> np.ndarray:
    match kind:
        case Kind.NUMBER:
            return column
        case Kind.UNSIGNED:
            return column.view(np.uint64)
        case Kind.FLOAT:
            return column.view(np.float64)
        case Kind.RECORD | Kind.SYMBOL:
            return column.astype(np.int32)


def split(updates: Updates) -> Iterator[tuple[int, Updates]]:
    """The updates of each round that has some, in order."""
    rounds = updates.rounds
    if not len(rounds):
        return
    if rounds[0] == rounds[-1]:
        yield int(rounds[0]), updates
        return
    starts = np.flatnonzero(np.diff(rounds, prepend=rounds[0] - 1))
    for low, high in zip(starts.tolist(), [*starts[1:].tolist(), len(rounds)], strict=True):
        columns = tuple(column[low:high] for column in updates.columns)
        yield int(rounds[low]), Updates(columns, updates.diffs[low:high], rounds[low:high])


def from_table(columns: tuple[np.ndarray, ...], rows: int, round: int) -> Updates:
    """All rows of a set as insertions of one round; `columns` are words."""
    return Updates(columns, np.ones(rows, np.int64), np.full(rows, round, np.int64))


def all_of(table: Table, round: int) -> Updates:
    """All rows of a table as insertions."""
    return from_table(tuple(words(column) for column in table.columns), table.rows, round)


def between(old: Table, new: Table, round: int) -> Updates:
    """The changes from one table to another."""
    pair = [tuple(words(column) for column in table.columns) for table in (old, new)]
    columns, diffs = difference(pair[0], old.rows, pair[1], new.rows)
    return Updates(columns, diffs, np.full(len(diffs), round, np.int64))


def after(updates: Updates, round: int) -> Updates:
    """The updates of the rounds after one."""
    if not updates.rows or updates.first > round:
        return updates
    low = int(np.searchsorted(updates.rounds, round, "right"))
    return Updates(tuple(column[low:] for column in updates.columns), updates.diffs[low:], updates.rounds[low:])


def none(arity: int) -> Updates:
    """No changes."""
    return Updates((EMPTY,) * arity, EMPTY, EMPTY)
