"""A relation as a user has it: of a finished run, of a session, or the answers to a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from dlog.arguments import bad_argument
from dlog.codec import Codec, Row
from dlog.display.preview import SHOWN_ROWS, Preview, of_rows, of_table
from dlog.engine.ir import rules
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.grammar.suggest import closest
from dlog.tabular import Tabular

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


class Relation(Tabular):
    """One relation: a set of rows, in no particular order, which stays the same as long as this is kept.

    Iterating gives tuples of Python values: int, float, str, tuples for records, None for nil."""

    def __init__(self, relation: rules.Relation, table: Table, codec: Codec) -> None:
        self._relation = relation
        self._table = table
        self._codec = codec

    @property
    def name(self) -> str:
        return self._relation.name

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self._relation.attributes)

    @property
    def table(self) -> Table:
        """The rows as the engine's columns."""
        return self._table

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._table.rows

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[Row]:
        if not self._table.columns:
            return iter([()] * self.rows)
        return zip(*(self._codec.to_python(type, column) for _, type, column in self._columns()), strict=True)

    def head(self, rows: int = SHOWN_ROWS) -> Relation:
        """The first so many of the rows."""
        columns = tuple(column[:rows] for column in self._table.columns)
        return Relation(self._relation, Table(self._table.kinds, columns, min(rows, self.rows)), self._codec)

    def in_order(self) -> Iterator[Row]:
        """The rows in order, column by column from the left: numbers ascending, symbols as they first came up."""
        import numpy as np

        columns = self._table.columns
        if not columns:
            return iter(self)
        order = np.lexsort(columns[::-1])
        table = Table(self._table.kinds, tuple(column[order] for column in columns), self.rows)
        return iter(Relation(self._relation, table, self._codec))

    def to_numpy(self) -> dict[str, np.ndarray]:
        """One array for each column: int64, uint64, float64, or objects for symbols and records."""
        return {name: self._codec.to_numpy(type, column) for name, type, column in self._columns()}

    def to_arrow(self) -> pa.Table:
        """An Arrow table; records are strings as in output files."""
        import pyarrow as pa

        return pa.table({name: self._codec.to_arrow(type, column) for name, type, column in self._columns()})

    def _columns(self) -> Iterator[tuple[str, rules.Type, np.ndarray]]:
        for (name, type), column in zip(self._relation.attributes, self._table.columns, strict=True):
            yield name, type, column

    def _title(self) -> str:
        return title("Relation", self._relation, self.rows)

    def _first(self, rows: int) -> pa.Table | None:
        return self.head(rows).to_arrow()


class UnknownRelation(DlogError, KeyError):
    """Raised where there is no relation of that name; a KeyError, as of any mapping."""


def unknown_relation(name: object, relations: Iterable[str], inline: Iterable[str] = ()) -> DlogError:
    """The error for a relation that is not there, or has no rows."""
    if not isinstance(name, str):
        return bad_argument("relation", "the name of a relation", name)
    if name in inline:
        message = f"the relation `{name}` is inline: it has no rows, its rules stand where it is read"
        note = "ask with a query, or declare it without `inline`"
        return UnknownRelation(Diagnostic("inline-relation", message, notes=(note,)))
    close = closest(name, relations)
    notes = () if close is None else (f"did you mean `{close}`?",)
    return UnknownRelation(Diagnostic("unknown-relation", f"unknown relation `{name}`", notes=notes))


def title(kind: str, relation: rules.Relation, rows: int) -> str:
    """A description of a relation, in a line."""
    return f"dlog.{kind} {signature(relation)}, {rows:,} {'row' if rows == 1 else 'rows'}"


def signature(relation: rules.Relation) -> str:
    return f"{relation.name}({', '.join(name for name, _ in relation.attributes)})"


def overview(
    title: str,
    relations: Mapping[str, rules.Relation],
    rows: Callable[[str], int] | None = None,
    first: Callable[[str], Relation] | None = None,
) -> Preview:
    """The relations that something has, each with what is cheap to say of it there: how many rows it has, and the first."""
    columns: dict[str, Callable[[str], object]] = {"relation": lambda name: signature(relations[name])}
    if rows is not None:
        columns["rows"] = rows
    if first is not None:
        columns["first rows"] = lambda name: _examples(first(name))
    lines = [tuple(tell(name) for tell in columns.values()) for name in islice(relations, SHOWN_ROWS)]
    many = f"{len(relations):,} {'relation' if len(relations) == 1 else 'relations'}"
    return of_rows(f"{title}, {many}", [*columns], lines, len(relations))


def _examples(first: Relation) -> str:
    cells = of_table("", first.to_arrow(), len(first)).cells
    return ", ".join(f"({', '.join(row)})" for row in cells)
