"""As much of CMake's language as lists of tests are written in: functions, conditions, folders below.

A command that is neither a function of the files nor one of those to be told is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

_TOKEN = re.compile(r'#[^\n]*|"((?:\\.|[^"\\])*)"|([()])|([^\s()#"]+)', re.DOTALL)
_VARIABLE = re.compile(r"\$\{(\w+)\}")

Command: TypeAlias = tuple[str, tuple[str, ...]]
"""Its name in lower case, and its arguments; parentheses among these are arguments, too."""
Listener: TypeAlias = Callable[[Path, list[str]], None]
"""What hears a call: the folder whose file makes it, and the arguments."""


def parse(text: str) -> list[Command]:
    """The commands of a file.

    >>> parse('if (NOT MSVC) # no\\n  positive_test(a "b c")\\nendif ()')
    [('if', ('NOT', 'MSVC')), ('positive_test', ('a', 'b c')), ('endif', ())]
    """
    commands: list[Command] = []
    name, depth, arguments = "", 0, list[str]()
    for token in _TOKEN.finditer(text):
        quoted, parenthesis, word = token.groups()
        if token[0].startswith("#"):
            continue
        if parenthesis == "(":
            depth += 1
        elif parenthesis == ")":
            depth -= 1
            if depth == 0:
                commands.append((name.lower(), tuple(arguments)))
                arguments = []
                continue
        if depth == 0:
            name = word or ""
        elif depth > 1 or not parenthesis:
            arguments.append(quoted if quoted is not None else parenthesis or word)
    return commands


@dataclass(slots=True)
class Interpreter:
    """Runs the files; calls of `listeners` are told, in order."""

    listeners: Mapping[str, Listener]
    variables: dict[str, str]
    """What conditions may ask for; all others are unset."""
    functions: dict[str, tuple[tuple[str, ...], list[Command]]] = field(default_factory=dict)

    def run(self, folder: Path) -> None:
        """The CMakeLists.txt of a folder."""
        self._commands(parse((folder / "CMakeLists.txt").read_text(encoding="utf-8")), folder, {})

    def _commands(self, commands: Sequence[Command], folder: Path, scope: Mapping[str, str]) -> None:
        rest = iter(commands)
        for name, arguments in rest:
            match name:
                case "function" | "macro":
                    self.functions[arguments[0].lower()] = (arguments[1:], list(_until_end(rest, name)))
                case "if":
                    self._commands(self._branch(list(_until_end(rest, "if")), arguments, scope), folder, scope)
                case "add_subdirectory":
                    if (folder / arguments[0] / "CMakeLists.txt").is_file():
                        self.run(folder / arguments[0])
                case _:
                    self._call(name, self._expanded(arguments, scope), folder)

    def _call(self, name: str, arguments: list[str], folder: Path) -> None:
        if (listener := self.listeners.get(name)) is not None:
            listener(folder, arguments)
        elif name in self.functions:
            parameters, body = self.functions[name]
            scope = dict(zip(parameters, arguments, strict=False))
            scope |= {"ARGV": ";".join(arguments), "ARGN": ";".join(arguments[len(parameters) :])}
            self._commands(body, folder, scope)

    def _expanded(self, arguments: Sequence[str], scope: Mapping[str, str]) -> list[str]:
        """The arguments with variables in place; a list of values is several arguments."""
        known = self.variables | dict(scope)
        texts = [_VARIABLE.sub(lambda name: known.get(name[1], ""), argument) for argument in arguments]
        return [part for text in texts for part in text.split(";") if part]

    def _branch(self, body: list[Command], condition: tuple[str, ...], scope: Mapping[str, str]) -> list[Command]:
        """The commands of the first branch whose condition holds."""
        branches: list[tuple[tuple[str, ...], list[Command]]] = [(condition, [])]
        depth = 0
        for name, arguments in body:
            depth += (name == "if") - (name == "endif")
            if depth == 0 and name in ("else", "elseif"):
                branches.append((arguments if name == "elseif" else ("TRUE",), []))
            else:
                branches[-1][1].append((name, arguments))
        return next((commands for asked, commands in branches if self._holds(self._expanded(asked, scope))), [])

    def _holds(self, words: list[str]) -> bool:
        """A condition of names, NOT, AND, OR and MATCHES; parentheses end in the plain order of words."""
        words = [word for word in words if word not in ("(", ")")]
        for junction, both in (("OR", any), ("AND", all)):
            if junction in words:
                place = words.index(junction)
                return both((self._holds(words[:place]), self._holds(words[place + 1 :])))
        match words:
            case ["NOT", *others]:
                return not self._holds(others)
            case [text, "MATCHES", pattern]:
                return re.search(pattern, text) is not None
            case [word]:
                return self.variables.get(word, word).upper() in ("1", "ON", "TRUE", "YES")
            case _:
                return False


def _until_end(rest: Iterator[Command], opening: str) -> Iterator[Command]:
    """The commands before the end of a block."""
    depth = 1
    for name, arguments in rest:
        depth += (name == opening) - (name == f"end{opening}")
        if depth == 0:
            return
        yield name, arguments
