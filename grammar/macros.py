"""pcpp set up for Datalog: which tokens come out, from which file and line, and what went wrong on the way.

Only imported for programs that have preprocessor lines.
"""

from __future__ import annotations

import copy
import io
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pcpp import Action, OutputDirective, Preprocessor
from pcpp.evaluator import INTMAXBITS, Value

from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.grammar.files import TEXT_NAME, dialect_lines, read_file
from dlog.grammar.suggest import closest
from dlog.grammar.unclosed import stand_ins, without_unclosed

DEEPEST = 100
"""Includes nested deeper than this include themselves."""
MOST_INCLUDES = 10_000
MOST_AGAIN = 1 << 24
"""Characters of files that are included when they have been before: some lines of includes can stand for more than fits
anywhere."""
MOST_OF_A_LINE = 1 << 20
MOST_OF_ALL = 1 << 26
"""Characters that macros may expand to, all steps counted: some lines of definitions can stand for more than fits anywhere."""

NEEDS = {"define": "a name", "undef": "a name", "ifdef": "a name", "ifndef": "a name", "if": "a condition", "pragma": "a word"}
"""What must follow a directive; pcpp does not look."""

_DEFINITION = re.compile(r"[A-Za-z_]\w*(\([\w\s,.]*\))?(=.*)?", re.DOTALL)
"""As `-M` takes it."""

_TYPES = {"'": "CPP_SQUOTE", '"': "CPP_DQUOTE", "/": "CPP_FSLASH"}
"""pcpp's names for quotes, and for the begin of a comment, that nothing closes."""

DIRECTIVES = (
    "include", "define", "undef", "ifdef", "ifndef", "if", "elif", "else", "endif", "pragma", "error", "warning", "line",
)


class TooMuch(Exception):
    """Ends an expansion; the problem is noted."""


_shifted = Value.__lshift__


def _shifted_within(value: Any, places: Any) -> Any:
    """pcpp's `<<`, which would make a number of all these bits first, to cut it to its own then."""
    if int(places) >= INTMAXBITS:
        raise ArithmeticError(f"a number of {INTMAXBITS} bits is shifted by {int(places)}")
    return _shifted(value, places)


Value.__lshift__ = _shifted_within


class Expansion(Preprocessor):  # type: ignore[misc]
    """One run. `problems` are (file, line, message, text to underline, note); `originals` the lines of every file read."""

    def __init__(self, text: str, name: str, include_dirs: Sequence[str], macros: Sequence[str]) -> None:
        super().__init__()
        self.problems: list[tuple[str, int, str, str, str]] = []
        self.originals: dict[str, list[str]] = {name: text.split("\n")}
        self.name = name
        self.text = text
        self.rewrite_paths: list[tuple[str, str]] = []
        self._line: list[Any] = []
        """The tokens of the line that is read."""
        self._includes = self._again = self._depth = 0
        self._expanded = self._before_line = 0
        """Characters that macros have expanded to, in all and before the line that is expanded."""
        self._expanded_line = ("", 0)
        """Its file and number."""
        # The parser knows these, with the places in the user's files.
        self.expand_filemacro = self.expand_linemacro = self.expand_countermacro = False
        self.line_directive = None
        # Files in `<>` are looked for beside the program, too: without a folder pcpp would take them from the current one.
        self.path += [*include_dirs, os.path.dirname(name)]
        self.define("RAM_DOMAIN_SIZE 64")  # as Souffle's build with 64-bit numbers; `-M` may say otherwise
        for macro in macros:
            if not _DEFINITION.fullmatch(macro):
                raise DlogError(Diagnostic("bad-macro", f"{macro!r} defines no macro", notes=("write NAME or NAME=VALUE",)))
            self.define(macro.replace("=", " ", 1) if "=" in macro else f"{macro} 1")

    def pieces(self) -> Iterator[tuple[str, str, int]]:
        """The tokens of the result in order: text, file, line."""
        if self.name != TEXT_NAME:  # beside a text is the current folder, where the folders that are named come first
            self.temp_path.insert(0, os.path.dirname(self.name))
        is_file = os.path.isfile(self.name)
        path = os.path.abspath(self.name) if is_file else self.name
        try:
            for token in self.parsegen(dialect_lines(self.text), self.name, path):
                yield token.value, self._displayed_name(token.source), token.lineno
        except TooMuch:
            return
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError) as error:
            self._not_understood(error)

    def group_lines(self, input: str, abssource: str) -> Iterator[list[Any]]:
        """The tokens of one line after another. (pcpp's own also splits at form feeds and the like, which moves the lines.)"""
        instead = stand_ins(input, "".join(_TYPES))
        lexer = self.lexer.clone()
        lexer.input(without_unclosed(input if input.endswith("\n") else input + "\n", instead))
        # What it does not know is a token as literals are: by an error it would copy the rest of the text for each.
        lexer.lexliterals += "".join({*input, *instead})
        lexer.lineno = 1
        line: list[Any] = []
        while token := lexer.token():
            token.source = abssource
            if mark := instead.get(token.value):
                token.type, token.value = _TYPES[mark], mark
            line.append(token)
            if token.type in self.t_WS and token.value == "\n":
                self._line = line
                yield line
                line = []
        if line:  # the text ends inside a comment that pcpp took whole
            end = copy.copy(line[-1])
            end.type, end.value = self.t_NEWLINE, "\n"
            yield [*line, end]

    def include(self, tokens: list[Any], original_line: list[Any]) -> Iterator[Any]:
        if not tokens:
            self._problem("`#include` needs a file", note='write `#include "file.dl"`')
            return iter(())
        return super().include(tokens, original_line)  # type: ignore[no-any-return]

    def expand_macros(self, tokens: list[Any], expanding_from: Sequence[str] = ()) -> list[Any]:
        """Counts what stands in the place of macros and of their arguments, which are the calls inside others."""
        if self._depth:
            self._count(tokens)
        elif tokens:
            self._begin_line(tokens[0].source, tokens[0].lineno)
        self._depth += 1
        expanded: list[Any] = super().expand_macros(tokens, list(expanding_from))
        self._depth -= 1
        return expanded

    def _begin_line(self, file: str, line: int) -> None:
        if (file, line) != self._expanded_line:
            self._expanded_line, self._before_line = (file, line), self._expanded

    def _count(self, tokens: list[Any]) -> None:
        file, first = self._expanded_line
        self._begin_line(file, self.linemacro or first)  # many lines are expanded at a time
        self._expanded += 1 + sum(1 + len(token.value) for token in tokens)
        if self._expanded - self._before_line > MOST_OF_A_LINE:
            self._end_at_line(f"macros expand to too much here: more than {MOST_OF_A_LINE >> 20} MiB, all steps counted")
        if self._expanded > MOST_OF_ALL:
            self._end_at_line(f"macros expand to too much up to here: more than {MOST_OF_ALL >> 20} MiB, all steps counted")

    def _end_at_line(self, message: str) -> NoReturn:
        file, line = self._expanded_line
        self.problems.append((self._displayed_name(file), line, message, "", ""))
        raise TooMuch

    def on_comment(self, token: Any) -> bool:
        token.value = "\n".join(" " * len(part) for part in token.value.split("\n"))
        token.type = "CPP_WS"
        return True

    def on_file_open(self, is_system_include: bool, includepath: str) -> io.StringIO:
        if not os.path.isfile(includepath):
            raise FileNotFoundError(includepath)
        if self.include_depth > DEEPEST:
            self._problem("this file includes itself without end", note="write `.once` or `#pragma once` at its top")
            raise TooMuch
        self._includes += 1
        if self._includes > MOST_INCLUDES:
            self._problem(f"too much is included up to here: more than {MOST_INCLUDES:,} files")
            raise TooMuch
        try:
            text = read_file(Path(includepath))
        except DlogError as error:
            found = error.diagnostics[0]
            at = found.source.locate(found.labels[0].span.start) if found.source else None
            self._problem(found.message, note=f"in its line {at.line}, column {at.column}" if at else "")
            raise OutputDirective(Action.IgnoreAndRemove) from None
        shown = self._displayed_name(includepath)
        self._again += len(text) if shown in self.originals else 0
        if self._again > MOST_AGAIN:
            note = "write `.once` or `#pragma once` at the top of what is included"
            self._problem(f"too much is included again up to here: more than {MOST_AGAIN >> 20} MiB", note=note)
            raise TooMuch
        self.originals[shown] = text.split("\n")
        return io.StringIO(dialect_lines(text))

    def on_include_not_found(self, is_malformed: bool, is_system_include: bool, curdir: str, includepath: str) -> None:
        if is_malformed:
            self._problem("malformed include", note='write `#include "file.dl"`')
        else:
            searched = ", ".join(f"`{p or '.'}`" for p in dict.fromkeys([*self.temp_path, *self.path]))
            self._problem(f"cannot find the file `{includepath}`", includepath, f"searched in {searched}")
        raise OutputDirective(Action.IgnoreAndRemove)

    def on_directive_unknown(self, directive: Any, toks: Any, ifpassthru: bool, precedingtoks: Any) -> bool:
        self.lastdirective = directive
        name, rest = directive.value, "".join(t.value for t in toks).strip()
        if name == "error":
            self._problem(f"#error {rest}".strip())
        elif name not in DIRECTIVES and not str(name).isdigit():
            guess = closest(name, DIRECTIVES)
            self._problem(f"unknown preprocessor directive `#{name}`", name, f"did you mean `#{guess}`?" if guess else "")
        return True

    def on_error(self, file: str, line: int, msg: str) -> None:
        if self._displayed_name(file) not in self.originals and self._line:
            file, line = self._line[0].source, self._line[0].lineno  # pcpp does not always know
        self.problems.append((self._displayed_name(file), line, msg[:1].lower() + msg[1:].strip(), "", ""))

    def _not_understood(self, error: Exception) -> None:
        """pcpp trips over directives and macros that say nothing, wherever it looks for what is not there."""
        words = [token for token in self._line if token.type not in self.t_WS]
        at = self._line[0]
        if words and words[0].value == "#":
            name = words[1].value if len(words) > 1 else ""
            nothing = len(words) == 2 and name in NEEDS
            message = f"`#{name}` needs {NEEDS[name]}" if nothing else f"`#{name}` cannot be understood"
            self.problems.append((self._displayed_name(at.source), at.lineno, message, "", ""))
        else:
            message = f"macros of this text cannot be expanded: {error}"
            note = "the mistake is here or in a line above"
            self.problems.append((self._displayed_name(at.source), at.lineno, message, "", note))

    def _problem(self, message: str, at: str = "", note: str = "") -> None:
        place = self.lastdirective
        self.problems.append((self._displayed_name(place.source), place.lineno, message, at, note))

    def _displayed_name(self, file: str | None) -> str:
        """The file's name as the user would write it."""
        if not file or os.path.abspath(self.name) == file:
            return self.name
        near = os.path.relpath(file)
        return file if near.startswith("..") else near
