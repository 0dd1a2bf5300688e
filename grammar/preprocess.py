"""Program files to the text the parser sees: `#include`, `#define`, `#ifdef` ... through pcpp, `.include` and `.once` besides.

Every line of the result knows the file and line it came from, so errors point into the included file. Columns are
exact where no macro is expanded on the line: comments become blanks of their length. A text without preprocessor lines is
taken as it is, and pcpp is not even imported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from dlog.grammar.diagnostics import Diagnostic, DlogError, Label
from dlog.grammar.files import TEXT_NAME, read_file
from dlog.grammar.source import Source, Span

if TYPE_CHECKING:
    from dlog.grammar.macros import Expansion

WORDS = ("#", ".include", ".once", "RAM_DOMAIN_SIZE")
NEEDED = re.compile(r"^[ \t]*(#|\.include\b|\.once\b)|\bRAM_DOMAIN_SIZE\b", re.MULTILINE)


def preprocess(program: Path | str, include_dirs: Sequence[str | Path] = (), macros: Sequence[str] = ()) -> Source:
    """The text of a program file (a Path) or of a program given as text, preprocessed.

    `macros` are definitions as for `-M`: `NAME`, `NAME=value`. A file that is missing or not UTF-8, a failed `#include`, an
    `#error`, an unbalanced `#if`: DlogError with all of them.

    >>> preprocess("#define N 3\\na(N).").text
    'a(3).\\n'
    """
    if isinstance(program, Path):
        return preprocess_text(read_file(program), str(program), include_dirs, macros)
    return preprocess_text(program, TEXT_NAME, include_dirs, macros)


def preprocess_text(text: str, name: str, include_dirs: Sequence[str | Path] = (), macros: Sequence[str] = ()) -> Source:
    """A text as if it were the content of a file: what it includes is looked for beside that."""
    text = text.replace("\r\n", "\n")
    if not macros and not (any(word in text for word in WORDS) and NEEDED.search(text)):
        return Source(text, name)
    return _expand(text, name, include_dirs, macros)


def _expand(text: str, name: str, include_dirs: Sequence[str | Path], macros: Sequence[str]) -> Source:
    from dlog.grammar.macros import Expansion

    expansion = Expansion(text, name, [str(d) for d in include_dirs], macros)
    lines, origins = _join(expansion)
    if expansion.problems:
        files = {name: _File(lines, name) for name, lines in expansion.originals.items()}
        raise DlogError([_locate(files, *problem) for problem in sorted(expansion.problems)])
    return Source("\n".join(lines), name, origins, expansion.originals)


def _join(expansion: Expansion) -> tuple[list[str], list[tuple[str, int]]]:
    """The output lines and where each comes from: the place of its first token."""
    lines: list[str] = []
    origins: list[tuple[str, int]] = []
    parts: list[str] = []
    origin: tuple[str, int] | None = None
    for value, file, line in expansion.pieces():
        for extra, part in enumerate(value.split("\n")):
            if extra:
                lines.append("".join(parts))
                origins.append(origin or (file, line))
                parts, origin = [], None
            if part:
                parts.append(part)
                origin = origin or (file, line + extra)
    lines.append("".join(parts))
    origins.append(origin or (origins[-1] if origins else (expansion.name, 1)))
    return lines, origins


class _File:
    """A file as the user wrote it, and where its lines begin."""

    def __init__(self, lines: Sequence[str], name: str) -> None:
        self.lines = lines
        self.source = Source("\n".join(lines), name)
        self.starts = [0, *accumulate(len(line) + 1 for line in lines)]


def _locate(files: dict[str, _File], name: str, line: int, message: str, at: str, note: str) -> Diagnostic:
    """A diagnostic about `at`, or the whole of the line, in one of the files as the user wrote it."""
    file = files.get(name) or _File([""], name)
    text = file.lines[line - 1] if 0 < line <= len(file.lines) else ""
    begin = text.find(at) if at and at in text else len(text) - len(text.lstrip())
    width = len(at) if at and at in text else len(text.strip())
    start = file.starts[min(max(line - 1, 0), len(file.lines))] + begin
    return Diagnostic("preprocessor", message, (Label(Span(start, start + width)),), (note,) if note else (), file.source)
