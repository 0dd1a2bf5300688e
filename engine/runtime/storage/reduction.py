"""Reductions as Python holds them: an aggregate or a lattice with its groups and candidates."""

from __future__ import annotations

import numpy as np

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.combine import DOMINANCES, GROUP_WORDS, Combine
from dlog.engine.kernels.incremental.reduce.grouped import copy_groups
from dlog.engine.kernels.incremental.store import lists
from dlog.engine.kernels.row_structs import TouchedGroup
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role, new_list
from dlog.engine.runtime.storage.memory_map import give_back, reduction_arrays
from dlog.engine.runtime.storage.native import Struct, begin_line, view


class Reduction:
    """An aggregate's groups, candidates (minimum and maximum) and result. `column` is where the value stands in the result."""

    def __init__(self, result: Collection, combine: Combine, kind: Kind, column: int, scope: Struct | None = None) -> None:
        self.result = result
        memory = result.memory
        keys = [k for c, k in enumerate(result.kinds) if c != column]
        self.groups = Collection(f"{result.name} groups", keys, Role.GROUPS, memory)
        self.candidates: Collection | None = None
        self.kind = kind
        if combine in DOMINANCES:
            role = Role.CANDIDATES if scope is None else Role.PARTIAL_CANDIDATES
            self.candidates = Collection(f"{result.name} candidates", (), role, memory, scope)
            self.candidates.keep_records(L.CANDIDATE_WIDE if kind is Kind.FLOAT else L.CANDIDATE_NARROW)
            self.groups.keep_heads()
        if scope is None:
            self.groups.keep_sums(GROUP_WORDS.get(combine, 1))
        begin_line()
        self.struct = Struct(L.reduction.size)
        self.struct[L.reduction.op] = combine
        self.struct.point(L.reduction.groups, self.groups.struct)
        if self.candidates is not None:
            self.struct.point(L.reduction.candidates, self.candidates.struct)
            # They are found by their groups.
            self.candidates.struct[L.collection.unkeyed] = 1
            self.candidates.struct[L.collection.reduction] = self.struct.address
        self.struct.point(L.reduction.result, result.struct)
        result.struct[L.collection.reduction] = self.struct.address
        self.derived, self.missing = new_list(L.change.size), new_list(L.change.size)
        self.struct.point(L.reduction.derived, self.derived)
        if scope is None:
            # Nothing is seeded by what a lattice has no value for.
            self.struct.point(L.reduction.missing, self.missing)
        self.struct[L.reduction.keys] = len(keys)
        self.struct[L.reduction.value] = column
        self.seeds = False
        """Whether some path is seeded by groups that get or lose their value."""
        self.sources = 0
        """Paths that contribute."""

    def quieten(self) -> None:
        """Notes that nothing asks for the result's rows, or for groups without one, unless something does. After
        `Collection.quieten`."""
        result = self.result
        if not self.seeds:
            self.struct[L.reduction.missing] = 0
        if (
            result.role is Role.RESULT
            and self.candidates is None
            and result.struct[L.collection.no_readers]
            and result.struct[L.collection.unkeyed]
        ):
            result.grouped = self
            result.struct[L.collection.grouped] = self.address
            # What one path contributes comes by round, as the changes of its seed do.
            self.struct[L.reduction.streamed] = int(self.sources == 1 and not self.seeds)

    def read(self, before: bool) -> tuple[tuple[np.ndarray, ...], int]:
        """`Collection.read` of the result whose rows are the groups."""
        room = self.groups.struct[L.collection.live]
        numbers, values = np.empty(room, np.int32), np.empty(room, np.int64)
        count = copy_groups(self.result.address, numbers.ctypes.data, values.ctypes.data)
        numbers, values = numbers[:count], values[:count]
        if before:
            numbers, values = self._before(numbers, values)
        keys = iter(range(self.groups.arity))
        place = self.struct[L.reduction.value]
        columns = (values if c == place else self.groups.column(next(keys))[numbers] for c in range(self.result.arity))
        return tuple(columns), len(numbers)

    def _before(self, numbers: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Groups with a value and their values as they were before the batch that runs."""
        log = self.result.log
        count = log[L.items.count]
        if self.result.struct[L.collection.fresh] or (count and not log[L.items.data]):
            return numbers[:0], values[:0]
        changes = view(log[L.items.data], count * L.change.size, np.int64).reshape(count, L.change.size)
        touched = self._touched()
        groups = np.concatenate([changes[:, L.change.row] & L.GROUP_NUMBER, touched[:, 0]])
        changed, places = np.unique(groups, return_index=True)
        had = np.concatenate([changes[:, L.change.row] & L.GROUP_HAD != 0, touched[:, 1] > 0])[places]
        kept = ~np.isin(numbers, changed)
        old = np.concatenate([changes[:, L.change.diff], touched[:, 2]])[places[had]]
        return np.concatenate([numbers[kept], changed[had].astype(np.int32)]), np.concatenate([values[kept], old])

    def _touched(self) -> np.ndarray:
        """The groups of the round that is open, with their members and values before it."""
        noted = self.groups.struct.keep[L.collection.touched]
        assert isinstance(noted, Struct)
        count = noted[L.items.count] if self.struct[L.reduction.open] else 0
        if not count:
            return np.empty((0, TouchedGroup.place.size), np.int64)
        return view(noted[L.items.data], count, np.int64).reshape(-1, TouchedGroup.place.size)

    @property
    def address(self) -> int:
        return self.struct.address

    def free(self) -> None:
        control = self.result.memory.control.address
        lists.list_free(control, self.derived.address)
        lists.list_free(control, self.missing.address)
        give_back(control, reduction_arrays(self))
        self.groups.free()
        if self.candidates is not None:
            self.candidates.free()
