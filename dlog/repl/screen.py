"""The output of the REPL: tables, changes, proofs, mistakes; with colours at a terminal, plain in a pipe.

The text is the same in both. The styles are those of `dlog.proofs.drawing` and some more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

from dlog.grammar.diagnostics import DlogError, printable, render

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STYLES: Final = {
    "guide": "dim",
    "row": "bold",
    "note": "dim",
    "rule": "cyan",
    "good": "green",
    "bad": "red",
    "head": "bold",
    "": "",
}
_PIPE_WIDTH = 1 << 16
"""The width of what is no terminal."""
UNNAMED: Final = "<text>"
"""The name of what is typed in places of mistakes."""
_UNNAMED = re.compile(r"<(?:text|query|facts|dropped)>(?: \(\d+\))?")

Parts = Iterable[tuple[str, str]]


class Screen:
    """The output of one REPL."""

    def __init__(self, out: TextIO, err: TextIO, colours: bool, width: int | None = None) -> None:
        self.colours = colours
        self._out, self._err, self._width = out, err, width
        self._console: Console | None = None
        self.source = "<input>"
        """Where statements come from."""

    def line(self, *parts: tuple[str, str] | str) -> None:
        """One line of pairs of a style and text; control characters are shown as signs."""
        pairs = [("", printable(part)) if isinstance(part, str) else (part[0], printable(part[1])) for part in parts]
        if self.colours:
            from rich.text import Text

            self._rich().print(Text.assemble(*((text, STYLES[style]) for style, text in pairs)), soft_wrap=True)
        else:
            print("".join(text for _, text in pairs).rstrip(), file=self._out)

    def lines(self, text: str) -> None:
        """Plain text."""
        for line in text.rstrip("\n").split("\n"):
            self.line(line)

    def table(self, names: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool]) -> None:
        """Rows under their names; columns of numbers to the right."""
        from rich.box import Box
        from rich.table import Table

        box = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
        table = Table(box=box, show_edge=False, header_style="bold" if self.colours else "", pad_edge=False)
        for name, is_number in zip(names, right, strict=True):
            table.add_column(name, justify="right" if is_number else "left", overflow="fold")
        for row in rows:
            table.add_row(*(_literally(value) for value in row))
        self._show(table)

    def error(self, error: DlogError) -> None:
        """All mistakes, with their places in what was typed."""
        found = (_UNNAMED.sub(lambda _: self.source, render(diagnostic)) for diagnostic in error.diagnostics)
        self.complain("\n\n".join(text.rstrip("\n") for text in found))

    def complain(self, text: str) -> None:
        """Something that went wrong."""
        if not self.colours:
            self._out.flush()
            print(text, file=self._err, flush=True)
            return
        head, _, rest = text.partition("\n")
        self.line(("bad", head))
        if rest:
            self.lines(rest)

    def flush(self) -> None:
        self._out.flush()

    def _show(self, table: Table) -> None:
        console = self._rich()
        if self.colours:
            console.print(table)
            return
        with console.capture() as captured:
            console.print(table)
        for line in captured.get().rstrip("\n").split("\n"):
            print(line.rstrip(), file=self._out)

    def _rich(self) -> Console:
        if self._console is None:
            from rich.console import Console

            plain: dict[str, Any] = {} if self.colours else {"color_system": None, "width": self._width or _PIPE_WIDTH}
            self._console = Console(file=self._out, highlight=False, **plain)
        return self._console


def _literally(text: str) -> Any:
    """Text whose brackets are not markup, with signs for control characters."""
    from rich.text import Text

    return Text(printable(text))
