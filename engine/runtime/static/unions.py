"""Equivalence relations of a scope: union-find beside its loop (kernels/static/unions.py)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Variable
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.static import unions as K
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.runtime.storage.relation import StoredRelation


class StoredUnion:
    """The union-find of one equivalence relation. `forgets`: nothing else reads its pairs, so that those need not be kept."""

    def __init__(self, pairs: StoredRelation, classes: StoredRelation, forgets: bool) -> None:
        self.classes = classes
        self.struct = Struct(L.union.size)
        self.struct.point(L.union.pairs, pairs.struct)
        self.struct.point(L.union.classes, classes.struct)
        self.struct[L.union.forgets] = forgets

    @property
    def address(self) -> int:
        return self.struct.address

    def settle(self) -> None:
        """One row per value, at the end."""
        self.classes.drop_set()
        K.settle(self.address)
        self.classes.sorted_by = ()

    def free(self) -> None:
        K.free_union(self.classes.memory.control.address, self.address)


@contextmanager
def united(scope: nodes.Scope, catalog: Catalog) -> Iterator[list[StoredUnion]]:
    """The equivalence relations of a scope while its loop runs."""
    made = [
        StoredUnion(catalog.relations[x.pairs], catalog.relations[x.classes], x.pairs in scope.relations) for x in scope.unions
    ]
    try:
        yield made
    finally:
        for union in made:
            union.free()


def shares(union: nodes.Union) -> Iterator[nodes.Path]:
    """Paths that give the classes every value that a union may give them, for what must be known of these."""
    seed = nodes.Scan(union.pairs, ((0, 0), (1, 1)))
    for value in (Variable(0), Variable(1)):
        for name in (Variable(0), Variable(1)):
            yield nodes.Path(-1, seed, (), nodes.Insert(union.classes, (value, name)), 2)
