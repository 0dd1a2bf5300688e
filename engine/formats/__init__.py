"""Relations in files: what `.input`, `.output`, `.printsize` and `.limitsize` do.

`load` reads one relation, `save` writes one. A file is written beside its final name and renamed when it is whole, so nobody
ever sees half of it. All mistakes of the user, in the directive or in the data, are `DlogError`s.
"""

from __future__ import annotations

import glob
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dlog.engine.formats.budget import Budget
from dlog.engine.formats.parameters import close_name, directive_error, missing_file, path_of, remark_misspelled, text_format
from dlog.engine.formats.records import RecordTables
from dlog.engine.formats.registry import (
    ALIASES,
    BY_SUFFIX,
    FORMATS,
    Format,
    Transfer,
    inputs,
    knowing,
    outputs,
    save_rows,
    size_line,
)
from dlog.engine.ir.rules import Io, Program, Relation
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import Diagnostic, DlogError, one_line

TO_STDOUT = "-"
"""The output folder that means standard output, as in `-D -`."""


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
    budget: Budget | None = None,
) -> Table:
    """The rows that an `.input` names; duplicates are kept. `threads` 0 means all processors. `budget`: what all that is read
    may take."""
    budget = budget or Budget()
    threads = threads or available_threads()
    format = _format(io, program, inputs())
    _refuse_misplaced(io, format, program)
    assert format.read is not None
    rows = Transfer(io, relation, program, symbols, records, threads)
    if format.is_database:
        with budget.part() as part:
            return format.read(replace(rows, budget=part), None, facts_dir)
    path = None if format.reads_stream else path_of(io, facts_dir, format.suffixes[0])
    if path is not None and (paths := _matches(path)):
        if len(paths) > 1 and io.get("errors").startswith("reject:"):
            message = f"`errors=reject:FILE` is for one file, and {path.name} stands for {len(paths)}"
            raise directive_error(io, program, "unsupported", message, "errors=skip leaves wrong rows out")
        parts = [replace(io, params=(*io.params, ("filename", str(one.absolute())))) for one in paths]
        return _joined([load(one, relation, program, symbols, records, facts_dir, threads, budget) for one in parts])
    if path is not None and not path.is_file() and not path.is_fifo() and not path.is_char_device():
        raise missing_file(io, program, path)
    try:
        with budget.part() as part:
            return format.read(replace(rows, budget=part), path, facts_dir)
    except OSError as error:
        message = f"cannot read {path or '<stdin>'}: {error.strerror or error}"
        raise directive_error(io, program, "unreadable-file", message) from error


def _refuse_misplaced(io: Io, format: Format, program: Program) -> None:
    """Raises DlogError for parameters of an input that say nothing about files of its kind."""
    for key, _ in io.params:
        names = knowing(key)
        if names and io.get(key) and format.name not in names:
            message = f"`{key}` is for IO={', '.join(names)}, not for {format.name}"
            raise directive_error(io, program, "bad-parameter", message)


def _matches(path: Path) -> list[Path]:
    """The files that a name with `*`, `?` or `[...]` stands for, in the order of their names; none for the name of a file."""
    if not glob.has_magic(path.name) or path.exists():
        return []
    return sorted(one for one in path.parent.glob(path.name) if one.is_file())


def _joined(tables: list[Table]) -> Table:
    """The rows of several files, one after the other."""
    columns = zip(*(table.columns for table in tables), strict=True)
    return Table(tables[0].kinds, tuple(np.concatenate(parts) for parts in columns), sum(table.rows for table in tables))


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
    format = _format(io, program, outputs()) if io.action == "output" else FORMATS["stdoutprintsize"]
    forced = io.action == "output" and output_dir == TO_STDOUT
    format = FORMATS["stdout"] if forced else format
    rows = Transfer(io, relation, program, symbols, records, threads, headed=output_dir == TO_STDOUT)
    if format.writes_stream:
        _print(rows, format, table, stdout)
        return
    _refuse_without_columns(io, format, relation, program)
    save_rows(rows, format, table, Path(output_dir))


def _print(rows: Transfer, format: Format, table: Table, stdout: BinaryIO | None) -> None:
    from dlog.engine.state.files import named

    assert format.write is not None
    with named("standard output" if stdout is None else None):
        if stdout is None:
            sys.stdout.flush()
            stdout = sys.stdout.buffer
        format.write(rows, table, stdout)
        stdout.flush()


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
            format = _format(io, program, inputs())
            _refuse_misplaced(io, format, program)
        case "output":
            format = _format(io, program, outputs())
            _refuse_without_columns(io, format, program.relations[io.relation], program)
        case "limitsize":
            size_limit(io, program)
            return
        case "printsize":
            return
    if format.is_text:
        text_format(io, program.relations[io.relation], program)


def _refuse_without_columns(io: Io, format: Format, relation: Relation, program: Program) -> None:
    if format.names_columns and not relation.attributes:
        message = f"`{relation.name}` has no attributes: {format.name} needs columns"
        raise directive_error(io, program, "unsupported", message)


def remark_parameters(io: Io) -> None:
    """Warns of a directive's parameters that mean nothing, but may have been meant to: whoever reads or writes does so once."""
    chosen = io.get("IO", "file").lower()
    if io.action not in ("input", "output") or chosen == "spark":
        return
    remark_misspelled(io)
    format = ALIASES.get(chosen) or FORMATS.get(chosen)
    if format is None or not io.get("filename"):
        return
    if format.reads_stream if io.action == "input" else format.writes_stream:
        stream = "reads standard input" if io.action == "input" else "writes to standard output"
        meant = "jsonfile" if format.name == "json" else "file"
        message = f"`filename` of `.{io.action} {io.relation}` means nothing: IO={format.name} {stream}"
        warnings.warn(one_line(f"{message}; did you mean IO={meant}?"), RuntimeWarning, stacklevel=2)


def size_limit(io: Io, program: Program) -> int:
    """The number of rows at which a `.limitsize` stops its relation's stratum, after the iteration that reached it."""
    try:
        return int(io.get("n"))
    except ValueError:
        message = f"`.limitsize {io.relation}` needs a number of rows, n=1000"
        raise directive_error(io, program, "bad-parameter", message) from None


def _format(io: Io, program: Program, formats: tuple[Format, ...]) -> Format:
    """The format in which the directive wants its rows moved: one of these."""
    chosen = io.get("IO", "file").lower()
    if chosen == "file":
        return BY_SUFFIX.get(Path(io.get("filename").removesuffix(".gz")).suffix.lower(), FORMATS["file"])
    found = ALIASES.get(chosen) or FORMATS.get(chosen)
    if found in formats:
        return found
    if chosen == "spark":
        note = '`dlog run --engine spark` has it, and dlog.run(..., engine="spark")'
        raise directive_error(io, program, "needs-spark", "IO=spark needs the Spark engine", note)
    names = [format.name for format in formats]
    notes = [f"`.{io.action}` can use IO={', '.join(names)}"]
    if close := close_name(chosen, names):
        notes.append(f"did you mean IO={close}?")
    raise directive_error(io, program, "unsupported", f"not supported yet: IO={io.get('IO')}", *notes)


__all__ = ["TO_STDOUT", "available_threads", "check_directives", "load", "remark_parameters", "save", "size_limit", "size_line"]
