"""Runs one scope of the plan: shapes the relations it fills, builds the arrangements it reads, lowers and runs its paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Kind, Lattice, Variable
from dlog.engine.ir.table_functions import is_aggregate
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import SetKind
from dlog.engine.kernels.combine import Combine
from dlog.engine.kernels.machine import read_ticks
from dlog.engine.kernels.static.chains import grow_arrangement
from dlog.engine.runtime.lowering.external import evaluate
from dlog.engine.runtime.lowering.lower import PathLowering
from dlog.engine.runtime.lowering.lower_runs import add_runs
from dlog.engine.runtime.lowering.lowered import ExternalCall, LoweredPath, Tables
from dlog.engine.runtime.static.catalog_storage import CatalogStorage
from dlog.engine.runtime.static.combining import combine_in, combine_of
from dlog.engine.runtime.static.components import connect
from dlog.engine.runtime.static.folding import folded
from dlog.engine.runtime.static.nested import aggregated
from dlog.engine.runtime.static.thread_pool import BULK_ROWS, ThreadPool, seed_rows
from dlog.engine.runtime.static.unions import shares, united
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.extent import Extents, infer_extents
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.engine.values.floats import one_nan

_PRELOADED = "@given"
ADVANCE = 2
"""The machine's phase that makes an iteration's additions the next one's changes."""
DERIVE = 0
"""The phase that follows from changes."""


@dataclass
class RuleCosts:
    """The work of one rule's paths, over all iterations."""

    cycles: int = 0
    derived: int = 0
    new: int = 0

    def add(self, cycles: int, derived: int, new: int) -> None:
        self.cycles += cycles
        self.derived += derived
        self.new += new


@dataclass
class ScopeRun(CatalogStorage):
    """One run of one scope. `pause` is called between stretches of native work and may raise."""

    scope: nodes.Scope
    catalog: Catalog
    thread_pool: ThreadPool
    pause: Callable[[], None]
    limits: Mapping[str, int] = field(default_factory=dict)
    """`.limitsize`: rows of a relation at which its stratum's loop ends."""
    costs: dict[int, RuleCosts] = field(default_factory=dict)
    iterations: int = 0
    growing: dict[nodes.Arrangement, StoredArrangement] = field(default_factory=dict)

    @property
    def rules(self) -> tuple[str, ...]:
        """The texts of the rules."""
        return self.scope.rules

    def run(self) -> None:
        """Evaluates the scope; its relations are complete afterwards. Raises RunFailed and DlogError."""
        control = self.thread_pool.workers[0].control
        control[L.control.iteration] = control[L.control.changes] = 0
        self._shape()
        self._needed = needed_columns(self._all_paths())
        try:
            self._run_all()
        finally:
            self._clean()
        self.catalog.complete.update(self.scope.relations)

    def _run_all(self) -> None:
        for stage in self.scope.stages:
            self._run_stage(stage)
        self._run_paths(self.scope.enter)
        if self._connects():
            self._connect()
        elif self.scope.variables:
            self._iterate()

    def _connects(self) -> bool:
        """Whether union-find does what the loop would: where the keys are dense, and all rows are wanted."""
        connection = self.scope.connection
        if connection is None or connection.relation in self.limits:
            return False
        return self.relation(connection.relation).set_kind == SetKind.DENSE

    def _connect(self) -> None:
        """On the account of the loop's first rule."""
        connection = self.scope.connection
        assert connection is not None
        relation = self.relation(connection.relation)
        before, started = relation.rows, read_ticks()
        connect(connection, self.catalog, self.pause)
        costs = self.costs.setdefault(self.scope.loop[0].rule, RuleCosts())
        costs.cycles += read_ticks() - started
        costs.derived += sum(self.relation(name).rows for name, _, _ in connection.edges)
        costs.new += relation.rows - before

    # ------------------------------------------------------------------------------------------------------------ shape

    def _all_paths(self) -> list[nodes.Path]:
        scope = self.scope
        return [*(p for stage in scope.stages for p in stage), *scope.enter, *scope.loop]

    def _shape(self) -> None:
        """Creates the planner's relations and gives every relation its widths and its set."""
        catalog, scope = self.catalog, self.scope
        self.reductions = {r.relation: r for r in scope.reductions}
        for temporary in scope.temporaries:
            catalog.add(temporary.relation, [Kind(k) for k in temporary.kinds])
        for reduction in scope.reductions:
            catalog.add(reduction.relation, list(reduction.columns))
        for fold in scope.folds:
            catalog.add(fold.relation, list(fold.columns))
        paths = [*self._all_paths(), *(path for union in scope.unions for path in shares(union))]
        made = {sink.relation: sink_width(sink) for p in paths for sink in p.sinks}
        start: dict[str, Extents] = {n: catalog.extents(n) for n in made if catalog.holds(n)}
        extents = infer_extents(paths, made, catalog.extents, start)
        lattices = {lattice.relation: lattice for lattice in scope.lattices}
        distinct = {p.sink.relation for p in self._all_paths() if _distinct(p)}.union(scope.variables)
        distinct -= {union.classes for union in scope.unions}
        for name in {*made, *scope.relations}:
            relation = catalog.relations[name]
            columns = extents.get(name, relation.extents)
            columns = list(columns) + [None] * (relation.arity - len(columns))
            if name in self.reductions:
                shape_reduction(relation, self.reductions[name], columns)
            elif name in lattices:
                self._shape_lattice(relation, lattices[name], columns)
            else:
                self._shape_relation(relation, columns, name in distinct)

    def _shape_relation(self, relation: StoredRelation, columns: Extents, distinct: bool) -> None:
        relation.shape(columns)
        if distinct:
            relation.ensure_set()

    def _shape_lattice(self, relation: StoredRelation, lattice: Lattice, columns: Extents) -> None:
        kind = relation.kinds[lattice.column]
        given = None
        if relation.rows:
            given = self.catalog.add(_PRELOADED, relation.kinds)
            given.shape(relation.extents)
            given.append(relation)
            relation.clear()
        if lattice.dominance is None:
            columns[lattice.column] = None
        relation.shape(columns)
        key = [c for c in range(relation.arity) if c != lattice.column]
        relation.key_by(key, lattice.column, Combine.BOUND if lattice.dominance is None else combine_in(lattice, kind))
        if not self._connects():
            relation.order_changes()
        if given is not None:
            self._copy_preloaded(relation)

    def _copy_preloaded(self, relation: StoredRelation) -> None:
        """Merges rows that a lattice relation had from input."""
        self._needed = {}
        binds = tuple((c, c) for c in range(relation.arity))
        terms = tuple(Variable(c) for c in range(relation.arity))
        path = nodes.Path(-1, nodes.Scan(_PRELOADED, binds), (), nodes.Insert(relation.name, terms), relation.arity)
        self._run_paths([path])

    # ------------------------------------------------------------------------------------------------------------- run

    def _run_stage(self, stage: Sequence[nodes.Path]) -> None:
        """Fills the planner's own relations of one stage."""
        self._run_paths(stage)
        made = {sink.relation for p in stage for sink in p.sinks}
        for name in made & set(self.reductions):
            finish_reduction(self.catalog.relations[name], self.reductions[name])
        self.catalog.complete.update(made)
        for fold in (f for f in self.scope.folds if f.matches in made):
            folded(fold, self.catalog)

    def _run_paths(self, paths: Sequence[nodes.Path]) -> None:
        lowered, tables = self._lower(paths)
        self.thread_pool.prepare(tables)
        for path in lowered:
            if self._is_bulk(path):
                self.thread_pool.run_path(path, self, self.pause)
            else:
                self.thread_pool.workers[0].run_path(path, self._evaluate, self.pause)
        self._account(lowered)

    def _is_bulk(self, path: LoweredPath) -> bool:
        """Worth a look at what it costs. Rows that are only copied would be taken into the relation twice."""
        if self.thread_pool.size == 1 or not path.shareable or not path.path.steps:
            return False
        return seed_rows(path.path, self) >= BULK_ROWS

    def _evaluate(self, call: ExternalCall, args: Sequence[np.ndarray], rows: int) -> np.ndarray:
        if call.produced is not None and is_aggregate(call.op):
            nested = next(n for n in self.scope.nested if n.name == call.op)
            call.produced.take(*aggregated(nested, args, rows, self.catalog, self._run_nested))
            return np.zeros(rows, np.int64)
        return evaluate(call, args, rows, self.catalog)

    def _run_nested(self, scope: nodes.Scope, result: str) -> list[np.ndarray]:
        """The columns of a relation that a scope within this one makes, by a worker of its own: the present one has stopped in
        the middle of a path."""
        return _NestedRun(scope, self.catalog, ThreadPool([Worker(self.catalog.memory)]), self.pause).columns_of(result)

    def _lower(self, paths: Sequence[nodes.Path], remembers: bool = False) -> tuple[list[LoweredPath], Tables]:
        tables = Tables(remembers=remembers)
        lowered = [PathLowering(path, self, tables).lower() for path in paths]
        for made in lowered:
            self._by_address[made.address] = made.path
        return lowered, tables

    _by_address: dict[int, nodes.Path] = field(default_factory=dict)

    def _account(self, lowered: Iterable[LoweredPath]) -> None:
        for path in lowered:
            costs = self.costs.setdefault(path.path.rule, RuleCosts())
            costs.cycles += path.struct[L.path.cycles]
            costs.derived += path.struct[L.path.derived]
            if path.path.sink.relation in self.scope.relations:  # not what the planner keeps for itself
                costs.new += path.struct[L.path.added]

    def current_rule(self) -> int:
        """The rule whose path a worker ran last, -1 if none."""
        failed = [w.control[L.control.error_path] for w in self.thread_pool.workers if w.control[L.control.error_path]]
        path = self._by_address.get(failed[0] if failed else self.thread_pool.workers[0].control[L.control.run_path])
        return path.rule if path is not None else -1

    # ------------------------------------------------------------------------------------------------------------- loop

    def _iterate(self) -> None:
        """The fixed point: the rows present are the first changes."""
        lowered, tables = self._lower(self.scope.loop, remembers=not self.catalog.memory.limited)
        runs = add_runs(lowered, self, tables)
        self.thread_pool.prepare(tables)
        with united(self.scope, self.catalog) as unions:
            loop = self._loop(lowered, self.scope.variables, runs)
            loop.point(L.loop.unions, words(union.address for union in unions))
            loop[L.loop.union_count] = len(unions)
            self._run_loop(lowered, loop)
            self._account(lowered)
            for union in unions:
                union.settle()

    def _loop(self, lowered: Sequence[LoweredPath], names: Iterable[str], runs: Iterable[Struct] = ()) -> Struct:
        """The loop over these paths, whose changes are those of the relations `names`, some of them sorted to `runs`."""
        variables = [self.catalog.relations[n] for n in names]
        for relation in variables:
            relation.struct[L.relation.limit] = self.limits.get(relation.name, 0)
        early, late = _by_phase(lowered)
        loop = Struct(L.loop.size)
        lists = (
            (L.loop.alt, [p.address for p in early]),
            (L.loop.neu, [p.address for p in late]),
            (L.loop.relations, [v.address for v in variables]),
            (L.loop.arrangements, [a.address for a in self.growing.values()]),
            (L.loop.runs, [r.address for r in runs]),
        )
        for at, addresses in lists:
            loop.point(at, words(addresses))
            loop[at + 1] = len(addresses)
        self.thread_pool.workers[0].control[L.control.iteration] = 0
        return loop

    def _run_loop(self, lowered: Sequence[LoweredPath], loop: Struct, phase: int = ADVANCE) -> None:
        """Iterates until nothing changes, or a relation has as many rows as it may. `phase` is where the machine begins."""
        worker = self.thread_pool.workers[0]
        control = worker.control
        control[L.control.phase] = phase
        control[L.control.path] = control[L.control.running] = 0
        shareable = self.thread_pool.size > 1 and any(p.shareable for p in lowered) and not self.scope.lattices
        control[L.control.bulk] = BULK_ROWS if shareable else 2**62
        while worker.run_loop(loop, self._evaluate, self.pause):
            if self._sharing_pays(lowered):
                self._run_bulk(lowered)
                control[L.control.phase] = ADVANCE
        self.iterations = control[L.control.iteration]

    def _sharing_pays(self, lowered: Sequence[LoweredPath]) -> bool:
        """Whether an iteration like those up to now is better shared: rows that were there already are discarded side by side,
        but new ones pass through a share and then, one after the other, into the relation."""
        done = self.thread_pool.workers[0].control[L.control.iteration] - 1
        return done > 0 and self.thread_pool.pays(lowered, self, 1 / done)

    def _run_bulk(self, lowered: Sequence[LoweredPath]) -> None:
        """One iteration on all workers: the same phases as the machine's loop."""
        early, late = _by_phase(lowered)
        self._run_phase(early)
        self.thread_pool.each([partial(self._include, a) for a in self.growing.values()], self.pause)
        self._run_phase(late)

    def _run_phase(self, paths: Sequence[LoweredPath]) -> None:
        changed = [p for p in paths if seed_rows(p.path, self) > 0]
        shared = [p for p in changed if p.shareable]
        if shared:
            self.thread_pool.run_paths(shared, self, self.pause)
        for path in changed:
            if not path.shareable:
                self.thread_pool.workers[0].run_path(path, self._evaluate, self.pause)

    def _include(self, arrangement: StoredArrangement) -> None:
        """Adds this iteration's changes to a growing arrangement."""
        control = self.catalog.memory.new_control(L.control.size)
        if not grow_arrangement(control.address, arrangement.address, arrangement.relation.struct[L.relation.hi]):
            self.catalog.memory.check(control)

    def _clean(self) -> None:
        for arrangement in self.growing.values():
            arrangement.free()
        self.growing.clear()
        for name in (*self.reductions, *(t.relation for t in self.scope.temporaries), *(f.relation for f in self.scope.folds)):
            self.catalog.remove(name)
        if _PRELOADED in self.catalog.relations:
            self.catalog.remove(_PRELOADED)
        for name in self.scope.relations:
            self.catalog.relations[name].trim()

    # ------------------------------------------------------------------------------------------- storage, for lowering

    def arrangement(self, wanted: nodes.Arrangement) -> StoredArrangement:
        if wanted.relation not in self.scope.variables:
            return self.catalog.arrangement(wanted, self._needed.get(wanted, ()))
        if wanted not in self.growing:
            made = self.growing_index(wanted, self._needed.get(wanted, ()))
            if wanted.only is not None:
                made.only(wanted.only.column, self.relation(wanted.only.relation).column(wanted.only.of))
            self.growing[wanted] = made
        return self.growing[wanted]


@dataclass
class _NestedRun(ScopeRun):
    """One run of a scope that makes a relation for the scope around it."""

    result: str = ""
    columns: list[np.ndarray] = field(default_factory=list)

    def columns_of(self, result: str) -> list[np.ndarray]:
        self.result = result
        self.run()
        return self.columns

    def _run_all(self) -> None:
        super()._run_all()
        relation = self.relation(self.result)
        reduction = self.reductions.get(self.result)
        width = relation.arity if reduction is None else len(reduction.keys) + 1  # beside a mean there is a count
        self.columns = [relation.column(c).astype(np.int64) for c in range(width)]


def shape_reduction(relation: StoredRelation, reduction: nodes.Reduction, columns: Extents) -> None:
    """Gets the (empty) relation of an aggregate ready."""
    keys = len(reduction.keys)
    columns[keys:] = [None] * (relation.arity - keys)
    relation.shape(columns)
    relation.key_by(range(keys), keys, combine_of(reduction))


def is_mean(reduction: nodes.Reduction) -> bool:
    return len(reduction.columns) == len(reduction.keys) + 2


def finish_reduction(relation: StoredRelation, reduction: nodes.Reduction) -> None:
    """Makes means of sums and counts, when all values have come."""
    value = len(reduction.keys)
    if is_mean(reduction):
        sums, counts = relation.column(value).view(np.float64), relation.column(value + 1)
        sums[:] = one_nan(sums / counts)


def sink_width(sink: nodes.Insert | nodes.Accumulate) -> int:
    """Columns that the sink gives values to, as far as these can be bounded."""
    match sink:
        case nodes.Insert(terms=terms):
            return len(terms)
        case nodes.Accumulate(key=key):
            return len(key) + 1


def _distinct(path: nodes.Path) -> bool:
    return isinstance(path.sink, nodes.Insert) and path.sink.distinct


def _by_phase(lowered: Sequence[LoweredPath]) -> tuple[list[LoweredPath], list[LoweredPath]]:
    """The paths of an iteration before and after its changes entered the arrangements."""
    early = [p for p in lowered if not _reads_neu(p.path)]
    return early, [p for p in lowered if _reads_neu(p.path)]


def _reads_neu(path: nodes.Path) -> bool:
    """Whether the path must run after this iteration's changes entered the arrangements."""
    for step in path.steps:
        match step:
            case nodes.HalfJoin(view="neu") | nodes.SemiJoin(view="neu"):
                return True
            case nodes.Extend(proposers=proposers) if any(p.view == "neu" for p in proposers):
                return True
            case nodes.HalfJoin() | nodes.Extend() | nodes.SemiJoin():
                pass
            case nodes.AntiJoin() | nodes.Filter() | nodes.Map() | nodes.UnpackRecord() | nodes.Generate() | nodes.LookUp():
                pass
    return False


def needed_columns(paths: Iterable[nodes.Path]) -> dict[nodes.Arrangement, frozenset[int]]:
    """Per arrangement, the columns that some path reads from it."""
    needed: dict[nodes.Arrangement, frozenset[int]] = {}
    for path in paths:
        for step in path.steps:
            match step:
                case nodes.HalfJoin(arrangement=arrangement, binds=binds):
                    columns = frozenset(c for c, _ in binds)
                    needed[arrangement] = needed.get(arrangement, frozenset()) | columns
                case nodes.Extend(proposers=proposers):
                    for p in proposers:
                        needed[p.arrangement] = needed.get(p.arrangement, frozenset()) | {p.column}
                case nodes.SemiJoin() | nodes.AntiJoin() | nodes.Filter() | nodes.Map() | nodes.LookUp():
                    pass
                case nodes.UnpackRecord() | nodes.Generate():
                    pass
    return needed
