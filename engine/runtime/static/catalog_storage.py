"""What lowered paths ask a catalog for, whatever runs them (`lowering.lower.Storage`); indexes are another thing for each."""

from __future__ import annotations

from collections.abc import Collection

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Constant, Kind
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.relation import StoredRelation


class CatalogStorage:
    """Relations, records and constants of `catalog`."""

    catalog: Catalog

    def relation(self, name: str) -> StoredRelation:
        return self.catalog.relations[name]

    def set_of(self, name: str) -> StoredRelation:
        """The relation with a set over all its columns."""
        relation = self.relation(name)
        relation.ensure_set()
        return relation

    def records(self, arity: int) -> StoredRelation:
        return self.catalog.records.table(arity)

    def field_kinds(self, record_type: str) -> tuple[Kind, ...]:
        return self.catalog.field_kinds(record_type)

    def encode(self, constant: Constant) -> int:
        return self.catalog.encoder.word(constant)

    def growing_index(self, wanted: nodes.Arrangement, needed: Collection[int]) -> StoredArrangement:
        """A new index that grows with its relation; the one column of 4 bytes that paths need stands in it."""
        relation, items = self.relation(wanted.relation), sorted(needed)
        made = StoredArrangement(relation, wanted.key, wanted.order, growing=True)
        inline = len(items) == 1 and relation.widths[items[0]] == 4 and not relation.keyed
        made.start(items[0] if inline else -1)
        return made
