"""`dlog fmt`: a program file to its one canonical layout, and back into the file, whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dlog.engine.formats.rights import Rights, give, rights_of
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.grammar.files import read_file, text_of
from dlog.grammar.printer import format_source
from dlog.grammar.source import Source
from dlog.pipeline import stage

UNFINISHED = ".dlog-fmt"
"""Ends the names of files that a killed `dlog fmt` has left."""
SECONDS = 60
"""Writing one takes less."""


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
    try:
        with _held(target.parent) as folder:
            _sweep(folder, target.name)
            beside = f".{target.name}.{secrets.token_hex(4)}{UNFINISHED}"
            with folder.opened(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as handle:
                try:
                    with os.fdopen(handle, "wb", closefd=False) as file:
                        file.write(text.encode())
                    _grant(handle, _unchanged(folder, target.name, path, before))
                    folder.rename(beside, target.name)
                except BaseException:
                    folder.unlink(beside)
                    raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder that is held open: a name in it is a name in it, whatever others put in the place of the folder. Without a
    `descriptor`, where the system knows no names in such, it is found by its path each time."""

    path: Path
    descriptor: int | None

    def _name(self, name: str) -> str:
        return name if self.descriptor is not None else str(self.path / name)

    @contextmanager
    def opened(self, name: str, how: int) -> Iterator[int]:
        """The descriptor of a file, which is no link. Nobody waits for a pipe."""
        quiet = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self._name(name), how | quiet, 0o600, dir_fd=self.descriptor)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def names(self) -> list[str]:
        return os.listdir(self.path if self.descriptor is None else self.descriptor)

    def about(self, name: str) -> os.stat_result:
        return os.stat(self._name(name), dir_fd=self.descriptor, follow_symlinks=False)

    def rename(self, old: str, new: str) -> None:
        os.replace(self._name(old), self._name(new), src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def unlink(self, name: str) -> None:
        os.unlink(self._name(name), dir_fd=self.descriptor)


@contextmanager
def _held(path: Path) -> Iterator[_Folder]:
    if os.open not in os.supports_dir_fd:
        yield _Folder(path, None)
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield _Folder(path, descriptor)
    finally:
        os.close(descriptor)


def _unchanged(folder: _Folder, name: str, path: Path, before: str) -> Rights:
    """The rights of a file. Raises DlogError for one that does not hold a text, or is a link by now."""
    with suppress(OSError, UnicodeDecodeError), folder.opened(name, os.O_RDONLY) as handle:
        rights = rights_of(handle)
        with os.fdopen(handle, "rb", closefd=False) as file:
            if stat.S_ISREG(rights.mode) and text_of(file.read()) == before:
                return rights
    message = f"{path} has been changed since it was read"
    raise DlogError(Diagnostic("file-changed", message, notes=("it is left as it is: format it again",), place=str(path)))


def _grant(handle: int, before: Rights) -> None:
    """Gives the new file the permissions of the old one: never those that have it run with its owner's rights; and none to
    write where somebody else had it, as the new one is ours."""
    own = not hasattr(os, "geteuid") or before.user == os.geteuid()
    give(handle, before, 0o777 if own else 0o644)


def _sweep(folder: _Folder, target: str) -> None:
    """Removes what a killed run has left beside a file."""
    for name in folder.names():
        if name.startswith(f".{target}.") and name.endswith(UNFINISHED):
            with suppress(OSError):
                if time.time() - folder.about(name).st_mtime > SECONDS:
                    folder.unlink(name)
