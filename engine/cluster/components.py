"""Connected components by several workers (plan/static/connect.py): each unites the ends of its own edges, then all unite the
trees of all others, which have an edge less than they have keys, however many edges they came from. So every worker knows the
component of every key, and it takes no more than the best value of each component that has keys of several workers to give all
keys at home theirs. """

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from dlog.engine.cluster.arrived_rows import holding, readable
from dlog.engine.cluster.catalog import ShardCatalog
from dlog.engine.cluster.exchange import OutgoingRows, RowExchange, Rows
from dlog.engine.ir.nodes import Connection
from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.static import components as kernels
from dlog.engine.plan.column_types import ColumnType
from dlog.engine.plan.exchange.places import EVERYWHERE, ROOT, Place
from dlog.engine.runtime.static.components import united
from dlog.engine.runtime.storage.extent import Extent
from dlog.engine.runtime.storage.native import view

TREES = "@trees"
OFFERS = "@offers"
BEST = "@best"
NUMBER = ColumnType(Kind.NUMBER)

Insert = Callable[[str, Rows | None], None]
"""Inserts, or merges, rows into a relation."""


class Trees:
    """One worker's part in a connection; all workers call `connect` together. `value` is the type of the relation's values,
    `home` where its rows belong."""

    def __init__(
        self,
        connection: Connection,
        catalog: ShardCatalog,
        row_exchange: RowExchange,
        value: ColumnType,
        home: Place,
        insert: Insert,
    ) -> None:
        self.connection = connection
        self.catalog = catalog
        self.row_exchange = row_exchange
        self.value = value
        self.home = home
        self.insert = insert
        self.relation = catalog.relations[connection.relation]
        self.where = tuple((f"@where {i}", 0) for i in range(len(connection.where)))
        """The keys of all workers that may get values."""

    def connect(self) -> None:
        """The relation, which holds what entered at home, gets every row that the loop would derive there."""
        try:
            self._share_keys()
            with united(replace(self.connection, where=self.where), self.catalog) as (parents, marks, keys):
                self._unite_others(parents, marks, keys)
                roots = flattened(view(parents, keys, np.int32))
            self._choose_best(roots)
        finally:
            for name in (TREES, OFFERS, BEST, *(name for name, _ in self.where)):
                if name in self.catalog.relations:
                    self.catalog.remove(name)

    # ------------------------------------------------------------------------------------------------------------- trees

    def _unite_others(self, parents: int, marks: int, keys: int) -> None:
        """Unites what the other workers united, and hands on what keys that may get no values offer to those that may."""
        tree = view(parents, keys, np.int32)
        children: np.ndarray = np.flatnonzero(tree != np.arange(keys, dtype=np.int32)).astype(self._width(keys))
        own = Rows((children + self._low, tree[children] + self._low), len(children))
        sent = [OutgoingRows(TREES, (NUMBER, NUMBER), EVERYWHERE, own)]
        if self.where:
            sent.append(OutgoingRows(OFFERS, (NUMBER, NUMBER), self._place(1), self._offers(marks, keys)))
        arrived, _ = self.row_exchange.swap_parts(sent)
        level, (relation, control) = len(self.where), (self.relation, self.relation.memory.control.address)
        for edges, rows in self._edges(OFFERS, arrived.get(OFFERS, ()), keys):
            if not kernels.offer(control, relation.address, marks, level, edges, 0, 1, 0, rows):
                raise relation.memory.failure()
        others = [part for part in arrived.get(TREES, ()) if part is not own]
        for edges, rows in self._edges(TREES, others, keys):
            kernels.unite(relation.address, parents, marks, level, edges, 0, 1, 0, rows)

    def _edges(self, name: str, parts: Sequence[Rows], keys: int) -> Iterable[tuple[int, int]]:
        """The address of a relation that holds the pairs of keys that arrived, part by part, and their number."""
        held = self.catalog.add(name, [Kind.NUMBER, Kind.NUMBER])
        held.shape([Extent(self._low, self._low + keys - 1)] * 2)
        for part in readable(parts, held.widths) if parts else ():
            with holding(held, part):
                yield held.address, part.height

    def _offers(self, marks: int, keys: int) -> Rows:
        """Edges of which one end only may get values, that end first: it gets the other's, which is known at its home."""
        may = view(marks, keys, np.uint8) == len(self.where)
        found = [np.empty((2, 0), np.int64)]
        for edges, left, right in self.connection.edges if not may.all() else ():
            held = self.catalog.relations[edges]
            ends = np.stack([held.column(left), held.column(right)]).astype(np.int64) - self._low
            ends = ends[:, np.all((ends >= 0) & (ends < keys), axis=0)]
            ends = ends[:, may[ends[0]] != may[ends[1]]]
            found.append(np.where(may[ends[0]], ends, ends[::-1]))
        taking, giving = np.concatenate(found, axis=1) + self._low
        return Rows((taking, giving), len(taking))

    # ------------------------------------------------------------------------------------------------------------- values

    def _choose_best(self, roots: np.ndarray) -> None:
        """Gives the keys whose home this is the best value of their component, on whichever worker it entered."""
        relation, (key,) = self.relation, self.relation.key
        (value,) = (c for c in range(relation.arity) if c != key)
        best = self.catalog.add(BEST, [Kind.NUMBER, relation.kinds[value]])
        best.shape([Extent(0, len(roots) - 1), relation.extents[value]])
        best.key_by([0], 1, relation.struct[L.relation.merge])
        self.insert(BEST, Rows((roots[relation.column(key) - self._low], relation.column(value)), relation.rows))
        own = self._own(len(roots))
        elsewhere = np.zeros(len(roots), np.bool_)
        elsewhere[roots[~own]] = True
        shared = np.flatnonzero(elsewhere[best.column(0)])
        sent = Rows(tuple(best.column(c)[shared] for c in range(2)), len(shared))
        arrived, _ = self.row_exchange.swap([OutgoingRows(BEST, (NUMBER, self.value), EVERYWHERE, sent)])
        self.insert(BEST, arrived.get(BEST))
        codes = np.flatnonzero(own)
        found = view(best.struct[L.relation.slots], len(roots), np.int32)[roots[codes]] - 1
        codes, found = codes[found >= 0], found[found >= 0]
        columns = {key: codes + self._low, value: best.column(1)[found]}
        relation.empty()
        self.insert(relation.name, Rows((columns[0], columns[1]), len(codes)))

    def _own(self, keys: int) -> np.ndarray:
        """A mask of the keys that have their home here."""
        if self.home == ROOT:
            return np.full(keys, self.row_exchange.worker_group.is_root)
        values = np.arange(self._low, self._low + keys)
        group = self.row_exchange.worker_group
        return np.asarray(self.row_exchange.dictionary.owners(NUMBER, values, group.size) == group.rank)

    # --------------------------------------------------------------------------------------------------------------- keys

    @property
    def _low(self) -> int:
        extent = self.relation.extents[self.relation.key[0]]
        assert extent is not None
        return extent.low

    def _place(self, column: int) -> Place:
        """The place of a key's row that has the key in this column."""
        return ROOT if self.home == ROOT else column

    def _width(self, keys: int) -> type:
        """In how many bytes keys travel: four where all of them fit."""
        return np.int32 if self._low >= -(2**31) and self._low + keys < 2**31 else np.int64

    def _share_keys(self) -> None:
        """Tells all which keys may get values: those here, each once."""
        sent = []
        for (name, _), (held, column) in zip(self.where, self.connection.where, strict=True):
            relation = self.catalog.relations[held]
            keys = np.array(relation.column(column)) if relation.arity == 1 else np.unique(relation.column(column))
            sent.append(OutgoingRows(name, (NUMBER,), EVERYWHERE, Rows((keys,), len(keys))))
        arrived, _ = self.row_exchange.swap(sent)
        for name, _ in self.where:
            made = self.catalog.add(name, [Kind.NUMBER])
            made.shape([None])
            if name in arrived:
                made.assign(arrived[name].columns, arrived[name].height)


def flattened(tree: np.ndarray) -> np.ndarray:
    """The root of each key, where `tree` has its parent and a root is its own."""
    roots = tree.copy()
    below = np.flatnonzero(roots != np.arange(len(roots), dtype=roots.dtype))
    while len(below):
        above = roots[below]
        higher = roots[above]
        moved = higher != above
        below = below[moved]
        roots[below] = higher[moved]
    return roots
