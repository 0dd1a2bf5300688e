"""The workers of an engine: what they do of a bulk batch side by side, besides its strata (strata_run.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from threading import Event

import numpy as np

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Error, Status
from dlog.engine.kernels.incremental.inputs import loading
from dlog.engine.kernels.incremental.loop import batches
from dlog.engine.kernels.incremental.sharing import desks, loads
from dlog.engine.kernels.incremental.store import index_entering
from dlog.engine.runtime.incremental.batches.sharing import UNLIMITED, Failed, Share
from dlog.engine.runtime.incremental.batches.strata import StratumTasks, strata_of
from dlog.engine.runtime.incremental.batches.worker import BatchWorker, touched_by
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.values.addresses import address_of

SHARED_ROWS = 20_000
"""Fewest rows that a batch goes through for which other threads are woken."""
PAGE_SECONDS = 0.0003
"""Between two looks for pages that are to be made: about as long as the system takes for one."""


class StrataRunner:
    """The workers of an engine, beside the one that runs all else."""

    def __init__(self, memory: Memory, budget: int) -> None:
        self.workers = [BatchWorker(memory, number, budget, memory.threads) for number in range(memory.threads)]
        self.least = SHARED_ROWS
        self._memory = memory
        self._pool: ThreadPoolExecutor | None = None
        self._scheduled: object = None
        self._strata: list[StratumTasks] = []

    def close(self) -> None:
        if self._pool is None:
            return
        for worker in self.workers:
            worker.share.desk[L.desk.closed] = 1
        self._pool.shutdown()
        for worker in self.workers:
            worker.share.desk[L.desk.closed] = 0
        self._pool = None

    @property
    def pool(self) -> ThreadPoolExecutor:
        if self._pool is None:
            # Besides those that run tasks each worker may have one that looks for parts, or makes pages.
            self._pool = ThreadPoolExecutor(2 * len(self.workers), thread_name_prefix="dlog-rounds")
        return self._pool

    def strata(self, flow: Dataflow) -> list[StratumTasks]:
        """The strata of the flow's batches."""
        if self._scheduled is not flow.scheduled:
            self._scheduled, self._strata = flow.scheduled, strata_of(flow)
        return self._strata

    def prepare(self, flow: Dataflow) -> None:
        """Gets ready for steps of a batch that is another one's."""
        for worker in self.workers:
            worker.prepare(flow)

    def forget(self) -> None:
        """Gives back what such steps needed."""
        for worker in self.workers:
            worker.share.end()

    def begin(self, flow: Dataflow, control: Struct) -> None:
        """Gets ready for a batch of the flow, with the limits of `control`."""
        for worker in self.workers:
            worker.begin(flow, control)

    def each(self, tasks: Sequence[Callable[[Struct], bool]]) -> None:
        """Runs independent tasks, each with the control block of whichever worker is free; the first worker's on this thread.
        Raises Failed where one returns false."""
        left = iter(tasks)

        def run(worker: BatchWorker) -> bool:
            return all(task(worker.control) for task in left)

        if not tasks:
            return
        first, *others = self.workers[: len(tasks)]
        futures = [self.pool.submit(run, worker) for worker in others]
        try:
            with self._pages_made(self.workers[len(tasks) :]):
                done = [run(first)]
        finally:
            wait(futures)
        done += [future.result() for future in futures]
        for worker, well in zip((first, *others), done, strict=True):
            if not well:
                raise Failed(worker.control)

    @contextmanager
    def _pages_made(self, idle: Sequence[BatchWorker]) -> Iterator[None]:
        """Has one of the workers that have nothing to do make pages for those that have."""
        if not idle:
            yield
            return
        ended = Event()
        helping = self.pool.submit(_make_pages, idle[0].control, ended)
        try:
            yield
        finally:
            ended.set()
            wait([helping])

    @contextmanager
    def _without_limit(self) -> Iterator[None]:
        """Lifts the limit of memory. Where there is no way back from half of it, it is asked when all is done."""
        limits = [worker.control[L.control.limit] for worker in self.workers]
        for worker in self.workers:
            worker.control[L.control.limit] = UNLIMITED
        try:
            yield
        finally:
            for worker, limit in zip(self.workers, limits, strict=True):
                worker.control[L.control.limit] = limit

    def _ask_limit(self) -> None:
        """Raises Failed where more memory is used than may be."""
        control = self.workers[0].control
        if self._memory.used > control[L.control.limit]:
            control[L.control.error] = Error.MEMORY
            raise Failed(control)

    def enter(self, collections: Sequence[int]) -> None:
        """Has indexes of inputs, at addresses, take their new rows. Raises Failed."""
        if not collections:
            return
        tasks, divided = [], []
        for address in collections:
            if count := index_entering.entering_parts(address):
                tasks += [partial(_enter_index, address, number) for number in range(count)]
                divided.append(address)
            else:
                tasks.append(partial(_enter_indexes, address))
        with self._without_limit():
            self.each(tasks)
        for address in divided:
            index_entering.end_entering(address)
        self._ask_limit()

    def load(self, collection: int, columns: int, count: int) -> None:
        """Loads an input, which is fresh, from columns of words; both at an address. Raises Failed."""
        self._bring_in(lambda control: int(loads.begin_load(control.address, collection, columns, count)))

    def change(self, collection: int, columns: int, first: int, count: int) -> None:
        """Changes an input from columns of words, with those of diffs and rounds, the batch's first one being `first`; both at
        an address. Raises Failed."""
        self._bring_in(lambda control: int(loads.begin_changes(control.address, collection, columns, first, count)))

    def bring(self, collection: int, columns: int, first: int, count: int) -> None:
        """Changes the rows of an input, at an address, which have numbers, but for its indexes; otherwise as `change`. Raises
        Failed."""
        control = self.workers[0].control
        found = 0
        seeking = loading.begin_seeking(control.address, collection, columns, count)
        if seeking < 0:
            raise Failed(control)
        if seeking:
            places = np.empty(count, np.int64)
            found, parts = address_of(places), len(self.workers)
            bounds = [count * part // parts for part in range(parts + 1)]
            self.each([partial(_seek_rows, collection, columns, *bound, found) for bound in pairwise(bounds)])
        self.each([partial(_bring_rows, collection, columns, first, count, found)])

    def _bring_in(self, begin: Callable[[Struct], int]) -> None:
        """Does the steps of what `begin` begins. Raises Failed."""
        control = self.workers[0].control
        try:
            with self._without_limit():
                status = begin(control)
                while status == Status.BULK:
                    self.share(self.workers[0].share, self.workers)
                    status = loads.continue_load(control.address)
        finally:
            for worker in self.workers:
                worker.share.end()
        if status == Status.FAILED:
            raise Failed(control)
        self._ask_limit()

    def share(self, share: Share, workers: Sequence[BatchWorker]) -> None:
        """Has workers, none of which runs, do a step together and those that follow it, the same ones: what each has found is
        in lists of its own, which another stratum would use, and they have divided it among as many. Raises Failed."""
        share.run(lambda: self.pool, [worker.share for worker in workers])

    def settle(self, flow: Dataflow) -> None:
        """Ends a batch of which all tasks have run. Raises Failed."""
        # As `rounds.settle_batch`, whose loop this is: there is no way back from half of it.
        flow.work[L.work.over] = 1
        parts = {address: batches.removal_parts(address) for address in touched_by(flow.work)}
        tasks = [(address, part) for address, count in parts.items() for part in range(max(count, 1))]
        tasks.sort(key=lambda task: batches.settling_work(task[0]), reverse=True)  # what takes long is not to begin last
        with self._without_limit():
            self.each([partial(_remove_part if parts[address] else _settle_whole, address, part) for address, part in tasks])
            self.each([partial(_settle_rest, address) for address, count in parts.items() if count])
        flow.work[L.work.first] = 0


def _make_pages(control: Struct, ended: Event) -> None:
    """Has pages made, for a worker's account, until somebody says that it is enough."""
    desks.count_idle(control.address, 1)
    try:
        while not ended.wait(PAGE_SECONDS):
            desks.make_pages(control.address)
    finally:
        desks.count_idle(control.address, -1)


def _seek_rows(collection: int, columns: int, first: int, last: int, found: int, control: Struct) -> bool:
    return bool(loading.seek_rows(control.address, collection, columns, first, last, found))


def _bring_rows(collection: int, columns: int, first: int, count: int, found: int, control: Struct) -> bool:
    return bool(loading.bring_rows(control.address, collection, columns, first, count, found))


def _enter_index(collection: int, number: int, control: Struct) -> bool:
    return bool(index_entering.enter_index(control.address, collection, number))


def _enter_indexes(collection: int, control: Struct) -> bool:
    return bool(loading.enter_changed(control.address, collection))


def _remove_part(collection: int, part: int, control: Struct) -> bool:
    return bool(batches.remove_part(control.address, collection, part))


def _settle_rest(collection: int, control: Struct) -> bool:
    return bool(batches.settle_rest(control.address, collection))


def _settle_whole(collection: int, _part: int, control: Struct) -> bool:
    return bool(batches.settle(control.address, collection))
