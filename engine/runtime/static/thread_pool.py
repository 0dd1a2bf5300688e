"""Several workers on the same paths: they claim blocks of the seed from a shared cursor and keep what they add in shares of
their own.

Nothing that is read changes while they run, so they share no cache line that is written. Afterwards the shares are added to
their relations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

import numpy as np

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Constant, Kind, Variable
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import SetKind
from dlog.engine.runtime.lowering.lower import PathLowering, Storage
from dlog.engine.runtime.lowering.lowered import ExternalCall, LoweredPath, Tables
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.runtime.storage.relation import StoredRelation

BULK_ROWS = 8192
"""Fewest changes of an iteration, or rows of a seed, that are worth waking other threads for."""
WAKE_SECONDS = 0.1
HAND_OVER = 1_000_000
"""Cycles that it costs to have threads begin and end."""
COLLECT: Mapping[int, int] = {
    SetKind.NONE: 10,
    SetKind.BITS: 30,
    SetKind.PAGES: 60,
    SetKind.DENSE: 60,
    SetKind.HASH: 150,
    SetKind.GRADUAL: 150,
}
"""Cycles per row that a share adds to its relation, by what it is checked against there: work that is not shared."""


class Cancelled(Exception):
    """Another worker failed, or the run was interrupted."""


class ThreadPool:
    """The workers of one executor and the threads they run on; worker 0 is also the one that works alone."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self.workers = workers
        self._pool: ThreadPoolExecutor | None = None
        self._cancelled = False
        self._shares: dict[str, list[StoredRelation]] = {}

    @property
    def size(self) -> int:
        return len(self.workers)

    def prepare(self, tables: Tables) -> None:
        """Gets the workers ready for a list of paths; what shares of other relations there were goes."""
        for worker in self.workers:
            worker.prepare(tables)
        self.free_shares()

    def close(self) -> None:
        self.free_shares()
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None

    # ------------------------------------------------------------------------------------------------------------- tasks

    def each(self, tasks: Iterable[Callable[[], None]], pause: Callable[[], None]) -> None:
        """Runs independent tasks on the threads; `pause` is called while it waits and may raise, which stops them all."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.size, thread_name_prefix="dlog-worker")
        self._cancelled = False
        futures = [self._pool.submit(task) for task in tasks]
        try:
            while wait(futures, WAKE_SECONDS, "FIRST_EXCEPTION").not_done and not _failed(futures):
                pause()
        finally:
            self._cancelled = True
            wait(futures)
        for future in futures:
            error = future.exception()
            if error is not None and not isinstance(error, Cancelled):
                raise error

    def _check(self) -> None:
        if self._cancelled:
            raise Cancelled

    def run_path(self, path: LoweredPath, storage: Storage, pause: Callable[[], None]) -> None:
        """Runs a shareable path: alone at first, and on all workers if what is left then is worth it."""
        first, alone = _first_row(path, storage), self.workers[0]
        if alone.probe(path):
            return
        left = (seed_rows(path.path, storage) + first - alone.claimed) / max(alone.claimed - first, 1)
        if self.pays([path], storage, left):
            self.run_paths([path], storage, pause, begun=True)
        else:
            alone.resume(path, _no_externals, pause)

    def pays(self, paths: Iterable[LoweredPath], storage: Storage, times: float = 1.0) -> bool:
        """Whether workers together need less than one alone for so many times the work that these paths did up to now."""
        cycles = collected = 0
        for path in paths:
            cycles += path.struct[L.path.cycles]
            costs = [COLLECT[storage.relation(sink.relation).set_kind] for sink in path.path.sinks]
            collected += path.struct[L.path.added] * max(costs)
        return times * (cycles * (1 - 1 / self.size) - collected) > HAND_OVER

    def run_paths(
        self, paths: Sequence[LoweredPath], storage: Storage, pause: Callable[[], None], begun: bool = False
    ) -> None:
        """Runs shareable paths to their end on all workers and adds their shares. The first worker may have begun with it."""
        before = [path.struct[L.path.added] for path in paths]
        targets = {sink.relation: storage.relation(sink.relation) for path in paths for sink in path.path.sinks}
        rows = {name: relation.rows for name, relation in targets.items()}
        for relation in targets.values():
            self._share(relation)
        cursors = [Struct(1) for _ in paths]
        for path, cursor in zip(paths, cursors, strict=True):
            cursor[0] = self.workers[0].claimed if begun else _first_row(path, storage)

        def work(worker: Worker) -> None:
            for path, cursor in zip(paths, cursors, strict=True):
                worker.share(cursor)
                run = worker.resume if begun and worker is self.workers[0] else worker.run_path
                run(path, _no_externals, self._check)

        try:
            self.each([partial(work, w) for w in self.workers], pause)
        finally:
            for worker in self.workers:
                worker.share(None)
        self.each([partial(self._collect, r, storage) for r in targets.values()], pause)
        for name, relation in targets.items():
            counted = [pair for pair in zip(paths, before, strict=True) if pair[0].path.sink.relation == name]
            _count_once(counted, relation.rows - rows[name])

    def _share(self, relation: StoredRelation) -> None:
        """Gives every worker a share of the relation; bitmaps of shares stay for the next iteration."""
        if relation.name not in self._shares:
            self._shares[relation.name] = [relation.share(f"{relation.name}#{w.number}") for w in self.workers]
        relation.struct.point(L.relation.shares, words(s.address for s in self._shares[relation.name]))

    def free_shares(self) -> None:
        for shares in self._shares.values():
            for share in shares:
                share.free()
        self._shares.clear()

    def _collect(self, relation: StoredRelation, storage: Storage) -> None:
        """Moves the shares' rows to the relation."""
        simple = relation.set_kind in (SetKind.NONE, SetKind.BITS, SetKind.PAGES)
        for share in self._shares[relation.name]:
            if simple:
                relation.collect(share)
            elif share.rows:
                self._insert(relation, share, storage)
        if not simple:
            for share in self._shares.pop(relation.name):
                share.free()

    def _insert(self, relation: StoredRelation, share: StoredRelation, storage: Storage) -> None:
        """Adds a share through the relation's hash set, or merges it by key, with a worker of its own."""
        variables = range(relation.arity)
        seed = nodes.Scan(share.name, tuple((c, c) for c in variables))
        sink = nodes.Insert(relation.name, tuple(Variable(c) for c in variables))
        path = nodes.Path(-1, seed, (), sink, relation.arity)
        tables = Tables()
        lowered = PathLowering(path, _Sharing(storage, share), tables).lower()
        worker = Worker(relation.memory)
        worker.prepare(tables)
        worker.run_path(lowered, _no_externals, self._check)


class _Sharing:
    """A storage that knows a share by name too."""

    def __init__(self, storage: Storage, share: StoredRelation) -> None:
        self._storage = storage
        self._share = share

    def relation(self, name: str) -> StoredRelation:
        return self._share if name == self._share.name else self._storage.relation(name)

    def set_of(self, name: str) -> StoredRelation:
        return self._storage.set_of(name)

    def arrangement(self, wanted: nodes.Arrangement) -> StoredArrangement:
        return self._storage.arrangement(wanted)

    def records(self, arity: int) -> StoredRelation:
        return self._storage.records(arity)

    def field_kinds(self, record_type: str) -> tuple[Kind, ...]:
        return self._storage.field_kinds(record_type)

    def encode(self, constant: Constant) -> int:
        return self._storage.encode(constant)


def _count_once(counted: Sequence[tuple[LoweredPath, int]], came: int) -> None:
    """Makes the paths' counters of added rows, which were some numbers before, tell how many `came` to the relation: a row that
    several workers have in their shares is one."""
    twice = sum(path.struct[L.path.added] - before for path, before in counted) - came
    for path, before in counted:
        less = min(twice, path.struct[L.path.added] - before)
        path.struct[L.path.added] -= less
        twice -= less


def seed_rows(path: nodes.Path, storage: Storage) -> int:
    """How many rows the path's seed has now."""
    if isinstance(path.seed, nodes.Unit):
        return 1
    relation = storage.relation(path.seed.relation)
    if not path.seed.changes:
        return relation.rows
    return relation.struct[L.relation.hi] - relation.struct[L.relation.lo]


def _first_row(path: LoweredPath, storage: Storage) -> int:
    seed = path.path.seed
    if isinstance(seed, nodes.Scan) and seed.changes:
        return storage.relation(seed.relation).struct[L.relation.lo]
    return 0


def _failed(futures: Sequence[Future[None]]) -> bool:
    return any(f.done() and f.exception() is not None for f in futures)


def _no_externals(call: ExternalCall, args: Sequence[np.ndarray], rows: int) -> np.ndarray:
    raise AssertionError(f"{call.op} in a shared path")

