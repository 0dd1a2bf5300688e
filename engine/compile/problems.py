"""Collects the user's mistakes of one stage, so that all are reported at once, each once, sorted by place."""

from __future__ import annotations

from collections.abc import Iterable

from dlog.grammar.diagnostics import Diagnostic, DlogError, Label
from dlog.grammar.source import NOWHERE, Source, Span
from dlog.grammar.suggest import closest

__all__ = ["Label", "Problems", "suggestion"]


class Problems:
    """Findings so far. A mistake in a part shared by several disjuncts is found once per disjunct and kept once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._times = 0
        self._found: dict[tuple[str, str, Span], Diagnostic] = {}

    def __len__(self) -> int:
        """The number of findings, the same one again included: it grows with each clause that has any."""
        return self._times

    def add(self, code: str, message: str, *labels: Label, notes: Iterable[str] = ()) -> None:
        place = labels[0].span if labels else NOWHERE
        finding = Diagnostic(code, message, labels, tuple(n for n in notes if n), self.source)
        self._times += 1
        self._found.setdefault((code, message, place), finding)

    def check(self) -> None:
        """Raise all findings, if there are any."""
        if self._found:
            raise DlogError([self._found[key] for key in sorted(self._found, key=lambda k: (k[2].start, k[2].end, k[0], k[1]))])


def suggestion(name: str, known: Iterable[str]) -> str:
    """A note for a misspelt name, or nothing."""
    found = closest(name, known)
    return f"did you mean `{found}`?" if found else ""
