"""A worker of bulk batches: a control block, and its own record of the batch with marks, collections touched and clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Status
from dlog.engine.kernels.incremental.loop import rounds
from dlog.engine.kernels.incremental.store import lists
from dlog.engine.runtime.incremental.batches.sharing import Share
from dlog.engine.runtime.incremental.batches.strata import StratumTasks
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.collection_parts import new_list
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, view


class BatchWorker:
    """A worker, with its own record of a batch."""

    def __init__(self, memory: Memory, number: int, budget: int, workers: int) -> None:
        self.worker = Worker(memory, number)
        self.control = self.worker.control
        self.control[L.control.budget] = budget
        self.share = Share(self.control, workers)
        self.work = Struct(L.work.size)
        self.spare = new_list(L.change.size)
        self.work.point(L.work.spare, self.spare)
        self.work.point(L.work.counts, Struct(256))
        self._stratum: StratumTasks | None = None
        self._yielded = 0

    def begin(self, flow: Dataflow, control: Struct) -> None:
        """Gets ready for a batch of the flow, with the limits of `control`."""
        self.prepare(flow)
        self.control[L.control.limit] = control[L.control.limit]
        for field in (L.work.tasks, L.work.count, L.work.first, L.work.rounds, L.work.tick, L.work.limit):
            self.work[field] = flow.work[field]
        for field in (L.work.ran, L.work.seeded, L.work.processed):
            self.work[field] = 0
        self.work.point(L.work.marks, Struct((flow.work[L.work.count] + 63) // 64))
        self.work.point(L.work.touched, Struct(len(flow.collections)))
        self.control.point(L.control.batch, self.work)
        self.control[L.control.work] = self.control[L.control.running] = self._yielded = 0
        self.share.begin()

    def prepare(self, flow: Dataflow) -> None:
        """Gets ready for paths of the flow, and forgets a mistake that came beside another one's, which was told."""
        self.worker.prepare(flow.tables)
        self.control[L.control.error] = 0

    def take(self, stratum: StratumTasks, numbers: Sequence[int]) -> None:
        """Begins with a stratum, of which these tasks are to run."""
        self._stratum = stratum
        set_marks(self.work, numbers)
        self.work[L.work.at], self.work[L.work.has_begun] = stratum.first, 0
        self.work[L.work.touched_count] = self.control[L.control.running] = 0
        for reduction in stratum.reductions:
            reduction.struct.point(L.reduction.work, self.work)

    def touched(self) -> list[int]:
        """The collections, by address, that the stratum at hand has changed."""
        return touched_by(self.work)

    def end(self) -> None:
        """Gives back what the batch needed beside its collections."""
        lists.list_free(self.control.address, self.spare.address)
        self.share.end()

    @property
    def rows(self) -> int:
        """Rows that paths have made in this batch."""
        return self._yielded * self.control[L.control.budget] + self.control[L.control.work]

    def run(self) -> int:
        """Runs the stratum at hand to its end, or to where its budget of work is used up."""
        assert self._stratum is not None
        status = int(rounds.run_tasks(self.work.address, self.control.address, self._stratum.last))
        self._yielded += status == Status.YIELD
        return status


def set_marks(work: Struct, numbers: Iterable[int]) -> None:
    """Has these tasks run in the batch, and no others."""
    marks = view(work[L.work.marks], (work[L.work.count] + 63) // 64, np.uint64)
    marks[:] = 0
    for number in numbers:
        marks[number >> 6] |= np.uint64(1 << (number & 63))


def touched_by(work: Struct) -> list[int]:
    """The collections, by address, that have been touched in a batch."""
    found: list[int] = view(work[L.work.touched], work[L.work.touched_count], np.int64).tolist()
    return found
