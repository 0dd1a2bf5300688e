"""Tables of Arrow's as words. Kernels read the columns that are numbers or texts as most are, all in one go; the others are
read by Arrow itself, column by column."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.dataflow.arrow_texts import bad_rows, beyond_memory, checked_texts, no_text
from dlog.dataflow.dates import numbers_in_arrow
from dlog.dataflow.kinds import Kind, Objects, Repeated, encode, objects_of
from dlog.dataflow.schema import Schema
from dlog.engine.formats.columns import Unclear, places
from dlog.engine.kernels.arrow_structs import KnownText, KnownTexts
from dlog.engine.kernels.codes import ArrowStatus, ArrowValues
from dlog.engine.kernels.values.arrow_columns import FEW_TEXTS, read_columns
from dlog.engine.values.addresses import address_of
from dlog.engine.values.arrow_memory import all_within_memory, exported
from dlog.engine.values.domains import OutOfDomain, whole_decimals
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    import pyarrow as pa

_KNOWN = KnownTexts.place


class _KnownTexts:
    """A few texts of a column, whose numbers the kernel finds by itself: columns of few different ones have the same again and
    again."""

    def __init__(self) -> None:
        self._words = np.zeros(_KNOWN.texts + KnownText.place.size * FEW_TEXTS, np.int64)
        self._texts: list[bytes] = []
        self._bytes = np.empty(0, np.uint8)
        self.address = address_of(self._words)

    @property
    def numbers(self) -> np.ndarray:
        """A copy of their numbers."""
        return self._fields[: len(self._texts), KnownText.place.number].copy()

    @property
    def _fields(self) -> np.ndarray:
        return self._words[_KNOWN.texts :].reshape(FEW_TEXTS, -1)

    def add(self, texts: list[bytes], numbers: np.ndarray) -> None:
        """Adds others, and forgets those before where they are too many."""
        if len(self._texts) + len(texts) <= FEW_TEXTS:
            texts, numbers = self._texts + texts, np.concatenate([self.numbers, numbers])
        self._texts, self._bytes = texts, np.frombuffer(b"".join(texts), np.uint8)
        start = address_of(self._bytes)
        ends = np.cumsum([len(text) for text in texts])
        lengths = np.diff(ends, prepend=0)
        self._words[_KNOWN.count], self._words[_KNOWN.limit] = len(texts), start + len(self._bytes)
        self._fields[: len(texts)] = np.stack([start + ends - lengths, lengths, numbers], axis=1)


class TableReader:
    """Reads tables, which as a rule have one schema of Arrow's. The texts of some columns, by their places, are `held`."""

    def __init__(self, schema: Schema, objects: Objects, held: frozenset[int] = frozenset()) -> None:
        self.schema, self.objects, self.held = schema, objects, held
        self._seen: pa.Schema | None = None

    def fill(self, table: pa.Table, block: np.ndarray, holds: list[int]) -> None:
        """Writes the columns of a table, in the order of the schema, to the rows of a block, and to `holds` which texts are
        held for them. Raises DlogError for what is no rows of the schema."""
        if self._seen is None or not self._seen.equals(table.schema):
            self._prepare(table.schema)
        if self._order is not None:
            table = table.select(self._order)
        read = self._reads and self._read(table, block)
        if read and self._all:
            return
        for place, value in enumerate(self._values):
            if not (read and value):
                self._by_arrow(table, place, block[place], holds)

    def _prepare(self, given: pa.Schema) -> None:
        """Finds out how tables of this schema of Arrow's are read."""
        found = _places(self.schema, given.names)
        self._order = None if found == [*range(len(given.names))] else found
        types = [given.types[place] for place in found]
        kinds = (kind if place not in self.held else None for place, kind in enumerate(self.schema.kinds))
        self._values = [self._value(kind, type) for kind, type in zip(kinds, types, strict=True)]
        self._codes = np.array(self._values, np.int64)
        self._reads, self._all = any(self._values), all(self._values)
        read = next((place for place, value in enumerate(self._values) if value), 0)
        self._stand_ins = [place if value else read for place, value in enumerate(self._values)]
        self._texts = [place for place, value in enumerate(self._values) if value == ArrowValues.TEXTS]
        self._known = [_KnownTexts() for _ in self._texts]
        self._known_at = np.array([known.address for known in self._known], np.int64)
        self._given = address_of(self._codes), address_of(self._known_at)
        self._seen = given

    def _value(self, kind: Kind | None, type: pa.DataType) -> ArrowValues:
        """What the kernel reads of a column; of one that is held, None, it reads nothing."""
        found = (value for each, read, value in _read_types() if each is kind and read == type)
        return next(found, ArrowValues.NOTHING)

    def _read(self, table: pa.Table, found: np.ndarray) -> bool:
        """Has the kernel read its columns; false where there may be nulls among them."""
        begin, room, end = address_of(found), table.num_rows, 0
        codes, known_at = self._given
        for batch in self._batches(table):
            start, end = end, end + batch.num_rows
            told = np.empty((len(self._texts), 1 + 2 * FEW_TEXTS + end - start), np.int64)
            _held, array = exported(batch)
            given = array, codes, begin + 8 * start, room, known_at, address_of(told)
            status = read_columns(*given)
            if status == ArrowStatus.DAMAGED:
                raise beyond_memory("texts do not follow each other")
            if status == ArrowStatus.NULLS:
                return False
            if status == ArrowStatus.NEW_TEXTS:
                for place, known, texts in zip(self._texts, self._known, told, strict=True):
                    if texts[0]:
                        places = found[place, start:end]
                        numbers = self._numbers(batch, place, known, texts)
                        numbers.take(places, out=places, mode="clip")  # "raise" would look for places that are none, in a copy
        return True

    def _batches(self, table: pa.Table) -> list[pa.RecordBatch]:
        """Its rows in batches, one if there are texts, so that each different one is made once; in place of a column that the
        kernel does not read stands one that it does, as Arrow itself must not touch it unchecked. Raises DlogError where a
        column begins or ends beyond its memory."""
        table = table if self._all else table.select(self._stand_ins)
        batches = [batch for batch in table.to_batches() if batch.num_rows]
        for batch in batches:
            try:
                batch.validate()
            except (ValueError, IndexError) as error:  # Arrow's are such
                raise beyond_memory(error) from None
        return table.combine_chunks().to_batches() if len(batches) > 1 and self._texts else batches

    def _numbers(self, batch: pa.RecordBatch, place: int, known: _KnownTexts, told: np.ndarray) -> np.ndarray:
        """The numbers of the different texts of a column: of those that are known, and of others, of which the kernel has told
        (`read_columns`)."""
        count, before = int(told[0]), known.numbers
        try:
            if count > FEW_TEXTS:
                column, rows = batch.column(place), told[1 + 2 * FEW_TEXTS :][:count]
                numbers = self.objects.encode((column.take(rows) if count < len(column) else column).to_pylist())
                return np.concatenate([before, numbers])
            spans = told[1 : 1 + 2 * count].tolist()
            texts = [ctypes.string_at(start, size) for start, size in zip(spans[::2], spans[1::2], strict=True)]
            numbers = self.objects.encode([text.decode() for text in texts])
        except UnicodeDecodeError as error:
            raise no_text(error) from None
        known.add(texts, numbers)
        return np.concatenate([before, numbers])

    def _by_arrow(self, table: pa.Table, place: int, words: np.ndarray, holds: list[int]) -> None:
        """Writes a column's words."""
        name, kind, column = self.schema.names[place], self.schema.kinds[place], table.column(place)
        if place not in self.held:
            words[:] = encode(kind, column_of(name, kind, column), self.objects)
            return
        chunks, end = checked_texts(column), 0
        for part in [objects_of(column_of(name, kind, column))] if chunks is None else chunks:
            start, end = end, end + len(part)
            holds.append(self.objects.held.hold(part))
            words[start:end] = np.arange(holds[-1], holds[-1] + len(part))


def _places(schema: Schema, given: list[str]) -> list[int]:
    """The place of each column in a table with these: by name or in order, as relations take them. Raises DlogError where
    neither is clear."""
    try:
        found = places(schema.names, given)
    except Unclear as error:
        notes = (*error.notes, f"the columns are {', '.join(given)}")
        raise DlogError(Diagnostic("unclear-columns", f"rows of ({schema}): {error.message}", notes=notes)) from None
    if found is None:
        raise bad_rows(f"a table of {', '.join(given)} is no rows of ({schema})")
    return [*found]


@cache
def _read_types() -> tuple[tuple[Kind, pa.DataType, ArrowValues], ...]:
    """The kinds and types of Arrow's of columns that the kernel reads. (Types from outside may have no hash.)"""
    import pyarrow as pa

    return (
        (int, pa.int64(), ArrowValues.WORDS),
        (int, pa.int32(), ArrowValues.NUMBERS),
        (int, pa.uint32(), ArrowValues.UNSIGNED),
        (int, pa.date32(), ArrowValues.NUMBERS),
        (int, pa.timestamp("us"), ArrowValues.WORDS),
        (float, pa.float64(), ArrowValues.FLOATS),
        (str, pa.string(), ArrowValues.TEXTS),
    )


def column_of(name: str, kind: Kind, given: pa.Array | pa.ChunkedArray) -> Any:
    """An array, or Python's values; of texts each different one once. Raises DlogError for what cannot be read, and for nulls:
    but among objects they are None."""
    import pyarrow as pa

    try:
        column = all_within_memory(given)
    except pa.ArrowInvalid as error:
        raise beyond_memory(error) from None
    try:
        values = _values_of(kind, column)
    except UnicodeDecodeError as error:
        raise no_text(error) from None
    except OutOfDomain as error:
        raise bad_rows(f"column `{name}`: {error}") from None
    except pa.ArrowException as error:
        raise bad_rows(f"a column of {column.type} cannot be read: {error}") from None
    if kind is not object and column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise bad_rows(f"column `{name}` has a null in row {row + 1}, where {kind.__name__} is meant")
    return values


def _values_of(kind: Kind, column: pa.ChunkedArray) -> Any:
    import pyarrow as pa

    if kind in (int, float) and pa.types.is_decimal(column.type):
        wanted = pa.int64() if kind is int else pa.float64()
        column = whole_decimals(column, wanted).cast(wanted)
    if kind not in (str, object):
        return (numbers_in_arrow(column) if kind is int else column).to_numpy()
    if kind is str and not column.null_count and (found := _repeated(column)) is not None:
        return found
    return column.to_pylist()


def _repeated(column: pa.ChunkedArray) -> Repeated | None:
    """The texts of a column without nulls; None where it has others than texts, or their dictionaries do not fit together."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        if column.type not in (pa.string(), pa.large_string()):
            return None
        column = column.dictionary_encode()
    try:
        encoded = column.unify_dictionaries().combine_chunks()
    except pa.ArrowInvalid:  # all different texts are more than their indices can tell apart
        return None
    whole = encoded.dictionary.type in (pa.string(), pa.large_string()) and not encoded.dictionary.null_count
    return Repeated(encoded.dictionary.to_pylist(), encoded.indices.to_numpy()) if whole else None
