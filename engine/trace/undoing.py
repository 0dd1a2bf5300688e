"""Rows of a table with changes undone, or done: kernels look at what has changed, and at the rows."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence

import numpy as np

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels.trace.adding_up import LAST_BIT, SCRATCH, WORDS_PER_ENTRY, add_up, pick_updates
from dlog.engine.kernels.trace.undoing import MANY, NEEDS_ROOM, UNCHANGED, change_at_once, change_rows
from dlog.engine.kernels.trace_structs import NetChanges
from dlog.engine.trace.layer import Described, Layer
from dlog.engine.trace.values import Sought, Values
from dlog.engine.values.addresses import address_of
from dlog.engine.values.table import Table

MAX_SPAN = 1 << 31
"""Rounds of changes that are in parts are less."""
WORDS_AT_ONCE = 1 << 16
"""Words of memory for changes that are undone at once: each thread that does so keeps them."""
_AT = NetChanges.place
_LAYERS, _ARITY, _SIGN, _ONCE = _AT.layers, _AT.arity, _AT.sign, _AT.once


def undone(table: Table, net: Layer) -> Table:
    """The rows of a set before what changed in it all in all (`ChangeTrace.net`). What came is in the set, what went is not."""
    return PickedChanges((net,), -1, 0, True).changed(StoredRows.of(table), 0, 1).table()


def done(table: Table, net: Layer) -> Table:
    """The rows of a set after what changed in it all in all. What went is in the set, what came is not."""
    return PickedChanges((net,), -1, 0, True).changed(StoredRows.of(table), 0, -1).table()


class StoredRows:
    """The rows of a table, where kernels find them: `words` are the address and the width of each column. Where they are
    `fresh` nobody else has the columns."""

    __slots__ = ("columns", "fresh", "kinds", "rows", "words")

    def __init__(
        self, kinds: tuple[Kind, ...], columns: Sequence[np.ndarray], words: array[int], rows: int, fresh: bool
    ) -> None:
        self.kinds, self.columns, self.words, self.rows, self.fresh = kinds, columns, words, rows, fresh

    @staticmethod
    def of(table: Table) -> StoredRows:
        columns = [column if column.flags.c_contiguous else np.ascontiguousarray(column) for column in table.columns]
        return StoredRows(table.kinds, columns, _words_of(columns), table.rows, table.fresh)

    def table(self) -> Table:
        columns = tuple(self.columns)
        return Table(self.kinds, columns, -1 if columns else self.rows, self.fresh)

    def freeze(self) -> None:
        """From now on many read them, and nobody writes to them here."""
        if not self.fresh:
            self.columns = [column[:] for column in self.columns]
        for column in self.columns:
            column.setflags(write=False)
        self.fresh = False

    def targets(self, more: int = 0, wide: int = 0) -> tuple[Sequence[np.ndarray], array[int]]:
        """Columns of one's own to change them in, with room for so many more rows, and where they are; `wide` has a bit for
        each column whose values may be. Fresh ones stay where they are, if they can."""
        if wide or more:
            stays, room = self.fresh and not more, self.rows + more
            columns = [_target(c, stays, room, wide >> min(k, LAST_BIT) & 1) for k, c in enumerate(self.columns)]
        elif self.fresh:
            return self.columns, self.words
        else:
            columns = [np.empty(self.rows, column.dtype) for column in self.columns]
        return columns, _words_of(columns)

    def changed(self, columns: Sequence[np.ndarray], words: array[int], rows: int) -> StoredRows:
        """What has become of the rows in these columns of one's own."""
        if rows < len(columns[0]):
            columns = [column[:rows] for column in columns]
        return StoredRows(self.kinds, columns, words, rows, True)


def _target(column: np.ndarray, stays: bool, rows: int, wide: int) -> np.ndarray:
    widens = wide and column.itemsize == 4
    return column if stays and not widens else np.empty(rows, np.int64 if widens else column.dtype)


def _words_of(columns: Sequence[np.ndarray]) -> array[int]:
    words = array("q")
    for column in columns:
        words.append(address_of(column))
        words.append(column.itemsize)
    return words


def _changed(rows: StoredRows, net: array[int]) -> StoredRows:
    """Rows with what `add_up` found."""
    gone, came, wide = net[_AT.gone :]
    more = max(came - gone, 0)
    if not rows.columns:
        return StoredRows(rows.kinds, (), rows.words, min(max(rows.rows - gone + came, 0), 1), True)
    columns, words = rows.targets(more, wide)
    at, source, target = (given.buffer_info()[0] for given in (net, rows.words, words))
    return rows.changed(columns, words, change_rows(at, source, target, rows.rows, rows.rows + more))


class PickedChanges:
    """The changes that layers have of the rounds after one up to another, in parts of as many rounds each. They may be
    `summed`: a row has one change in a round then."""

    def __init__(self, layers: Sequence[Layer | Described], after: int, upto: int, summed: bool, parts: int = 1) -> None:
        self._layers, self._after, self._upto, self._summed, self.parts = layers, after, upto, summed, parts
        self._addresses, self._ends = array("q", [layer.address for layer in layers]), array("q", bytes(8 * (parts + 1)))
        self._pick()

    def _pick(self) -> None:
        self._picked = np.empty(sum([layer.rows for layer in self._layers]) + 1, np.int64)
        given, ends = self._addresses.buffer_info(), self._ends.buffer_info()[0]
        self.rows: int = pick_updates(*given, self._after, self._upto, self.parts, ends, address_of(self._picked))

    def cut(self, rows: int) -> PickedChanges:
        """The same changes, in parts of about so many."""
        span = self._upto - self._after
        parts = min(self.rows // rows, span) if span < MAX_SPAN else 1
        return PickedChanges(self._layers, self._after, self._upto, self._summed, parts) if parts > 1 else self

    def before(self, part: int) -> int:
        """The last round before a part; one behind the last part is there, too."""
        return self._after - part * (self._after - self._upto) // self.parts

    def changed(self, rows: StoredRows, part: int, sign: int) -> StoredRows:
        """The rows of a set without those whose diffs have this sign, and with the others: columns of 4 or 8 bytes, as they
        were, or wider where the values ask for it. Rows that are nobody else's are written to."""
        start, end = self._ends[part - 1] if part else 0, self._ends[part]
        if start == end:
            return rows
        arity, net = len(rows.columns), array("q", bytes(8 * _AT.size))
        once = self._summed and self._upto - self._after == self.parts
        net[_LAYERS], net[_ARITY], net[_SIGN], net[_ONCE] = self._addresses.buffer_info()[0], arity, sign, once
        memory = np.empty(SCRATCH + (end - start) * (arity + WORDS_PER_ENTRY), np.int64)
        add_up(net.buffer_info()[0], address_of(self._picked), start, end, address_of(memory), rows.rows)
        return _changed(rows, net)


class ChangesWith(PickedChanges):
    """Those among them of rows with certain values, in one part."""

    def __init__(self, values: Values, layers: Sequence[Layer | Described], after: int, upto: int, summed: bool) -> None:
        self._sought = Sought(values)
        super().__init__(layers, after, upto, summed)

    def _pick(self) -> None:
        rounds = self._after, self._upto
        found = ((k, self._sought.places(layer, *rounds)) for k, layer in enumerate(self._layers))
        parts = [k << 32 | places for k, places in found if len(places)]
        self._picked = np.concatenate(parts) if parts else np.empty(0, np.int64)
        self.rows = self._ends[0] = len(self._picked)


# -------------------------------------------------------------------------------------------------------------- at once


class _AtOnce(threading.local):
    """What a thread undoes changes with."""

    def __init__(self) -> None:
        self.net, self.memory = array("q", bytes(8 * _AT.size)), np.empty(WORDS_AT_ONCE, np.int64)
        self.addresses = self.net.buffer_info()[0], address_of(self.memory)


_AT_ONCE = _AtOnce()


def changed_at_once(
    rows: StoredRows, layers: Sequence[Layer | Described], after: int, upto: int, summed: bool, sign: int, most: int
) -> StoredRows | None:
    """What `PickedChanges.changed` gives for all changes of the layers in these rounds; None where there are more than so many,
    or than there is memory for."""
    arity = len(rows.columns)
    most = min(most, (WORDS_AT_ONCE - SCRATCH - 1) // (arity + WORDS_PER_ENTRY + 1))
    if not arity or sum([layer.rows for layer in layers]) >= WORDS_AT_ONCE:
        return None
    given, net = array("q", [layer.address for layer in layers]), _AT_ONCE.net
    (first, count), (at, memory) = given.buffer_info(), _AT_ONCE.addresses
    net[_LAYERS], net[_ARITY], net[_SIGN], net[_ONCE] = first, arity, sign, summed and upto - after == 1
    columns, words = rows.targets()
    source, target = rows.words.buffer_info()[0], words.buffer_info()[0]
    found = change_at_once(at, count, after, upto, memory, most, source, target, rows.rows)
    if found >= 0:
        return rows.changed(columns, words, found)
    if found == NEEDS_ROOM:
        return _changed(rows, net)
    assert found in (MANY, UNCHANGED)
    return rows if found == UNCHANGED else None
