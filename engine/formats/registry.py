"""The formats of files: one row each, which says everything that an `.input` or `.output` needs to know of one.

To add a format: a module with how it is read and written, a row here, its tests, and its section of docs/files.md. What reads
and writes is imported when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.formats.budget import Budget, Part
from dlog.engine.formats.parameters import path_of
from dlog.engine.formats.records import RecordTables
from dlog.engine.formats.whole_files import write_whole
from dlog.engine.ir.rules import Io, Program, Relation
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table


@dataclass(frozen=True, slots=True)
class Transfer:
    """A relation on its way from a file, or to one, as a directive says."""

    io: Io
    relation: Relation
    program: Program
    symbols: SymbolTable
    records: RecordTables
    threads: int
    headed: bool = False
    """Whether text is to begin with the names of the columns, whatever the directive says."""
    budget: Part = field(default_factory=lambda: Part(Budget()))
    """The memory that what is read takes."""


Read: TypeAlias = Callable[[Transfer, Path | None, Path], Table]
"""From a file, None: standard input, or from what the directive names in the folder of facts."""
Write: TypeAlias = Callable[[Transfer, Table, BinaryIO], None]


@dataclass(frozen=True, slots=True)
class Format:
    """What `IO=` of this name means. `suffixes` are those of file names that say it where `IO=` does not; the first is that of
    a file that has no name."""

    name: str
    read: Read | None = None
    write: Write | None = None
    suffixes: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    """Parameters of inputs that only some formats know, and this one does."""
    is_text: bool = False
    """Rows are lines with a delimiter."""
    reads_stream: bool = False
    """Inputs come from standard input."""
    writes_stream: bool = False
    """Outputs go to standard output."""
    names_columns: bool = False
    """Nothing is written without columns."""
    is_database: bool = False
    """It finds its file, a table of which is meant, by itself."""


# --------------------------------------------------------------------------------------------------------------------- text


def _read_text(rows: Transfer, path: Path | None, folder: Path) -> Table:
    from dlog.engine.formats.lines import load_lines

    return load_lines(rows.io, rows.relation, rows.program, rows.symbols, rows.records, path, folder, rows.threads, rows.budget)


def _write_text(rows: Transfer, table: Table, file: BinaryIO) -> None:
    from dlog.engine.formats.lines import pieces
    from dlog.engine.formats.unreadable import warn_of_unreadable

    warn_of_unreadable(rows.io, rows.relation, rows.program, table, rows.symbols)
    _write_all(file, pieces(rows.io, rows.relation, rows.program, table, rows.symbols, rows.records, rows.threads))


def _print_text(rows: Transfer, table: Table, file: BinaryIO) -> None:
    """Souffle's block."""
    from dlog.engine.formats.lines import pieces

    taken = rows.io, rows.relation, rows.program, table, rows.symbols, rows.records, rows.threads
    lines: Iterator[bytes | np.ndarray] = iter(pieces(*taken, headers=rows.headed or None, packed=False))
    file.write(f"---------------\n{rows.io.get('name', rows.io.relation)}\n".encode())
    _write_all(file, [next(lines)])
    file.write(b"===============\n")
    _write_all(file, lines)
    file.write(b"===============\n")


def size_line(io: Io, rows: int) -> str:
    """The line that `.printsize` prints."""
    return f"{io.get('name', io.relation)}\t{rows}\n"


def _print_size(rows: Transfer, table: Table, file: BinaryIO) -> None:
    file.write(size_line(rows.io, table.rows).encode())


def _write_all(file: BinaryIO, pieces: Iterable[bytes | np.ndarray]) -> None:
    for piece in pieces:
        file.write(piece if isinstance(piece, bytes) else piece.data)


# ------------------------------------------------------------------------------------------------------------- JSON, columns


def _json_reader(by_line: bool) -> Read:
    def read(rows: Transfer, path: Path | None, folder: Path) -> Table:
        from dlog.engine.formats.json_rows import load_json

        return load_json(rows.io, rows.relation, rows.program, rows.symbols, rows.records, path, by_line, rows.budget)

    return read


def _json_writer(by_line: bool) -> Write:
    def write(rows: Transfer, table: Table, file: BinaryIO) -> None:
        from dlog.engine.formats.json_rows import json_pieces

        _write_all(file, json_pieces(rows.io, rows.relation, rows.program, table, rows.symbols, rows.records, by_line))

    return write


def _columnar_reader(name: str) -> Read:
    def read(rows: Transfer, path: Path | None, folder: Path) -> Table:
        from dlog.engine.formats.columnar import load_columnar

        assert path is not None
        return load_columnar(rows.io, rows.relation, rows.program, rows.symbols, rows.records, path, name, rows.budget)

    return read


def _columnar_writer(name: str) -> Write:
    def write(rows: Transfer, table: Table, file: BinaryIO) -> None:
        from dlog.engine.formats.columnar import save_columnar

        save_columnar(rows.relation, rows.program, table, rows.symbols, rows.records, file, name)

    return write


def _read_database(rows: Transfer, path: Path | None, folder: Path) -> Table:
    from dlog.engine.formats.sqlite_tables import load_sqlite

    return load_sqlite(rows.io, rows.relation, rows.program, rows.symbols, rows.records, folder, rows.budget)


# --------------------------------------------------------------------------------------------------------------- the formats

_TEXT, _JSON, _JSON_LINES = ("errors", "encoding"), _json_writer(by_line=False), _json_writer(by_line=True)
_ALL = (
    Format("file", _read_text, _write_text, (".facts",), parameters=_TEXT, is_text=True),
    Format("stdin", _read_text, parameters=_TEXT, is_text=True, reads_stream=True),
    Format("stdout", write=_print_text, is_text=True, writes_stream=True),
    Format("stdoutprintsize", write=_print_size, writes_stream=True),
    Format("parquet", _columnar_reader("parquet"), _columnar_writer("parquet"), (".parquet",), names_columns=True),
    Format(
        "arrow",
        _columnar_reader("arrow"),
        _columnar_writer("arrow"),
        (".arrow", ".feather", ".ipc"),
        ("feather", "ipc"),
        names_columns=True,
    ),
    Format("json", _json_reader(False), _JSON, parameters=("encoding",), reads_stream=True, writes_stream=True),
    Format("jsonfile", _json_reader(False), _JSON, (".json",), parameters=("encoding",)),
    Format("ndjson", _json_reader(True), _JSON_LINES, (".ndjson", ".jsonl"), parameters=("encoding",)),
    Format("sqlite", _read_database, names_columns=True, is_database=True),
)
FORMATS: Final = {format.name: format for format in _ALL}
ALIASES: Final = {alias: format for format in _ALL for alias in format.aliases}
BY_SUFFIX: Final = {suffix: format for format in _ALL if format.name != "file" for suffix in format.suffixes}


def inputs() -> tuple[Format, ...]:
    return tuple(format for format in _ALL if format.read is not None)


def outputs() -> tuple[Format, ...]:
    return tuple(format for format in _ALL if format.write is not None or format.is_database)


def knowing(parameter: str) -> tuple[str, ...]:
    """The formats whose inputs know a parameter that not all do; none for others."""
    return tuple(format.name for format in _ALL if parameter in format.parameters)


def save_rows(rows: Transfer, format: Format, table: Table, folder: Path) -> None:
    """Writes a file, or a table of a database, in the output folder."""
    if format.is_database:
        from dlog.engine.formats.sqlite_tables import save_sqlite

        save_sqlite(rows.io, rows.relation, rows.program, table, rows.symbols, rows.records, folder)
        return
    from dlog.engine.formats.lines import packs

    write = format.write
    assert write is not None
    suffix = format.suffixes[0] if not format.is_text else ".csv.gz" if packs(rows.io) else ".csv"
    write_whole(rows.io, rows.program, path_of(rows.io, folder, suffix), lambda file: write(rows, table, file))
