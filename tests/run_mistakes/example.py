"""A mistake that is told when something runs, and an example that has it: a command with its files, or lines of Python.
`said` runs it in this process, in a folder of its own."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from dlog.command.cli import invoke
from dlog.grammar.diagnostics import DlogError, render


@dataclass(frozen=True, slots=True)
class Example:
    """What a code means, and what has the mistake: `command` beside `files`, with `typed` as its standard input, or the lines
    of `python`. Mistakes of the code `beside` may be told with it. Neither is there where no short example has it; `why` says
    the reason. The page leaves the message out where it `varies` with the system or with the versions of other packages, and
    where the example needs `spark` or is `slow`."""

    meaning: str
    command: str = ""
    files: tuple[tuple[str, str], ...] = ()
    typed: str = ""
    python: str = ""
    beside: str = ""
    why: str = ""
    varies: bool = False
    spark: bool = False
    slow: bool = False

    @property
    def runs(self) -> bool:
        return bool(self.command or self.python)

    @property
    def shows(self) -> bool:
        """Whether the page has the message."""
        return self.runs and not (self.varies or self.spark or self.slow)


def run(
    meaning: str, command: str, *files: tuple[str, str], typed: str = "", beside: str = "", varies: bool = False
) -> Example:
    return Example(meaning, command, files, typed, beside=beside, varies=varies)


def python(meaning: str, lines: str, varies: bool = False, spark: bool = False, slow: bool = False) -> Example:
    given = lines.strip("\n").split("\n")
    imports = [line for line in given if line.startswith(("import ", "from "))]
    rest = "\n".join(line for line in given if line not in imports).strip("\n")
    return Example(meaning, python="\n".join([*imports, "", rest]), varies=varies, spark=spark, slow=slow)


def untold(meaning: str, why: str) -> Example:
    """A mistake that no short example has, and why."""
    return Example(meaning, why=why)


@dataclass(slots=True)
class _Heard:
    """The mistakes that end a command, and those that the prompt shows before it goes on."""

    found: list[tuple[str, str]] = field(default_factory=list)

    def error(self, error: DlogError, source: str = "<text>") -> None:
        folder = f"{os.path.realpath(os.curdir)}/"
        for diagnostic in error.diagnostics:
            text = render(diagnostic).replace("<text>", source).replace(folder, "")
            self.found.append((diagnostic.code, text.rstrip("\n")))


@cache
def said(example: Example) -> tuple[tuple[str, str], ...]:
    """The mistakes that the example is told: their codes and texts, in which the folder is left out."""
    heard = _Heard()
    with _folder_of_its_own(), mock.patch("dlog.repl.screen.Screen.error", lambda screen, e: heard.error(e, screen.source)):
        for name, text in example.files:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(text.encode("utf-8", "surrogateescape"))
        try:
            if example.command:
                _command(example)
            else:
                _lines(example)
        except DlogError as error:
            heard.error(error)
    return tuple(heard.found)


def _command(example: Example) -> None:
    words = shlex.split(example.command)
    assert words[0] == "dlog"
    with mock.patch.object(sys, "stdin", _stream(example.typed)):
        invoke(words[1:])


def _lines(example: Example) -> None:
    """Executes lines of Python, and closes what they have opened and left so."""
    names: dict[str, Any] = {"__name__": "example"}
    try:
        exec(compile(example.python, "example", "exec"), names)
    finally:
        for value in reversed(names.values()):
            if hasattr(value, "close") and not isinstance(value, ModuleType | type):
                with contextlib.suppress(DlogError):
                    value.close()


def _stream(text: str = "") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")


@contextlib.contextmanager
def _folder_of_its_own() -> Iterator[None]:
    before = os.getcwd()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(_stream()), contextlib.redirect_stderr(_stream()):
                yield
        finally:
            os.chdir(before)
