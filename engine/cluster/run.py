"""One scope on one of several workers: the embedded executor's run, with exchanges between its pieces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.cluster.arrived_rows import MIN_PART_ROWS, holding, readable
from dlog.engine.cluster.catalog import ShardCatalog
from dlog.engine.cluster.components import Trees
from dlog.engine.cluster.exchange import OutgoingRows, RowExchange, Rows
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Variable
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import SetKind
from dlog.engine.kernels.static import partition
from dlog.engine.plan.column_types import Types
from dlog.engine.plan.exchange.exchanges import DistributedScope, Exchange, Phase
from dlog.engine.plan.exchange.places import EVERYWHERE, SOME, Copy, Place
from dlog.engine.runtime.lowering.lowered import LoweredPath
from dlog.engine.runtime.static.combining import combine_in
from dlog.engine.runtime.static.scope import ADVANCE, DERIVE, ScopeRun, finish_reduction, shape_reduction
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.engine.values.array_pool import DoubleBuffer


@dataclass
class ShardRun(ScopeRun):
    """Runs a distributed scope's part on this worker; all workers run theirs at once. `scope` is the plan's, with the mirrors
    among its variables; `homes` are those of the program's relations."""

    catalog: ShardCatalog
    plan: DistributedScope = None  # type: ignore[assignment]
    row_exchange: RowExchange = None  # type: ignore[assignment]
    types: Types = None  # type: ignore[assignment]
    homes: Mapping[str, Place] = field(default_factory=dict)
    _buffers: defaultdict[str, DoubleBuffer] = field(default_factory=partial(defaultdict, DoubleBuffer))
    """What outboxes are emptied into."""

    # ------------------------------------------------------------------------------------------------------------ shape

    def _all_paths(self) -> list[nodes.Path]:
        phases = self.plan.phases
        exchanges = [x for phase in phases for x in phase.exchanges]
        moves = [p for x in exchanges for p in (x.transfer, x.delivery) if p is not None]
        copies = [self._copying(copy) for copy in self._own_copies()]
        return [*(p for phase in phases for p in (*phase.paths, *phase.streams)), *moves, *copies]

    def _copying(self, copy: Copy) -> nodes.Path:
        """The copying of a relation of the planner's own as a path: it is not there yet when extents are inferred."""
        columns = range(len(self.types.columns(copy.relation)))
        keys = next((len(r.keys) for r in self.scope.reductions if r.relation == copy.relation), len(columns))
        seed = nodes.Scan(copy.relation, tuple((c, c) for c in columns[:keys]))
        sink = nodes.Insert(copy.name, tuple(Variable(c) for c in columns), False)
        return nodes.Path(-1, seed, (), sink, len(columns))

    def _shape(self) -> None:
        for phase in self.plan.phases:
            for exchange in phase.exchanges:
                for name in (exchange.name, exchange.inbox):
                    self.catalog.add(name, [t.kind for t in exchange.types])
        for copy in (*self.plan.mirrors, *self._own_copies()):
            self.catalog.add(copy.name, [t.kind for t in self.types.columns(copy.relation)])
        super()._shape()
        for mirror in self.plan.mirrors:
            self._shape_mirror(mirror)
        for phase in self.plan.phases:
            for exchange in phase.exchanges:
                self._combine(exchange)
                self._forget_sent(self.relation(exchange.name))

    def _combine(self, exchange: Exchange) -> None:
        """Merges what goes home to a lattice before it is sent: of all values for a key only the best can count."""
        lattice = next((x for x in self.scope.lattices if x.relation == exchange.target), None)
        if lattice is not None and exchange.role == "home":
            relation = self.relation(exchange.name)
            key = [c for c in range(relation.arity) if c != lattice.column]
            relation.key_by(key, lattice.column, combine_in(lattice, relation.kinds[lattice.column]))

    def _forget_sent(self, outbox: StoredRelation) -> None:
        """Whether a row was sent before is asked where a bit tells, or where one column is left of a body, which is found as
        often as there are ways to it. Elsewhere asking costs as much as sending."""
        if outbox.set_kind == SetKind.HASH and not outbox.keyed and outbox.arity > 1:
            outbox.drop_set()

    def _shape_mirror(self, mirror: Copy) -> None:
        """A mirror of a lattice keeps the best value per key as the lattice does."""
        lattice = next((x for x in self.scope.lattices if x.relation == mirror.relation), None)
        if lattice is not None:
            relation = self.relation(mirror.name)
            extents = list(relation.extents)
            relation.drop_set()
            self._shape_lattice(relation, lattice, extents)
            relation.struct[L.relation.heap] = 0

    def _clean(self) -> None:
        super()._clean()
        for name in [n for n in self.catalog.relations if n.startswith("@")]:
            if name not in self.catalog.complete or any(name == c.name for c in self._own_copies()):
                self.catalog.remove(name)

    def _own_copies(self) -> Iterable[Copy]:
        """Copies of what the planner made for this scope."""
        return dict.fromkeys(c for phase in self.plan.phases for c in phase.copies if c.relation.startswith("@"))

    # ------------------------------------------------------------------------------------------------------------- run

    def _run_all(self) -> None:
        for number, stage in enumerate(self.scope.stages):
            self._run_exchanging(self.plan.stages[number])
            self._complete(stage)
        self._run_exchanging(self.plan.enter)
        if self._connects():
            self._connect_together()
        elif self.scope.variables:
            self._run_loops(self.plan.loop)

    def _connect_together(self) -> None:
        """In the loop's place."""
        connection = self.scope.connection
        assert connection is not None
        name = connection.relation
        (key,) = self.relation(name).key
        value = self.types.columns(name)[1 - key]
        Trees(connection, self.catalog, self.row_exchange, value, self.homes[name], self._insert_all).connect()

    def _complete(self, stage: Sequence[nodes.Path]) -> None:
        """Brings the parts of reductions together and makes what the stage filled available."""
        made = {p.sink.relation for p in stage}
        for name in sorted(made & set(self.reductions)):
            if name in self.plan.apart:
                self._bring_together(name)
            finish_reduction(self.relation(name), self.reductions[name])
        self.catalog.complete.update(made)

    def _bring_together(self, name: str) -> None:
        """Merges the workers' partial values of a reduction where their groups are at home."""
        relation = self.relation(name)
        parts = self._drain(relation)
        arrived, _ = self.row_exchange.swap([OutgoingRows(name, self.types.columns(name), self.plan.homes[name], parts)])
        self._insert_all(name, arrived.get(name))

    def _insert_all(self, name: str, rows: Rows | None) -> None:
        """Inserts, or merges, rows into a relation."""
        if rows is None:
            return
        relation = self.relation(name)
        given = self.catalog.add("@arrived", relation.kinds)
        given.shape(relation.extents)
        columns = range(relation.arity)
        seed = nodes.Scan("@arrived", tuple((c, c) for c in columns))
        path = nodes.Path(-1, seed, (), nodes.Insert(name, tuple(Variable(c) for c in columns)), relation.arity)
        for part in readable([rows], given.widths):
            with holding(given, part):
                self._run_paths([path])
        self.catalog.remove("@arrived")

    def _run_exchanging(self, phase: Phase) -> None:
        """Runs paths until no worker has anything left to send."""
        self._make_copies(phase.copies)
        first, later = self._lower_phase(phase)
        again = {p.path.sink.relation for p in later}
        once = again.isdisjoint(x.name for x in phase.exchanges)
        self._run_lowered(p for p in first if self._starts_here(p.path))
        while (arrived := self._swap(phase.exchanges)) is not None:
            self._drop(x.name for x in phase.exchanges if x.name not in again)
            self._take_in(later, arrived)
            if once:
                break
        self._drop(x.name for x in phase.exchanges)
        self._account([*first, *later])

    def _lower_phase(self, phase: Phase) -> tuple[list[LoweredPath], list[LoweredPath]]:
        """The paths of the phase, and those that inboxes seed."""
        deliveries = [x.delivery for x in phase.exchanges if x.delivery is not None]
        outboxes = {x.name for x in phase.exchanges}
        lowered, tables = self._lower([self._fitting(p, outboxes) for p in (*phase.paths, *deliveries, *phase.streams)])
        self.thread_pool.prepare(tables)
        return lowered[: len(phase.paths)], lowered[len(phase.paths) :]

    def _fitting(self, path: nodes.Path, outboxes: Container[str]) -> nodes.Path:
        """The path with a sink that asks no more of an outbox than it knows."""
        sink = path.sink
        unchecked = sink.relation in outboxes and self.relation(sink.relation).set_kind == SetKind.NONE
        if isinstance(sink, nodes.Insert) and unchecked:
            return replace(path, sink=replace(sink, distinct=False))
        return path

    def _starts_here(self, path: nodes.Path) -> bool:
        """The one row of a rule without positive atoms is at the root."""
        return not isinstance(path.seed, nodes.Unit) or self.row_exchange.worker_group.is_root

    def _run_lowered(self, paths: Iterable[LoweredPath]) -> None:
        for path in paths:
            self.thread_pool.workers[0].run_path(path, self._evaluate, self.pause)

    def _run_loops(self, phase: Phase) -> None:
        """The fixed point of all workers: each reaches one of its own, then they exchange what they found."""
        self._make_copies(phase.copies)
        mirrors = [self.relation(m.name) for m in self.plan.mirrors]
        looping, later = self._lower_phase(phase)
        loop = self._loop(looping, self.scope.variables)
        copies = {x.delivery for x in phase.exchanges if x.role == "copy"}
        copying = [p for p in later if p.path in copies]
        inserting = [p for p in later if p.path not in copies]
        going = self._iterate_alone(looping, loop)
        while going and (arrived := self._swap(phase.exchanges)) is not None:
            self._take_in(copying, arrived)
            self._settle(mirrors)
            self._take_in(inserting, arrived)
            going = self._iterate_alone(looping, loop)
        self._drop(x.name for x in phase.exchanges)
        self._account([*looping, *later])

    def _iterate_alone(self, looping: Sequence[LoweredPath], loop: Struct) -> bool:
        """Reaches this worker's fixed point; false where a relation has reached its limit before all workers reached theirs.

        A limit is on the rows of all workers. As long as each adds less than its share of what is left, all stay below it; who
        adds more pauses with its changes at hand, and all look where they are."""
        limited = [self.relation(name) for name in self.scope.variables if self.limits.get(name)]
        if not limited:
            self._run_loop(looping, loop)
            return True
        phase, pausing = ADVANCE, True
        while True:
            heights, others = zip(*self.row_exchange.worker_group.share(([r.rows for r in limited], pausing)), strict=True)
            left = [self.limits[r.name] - sum(rows) for r, rows in zip(limited, zip(*heights, strict=True), strict=True)]
            if min(left) <= 0:
                return False
            if not any(others):
                return True
            for relation, rows in zip(limited, left, strict=True):
                relation.struct[L.relation.limit] = relation.rows + -(-rows // self.row_exchange.worker_group.size)
            if pausing:
                self._run_loop(looping, loop, phase)
                phase, pausing = DERIVE, self.thread_pool.workers[0].control[L.control.changes] > 0

    def _settle(self, mirrors: Sequence[StoredRelation]) -> None:
        """Makes what arrived in mirrors readable: before anything that was found later looks for it."""
        for mirror in mirrors:
            mirror.struct[L.relation.lo] = mirror.struct[L.relation.hi] = mirror.rows
        for arrangement in self.growing.values():
            if arrangement.relation in mirrors:
                self._include(arrangement)

    # ---------------------------------------------------------------------------------------------------------- exchanges

    def _swap(self, exchanges: Sequence[Exchange]) -> dict[str, list[Rows]] | None:
        """Empties the outboxes. Returns what arrived, by inbox and as paths read it; None if no worker sent anything."""
        self.pause()
        if not exchanges:
            return None
        arrived, any_sent = self.row_exchange.swap_parts([self._outgoing(x) for x in exchanges])
        for exchange in exchanges:
            self.relation(exchange.name).forget_rows()
        return {name: readable(parts, self.relation(name).widths) for name, parts in arrived.items()} if any_sent else None

    def _drop(self, outboxes: Iterable[str]) -> None:
        """Gives back the memory of outboxes that do not fill again."""
        for relation in map(self.relation, outboxes):
            if not relation.rows:
                relation.drop_columns()

    def _outgoing(self, exchange: Exchange) -> OutgoingRows:
        """The rows of an outbox, which fills again while they are read: in memory whose turn it is."""
        relation = self.relation(exchange.name)
        columns = [relation.column(c) for c in range(relation.arity)]
        buffer = self._buffers[exchange.name]
        if exchange.place < 0 or self.row_exchange.worker_group.size == 1:
            held = buffer.columns([c.dtype for c in columns], relation.rows)
            for copy, column in zip(held, columns, strict=True):
                copy[:] = column
            columns = held
        rows, shared = Rows(tuple(columns), relation.rows), exchange.role == "stream"
        return OutgoingRows(exchange.inbox, exchange.types, exchange.place, rows, exchange.heavy, shared, buffer)

    def _take_in(self, paths: Sequence[LoweredPath], arrived: Mapping[str, Sequence[Rows]]) -> None:
        """Runs paths on what arrived in the inboxes that seed them."""
        for path in paths:
            assert isinstance(path.path.seed, nodes.Scan)
            inbox = self.relation(path.path.seed.relation)
            for rows in arrived.get(inbox.name, ()):
                self._make_room(path, rows.height)
                with holding(inbox, rows):
                    self._run_lowered([path])

    def _make_room(self, path: LoweredPath, arrived: int) -> None:
        """For rows on their way into a relation, as far as they are new, going by those before them."""
        before = path.struct[L.path.derived]
        novel = arrived * path.struct[L.path.added] // before if before else arrived
        if novel >= MIN_PART_ROWS and not path.path.steps:
            relation = self.relation(path.path.sink.relation)
            if not partition.make_room(relation.memory.control.address, relation.address, novel):
                raise relation.memory.failure()

    def _drain(self, relation: StoredRelation) -> Rows:
        """The rows of a relation, which is empty afterwards but keeps its shape."""
        rows = Rows(tuple(np.array(relation.column(c)) for c in range(relation.arity)), relation.rows)
        if rows.height:
            relation.empty()
        return rows

    def _make_copies(self, copies: Sequence[Copy]) -> None:
        """Copies of complete relations at other places, for this phase and those that follow."""
        missing = [c for c in copies if c.name not in self.catalog.complete]
        sent = [OutgoingRows(c.name, self.types.columns(c.relation), _destination(c.place), self._rows_for(c)) for c in missing]
        if not missing:
            return
        arrived, _ = self.row_exchange.swap(sent)
        for copy in missing:
            self._store(copy, arrived.get(copy.name))
        self.catalog.complete.update(c.name for c in missing)

    def _rows_for(self, copy: Copy) -> Rows:
        relation = self.relation(copy.relation)
        height = min(relation.rows, 1) if copy.place == SOME else relation.rows
        return Rows(tuple(np.array(relation.column(c)[:height]) for c in range(relation.arity)), height)

    def _store(self, copy: Copy, rows: Rows | None) -> None:
        base = self.relation(copy.relation)
        if copy.name not in self.catalog.relations:
            self.catalog.add(copy.name, base.kinds)
        made = self.relation(copy.name)
        if copy.relation in self.reductions:
            shape_reduction(made, self.reductions[copy.relation], [None] * base.arity)
            self._insert_all(copy.name, rows)
        elif rows is not None:
            if copy.relation in self.catalog.shard_statistics:
                made.shape(self.catalog.extents(copy.relation))
            made.assign(rows.columns, rows.height)


def _destination(place: Place) -> Place:
    return EVERYWHERE if place == SOME else place
