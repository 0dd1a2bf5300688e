"""`dlog fmt`: a program file to its one canonical layout, and back into the file, whole or not at all."""

from __future__ import annotations

import glob
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from dlog.grammar.files import read_file
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


def rewrite(path: Path, text: str) -> None:
    """Replaces the file's content in one step: an interruption leaves the old text or the new one. Links stay links."""
    target = path.resolve()
    _sweep(target)
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=UNFINISHED)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            _grant(handle, target.stat())
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise


def _grant(handle: int, before: os.stat_result) -> None:
    """Gives the new file the permissions of the old one: never those that have it run with its owner's rights, and where
    somebody else had it, none to write, as the new one is ours."""
    if hasattr(os, "fchmod"):
        own = before.st_uid == os.geteuid()
        os.fchmod(handle, before.st_mode & (0o777 if own else 0o644))


def _sweep(target: Path) -> None:
    """Removes what a killed run has left beside a file."""
    for path in target.parent.glob(f".{glob.escape(target.name)}.*{UNFINISHED}"):
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > SECONDS:
                path.unlink()
