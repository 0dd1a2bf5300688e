"""Relations in files: what `.input`, `.output`, `.printsize` and `.limitsize` do.

`load` reads one relation, `save` writes one. A file is written beside its final name and renamed when it is whole, so nobody
ever sees half of it. All mistakes of the user, in the directive or in the data, are `DlogError`s.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dlog.engine.formats.parameters import close_name, directive_error, missing_file, path_of, remark_misspelled, text_format
from dlog.engine.formats.records import RecordTables
from dlog.engine.formats.whole_files import write_whole
from dlog.engine.ir.rules import Io, Program, Relation
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import Diagnostic, DlogError

TO_STDOUT = "-"
"""The output folder that means standard output, as in `-D -`."""

_BY_SUFFIX = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}
_BY_SUFFIX |= {".json": "jsonfile", ".ndjson": "ndjson", ".jsonl": "ndjson"}
_SUFFIXES = {"parquet": ".parquet", "arrow": ".arrow", "jsonfile": ".json", "ndjson": ".ndjson"}
_STREAMS = ("stdin", "json")
"""Ways whose input is standard input."""
_OF_SOME = {"errors": ("file", "stdin"), "encoding": ("file", "stdin", "json", "jsonfile", "ndjson")}
"""Parameters that say something about some ways of input only."""
_INPUTS = ("file", "stdin", "parquet", "arrow", "json", "jsonfile", "ndjson", "sqlite")
_OUTPUTS = ("file", "stdout", "stdoutprintsize", "parquet", "arrow", "json", "jsonfile", "ndjson", "sqlite")


def available_threads() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load(
    io: Io,
    relation: Relation,
    program: Program,
    symbols: SymbolTable,
    records: RecordTables,
    facts_dir: Path,
    threads: int = 0,
) -> Table:
    """The rows that an `.input` names; duplicates are kept. `threads` 0 means all processors."""
    threads = threads or available_threads()
    way = _way(io, program, _INPUTS)
    _refuse_misplaced(io, way, program)
    if way == "sqlite":
        return _load_sqlite(io, relation, program, symbols, records, facts_dir)
    path = None if way in _STREAMS else path_of(io, facts_dir, _SUFFIXES.get(way, ".facts"))
    if path is not None and (paths := _matches(path)):
        if len(paths) > 1 and io.get("errors").startswith("reject:"):
            message = f"`errors=reject:FILE` is for one file, and {path.name} stands for {len(paths)}"
            raise directive_error(io, program, "unsupported", message, "errors=skip leaves wrong rows out")
        parts = [replace(io, params=(*io.params, ("filename", str(one.absolute())))) for one in paths]
        return _joined([load(one, relation, program, symbols, records, facts_dir, threads) for one in parts])
    if path is not None and not path.is_file() and not path.is_fifo() and not path.is_char_device():
        raise missing_file(io, program, path)
    try:
        if way in ("json", "jsonfile", "ndjson"):
            from dlog.engine.formats.json_rows import load_json

            return load_json(io, relation, program, symbols, records, path, way == "ndjson")
        if way in ("parquet", "arrow"):
            from dlog.engine.formats.columnar import load_columnar

            assert path is not None
            return load_columnar(io, relation, program, symbols, records, path, way)
        from dlog.engine.formats.lines import load_lines

        return load_lines(io, relation, program, symbols, records, path, facts_dir, threads)
    except OSError as error:
        raise directive_error(io, program, "unreadable-file", f"cannot read {path}: {error.strerror}") from error


def _refuse_misplaced(io: Io, way: str, program: Program) -> None:
    """Raises DlogError for parameters of an input that say nothing about files of its kind."""
    for key, ways in _OF_SOME.items():
        if io.get(key) and way not in ways:
            raise directive_error(io, program, "bad-parameter", f"`{key}` is for IO={', '.join(ways)}, not for {way}")


def _matches(path: Path) -> list[Path]:
    """The files that a name with `*`, `?` or `[...]` stands for, in the order of their names; none for the name of a file."""
    if not glob.has_magic(path.name) or path.exists():
        return []
    return sorted(one for one in path.parent.glob(path.name) if one.is_file())


def _joined(tables: list[Table]) -> Table:
    """The rows of several files, one after the other."""
    columns = zip(*(table.columns for table in tables), strict=True)
    return Table(tables[0].kinds, tuple(np.concatenate(parts) for parts in columns), sum(table.rows for table in tables))


def _load_sqlite(
    io: Io, relation: Relation, program: Program, symbols: SymbolTable, records: RecordTables, folder: Path
) -> Table:
    from dlog.engine.formats.sqlite_tables import database_of, load_sqlite

    database = database_of(io, folder)
    if isinstance(database, Path) and not database.is_file():
        raise missing_file(io, program, database)
    return load_sqlite(io, relation, program, symbols, records, database)


def save(
    io: Io,
    relation: Relation,
    program: Program,
    table: Table,
    symbols: SymbolTable,
    records: RecordTables,
    output_dir: Path | str,
    threads: int = 0,
    stdout: BinaryIO | None = None,
) -> None:
    """Writes the rows of an `.output`, or the line of a `.printsize`. Tables of up to a million rows, and of many more
    where their columns are narrow, are written sorted. `output_dir` "-" sends every `.output` to `stdout`."""
    threads = threads or available_threads()
    way = _way(io, program, _OUTPUTS) if io.action == "output" else "stdoutprintsize"
    if io.action == "output" and output_dir == TO_STDOUT:
        way = "stdout"
    if way in ("stdout", "stdoutprintsize", "json"):
        _print(io, relation, program, table, symbols, records, threads, way, output_dir == TO_STDOUT, stdout)
        return
    _refuse_without_columns(io, way, relation, program)
    rows = (relation, program, table, symbols, records)
    if way == "sqlite":
        from dlog.engine.formats.sqlite_tables import database_of, save_sqlite

        save_sqlite(io, *rows, database_of(io, Path(output_dir)))
        return
    from dlog.engine.formats.lines import packs

    suffix = _SUFFIXES.get(way, ".csv.gz" if packs(io) else ".csv")
    write_whole(io, program, path_of(io, Path(output_dir), suffix), lambda file: _write(file, way, io, *rows, threads))


def _write(
    file: BinaryIO,
    way: str,
    io: Io,
    relation: Relation,
    program: Program,
    table: Table,
    symbols: SymbolTable,
    records: RecordTables,
    threads: int,
) -> None:
    """Writes rows to a file that is open."""
    if way in ("parquet", "arrow"):
        from dlog.engine.formats.columnar import save_columnar

        save_columnar(relation, program, table, symbols, records, file, way)
    elif way in ("json", "jsonfile", "ndjson"):
        from dlog.engine.formats.json_rows import json_pieces

        _write_all(file, json_pieces(io, relation, program, table, symbols, records, way == "ndjson"))
    else:
        from dlog.engine.formats.lines import pieces
        from dlog.engine.formats.unreadable import warn_of_unreadable

        warn_of_unreadable(io, relation, program, table, symbols)
        _write_all(file, pieces(io, relation, program, table, symbols, records, threads))


def check_directives(program: Program) -> None:
    """Raises, together, the mistakes in directives that `load`, `save` and the evaluation would find one after the other."""
    mistakes: list[Diagnostic] = []
    for io in program.io:
        try:
            _check_directive(io, program)
        except DlogError as error:
            mistakes += error.diagnostics
    if mistakes:
        raise DlogError(mistakes)


def _check_directive(io: Io, program: Program) -> None:
    match io.action:
        case "input":
            way = _way(io, program, _INPUTS)
            _refuse_misplaced(io, way, program)
        case "output":
            way = _way(io, program, _OUTPUTS)
            _refuse_without_columns(io, way, program.relations[io.relation], program)
        case "limitsize":
            size_limit(io, program)
            return
        case "printsize":
            return
    if way in ("file", "stdin", "stdout"):
        text_format(io, program.relations[io.relation], program)


def _refuse_without_columns(io: Io, way: str, relation: Relation, program: Program) -> None:
    if way in ("parquet", "arrow", "sqlite") and not relation.attributes:
        message = f"`{relation.name}` has no attributes: {way} needs columns"
        raise directive_error(io, program, "unsupported", message)


def size_line(io: Io, rows: int) -> str:
    """The line that `.printsize` prints."""
    return f"{io.get('name', io.relation)}\t{rows}\n"


def size_limit(io: Io, program: Program) -> int:
    """The number of rows at which a `.limitsize` stops its relation's stratum, after the iteration that reached it."""
    try:
        return int(io.get("n"))
    except ValueError:
        message = f"`.limitsize {io.relation}` needs a number of rows, n=1000"
        raise directive_error(io, program, "bad-parameter", message) from None


def _way(io: Io, program: Program, ways: tuple[str, ...]) -> str:
    """The way in which the directive wants its data moved: one of `ways`."""
    chosen = io.get("IO", "file").lower()
    chosen = "arrow" if chosen in ("feather", "ipc") else chosen
    if chosen != "spark":
        remark_misspelled(io)
    if chosen == "file":
        return _BY_SUFFIX.get(Path(io.get("filename").removesuffix(".gz")).suffix.lower(), "file")
    if chosen in ways:
        return chosen
    if chosen == "spark":
        note = '`dlog run --engine spark` has it, and dlog.run(..., engine="spark")'
        raise directive_error(io, program, "needs-spark", "IO=spark needs the Spark engine", note)
    notes = [f"`.{io.action}` can use IO={', '.join(ways)}"]
    if close := close_name(chosen, ways):
        notes.append(f"did you mean IO={close}?")
    raise directive_error(io, program, "unsupported", f"not supported yet: IO={io.get('IO')}", *notes)


def _print(
    io: Io,
    relation: Relation,
    program: Program,
    table: Table,
    symbols: SymbolTable,
    records: RecordTables,
    threads: int,
    way: str,
    forced: bool,
    stdout: BinaryIO | None,
) -> None:
    """Souffle's block on standard output, with a line of names where asked for or `-D -` made it print."""
    from dlog.engine.formats.lines import pieces

    if stdout is None:
        sys.stdout.flush()
        stdout = sys.stdout.buffer
    if way == "stdoutprintsize":
        stdout.write(size_line(io, table.rows).encode())
    elif way == "json":
        _write(stdout, way, io, relation, program, table, symbols, records, threads)
    else:
        stdout.write(f"---------------\n{io.get('name', io.relation)}\n".encode())
        body = pieces(io, relation, program, table, symbols, records, threads, headers=forced or None, packed=False)
        lines = iter(body)
        _write_all(stdout, [next(lines)])
        stdout.write(b"===============\n")
        _write_all(stdout, lines)
        stdout.write(b"===============\n")
    stdout.flush()


def _write_all(file: BinaryIO, pieces: Iterable[bytes | np.ndarray]) -> None:
    for piece in pieces:
        file.write(piece if isinstance(piece, bytes) else piece.data)


__all__ = ["TO_STDOUT", "available_threads", "check_directives", "load", "save", "size_limit", "size_line"]
