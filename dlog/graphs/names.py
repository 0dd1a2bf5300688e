"""Ids of vertices and their numbers: programs on graphs know vertices by the numbers 0, 1, 2 ...

Numbers ascend with ids where ids have an order, so that the least number of some vertices is that of the least id. Vertices
that come later (in a graph that changes) get the next numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dlog.engine.values.arrow_memory import within_memory
from dlog.graphs.mistakes import mistake, unknown_vertex

Codes = NDArray[np.int64]
MAX_PLACES_PER_INTEGER = 8
"""Places of a table per integer up to which integers are numbered through one: trades its memory against sorting."""


class Names(Protocol):
    """Ids of vertices by number."""

    def __len__(self) -> int: ...

    def decode(self, codes: Codes) -> pa.Array:
        """The ids of numbers, as a column; what has no Arrow type, or several, as text, different for different ids."""

    def values(self, codes: Codes) -> list[Any]:
        """The ids of numbers, as Python values."""

    def objects(self) -> list[Any]:
        """All ids as Python values, by number."""

    def encode(self, ids: Any, where: str) -> Codes:
        """The numbers of ids; DlogError for the first that is not a vertex. `where` says where they stand."""


class ArrowNames:
    """Ids of one Arrow type: integers, floats, strings, timestamps ..."""

    def __init__(self, ids: pa.Array) -> None:
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)

    def decode(self, codes: Codes) -> pa.Array:
        return self.ids.take(pa.array(codes))

    def values(self, codes: Codes) -> list[Any]:
        return list(self.decode(codes).to_pylist())

    def objects(self) -> list[Any]:
        return list(self.ids.to_pylist())

    def encode(self, ids: Any, where: str) -> Codes:
        given = self._as_ids(ids, where)
        found = _places(given, self.ids)
        if found is None:
            known = pc.is_in(given, value_set=self.ids)
            raise unknown_vertex(given.filter(pc.invert(known))[0].as_py(), where)
        return found

    def _as_ids(self, ids: Any, where: str) -> pa.Array:
        """Ids as an array of this type; a value that could not be one is unknown."""
        column = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else _listed(ids)
        if isinstance(column, pa.Array | pa.ChunkedArray):
            normal = normal_column(column)
            if normal.type == self.ids.type:
                return normal
            column = normal.to_pylist()
        for value in column:
            if not _is_kept(value, self.ids.type):
                raise unknown_vertex(value, where)
        return pa.array(column, self.ids.type)


class ObjectNames:
    """Ids of any hashable values."""

    def __init__(self, ids: Sequence[Hashable]) -> None:
        self.ids = list(ids)
        self.numbers = {value: i for i, value in enumerate(self.ids)}

    def __len__(self) -> int:
        return len(self.ids)

    def decode(self, codes: Codes) -> pa.Array:
        return self._column.take(pa.array(codes))

    def values(self, codes: Codes) -> list[Any]:
        return [self.ids[i] for i in codes.tolist()]

    @cached_property
    def _column(self) -> pa.Array:
        """All ids: what of them is asked for does not decide the type."""
        try:
            column = pa.array(self.ids)
        except (pa.ArrowException, OverflowError):
            return _different_texts(self.ids)
        kept = all(map(_is_same, column.to_pylist(), self.ids))
        return column if kept else _different_texts(self.ids)

    def objects(self) -> list[Any]:
        return list(self.ids)

    def has(self, value: Any) -> bool:
        return _is_among(value, self.numbers)

    def encode(self, ids: Any, where: str) -> Codes:
        numbers = self.numbers
        try:
            return np.array([numbers[value] for value in _values(ids)], np.int64)
        except KeyError as error:
            raise unknown_vertex(error.args[0], where) from None


class GrowingNames:
    """Names to which more are added, each with the next number, and of which few are asked for at a time."""

    def __init__(self, names: ArrowNames | ObjectNames) -> None:
        self._names = names
        self._numbers: dict[Hashable, int] | None = None
        self._added: list[Hashable] = []

    def __len__(self) -> int:
        return len(self._names) + len(self._added)

    def decode(self, codes: Codes) -> pa.Array:
        return self._settled().decode(codes)

    def values(self, codes: Codes) -> list[Any]:
        return self._settled().values(codes)

    def objects(self) -> list[Any]:
        return self._settled().objects()

    def has(self, value: Any) -> bool:
        return _is_among(value, self._numbers_by_value())

    def encode(self, ids: Any, where: str) -> Codes:
        numbers = self._numbers_by_value()
        try:
            return np.array([numbers[value] for value in _values(ids)], np.int64)
        except KeyError as error:
            raise unknown_vertex(error.args[0], where) from None

    def add(self, *columns: Any) -> int:
        """Names those that are new, of all these columns or of none; how many they are."""
        numbers = self._numbers_by_value()
        new = [value for value in dict.fromkeys(value for ids in columns for value in _values(ids)) if value not in numbers]
        if new and isinstance(self._names, ArrowNames):
            column = plain(new)
            if column is None or column.type != self._names.ids.type:
                stray = repr(new[0]) if len(new) == 1 else "the new ones"
                raise mistake("bad-vertex", f"vertices have ids of type {self._names.ids.type}, and {stray} cannot be one")
        for value in new:
            numbers[value] = len(numbers)
        self._added += new
        return len(new)

    def _numbers_by_value(self) -> dict[Hashable, int]:
        if self._numbers is None:
            self._numbers = {value: i for i, value in enumerate(self.objects())}
        return self._numbers

    def _settled(self) -> ArrowNames | ObjectNames:
        """All names in one piece."""
        if self._added:
            names, added = self._names, self._added
            if isinstance(names, ArrowNames):
                self._names = ArrowNames(pa.concat_arrays([names.ids, pa.array(added, names.ids.type)]))
            else:
                self._names = ObjectNames([*names.ids, *added])
            self._added = []
        return self._names


# ------------------------------------------------------------------------------------------------------------------ numbering


def number_columns(columns: Sequence[pa.Array]) -> tuple[ArrowNames, list[Codes]]:
    """Names for all values of some columns of one type, in ascending order, and the columns as numbers."""
    if pa.types.is_int64(columns[0].type):
        found = _number_compact([column.to_numpy(zero_copy_only=False) for column in columns])
        if found is not None:
            return found
    ids = pc.unique(pa.chunked_array(columns))
    names = ArrowNames(ids.take(pc.sort_indices(ids)))
    return names, [names.encode(column, "edges") for column in columns]


def number_objects(columns: Sequence[Sequence[Hashable]]) -> tuple[ObjectNames, list[Codes]]:
    """The same for any hashable values; without an order of theirs, in the order they come."""
    if any(value is None for column in columns for value in column):
        raise mistake("bad-vertex", "a vertex cannot be named None", "every vertex needs an id")
    try:
        ids = dict.fromkeys(value for column in columns for value in column)
    except TypeError as error:
        raise mistake("bad-vertex", f"a vertex cannot be named so: {error}", "ids of vertices are hashable") from None
    try:
        names = ObjectNames(sorted(ids))  # type: ignore[type-var]
    except TypeError:
        names = ObjectNames(list(ids))
    return names, [names.encode(column, "edges") for column in columns]


def _number_compact(columns: list[Codes]) -> tuple[ArrowNames, list[Codes]] | None:
    """Integers that lie close together, without sorting them."""
    filled = [column for column in columns if len(column)]
    if not filled:
        return ArrowNames(pa.array([], pa.int64())), columns
    low, high = min(int(c.min()) for c in filled), max(int(c.max()) for c in filled)
    if high - low > MAX_PLACES_PER_INTEGER * sum(map(len, filled)):
        return None
    present = np.zeros(high - low + 1, np.bool_)
    for column in filled:
        present[column - low] = True
    numbers = np.cumsum(present) - 1
    return ArrowNames(pa.array(np.flatnonzero(present) + low)), [numbers[column - low] for column in columns]


def _places(column: pa.Array, ids: pa.Array) -> Codes | None:
    """The positions of a column's values among ids; None if one is not there."""
    places = pc.index_in(column, value_set=ids)
    return None if places.null_count else places.to_numpy(zero_copy_only=False).astype(np.int64)


def normal_column(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece and in the widest type of its kind, so that equal ids are equal."""
    whole = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    try:
        joined = within_memory(whole).combine_chunks()
    except pa.ArrowInvalid as error:
        raise mistake("bad-vertex", f"ids of vertices are not within their memory: {error}") from None
    type = joined.type
    if pa.types.is_dictionary(type):
        return normal_column(joined.dictionary_decode())
    if pa.types.is_integer(type):
        try:
            return joined.cast(pa.int64())
        except pa.ArrowInvalid:
            raise mistake("bad-vertex", "integers that name vertices must be less than 2^63") from None
    if pa.types.is_floating(type):
        return joined.cast(pa.float64())
    if pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type):
        try:
            return joined.cast(pa.large_binary()).cast(pa.large_string())  # which looks at the bytes
        except pa.ArrowInvalid:
            raise mistake("bad-vertex", "strings that name vertices must be UTF-8") from None
    return joined


def plain(values: Sequence[Any]) -> pa.Array | None:
    """Python values as a column if all are integers, all strings or all floats: what Arrow keeps as they are."""
    for kind, type in ((int, pa.int64()), (str, pa.large_string()), (float, pa.float64())):
        if all(isinstance(value, kind) and not isinstance(value, bool) for value in values):
            try:
                return pa.array(values, type)
            except (OverflowError, pa.ArrowInvalid):
                return None
    return None


def _is_among(value: Any, numbers: Mapping[Hashable, int]) -> bool:
    try:
        return value in numbers
    except TypeError:  # not hashable
        return False


def _is_kept(value: Any, type: pa.DataType) -> bool:
    """Whether a Python value is the same in a column of this type."""
    try:
        return bool(pa.array([value], type)[0].as_py() == value)
    except (pa.ArrowException, OverflowError):
        return False


def _is_same(value: Any, given: Any) -> bool:
    """Whether Arrow gives back what it was given: tuples come back as lists, strings must not as bytes."""
    if isinstance(given, tuple):
        return isinstance(value, list) and len(value) == len(given) and all(map(_is_same, value, given))
    return bool(value == given)


def _different_texts(values: Sequence[Any]) -> pa.Array:
    """The values as text: as `str` has them where that keeps them apart, else as `repr` has them, with numbers if need be."""
    for shown in (str, repr):
        texts = [shown(value) for value in values]
        if len(set(texts)) == len(texts):
            return pa.array(texts)
    return pa.array([f"{text} #{i}" for i, text in enumerate(texts)])


def _listed(ids: Any) -> Any:
    return pa.array(ids) if isinstance(ids, np.ndarray) and ids.dtype != np.object_ else _values(ids)


def _values(ids: Any) -> list[Any]:
    """Ids as Python values."""
    if isinstance(ids, pa.Array | pa.ChunkedArray):
        return list(ids.to_pylist())
    if isinstance(ids, np.ndarray):
        return list(ids.tolist())
    return [value.item() if isinstance(value, np.generic) else value for value in ids]


def one_or_many(ids: Any, names: Names | None = None) -> Iterable[Any]:
    """Ids as given to a method: one, or several in any container."""
    if isinstance(names, ObjectNames | GrowingNames) and names.has(ids):
        return [ids]
    if isinstance(ids, str | bytes | int | float | np.generic) or not isinstance(ids, Iterable):
        return [ids]
    return ids if isinstance(ids, pa.Array | pa.ChunkedArray | np.ndarray) else list(ids)
