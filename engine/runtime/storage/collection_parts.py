"""The parts of a collection, a struct of the kernels' with the memory it owns: which there are depends on who changes it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cache
from typing import cast

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.store import implied, molds
from dlog.engine.kernels.static import storage
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.memory_map import PER_ROW, Array, give_back
from dlog.engine.runtime.storage.native import Place, Struct, begin_line, words

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

    __hash__ = object.__hash__  # each is there once


_PARTS = {
    Role.INPUT: (),
    Role.TOTAL: (L.collection.derivation_counts,),
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


class _Mold:
    """The structs of all collections of a role with columns of some kinds, next to each other, and what they own at first."""

    def __init__(self, role: Role, kinds: tuple[Kind, ...]) -> None:
        self._words: list[int] = []
        self._arrays: list[int] = []
        self._pointers: list[int] = []
        self._sizes: list[int] = []
        self.places: dict[int, Place] = {}
        """The parts of the collection, by field."""
        self._part(L.collection.size)
        self._fill(role, [8 if kind is Kind.FLOAT else 4 for kind in kinds])
        self.size = len(self._words)
        self.struct = Struct(L.mold.size)
        self.struct.point(L.mold.words, words(self._words))
        self.struct[L.mold.word_count] = self.size
        self.struct.point(L.mold.pointers, words(self._pointers))
        self.struct[L.mold.pointer_count] = len(self._pointers)
        self.struct.point(L.mold.arrays, words(self._arrays))
        self.struct.point(L.mold.sizes, words(self._sizes))
        self.struct[L.mold.array_count] = len(self._arrays)

    def _fill(self, role: Role, widths: Sequence[int]) -> None:
        columns = self._pointed(0, L.relation.columns, L.column.size * max(len(widths), 1))
        self.places[L.relation.columns] = columns
        self._words[L.relation.arity] = len(widths)
        self._words[L.relation.capacity] = INITIAL_ROWS
        for c, width in enumerate(widths):
            column = columns.start + c * L.column.size
            self._words[column + L.column.width] = width
            self._array(column + L.column.data, INITIAL_ROWS * width)
        self._array(L.collection.alive, INITIAL_ROWS // 8)
        if role is Role.TOTAL:
            self._array(L.collection.derivation_touched_bits, INITIAL_ROWS // 8)
        for part in _PARTS[role]:
            self._array(part, INITIAL_ROWS * PER_ROW[part])
        if role in VISIBLE:
            self._history(L.collection.outer, iterations=False)
        if role in _INNER:
            self._history(L.collection.inner, iterations=True)
        for field, size in _lists_of(role):
            self.places[field] = self._list(0, field, size)

    def _part(self, size: int) -> Place:
        self._words += [0] * size
        return Place(len(self._words) - size, size)

    def _pointed(self, owner: int, field: int, size: int) -> Place:
        """A new part, to which a field points of the one that begins at `owner`."""
        made = self._part(size)
        self._words[owner + field] = 8 * made.start
        self._pointers.append(owner + field)
        return made

    def _array(self, at: int, size: int) -> None:
        self._arrays.append(at)
        self._sizes.append(size)

    def _list(self, owner: int, field: int, size: int) -> Place:
        made = self._pointed(owner, field, L.log.size)
        self._words[made.start + L.items.words] = size
        return made

    def _history(self, field: int, iterations: bool) -> None:
        start, size, _ = self._pointed(0, field, L.history.size)
        self._array(start + L.history.bits, INITIAL_ROWS // 8)
        if iterations:
            self._array(start + L.history.iters, INITIAL_ROWS * 4)
        lists = ((L.history.items, L.item.size), (L.history.entries, L.entry.size))
        self.places[field] = Place(start, size, {f: self._list(start, f, words_each) for f, words_each in lists})


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


_LISTS = (
    *dict.fromkeys(field for role in Role for field, _ in _lists_of(role)),
    L.collection.fused_log,
)


class CollectionParts:
    """Columns, histories and logs; see kernels/round_structs.py for the fields."""

    def __init__(self, name: str, kinds: Sequence[Kind], role: Role, memory: Memory, scope: Struct | None = None) -> None:
        self.name = name
        self.kinds = tuple(kinds)
        self.role = role
        self.memory = memory
        mold = _mold(role, self.kinds)
        begin_line()  # workers run strata side by side
        self.struct = Struct(mold.size)
        if not molds.form(memory.control.address, mold.struct.address, self.struct.address):
            memory.check()
        self.struct.keep_parts(mold.places)
        if role in (Role.PARTIAL, Role.PARTIAL_CANDIDATES):
            assert scope is not None
            self.struct.point(L.collection.scope, scope)

    @property
    def histories(self) -> list[Struct]:
        keep = self.struct.keep
        return [cast(Struct, keep[field]) for field in (L.collection.outer, L.collection.inner) if field in keep]

    @property
    def lists(self) -> list[Struct]:
        """All lists, pools and logs."""
        keep = self.struct.keep
        own = [cast(Struct, keep[field]) for field in _LISTS if field in keep]
        return [*own, *(cast(Struct, h.keep[field]) for h in self.histories for field in (L.history.items, L.history.entries))]

    def _zeroed(self, size: int) -> int:
        address = int(storage.zeroed(self.memory.control.address, size))
        if not address:
            self.memory.check()
        return address

    @property
    def address(self) -> int:
        return self.struct.address

    @property
    def _columns(self) -> Struct:
        return self.struct.keep[L.relation.columns]  # type: ignore[return-value]

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
