"""Errors of programs, for people: diagnostics with a code, spans, notes, and the two exceptions that carry them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from dlog.dataclass import dataclass
from dlog.grammar.source import Location, Source, Span

_COLUMN = re.compile(r":\d+:(\d+)$")
_DIRECTING = (*range(0x80, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Controls of terminals beyond ASCII, and those of the direction of writing."""
_SIGNS = {c: 0x2400 + c for c in range(0x20) if c not in b"\t\n"} | {0x7F: 0x2421} | dict.fromkeys(_DIRECTING, 0xFFFD)
AROUND = 200
"""Characters of a long line that are shown on both sides of a place."""
LONGEST = 1000
"""Characters of a message that are shown, its begin and its end: values in it may have any length."""
_ELLIPSIS = "..."
_LINE_ENDS = {0x0A: 0x2424, 0x2028: 0x2424, 0x2029: 0x2424}


@dataclass(frozen=True, slots=True)
class Label:
    """A place in the program text and what to say about it there (may be empty for the primary place)."""

    span: Span
    message: str = ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `code` is a stable slug (`unknown-relation`); `labels[0]` is the primary place; `notes` say more, such as
    "did you mean `edge`?". `source` is needed to show labels; a finding about a data file has `place` instead
    (`facts/edge.facts:3:2`) and optionally the offending `line`."""

    code: str
    message: str
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    source: Source | None = None
    place: str = ""
    line: str = ""
    severity: str = "error"


MAX_OF_ONE_CODE = 20
"""So many diagnostics of a code are shown, as of syntax errors: who has more mends some and looks again."""


def without_floods(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics of each code up to `MAX_OF_ONE_CODE`; then, for each code with more, how many these are."""
    times = Counter(d.code for d in diagnostics)
    if max(times.values(), default=0) <= MAX_OF_ONE_CODE:
        return list(diagnostics)
    left = dict.fromkeys(times, MAX_OF_ONE_CODE)
    shown: list[Diagnostic] = []
    for diagnostic in diagnostics:
        if left[diagnostic.code]:
            left[diagnostic.code] -= 1
            shown.append(diagnostic)
    severities = {d.code: d.severity for d in shown}
    for code, number in times.items():
        if number > MAX_OF_ONE_CODE:
            more = number - MAX_OF_ONE_CODE
            message = f"{more:,} more of the kind `{code}` {'is' if more == 1 else 'are'} not shown"
            shown.append(Diagnostic(code, message, severity=severities[code]))
    return shown


class DlogError(Exception):
    """The user's mistake: one or more diagnostics, all those of a stage. Exit code 1. Its text is what the command line
    prints."""

    def __init__(self, diagnostics: Sequence[Diagnostic] | Diagnostic) -> None:
        self.diagnostics = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        super().__init__("; ".join(d.message for d in self.diagnostics))

    def __str__(self) -> str:
        return render_all(self.diagnostics)

    def __reduce__(self) -> tuple[type[DlogError], tuple[list[Diagnostic]]]:
        return type(self), (list(self.diagnostics),)


class InternalError(Exception):
    """A broken promise inside dlog; `stage` says where. Exit code 2."""

    def __init__(self, stage: str, message: str) -> None:
        self.stage = stage
        self.message = message
        super().__init__(f"internal error in {stage}: {message}")

    def __reduce__(self) -> tuple[type[InternalError], tuple[str, str]]:
        return type(self), (self.stage, self.message)


def render(diagnostic: Diagnostic) -> str:
    """The diagnostic as text for a terminal or a file: message, place, source lines with what is meant underlined, notes.

    >>> source = Source("path(x) :- egde(x).", "tc.dl")
    >>> print(render(Diagnostic("unknown-relation", "unknown relation `egde`", (Label(Span(11, 15)),), (), source)))
    error: unknown relation `egde`
     --> tc.dl:1:12
      |
    1 | path(x) :- egde(x).
      |            ^^^^
    """
    # The code of a warning is what turns it off.
    kind = f"warning[{diagnostic.code}]" if diagnostic.severity == "warning" else diagnostic.severity
    parts = [f"{kind}: {shortened(diagnostic.message)}"]
    if diagnostic.source is not None and diagnostic.labels:
        parts += _excerpts(diagnostic.source, diagnostic.labels)
    elif diagnostic.place:
        parts.append(f" --> {diagnostic.place}")
        if diagnostic.line:
            parts += _line_of_data(diagnostic)
    parts += [f"  = {shortened(note)}" for note in diagnostic.notes]
    return "\n".join(map(one_line, parts))


def printable(text: str) -> str:
    """Text that shows on a terminal as it is, as wide as before: signs stand for control characters, as data may have them have
    the terminal do anything, and lone surrogates are written out."""
    return text.translate(_SIGNS).encode("utf-8", "backslashreplace").decode()


def one_line(text: str) -> str:
    """Printable text whose line ends are signs, too: names and values from outside could forge lines of what is said."""
    return printable(text.translate(_LINE_ENDS))


def shortened(text: str) -> str:
    """A text as it is, or what it begins and ends with."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}{_ELLIPSIS}{text[-LONGEST // 2 :]}"


def _around(line: str, column: int) -> tuple[str, int]:
    """A line as it is or, if it is long, what is around a column of it; and which column of that it is."""
    if len(line) <= 2 * AROUND:
        return line, column
    start, end = max(0, column - 1 - AROUND), column - 1 + AROUND
    before, after = _ELLIPSIS * (start > 0), _ELLIPSIS * (end < len(line))
    return f"{before}{line[start:end]}{after}", column - start + len(before)


def _line_of_data(diagnostic: Diagnostic) -> list[str]:
    """The line of a place in a data file, and the caret under its column. Tabs stay: they are as wide in both."""
    found = _COLUMN.search(diagnostic.place)
    line, column = _around(diagnostic.line, 1 if found is None else int(found[1]))
    if found is None:
        return [f"  | {line}"]
    return [f"  | {line}", "  | " + "".join("\t" if c == "\t" else " " for c in line[: column - 1]) + "^"]


def render_all(diagnostics: Sequence[Diagnostic]) -> str:
    """All diagnostics, an empty line between them."""
    return "\n\n".join(render(d).rstrip("\n") for d in diagnostics)


@dataclass(frozen=True, slots=True)
class _Excerpt:
    """A label at its line, of which `text` is shown: `width` characters from `column` of this on are underlined."""

    at: Location
    text: str
    column: int
    width: int
    label: Label
    primary: bool


def _excerpts(source: Source, labels: Sequence[Label]) -> list[str]:
    """The lines of all labels: those in the file of the first one in the order of lines, then the others."""
    found = [_excerpt(source, label, label is labels[0]) for label in labels]
    first = found[0].at
    margin = len(str(max(e.at.line for e in found)))
    lines = [f"{' ' * margin}--> {first.file}:{first.line}:{first.column}", f"{' ' * margin} |"]
    shown: tuple[str, int] | None = None
    for excerpt in sorted(found, key=lambda e: (e.at.file != first.file, e.at.file, e.at.line, e.at.column)):
        here = (excerpt.at.file, excerpt.at.line)
        if shown is not None and shown[0] != here[0]:
            lines.append(f"{' ' * margin}::: {here[0]}:{here[1]}:{excerpt.at.column}")
        elif shown is not None and here[1] > shown[1] + 1:
            lines.append(f"{' ' * margin} ...")
        if shown != here or excerpt.text != excerpt.at.text:
            lines.append(f"{here[1]:>{margin}} | {excerpt.text.expandtabs(4)}".rstrip())
        lines.append(f"{' ' * margin} | {_underline(excerpt)}")
        shown = here
    return lines


def _excerpt(source: Source, label: Label, primary: bool) -> _Excerpt:
    at, width = shown_place(source, label)
    text, column = _around(at.text, at.column)
    return _Excerpt(at, text, column, min(width, max(1, len(text) - column + 1)), label, primary)


def shown_place(source: Source, label: Label) -> tuple[Location, int]:
    """The place to underline, and how many characters: a span over several lines to the end of its first line, one behind the
    end of its line, as in a macro that expands to more than what uses it, with the line."""
    at = source.locate(label.span.start)
    if at.column > len(at.text) + 1:
        return replace(at, column=len(at.text) - len(at.text.lstrip()) + 1), max(1, len(at.text.strip()))
    return at, max(1, min(label.span.end - label.span.start, len(at.text) - at.column + 1))


def _underline(excerpt: _Excerpt) -> str:
    before = excerpt.text[: excerpt.column - 1]
    start = len(before.expandtabs(4)) + max(0, excerpt.column - 1 - len(before))
    width = len((before + excerpt.text[len(before) : len(before) + excerpt.width]).expandtabs(4)) - len(before.expandtabs(4))
    mark = ("^" if excerpt.primary else "-") * max(1, width)
    return f"{' ' * start}{mark} {excerpt.label.message}".rstrip()
