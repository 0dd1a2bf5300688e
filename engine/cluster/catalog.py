"""One worker's relations, and what all workers together have in them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import starmap, zip_longest

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.cluster.dictionary import Dictionary
from dlog.engine.cluster.worker_group import WorkerGroup
from dlog.engine.ir.rules import Kind, Program
from dlog.engine.plan.column_types import declared
from dlog.engine.plan.exchange.places import Copy, Heavy, Place
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.extent import Extent, Extents
from dlog.engine.runtime.storage.memory import Memory

Crowds = Mapping[int, float]
NOBODY: Crowds = {}
SAMPLE = 4096
"""Rows in which values are looked for that many rows have."""
CROWDS_MAX = 64
"""Values of a column that a worker tells of."""


@dataclass(frozen=True, slots=True)
class ShardStatistics:
    """Rows of a relation and the extents of its columns."""

    rows: int
    extents: tuple[Extent | None, ...]
    crowds: tuple[Crowds, ...] = ()
    """Of each column, about how many rows have values that many have, by the hash of the value."""

    def __add__(self, other: ShardStatistics) -> ShardStatistics:
        """The statistics of both shards. An empty shard says nothing of extents."""
        if not self.rows or not other.rows:
            return other if not self.rows else self
        crowds = tuple(starmap(_added, zip_longest(self.crowds, other.crowds, fillvalue=NOBODY)))
        pairs = zip(self.extents, other.extents, strict=True)
        extents = (a.union(b) if a is not None and b is not None else None for a, b in pairs)
        return ShardStatistics(self.rows + other.rows, tuple(extents), crowds)


def _added(one: Crowds, other: Crowds) -> Crowds:
    return {hash: one.get(hash, 0.0) + other.get(hash, 0.0) for hash in {**one, **other}}


class ShardCatalog(Catalog):
    """A catalog whose figures are those of all workers, so that all plan and shape alike."""

    def __init__(
        self, program: Program, memory: Memory, worker_group: WorkerGroup, homes: dict[str, Place], split_rows: int
    ) -> None:
        super().__init__(program, memory)
        self.worker_group = worker_group
        self.homes = homes
        self.split_rows = split_rows
        self.dictionary: Dictionary | None = None
        self.shard_statistics: dict[str, ShardStatistics] = {}
        self._base: dict[str, str] = {}

    def learn(self, names: Sequence[str], sampled: Container[str]) -> None:
        """Tells the others of this worker's share of some relations, and learns of theirs, also of the crowds in those that are
        `sampled`. All workers call it together."""
        for name in names:
            self.shard_statistics.pop(name, None)
        for shares in self.worker_group.share([self._share(name, name in sampled) for name in names]):
            for name, share in zip(names, shares, strict=True):
                held = self.shard_statistics.get(name)
                self.shard_statistics[name] = share if held is None else held + share

    def _share(self, name: str, sampled: bool) -> ShardStatistics:
        relation = self.relations[name]
        extents = tuple(self._extent(name, c) for c in range(relation.arity))
        few = relation.rows * self.worker_group.size < max(self.split_rows, 1)
        if not sampled or few or self.worker_group.size == 1:
            return ShardStatistics(relation.rows, extents)
        return ShardStatistics(relation.rows, extents, tuple(self._crowds(name, c) for c in range(relation.arity)))

    def _crowds(self, name: str, column: int) -> Crowds:
        """The crowds in this worker's share, from a sample."""
        assert self.dictionary is not None
        relation, (_, type) = self.relations[name], self.program.relations[name].attributes[column]
        values = relation.column(column)[:: -(-relation.rows // SAMPLE)]
        distinct, counts = np.unique(values, return_counts=True)
        many = np.flatnonzero(counts * 4 * self.worker_group.size >= len(values))[:CROWDS_MAX]
        hashes = self.dictionary.hashes(declared(type), distinct[many])
        scale = relation.rows / len(values)
        return {int(h): float(n * scale) for h, n in zip(hashes, counts[many], strict=True)}

    def heavy(self, name: str, column: int) -> Heavy:
        """The values of a column that as many rows have as a worker has on average, or more: their owner would have twice that.
        For less it is not worth that results of rows which stay must be cut, too."""
        statistics = self.shard_statistics.get(name)
        if statistics is None or not statistics.crowds or statistics.rows < self.split_rows:
            return ()
        least = max(statistics.rows / self.worker_group.size, 2.0)
        return tuple(sorted(hash for hash, rows in statistics.crowds[column].items() if rows >= least))

    def _extent(self, name: str, column: int) -> Extent | None:
        """The extent of numbers; ids mean something else to each worker."""
        relation = self.relations[name]
        if relation.kinds[column] not in (Kind.NUMBER, Kind.UNSIGNED) or not relation.rows:
            return None
        known = relation.extents[column]
        values = relation.column(column)
        return known if known is not None and known.span else Extent(int(values.min()), int(values.max()))

    # ------------------------------------------------------------------------------------------------------------ copies

    def name_copies(self, copies: Iterable[Copy]) -> None:
        self._base |= {c.name: c.relation for c in copies}

    def forget(self, name: str) -> None:
        """Frees what only lookups need: copies too."""
        for copy in [c for c, base in self._base.items() if base == name]:
            del self._base[copy]
            if copy in self.relations:
                self.remove(copy)
        super().forget(name)

    def renew(self, name: str) -> None:
        """What workers told each other of the rows goes, too."""
        super().renew(name)
        self.shard_statistics.pop(name, None)

    # ------------------------------------------------------------------------------------------------------- statistics

    def holds(self, name: str) -> bool:
        name = self._base.get(name, name)
        return self.shard_statistics[name].rows > 0 if name in self.shard_statistics else super().holds(name)

    def extents(self, name: str) -> Extents:
        base = self._base.get(name, name)
        if base not in self.shard_statistics:
            return super().extents(name)
        statistics = self.shard_statistics[base]
        return list(statistics.extents) if statistics.rows else [Extent(0, -1)] * self.relations[base].arity

    def rows(self, relation: str) -> int | None:
        if relation not in self.homes:  # one that a worker makes for itself
            return super().rows(relation)
        return self.shard_statistics[relation].rows if relation in self.complete and relation in self.shard_statistics else None

    def _figure(self, what: str, relation: str, columns: tuple[int, ...]) -> float | None:
        """An estimate from this worker's share: groups that are all here are a fraction of all groups; others are met by
        every worker the more, the larger they are."""
        found = super()._figure(what, relation, columns)
        if relation not in self.homes:
            return found
        held = self.relations[relation].rows if relation in self.relations else 0
        if found is None or not held:
            return found
        scale = self.shard_statistics[relation].rows / held
        if self.homes[relation] in columns:
            return found * scale
        if what == "distinct":
            return float(found * scale ** min(found / held, 1.0))
        return found * scale * scale
