"""Builds the strata of a maintained program's dataflow: their collections and reductions, and the tasks of their paths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Constant, Kind, Program, Stratum, Variable
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import TaskKind
from dlog.engine.kernels.combine import Combine
from dlog.engine.plan.incremental.templates import ENTER, LOOP, Plans, StratumPlan
from dlog.engine.runtime.incremental.schedule import Step, Task, connect_scope
from dlog.engine.runtime.lowering.lower_rounds import RoundCode
from dlog.engine.runtime.lowering.lowered import LoweredPath, Reading
from dlog.engine.runtime.lowering.round_storage import Source
from dlog.engine.runtime.static.combining import combine_in, combine_of
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.runtime.storage.reduction import Reduction
from dlog.engine.runtime.storage.relation import StoredRelation

EXTERNAL_SUFFIX = " given"
"""Ends the name of the collection with a derived relation's external rows."""


class Flow(Protocol):
    """What strata are built into (dataflow.py)."""

    program: Program
    catalog: Catalog
    scopes: Plans
    code: RoundCode
    collections: dict[str, Collection]
    reductions: dict[str, Reduction]
    owners: list[tuple[list[LoweredPath], Stratum]]
    loops: list[Struct]
    interned: dict[str, int]

    def add(self, name: str, kinds: Sequence[Kind], role: Role, scope: Struct | None = None) -> Collection: ...
    def reduce(
        self, name: str, result: Collection, combine: Combine, kind: Kind, column: int, scope: Struct | None = None
    ) -> Reduction: ...
    def task(self, task: Task) -> None: ...


class StratumBuilder:
    """Builds one stratum; the storage that its paths are lowered against."""

    def __init__(self, flow: Flow, stratum: Stratum, number: int, plan: StratumPlan) -> None:
        self.flow = flow
        self.stratum = stratum
        self.number = number
        self.plan = plan
        self.scope = plan.outline
        """The plan; its paths may not be there."""
        flow.scopes.add(number, plan)
        own = {t.relation for t in self.scope.temporaries} | {r.relation for r in self.scope.reductions}
        self.own = own.difference(self.scope.relations)
        self.variables = frozenset(self.scope.variables)
        self.loop = Struct(L.scope.size) if self.scope.model == "partial" else None
        self.staged = True

    def build(self) -> None:
        self._make_collections()
        for number, stage in enumerate(self.plan.like.stages):
            self._run(self._part(number))
            for name in dict.fromkeys(sink.relation for p in stage for sink in p.sinks):
                self._flush(self.plan.relation(name))
        self.staged = False
        if self.loop is None:
            self._run([*self._part(ENTER), *self._lower(self._external_paths())])
            self._entered()
            for name in self.scope.relations:
                if name not in self.flow.reductions:
                    self._flush(name)
        else:
            self._recursive(self.loop)

    def _entered(self) -> None:
        """All paths have run that derive rows of a stratum without recursion."""

    def _make_collections(self) -> None:
        flow, scope = self.flow, self.scope
        for temporary in scope.temporaries:
            flow.add(self._name(temporary.relation), [Kind(k) for k in temporary.kinds], Role.TOTAL)
        for reduction in scope.reductions:
            name = self._name(reduction.relation)
            keys = len(reduction.keys)
            result = flow.add(name, reduction.columns[: keys + 1], Role.RESULT)
            flow.reduce(name, result, combine_of(reduction), reduction.columns[keys], keys)
        lattices = {lattice.relation: lattice for lattice in scope.lattices}
        weighted = [p.sink for p in self.plan.like.loop if isinstance(p.sink, nodes.Insert) and p.sink.weight is not None]
        bounded = {self.plan.relation(sink.relation) for sink in weighted}
        for name in scope.relations:
            kinds = flow.program.relations[name].kinds
            if name in lattices:
                lattice = lattices[name]
                result = flow.add(name, kinds, Role.LATTICE)
                kind = kinds[lattice.column]
                flow.reduce(name, result, combine_in(lattice, kind), kind, lattice.column, self.loop)
            elif name not in flow.reductions:
                made = flow.add(name, kinds, Role.TOTAL if self.loop is None else Role.PARTIAL, self.loop)
                made.struct[L.collection.derivation_bound] = len(kinds) if name in bounded else 0

    def _name(self, relation: str) -> str:
        return f"{relation} {self.number}" if relation in self.own else relation

    def _external_paths(self) -> list[nodes.Path]:
        """Paths that derive the external rows of the stratum's relations."""
        paths = []
        for name in self.scope.relations:
            given = self.flow.collections.get(name + EXTERNAL_SUFFIX)
            if given is not None:
                binds = tuple((c, c) for c in range(given.arity))
                terms = tuple(Variable(c) for c in range(given.arity))
                scan = nodes.Scan(given.name, binds, changes=True)
                paths.append(nodes.Path(-1, scan, (), nodes.Insert(name, terms), given.arity))
        return paths

    def _part(self, part: int) -> list[LoweredPath]:
        """The paths of a part of the plan, lowered."""
        return self._owned(self.flow.code.lowered_together(self.plan, part, self))

    def _lower(self, paths: Sequence[nodes.Path]) -> list[LoweredPath]:
        return self._owned([self.flow.code.lowered(p, self) for p in paths])

    def _owned(self, lowered: list[LoweredPath]) -> list[LoweredPath]:
        if lowered:
            self.flow.owners.append((lowered, self.stratum))
        return lowered

    def _run(self, paths: Iterable[LoweredPath]) -> None:
        for path in paths:
            self.flow.task(path)

    def _flush(self, relation: str) -> None:
        name = self._name(relation)
        reduction = self.flow.reductions.get(name)
        if reduction is not None:
            self.flow.task(Step(TaskKind.REDUCE, reduction.address, completes=reduction.result))
        else:
            collection = self.flow.collections[name]
            self.flow.task(Step(TaskKind.DISTINCT, collection.address, completes=collection))

    def _recursive(self, loop: Struct) -> None:
        enter = [*self._part(ENTER), *self._lower(self._external_paths())]
        body = self._part(LOOP)
        own = [self.flow.collections[n] for n in self.scope.relations]
        reads = connect_scope(loop, enter, body, own)
        loop[L.scope.delayed] = int(any(p.delayed != "no" for p in self.plan.like.enter))
        self.flow.loops.append(loop)
        self._looped(loop, reads)

    def _looped(self, loop: Struct, reads: tuple[Reading, ...]) -> None:
        """The stratum's recursion is ready to run, seeded by what it reads first."""
        for name in self.scope.relations:
            collection = self.flow.collections[name]
            collection.struct[L.collection.read_between_rounds] = int(not collection.is_read_within_iterations)
        self.flow.task(Step(TaskKind.LOOP, loop.address, reads))

    # -------------------------------------------------------------------------------------------- storage, for lowering

    def source(self, name: str) -> Source:
        return self.collection(name)

    def collection(self, name: str) -> Collection:
        return self.flow.collections[self._name(name) if name in self.own else name]

    def reduction(self, name: str) -> Reduction | None:
        return self.flow.reductions.get(self._name(name))

    def nature(self, name: str) -> tuple[object, ...]:
        """All that lowering asks about a relation, but for where things are."""
        reduction = self.reduction(name)
        reduced = () if reduction is None else (reduction.struct[L.reduction.value], reduction.kind)
        return self.collection(name).kinds, self.is_inner(name), reduced

    def is_inner(self, name: str) -> bool:
        return not self.staged and name in self.variables

    def partial(self) -> bool:
        return not self.staged and self.loop is not None

    def records(self, arity: int) -> StoredRelation:
        return self.flow.catalog.records.table(arity)

    def field_kinds(self, record_type: str) -> tuple[Kind, ...]:
        return self.flow.catalog.field_kinds(record_type)

    def encode(self, constant: Constant) -> int:
        text = constant.value
        if type(text) is not str:
            return self.flow.catalog.encoder.word(constant)
        if text not in self.flow.interned:
            self.flow.interned[text] = self.flow.catalog.encoder.word(constant)
        return self.flow.interned[text]

    def lattice_column(self, name: str) -> int:
        return self.flow.program.lattices[name].column
