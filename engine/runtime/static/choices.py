"""The choice of a choice domain: of rows that agree on a key the first one, in the order of their values.

Numbers are ordered by value; strings that stand in facts of the program's text come first, in the order of the text, and the
others by their bytes. Records are ordered by their depth, nil first, then algebraic data by their branches, then field by
field: no record comes before one that it holds, as none is made before. So the choice depends on which rows there are, not on
how they came. With several keys the rows are gone through in that order, and one stays if it agrees on no key with one that
stays already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.formats.order import sort_key, sorted_words
from dlog.engine.ir.rules import Constant, Kind, Type
from dlog.engine.kernels.static.choice import free_rows, least_rows
from dlog.engine.kernels.static.storage import strictly_sorted
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.engine.values.shapes import own_types, shapes


@dataclass(frozen=True)
class ValueOrder:
    """The order of the values of one run."""

    catalog: Catalog

    @cached_property
    def _text_symbols(self) -> np.ndarray:
        """The ids of the strings of facts in the program's text, in their order."""
        symbols = self.catalog.program.first_symbols
        return np.array([self.catalog.encoder.word(Constant(text, Kind.SYMBOL)) for text in symbols], np.int64)

    @cached_property
    def first_symbols(self) -> np.ndarray:
        """By id of a symbol its place among the strings of facts, from 1 on; 0 where it has none, as all beyond the end."""
        ids = self._text_symbols
        places = np.zeros(int(ids.max(initial=-1)) + 1, np.int32)
        places[ids] = np.arange(1, len(ids) + 1)
        return places

    def keys(self, type: Type, column: np.ndarray) -> np.ndarray:
        """Integers that are ordered as the values of a column."""
        match type.kind:
            case Kind.RECORD:
                return self._of_records(type, column)
            case Kind.SYMBOL:
                return self._of_symbols(column)
            case kind:
                return sort_key(kind, column, self.catalog.symbols).keys

    def _of_symbols(self, ids: np.ndarray) -> np.ndarray:
        ranks = sort_key(Kind.SYMBOL, ids, self.catalog.symbols).keys.astype(np.int64)
        first = self._text_symbols
        if not len(first):
            return ranks
        order = np.argsort(first)
        places = np.searchsorted(first, ids, sorter=order).clip(max=len(first) - 1)
        at = order[places]
        return np.where(first[at] == ids, at - len(first), ranks)

    def _of_records(self, type: Type, ids: np.ndarray) -> np.ndarray:
        """Ranks of records. What they hold is found level by level, and ranked from the last level up."""
        levels = [{type.name: np.unique(ids)}]
        while any(len(found) for found in levels[-1].values()):
            levels.append(self._inner_records(levels[-1]))
        ranked = {name: _Ranked(none, none, none) for name, none in levels[-1].items()}
        for level in levels[-2::-1]:
            ranked = {name: self._ranked(self._type(name), found, ranked) for name, found in level.items()}
        return ranked[type.name].of(ids)[0]

    def text_places(self, relation: str, rows: StoredRelation) -> np.ndarray:
        """Where each row stands among the facts of the text; those that do not all have the same place behind."""
        facts = self.catalog.program.retentions[relation].facts
        if not facts:
            return np.zeros(rows.rows, np.int64)
        columns = self.catalog.encoder.columns_of(facts, rows.kinds)
        together = [np.concatenate((f, rows.column(c).astype(np.int64))) for c, f in enumerate(columns)]
        _, first, inverse = np.unique(_numbered(together), return_index=True, return_inverse=True)
        return first[inverse[len(facts) :]].clip(max=len(facts))

    def _type(self, name: str) -> Type:
        return self.catalog.program.types[name]

    def _shapes(self, type: Type, ids: np.ndarray) -> Iterator[tuple[np.ndarray, list[tuple[Type, np.ndarray]]]]:
        """The records among ids, those of an algebraic data type by branches: their places, the types and values of fields."""
        types = self.catalog.program.types
        for shape in shapes(type, types, ids, self.catalog.records):
            yield shape.places, list(zip(own_types(shape.type, types), shape.columns, strict=True))

    def _inner_records(self, level: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """By type, the records that records hold."""
        found: dict[str, list[np.ndarray]] = {}
        for name, ids in level.items():
            for _, fields in self._shapes(self._type(name), ids):
                for type, values in fields:
                    if type.kind is Kind.RECORD:
                        found.setdefault(type.name, []).append(values)
        return {name: np.unique(np.concatenate(parts)) for name, parts in found.items()}

    def _ranked(self, type: Type, ids: np.ndarray, held: Mapping[str, _Ranked]) -> _Ranked:
        """Distinct ids, which ascend, with the ranks of what the records hold."""
        beside, depths = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
        for number, (places, fields) in enumerate(self._shapes(type, ids)):
            columns = [np.full(len(places), number, np.int64)]
            for field, values in fields:
                if field.kind is Kind.RECORD:
                    ranks, below = held[field.name].of(values)
                    depths[places] = np.maximum(depths[places], below)
                    columns.append(ranks)
                else:
                    columns.append(self.keys(field, _as_typed(field.kind, values)))
            depths[places] += 1
            beside[places[np.lexsort(columns[::-1])]] = np.arange(len(places)) + number * len(ids)
        ranks = np.empty(len(ids), np.int64)
        ranks[np.lexsort((beside, depths))] = np.arange(len(ids))
        return _Ranked(ids, ranks, depths)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Distinct ids of records of one type, ascending, their ranks among each other and their depths: nil is 0 deep."""

    ids: np.ndarray
    ranks: np.ndarray
    depths: np.ndarray

    def of(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places = np.searchsorted(self.ids, ids)
        return self.ranks[places], self.depths[places]


def first_rows(
    relation: StoredRelation,
    types: Sequence[Type],
    keys: Sequence[tuple[int, ...]],
    order: ValueOrder,
    leading: np.ndarray | None = None,
) -> np.ndarray:
    """The places of the rows that stay: first are those that `leading` puts first, then values decide."""
    if relation.rows == 0:
        return np.empty(0, np.int64)
    alike = keys[0] if len(keys) == 1 else ()
    if not alike and leading is None and _are_sorted(relation, types):
        return _free([relation.column(c) for c in range(relation.arity)], keys, None)
    own = [c for c in range(relation.arity) if c not in alike]
    compared = [] if leading is None else [leading]
    compared += [_signed(order.keys(types[c], relation.typed(c))) for c in own]
    held = [relation.column(c) for c in range(relation.arity)]
    return _least(held, keys[0], compared) if alike else _free(held, keys, _sorted(compared))


def _are_sorted(relation: StoredRelation, types: Sequence[Type]) -> bool:
    """Whether the rows, of numbers, are in their order already: so loops over sorted columns derive them."""
    return all(type.kind is Kind.NUMBER for type in types) and bool(strictly_sorted(relation.address))


def _least(held: Sequence[np.ndarray], key: Sequence[int], compared: Sequence[np.ndarray]) -> np.ndarray:
    """The first row of each key."""
    cells, chosen = _cells((*held, *compared)), np.empty(len(held[0]), np.int64)
    columns, others = words(key), words(range(len(held), len(held) + len(compared)))
    counts = len(key), others.address, len(compared), len(chosen)
    return _first_places(chosen, least_rows(cells.address, columns.address, *counts, int(chosen.ctypes.data)))


def _free(held: Sequence[np.ndarray], keys: Sequence[Sequence[int]], order: np.ndarray | None) -> np.ndarray:
    """The rows that agree on no key with an earlier one that is here, too; without an order they come as they are."""
    cells, chosen = _cells(held), np.empty(len(held[0]), np.int64)
    columns, ends = words([c for key in keys for c in key]), words(np.cumsum([len(key) for key in keys]).tolist())
    rest = len(keys), 0 if order is None else int(order.ctypes.data), len(chosen), int(chosen.ctypes.data)
    return _first_places(chosen, free_rows(cells.address, columns.address, ends.address, *rest))


def _first_places(places: np.ndarray, count: int) -> np.ndarray:
    if count < 0:
        raise MemoryError
    return np.sort(places[:count])


def _cells(columns: Iterable[np.ndarray]) -> Struct:
    return words([value for column in columns for value in (int(column.ctypes.data), column.itemsize)])


def _signed(keys: np.ndarray) -> np.ndarray:
    """The keys as 32 or 64 bits with a sign."""
    if keys.dtype == np.uint64:
        return (keys ^ np.uint64(1 << 63)).view(np.int64)
    return np.ascontiguousarray(keys if keys.dtype in (np.int32, np.int64) else keys.astype(np.int64))


def _sorted(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The places of rows in their order: packed into words with their columns where all of that fits."""
    rows = len(columns[0])
    lows = [int(column.min()) for column in columns]
    widths = [(int(column.max()) - low).bit_length() for column, low in zip(columns, lows, strict=True)]
    place = (rows - 1).bit_length()
    if sum(widths) + place > 63:
        return np.lexsort(columns[::-1])
    packed = np.zeros(rows, np.uint64)
    for column, low, width in zip(columns, lows, widths, strict=True):
        packed <<= np.uint64(width)
        packed |= (column.astype(np.int64) - low).view(np.uint64)
    packed <<= np.uint64(place)
    packed |= np.arange(rows, dtype=np.uint64)
    packed = sorted_words(packed, sum(widths) + place)
    packed &= np.uint64((1 << place) - 1)
    return packed.view(np.int64)


def _numbered(columns: Sequence[np.ndarray]) -> np.ndarray:
    """A number for each row that is the same where rows are equal."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, inverse = np.unique(column, return_inverse=True)
        _, numbers = np.unique(numbers * len(values) + inverse, return_inverse=True)
    return numbers


def _as_typed(kind: Kind, values: np.ndarray) -> np.ndarray:
    match kind:
        case Kind.FLOAT:
            return values.view(np.float64)
        case Kind.UNSIGNED:
            return values.view(np.uint64)
        case Kind.SYMBOL:
            return values.astype(np.int32)
        case Kind.NUMBER | Kind.RECORD:
            return values
