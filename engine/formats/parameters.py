"""The parameters of an `.input` or `.output`, checked, with Souffle's defaults."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Io, Program, Relation
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label, one_line

OF_TEXT = ("delimiter", "headers", "rfc4180", "compress", "encoding", "errors")
PARAMETERS = frozenset(("IO", "filename", "name", "columns", "dbname", "table", "format", *OF_TEXT))
"""Parameters that mean something here. Others are for other readers, as in Souffle, and left alone."""
MOST_COLUMNS = 1 << 20
"""Columns of a file among which `columns` chooses."""
_OF_OTHERS = ("params", "types")
"""Those of Souffle's that are close to one of these."""


@dataclass(frozen=True, slots=True)
class TextFormat:
    """The format of rows in a text file. `columns[i]` is the column of the file that holds attribute i; None: the same ones.
    `names` are those of the columns to look for in the line of names, if these are not the attributes'."""

    delimiter: bytes = b"\t"
    headers: bool = False
    rfc4180: bool = False
    columns: tuple[int, ...] | None = None
    names: tuple[str, ...] = ()


def directive_error(io: Io, program: Program, code: str, message: str, *notes: str) -> DlogError:
    """An error whose place is the directive."""
    return DlogError(Diagnostic(code, message, (Label(io.span),), notes, program.source))


def is_true(io: Io, key: str) -> bool:
    return io.get(key).lower() in ("true", "1", "yes")


def text_format(io: Io, relation: Relation, program: Program) -> TextFormat:
    """The text format a directive asks for."""
    rfc4180 = is_true(io, "rfc4180")
    delimiter = io.get("delimiter", "," if rfc4180 else "\t")
    if not delimiter or "\n" in delimiter or "\r" in delimiter:  # either may be a line's end
        raise directive_error(io, program, "bad-parameter", f"delimiter {delimiter!r} cannot part the columns of a line")
    if rfc4180 and '"' in delimiter:
        raise directive_error(io, program, "bad-parameter", "with rfc4180 the delimiter cannot contain a double quote")
    if not io.get("columns"):
        return TextFormat(delimiter.encode(), is_true(io, "headers"), rfc4180)
    columns = column_map(io, relation, program)
    names = () if columns is not None else column_names(io, relation, program)
    return TextFormat(delimiter.encode(), is_true(io, "headers") or bool(names), rfc4180, columns, names)


def column_names(io: Io, relation: Relation, program: Program) -> tuple[str, ...]:
    """What `columns` says for each attribute, a name or a number; the attributes' names where it is not given."""
    text = io.get("columns")
    names = tuple(part.strip() for part in text.split(":")) if text else tuple(name for name, _ in relation.attributes)
    columns = {_place(name) if _is_place(name) else name for name in names}
    if text and (len(names) != relation.arity or "" in names or len(columns) != len(names)):
        raise directive_error(
            io,
            program,
            "bad-parameter",
            f"columns={text!r} does not name one column of the file per attribute of `{relation.name}` ({relation.arity})",
            'they are names, as in columns="src:dst", or count from 0, as in columns="0:2"',
        )
    if text and (beyond := [name for name in names if _is_place(name) and not 0 <= _place(name) < MOST_COLUMNS]):
        message = f"columns={text[:60]!r}: there is no column {beyond[0][:30]}, files have {MOST_COLUMNS} at most"
        raise directive_error(io, program, "bad-parameter", message)
    return names


def _is_place(name: str) -> bool:
    """Whether a column is called by its place: digits of other scripts are letters of names."""
    return name.isascii() and name.isdecimal()


def _place(name: str) -> int:
    """The place that digits say; -1 where they are too many for any."""
    return int(name) if len(name) < 20 else -1


def column_map(io: Io, relation: Relation, program: Program) -> tuple[int, ...] | None:
    """The file's column for each attribute, from `columns`; None where it names them."""
    names = column_names(io, relation, program)
    return tuple(map(_place, names)) if all(map(_is_place, names)) else None


def column_in(name: str, names: Sequence[str]) -> str:
    """The name of the column that one part of `columns` means, of those that there are: a place, or a name."""
    return names[_place(name)] if _is_place(name) and _place(name) < len(names) else name


def path_of(io: Io, folder: Path, suffix: str) -> Path:
    """The file a directive names, in `folder` unless it is absolute; by default the relation's name with `suffix`."""
    return folder / io.get("filename", io.get("name", io.relation) + suffix)


def close_name(name: str, names: Collection[str]) -> str:
    """The likeliest of `names` that was meant by `name`, or an empty string."""
    close = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.7)
    return close[0] if close else ""


def remark_misspelled(io: Io) -> None:
    """Warns of parameters that mean nothing but are close to one that does."""
    for key, _ in io.params:
        close = close_name(key, PARAMETERS) if key not in (*PARAMETERS, *_OF_OTHERS) else ""
        if close:
            message = f"`{key}` of `.{io.action} {io.relation}` means nothing: did you mean `{close}`?"
            warnings.warn(one_line(message), RuntimeWarning, stacklevel=3)


def missing_file(io: Io, program: Program, path: Path) -> DlogError:
    """The error for an input file that is not there, with the name that may have been meant."""
    notes = [f"`.input {io.relation}` reads {path}"]
    if not path.parent.is_dir():
        notes.append(f"there is no folder {path.parent}; -F names the folder of fact files")
    elif close := close_name(path.name, sorted(p.name for p in path.parent.iterdir() if p.is_file())):
        notes.append(f"did you mean `{close}`?")
    return directive_error(io, program, "missing-file", f"cannot open fact file {path.name}", *notes)
