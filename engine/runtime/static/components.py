"""Gives a lattice relation its fixed point by connected components (plan/static/connect.py), stretch by stretch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dlog.engine.ir.nodes import Connection
from dlog.engine.kernels.static import components as K
from dlog.engine.kernels.static import storage
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.relation import StoredRelation

ROWS_PER_LOOK = 1 << 21
"""Rows or keys between two looks at what waits: interruptions, progress."""


def connect(connection: Connection, catalog: Catalog, pause: Callable[[], None]) -> None:
    """The relation, which holds what entered, gets every row that the loop would derive. Its set must be a dense map.

    Raises DlogError when out of memory, and what `pause` raises."""
    relation = catalog.relations[connection.relation]
    with united(connection, catalog, pause) as (parents, _, keys), _zeroed(relation.memory, keys * 4) as best:
        K.choose_best(relation.address, parents, best)
        control = relation.memory.control.address
        for first, last in _stretches(keys):
            if not K.spread(control, relation.address, parents, best, first, last):
                raise relation.memory.failure()
            pause()


@contextmanager
def united(
    connection: Connection, catalog: Catalog, pause: Callable[[], None] = lambda: None
) -> Iterator[tuple[int, int, int]]:
    """The trees of keys that edges connect and the marks of keys that may get values, as addresses, and the number of keys."""
    relation = catalog.relations[connection.relation]
    keys = relation.code_space(relation.key)
    assert keys is not None
    with _zeroed(relation.memory, keys * 4) as parents, _zeroed(relation.memory, keys if connection.where else 0) as marks:
        K.start_alone(parents, keys)
        _Edges(connection, catalog, relation, marks, pause).unite(parents)
        yield parents, marks, keys


class _Edges:
    """The edges of a connection, and the marks of the keys that may get values."""

    def __init__(
        self, connection: Connection, catalog: Catalog, relation: StoredRelation, marks: int, pause: Callable[[], None]
    ) -> None:
        self.relation, self.marks, self.pause = relation, marks, pause
        self.level = len(connection.where)
        self.tables = [(catalog.relations[name], left, right) for name, left, right in connection.edges]
        for level, (name, column) in enumerate(connection.where):
            K.mark_keys(marks, level, relation.address, catalog.relations[name].address, column)

    def unite(self, parents: int) -> None:
        """Hands on what no loop would change any more, then unites."""
        relation, control = self.relation, self.relation.memory.control.address
        for edges, left, right in self.tables:
            columns = (edges.address, left, right)
            for first, last in _stretches(edges.rows):
                offered = self.level == 0 or K.offer(
                    control, relation.address, self.marks, self.level, *columns, first, last
                )
                if not offered:
                    raise relation.memory.failure()
                K.unite(relation.address, parents, self.marks, self.level, *columns, first, last)
                self.pause()


def _stretches(size: int) -> Iterator[tuple[int, int]]:
    for first in range(0, size, ROWS_PER_LOOK):
        yield first, min(first + ROWS_PER_LOOK, size)


@contextmanager
def _zeroed(memory: Memory, size: int) -> Iterator[int]:
    """Zeroed bytes on the account, given back at the end."""
    address = storage.zeroed(memory.control.address, size)
    memory.check()
    try:
        yield address
    finally:
        storage.release(memory.control.address, address, size)
