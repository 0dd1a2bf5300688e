"""The code of a path while it is written: instructions by level, and the registers that hold its variables."""

from __future__ import annotations

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels.codes import Operation


class Code:
    """Registers are per level: what later steps still need is carried over into fresh ones, so that a level that is being
    resumed never finds its rows overwritten."""

    def __init__(self) -> None:
        self.levels: list[list[int]] = []
        """The levels that are complete."""
        self.level: list[int] = []
        self.registers: dict[int, int] = {}
        """By variable."""
        self.kinds: dict[int, Kind] = {}
        """By variable."""
        self.next_register = 0
        self.shareable = True
        """Several workers may run it at once."""

    def end_level(self) -> None:
        """What follows is done for each row that a generator makes."""
        self.emit(Operation.NEXT)
        self.end()

    def end(self) -> None:
        self.levels.append(self.level)
        self.level = []

    def emit(self, op: int, *operands: int) -> None:
        self.level += [op, len(operands) + 2, *operands]

    def fresh(self) -> int:
        self.next_register += 1
        return self.next_register - 1

    def bind(self, variable: int, kind: Kind | None = None) -> int:
        """A fresh register for a variable; `kind` when it is bound for the first time."""
        self.registers[variable] = self.fresh()
        if kind is not None:
            self.kinds[variable] = kind
        return self.registers[variable]

    def live(self, needed: frozenset[int]) -> list[int]:
        return [r for v, r in sorted(self.registers.items()) if v in needed]

    def next_level(self, needed: frozenset[int]) -> list[tuple[int, int]]:
        """Ends the level; returns the (src, dst) registers that the next generator carries over."""
        self.end_level()
        carried = []
        old = self.registers
        self.registers = {}
        for variable, register in sorted(old.items()):
            if variable in needed:
                carried.append((register, self.bind(variable)))
        return carried
