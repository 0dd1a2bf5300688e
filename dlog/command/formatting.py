"""`dlog fmt`: a program file to its one canonical layout, and back into the file, whole or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from dlog.engine.formats.rights import Rights, give, rights_of
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.grammar.files import read_file, text_of
from dlog.grammar.printer import format_source
from dlog.grammar.source import Source
from dlog.pipeline import stage
from dlog.unfinished import Folder, remove_left_beside, replacing


def formatted(path: Path) -> tuple[str, str]:
    """The text of the file as it is, and as it should be."""
    text = read_file(path)
    with stage("formatter"):
        return text, format_source(Source(text, str(path)))


def rewrite(path: Path, before: str, text: str) -> None:
    """Replaces the file's content in one step: an interruption leaves the old text or the new one. Links stay links. Raises
    DlogError for a file whose text is not `before` any more: who can write to its folder may have put a link to another file
    of this user's there, which would get what they want it to hold."""
    target = path.resolve()
    remove_left_beside(target)

    def grant(folder: Folder, made: int, _: int) -> None:
        _grant(made, _unchanged(folder, target.name, path, before))

    try:
        with replacing(target, 0o600, grant) as file:
            file.write(text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def sweep(path: Path) -> None:
    """Removes what killed runs have left beside a file."""
    remove_left_beside(path.resolve())


def _unchanged(folder: Folder, name: str, path: Path, before: str) -> Rights:
    """The rights of a file. Raises DlogError for one that does not hold a text, or is a link by now."""
    with suppress(OSError, UnicodeDecodeError), os.fdopen(folder.open(name, os.O_RDONLY), "rb") as file:
        rights = rights_of(file.fileno())
        if stat.S_ISREG(rights.mode) and text_of(file.read()) == before:
            return rights
    message = f"{path} has been changed since it was read"
    raise DlogError(Diagnostic("file-changed", message, notes=("it is left as it is: format it again",), place=str(path)))


def _grant(handle: int, before: Rights) -> None:
    """Gives the new file the permissions of the old one: never those that have it run with its owner's rights; and none to
    write where somebody else had it, as the new one is ours."""
    own = not hasattr(os, "geteuid") or before.user == os.geteuid()
    give(handle, before, 0o777 if own else 0o644)
