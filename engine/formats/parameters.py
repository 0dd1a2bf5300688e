"""The parameters of an `.input` or `.output`, checked, with Souffle's defaults."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dlog.engine.ir.rules import Io, Program, Relation
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label

KNOWN = ("IO", "filename", "name", "delimiter", "headers", "rfc4180", "columns", "compress")
"""Parameters that mean something here. Others are for other readers, as in Souffle, and left alone."""
_OF_OTHERS = ("dbname", "format", "params", "types")
"""Those of Souffle's that are close to one of these."""


@dataclass(frozen=True, slots=True)
class TextFormat:
    """The format of rows in a text file. `columns[i]` is the column of the file that holds attribute i; None: the same ones."""

    delimiter: bytes = b"\t"
    headers: bool = False
    rfc4180: bool = False
    columns: tuple[int, ...] | None = None


def directive_error(io: Io, program: Program, code: str, message: str, *notes: str) -> DlogError:
    """An error whose place is the directive."""
    return DlogError(Diagnostic(code, message, (Label(io.span),), notes, program.source))


def is_true(io: Io, key: str) -> bool:
    return io.get(key).lower() in ("true", "1", "yes")


def text_format(io: Io, relation: Relation, program: Program) -> TextFormat:
    """The text format a directive asks for."""
    rfc4180 = is_true(io, "rfc4180")
    delimiter = io.get("delimiter", "," if rfc4180 else "\t")
    if not delimiter or "\n" in delimiter:
        raise directive_error(io, program, "bad-parameter", f"delimiter {delimiter!r} cannot part the columns of a line")
    if rfc4180 and '"' in delimiter:
        raise directive_error(io, program, "bad-parameter", "with rfc4180 the delimiter cannot contain a double quote")
    columns = column_map(io, relation, program) if io.get("columns") else None
    return TextFormat(delimiter.encode(), is_true(io, "headers"), rfc4180, columns)


def column_map(io: Io, relation: Relation, program: Program) -> tuple[int, ...]:
    """The file's column for each attribute, from `columns`."""
    text = io.get("columns")
    try:
        columns = tuple(int(part) for part in text.split(":"))
    except ValueError:
        columns = ()
    if len(columns) != relation.arity or min(columns, default=0) < 0 or len(set(columns)) != len(columns):
        raise directive_error(
            io,
            program,
            "bad-parameter",
            f"columns={text!r} does not name one column of the file per attribute of `{relation.name}` ({relation.arity})",
            'columns count from 0, as in columns="0:2"',
        )
    return columns


def path_of(io: Io, folder: Path, suffix: str) -> Path:
    """The file a directive names, in `folder` unless it is absolute; by default the relation's name with `suffix`."""
    return folder / io.get("filename", io.get("name", io.relation) + suffix)


def close_name(name: str, names: Sequence[str]) -> str:
    """The likeliest of `names` that was meant by `name`, or an empty string."""
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
    return close[0] if close else ""


def remark_misspelled(io: Io) -> None:
    """Warns of parameters that mean nothing but are close to one that does."""
    for key, _ in io.params:
        close = close_name(key, KNOWN) if key not in (*KNOWN, *_OF_OTHERS) else ""
        if close:
            message = f"`{key}` of `.{io.action} {io.relation}` means nothing: did you mean `{close}`?"
            warnings.warn(message, RuntimeWarning, stacklevel=4)


def missing_file(io: Io, program: Program, path: Path) -> DlogError:
    """The error for an input file that is not there, with the name that may have been meant."""
    notes = [f"`.input {io.relation}` reads {path}"]
    if not path.parent.is_dir():
        notes.append(f"there is no folder {path.parent}; -F names the folder of fact files")
    elif close := close_name(path.name, sorted(p.name for p in path.parent.iterdir() if p.is_file())):
        notes.append(f"did you mean `{close}`?")
    return directive_error(io, program, "missing-file", f"cannot open fact file {path.name}", *notes)
