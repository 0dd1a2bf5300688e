"""Relations of different types in one DataFrame: a tag says which relation a row is of, and its values stand in slots that all
relations share.

A relation's columns take the slots of their type in order, so a stream of any number of binary relations over numbers has
three columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Domain, Kind, Relation, Type

if TYPE_CHECKING:
    import pyarrow as pa

TAG = "relation"
_SQL_TYPES = {
    Kind.NUMBER: "bigint",
    Kind.UNSIGNED: "decimal(20,0)",
    Kind.FLOAT: "double",
    Kind.SYMBOL: "string",
    Kind.RECORD: "string",
}
"""Spark's types for the engine's kinds. Records are text, as in files."""
_CALENDAR = {Domain.DATE: "date", Domain.TIMESTAMP: "timestamp_ntz"}


def sql_type(type_: Type) -> str:
    """Spark's type for a type of the program."""
    return _CALENDAR.get(type_.domain) or _SQL_TYPES[type_.kind]


@dataclass(frozen=True)
class Slots:
    """The slots that relations share. `columns[r]` are the names of relation r's, in the order of its attributes."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]

    @property
    def schema(self) -> str:
        """The schema as DDL."""
        return ", ".join([f"{TAG} int", *(f"{n} {t}" for n, t in zip(self.names, self.types, strict=True))])


def share_slots(relations: Sequence[Relation]) -> Slots:
    slots: dict[str, str] = {}
    columns = []
    for relation in relations:
        used: dict[str, int] = {}
        taken = []
        for _, type_ in relation.attributes:
            sql = sql_type(type_)
            number = used.get(sql, 0)
            used[sql] = number + 1
            name = f"{sql.split('(')[0]}_{number}"
            slots[name] = sql
            taken.append(name)
        columns.append(tuple(taken))
    return Slots(tuple(slots), tuple(slots.values()), tuple(columns))


def in_slots(slots: Slots, number: int, columns: Sequence[pa.Array]) -> pa.RecordBatch:
    """Rows of relation `number`, given by its columns, in the slots."""
    import numpy as np
    import pyarrow as pa

    from dlog.engine.spark.arrow import ARROW_TYPES, CALENDAR_TYPES

    arrow = {_SQL_TYPES[kind]: type for kind, type in ARROW_TYPES.items()}
    arrow |= {_CALENDAR[domain]: type for domain, type in CALENDAR_TYPES.items()}
    given = dict(zip(slots.columns[number], columns, strict=True))
    rows = len(columns[0])
    tag = pa.array(np.full(rows, number, np.int32))
    values = [given.get(n, pa.nulls(rows, arrow[t])) for n, t in zip(slots.names, slots.types, strict=True)]
    return pa.RecordBatch.from_arrays([tag, *values], names=[TAG, *slots.names])
