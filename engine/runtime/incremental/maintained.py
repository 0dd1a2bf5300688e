"""The incremental engine: a program's relations are maintained over rounds, at a cost that goes with the change.

A commit goes to compiled code with its inputs' changes and comes back when every relation is complete for its rounds
(kernels/incremental/loop/rounds.py). A commit that fails leaves nothing behind: the inputs are put back as they were and, since
that is rare, the rest is derived from them anew. """

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from dlog.engine.interruption import Delayed, check
from dlog.engine.ir.nodes import Scope
from dlog.engine.ir.rules import Program
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Status
from dlog.engine.kernels.incremental.loop import activation, fused_batches, rounds
from dlog.engine.kernels.incremental.store import loading
from dlog.engine.plan.explain import explain
from dlog.engine.plan.incremental.build import NotIncremental
from dlog.engine.plan.incremental.thresholds import weighted
from dlog.engine.rounds import Frames, Image, IncompatibleImage, PlainRounds, RoundsEngine, StartingPoint
from dlog.engine.runtime.incremental import image
from dlog.engine.runtime.incremental.batches import insertions, no_updates, of_rounds, staged
from dlog.engine.runtime.incremental.cutting import cut, stretched_rounds
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.incremental.fused_batches import FusedBatches, batch_changes, take_changes
from dlog.engine.runtime.incremental.mistakes import at_rule, mistake
from dlog.engine.runtime.incremental.planner_statistics import DataflowStatistics, StatisticChange
from dlog.engine.runtime.incremental.program_change import derive_new, followed
from dlog.engine.runtime.incremental.reading import ranks_of, rows_of, table_of
from dlog.engine.runtime.incremental.rebuilding import MIN_REBUILD_ROWS, Before, Fragmentation, all_rows, dwarfs
from dlog.engine.runtime.incremental.replanning import NEVER, WORK_OF_A_ROW, Watched, exchanged, planned_again
from dlog.engine.runtime.incremental.state_reuse import StateReuse
from dlog.engine.runtime.lowering.external import evaluate
from dlog.engine.runtime.lowering.lower import ExternalCall
from dlog.engine.runtime.preload import preload
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.runtime.storage.relation import Memory, is_exhausted
from dlog.engine.values.differences import apply_changes
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates, joined, prepended
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError

MAX_ROWS_PER_CALL = 1 << 20
"""Rows that paths may make before signals and readers in other threads get their turn: trades their latency against calls."""
IMAGE_PIECE_BYTES = 1 << 20
"""Bytes of an image that are copied while a commit waits: trades its latency against the number of pieces."""
MAX_TICKS = 2**30
"""Ticks of the clock after which stamps are cleared: a batch has fewer than are left."""
BULK_ROWS = 4096
"""Rows from which an empty input is loaded by columns."""


class ReadersWriterLock:
    """A readers-writer lock on the collections: native code holds it to write, readers wait for a turn."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting = 0
        self.changes = 0
        """Grows before the lock is asked for by who will change or move arrays, and again when that begins."""


class Maintained(PlainRounds):
    """See `dlog.engine.rounds.RoundsEngine`. For programs whose strata can all be maintained (`engines.is_incremental`).

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
        self.program = program
        self.whole = program = weighted(program)
        """The program as it is maintained."""
        self._places = {name: number for number, name in enumerate(program.relations)}
        self._predecessor = old if type(old) is type(self) is Maintained and old.has_rows else None
        self.memory: Memory = Memory(memory, threads) if self._predecessor is None else self._predecessor.memory
        self.max_iterations = max_iterations
        self.catalog = Catalog(program, self.memory)
        if old is not None:
            self.catalog.symbols = old.symbols
            self.catalog.records = old.records  # type: ignore[assignment]
        self.worker = Worker(self.memory)
        self.round = 0 if old is None else old.round
        self._flow: Dataflow | None = None
        self._first = self.round + 1
        self._batches: list[dict[str, Updates]] = []
        self._access: ReadersWriterLock = ReadersWriterLock() if self._predecessor is None else self._predecessor._access
        self._news: frozenset[str] | None = None
        """After the commit that took over from another engine: the relations that were not taken over."""
        self._forgotten = False
        """Whether the engine is at its last round without knowing what that changed."""
        self._lending = False
        """Whether another engine takes over at this moment."""
        self._again = isinstance(old, StartingPoint) and old.again
        """Whether the first commit is still to come, and no limit of iterations holds for it."""
        self._taken: tuple[str, ...] = ()
        self._fused: FusedBatches | None = None
        """The last part of the last commit, if it was one."""
        self._before: Before | None = None
        """What there was before the last commit, if that began anew."""
        self._watched = Watched()
        self._fragmentation = Fragmentation()
        self._owing: Callable[[], None] | None = None
        """How to go back to the last round, where a commit failed and memory did not suffice for that, either."""
        self.worker.control[L.control.budget] = MAX_ROWS_PER_CALL

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
            self._batches, self._news, self._forgotten, self._fused, self._before = [], None, False, None, None
            coming = sum([updates.rows for updates in given.values()])
            self._fragmentation.changed += coming
            anew = first == last and flow.started and self._begins_anew(flow, given, coming)
            if anew and self._begin_anew(flow, given, first):
                return last
            watched = self._watched
            if watched.due != NEVER:
                watched.work += WORK_OF_A_ROW * coming + self.worker.control[L.control.work]
                if watched.work >= watched.due:
                    flow = self._looked_at(flow, given, first)
            self._keep_ticks(flow)
            flow.note_input_changes(given)
            flow.running = True
            try:
                for start, end in self._batches_of(flow, given, first, last):
                    if start > first:
                        self._batches.append(self._take_changes(flow))
                        self._fused = None
                    flow.work[L.work.rounds] = 0
                    if start > first and watched.due != NEVER:
                        watched.work += self.worker.control[L.control.work]
                        if watched.work >= watched.due:
                            flow = self._looked_at(flow, given, start)
                    self._first = start
                    check()
                    batch = given if end - start == last - first else of_rounds(given, start, end)
                    self._run(flow, batch, start, end - start + 1)
            except BaseException:
                # Whatever a signal's handler raises may come when the native part is over.
                if flow.phase == "after" and end == last and (self._fused is None or self._fused.is_over):
                    self._note(flow, last)
                else:
                    self._go_back(lambda: self._restore(flow))
                raise
            self._note(flow, last)
        return last

    def _begins_anew(self, flow: Dataflow, given: Mapping[str, Updates], coming: int) -> bool:
        """Whether to begin anew: not where others have part of what there is, or all rows may take too many iterations."""
        if coming < MIN_REBUILD_ROWS or self._taken or self.max_iterations is not None:
            return False
        return dwarfs(given, flow) or self._fragmentation.is_fragmented(coming, flow, self.memory.used)

    def _begin_anew(self, old: Dataflow, given: Mapping[str, Updates], round: int) -> bool:
        """A commit, of one round, for which another dataflow takes the place of this one; until then it is read. False where
        there is no memory for both."""
        self._forgotten = True
        left = self._watched.out_of_range(old, self._statistics_now(old, given))
        rows, before = all_rows(old, given, round), Before(old, self._now)
        flow = self._build(rows)
        flow.running, self._first = True, round
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
            self._replace(flow, left, before, round)
            raise
        self._replace(flow, left, before, round)
        return True

    def _replace(self, flow: Dataflow, left: Mapping[int, StatisticChange], before: Before, round: int) -> None:
        old, self._flow, self._before = self._flow, flow, before
        assert old is not None
        changed = [number for number, scope in flow.scopes.items() if number in left and scope != old.scopes[number]]
        self._watched.note(changed, flow, left, round)
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
        left = self._watched.out_of_range(flow, now)
        return self._replanned(flow, left, now, start) if left else flow

    def _statistics_now(self, flow: Dataflow, waiting: Mapping[str, Updates]) -> DataflowStatistics:
        return DataflowStatistics(
            waiting, frozenset(), {n: c for n, c in flow.collections.items() if n in self.whole.relations}
        )

    def _replanned(self, old: Dataflow, left: Mapping[int, StatisticChange], now: DataflowStatistics, round: int) -> Dataflow:
        """The dataflow with new plans for strata that have left the range of theirs, if there are any."""
        plans = planned_again(old, left, now)
        self._watched.give_up(left.keys() - plans.keys())
        changed = {number: plan for number, plan in plans.items() if plan[0] != old.scopes[number]}
        for number, (scope, recorded) in plans.items():
            if number not in changed:  # but in what is expected of its steps, which an image's reader must find again
                old.scopes[number] = replace(scope, derived=old.scopes[number].derived)
                old.recorded_statistics[number] = recorded
        if not changed:
            return old
        self._forgotten = True
        try:
            flow = exchanged(old, changed, self.worker, self._run_new)
        except DlogError:  # for want of memory
            self._watched.give_up(changed)
            return old
        self._flow = self._prepared(flow)
        self._watched.planned(flow)
        self._watched.note(changed, flow, left, round)
        return flow

    def _batches_of(self, flow: Dataflow, given: Mapping[str, Updates], first: int, last: int) -> Iterable[tuple[int, int]]:
        return cut(flow, given, first, last, lambda: self._rounds_to_fuse(flow, given))

    def _rounds_to_fuse(self, flow: Dataflow, given: Mapping[str, Updates]) -> int:
        return stretched_rounds(flow, given)

    def _note(self, flow: Dataflow, last: int) -> None:
        """Takes note of a commit that has happened."""
        if not flow.started:
            self._fragmentation.begin(flow, self.memory.used)
        flow.started, flow.running = True, False
        self.round, self._forgotten = last, False
        if self._again:
            self._again = False
            self._limit(flow)

    def _keep_ticks(self, flow: Dataflow) -> None:
        """Begins the stamps' clock anew before it passes 32 bits."""
        if flow.work[L.work.tick] > MAX_TICKS:
            for collection in flow.stamped():
                collection.clear_stamps()
            flow.work[L.work.tick] = 0

    def _take_changes(self, flow: Dataflow) -> dict[str, Updates]:
        """The changes of the batch just run, out of the kernels' memory."""
        return take_changes(flow, self._fused, self._first)

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
        return Dataflow(self.whole, self.catalog, self.memory, lambda _: statistics)

    def _run(self, flow: Dataflow, given: Mapping[str, Updates], first: int, count: int) -> None:
        """One batch. Raises what a rule's evaluation raises."""
        control, work = self.worker.control, flow.work.address
        control[L.control.running] = control[L.control.work] = flow.work[L.work.begun] = 0
        self._fused = None
        if len(given) == 1:
            ((name, updates),) = given.items()
            fused_rounds = self._rounds_to_fuse(flow, given) if count > 1 else 0
            if 0 < fused_rounds < count:
                flow.keep_changes()
                self._fused = FusedBatches(self._input(flow, name), updates, fused_rounds)
                return self._finish(flow, fused_batches.run_stretch(self._fused.address, work, control.address))
            if updates.rows < BULK_ROWS:
                _held, at = staged(updates, first)
                target = self._input(flow, name).address
                status = rounds.commit_one(work, control.address, target, at, updates.rows, count)
                return self._finish(flow, status)
        rounds.begin_batch(work, control.address, count)
        for name, updates in given.items():
            if not self._apply(self._input(flow, name), updates, first):
                raise self._mistake(flow)
        return self._finish(flow, rounds.run_batch(work, control.address))

    def _apply(self, target: Collection, updates: Updates, first: int) -> bool:
        """Brings an input's changes in; false with ctl.error set."""
        control = self.worker.control.address
        activation.touch(control, target.address)
        bulk = updates.rows >= BULK_ROWS and target.struct[L.collection.fresh] and updates.last == first
        if bulk and (updates.diffs > 0).all():
            columns = [np.ascontiguousarray(c, np.int64) for c in updates.columns]
            listed = words(c.ctypes.data for c in columns)
            return bool(loading.bring_in(control, target.address, 0, listed.address, updates.rows))
        columns = [np.ascontiguousarray(c, np.int64) for c in (*updates.columns, updates.diffs, updates.rounds)]
        listed = words(c.ctypes.data for c in columns)
        return bool(loading.bring_changes(control, target.address, listed.address, first, updates.rows))

    def _finish(self, flow: Dataflow, status: int) -> None:
        """Runs a batch on until it is done. Between stretches of native work signals and readers get their turn."""
        while status != Status.DONE:
            if status == Status.FAILED:
                raise self._mistake(flow)
            if status == Status.EXTERNAL:
                self._call(flow)
            self._watched.work += MAX_ROWS_PER_CALL if status == Status.YIELD else 0
            begun = self._batches or (self._fused is not None and self._fused.has_changed)
            if self._access.waiting and not begun and self._owing is None:
                # What readers see then is the state before this batch (see `_present`), hence before the commit.
                self._access.lock.release()
                try:
                    time.sleep(0)
                finally:
                    self._access.lock.acquire()
            check()
            status = self._resume(flow)

    def _resume(self, flow: Dataflow) -> int:
        work, control = flow.work.address, self.worker.control.address
        if self._fused is not None:
            return int(fused_batches.run_stretch(self._fused.address, work, control))
        return int(rounds.run_batch(work, control))

    def _input(self, flow: Dataflow, name: str) -> Collection:
        found = flow.input(name)
        if found is None:
            raise InternalError("rounds", f"{name} takes no rows from outside")
        return found

    def _call(self, flow: Dataflow) -> None:
        try:
            self.worker.call(self._evaluate)
        except DlogError as error:
            raise at_rule(self.worker.control, flow, self.whole, error) from None

    def _evaluate(self, call: ExternalCall, args: Sequence[np.ndarray], rows: int) -> np.ndarray:
        return evaluate(call, args, rows, self.catalog)

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
        return frozenset(self._taken)

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
            finally:
                for control in controls:
                    control[L.control.limit] = self.memory.limit
        self._news = frozenset(self.program.relations.keys() - self.reused_relations)
        self._watched.soon()
        return last

    def _take_over(self, predecessor: Maintained, given: Mapping[str, Updates], controls: Sequence[Struct]) -> None:
        """Has in this engine what the other has, and derives what is new."""
        old = predecessor._flow
        assert old is not None
        predecessor._lending = True
        self._access.changes += 1
        try:
            flow, state_reuse = followed(self.whole, self.catalog, self.memory, old, given)
            # What is not taken over goes with the other engine: for now there is room besides that.
            limited = self.memory.limited
            room = self.memory.limit + (self.memory.used - state_reuse.bytes if limited else 0)
            for control in controls:
                control[L.control.limit] = room
            self._prepared(flow)
            derive_new(flow, state_reuse, lambda: self._run_new(flow))
        finally:
            predecessor._lending = False
        self._taken = tuple(n for n in self.whole.relations if flow.collections[n] is old.collections.get(n))
        self._flow = flow
        self._watched.planned(flow)
        self._watched.noted = {k: [*v] for k, v in predecessor._watched.noted.items() if set(k) <= set(self._taken)}

    def _run_new(self, flow: Dataflow) -> None:
        control, work = self.worker.control, flow.work.address
        control[L.control.running] = control[L.control.work] = flow.work[L.work.begun] = 0
        rounds.begin_batch(work, control.address, 1)
        self._finish(flow, rounds.run_batch(work, control.address))

    def take_back(self, successor: RoundsEngine) -> None:
        flow = self._flow
        if not isinstance(successor, Maintained) or flow is None or not successor.reused_relations:
            return
        with self._access.lock:
            self._access.changes += 1
            if successor.round > self.round and successor._flow is not None:
                successor._restore(successor._flow)
            followed = successor._flow
            assert followed is not None
            inputs = [name for name in self.whole.relations if flow.input(name) is not None]
            before = {}
            for name in inputs:
                found: Collection | None = self._input(flow, name)
                if found is not None and found.status is not flow.status:
                    # The successor may have lost one that was empty: its program need not ask for it.
                    found = followed.input(name)
                if found is not None:
                    rows = found.present()
                    before[name] = insertions(found.raw_columns(rows), len(rows), 1)
            successor._flow = None
            followed.free()
            flow.free()
            self._forgotten = True
            self._go_back(lambda: self._rebuild(before))

    # ------------------------------------------------------------------------------------------------------------- images

    def image(self) -> Image | None:
        flow = self._flow if self._owing is None else None
        return None if flow is None or not flow.started else image.take(flow, self.round)

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

    def _mistake(self, flow: Dataflow) -> Exception:
        return mistake(self.worker.control, self.memory, flow, self.whole, self.max_iterations)

    def _go_back(self, way: Callable[[], None]) -> None:
        """Back to the last round; if that fails, nothing is read or changed before it is done."""
        self._owing = way
        way()
        self._owing = None

    def _restore(self, flow: Dataflow) -> None:
        """Back to the state before a commit that failed."""
        if flow.phase == "before" and not self._batches:
            flow.running = False
            return
        began, known = flow.started, (self._batches, self._first, self._fused)
        self._batches = [*self._batches]
        try:
            before = self._inputs_before(flow)
        except BaseException:
            self._batches, self._first, self._fused = known
            raise
        self._owing = lambda: self._rebuild(before) if began else None
        flow.free()
        self._flow = None
        self._batches = []
        if began:
            self._rebuild(before)

    def _inputs_before(self, flow: Dataflow) -> dict[str, Updates]:
        """The rows of all inputs before a commit that failed; takes note of what its batches changed."""
        if self._fused is not None:
            self._batches.append(self._take_changes(flow))
            unkept, self._first, self._fused = self._fused.is_begun, self._fused.struct[L.stretch.first], None
        else:
            unkept = True
        if flow.phase == "after" and unkept:
            self._batches.append(self._take_changes(flow))
        inputs = [name for name in self.whole.relations if flow.input(name) is not None]
        return {name: self._old_rows(flow, name) for name in inputs}

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

    def _old_rows(self, flow: Dataflow, name: str) -> Updates:
        """The external rows as they were before the commit, to be inserted: those before its last batch, less what earlier
        batches changed."""
        given = self._input(flow, name)
        rows = given.present(before=flow.phase == "during")
        columns, count = given.raw_columns(rows), len(rows)
        for batch in reversed(self._batches):
            if given.name in batch:
                undone = batch[given.name]
                backwards = tuple(column[::-1] for column in undone.columns)
                columns, count = apply_changes(columns, count, backwards, -undone.diffs[::-1])
        return insertions(columns, count, 1)

    # ------------------------------------------------------------------------------------------------------------ reading

    def changes(self, relation: str) -> Updates:
        access = self._access
        access.waiting += 1
        try:
            with access.lock:  # `_reader_access`, without a generator, which takes as long as a small round
                return self._changes(self._settled(), relation)
        finally:
            access.waiting -= 1

    def _changes(self, flow: Dataflow | None, relation: str) -> Updates:
        if flow is None:
            return no_updates(self.program.relations[relation].arity)
        collection = flow.collections[relation]
        if self._news is not None and relation in self._news:
            columns, rows = collection.read()
            return insertions(tuple(c.astype(np.int64, copy=False) for c in columns), rows, self.round)
        if flow.running or self._forgotten or self._lending or collection.status is not flow.status:
            message = f"the changes of round {self.round} are no longer kept: the next commit is running"
            raise DlogError(Diagnostic("changes-gone", message, notes=("subscribe to a relation to see every round",)))
        if self._before is not None:
            return self._before.changes(relation, self.round)
        last = batch_changes(collection, self._fused, self._first)
        return joined([*(b[relation] for b in self._batches if relation in b), last]) if self._batches else last

    @property
    def touched(self) -> Iterable[str]:
        with self._reader_access() as flow:
            if flow is None:
                return ()
            if flow.running or self._forgotten or self._lending:
                return self.program.relations
            last = flow.touched() if self._fused is None else flow.touched_by_fused_batches()
            found = {name for batch in self._batches for name in batch}.union(last, self._news or ())
            found.update(() if self._before is None else self._before.relations)
        return sorted(found.intersection(self._places), key=self._places.__getitem__)

    def table(self, relation: str) -> Table:
        return self._read(lambda flow: flow.collections[relation], relation)

    def external(self, relation: str) -> Table:
        return self._read(lambda flow: flow.input(relation), relation)

    def _read(self, find: Callable[[Dataflow], Collection | None], relation: str) -> Table:
        with self._reader_access() as flow:
            found = None if flow is None else find(flow)
            table = None if found is None else table_of(found)
        if table is not None:
            return table
        kinds = self.program.relations[relation].kinds
        return Table(kinds, tuple(np.empty(0, np.int64) for _ in kinds), 0)

    def rows(self, relation: str) -> int:
        with self._reader_access() as flow:
            return 0 if flow is None else rows_of(flow.collections[relation])

    def ranks(self, relation: str) -> np.ndarray:
        with self._reader_access() as flow:
            return np.empty(0, np.int32) if flow is None else ranks_of(flow.collections[relation])

    @contextmanager
    def _reader_access(self) -> Iterator[Dataflow | None]:
        """A moment at which no native work is under way."""
        self._access.waiting += 1
        try:
            with self._access.lock:
                yield self._settled()
        finally:
            self._access.waiting -= 1

    def _settled(self) -> Dataflow | None:
        """The dataflow at a round that is over, for who has the lock."""
        if self._owing is not None:
            self._go_back(self._owing)
        return self._flow

    def explain(self) -> str:
        flow = self._flow or self._build({})
        text = "\n".join(map(self._explained, flow.scopes.values()))
        if self._flow is None:
            flow.free()
        kept = [name for stratum in self.program.strata for name in stratum.relations if name in self._taken]
        return f"kept as it was when the rules changed: {', '.join(kept)}\n\n{text}" if kept else text

    def _explained(self, scope: Scope) -> str:
        """A plan, and when and why it took the place of another one."""
        heading, rest = explain(scope, self.whole).split("\n", 1)
        return "\n".join([heading, *(f"  {told}" for told in self._watched.noted.get(scope.relations, ())), rest])

    def close(self) -> None:
        with self._access.lock:
            self._access.changes += 1
            flow, self._flow = self._flow, None
            if flow is not None:
                flow.free()
