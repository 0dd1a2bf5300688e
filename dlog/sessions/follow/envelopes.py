"""The form in which a subscriber gets the changes of a round: rows with diffs, perhaps in order, or what became of keys, with
the rows before if that is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

import numpy as np

from dlog.arguments import bad_argument
from dlog.codec import Codec, Row
from dlog.engine.ir.rules import Kind, Relation
from dlog.engine.operators.readings import Reading
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.layer import build
from dlog.engine.trace.spine import Spine
from dlog.engine.values.differences import row_groups
from dlog.engine.values.updates import Updates
from dlog.relation import signature
from dlog.sessions.follow.changes import EMPTY, Changes, typed
from dlog.sessions.follow.events import ChangeEvents, Side
from dlog.sessions.mistakes import mistake
from dlog.tabular import Tabular

if TYPE_CHECKING:
    import pyarrow as pa


class Upserts(Tabular):
    """What became of keys in a round: of each that changed the row that it has now, or none.

    Iterating gives pairs of a key and its row, or None; `bool` tells whether there are any."""

    no_rows = "what became of keys is iterated: a row is to be inserted, or upserted, where there is one, else removed"

    def __init__(self, relation: Relation, key: Sequence[int], columns: Sequence[np.ndarray], there: np.ndarray, codec: Codec):
        """`columns` are those of rows, of which only those of the key count where the row is not `there`."""
        self._relation, self._key, self._there, self._codec = relation, key, there, codec
        marks = np.ones(len(there), np.int64)
        self._updates = Updates(tuple(columns), marks, marks)

    @property
    def name(self) -> str:
        """The relation."""
        return self._relation.name

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the key."""
        return tuple(self._relation.attributes[c][0] for c in self._key)

    def deleted(self) -> list[Row]:
        """The keys that have no row any more."""
        return [key for key, row in self if row is None]

    def upserted(self) -> list[Row]:
        """The rows that keys have now."""
        return [row for _, row in self if row is not None]

    def __len__(self) -> int:
        return len(self._there)

    def __iter__(self) -> Iterator[tuple[Row, Row | None]]:
        table = typed(self._relation.kinds, self._updates)
        types = [type for _, type in self._relation.attributes]
        columns = [
            self._codec.to_python(type, self._masked(c, column))
            for c, (type, column) in enumerate(zip(types, table.columns, strict=True))
        ]
        for row, there in zip(zip(*columns, strict=True), self._there.tolist(), strict=True):
            yield tuple([row[c] for c in self._key]), row if there else None

    def _masked(self, place: int, column: np.ndarray) -> np.ndarray:
        """A column without what does not count."""
        return column if place in self._key else np.where(self._there, column, 0).astype(column.dtype)

    def to_arrow(self) -> pa.Table:
        """An Arrow table of the columns, null where there is no row, and `state`: `upsert` or `delete`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table = typed(self._relation.kinds, self._updates)
        found: dict[str, Any] = {}
        for c, ((name, type), column) in enumerate(zip(self._relation.attributes, table.columns, strict=True)):
            array = self._codec.to_arrow(type, self._masked(c, column))
            found[name] = array if c in self._key else pc.if_else(pa.array(self._there), array, None)
        state = "state" if "state" not in found else "_state"
        return pa.table(found | {state: np.where(self._there, "upsert", "delete")})

    def _title(self) -> str:
        came = int(self._there.sum())
        return f"dlog.Upserts of {signature(self._relation)}: {came:,} upserts, {len(self) - came:,} deletes"

    def _first(self, rows: int) -> pa.Table | None:
        return self.to_arrow().slice(0, rows)


Delivered: TypeAlias = Changes | Upserts | ChangeEvents
Form = Literal["upsert", "debezium"]


class Envelope(Protocol):
    """The form of a subscription's items. Some need the rows that were there before the changes."""

    needs_rows: bool

    def of(self, relation: Relation, updates: Updates, codec: Codec, hidden: bool = False) -> Delivered:
        """The changes of a round, which come in order; `hidden` ones are what there was before, and are not shown."""


class Diffs:
    """Rows with diffs; `order` are columns to sort by, each with 1, or -1 for descending."""

    needs_rows = False

    def __init__(self, order: Sequence[tuple[int, int]] = ()) -> None:
        self._order = order

    def of(self, relation: Relation, updates: Updates, codec: Codec, hidden: bool = False) -> Changes:
        if hidden:
            updates = Updates((EMPTY,) * relation.arity, EMPTY, EMPTY)
        elif self._order and updates.rows > 1:
            updates = _take_rows(updates, np.lexsort([updates.diffs, *(self._ranks(relation, updates, codec))]))
        return Changes(relation, updates, codec)

    def _ranks(self, relation: Relation, updates: Updates, codec: Codec) -> Iterator[np.ndarray]:
        """For each column to sort by, the last one first, numbers in the order of its values."""
        table = typed(relation.kinds, updates)
        for column, sign in reversed(self._order):
            _, ranks = np.unique(codec.to_numpy(relation.attributes[column][1], table.columns[column]), return_inverse=True)
            yield sign * ranks


class Keyed:
    """What became of keys, which have one row each: the rows are kept, sorted by key, to know what a key has left."""

    needs_rows = True

    def __init__(self, relation: Relation, key: Sequence[int]) -> None:
        self._key = tuple(key)
        self._places = (*key, *(c for c in range(relation.arity) if c not in key))
        self._spine = Spine(relation.arity, 1)
        self._handle = self._spine.handle()

    def of(self, relation: Relation, updates: Updates, codec: Codec, hidden: bool = False) -> Delivered:
        after = self._after(relation, updates, codec, hidden)
        return Upserts(relation, self._key, after.columns, after.there, codec)

    def _after(self, relation: Relation, updates: Updates, codec: Codec, hidden: bool) -> Side:
        """Notes the changes of a round: what the keys have now of which rows came or went, in order of the keys."""
        if not updates.rows:
            return Side((EMPTY,) * relation.arity, np.empty(0, bool))
        columns = tuple(updates.columns[c] for c in self._places)
        self._insert(columns, updates)
        rows, there, keys = self._rows_by_key(columns[: len(self._key)], updates.rows)
        if (there > 1).any():
            raise self._violated(relation, [key[int(np.argmax(there > 1))] for key in keys], codec)
        shown = slice(0, 0) if hidden else slice(None)
        return Side(tuple(rows[c][shown] for c in np.argsort(self._places)), there[shown] == 1)

    def _insert(self, columns: Sequence[np.ndarray], updates: Updates) -> None:
        time = max(updates.last, self._spine.upper.elements[0][0])
        self._handle.set_logical_compaction(Antichain.at(time))
        self._spine.insert(Batch.of(self._spine.upper, Antichain.at(time + 1), columns, (time,), updates.diffs))

    def _rows_by_key(self, keys: Sequence[np.ndarray], rows: int) -> tuple[list[np.ndarray], np.ndarray, list[np.ndarray]]:
        """Of each key of changed rows, once: the row that it has, how many it has, and the key. Where it has none only the key
        counts."""
        order, starts = row_groups(keys, rows)
        each = [np.ascontiguousarray(column[order[starts]]) for column in keys]
        layers = [layer for batch in self._spine.batches for layer in batch.layers]
        found = Reading(layers, self._spine.arity, 1).lookup(each, len(starts))
        summed = build((found.probes, *found.delta.columns), (0,), found.delta.diffs) if len(found.probes) else None
        many = np.zeros(len(starts), np.int64)
        columns = [*(column.copy() for column in each), *(np.zeros(len(starts), np.int64) for _ in self._places[len(each) :])]
        if summed is not None:
            probes = summed.values(0)
            many = np.bincount(probes, minlength=len(starts))
            for c, column in enumerate(columns):
                column[probes] = summed.values(c + 1)
        return columns, many, each

    def _violated(self, relation: Relation, key: Sequence[int], codec: Codec) -> Exception:
        """The error for a key of several rows."""
        values = []
        for c, word in zip(self._key, key, strict=True):
            type = relation.attributes[c][1]
            [column] = typed((type.kind,), Updates((np.array([word]),), np.ones(1, np.int64), np.ones(1, np.int64))).columns
            values.append(repr(codec.to_python(type, column)[0]))
        named = ", ".join(relation.attributes[c][0] for c in self._key)
        message = f"{named} is no key of `{relation.name}`: several rows have {', '.join(values)}"
        return mistake("key-violation", message, "subscribe with more columns as key, or without one")


class Paired(Keyed):
    """The same with the rows that keys had before: those that went, as a key has one."""

    def of(self, relation: Relation, updates: Updates, codec: Codec, hidden: bool = False) -> ChangeEvents:
        after = self._after(relation, updates, codec, hidden)
        count = len(after.there)
        columns, there = tuple(np.zeros(count, np.int64) for _ in range(relation.arity)), np.zeros(count, bool)
        if count:
            order, starts = row_groups([updates.columns[c] for c in self._key], updates.rows)
            owners = np.empty(updates.rows, np.int64)
            owners[order] = np.repeat(np.arange(count), np.diff(starts, append=updates.rows))
            gone = np.flatnonzero(updates.diffs < 0)
            there[owners[gone]] = True
            for column, given in zip(columns, updates.columns, strict=True):
                column[owners[gone]] = given[gone]
        return ChangeEvents(relation, self._key, Side(columns, there), after, codec)


def _take_rows(updates: Updates, places: np.ndarray) -> Updates:
    return Updates(tuple(c[places] for c in updates.columns), updates.diffs[places], updates.rounds[places])


def envelope_of(relation: Relation, key: Sequence[str], order: Sequence[str], form: Form | None = None) -> Envelope:
    """The form that is asked for. Raises DlogError for columns that the relation does not have."""
    if form is not None and form not in get_args(Form):
        raise bad_argument("envelope", f"one of {', '.join(get_args(Form))}", form)
    if form is not None and not key:
        raise mistake("bad-key", f'`envelope="{form}"` is about keys: name the columns that tell rows apart, `key=...`')
    places = {name: c for c, (name, _) in enumerate(relation.attributes)}
    by = [(_place(relation, places, name.removeprefix("-")), -1 if name.startswith("-") else 1) for name in order]
    for column, _ in by:
        name, type = relation.attributes[column]
        if type.kind is Kind.RECORD:
            raise mistake("bad-order", f"rows cannot be in order of `{name}`: it has records")
    if not key:
        return Diffs(by)
    if by:
        raise mistake("bad-order", "`order` is for changes with diffs, not for those by `key`")
    return (Paired if form == "debezium" else Keyed)(relation, [_place(relation, places, name) for name in key])


def _place(relation: Relation, places: Mapping[str, int], name: str) -> int:
    if name not in places:
        raise mistake("bad-columns", f"`{relation.name}` has no column `{name}`: it has {', '.join(places)}")
    return places[name]
