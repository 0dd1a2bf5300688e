"""`dlog fmt`: a program file to its one canonical layout, and back into the file, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dlog.grammar.files import read_file
from dlog.grammar.printer import format_source
from dlog.grammar.source import Source
from dlog.pipeline import stage


def formatted(path: Path) -> tuple[str, str]:
    """The text of the file as it is, and as it should be."""
    text = read_file(path)
    with stage("formatter"):
        return text, format_source(Source(text, str(path)))


def rewrite(path: Path, text: str) -> None:
    """Replaces the file's content in one step: an interruption leaves the old text or the new one. Links stay links."""
    target = path.resolve()
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(beside, target.stat().st_mode & 0o7777)
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise
