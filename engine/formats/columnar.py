"""Parquet and Arrow files.

`columns` chooses columns by name or position; else they are matched as `dlog.engine.formats.columns` says.
What does not fit a column's kind without loss is refused at the directive. Records stand as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from dlog.engine.formats.budget import Part
from dlog.engine.formats.columns import Unclear, places
from dlog.engine.formats.nested import BadRecord, parse_records
from dlog.engine.formats.order import sorted_columns
from dlog.engine.formats.parameters import column_map, column_names, directive_error
from dlog.engine.formats.record_texts import record_texts
from dlog.engine.formats.records import RecordTables
from dlog.engine.ir.rules import Io, Kind, Program, Relation, Type
from dlog.engine.values.arrow_memory import within_memory
from dlog.engine.values.domains import OutOfDomain, from_arrow, sort_of, to_arrow
from dlog.engine.values.symbols import NotText, SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import Diagnostic, DlogError


def load_columnar(
    io: Io,
    relation: Relation,
    program: Program,
    symbols: SymbolTable,
    records: RecordTables,
    path: Path,
    way: str,
    budget: Part,
) -> Table:
    """Loads a file; `way` is parquet or arrow."""
    file = _read(io, program, path, way, relation, budget)
    columns = []
    for column, (name, type_) in zip(file, relation.attributes, strict=True):
        where = f"column `{name}` of {path.name}"
        if column.null_count:
            nulls = "a null" if column.null_count == 1 else f"{column.null_count:,} nulls"
            raise directive_error(io, program, "null-value", f"{where} has {nulls}; relations hold none")
        columns.append(column_values(io, program, column, type_, where, symbols, records))
    return Table(relation.kinds, tuple(columns), len(file[0]) if file else 0)


def _read(io: Io, program: Program, path: Path, way: str, relation: Relation, budget: Part) -> list[pa.ChunkedArray]:
    """The columns for the relation's attributes, in their order; only those are read."""
    try:
        if way == "parquet":
            from dlog.engine.formats import parquet

            about = parquet.metadata(path)
            names = about.schema.to_arrow_schema().names
            chosen = _column_places(io, program, path, relation, names)
            take_parquet(about, len(chosen), budget, str(path))
            texts = texts_of(relation, [names[i] for i in chosen])
            if len(set(names)) < len(names):
                table = parquet.read(path, packed=texts)
                found = [table.column(i) for i in chosen]
            else:
                table = parquet.read(path, [names[i] for i in chosen], packed=texts)
                found = [table.column(names[i]) for i in chosen]
        else:
            with pa.OSFile(str(path)) as file:  # not by Feather, whose first form Arrow reads without a look at its lengths
                table = _unpacked(pa.ipc.open_file(file), budget, str(path))
            found = [table.column(i) for i in _column_places(io, program, path, relation, table.schema.names)]
        return [_without_views(within_memory(column), budget, str(path)) for column in found]
    except (pa.ArrowException, UnicodeDecodeError) as error:  # names of columns need not be text
        raise directive_error(io, program, "bad-file", f"{path} is not a {way} file: {error}") from error


def take_parquet(about: Any, columns: int, budget: Part, file: str) -> None:
    """Counts what a file says that it holds, texts in their dictionaries. Raises DlogError where that is too much."""
    budget.take(about.num_rows * 8 * columns, file)
    for group in range(about.num_row_groups):
        budget.take(about.row_group(group).total_byte_size, file)


def texts_of(relation: Relation, columns: Sequence[str]) -> list[str]:
    """The columns for a relation's attributes that stay in their dictionaries, which is what has been counted: a long text may
    be the value of many rows."""
    pairs = zip(columns, relation.attributes, strict=True)
    return [column for column, (_, type_) in pairs if type_.kind in (Kind.SYMBOL, Kind.RECORD)]


def _unpacked(file: Any, budget: Part, name: str) -> pa.Table:
    """An Arrow file, whose batches may be packed: each is counted before the next one is read."""
    batches = []
    for number in range(file.num_record_batches):
        batches.append(file.get_batch(number))
        budget.take(batches[-1].get_total_buffer_size(), name)  # not `nbytes`, which believes offsets
    return pa.Table.from_batches(batches, file.schema)


def _without_views(column: pa.ChunkedArray, budget: Part, name: str) -> pa.ChunkedArray:
    """Texts that are views of others, each by itself, as bytes, which anything may be; they are counted before, as any number
    of them may show the same."""
    packed = pa.types.is_dictionary(column.type)
    if (column.type.value_type if packed else column.type) != pa.string_view():
        return column
    chunks = []
    for chunk in column.chunks:
        texts = chunk.dictionary if packed else chunk
        budget.take(_length(texts), name)
        plain = texts.cast(pa.large_binary())
        chunks.append(pa.DictionaryArray.from_arrays(chunk.indices, plain) if packed else plain)
    return pa.chunked_array(chunks, pa.dictionary(column.type.index_type, pa.large_binary()) if packed else pa.large_binary())


def _length(views: pa.Array) -> int:
    """The bytes of all texts of an array of views, each of which begins with its length, in 4 of its 16 bytes."""
    if not len(views):
        return 0
    fields = np.frombuffer(views.buffers()[1], np.int32, 4 * len(views), 16 * views.offset)
    return int(fields[::4].sum(dtype=np.int64))


def _column_places(io: Io, program: Program, path: Path, relation: Relation, names: list[str]) -> list[int]:
    wanted = [name for name, _ in relation.attributes]
    if io.get("columns"):
        named = column_names(io, relation, program)
        chosen = list(
            column_map(io, relation, program) or (names.index(name) if name in names else len(names) for name in named)
        )
        if max(chosen, default=-1) < len(names):
            return chosen
    else:
        try:
            found = places(wanted, names)
        except Unclear as error:
            message = f"{path.name}: {error.message}"
            raise directive_error(io, program, "unclear-columns", message, *error.notes, _all(names)) from None
        if found is not None:
            return list(found)
    message = f"{path.name} has {len(names)} columns, `{relation.name}` has {len(wanted)}"
    raise directive_error(io, program, "wrong-column-count", message, _all(names))


def _all(names: list[str]) -> str:
    return f"the file's columns are {', '.join(names)}"


def column_values(
    io: Io, program: Program, column: pa.ChunkedArray, type_: Type, where: str, symbols: SymbolTable, records: RecordTables
) -> np.ndarray:
    """A column without nulls as values of its attribute's type; `where` names it in messages."""
    match type_.kind:
        case Kind.SYMBOL:
            return _interned(io, program, column, where, symbols)
        case Kind.RECORD:
            texts = SymbolTable()
            which = _interned(io, program, column, where, texts)
            try:
                ids: np.ndarray = parse_records(texts, type_, program.types, symbols, records)[which]
                return ids
            except BadRecord as mistake:
                message = f"{where}: `{texts.text(mistake.index)}` {mistake}"
                raise directive_error(io, program, "bad-record", message) from None
        case _:
            return _numbers(io, program, column, type_, where)


def _interned(io: Io, program: Program, column: pa.ChunkedArray, where: str, symbols: SymbolTable) -> np.ndarray:
    try:
        return symbols.intern_arrow(_strings(io, program, column, where))
    except NotText as mistake:
        raise directive_error(io, program, "encoding", f"{where}, row {mistake.index + 1}: {mistake.reason}") from None


def _strings(io: Io, program: Program, column: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)):
        return column
    raise directive_error(io, program, "wrong-type", f"{where} holds {column.type}, not text")


def _numbers(io: Io, program: Program, column: pa.ChunkedArray, type_: Type, where: str) -> np.ndarray:
    """Casts without loss; a float column takes integers, an integer column only integers."""
    whole, real = pa.types.is_integer(column.type), pa.types.is_floating(column.type)
    if type_.kind is Kind.NUMBER and column.type == pa.int32() and not type_.is_calendar:
        return np.asarray(column.to_numpy())
    if not (type_.is_calendar or whole or (real and type_.kind is Kind.FLOAT)):
        raise directive_error(io, program, "wrong-type", f"{where} holds {column.type}, not {type_.kind.value}")
    try:
        return from_arrow(type_, column)
    except OutOfDomain as error:
        code = "wrong-type" if type_.is_calendar else "number-out-of-range"
        raise directive_error(io, program, code, f"{where}: {error}") from error
    except pa.ArrowInvalid as error:
        what = sort_of(type_)
        raise directive_error(io, program, "number-out-of-range", f"{where} does not fit {what}: {error}") from error


def save_columnar(
    relation: Relation,
    program: Program,
    table: Table,
    symbols: SymbolTable,
    records: RecordTables,
    file: BinaryIO,
    way: str,
) -> None:
    """Writes a file."""
    rows = arrow_table(relation, program, table, symbols, records)
    if way == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(rows, file)
    else:
        from pyarrow import feather

        feather.write_feather(rows, file, compression="lz4")


def arrow_table(relation: Relation, program: Program, table: Table, symbols: SymbolTable, records: RecordTables) -> pa.Table:
    """The rows, sorted: symbols dictionary-encoded, numbers as 64 bits, dates and times as such, records as
    text."""
    arrays = []
    columns = sorted_columns(table.kinds, table.columns, symbols)
    for column, (name, type_) in zip(columns, relation.attributes, strict=True):
        if type_.kind is Kind.SYMBOL:
            distinct, inverse = np.unique(column, return_inverse=True)
            arrays.append(_dictionary(symbols.to_arrow(distinct), inverse))
        elif type_.kind is Kind.RECORD:
            texts, which = record_texts(type_, column, program.types, symbols, records, True)
            offsets, data = pa.py_buffer(texts.offsets), pa.py_buffer(texts.data)
            strings = pa.LargeStringArray.from_buffers(len(texts.offsets) - 1, offsets, data)
            arrays.append(_dictionary(strings, which))
        else:
            try:
                arrays.append(to_arrow(type_, column))
            except OutOfDomain as error:
                raise DlogError(Diagnostic("number-out-of-range", f"`{name}` of `{relation.name}`: {error}")) from None
    return pa.table(arrays, names=[name for name, _ in relation.attributes])


def _dictionary(strings: pa.Array, indices: np.ndarray) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices.astype(np.int32)), strings)
