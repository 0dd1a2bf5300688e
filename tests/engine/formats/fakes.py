"""Small programs and record tables to test formats with."""

from __future__ import annotations

import numpy as np

from dlog.engine.ir.rules import Io, Kind, Program, Relation, Type
from dlog.grammar.source import Source, Span

BASE = {kind.value: Type(kind.value, kind) for kind in Kind if kind is not Kind.RECORD}
PAIR = Type("Pair", Kind.RECORD, (("x", "number"), ("name", "symbol")))
LIST = Type("List", Kind.RECORD, (("head", "number"), ("tail", "List")))
TREE = Type("Tree", Kind.RECORD, (("left", "Tree"), ("value", "float"), ("pair", "Pair"), ("right", "Tree")))
TYPES = BASE | {t.name: t for t in (PAIR, LIST, TREE)}


class Records:
    """Record tables as dictionaries of tuples."""

    def __init__(self) -> None:
        self.rows: dict[int, list[tuple[int, ...]]] = {}

    def fields(self, arity: int, ids: np.ndarray) -> list[np.ndarray]:
        rows = [self.rows[arity][i - 1] for i in ids.tolist()]
        return [np.array([row[c] for row in rows], np.int64) for c in range(arity)]

    def pack(self, arity: int, columns: list[np.ndarray]) -> np.ndarray:
        known = self.rows.setdefault(arity, [])
        ids = []
        for row in zip(*(c.tolist() for c in columns), strict=True):
            if row not in known:
                known.append(row)
            ids.append(known.index(row) + 1)
        return np.array(ids, np.int32)


def relation(*types: str, name: str = "r") -> Relation:
    """A relation with attributes a, b, ... of these types."""
    return Relation(name, tuple(("abcdefgh"[i], TYPES[t]) for i, t in enumerate(types)))


def program(*relations: Relation) -> Program:
    source = Source(".input r(...)\n", "test.dl")
    return Program(source, TYPES, {r.name: r for r in relations}, {}, (), (), {})


def directive(action: str = "input", name: str = "r", **params: str) -> Io:
    return Io(action, name, tuple(params.items()), Span(0, 8))  # type: ignore[arg-type]
