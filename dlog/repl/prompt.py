"""The REPL at a terminal: a line editor with highlighting, completion, clauses of several lines, and history."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.styles import Style
from pygments.token import Name

from dlog.caches import Untrusted, home, named_folder, own_content, own_folder
from dlog.engine.ir.functors import written_functors
from dlog.grammar.words import AGGREGATES, DIRECTIVES, QUALIFIERS
from dlog.highlighting import DatalogLexer
from dlog.interruption import heeded_interruption
from dlog.repl.manual import PAGES
from dlog.repl.shell import Shell
from dlog.repl.statements import Token, forced, is_complete, split, tokens

GREETING: Final = "`.help` lists the commands, Ctrl-D leaves"
PROMPT, MORE = "dlog> ", "  ... "
STYLE: Final = Style.from_dict(
    {
        "prompt": "bold",
        "pygments.comment": "italic ansibrightblack",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansimagenta",
        "pygments.keyword": "ansiblue",
        "pygments.keyword.declaration": "bold ansiblue",
        "pygments.operator.word": "ansiblue",
        "pygments.name.builtin": "ansiblue",
        "pygments.name.builtin.pseudo": "bold ansicyan",
        "pygments.name.function": "bold",
    }
)
_TYPES = ("number", "symbol", "float", "unsigned")
_DECLARING: Final = sorted(QUALIFIERS | {*_TYPES})
_COMPUTING: Final = sorted({*written_functors(), *AGGREGATES, "match", "contains", "nil"})
_WORD = re.compile(r"[?A-Za-z_][?\w.]*$")


def converse(shell: Shell) -> int:
    """Reads and executes until Ctrl-D or `.quit`. Mistakes that were told are no failure of the conversation."""
    if shell.options.state is not None:
        shell.open()
    elif shell.options.program is not None:
        shell.check_program()
    editor = make_editor(shell)
    shell.screen.line(("note", GREETING))
    while not shell.done:
        try:
            text = editor.prompt()
            with heeded_interruption():
                shell.run(forced(text))
        except KeyboardInterrupt:
            continue
        except EOFError:
            break
    shell.close()
    return 0


def make_editor(shell: Shell) -> PromptSession[str]:
    """The line editor of a shell."""
    return PromptSession(
        PROMPT,
        prompt_continuation=MORE,
        multiline=True,
        lexer=PygmentsLexer(PromptLexer),
        completer=ProgramCompleter(shell.relations),
        complete_while_typing=True,
        history=_history(),
        key_bindings=_keys(),
        style=STYLE,
    )


def _keys() -> KeyBindings:
    """Enter executes what is complete and begins a new line in what is not; Alt-Enter executes anything."""
    keys = KeyBindings()

    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("escape", "enter")
    def _send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys


# ------------------------------------------------------------------------------------------------------------------- history


def data_folder() -> Path:
    """The folder of the user's dlog data. One that `DLOG_DATA` names by way of the current folder does not count: what somebody
    left there may be a link to a file of the user's."""
    if chosen := os.environ.get("DLOG_DATA"):
        if os.path.isabs(chosen):
            return Path(chosen)
        warnings.warn(f"DLOG_DATA: {chosen} is in the current folder, whosever that is", RuntimeWarning, stacklevel=1)
    if sys.platform == "darwin":
        return home() / "Library" / "Application Support" / "dlog"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home())) / "dlog"
    return named_folder("XDG_DATA_HOME", ".local/share") / "dlog"


def _history() -> History:
    """The history of entered lines; of this conversation only, where there is no place for more, or others can put a link to a
    file of this user's there."""
    try:
        path = own_folder(data_folder()) / "history"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o600))
        own_content(path)
    except Untrusted as problem:
        warnings.warn(f"{problem}: what is typed is not remembered there", RuntimeWarning, stacklevel=1)
        return InMemoryHistory()
    except (OSError, RuntimeError):
        return InMemoryHistory()
    return FileHistory(str(path))


# -------------------------------------------------------------------------------------------------------------- highlighting


class PromptLexer(DatalogLexer):
    """A program, or one of the prompt's commands."""

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        self._first = next((i for i, t in enumerate(tokens(text)) if t.kind not in ("space", "comment")), 0)
        return super().get_tokens_unprocessed(text)

    def kind(self, token: Token, following: str, number: int) -> Any:
        if number == self._first and token.text in PAGES and token.text not in DIRECTIVES:
            return Name.Builtin.Pseudo
        return super().kind(token, following, number)


# ---------------------------------------------------------------------------------------------------------------- completion


class ProgramCompleter(Completer):
    """Completes commands, relations, attributes, words of the language and names of files."""

    def __init__(self, relations: Callable[[], dict[str, tuple[tuple[str, str], ...]]]) -> None:
        self._relations = relations
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        line = before.rsplit("\n", 1)[-1]
        found = _WORD.search(before)
        word = "" if found is None else found[0]
        if _is_command(line):
            yield from self._arguments(line, word, complete_event)
        elif line.lstrip().startswith(".") and " " not in line.lstrip():
            yield from _matching(line.lstrip(), [*PAGES, *DIRECTIVES], _summary)
        else:
            yield from self._in_program(split(before)[1] or line, word)

    def _arguments(self, line: str, word: str, event: CompleteEvent) -> Iterable[Completion]:
        name, *given = line.lstrip().split(" ")
        takes = PAGES[name].takes
        what = takes[min(len(given), len(takes)) - 1] if takes else ""
        match what:
            case "relation":
                yield from _matching(word, self._relations(), self._attributes_text)
            case "command":
                yield from _matching(given[-1], PAGES, _summary)
            case "file":
                yield from self._files(line.lstrip().split(" ", len(takes))[-1].lstrip(), event)
            case "atom":
                yield from self._in_program(line.lstrip()[len(name) :], word)
            case _:
                pass

    def _files(self, typed: str, event: CompleteEvent) -> Iterable[Completion]:
        """Names of files, as a command reads them back: in quotes where there are blanks, which nothing else may follow. Others
        may have left them: none with a sign that ends the line, or that is not shown."""
        begun = typed[1:] if typed.startswith('"') else typed
        for found in self._paths.get_completions(Document(begun), event):
            path = begun[: len(begun) + found.start_position] + found.text
            if path.isprintable() and '"' not in path and (path[0] != "~" or "/" in begun):  # `~name` is somebody's home
                written = f'"{path}"' if typed is not begun or " " in path else path
                yield Completion(written, -len(typed), display=found.display)

    def _in_program(self, text: str, word: str) -> Iterable[Completion]:
        """Names of relations and words of the language; inside an atom of the body also the names of its attributes."""
        relations = self._relations()
        inside = _open_atom(text)
        if inside is not None and inside in relations:
            types = dict(relations[inside])
            yield from _matching(word, types, types.__getitem__)
        if word:
            yield from _matching(word, relations, self._attributes_text)
            yield from _matching(word, _DECLARING if text.lstrip().startswith(".") else _COMPUTING, _summary)

    def _attributes_text(self, relation: str) -> str:
        return ", ".join(f"{name}: {type}" for name, type in self._relations()[relation])


def _summary(name: str) -> str:
    return PAGES[name].summary if name in PAGES else ""


def _is_command(line: str) -> bool:
    """Whether the line is a command whose arguments have begun."""
    name, space, _ = line.lstrip().partition(" ")
    return bool(space) and name in PAGES


def _matching(word: str, names: Iterable[str], meta: Callable[[str], str]) -> Iterator[Completion]:
    for name in names:
        if name.startswith(word) and name != word:
            yield Completion(name, -len(word), display_meta=meta(name))


def _open_atom(text: str) -> str | None:
    """The relation of the innermost atom whose bracket is open at the end of the text."""
    stack: list[str | None] = []
    before: Token | None = None
    for token in tokens(text):
        if token.text in ("(", "[", "{"):
            stack.append(before.text if before is not None and before.kind == "name" else None)
        elif token.text in (")", "]", "}") and stack:
            stack.pop()
        before = token
    return stack[-1] if stack else None
