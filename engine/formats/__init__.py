"""Relations in files: what `.input`, `.output`, `.printsize` and `.limitsize` do.

`load` reads one relation, `save` writes one. A file is written beside its final name and renamed when it is whole, so nobody
ever sees half of it. All mistakes of the user, in the directive or in the data, are `DlogError`s.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from dlog.engine.formats.parameters import close_name, directive_error, missing_file, path_of, remark_misspelled, text_format
from dlog.engine.formats.records import RecordTables
from dlog.engine.ir.rules import Io, Program, Relation
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.temporary import lock, remove_left

if TYPE_CHECKING:
    import numpy as np

TO_STDOUT = "-"
"""The output folder that means standard output, as in `-D -`."""

_COLUMNAR = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}
_INPUTS = ("file", "stdin", "parquet", "arrow")
_OUTPUTS = ("file", "stdout", "stdoutprintsize", "parquet", "arrow")


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
    path = None if way == "stdin" else path_of(io, facts_dir, _suffix(way, ".facts"))
    if path is not None and not path.is_file() and not path.is_fifo() and not path.is_char_device():
        raise missing_file(io, program, path)
    try:
        if way in ("parquet", "arrow"):
            from dlog.engine.formats.columnar import load_columnar

            assert path is not None
            return load_columnar(io, relation, program, symbols, records, path, way)
        from dlog.engine.formats.lines import load_lines

        return load_lines(io, relation, program, symbols, records, path, threads)
    except OSError as error:
        raise directive_error(io, program, "unreadable-file", f"cannot read {path}: {error.strerror}") from error


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
    if way in ("stdout", "stdoutprintsize"):
        _print(io, relation, program, table, symbols, records, threads, way, output_dir == TO_STDOUT, stdout)
        return
    if way in ("parquet", "arrow"):
        from dlog.engine.formats.columnar import save_columnar

        if not relation.attributes:
            message = f"`{relation.name}` has no attributes: {way} files need columns"
            raise directive_error(io, program, "unsupported", message)

        path = path_of(io, Path(output_dir), _suffix(way, ".csv"))
        write_whole(io, program, path, lambda file: save_columnar(relation, program, table, symbols, records, file, way))
        return
    from dlog.engine.formats.lines import packs, pieces

    path = path_of(io, Path(output_dir), ".csv.gz" if packs(io) else ".csv")
    write_whole(
        io, program, path, lambda file: _write_all(file, pieces(io, relation, program, table, symbols, records, threads))
    )


def check_outputs(program: Program) -> None:
    """Raises, together, the mistakes in `.output` directives that `save` would find only when everything is computed."""
    mistakes: list[Diagnostic] = []
    for io in program.io:
        if io.action != "output":
            continue
        try:
            if _way(io, program, _OUTPUTS) in ("file", "stdout"):
                text_format(io, program.relations[io.relation], program)
        except DlogError as error:
            mistakes += error.diagnostics
    if mistakes:
        raise DlogError(mistakes)


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
        return _COLUMNAR.get(Path(io.get("filename")).suffix.lower(), "file")
    if chosen in ways:
        return chosen
    if chosen == "spark":
        note = '`dlog run --engine spark` has it, and dlog.run(..., engine="spark")'
        raise directive_error(io, program, "needs-spark", "IO=spark needs the Spark engine", note)
    notes = [f"`.{io.action}` can use IO={', '.join(ways)}"]
    if close := close_name(chosen, ways):
        notes.append(f"did you mean IO={close}?")
    raise directive_error(io, program, "unsupported", f"not supported yet: IO={io.get('IO')}", *notes)


def _suffix(way: str, text: str) -> str:
    return f".{way}" if way in ("parquet", "arrow") else text


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


def write_whole(io: Io, program: Program, path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Writes a file under another name beside its own, then renames it; leaves nothing behind on failure."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    remove_left(path.parent.glob(f".{glob.escape(path.name)}.*.part"))
    try:
        beside.unlink(missing_ok=True)
        with beside.open("xb") as file:  # never one that was there, which may be somebody's link
            lock(file.fileno())
            write(file)
        beside.replace(path)
    except OSError as error:
        note = "" if path.parent.is_dir() else f"there is no folder {path.parent}"
        message = f"cannot write {path}: {error.strerror}"
        raise directive_error(io, program, "unwritable-file", message, *([note] if note else [])) from error
    finally:
        beside.unlink(missing_ok=True)


__all__ = ["TO_STDOUT", "available_threads", "check_outputs", "load", "save", "size_limit", "size_line"]
