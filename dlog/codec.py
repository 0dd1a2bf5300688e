"""Between columns of the engine and values of Python, NumPy and Arrow.

Python values are int, float, str, datetime.date and datetime.datetime, a tuple for a record, None for nil, a `Branch` for a
value of an algebraic data type. They are for results a person looks at and facts a test writes down; bulk data goes through
arrays.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dlog.branch import Branch
from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Kind, Program, Relation, Type
from dlog.engine.values import domains
from dlog.engine.values.arrow_memory import within_memory
from dlog.engine.values.shapes import own_types, packed, shapes
from dlog.engine.values.symbols import NotText, SymbolTable
from dlog.engine.values.table import DTYPES, Table, typed
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    import pyarrow as pa

    from dlog.engine.formats.records import RecordTables

Row = tuple[Any, ...]
_Key = tuple[str, int]  # (record type, id)
NIL = 0
_ABBREVIATED = reprlib.Repr()
_ABBREVIATED.maxstring = _ABBREVIATED.maxlong = _ABBREVIATED.maxother = 80


@dataclass(frozen=True, slots=True)
class Codec:
    """Translates columns of one run, whose symbols and records it knows."""

    program: Program
    symbols: SymbolTable
    records: RecordTables

    # ------------------------------------------------------------------------------------------------------- from columns

    def to_python(self, type: Type, column: np.ndarray) -> list[Any]:
        """The values of a column, in order."""
        match type.kind:
            case Kind.SYMBOL:
                return _each_once(column, self._texts)
            case Kind.RECORD:
                return _each_once(column, lambda ids: self._tuples(type, ids))
            case Kind.FLOAT | Kind.NUMBER | Kind.UNSIGNED:
                return domains.to_python(type, column)

    def to_numpy(self, type: Type, column: np.ndarray) -> np.ndarray:
        """The values as int64, uint64, float64 or datetime64, or as an object array of strings or records."""
        if type.kind in DTYPES:
            return domains.to_numpy(type, column)
        return np.fromiter(self.to_python(type, column), object, len(column))

    def to_arrow(self, type: Type, column: np.ndarray) -> pa.Array:
        """The values as an Arrow array; records are strings as in output files."""
        import pyarrow as pa

        match type.kind:
            case Kind.SYMBOL:
                return self.symbols.to_arrow(column)
            case Kind.RECORD:
                from dlog.engine.formats.record_texts import record_texts

                texts, places = record_texts(type, column, self.program.types, self.symbols, self.records, quote=False)
                offsets = np.ascontiguousarray(texts.offsets)
                distinct = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(texts.data))
                return distinct.take(pa.array(places))
            case Kind.FLOAT | Kind.NUMBER | Kind.UNSIGNED:
                try:
                    return domains.to_arrow(type, column)
                except domains.OutOfDomain as error:
                    raise DlogError(Diagnostic("number-out-of-range", str(error))) from None

    def _texts(self, ids: np.ndarray) -> list[str]:
        data, offsets = self.symbols.gather(ids)
        heap, ends = data.tobytes(), offsets.tolist()
        return [heap[a:b].decode() for a, b in pairwise(ends)]

    def _tuples(self, type: Type, ids: np.ndarray) -> list[Row | None]:
        """Records as nested tuples. Types may be recursive and values deep, so nothing here recurses."""
        shallow = self._reachable(type, ids)
        made: dict[_Key, Row] = {}
        for root in shallow:
            stack = [root]
            while stack:
                key = stack[-1]
                inner = [value for value in shallow[key] if isinstance(value, _Reference) and value.key not in made]
                if key in made or not inner:
                    values = tuple(made[v.key] if isinstance(v, _Reference) else v for v in shallow[key])
                    made.setdefault(key, Branch(*cast(Any, values)) if self.program.types[key[0]].branches else values)
                    stack.pop()
                else:
                    stack += [value.key for value in inner]
        return [made.get((type.name, id)) for id in ids.tolist()]

    def _reachable(self, type: Type, ids: np.ndarray) -> dict[_Key, Row]:
        """The fields of the records `ids` and of all records inside them, which stand there as references; before those of a
        branch its name."""
        shallow: dict[_Key, Row] = {}
        pending = {type.name: ids}
        while pending:
            name, ids = pending.popitem()
            fresh = np.array([id for id in np.unique(ids).tolist() if id != NIL and (name, id) not in shallow], np.int32)
            if not len(fresh):
                continue
            for shape in shapes(self.program.types[name], self.program.types, fresh, self.records):
                branch = [shape.type.name[1:]] if shape.type.adt else []
                columns: list[list[Any]] = [branch * len(shape.places)] if branch else []
                for inner, raw in zip(own_types(shape.type, self.program.types), shape.columns, strict=True):
                    column = typed(raw.astype(np.int64, copy=False), inner.kind)
                    if inner.kind is Kind.RECORD:
                        pending[inner.name] = np.concatenate([pending.get(inner.name, column[:0]), column])
                        columns.append([None if id == NIL else _Reference((inner.name, id)) for id in column.tolist()])
                    else:
                        columns.append(self.to_python(inner, column))
                keys = [(name, id) for id in fresh[shape.places].tolist()]
                shallow |= zip(keys, zip(*columns, strict=True) if columns else [()] * len(keys), strict=True)
        return shallow

    # --------------------------------------------------------------------------------------------------------- to columns

    def table(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> Table:
        """Rows of Python values as a table of the relation."""
        listed = list(rows)
        for number, row in enumerate(listed, 1):
            if not isinstance(row, tuple | list) or len(row) != relation.arity:
                raise _bad_fact(relation, number, f"{value_preview(row)} is not a tuple of {relation.arity} values")
        columns = []
        for i, (attribute, type) in enumerate(relation.attributes):

            def refuse(number: int, message: str, attribute: str = attribute) -> DlogError:
                return _bad_fact(relation, number + 1, f"{attribute}: {message}")

            columns.append(self.column(type, [row[i] for row in listed], refuse))
        return Table(relation.kinds, tuple(columns), len(listed) if not columns else -1)

    def column(self, type: Type, values: list[Any], refuse: _Refuse) -> np.ndarray:
        """Values of one type as a column; `refuse` makes the error about the i-th of them."""
        self._check_fits(type, values, refuse)
        match type.kind:
            case Kind.SYMBOL:
                return self._symbols(values, refuse)
            case Kind.RECORD:
                return self._records(type, values, refuse)
            case _:
                return domains.from_python(type, values)

    def column_of_numbers(self, type: Type, values: np.ndarray) -> np.ndarray:
        """Numbers of a type, which have the dtype of its kind, as a column."""
        return numbers(type, values)

    def _symbols(self, values: list[str], refuse: _Refuse) -> np.ndarray:
        try:
            return self.symbols.intern_texts(values)
        except UnicodeEncodeError as error:
            place = next(i for i, value in enumerate(values) if value == error.object)
            raise refuse(place, f"{value_preview(values[place])} has a lone surrogate, which is no text") from None

    def _records(self, type: Type, values: list[Row | None], refuse: _Refuse) -> np.ndarray:
        """Nested tuples as ids of records. Values may be deep, so nothing here recurses: those inside come after those around
        them, and are made first."""
        types = self.program.types
        whole = _Nested(type, types, values, range(len(values)))
        found = [whole]
        for nested in found:
            for part in nested.parts:
                fields = zip(*part.rows, strict=True) if part.rows[0] else ()
                for inner, column in zip(own_types(part.type, types), fields, strict=True):

                    def refuse_inner(i: int, message: str, origins: list[int] = part.origins) -> DlogError:
                        return refuse(origins[i], message)

                    if inner.kind is Kind.RECORD:
                        self._check_fits(inner, list(column), refuse_inner)
                        found.append(_Nested(inner, types, list(column), part.origins))
                        part.columns.append(found[-1])
                    else:
                        part.columns.append(self.column(inner, list(column), refuse_inner))
        for nested in reversed(found):
            for part in nested.parts:
                columns = [column.ids if isinstance(column, _Nested) else _raw(column) for column in part.columns]
                nested.ids[part.places] = packed(part.type, types, columns, len(part.places), self.records)
        return whole.ids.astype(np.int32)

    def table_from_arrow(self, relation: Relation, data: pa.Table, places: Sequence[int] | None = None) -> Table:
        """An Arrow table as a table of the relation: the columns at these places or, without them, all, in order."""
        if places is None and data.num_columns != relation.arity:
            raise _bad_fact(relation, None, f"the table has {data.num_columns} columns, the relation {relation.arity}")
        found = []
        for (name, type), place in zip(relation.attributes, range(relation.arity) if places is None else places, strict=True):

            def refuse(place: int | None, message: str, name: str = name) -> DlogError:
                return _bad_fact(relation, None if place is None else place + 1, f"{name}: {message}")

            found.append(self.column_from_arrow(type, data.column(place), refuse))
        return Table(relation.kinds, tuple(found), data.num_rows if not relation.arity else -1)

    def column_from_arrow(self, type: Type, column: pa.ChunkedArray, refuse: _RefuseColumn) -> np.ndarray:
        """An Arrow column of values of one type; `refuse` makes the error about the i-th of them, or about all."""
        import pyarrow as pa

        if column.null_count and type.kind is not Kind.RECORD:
            raise refuse(None, "the column has nulls")
        try:
            within_memory(column)
            match type.kind:
                case Kind.SYMBOL:
                    try:
                        return self.symbols.intern_arrow(column)
                    except NotText as mistake:
                        raise refuse(mistake.index, mistake.reason) from None
                case Kind.RECORD if _is_text(column.type):
                    return self._parsed(type, column, refuse)
                case Kind.RECORD:
                    values = [tuple(v.values()) if isinstance(v, dict) else v for v in column.to_pylist()]
                    return self.column(type, values, refuse)
                case _:
                    return domains.from_arrow(type, column)
        except (domains.OutOfDomain, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise refuse(None, str(error)) from None

    def _parsed(self, type: Type, column: pa.ChunkedArray, refuse: _RefuseColumn) -> np.ndarray:
        """Records from their texts, as output files have them."""
        from dlog.engine.formats.nested import BadRecord, parse_records

        if column.null_count:
            raise refuse(None, "the column has nulls")
        texts = SymbolTable()
        try:
            which = texts.intern_arrow(column)
            ids: np.ndarray = parse_records(texts, type, self.program.types, self.symbols, self.records)[which]
            return ids
        except NotText as mistake:
            raise refuse(mistake.index, mistake.reason) from None
        except BadRecord as mistake:
            raise refuse(None, f"`{texts.text(mistake.index)}` {mistake}") from None

    def _check_fits(self, type: Type, values: list[Any], refuse: _Refuse) -> None:
        types = self.program.types
        for i, value in enumerate(values):
            if not _fits(value, type, types):
                raise refuse(i, f"{value_preview(value)} is not of type {type.name}")


@dataclass(frozen=True, slots=True)
class _Reference:
    """A record inside a record, not yet made."""

    key: _Key


_Refuse = Callable[[int, str], DlogError]
_RefuseColumn = Callable[[int | None, str], DlogError]


class _Nested:
    """Records of one field, before they have ids: those that are not nil, by record type or branch."""

    def __init__(self, type: Type, types: Mapping[str, Type], values: list[Row | None], origins: Sequence[int]) -> None:
        places: dict[str, list[int]] = {}
        for i, value in enumerate(values):
            if value is not None:
                places.setdefault(f"${value[0]}" if type.branches else type.name, []).append(i)
        first = 1 if type.branches else 0
        rows = {name: [cast(Row, values[i])[first:] for i in found] for name, found in places.items()}
        self.parts = [_Part(types[n], found, rows[n], [origins[i] for i in found]) for n, found in places.items()]
        self.ids = np.full(len(values), NIL, np.int64)


@dataclass(slots=True)
class _Part:
    """Records of one record type or branch: their places, their fields by row and by column, and in which values they are."""

    type: Type
    places: list[int]
    rows: list[Row]
    origins: list[int]
    columns: list[np.ndarray | _Nested] = field(default_factory=list)


def numbers(type: Type, values: np.ndarray) -> np.ndarray:
    """Numbers from outside, which have the dtype of their kind."""
    try:
        return domains.normal(type, values)
    except domains.OutOfDomain as error:
        raise DlogError(Diagnostic("bad-fact", str(error))) from None


def _raw(column: np.ndarray) -> np.ndarray:
    """The 64 bits of each value, as records keep them."""
    return column.astype(np.int64) if column.dtype == np.int32 else column.view(np.int64)


def _each_once(ids: np.ndarray, decode: Callable[[np.ndarray], list[Any]]) -> list[Any]:
    """The values of ids, each distinct one decoded once."""
    distinct, places = np.unique(ids, return_inverse=True)
    values = decode(distinct)
    return [values[i] for i in places.tolist()]


def value_preview(value: object) -> str:
    """A value in a message, abbreviated where it is long."""
    if type(value).__module__.partition(".")[0] == "pyarrow":  # which may say that values are where there are none
        return f"a {type(value).__name__}"
    return _ABBREVIATED.repr(value)


def is_text(value: str) -> bool:
    """Whether a string can be a symbol: one with lone surrogates is no text."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_text(type: pa.DataType) -> bool:
    import pyarrow as pa

    kind = type.value_type if pa.types.is_dictionary(type) else type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())


def _fits(value: object, type: Type, types: Mapping[str, Type]) -> bool:
    match type.kind:
        case Kind.NUMBER | Kind.UNSIGNED | Kind.FLOAT:
            return domains.fits(type, value)
        case Kind.SYMBOL:
            return isinstance(value, str)
        case Kind.RECORD if type.branches:
            if not isinstance(value, tuple | list) or not value or not isinstance(value[0], str):
                return False
            name = f"${value[0]}"
            return name in type.branches and len(value) - 1 == types[name].arity
        case Kind.RECORD:
            return value is None or (isinstance(value, tuple | list) and len(value) == len(type.fields))


def _bad_fact(relation: Relation, row: int | None, message: str) -> DlogError:
    place = f"facts for {relation.name}" if row is None else f"facts for {relation.name}, row {row}"
    return DlogError(Diagnostic("bad-fact", f"{place}: {message}"))
