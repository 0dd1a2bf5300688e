"""What records are made of: a record type's records alike, those of an algebraic data type branch by branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Type


class Tables(Protocol):
    """Records of each arity by id: fields are raw 64 bits (ids, numbers, bits of doubles), id 0 is nil."""

    def fields(self, arity: int, ids: np.ndarray) -> list[np.ndarray]: ...

    def pack(self, arity: int, columns: list[np.ndarray]) -> np.ndarray: ...


@dataclass(frozen=True, slots=True)
class Shape:
    """The records of one record type or branch among some ids: the places of these, and a column for each own field."""

    type: Type
    places: np.ndarray
    columns: list[np.ndarray]


def own_fields(type_: Type) -> tuple[tuple[str, str], ...]:
    """The declared fields of a record type or a branch: names and type names."""
    return type_.fields[1 : 1 + type_.arity] if type_.adt else type_.fields


def own_types(type_: Type, types: Mapping[str, Type]) -> list[Type]:
    return [types[name] for _, name in own_fields(type_)]


def shapes(type_: Type, types: Mapping[str, Type], ids: np.ndarray, records: Tables) -> list[Shape]:
    """The records of these ids, without nil."""
    if not type_.branches:
        places = np.flatnonzero(ids)
        return [Shape(type_, places, records.fields(len(type_.fields), ids[places]))]
    if not len(ids):
        return []
    tags, *columns = records.fields(len(type_.fields), ids)
    found = []
    for tag in np.unique(tags).tolist():
        branch = types[type_.branches[tag]]
        places = np.flatnonzero(tags == tag)
        found.append(Shape(branch, places, [column[places] for column in columns[: branch.arity]]))
    return found


def packed(type_: Type, types: Mapping[str, Type], columns: Sequence[np.ndarray], count: int, records: Tables) -> np.ndarray:
    """The ids of `count` records of a record type or branch, from their own fields."""
    if not type_.adt:
        return records.pack(len(columns), list(columns))
    tag = types[type_.adt].branches.index(type_.name)
    rest = [np.zeros(count, np.int64)] * (len(type_.fields) - 1 - len(columns))
    return records.pack(len(type_.fields), [np.full(count, tag, np.int64), *columns, *rest])
