"""Runs batches of a dataflow in compiled code: brings changes of inputs in, calls what only Python can evaluate, and gives
signals and readers in other threads their turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from dlog.engine.interruption import check
from dlog.engine.ir.rules import Program
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Status
from dlog.engine.kernels.incremental.inputs import loading
from dlog.engine.kernels.incremental.loop import activation, fused_batches, rounds
from dlog.engine.kernels.incremental.reduce import tallies
from dlog.engine.kernels.static import pages
from dlog.engine.runtime.incremental.access import ReadersWriterLock
from dlog.engine.runtime.incremental.batches.changes import all_columns, as_columns, staged
from dlog.engine.runtime.incremental.batches.fused import FusedBatches
from dlog.engine.runtime.incremental.batches.last_commit import LastCommit
from dlog.engine.runtime.incremental.batches.sharing import Failed, Share
from dlog.engine.runtime.incremental.batches.strata import StratumTasks
from dlog.engine.runtime.incremental.batches.strata_run import StrataRun
from dlog.engine.runtime.incremental.batches.strata_runner import StrataRunner
from dlog.engine.runtime.incremental.batches.unpacking import unpack
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.incremental.mistakes import at_rule, mistake
from dlog.engine.runtime.lowering.external import evaluate
from dlog.engine.runtime.lowering.lowered import ExternalCall
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError, InternalError

MAX_ROWS_PER_CALL = 1 << 20
"""Rows that paths may make before signals and readers in other threads get their turn: trades their latency against calls."""
MAX_ROWS_ALONE = 1 << 17
"""Rows a worker of several makes before those that have nothing to do may join it: some milliseconds."""
BULK_ROWS = 4096
"""Rows from which an empty input is loaded by columns."""
_DONE = int(Status.DONE)
"""Looked up once: before Python 3.12 a member of an enum takes 60 ns, which is a part of a small round."""


class BatchRunner:
    """Runs batches for the engine that maintains `program`. Readers get a turn while `commit`, the one under way, shows them
    a round that is over."""

    def __init__(
        self,
        program: Program,
        catalog: Catalog,
        access: ReadersWriterLock,
        commit: LastCommit,
        max_iterations: int | None,
    ) -> None:
        self.program = program
        self.catalog = catalog
        self.access = access
        self.commit = commit
        self.max_iterations = max_iterations
        self.worker = Worker(catalog.memory)
        self.control = self.worker.control
        self.control[L.control.budget] = MAX_ROWS_PER_CALL
        self._interrupted_work = 0
        self.few = BULK_ROWS
        """Changes of one input below which they are brought in and gone through in one call."""
        threads = catalog.memory.threads
        self.shared = StrataRunner(catalog.memory, MAX_ROWS_ALONE) if threads > 1 else None
        self.share = Share(self.control, threads) if threads > 1 else None
        self._has_shared = False

    def close(self) -> None:
        """Ends the threads."""
        self.forget()
        if self.shared is not None:
            self.shared.close()

    def take_work(self) -> int:
        """The rows that paths made since this was asked."""
        work, self._interrupted_work = self._interrupted_work + self.control[L.control.work], 0
        self.control[L.control.work] = 0
        return work

    # ------------------------------------------------------------------------------------------------------------- batches

    def begin(self, flow: Dataflow, given: Mapping[str, Updates], first: int, count: int) -> None:
        """Brings in the changes of a batch of so many rounds."""
        self._reset(flow)
        rounds.begin_batch(flow.work.address, self.control.address, count)
        for name, updates in given.items():
            target = input_of(flow, name)
            activation.touch(self.control.address, target.address)
            if not self._bring_in(target, updates, first, True, self.control):
                raise self.mistake(flow)

    def run(self, flow: Dataflow, given: Mapping[str, Updates], first: int, count: int) -> None:
        """One batch. Raises what a rule's evaluation raises."""
        if len(given) == 1:
            ((name, updates),) = given.items()
            if updates.rows < self.few:
                return self._run_few(flow, input_of(flow, name), updates, first, count)
        changes = sum([updates.rows for updates in given.values()])
        if self.shared is not None and changes >= self.shared.least:
            return self._run_shared(flow, given, first, count, self.shared)
        if changes >= self.few:
            self.begin(flow, given, first, count)
            return self.run_begun(flow)
        try:
            pages.begin_small(self.control.address)
            self.begin(flow, given, first, count)
            status = self._resume(flow)
        finally:
            pages.end_small(self.control.address, changes)
        return self._finish(flow, status, lambda: self._resume(flow))

    def _run_shared(self, flow: Dataflow, given: Mapping[str, Updates], first: int, count: int, shared: StrataRunner) -> None:
        """A bulk batch: inputs, then strata, then what is to be settled, side by side."""
        self._reset(flow)
        rounds.begin_batch(flow.work.address, self.control.address, count)
        shared.begin(flow, self.control)
        targets = [(input_of(flow, name), updates) for name, updates in given.items()]
        for target, _ in targets:
            activation.touch(self.control.address, target.address)
        try:
            self._bring_all(targets, first, shared)
            run = StrataRun(shared, flow, partial(self._run_alone, flow), self._is_waited_for, self.access.yield_turn)
            run.all()
            self._interrupted_work += run.rows
            shared.settle(flow)
        except Failed as failure:
            raise self.mistake(flow, failure.control) from None

    def _run_alone(self, flow: Dataflow, stratum: StratumTasks) -> None:
        """Runs the tasks of a stratum that are marked."""

        def resume() -> int:
            return int(rounds.run_tasks(flow.work.address, self.control.address, stratum.last))

        flow.work[L.work.at], flow.work[L.work.has_begun] = stratum.first, 0
        self._finish(flow, resume(), resume)

    def _is_waited_for(self) -> bool:
        """Whether readers wait who may have a turn; raises what signals do."""
        check()
        return bool(self.access.waiting) and self.commit.shows_settled

    def _run_few(self, flow: Dataflow, target: Collection, updates: Updates, first: int, count: int) -> None:
        """A batch of few changes of one input: in one call, if nothing comes between."""
        self._reset(flow)
        _held, rows, columns = staged(updates, first)
        addresses = flow.work.address, self.control.address, target.address
        status = rounds.commit_one(*addresses, rows, columns, first, updates.rows, count)
        if status != _DONE:
            self._finish(flow, status, lambda: self._resume(flow))

    def run_fused(self, flow: Dataflow, fused: FusedBatches) -> None:
        """Many batches of one input."""

        def resume() -> int:
            return int(fused_batches.run_fused(fused.address, flow.work.address, self.control.address))

        self._reset(flow)
        flow.keep_changes()
        self._finish(flow, resume(), resume)

    def run_new(self, flow: Dataflow) -> None:
        """A batch without changes of inputs, in which a dataflow derives what it could not take over."""
        if self.shared is not None and flow.changes_to_read() >= self.shared.least:
            return self._run_shared(flow, {}, 0, 1, self.shared)
        self.begin(flow, {}, 0, 1)
        return self.run_begun(flow)

    def run_begun(self, flow: Dataflow) -> None:
        self._finish(flow, self._resume(flow), lambda: self._resume(flow))

    def _resume(self, flow: Dataflow) -> int:
        return int(rounds.run_batch(flow.work.address, self.control.address))

    def _reset(self, flow: Dataflow) -> None:
        self.control[L.control.running] = self.control[L.control.work] = flow.work[L.work.has_begun] = 0

    def forget(self) -> None:
        """Gives back what a path has summed up, and what steps needed that workers did together."""
        self._has_shared = False
        tallies.forget_tallies(self.control.address)
        if self.share is not None:
            self.share.begin()
            self.share.end()
        if self.shared is not None:
            self.shared.forget()

    def _do_together(self, flow: Dataflow) -> None:
        assert self.share is not None and self.shared is not None
        if not self._has_shared:
            self._has_shared = True
            self.shared.prepare(flow)
        try:
            self.shared.share(self.share, self.shared.workers)
        except Failed as failure:
            raise self.mistake(flow, failure.control) from None

    def _finish(self, flow: Dataflow, status: int, resume: Callable[[], int]) -> None:
        """Runs compiled code on until it is done."""
        try:
            while status != _DONE:
                self.answer(flow, status)
                self._interrupted_work += MAX_ROWS_PER_CALL if status == Status.YIELD else 0
                if self.access.waiting and self.commit.shows_settled:
                    # What readers see then is the state before this batch, hence before the commit.
                    self.access.yield_turn()
                check()
                status = resume()
        finally:
            if self._has_shared or status != _DONE:
                self.forget()

    def answer(self, flow: Dataflow, status: int) -> None:
        """Does what compiled code stopped for: raises its mistake, or has Python evaluate a call."""
        if status == Status.FAILED:
            raise self.mistake(flow)
        if status == Status.BULK:
            self._do_together(flow)
        if status == Status.EXTERNAL:
            try:
                self.worker.call(self._evaluate)
            except DlogError as error:
                raise at_rule(self.control, flow, self.program, error) from None

    def _evaluate(self, call: ExternalCall, args: Sequence[np.ndarray], rows: int) -> np.ndarray:
        return evaluate(call, args, rows, self.catalog)

    def mistake(self, flow: Dataflow, control: Struct | None = None) -> Exception:
        """The error that compiled code has left in a worker's control block."""
        return mistake(control or self.control, self.catalog.memory, flow, self.program, self.max_iterations)

    # -------------------------------------------------------------------------------------------------------------- inputs

    def _bring_in(self, target: Collection, updates: Updates, first: int, whole: bool, worker: Struct) -> bool:
        """Brings an input's changes in, with the control block of a worker; false with its error set. `whole`: into indexes,
        too, where it is not a load."""
        control = worker.address
        if can_be_loaded(target, updates, first):
            _held, listed = as_columns(updates.columns)
            return bool(loading.bring_in(control, target.address, 0, listed, updates.rows))
        _held, listed = all_columns(updates)
        if whole:
            return bool(loading.bring_changes(control, target.address, listed, first, updates.rows))
        return bool(loading.bring_rows(control, target.address, listed, first, updates.rows, 0))

    def _bring_all(self, targets: Sequence[tuple[Collection, Updates]], first: int, shared: StrataRunner) -> None:
        """Brings the changes of inputs in: of few, and where rows have numbers, each on a worker of its own, others together.
        Raises Failed."""
        apart = []
        for target, updates in targets:
            if updates.rows >= shared.least and can_be_loaded(target, updates, first):
                _held, listed = as_columns(updates.columns)
                shared.load(target.address, listed, updates.rows)
            elif updates.rows >= shared.least and target.struct[L.collection.pairs]:
                _held, listed = all_columns(updates)
                shared.change(target.address, listed, first, updates.rows)
            else:
                apart.append((target, updates))
        if len(apart) == 1 and apart[0][1].rows >= shared.least:
            ((target, updates),) = apart
            _held, listed = all_columns(updates)
            shared.bring(target.address, listed, first, updates.rows)
        else:
            shared.each([partial(self._bring_in, target, updates, first, False) for target, updates in apart])
        shared.enter([target.address for target, _ in apart])

    def hold_rows(self, flow: Dataflow, target: Collection) -> None:
        """Makes ordinary rows of an input's pairs, between batches. Raises DlogError where memory does not suffice."""
        shared, struct = self.shared, target.struct
        if shared is None or not struct[L.collection.pairs] or struct[L.collection.live] < shared.least:
            return target.hold_rows()
        try:
            unpack(shared, target)
        except Failed as failure:
            raise self.mistake(flow, failure.control) from None


def can_be_loaded(target: Collection, updates: Updates, first: int) -> bool:
    """Whether changes are rows to begin with, many of them."""
    bulk = updates.rows >= BULK_ROWS and target.struct[L.collection.fresh] and updates.last == first
    return bool(bulk and updates.only_come)


def input_of(flow: Dataflow, name: str) -> Collection:
    """The collection of a relation that takes rows from outside."""
    found = flow.input(name)
    if found is None:
        raise InternalError("rounds", f"{name} takes no rows from outside")
    return found
