"""Steps of loads and of scopes that the workers of an engine do together: see `kernels/incremental/sharing`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Gathers, Shared, Status
from dlog.engine.kernels.incremental.reduce import tallies
from dlog.engine.kernels.incremental.sharing import desks, steps
from dlog.engine.kernels.incremental.sharing.parts import MARK
from dlog.engine.kernels.incremental.store import lists
from dlog.engine.runtime.static.worker import new_tally
from dlog.engine.runtime.storage.collection_parts import new_list
from dlog.engine.runtime.storage.native import Struct, begin_line, words

UNLIMITED = 2**62
SHARED_STEP = 8192
"""Fewest rows of a step for which other threads are woken."""
STEPS_AT_ONCE = 1 << 20
"""Steps that belong to each other between two turns of Python: all, but where something looks at each."""


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
        self.struct[L.share.control] = control.address
        self.struct.point(L.share.desk, self.desk)
        self.struct.point(L.share.items, self.items)
        self.struct.point(L.share.derived_rows, self.derived_rows)
        self.struct.point(L.share.values, self.values)
        self.struct.point(L.share.left, self.left)
        self.struct.point(L.share.firsts, Struct(workers))
        self.struct.point(L.share.stocks, Struct(workers * L.STOCK))
        self.struct.point(L.share.rooms, Struct(workers))
        self.struct[L.share.workers] = workers
        self.struct[L.share.tally] = control[L.control.tally]
        self._parts: list[int] = []
        """Who does parts of steps here, by address."""
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

    def begin(self) -> None:
        """Forgets a step that has not come to its end."""
        self.struct[L.share.kind] = Shared.NONE
        self.struct[L.share.gathers] = Gathers.NOTHING
        self.struct[L.share.lock] = self.struct[L.share.last] = self.struct[L.share.tried] = self.struct[L.share.put] = 0
        self.items[L.items.count] = 0

    def end(self) -> None:
        """Gives back what a batch needed, and forgets a path that has not come to its end."""
        self.struct[L.share.last] = 0
        for items in (self.items, self.derived_rows, self.values, self.left):
            lists.list_free(self.control.address, items.address)
        for notes in self._notes:
            for field in (L.notes.items, L.notes.bits, L.notes.left):
                lists.list_free(self.control.address, notes[field])
        tallies.forget_tallies(self.control.address)

    def run(self, pool: Callable[[], Executor], shares: Sequence[Share]) -> None:
        """Does the step at hand and those that follow it, each in as many parts as there are workers, with what these have for
        their own steps: the first one on this thread, the others on threads of the pool. Raises Failed."""
        self._meet(shares)
        while self.do_steps(pool, shares) == Status.BULK:
            pass

    def do_steps(self, pool: Callable[[], Executor], shares: Sequence[Share]) -> int:
        """Does `STEPS_AT_ONCE` of them, which signals wait for, too (`Delayed`). Returns a `Status`: BULK where others follow.
        Raises Failed."""
        while (status := int(steps.do_steps(self.control.address, STEPS_AT_ONCE))) == Status.WAKE:
            for share in shares[1:]:
                if share.desk[L.desk.unseen]:
                    pool().submit(share.serve)
        if status == Status.FAILED:
            raise Failed(next((share.control for share in shares if share.control[L.control.error]), self.control))
        return status

    def _meet(self, shares: Sequence[Share]) -> None:
        """Has these be the ones that do the parts of steps."""
        addresses = [share.struct.address for share in shares]
        if addresses != self._parts:
            self.struct.point(L.share.parts, words(addresses))
            self.struct[L.share.part_count] = len(addresses)
            self._parts = addresses

    def serve(self) -> None:
        """Does parts that come to this worker's desk; holds it as long as it looks."""
        desks.serve(self.desk.address, self.control.address)


def _new_notes(workers: int) -> Struct:
    begin_line()
    made = Struct(L.notes.size)
    made.point(L.notes.items, new_list(2))
    made.point(L.notes.bits, new_list(1))
    made.point(L.notes.left, new_list(1))
    made.point(L.notes.marks, Struct((workers + 1) * MARK))
    return made
