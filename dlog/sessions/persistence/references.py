"""A check of the ids in rows of a state: they stand for symbols and records that are there, of the right types, none inside
itself. Compiled code looks ids up without asking, so ids of somebody else's choice must not come that far.

Records of one arity share a table, whatever their types, so a record may be right as one type and wrong as another. A record is
made after those inside it: where these have its arity their ids are less, unless it was there before, as one of another type.
Where they are not, or types of several arities are inside one another, records are followed from the innermost out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dlog.engine.ir.rules import Kind, Type
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.values.symbols import SymbolTable

_MAX_ID = 2**31 - 1


class References:
    """`restored` says of each arity how many records are from the disk; those after them have been made by this process."""

    def __init__(
        self, types: Mapping[str, Type], symbols: SymbolTable, records: RecordTables, restored: Mapping[int, int]
    ) -> None:
        self._types, self._symbols, self._records, self._restored = types, symbols, records, restored
        self._wrong: dict[str, np.ndarray] | None = None

    def hold(self, types: Sequence[Type], columns: Sequence[np.ndarray]) -> bool:
        """Whether all ids in columns of these types stand for something."""
        return all(self._holds(type, column) for type, column in zip(types, columns, strict=True))

    def _holds(self, type: Type, ids: np.ndarray) -> bool:
        if type.kind is Kind.SYMBOL:
            return within(ids, 0, len(self._symbols) - 1)
        if type.kind is not Kind.RECORD:
            return True
        if not within(ids, 1 if type.branches else 0, self._records.table(len(type.fields)).rows):
            return False
        if self._wrong is None:
            self._wrong = self._all_wrong()
        wrong = self._wrong[type.name]
        return not wrong.any() or not wrong[ids[(ids > 0) & (ids <= len(wrong))] - 1].any()

    # ------------------------------------------------------------------------------------------------------------- records

    def _all_wrong(self) -> dict[str, np.ndarray]:
        """Masks by type of the restored records of its arity that cannot be of it."""
        found = {type.name: self._wrong_by_itself(type) for type in self._types.values() if type.kind is Kind.RECORD}
        self._spread(found)
        mixed = self._mixed(found)
        if mixed:
            for name, rooted in self._rooted(mixed, found).items():
                found[name] |= ~rooted
            self._spread(found)
        return found

    def _fields(self, type: Type) -> Iterator[tuple[Type, np.ndarray]]:
        """The types and values of the fields of a record type or branch; an algebraic data type has those of its branches."""
        arity = len(type.fields)
        rows = self._restored.get(arity, 0)
        for c, (_, name) in enumerate(() if type.branches else type.fields):
            yield self._types[name], self._records.table(arity).column(c)[:rows]

    def _wrong_by_itself(self, type: Type) -> np.ndarray:
        if type.branches:
            tags = self._tags(type)
            return (tags < 0) | (tags >= len(type.branches))
        wrong = np.zeros(self._restored.get(len(type.fields), 0), bool)
        if type.adt:
            wrong |= self._tags(type) != self._types[type.adt].branches.index(type.name)
        for inner, values in self._fields(type):
            if inner.kind is Kind.SYMBOL:
                wrong |= (values < 0) | (values >= len(self._symbols))
            elif inner.kind is Kind.RECORD:
                wrong |= (values < bool(inner.branches)) | (values > self._restored.get(len(inner.fields), 0))
        return wrong

    def _tags(self, type: Type) -> np.ndarray:
        """The first fields of the records of an algebraic data type's arity."""
        arity = len(type.fields)
        return self._records.table(arity).column(0)[: self._restored.get(arity, 0)]

    def _branches(self, name: str) -> Iterator[tuple[str, np.ndarray]]:
        """The branches of a type, and which records have each."""
        for tag, branch in enumerate(self._types[name].branches):
            yield branch, self._tags(self._types[name]) == tag

    def _spread(self, wrong: dict[str, np.ndarray]) -> None:
        """Marks records wrong that have something wrong inside."""
        waiting = {name for name, found in wrong.items() if found.any()}
        while waiting:
            inner = waiting.pop()
            for name, found in wrong.items():
                before = int(found.sum())
                for type, values in self._fields(self._types[name]):
                    if type.name == inner:
                        found |= _flags_of(wrong[inner], values)
                for branch, chosen in self._branches(name):
                    if branch == inner:
                        found |= chosen & wrong[inner]
                if int(found.sum()) > before:
                    waiting.add(name)

    def _mixed(self, wrong: dict[str, np.ndarray]) -> set[str]:
        """The record types that are inside themselves by way of others, of another arity, or where ids do not say what was made
        before."""
        records = [t for t in self._types.values() if t.kind is Kind.RECORD]
        inside = {t.name: set(t.branches) or {f for _, f in t.fields} for t in records}
        reached = {name: _closure(name, inside) for name in inside}
        unordered = {name for name in inside if self._is_unordered(self._types[name], ~wrong[name])}
        return {
            a for a in inside for b in reached[a] & inside.keys()
            if a in reached[b] and (b in unordered or len(self._types[a].fields) != len(self._types[b].fields))
        }  # fmt: skip

    def _is_unordered(self, type: Type, chosen: np.ndarray) -> bool:
        """Whether some of the chosen records have one of their arity inside whose id is not less."""
        same = [v for inner, v in self._fields(type) if inner.kind is Kind.RECORD and len(inner.fields) == len(type.fields)]
        return any(bool((chosen & (values > np.arange(len(chosen)))).any()) for values in same)

    def _rooted(self, mixed: set[str], wrong: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The records that come to an end, by type: from those with none of these types inside, to those around them."""
        starts: dict[str, int] = {}
        count = 0
        for name in sorted(mixed):
            starts[name], count = count, count + len(wrong[name])
        pairs = [np.empty((2, 0), np.int64)]
        for name in starts:
            for type, values in self._fields(self._types[name]):
                if type.name in starts:
                    places = np.flatnonzero(~wrong[name] & (values > 0))
                    pairs.append(np.stack([starts[type.name] + values[places].astype(np.int64) - 1, starts[name] + places]))
            for branch, chosen in self._branches(name):
                if branch in starts:
                    places = np.flatnonzero(~wrong[name] & chosen)
                    pairs.append(np.stack([starts[branch] + places, starts[name] + places]))
        inner, outer = np.concatenate(pairs, axis=1)
        order = np.argsort(inner, kind="stable")
        outer = outer[order]
        first = np.searchsorted(inner[order], np.arange(count + 1))
        missing = np.bincount(outer, minlength=count)
        rooted = np.zeros(count, bool)
        ready = np.flatnonzero(missing == 0)
        while len(ready):
            rooted[ready] = True
            sizes = first[ready + 1] - first[ready]
            around = outer[np.repeat(first[ready] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())]
            np.subtract.at(missing, around, 1)
            around = np.unique(around)
            ready = around[missing[around] == 0]
        return {name: rooted[start : start + len(wrong[name])] for name, start in starts.items()}


def within(ids: np.ndarray, least: int, most: int) -> bool:
    """Whether all ids are in a range."""
    return not len(ids) or (int(ids.min()) >= least and int(ids.max()) <= most)


def are_ids(kinds: Sequence[Kind], columns: Sequence[np.ndarray]) -> bool:
    """Whether words of symbols and records can be ids at all."""
    ids = (column for kind, column in zip(kinds, columns, strict=True) if kind in (Kind.SYMBOL, Kind.RECORD))
    return all(within(column, 0, _MAX_ID) for column in ids)


def _flags_of(wrong: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The flags of the records with these ids, False where there are none."""
    there = (values > 0) & (values <= len(wrong))
    found = np.zeros(len(values), bool)
    found[there] = wrong[values[there] - 1]
    return found


def _closure(name: str, inside: Mapping[str, set[str]]) -> set[str]:
    """All types that are inside a type, however deep."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for inner in inside.get(waiting.pop(), set()) - found:
            found.add(inner)
            waiting.append(inner)
    return found
