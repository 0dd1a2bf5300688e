"""The incremental engine: a program's relations are maintained over rounds, at a cost that goes with the change.

A commit goes to compiled code with its inputs' changes and comes back when every relation is complete for its rounds
(kernels/incremental/loop/rounds.py). A commit that fails leaves nothing behind: the inputs are put back as they were and, since
that is rare, the rest is derived from them anew. """

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dlog.engine.interruption import Delayed, check
from dlog.engine.ir.nodes import Scope
from dlog.engine.ir.rules import Program
from dlog.engine.kernels import layout as L
from dlog.engine.plan.explain import explain
from dlog.engine.plan.incremental.build import NotIncremental
from dlog.engine.plan.incremental.shapes import Shape
from dlog.engine.plan.incremental.thresholds import weighted
from dlog.engine.rounds_engine import Frames, Image, IncompatibleImage, RoundsEngine, StartingPoint
from dlog.engine.runtime.incremental import image
from dlog.engine.runtime.incremental.access import ReadersWriterLock
from dlog.engine.runtime.incremental.batches.changes import insertions, of_rounds
from dlog.engine.runtime.incremental.batches.cutting import cut, fused_rounds
from dlog.engine.runtime.incremental.batches.fused import FusedBatches
from dlog.engine.runtime.incremental.batches.journal import Journal
from dlog.engine.runtime.incremental.batches.runner import BatchRunner, input_of
from dlog.engine.runtime.incremental.dataflow import Dataflow, Plan
from dlog.engine.runtime.incremental.engines.viewed import keeper_of
from dlog.engine.runtime.incremental.plan_changes.planner_statistics import DataflowStatistics, StatisticChange
from dlog.engine.runtime.incremental.plan_changes.program_change import followed
from dlog.engine.runtime.incremental.plan_changes.rebuilding import MIN_REBUILD_ROWS, Before, Fragmentation, all_rows, dwarfs
from dlog.engine.runtime.incremental.plan_changes.replanning import NEVER, WORK_OF_A_ROW, PlanWatch, with_plans
from dlog.engine.runtime.incremental.plan_changes.state_reuse import StateReuse, derive_new
from dlog.engine.runtime.incremental.readable import ReadableRounds
from dlog.engine.runtime.lowering.linking import Form
from dlog.engine.runtime.preload import preload
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.memory import Memory, is_exhausted
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.updates import Updates, prepended
from dlog.grammar.diagnostics import DlogError, InternalError

IMAGE_PIECE_BYTES = 1 << 20
"""Bytes of an image that are copied while a commit waits: trades its latency against the number of pieces."""
MAX_TICKS = 2**30
"""Ticks of the clock after which stamps are cleared: a batch has fewer than are left."""


class Maintained(ReadableRounds):
    """See `dlog.engine.rounds_engine.RoundsEngine`. For programs whose strata can all be maintained (`engines.is_incremental`).

    One that follows another of this class takes over what comes about as before (state reuse); they take turns then, since the
    other may still be read."""

    def __init__(
        self,
        program: Program,
        *,
        threads: int = 1,
        memory: int | None = None,
        max_iterations: int | None = None,
        old: RoundsEngine | StartingPoint | None = None,
    ) -> None:
        preload()
        self._predecessor = old if type(old) is type(self) is Maintained and old.has_rows else None
        access = ReadersWriterLock() if self._predecessor is None else self._predecessor._access
        super().__init__(program, 0 if old is None else old.round, access)
        self.whole = program = weighted(program)
        """The program as it is maintained."""
        self.memory: Memory = Memory(memory, threads) if self._predecessor is None else self._predecessor.memory
        self.max_iterations = max_iterations
        self.catalog = Catalog(program, self.memory)
        if old is not None:
            self.catalog.symbols = old.symbols
            self.catalog.records = old.records  # type: ignore[assignment]
        self._runner = BatchRunner(program, self.catalog, self._access, self._last, max_iterations)
        self.worker = self._runner.worker
        self._journal = Journal(self.worker.control)
        self._again = isinstance(old, StartingPoint) and old.again
        """Whether the first commit is still to come, and no limit of iterations holds for it."""
        self._reused: tuple[str, ...] = ()
        self._watched = PlanWatch()
        self._fragmentation = Fragmentation()
        self._forms: dict[Shape, Form] = {}

    @property
    def symbols(self) -> SymbolTable:
        return self.catalog.symbols

    @property
    def records(self) -> RecordTables:
        return self.catalog.records

    # -------------------------------------------------------------------------------------------------------------- commit

    def commit(self, inputs: Mapping[str, Updates], frames: Frames | None = None) -> int:
        predecessor, self._predecessor = self._predecessor, None
        self._access.changes += 1
        if predecessor is not None:
            return self._follow(predecessor, inputs)
        if self._owing is not None:
            with self._access.lock:
                self._go_back(self._owing)
        first, last = self._span(inputs)
        given = {name: updates for name, updates in inputs.items() if updates.rows}
        with Delayed():
            if self._flow is None:
                given = self._with_facts(given, first)
                self._flow = self._build(given)
            return self._commit(self._flow, given, first, last)

    def _commit(self, flow: Dataflow, given: Mapping[str, Updates], first: int, last: int) -> int:
        with self._access.lock:
            self._access.changes += 1
            self._last.begin(first)
            coming = sum([updates.rows for updates in given.values()])
            self._fragmentation.changed += coming
            anew = first == last and flow.started and self._begins_anew(flow, given, coming)
            if anew and self._begin_anew(flow, given, first):
                return last
            watched = self._watched
            if watched.due != NEVER:
                watched.work += WORK_OF_A_ROW * coming + self._runner.take_work()
                if watched.work >= watched.due:
                    flow = self._looked_at(flow, given, first)
            self._keep_ticks(flow)
            flow.note_input_changes(given)
            flow.running = True
            try:
                for start, end in self._batches_of(flow, given, first, last):
                    if start > first:
                        self._last.keep_batch(flow)
                    flow.work[L.work.rounds] = 0
                    if start > first and watched.due != NEVER:
                        watched.work += self._runner.take_work()
                        if watched.work >= watched.due:
                            flow = self._looked_at(flow, given, start)
                    self._last.first = start
                    check()
                    batch = given if end - start == last - first else of_rounds(given, start, end)
                    self._run(flow, batch, start, end - start + 1)
            except BaseException:
                # Whatever a signal's handler raises may come when the native part is over.
                if flow.phase == "after" and end == last and self._last.is_over:
                    self._note(flow, last)
                else:
                    self._go_back(lambda: self._restore(flow))
                raise
            self._note(flow, last)
        return last

    def _begins_anew(self, flow: Dataflow, given: Mapping[str, Updates], coming: int) -> bool:
        """Whether to begin anew: not where others have part of what there is, or all rows may take too many iterations."""
        if coming < MIN_REBUILD_ROWS or self._reused or self.max_iterations is not None:
            return False
        return dwarfs(given, flow) or self._fragmentation.is_fragmented(coming, flow, self.memory.used)

    def _begin_anew(self, old: Dataflow, given: Mapping[str, Updates], round: int) -> bool:
        """A commit, of one round, for which another dataflow takes the place of this one; until then it is read. False where
        there is no memory for both."""
        self._last.is_forgotten = True
        before = Before(old, self._now)
        rows = all_rows(old, before, given, round)
        flow = self._build(rows)
        flow.running, self._last.first = True, round
        try:
            self._run(flow, rows, round, 1)
        except BaseException as error:
            if flow.phase != "after":
                flow.free()
                self.worker.prepare(old.tables)
                self._watched.planned(old)
                self._fragmentation.begin(old, self.memory.used)
                if is_exhausted(error):
                    return False
                raise
            self._replace(flow, given, before, round)
            raise
        self._replace(flow, given, before, round)
        return True

    def _replace(self, flow: Dataflow, given: Mapping[str, Updates], before: Before, round: int) -> None:
        old, self._flow, self._last.before = self._flow, flow, before
        assert old is not None
        changed = [number for number, scope in flow.scopes.items() if scope != old.scopes[number]]
        if changed:
            now = self._statistics_now(old, given)
            why = {number: old.recorded_statistics[number].out_of_range(now) for number in changed}
            left = {number: change for number, change in why.items() if change is not None}
            self._watched.note(left, flow, left, round)
        old.free()
        self._note(flow, round)

    def _now(self, relation: str) -> tuple[tuple[np.ndarray, ...], int]:
        assert self._flow is not None
        return self._flow.collections[relation].read()

    def _looked_at(self, flow: Dataflow, given: Mapping[str, Updates], start: int) -> Dataflow:
        """The dataflow that goes on with the changes from round `start` on: one with other plans where figures have left the
        range of those that there are."""
        if not flow.started:
            return flow
        now = self._statistics_now(flow, of_rounds(given, start, NEVER))
        replanning = self._watched.replanned(flow, now)
        return flow if replanning is None else self._replanned(flow, replanning.outdated, replanning.plans, start)

    def _statistics_now(self, flow: Dataflow, waiting: Mapping[str, Updates]) -> DataflowStatistics:
        return DataflowStatistics(
            waiting, frozenset(), {n: c for n, c in flow.collections.items() if n in self.whole.relations}
        )

    def _replanned(
        self, old: Dataflow, left: Mapping[int, StatisticChange], plans: Mapping[int, Plan], round: int
    ) -> Dataflow:
        """The dataflow with new plans for strata that have left the range of theirs, as far as there are any."""
        self._watched.give_up(left.keys() - plans.keys())
        changed = {number: plan for number, plan in plans.items() if plan[0] != old.scopes[number]}
        for number, (scope, recorded) in plans.items():
            if number not in changed:  # but in what is expected of its steps, which an image's reader must find again
                old.scopes[number] = replace(scope, derived=old.scopes[number].derived)
                old.recorded_statistics[number] = recorded
        if not changed:
            return old
        self._last.is_forgotten = True
        try:
            flow = with_plans(old, changed, self.worker, self._runner.run_new)
        except DlogError:  # for want of memory
            self._watched.give_up(changed)
            return old
        self._flow = self._prepared(flow)
        old.free()
        self._watched.planned(flow)
        self._watched.note(changed, flow, left, round)
        return flow

    def _batches_of(self, flow: Dataflow, given: Mapping[str, Updates], first: int, last: int) -> Iterable[tuple[int, int]]:
        return cut(flow, given, first, last, lambda: self._rounds_to_fuse(flow, given))

    def _rounds_to_fuse(self, flow: Dataflow, given: Mapping[str, Updates]) -> int:
        return fused_rounds(flow, given)

    def _note(self, flow: Dataflow, last: int) -> None:
        """Takes note of a commit that has happened."""
        if not flow.started:
            self._fragmentation.begin(flow, self.memory.used)
        flow.started, flow.running = True, False
        self.round, self._last.is_forgotten = last, False
        if self._again:
            self._again = False
            self._limit(flow)

    def _keep_ticks(self, flow: Dataflow) -> None:
        """Begins the stamps' clock anew before it passes 32 bits."""
        if flow.work[L.work.tick] > MAX_TICKS:
            for collection in flow.stamped():
                collection.clear_stamps()
            flow.work[L.work.tick] = 0

    def _span(self, inputs: Mapping[str, Updates]) -> tuple[int, int]:
        """The first and the last round of a commit. What the program's text alone says comes with the very first round."""
        first = last = 0
        for updates in inputs.values():
            if updates.rows:
                first, last = min(first or updates.first, updates.first), max(last, updates.last)
        if not last:
            return self.round + 1, self.round + 1
        return (self.round + 1 if self._flow is None else first), last

    def _with_facts(self, given: Mapping[str, Updates], first: int) -> dict[str, Updates]:
        """The changes of the first commit, with the facts of the program's text before them."""
        return prepended(self.catalog.encoder.updates(self.whole, self.whole.facts, 1, first), given)

    def _build(self, given: Mapping[str, Updates]) -> Dataflow:
        derived = self.whole.derived.keys()
        known = frozenset(self.whole.relations.keys() - derived)
        try:
            flow = self._dataflow(DataflowStatistics(given, known))
        except NotIncremental:
            # Orders chosen for these sizes may lead there; those chosen for none do not (`engines.is_incremental`).
            flow = self._dataflow(DataflowStatistics({}, known))
        self._watched.planned(flow)
        return self._prepared(flow)

    def _prepared(self, flow: Dataflow) -> Dataflow:
        if not self._again:
            self._limit(flow)
        self.worker.prepare(flow.tables)
        return flow

    def _limit(self, flow: Dataflow) -> None:
        if self.max_iterations is not None:
            flow.work[L.work.limit] = self.max_iterations

    def _dataflow(self, statistics: DataflowStatistics) -> Dataflow:
        return Dataflow(self.whole, self.catalog, self.memory, lambda _: statistics, forms=self._forms)

    def _run(self, flow: Dataflow, given: Mapping[str, Updates], first: int, count: int) -> None:
        """One batch, or many fused ones. Raises what a rule's evaluation raises."""
        self._last.fused = None
        if count > 1 and len(given) == 1:
            ((name, updates),) = given.items()
            fused_rounds = self._rounds_to_fuse(flow, given)
            if 0 < fused_rounds < count:
                self._last.fused = FusedBatches(input_of(flow, name), updates, fused_rounds)
                return self._runner.run_fused(flow, self._last.fused)
        return self._runner.run(flow, given, first, count)

    # --------------------------------------------------------------------------------------------------------- succession

    @property
    def has_rows(self) -> bool:
        """Whether there is something to take over."""
        return self._flow is not None and self._flow.started and not self._flow.status.over

    @property
    def inherited(self) -> frozenset[str]:
        predecessor = None if self._predecessor is None else self._predecessor._flow
        return frozenset() if predecessor is None else frozenset(StateReuse(predecessor, self.whole).inputs())

    @property
    def reused_relations(self) -> frozenset[str]:
        return frozenset(self._reused)

    def _follow(self, predecessor: Maintained, inputs: Mapping[str, Updates]) -> int:
        """The first commit, after what another engine has: that is taken over, what is new derived, and then the inputs
        change. Whatever is raised, the other engine is as it was."""
        given = self._with_facts({name: u for name, u in inputs.items() if u.rows}, self.round + 1)
        if any(u.last > self.round + 1 for u in given.values()):
            raise InternalError("rounds", "an engine takes over in one round")
        controls = self.memory.control, self.worker.control
        with Delayed():
            try:
                with self._access.lock:
                    self._take_over(predecessor, given, controls)
                try:
                    last = self.commit(given)
                except BaseException:
                    predecessor.take_back(self)
                    raise
                predecessor._runner.forget()  # nobody closes it, and the memory is this engine's, too
            finally:
                for control in controls:
                    control[L.control.limit] = self.memory.limit
        self._last.new_relations = frozenset(self.program.relations.keys() - self.reused_relations)
        self._watched.soon()
        return last

    def _take_over(self, predecessor: Maintained, given: Mapping[str, Updates], controls: Sequence[Struct]) -> None:
        """Has in this engine what the other has, and derives what is new."""
        old = predecessor._flow
        assert old is not None
        predecessor._lending = True
        self._access.changes += 1
        try:
            flow, state_reuse = followed(self.whole, self.catalog, self.memory, old, given, self._runner.hold_rows)
            # What is not taken over goes with the other engine: for now there is room besides that.
            limited = self.memory.limited
            room = self.memory.limit + (self.memory.used - state_reuse.bytes if limited else 0)
            for control in controls:
                control[L.control.limit] = room
            self._prepared(flow)
            derive_new(flow, state_reuse, lambda: self._runner.run_new(flow))
        finally:
            predecessor._lending = False
        self._reused = tuple(n for n in self.whole.relations if flow.collections[n] is old.collections.get(n))
        self._flow = flow
        self._watched.planned(flow)
        changed, reused = predecessor._watched.changed_plans, set(self._reused)
        self._watched.changed_plans = {k: [*v] for k, v in changed.items() if set(k) <= reused}

    def take_back(self, successor: RoundsEngine) -> None:
        flow, successor = self._flow, keeper_of(successor)
        if not isinstance(successor, Maintained) or flow is None or not successor.reused_relations:
            return
        with self._access.lock:
            self._access.changes += 1
            if successor.round > self.round and successor._flow is not None:
                successor._restore(successor._flow)
            followed = successor._flow
            assert followed is not None
            before = {}
            for name, held in flow.inputs():
                # The successor may have lost one that was empty: its program need not ask for it.
                found = held if held.status is flow.status else followed.input(name)
                if found is not None:
                    rows = found.present()
                    before[name] = insertions(found.raw_columns(rows), len(rows), 1)
            successor._flow = None
            followed.free()
            flow.free()
            self._last.is_forgotten = True
            self._go_back(lambda: self._rebuild(before))

    # ------------------------------------------------------------------------------------------------------------- images

    def image(self) -> Image | None:
        flow = self._flow if self._owing is None else None
        return None if flow is None or not flow.started else image.take(flow, self.round)

    def image_bytes(self) -> int | None:
        flow = self._flow if self._owing is None else None
        return None if flow is None or not flow.started else image.bytes_of(flow)

    def copied_image(self, most: int) -> Image | None:
        access = self._access
        with access.lock:
            changes = access.changes
            taken = None if self._flow is None or self._flow.running or self._lending else self.image()
        if taken is None or taken.bytes > most:
            return None
        copy, pieces = taken.copies(IMAGE_PIECE_BYTES)
        for target, source in pieces:
            with access.lock:
                if access.changes != changes:
                    return None
                target[:] = source
        return copy

    def resume(self, found: Image) -> None:
        """Takes over everything that an image has, before the first commit. Raises IncompatibleImage where that is not what the
        program's engine would keep, DlogError where memory does not suffice; then nothing has been taken."""
        image.check_version(found)
        try:
            flow = Dataflow(self.whole, self.catalog, self.memory, lambda number: image.statistics_of(found, number))
        except NotIncremental:
            raise IncompatibleImage("the program cannot be maintained") from None
        try:
            image.put(flow, found)
        except BaseException:
            flow.free()
            raise
        self._flow = self._prepared(flow)
        self._watched.planned(flow)
        self._watched.soon()

    # ------------------------------------------------------------------------------------------------------------ failure

    def _restore(self, flow: Dataflow) -> None:
        """Back to the state before a commit that failed."""
        if flow.phase == "before" and not self._last.batches:
            flow.running = False
            return
        began, before = flow.started, self._last.inputs_before(flow)
        self._owing = lambda: self._rebuild(before) if began else None
        flow.free()
        self._flow = None
        self._last.batches = []
        if began:
            self._rebuild(before)

    def _rebuild(self, before: Mapping[str, Updates]) -> None:
        """Derives everything from these rows of the inputs, which have been there before."""
        given = {name: updates for name, updates in before.items() if updates.rows}
        control, limit = self.worker.control, self.worker.control[L.control.limit]
        control[L.control.limit] = 2**62
        try:
            flow = self._build(given)
            # Rounds had fewer iterations each than all rows at once take.
            most, flow.work[L.work.limit] = flow.work[L.work.limit], 2**31 - 2
            self._run(flow, given, 1, 1)
        finally:
            control[L.control.limit] = limit
        flow.work[L.work.limit] = most
        for collection in flow.collections.values():
            collection.log[L.items.count] = 0
        flow.started = True
        self._flow = flow

    # ------------------------------------------------------------------------------------------------------------- others

    def explain(self) -> str:
        flow = self._flow or self._build({})
        text = "\n".join(map(self._explained, flow.scopes.values()))
        if self._flow is None:
            flow.free()
        kept = [name for stratum in self.program.strata for name in stratum.relations if name in self._reused]
        return f"kept as it was when the rules changed: {', '.join(kept)}\n\n{text}" if kept else text

    def _explained(self, scope: Scope) -> str:
        """A plan, and when and why it took the place of another one."""
        heading, rest = explain(scope, self.whole).split("\n", 1)
        return "\n".join([heading, *(f"  {told}" for told in self._watched.changed_plans.get(scope.relations, ())), rest])

    def close(self) -> None:
        with self._access.lock:
            self._access.changes += 1
            flow, self._flow = self._flow, None
            if flow is not None:
                flow.free()
            self._runner.close()
