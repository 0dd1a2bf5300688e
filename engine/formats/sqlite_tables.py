"""Tables of SQLite databases.

A relation is the table, or view, with its name (`table`, or as in Souffle `name`, is another) in the database `filename` or
`dbname`. Columns are matched as `dlog.engine.formats.columns` says, else the first ones are read, as in Souffle. What is
written takes the place of a table, or view, with its name, in one transaction. Records are text; null is read as empty text.
"""

from __future__ import annotations

import reprlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.engine.formats.budget import Part
from dlog.engine.formats.columnar import arrow_table, column_values
from dlog.engine.formats.columns import Unclear, places
from dlog.engine.formats.parameters import close_name, column_in, column_names, directive_error
from dlog.engine.formats.records import RecordTables
from dlog.engine.formats.sqlite_files import MEMORY, Changed, Database, database_of, reading, writing
from dlog.engine.ir.rules import Io, Kind, Program, Relation, Type
from dlog.engine.values.domains import OutOfDomain, from_arrow, from_texts, normal, range_of, sort_of, to_texts
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import DlogError

ROWS = 1 << 16
"""Rows that are read or written at a time."""
_SQL = {Kind.NUMBER: "INTEGER", Kind.UNSIGNED: "INTEGER", Kind.FLOAT: "REAL", Kind.SYMBOL: "TEXT", Kind.RECORD: "TEXT"}
_CAUTION = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON"
"""For databases of others: views call nothing that has effects, and pages are looked at before they are believed."""


_LONGEST = 1_000_000_000
"""Bytes of a text that SQLite makes at most, if nothing else is said; it makes each several times over."""
_LEFT_HALF_WRITTEN = 8 | 3 << 8
"""SQLite's code for a database whose journal it would have to bring back first (SQLITE_READONLY_ROLLBACK)."""
_COUNTED = 1 << 20
"""Bytes of texts that are counted together."""


class _Texts:
    """What SQLite makes texts by: it counts those of a block before the next one comes, as a database may have a column of any
    size computed for each row. They are there twice, as Python's and as Arrow's; `settle` counts what stays of them."""

    def __init__(self, budget: Part, file: str) -> None:
        self.budget, self.file = budget, file
        self.waiting = self.counted = 0

    def __call__(self, text: bytes) -> bytes:
        self.waiting += 2 * len(text)
        if self.waiting > _COUNTED:
            self.budget.take(self.waiting, self.file)
            self.counted += self.waiting
            self.waiting = 0
        return text

    def settle(self, size: int) -> None:
        self.budget.give_back(self.counted)
        self.waiting = self.counted = 0
        self.budget.take(size, self.file)


def load_sqlite(
    io: Io, relation: Relation, program: Program, symbols: SymbolTable, records: RecordTables, folder: Path, budget: Part
) -> Table:
    """Reads a table; the database is not changed."""
    database = database_of(io, program, folder)
    texts = _Texts(budget, str(database.path or MEMORY))
    try:
        return _load(io, relation, program, symbols, records, database, texts)
    except Changed:
        texts.settle(0)
        return _load(io, relation, program, symbols, records, database, texts, copied=True)


def _load(
    io: Io,
    relation: Relation,
    program: Program,
    symbols: SymbolTable,
    records: RecordTables,
    database: Database,
    texts: _Texts,
    copied: bool = False,
) -> Table:
    """The rows of a table. Raises Changed, as `reading` does."""
    budget = texts.budget
    try:
        with reading(io, program, database, copied) as connection:
            connection.executescript(_CAUTION)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(budget.free, _LONGEST))
            connection.text_factory = bytes
            columns = _column_names(io, program, relation, connection)
            connection.text_factory = texts
            chunks: list[tuple[np.ndarray, ...]] = []
            rows = 0
            query = ", ".join(_selected(name, type_) for name, (_, type_) in zip(columns, relation.attributes, strict=True))
            cursor = connection.execute(f"SELECT {query or '1'} FROM {_quoted(_table(io))}")
            while block := cursor.fetchmany(ROWS):
                before = _size(symbols)
                chunks.append(_columns(io, program, relation, block, rows, symbols, records))
                rows += len(block)
                texts.settle(_size(symbols) - before)
    except sqlite3.DataError as error:
        if budget.free < _LONGEST:  # a text is longer than there is memory for
            budget.take(budget.free + 1, str(database.path or MEMORY))
        raise _refused(io, program, "read", database, error) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:  # names need not be text
        if not copied and getattr(error, "sqlite_errorcode", 0) == _LEFT_HALF_WRITTEN:
            raise Changed from None
        raise _refused(io, program, "read", database, error) from error
    empty = tuple(np.empty(0, np.int64).view(_dtype(kind)) for kind in relation.kinds)
    parts = zip(*(chunks or [empty]), strict=True)
    return Table(relation.kinds, tuple(np.concatenate(part) for part in parts), rows)


def _selected(name: str, type_: Type) -> str:
    """A column as it is read: what is no number comes as a text, which is counted."""
    column = _quoted(name)
    if type_.kind in (Kind.SYMBOL, Kind.RECORD):
        return f"CAST({column} AS TEXT)"
    return f"CASE typeof({column}) WHEN 'blob' THEN CAST({column} AS TEXT) ELSE {column} END"


def _size(symbols: SymbolTable) -> int:
    """The bytes of all texts."""
    return int(symbols.strings[1][-1])


def _column_names(io: Io, program: Program, relation: Relation, connection: sqlite3.Connection) -> Sequence[str]:
    """The names of the columns to read, in the order of the attributes."""
    table = _table(io)
    names = [name.decode() for _, name, *_ in connection.execute(f"PRAGMA table_info({_quoted(table)})")]
    if not names:
        query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        there = [name.decode() for (name,) in connection.execute(query)]
        close = close_name(table, there)
        notes = [
            f"it has {', '.join(there)}" if there else "it is empty",
            *([f"did you mean table={close!r}?"] if close else []),
        ]
        raise directive_error(io, program, "missing-table", f"the database has no table or view {table!r}", *notes)
    wanted = column_names(io, relation, program)
    if io.get("columns"):
        chosen = [column_in(name, names) for name in wanted]
        if missing := [name for name in chosen if name not in names]:
            note = f"its columns are {', '.join(names)}"
            raise directive_error(io, program, "wrong-column-count", f"{table!r} has no column `{missing[0]}`", note)
        return chosen
    try:
        found = places(wanted, names)
    except Unclear as error:
        raise directive_error(io, program, "unclear-columns", f"{table!r}: {error.message}", *error.notes) from None
    if found is None and len(names) < len(wanted):
        message = f"{table!r} has {len(names)} columns, `{relation.name}` has {len(wanted)}"
        raise directive_error(io, program, "wrong-column-count", message, f"its columns are {', '.join(names)}")
    return [names[place] for place in (range(len(wanted)) if found is None else found)]


def _columns(
    io: Io,
    program: Program,
    relation: Relation,
    block: list[tuple[Any, ...]],
    before: int,
    symbols: SymbolTable,
    records: RecordTables,
) -> tuple[np.ndarray, ...]:
    """The columns of a block of rows that has `before` others in front of it."""
    columns = []
    values = zip(*block, strict=True) if relation.arity else ()
    for (name, type_), column in zip(relation.attributes, values, strict=True):
        where = f"column `{name}` of {_table(io)!r}"
        if type_.kind in (Kind.SYMBOL, Kind.RECORD):
            texts = pa.chunked_array([pa.array([b"" if value is None else value for value in column], pa.large_binary())])
            columns.append(column_values(io, program, texts, type_, where, symbols, records))
        else:
            columns.append(_numbers(io, program, column, type_, where, before))
    return tuple(columns)


def _numbers(io: Io, program: Program, values: tuple[Any, ...], type_: Type, where: str, before: int) -> np.ndarray:
    """Numbers, also such as are written as text, and dates and times."""
    try:
        if type_.is_calendar:
            return _calendar(type_, values)
        return normal(type_, np.array([_number(value, type_) for value in values], _dtype(type_.kind)))
    except (ValueError, OutOfDomain):
        row = next(i for i, value in enumerate(values) if not _fits(value, type_))
        shown = values[row].decode("utf-8", "replace") if isinstance(values[row], bytes) else values[row]
        meant = sort_of(type_)
        message = f"{where}, row {before + row + 1}: {reprlib.repr(shown)} is not a valid {meant}"
        raise directive_error(io, program, "bad-number", message) from None


def _calendar(type_: Type, values: tuple[Any, ...]) -> np.ndarray:
    """Dates or times from their texts; ValueError where one is none."""
    texts = [value.decode("utf-8", "replace") if isinstance(value, bytes) else "" for value in values]
    found, good = from_texts(type_, texts)
    if good < len(texts):
        raise ValueError
    return found


def _number(value: Any, type_: Type) -> int | float:
    """The number that a value of a database is; ValueError where it is none of this type."""
    if value is None:
        raise ValueError
    if type_.kind is Kind.FLOAT:
        return float(value)
    if isinstance(value, float) and not value.is_integer():
        raise ValueError
    if (number := int(value)) not in range_of(type_):
        raise ValueError
    return number


def _fits(value: Any, type_: Type) -> bool:
    try:
        _ = _calendar(type_, (value,)) if type_.is_calendar else normal(type_, np.array([_number(value, type_)]))
    except (ValueError, OutOfDomain):
        return False
    return True


def _dtype(kind: Kind) -> type[np.generic]:
    match kind:
        case Kind.UNSIGNED:
            return np.uint64
        case Kind.FLOAT:
            return np.float64
        case _:
            return np.int64


def save_sqlite(
    io: Io,
    relation: Relation,
    program: Program,
    table: Table,
    symbols: SymbolTable,
    records: RecordTables,
    folder: Path,
) -> None:
    """Writes the rows, in order, to a table of their own."""
    database = database_of(io, program, folder)
    name, columns = _quoted(_table(io)), [f"{_quoted(name)} {_sql(type_)}" for name, type_ in relation.attributes]
    rows = arrow_table(relation, program, table, symbols, records)
    try:
        with writing(io, program, database) as connection:
            connection.executescript(_CAUTION)
            connection.execute("BEGIN IMMEDIATE")
            for (kind,) in connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (_table(io),)).fetchall():
                connection.execute(f"DROP {'VIEW' if kind == 'view' else 'TABLE'} {name}")
            connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            insert = f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})"
            for batch in rows.to_batches(ROWS):
                values = zip(relation.attributes, batch.columns, strict=True)
                connection.executemany(insert, zip(*(_values(type_, column) for (_, type_), column in values), strict=True))
    except OverflowError:
        message = f"`{relation.name}` has unsigned numbers of 2^63 and more, which SQLite cannot hold"
        raise directive_error(io, program, "number-out-of-range", message) from None
    except sqlite3.Error as error:
        raise _refused(io, program, "write", database, error) from error


def _sql(type_: Type) -> str:
    return "TEXT" if type_.is_calendar else _SQL[type_.kind]


def _values(type_: Type, column: pa.Array) -> list[Any]:
    """The values of a column as SQLite takes them, which has no dates."""
    if type_.is_calendar:
        return to_texts(type_, from_arrow(type_, pa.chunked_array([column])))
    found: list[Any] = column.to_pylist()
    return found


def _table(io: Io) -> str:
    return io.get("table", io.get("name", io.relation))


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _refused(io: Io, program: Program, what: str, database: Database, error: Exception) -> DlogError:
    return directive_error(io, program, "sqlite", f"cannot {what} {database.path or MEMORY}: {error}")
