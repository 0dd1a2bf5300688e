"""Steps of loads and of scopes that the workers of an engine do together: see `kernels/incremental/sharing`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Gathers, Shared, Status
from dlog.engine.kernels.incremental.reduce import tallies
from dlog.engine.kernels.incremental.sharing import desks, paths, running, taking
from dlog.engine.kernels.incremental.sharing.parts import MARK
from dlog.engine.kernels.incremental.store import lists
from dlog.engine.runtime.static.worker import new_tally
from dlog.engine.runtime.storage.collection_parts import new_list
from dlog.engine.runtime.storage.native import Struct, begin_line, words

UNLIMITED = 2**62
SHARED_STEP = 8192
"""Fewest rows of a step for which other threads are woken."""


class Failed(Exception):
    """A worker's kernels failed; `control` has their error."""

    def __init__(self, control: Struct) -> None:
        super().__init__("kernels failed")
        self.control = control


class Share:
    """What whoever runs a scope, with a control block, has for steps that `workers` do together."""

    def __init__(self, control: Struct, workers: int) -> None:
        self.control = control
        begin_line()
        self.struct = Struct(L.share.size)
        self.items, self.derived_rows, self.values = new_list(2), new_list(L.DERIVED_ROW_WORDS), new_list(1)
        self.left = new_list(1)
        begin_line()
        self.desk = Struct(L.desk.size)
        """Where parts of other workers' steps come that this one does."""
        self.desk[L.desk.put] = desks.GONE
        begin_line()
        self.struct.point(L.share.items, self.items)
        self.struct.point(L.share.derived_rows, self.derived_rows)
        self.struct.point(L.share.values, self.values)
        self.struct.point(L.share.left, self.left)
        self.struct.point(L.share.firsts, Struct(workers))
        self.struct.point(L.share.stocks, Struct(workers * L.STOCK))
        self.struct.point(L.share.rooms, Struct(workers))
        self.struct[L.share.workers] = workers
        self.struct[L.share.tally] = control[L.control.tally]
        self._tallies = [new_tally() for _ in range(workers)]
        self.struct.point(L.share.tallies, words(tally.address for tally in self._tallies))
        self._notes = [_new_notes(workers) for _ in range(workers)]
        self.struct.point(L.share.notes, words(notes.address for notes in self._notes))
        self.least = SHARED_STEP
        self.allow(True)
        control.point(L.control.share, self.struct)
        begin_line()

    def allow(self, others: bool) -> None:
        """Has steps be shared, or not while there are no other workers for them."""
        self.struct[L.share.least] = self.least if others else UNLIMITED

    def end_step(self) -> int:
        """Ends a step that workers have done, as far as they go on with another one. Returns a `Status`: BULK where they do."""
        address = self.control.address
        return int(paths.end_step(address) if self.struct[L.share.last] else taking.begin_taking(address))

    def begin(self) -> None:
        """Forgets a step that has not come to its end."""
        self.struct[L.share.kind] = Shared.NONE
        self.struct[L.share.gathers] = Gathers.NOTHING
        self.struct[L.share.lock] = self.struct[L.share.last] = self.struct[L.share.tried] = self.items[L.items.count] = 0

    def end(self) -> None:
        """Gives back what a batch needed, and forgets a path that has not come to its end."""
        self.struct[L.share.last] = 0
        for items in (self.items, self.derived_rows, self.values, self.left):
            lists.list_free(self.control.address, items.address)
        for notes in self._notes:
            for field in (L.notes.items, L.notes.bits, L.notes.left):
                lists.list_free(self.control.address, notes[field])
        tallies.forget_tallies(self.control.address)

    def run(self, pool: Executor, shares: Sequence[Share]) -> None:
        """Does the step at hand in as many parts as there are workers, with what these have for their own steps: the first one
        on this thread. Raises Failed."""
        controls = [share.control for share in shares]
        for control in controls:
            control[L.control.limit] = self.control[L.control.limit]
            control[L.control.iteration] = self.control[L.control.iteration]
        self.struct.point(L.share.parts, words(share.struct.address for share in shares))
        self.struct[L.share.part_count] = len(shares)
        done = self.do_parts(pool, shares)
        if self.struct[L.share.kind] == Shared.PATH:
            self._forget_later([share.struct[L.share.status] for share in shares], controls)
        for control, well in zip(controls, done, strict=True):
            if not well and control[L.control.error]:
                raise Failed(control)

    def do_parts(self, pool: Executor, shares: Sequence[Share]) -> list[bool]:
        """Does all parts; whether each was done without mistakes."""
        address, parts = self.struct.address, len(shares)
        others = shares[1:]
        for part, share in enumerate(others, 1):
            if not desks.put_part(share.desk.address, address, part, parts):
                pool.submit(share.serve)
        try:
            first = bool(running.run_part(address, shares[0].control.address, 0, parts))
        finally:
            for share in others:
                share.await_parts()
        return [first, *(bool(share.desk[L.desk.well]) for share in others)]

    def serve(self) -> None:
        """Does parts that come to this worker's desk; holds it as long as it looks."""
        desks.serve(self.desk.address, self.control.address)

    def await_parts(self) -> None:
        """Waits until the parts on this worker's desk are done: signals wait, too (`Delayed`), as parts write."""
        while not desks.is_done(self.desk.address):
            pass

    def _forget_later(self, statuses: Sequence[int], controls: Sequence[Struct]) -> None:
        """Forgets mistakes that come after a part that has given up: they may be another worker's."""
        if Status.YIELD in statuses:
            for control in controls[statuses.index(Status.YIELD) :]:
                control[L.control.error] = 0


def _new_notes(workers: int) -> Struct:
    begin_line()
    made = Struct(L.notes.size)
    made.point(L.notes.items, new_list(2))
    made.point(L.notes.bits, new_list(1))
    made.point(L.notes.left, new_list(1))
    made.point(L.notes.marks, Struct((workers + 1) * MARK))
    return made
