"""The parts of a collection, a struct of the kernels' with the memory it owns: which there are depends on who changes it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

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


class CollectionParts:
    """Columns, histories and logs; see kernels/round_structs.py for the fields."""

    def __init__(self, name: str, kinds: Sequence[Kind], role: Role, memory: Memory, scope: Struct | None = None) -> None:
        self.name = name
        self.kinds = tuple(kinds)
        self.role = role
        self.memory = memory
        self.struct = Struct(L.collection.size)
        self.lists: list[Struct] = []
        self.histories: list[Struct] = []
        self.struct[L.relation.arity] = len(self.kinds)
        self._columns = Struct(L.column.size * max(len(self.kinds), 1))
        self.struct.point(L.relation.columns, self._columns)
        for c, kind in enumerate(self.kinds):
            self._columns[c * L.column.size + L.column.width] = 8 if kind is Kind.FLOAT else 4
            self._columns[c * L.column.size + L.column.data] = self._zeroed(
                INITIAL_ROWS * self._columns[c * L.column.size + L.column.width]
            )
        self.struct[L.relation.capacity] = INITIAL_ROWS
        self.struct[L.collection.alive] = self._zeroed(INITIAL_ROWS // 8)
        for part in _PARTS[role]:
            self.struct[part] = self._zeroed(INITIAL_ROWS * PER_ROW[part])
        self._make_lists(scope)

    def _zeroed(self, size: int) -> int:
        address = int(storage.zeroed(self.memory.control.address, size))
        self.memory.check()
        return address

    def _make_lists(self, scope: Struct | None) -> None:
        wanted: list[tuple[int, int]] = []
        role = self.role
        if role in VISIBLE:
            wanted += [(L.collection.log, L.change.size), (L.collection.new_rows, 1), (L.collection.maybe_dead, 1)]
            self._point_history(L.collection.outer, iterations=False)
        if role in _INNER:
            wanted.append((L.collection.inner_log, L.change.size))
            self._point_history(L.collection.inner, iterations=True)
        if role is Role.TOTAL:
            wanted += [(L.collection.derivation_derived, L.change.size), (L.collection.touched, 1)]
        if role in (Role.PARTIAL, Role.PARTIAL_CANDIDATES):
            wanted += [(L.collection.touched, 1), (L.collection.derivation_entries, L.support.size)]
            assert scope is not None
            self.struct.point(L.collection.scope, scope)
        if role in (Role.LATTICE, Role.GROUPS):
            wanted.append((L.collection.touched, 1))
        if role in (Role.GROUPS, Role.CANDIDATES):
            wanted.append((L.collection.maybe_dead, 1))
        for field, size in wanted:
            self.struct.point(field, self._list(size))

    def _list(self, size: int) -> Struct:
        made = new_list(size)
        self.lists.append(made)
        return made

    def _point_history(self, field: int, iterations: bool) -> None:
        history = Struct(L.history.size)
        history[L.history.bits] = self._zeroed(INITIAL_ROWS // 8)
        if iterations:
            history[L.history.iters] = self._zeroed(INITIAL_ROWS * 4)
        history.point(L.history.items, self._list(L.item.size))
        history.point(L.history.entries, self._list(L.entry.size))
        self.struct.point(field, history)
        self.histories.append(history)

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
