"""What lowering makes: the code of paths, and what those of a scope share, which each worker holds: constants, calls of Python,
room for marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np

from dlog.dataclass import dataclass, immutable
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import TaskKind
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.values.patterns import Verdicts


class ProducedRows:
    """Rows that a table function has made for the block at hand: see `machine_structs.Produced`."""

    def __init__(self) -> None:
        self._struct = Struct(L.produced.size)
        self._arrays: tuple[np.ndarray, ...] = ()
        self.address = self._struct.address

    def take(self, offsets: np.ndarray, columns: Sequence[np.ndarray]) -> None:
        """The rows of row i of the block are those from offsets[i] on, before offsets[i + 1]."""
        values = np.ascontiguousarray(np.stack(columns))
        self._arrays = offsets, values
        self._struct[L.produced.offsets], self._struct[L.produced.values] = offsets.ctypes.data, values.ctypes.data
        self._struct[L.produced.stride] = values.shape[1]


@dataclass(frozen=True, slots=True)
class ExternalCall:
    """A functor that is no kernel's or makes strings, or a comparison of strings whose mask goes to `target`: what Python needs
    to evaluate it on a block when kernels cannot. `verdicts` are those of a constant pattern."""

    op: str
    args: tuple[int, ...]
    kinds: tuple[Kind, ...]
    result: Kind | None
    target: int
    verdicts: Verdicts | None = None
    produced: ProducedRows | None = None
    """Takes the rows of a table function."""


@immutable
class Reading:
    """A reader, which runs when a log has changes; of a recursive scope, the seed by which it knows the log."""

    log: Struct
    seed: Struct | None = None


class LoweredPath:
    """A path's struct and code; over rounds, a task of a batch."""

    kind: int = TaskKind.PATH
    completes: Collection | None = None

    def __init__(self, path: nodes.Path, struct: Struct, code: list[Struct], shareable: bool) -> None:
        self.path = path
        self.struct = struct
        self.code = code
        self.shareable = shareable
        """Several workers may run it at once: it makes no records and no strings and calls no Python."""
        self.address = struct.address
        log = struct.keep.get(L.path.list)
        self.log = log if isinstance(log, Struct) else None
        """What seeds it, over rounds; None where one row does."""

    @property
    def reads(self) -> tuple[Reading, ...]:
        return () if self.log is None else (Reading(self.log),)


class LinkedPath(LoweredPath):
    """A path whose nodes, struct and code are looked for in those of its stratum when somebody asks."""

    def __init__(
        self,
        find: Callable[[int, int], nodes.Path],
        number: tuple[int, int],
        stratum: Struct,
        place: tuple[int, int],
        levels: Sequence[tuple[int, int]],
        shareable: bool,
        log: Struct | None,
    ) -> None:
        """`find` gives the path with a number. `place` is where its words are in the struct of a `stratum`, and how many; so
        are its levels in these."""
        self._find, self._number, self._stratum, self._place, self._levels = find, number, stratum, place, levels
        self.shareable = shareable
        self.address = stratum.address + 8 * place[0]
        self.log = log

    @cached_property
    def path(self) -> nodes.Path:  # type: ignore[override]
        return self._find(*self._number)

    @cached_property
    def struct(self) -> Struct:  # type: ignore[override]
        found = self._stratum.part(*self._place)
        if self.log is not None:
            found.keep[L.path.list] = self.log
        return found

    @cached_property
    def code(self) -> list[Struct]:  # type: ignore[override]
        return [self.struct.part(*level) for level in self._levels]


@dataclass
class Tables:
    """Tables shared by the paths of a scope: constants, external calls, room for marks."""

    constants: dict[int, int] = field(default_factory=dict)
    externals: list[ExternalCall] = field(default_factory=list)
    marks: int = 0
    marked: list[tuple[int, int]] = field(default_factory=list)
    """Per proposer of an extension: where its marks are and where its bits begin (words)."""
    registers: int = 0
    """Of the path that needs most."""
    levels: int = 1
    """Of the longest path."""
    remembers: bool = False
    """Whether sweeps remember rows: where these paths are all that derives, from relations that only grow."""
    verdicts: dict[int, Verdicts] = field(default_factory=dict)
    """Of each constant pattern, by its register."""

    def make_room(self, registers: int, levels: int) -> None:
        """For a path that needs so many."""
        self.registers, self.levels = max(self.registers, registers), max(self.levels, levels)

    def constant(self, value: int) -> int:
        """The register of a constant: a negative one, as a path uses those from 0 on, however many it needs."""
        return L.NO_REGISTER - 1 - self.constants.setdefault(value, len(self.constants))
