"""The relations of a cycle: those that moves change keep their structs, shapes and kinds of sets; indexes of them grow as rows
come, and are emptied with them. Of all others there are sorted indexes, as of any scope."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Kind
from dlog.engine.runtime.static.catalog_storage import CatalogStorage
from dlog.engine.runtime.static.cycle_plan import CyclePlan
from dlog.engine.runtime.static.scope import needed_columns, shape_reduction, sink_width
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.extent import Extent, Extents, infer_extents
from dlog.engine.runtime.storage.relation import StoredRelation


class CycleStorage(CatalogStorage):
    """What lowered paths of a cycle read and write."""

    def __init__(self, plan: CyclePlan) -> None:
        self.plan = plan
        self.catalog = plan.catalog
        self.setting = plan.setting
        self.growing: dict[nodes.Arrangement, StoredArrangement] = {}
        """Indexes of relations that moves change."""
        self._needed = needed_columns(plan.paths)

    # ------------------------------------------------------------------------------------------------------------ shape

    def shape(self) -> None:
        """Gives every relation that moves change its widths and its set, for all that may come."""
        catalog, paths = self.catalog, self.plan.paths
        sunk = [*paths, *self.plan.flows]
        made = {path.sink.relation: sink_width(path.sink) for path in sunk}
        start = {name: _extents(catalog.relations[name]) for name in made if name in catalog.relations and catalog.holds(name)}
        extents = infer_extents(sunk, made, self._extents_of, start)
        distinct = {path.sink.relation for path in paths if isinstance(path.sink, nodes.Insert) and path.sink.distinct}
        for name in {*self.setting.moving, *self.plan.own}:
            relation = catalog.relations[name]
            columns = extents.get(name) or (relation.extents if relation.rows else [])
            columns = [*columns, *[None] * (relation.arity - len(columns))]
            catalog.renew(name)
            reduction = self.plan.own.get(name)
            if reduction is not None:
                shape_reduction(relation, reduction, columns)
            else:
                relation.shape(columns)
                self._take_set(relation, name in distinct or name in self.plan.tested)
            relation.pinned = True

    def _take_set(self, relation: StoredRelation, distinct: bool) -> None:
        first = self.setting.firsts.get(relation.name)
        if first is not None:
            relation.clear()
            relation.keep_first(first.key, first.compared, first.symbols)
        elif distinct:
            relation.ensure_set()

    def _extents_of(self, name: str) -> Extents:
        if name in self.plan.unknown:
            return [None] * len(self.plan.unknown[name])
        return self.catalog.extents(name)

    def replace(self, name: str, columns: Sequence[np.ndarray], rows: int) -> None:
        """Other rows for a relation, in the middle of the moves."""
        indexes = [index for wanted, index in self.growing.items() if wanted.relation == name]
        for index in indexes:
            index.empty()
        self.catalog.relations[name].refill(columns, rows)
        for index in indexes:
            index.take_up()

    def free(self) -> None:
        """Gives back the indexes, and relations that are none of the program's."""
        for index in self.growing.values():
            index.free()
        for name in self.plan.own:
            self.catalog.remove(name)
        for name in self.setting.moving:
            self.catalog.forget(name)

    # ----------------------------------------------------------------------------------------------------- for lowering

    def arrangement(self, wanted: nodes.Arrangement) -> StoredArrangement:
        if wanted.relation not in self.setting.moving and wanted.relation not in self.plan.own:
            return self.catalog.arrangement(wanted, self._needed.get(wanted, ()))
        if wanted not in self.growing:
            self.growing[wanted] = self.growing_index(wanted, self._needed.get(wanted, ()))
        return self.growing[wanted]


def _extents(relation: StoredRelation) -> Extents:
    """Of the values that are there."""
    found: Extents = []
    for number, kind in enumerate(relation.kinds):
        column = relation.column(number)
        found.append(None if kind is Kind.FLOAT else Extent(int(column.min()), int(column.max())))
    return found
