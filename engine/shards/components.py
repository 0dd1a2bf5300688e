"""Connected components by several workers (plan/connect.py): each unites the ends of its own edges, the root what their trees
say. A tree has an edge less than it has keys, however many edges it came from.

What enters the lattice goes to the root too, and the rows that the loop would derive go home from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dlog.engine.embedded.components import connect, united
from dlog.engine.embedded.native import view
from dlog.engine.plan.column_types import ColumnType
from dlog.engine.plan.nodes import Connection
from dlog.engine.plan.places import EVERYWHERE, ROOT
from dlog.engine.program.rules import Kind
from dlog.engine.shards.catalog import ShardCatalog
from dlog.engine.shards.post import Consignment, Post, Rows

TREES = "@trees"
NUMBER = ColumnType(Kind.NUMBER)


class Trees:
    """One worker's part in a connection."""

    def __init__(self, connection: Connection, catalog: ShardCatalog, post: Post) -> None:
        self.connection = connection
        self.catalog = catalog
        self.post = post
        self.relation = catalog.relations[connection.relation]
        self.where = tuple((f"@where {i}", 0) for i in range(len(connection.where)))
        """The keys of all workers that may get values."""

    def send(self) -> Consignment:
        """What the root needs of this worker's edges. All workers call it together."""
        self._share_keys()
        own = replace(self.connection, where=self.where)
        with united(own, self.catalog) as (parents, marks, keys):
            tree = view(parents, keys, np.int32)
            children = np.flatnonzero(tree != np.arange(keys, dtype=np.int32)).astype(self._width(keys))
            ends = [np.stack([children, tree[children]])]
            if self.where:
                may = view(marks, keys, np.uint8) == len(self.where)
                ends += [] if may.all() else [self._offers(may, *edges) for edges in own.edges]
        left, right = np.concatenate(ends, axis=1) + self._low
        return Consignment(TREES, (NUMBER, NUMBER), ROOT, Rows((left, right), len(left)))

    def finish(self, trees: Rows | None) -> None:
        """At the root, which has all that entered: the rows of all workers."""
        if trees is not None:
            self._add(TREES, trees.columns)
            connect(Connection(self.relation.name, ((TREES, 0, 1),), self.where), self.catalog, lambda: None)

    def clean(self) -> None:
        for name in (TREES, *(name for name, _ in self.where)):
            if name in self.catalog.relations:
                self.catalog.remove(name)

    @property
    def _low(self) -> int:
        extent = self.relation.extents[self.relation.key[0]]
        assert extent is not None
        return extent.low

    def _width(self, keys: int) -> type:
        """In how many bytes keys travel: four where all of them fit."""
        return np.int32 if self._low >= -(2**31) and self._low + keys < 2**31 else np.int64

    def _share_keys(self) -> None:
        """Tells all which keys may get values: those here, each once."""
        sent = []
        for (name, _), (held, column) in zip(self.where, self.connection.where, strict=True):
            relation = self.catalog.relations[held]
            keys = np.array(relation.column(column)) if relation.arity == 1 else np.unique(relation.column(column))
            sent.append(Consignment(name, (NUMBER,), EVERYWHERE, Rows((keys,), len(keys))))
        arrived, _ = self.post.swap(sent)
        for name, _ in self.where:
            self._add(name, arrived[name].columns if name in arrived else (np.empty(0, np.int64),))

    def _add(self, name: str, columns: Sequence[np.ndarray]) -> None:
        made = self.catalog.add(name, [Kind.NUMBER] * len(columns))
        made.shape([None] * len(columns))
        made.assign(columns, len(columns[0]))

    def _offers(self, may: np.ndarray, edges: str, left: int, right: int) -> np.ndarray:
        """Edges of which one end only may get values: it gets the other's, which its worker need not have."""
        held = self.catalog.relations[edges]
        ends = np.stack([held.column(left), held.column(right)]).astype(np.int64) - self._low
        ends = ends[:, np.all((ends >= 0) & (ends < len(may)), axis=0)]
        return ends[:, may[ends[0]] != may[ends[1]]]
