"""Runs the strata of a bulk batch side by side.

A stratum that does not read what another one derives writes nothing that the other one reads: its collections, reductions and
scope are its own, and what both read is complete. So each runs as soon as what it reads is there, on whichever worker is free.
What workers note comes together in the order of the strata: nothing depends on which one was faster. Recursive strata that go
through the same changes take turns: how far they are is noted with the changes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from heapq import heappop, heappush

import numpy as np

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Status
from dlog.engine.runtime.incremental.batches.sharing import Failed
from dlog.engine.runtime.incremental.batches.strata import StratumTasks, marked
from dlog.engine.runtime.incremental.batches.strata_runner import StrataRunner
from dlog.engine.runtime.incremental.batches.worker import BatchWorker, set_marks, touched_by
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.storage.native import view

WAKE_SECONDS = 0.05
"""Seconds after which signals and readers get their turn, at the latest."""


class StrataRun:
    """The strata of one batch, which has begun. `alone` runs a stratum's tasks from the first to the last with nothing beside
    it; `pause` is asked, meanwhile, whether all are to stop for a moment, and `rest` is that moment."""

    def __init__(
        self,
        runner: StrataRunner,
        flow: Dataflow,
        alone: Callable[[StratumTasks], None],
        pause: Callable[[], bool],
        rest: Callable[[], None],
    ) -> None:
        self._runner = runner
        self._flow = flow
        self._alone, self._pause, self._rest = alone, pause, rest
        self._strata = runner.strata(flow)
        self._missing = [len(stratum.waits) for stratum in self._strata]
        self._followers: list[list[int]] = [[] for _ in self._strata]
        for place, stratum in enumerate(self._strata):
            for other in stratum.waits:
                self._followers[other].append(place)
        self._ready = [place for place, missing in enumerate(self._missing) if missing == 0]
        self._unfinished = len(self._strata)
        self._idle = list(runner.workers)
        self._running: dict[Future[int], tuple[BatchWorker, int]] = {}
        self._touched: dict[int, list[int]] = {}
        self._halted = False
        self.rows = 0
        """That paths have made."""

    def all(self) -> None:
        """Runs all strata. Raises Failed, and what `alone`, `pause` and `rest` raise."""
        before = touched_by(self._flow.work)
        try:
            while self._unfinished:
                self._start()
                if self._running:
                    self._attend()
        finally:
            self._halted = True
            wait(self._running)
            for worker in self._runner.workers:
                worker.end()
            for stratum in self._strata:
                for reduction in stratum.reductions:
                    reduction.struct.point(L.reduction.work, self._flow.work)
        self._gather(before)

    # ---------------------------------------------------------------------------------------------------------- schedule

    def _start(self) -> None:
        """Has strata run, those of the text's order first, as far as there are workers for them."""
        later = []
        while self._ready and self._idle:
            place = heappop(self._ready)
            stratum = self._strata[place]
            if stratum.alone and self._running:
                later.append(place)
                break
            if any(not stratum.entered.isdisjoint(self._strata[other].entered) for _, other in self._running.values()):
                later.append(place)
                continue
            self._begin(place, stratum)
        for place in later:
            heappush(self._ready, place)

    def _begin(self, place: int, stratum: StratumTasks) -> None:
        numbers = marked(stratum, bool(self._flow.work[L.work.first]))
        if not numbers:
            self._end(place, [])
        elif stratum.alone:
            work = self._flow.work
            count = work[L.work.touched_count]
            set_marks(work, numbers)
            self._alone(stratum)
            self._end(place, touched_by(self._flow.work)[count:])
        else:
            worker = self._idle.pop()
            worker.take(stratum, numbers)
            self._submit(worker, place)

    def _submit(self, worker: BatchWorker, place: int) -> None:
        if self._running or self._ready:
            self._running[self._runner.pool.submit(self._run, worker)] = worker, place
        else:
            self._run_here(worker, place)

    def _run_here(self, worker: BatchWorker, place: int) -> None:
        """Runs a stratum beside which no other one can run, on this thread: to wake another takes as long as some steps."""
        status = None
        while status != Status.DONE:
            if self._pause():
                self._rest()
            if status == Status.BULK:
                self._runner.share(worker.share, [worker, *self._idle])
            worker.share.allow(bool(self._idle))
            status = worker.run()
            if status not in (Status.DONE, Status.BULK, Status.YIELD):
                raise Failed(worker.control)
        self._idle.append(worker)
        self._end(place, worker.touched())

    def _run(self, worker: BatchWorker) -> int:
        while True:
            worker.share.allow(bool(self._idle))
            status = worker.run()
            if status != Status.YIELD or self._halted:
                return status

    def _end(self, place: int, touched: list[int]) -> None:
        """A stratum is complete: others may begin that waited for it."""
        self._touched[place] = touched
        self._unfinished -= 1
        for follower in self._followers[place]:
            self._missing[follower] -= 1
            if self._missing[follower] == 0:
                heappush(self._ready, follower)

    def _attend(self) -> None:
        """Waits for a stratum to end, or for what may stop all of them."""
        ended = wait(self._running, WAKE_SECONDS, FIRST_COMPLETED).done
        if self._pause():
            self._halted = True
            ended = wait(self._running).done
            self._rest()
            self._halted = False
        for future in ended:
            worker, place = self._running.pop(future)
            status = future.result()
            if status == Status.YIELD:
                self._submit(worker, place)
            elif status == Status.BULK:
                self._runner.share(worker.share, [worker, *self._idle])
                self._submit(worker, place)
            elif status == Status.DONE:
                self._idle.append(worker)
                self._end(place, worker.touched())
            else:
                raise Failed(worker.control)

    # ------------------------------------------------------------------------------------------------------------- notes

    def _gather(self, before: list[int]) -> None:
        """Notes in the flow's work what workers have noted in theirs; `before` are the collections touched by the inputs."""
        work = self._flow.work
        touched = before + [address for place in sorted(self._touched) for address in self._touched[place]]
        view(work[L.work.touched], len(touched), np.int64)[:] = touched
        work[L.work.touched_count] = len(touched)
        set_marks(work, ())
        work[L.work.at] = work[L.work.count]
        for worker in self._runner.workers:
            work[L.work.tick] = max(work[L.work.tick], worker.work[L.work.tick])
            for field in (L.work.ran, L.work.seeded, L.work.processed):
                work[field] += worker.work[field]
            self.rows += worker.rows
