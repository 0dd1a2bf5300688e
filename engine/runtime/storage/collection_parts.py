"""The parts of a collection, a struct of the kernels' with the memory it owns: which there are depends on who changes it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cache
from typing import TypeAlias

import numpy as np

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.store import implied
from dlog.engine.kernels.static import storage
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.memory_map import PER_ROW, Array, give_back
from dlog.engine.runtime.storage.native import Struct

INITIAL_ROWS = 64
"""Rows for which a new collection has room."""


class Role(Enum):
    """A collection's role: what changes it."""

    INPUT = "from outside"
    TOTAL = "rules without recursion"
    PARTIAL = "rules of a recursive scope"
    RESULT = "a reduction"
    LATTICE = "a lattice of a recursive scope"
    GROUPS = "keys of a reduction"
    CANDIDATES = "values of a reduction"
    PARTIAL_CANDIDATES = "values of a lattice"


_PARTS = {
    Role.INPUT: (),
    Role.TOTAL: (L.collection.derivation_counts, L.collection.stamps),
    Role.PARTIAL: (L.collection.derivation_support, L.collection.stamps),
    Role.RESULT: (),
    Role.LATTICE: (),
    Role.GROUPS: (L.collection.stamps, L.collection.grouping_current),
    Role.CANDIDATES: (),
    Role.PARTIAL_CANDIDATES: (),
}
VISIBLE = {Role.INPUT, Role.TOTAL, Role.PARTIAL, Role.RESULT, Role.LATTICE}
_INNER = {Role.PARTIAL, Role.LATTICE}
UNFOUND = {Role.RESULT, Role.LATTICE}
"""Their rows are found through groups and candidates, unless paths look for them by all their values."""


def new_list(words_each: int) -> Struct:
    """A list, a pool or a log, whatever it is used as."""
    made = Struct(L.log.size)
    made[L.items.words] = words_each
    return made


Place: TypeAlias = tuple[int, int]
"""Where a part begins among all words, and how many it has."""


class _Mold:
    """The structs of all collections of a role with columns of some widths, next to each other, and what they own at first."""

    def __init__(self, role: Role, widths: Sequence[int]) -> None:
        self._words: list[int] = []
        self._arrays: list[int] = []
        self._pointers: list[int] = []
        self.parts: list[Place] = []
        """All but the collection itself; others have their numbers here. The columns are first."""
        self.own: list[tuple[int, int]] = []
        """The fields of the collection that point to parts, and these."""
        self.inner: list[tuple[int, int, int]] = []
        """Parts that point to parts: each with its field, and the other."""
        self.lists: list[int] = []
        self.histories: list[int] = []
        self.bytes: list[int] = []
        """Of the arrays."""
        self.collection = self._part(L.collection.size)
        self._fill(role, widths)
        self.words = np.array(self._words, np.int64)
        self.pointers = np.array(self._pointers, np.int64)
        self.arrays = np.array(self._arrays, np.int64)
        """The places of the arrays' addresses."""

    def _fill(self, role: Role, widths: Sequence[int]) -> None:
        own = self.collection
        columns = self.parts[self._pointed(L.relation.columns, L.column.size * max(len(widths), 1))]
        self._set(own, L.relation.arity, len(widths))
        self._set(own, L.relation.capacity, INITIAL_ROWS)
        for c, width in enumerate(widths):
            self._set(columns, c * L.column.size + L.column.width, width)
            self._array(columns, c * L.column.size + L.column.data, INITIAL_ROWS * width)
        self._array(own, L.collection.alive, INITIAL_ROWS // 8)
        for part in _PARTS[role]:
            self._array(own, part, INITIAL_ROWS * PER_ROW[part])
        if role in VISIBLE:
            self._history(L.collection.outer, iterations=False)
        if role in _INNER:
            self._history(L.collection.inner, iterations=True)
        for field, size in _lists_of(role):
            self._list(field, size)

    def _part(self, size: int) -> Place:
        self._words += [0] * size
        return len(self._words) - size, size

    def _pointed(self, field: int, size: int, of: int | None = None) -> int:
        """A new part, to which a field of the collection points, or one of another part."""
        owner = self.collection if of is None else self.parts[of]
        number = len(self.parts)
        self.parts.append(made := self._part(size))
        self._set(owner, field, 8 * made[0])
        self._pointers.append(owner[0] + field)
        if of is None:
            self.own.append((field, number))
        else:
            self.inner.append((of, field, number))
        return number

    def _set(self, part: Place, field: int, value: int) -> None:
        self._words[part[0] + field] = value

    def _array(self, part: Place, field: int, size: int) -> None:
        self._arrays.append(part[0] + field)
        self.bytes.append(size)

    def _list(self, field: int, size: int, of: int | None = None) -> None:
        made = self._pointed(field, L.log.size, of)
        self._set(self.parts[made], L.items.words, size)
        self.lists.append(made)

    def _history(self, field: int, iterations: bool) -> None:
        history = self._pointed(field, L.history.size)
        self._array(self.parts[history], L.history.bits, INITIAL_ROWS // 8)
        if iterations:
            self._array(self.parts[history], L.history.iters, INITIAL_ROWS * 4)
        self._list(L.history.items, L.item.size, history)
        self._list(L.history.entries, L.entry.size, history)
        self.histories.append(history)


_mold = cache(_Mold)


def _lists_of(role: Role) -> list[tuple[int, int]]:
    """The fields of the lists of a collection, and the words of what is in them."""
    wanted: list[tuple[int, int]] = []
    if role in VISIBLE:
        wanted += [(L.collection.log, L.change.size), (L.collection.new_rows, 1), (L.collection.maybe_dead, 1)]
    if role in _INNER:
        wanted.append((L.collection.inner_log, L.change.size))
    if role is Role.TOTAL:
        wanted += [(L.collection.derivation_derived, L.change.size), (L.collection.touched, 1)]
    if role in (Role.PARTIAL, Role.PARTIAL_CANDIDATES):
        wanted += [(L.collection.touched, 1), (L.collection.derivation_entries, L.support.size)]
    if role in (Role.LATTICE, Role.GROUPS):
        wanted.append((L.collection.touched, 1))
    if role in (Role.GROUPS, Role.CANDIDATES):
        wanted.append((L.collection.maybe_dead, 1))
    return wanted


class CollectionParts:
    """Columns, histories and logs; see kernels/round_structs.py for the fields."""

    def __init__(self, name: str, kinds: Sequence[Kind], role: Role, memory: Memory, scope: Struct | None = None) -> None:
        self.name = name
        self.kinds = tuple(kinds)
        self.role = role
        self.memory = memory
        mold = _mold(role, tuple([8 if kind is Kind.FLOAT else 4 for kind in self.kinds]))
        whole = Struct(len(mold.words))
        whole.words[:] = mold.words
        whole.words[mold.pointers] += whole.address
        parts = [whole.part(start, size) for start, size in mold.parts]
        self.struct, self._columns = whole.part(*mold.collection), parts[0]
        self.struct.keep = {field: parts[part] for field, part in mold.own}
        for part, field, other in mold.inner:
            parts[part].keep[field] = parts[other]
        self.lists = [parts[part] for part in mold.lists]
        self.histories = [parts[part] for part in mold.histories]
        whole.words[mold.arrays] = [self._zeroed(size) for size in mold.bytes]
        if role in (Role.PARTIAL, Role.PARTIAL_CANDIDATES):
            assert scope is not None
            self.struct.point(L.collection.scope, scope)

    def _zeroed(self, size: int) -> int:
        address = int(storage.zeroed(self.memory.control.address, size))
        if not address:
            self.memory.check()
        return address

    def _list(self, size: int) -> Struct:
        made = new_list(size)
        self.lists.append(made)
        return made

    @property
    def address(self) -> int:
        return self.struct.address

    @property
    def widths(self) -> tuple[Struct, tuple[int, ...]]:
        """The struct and the fields of the columns' widths."""
        return self._columns, tuple(c * L.column.size + L.column.width for c in range(self.arity))

    @property
    def arity(self) -> int:
        return len(self.kinds)

    @property
    def log(self) -> Struct:
        return self.struct.keep[L.collection.log]  # type: ignore[return-value]

    def point_columns(self) -> None:
        """Points columns that have no array of their own to what implies them."""
        for at in self.widths[1]:
            if self._columns[at] == L.IMPLIED:
                self._columns[at - L.column.width + L.column.data] = self.address

    def hold_keys(self) -> None:
        """Makes an implied key column one like others: it is to be read at large. Raises DlogError where memory does not
        suffice."""
        implied.write_keys(self.memory.control.address, self.address)
        self.memory.check()

    def keep_heads(self) -> None:
        """Gives groups the lists of their candidates, beside the rows of their results."""
        size = PER_ROW[L.collection.grouping_heads]
        self.struct[L.collection.grouping_heads] = self._zeroed(self.struct[L.relation.capacity] * size)
        current = Array(self.struct, L.collection.grouping_current, 0, INITIAL_ROWS * PER_ROW[L.collection.grouping_current])
        give_back(self.memory.control.address, [current])

    def keep_records(self, bytes_each: int) -> None:
        """Gives rows records of so many bytes, which are all that there is of them."""
        self.struct[L.collection.grouping_record_bytes] = bytes_each
        self.struct[L.collection.grouping_records] = self._zeroed(self.struct[L.relation.capacity] * bytes_each)
        give_back(self.memory.control.address, [Array(self.struct, L.collection.alive, 0, INITIAL_ROWS // 8)])

    def keep_sums(self, words_each: int) -> None:
        """Gives groups so many words of their own."""
        self.struct[L.collection.grouping_sum_words] = words_each
        self.struct[L.collection.grouping_sums] = self._zeroed(self.struct[L.relation.capacity] * words_each * 8)
