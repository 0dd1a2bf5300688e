"""Changes as events of keys, as Debezium has them: the row that a key had before a round, and the one that it has after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dlog.codec import Codec, Row
from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Relation
from dlog.engine.values.updates import Updates
from dlog.relation import signature
from dlog.sessions.follow.changes import typed, unused_name
from dlog.tabular import Tabular

if TYPE_CHECKING:
    import pyarrow as pa

OPERATIONS = "cdu"
"""What happened to a key: its row was created, deleted, or another one took its place (updated)."""
Event: TypeAlias = tuple[Row, Row | None, Row | None]
"""A key, its row before and its row after."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A row for each key, where it is `there`; else its columns do not count."""

    columns: tuple[np.ndarray, ...]
    there: np.ndarray

    def masked(self, place: int) -> np.ndarray:
        """A column without what does not count."""
        column = self.columns[place]
        return np.where(self.there, column, 0).astype(column.dtype)


class ChangeEvents(Tabular):
    """What became of keys in a round: iterating gives the key, the row before, or None, and the row after, or None.

    `bool` tells whether there are any."""

    no_rows = "what became of keys is iterated: a row is to be inserted, or upserted, where there is one, else removed"

    def __init__(self, relation: Relation, key: Sequence[int], before: Side, after: Side, codec: Codec) -> None:
        self._relation, self._key, self._before, self._after, self._codec = relation, tuple(key), before, after, codec

    @property
    def name(self) -> str:
        """The relation."""
        return self._relation.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its rows."""
        return tuple(name for name, _ in self._relation.attributes)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the key."""
        return tuple(self.columns[c] for c in self._key)

    @property
    def operations(self) -> list[str]:
        """What happened to each key: `c` created, `u` updated, `d` deleted."""
        return [OPERATIONS[number] for number in self._operations().tolist()]

    def __len__(self) -> int:
        return len(self._after.there)

    def __iter__(self) -> Iterator[Event]:
        for before, after in zip(self._rows(self._before), self._rows(self._after), strict=True):
            there = before if after is None else after
            assert there is not None
            yield tuple([there[c] for c in self._key]), before, after

    def to_arrow(self) -> pa.Table:
        """An Arrow table of the columns of the key, the others `before_` and `after_`, null where there is no row, and `op`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found: dict[str, Any] = {}
        keys = Side(tuple(np.where(self._after.there, *pair) for pair in zip(*self._columns(), strict=True)), self._any())
        for c in self._key:
            found[self.columns[c]] = self._arrow(c, keys)
        for c in (c for c in range(len(self.columns)) if c not in self._key):
            for word, side in (("before", self._before), ("after", self._after)):
                name = unused_name(f"{word}_{self.columns[c]}", found)
                found[name] = pc.if_else(pa.array(side.there), self._arrow(c, side), None)
        return pa.table(found | {unused_name("op", found): self.operations})

    def _columns(self) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        return self._after.columns, self._before.columns

    def _any(self) -> np.ndarray:
        return np.ones(len(self), bool)

    def _operations(self) -> np.ndarray:
        """Places among the operations."""
        return np.where(self._after.there, 2 * self._before.there, 1)

    def _arrow(self, place: int, side: Side) -> Any:
        return self._codec.to_arrow(self._relation.attributes[place][1], self._typed(side)[place])

    def _rows(self, side: Side) -> Iterator[Row | None]:
        """The rows of one side."""
        columns = zip(self._relation.attributes, self._typed(side), strict=True)
        rows = zip(*[self._codec.to_python(type, column) for (_, type), column in columns], strict=True)
        return (row if there else None for row, there in zip(rows, side.there.tolist(), strict=True))

    def _typed(self, side: Side) -> tuple[np.ndarray, ...]:
        marks = np.ones(len(self), np.int64)
        masked = tuple(side.masked(place) for place in range(len(self.columns)))
        return typed(self._relation.kinds, Updates(masked, marks, marks)).columns

    def _title(self) -> str:
        counts = np.bincount(self._operations(), minlength=3).tolist()
        told = f"{counts[0]:,} created, {counts[2]:,} updated, {counts[1]:,} deleted"
        return f"dlog.ChangeEvents of {signature(self._relation)}: {told}"

    def _first(self, rows: int) -> pa.Table | None:
        return self.to_arrow().slice(0, rows)
