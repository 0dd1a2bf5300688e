"""A worker: the control block, registers and marks with which one thread runs lowered paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dlog.engine.kernels import layout as L
from dlog.engine.kernels import machine
from dlog.engine.kernels.codes import Error, Status
from dlog.engine.kernels.instructions import External
from dlog.engine.runtime.lowering.lowered import ExternalCall, LoweredPath, Tables
from dlog.engine.runtime.storage.collection_parts import new_list
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, begin_line
from dlog.engine.values.table import typed

MAX_ROWS_PER_CALL = 1 << 24
"""Rows a run may make before it returns to let signals and progress through: some tens of milliseconds."""

PROBE = 1 << 15
"""Rows of a run that only measures what a path costs."""

VALUES: Mapping[int, tuple[str, str]] = {
    Error.DIVISION: ("division-by-zero", "division by zero"),
    Error.WEIGHT: ("negative-weight", "a negative value in a `sum` that is compared within recursion"),
    Error.SUM: ("too-large", "a `sum` that is compared within recursion is greater than 2305843009213693952"),
}
"""What values of a program do to a run: the code and the message."""

CYCLE = -2
"""The machine's phase in which its task is a cycle."""

ENDS: Mapping[int, Status] = {status: status for status in (Status.DONE, Status.BULK, Status.CALL)}
"""What a run ends with, by what the kernel returns. Looked up once: before Python 3.12 a member of an enum takes 60 ns, and to
make one of a number takes 300."""

Evaluate = Callable[[ExternalCall, Sequence[np.ndarray], int], np.ndarray]


class RunFailed(Exception):
    """A kernel stopped with an error; `code` is an `Error`, `path` the address of the path."""

    def __init__(self, code: int, path: int) -> None:
        super().__init__(f"kernel error {code}")
        self.code = code
        self.path = path


def new_tally() -> Struct:
    """A table of sums that has none (kernels/incremental/reduce/tallies.py)."""
    made = Struct(L.tally.size)
    made.point(L.tally.others, new_list(L.OTHER_WORDS))
    return made


class Worker:
    """Runs paths; `number` is its place among the workers of one executor."""

    def __init__(self, memory: Memory, number: int = 0) -> None:
        self.number = number
        begin_line()
        self.control = memory.new_control(L.control.size)
        self.control.point(L.control.scratch, Struct(L.SCRATCH_BLOCKS * L.BLOCK + L.SCRATCH_TEXT // 8))
        self.control.point(L.control.tally, new_tally())
        self.share(None)
        self.control[L.control.budget] = MAX_ROWS_PER_CALL
        self.control[L.control.number] = number
        self.registers, self._first = np.empty((0, L.REGISTER), np.int64), 0

    def prepare(self, tables: Tables) -> None:
        """Makes room for a scope's registers, levels and marks and fills its constants."""
        begin_line()
        self.control.point(L.control.levels, Struct(tables.levels * L.level.size))
        begin_line()
        self._first = len(tables.constants) - L.NO_REGISTER
        self.registers = np.empty((self._first + tables.registers + 1, L.REGISTER), np.int64)
        for value in tables.constants:
            self.register(tables.constant(value))[:] = value
        self.control[L.control.error_path] = 0
        self.control[L.control.registers] = int(self.register(0).ctypes.data)
        self.marks = np.zeros(tables.marks + 1, np.int64)
        for mark, bits in tables.marked:
            self.marks[mark + L.proposer.last] = self.marks[mark + L.proposer.group] = -1
            self.marks[mark + L.proposer.bits] = bits
        self.control[L.control.marks] = int(self.marks.ctypes.data)
        self.externals = tables.externals

    def register(self, number: int) -> np.ndarray:
        """Those of constants have negative numbers, and stand before the others."""
        found: np.ndarray = self.registers[self._first + number]
        return found

    def share(self, cursor: Struct | None) -> None:
        """Takes rows of a seed from a cursor shared with other workers, or (None) from its own again."""
        self.control[L.control.shared] = int(cursor is not None)
        self._cursor = cursor or Struct(1)
        self.control.point(L.control.cursor, self._cursor)

    def run_path(self, path: LoweredPath, evaluate: Evaluate, pause: Callable[[], None]) -> None:
        """Runs a path to its end; `pause` is called whenever the kernel yields."""
        self.control[L.control.phase] = -1
        machine.start_path(path.address, self.control.address)
        self._drive(path.address, evaluate, pause)

    def probe(self, path: LoweredPath) -> bool:
        """Begins a path that calls no Python; whether a small budget was enough for all of it. If not, `resume` goes on."""
        control, budget = self.control, self.control[L.control.budget]
        control[L.control.phase] = -1
        machine.start_path(path.address, control.address)
        control[L.control.budget] = min(PROBE, budget)
        status = machine.run(path.address, control.address)
        control[L.control.budget] = budget
        if status == Status.FAILED:
            raise self._failure()
        return bool(status == Status.DONE)

    def resume(self, path: LoweredPath, evaluate: Evaluate, pause: Callable[[], None]) -> None:
        """Runs a path that was begun to its end."""
        self._drive(path.address, evaluate, pause)

    @property
    def claimed(self) -> int:
        """The first row of the seed that nobody took from the cursor yet."""
        return self._cursor[0]

    def run_loop(self, loop: Struct, evaluate: Evaluate, pause: Callable[[], None]) -> bool:
        """Iterates a scope to its fixed point; true when it stopped before a bulk iteration instead."""
        return self._drive(loop.address, evaluate, pause) == Status.BULK

    def run_cycle(self, cycle: Struct, evaluate: Evaluate, pause: Callable[[], None]) -> Status:
        """Makes the moves of a cycle up to its end (DONE), a path that is for several workers, or one of Python's (CALL)."""
        self.control[L.control.phase] = CYCLE
        return self._drive(cycle.address, evaluate, pause)

    def _drive(self, task: int, evaluate: Evaluate, pause: Callable[[], None]) -> Status:
        control = self.control
        while True:
            status = machine.run(task, control.address)
            if (end := ENDS.get(status)) is not None:
                return end
            if status == Status.FAILED:
                raise self._failure()
            if status == Status.EXTERNAL:
                self.call(evaluate)
            else:
                pause()

    def _failure(self) -> RunFailed:
        code, self.control[L.control.error] = self.control[L.control.error], 0
        return RunFailed(code, self.control[L.control.error_path])

    def call(self, evaluate: Evaluate) -> None:
        """Evaluates the instruction the kernel stopped at, on its block, and steps over it."""
        control = self.control
        rows, instruction = control[L.control.rows], External(control[L.control.pc])
        call = self.externals[instruction.number]
        args = [typed(self.register(r)[:rows], k) for r, k in zip(call.args, call.kinds, strict=True)]
        self.register(call.target)[:rows] = _bits(evaluate(call, args, rows))
        control[L.control.pc] += 8 * instruction.length


def _bits(values: np.ndarray) -> np.ndarray:
    if values.dtype in (np.float64, np.uint64):
        return np.ascontiguousarray(values).view(np.int64)
    return values
