"""Collects the user's mistakes of one stage, so that all are reported at once, each once, sorted by place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from dlog.grammar.diagnostics import Diagnostic, DlogError, Label
from dlog.grammar.source import NOWHERE, Source, Span
from dlog.grammar.suggest import closest

__all__ = ["Label", "Problems", "suggestion"]


INSTANCE_NAME: Final = re.compile(r"(?<![\w.?])(?:[?A-Za-z_][?\w]*\.)+(?=[?A-Za-z_])")
"""The part of a name before its last dot: the component instance that has it."""


class Problems:
    """Findings so far. A mistake in a part shared by several disjuncts is found once per disjunct and kept once; one in a
    component is kept once per instance that its labels name."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._times = 0
        self._diagnostics: dict[tuple[str, str, Span, frozenset[str]], Diagnostic] = {}

    def __len__(self) -> int:
        """The number of findings, the same one again included: it grows with each clause that has any."""
        return self._times

    def add(self, code: str, message: str, *labels: Label, notes: Iterable[str] = ()) -> None:
        self.take(Diagnostic(code, message, labels, tuple(n for n in notes if n), self.source))

    def take(self, finding: Diagnostic) -> None:
        code, message, labels = finding.code, finding.message, finding.labels
        place = labels[0].span if labels else NOWHERE
        self._times += 1
        instances = frozenset(name for label in labels for name in INSTANCE_NAME.findall(label.message))
        self._diagnostics.setdefault((code, message, place, instances), finding)

    def check(self) -> None:
        """Raise all findings, if there are any."""
        if self._diagnostics:
            keys = sorted(self._diagnostics, key=lambda k: (k[2].start, k[2].end, k[0], k[1]))
            raise DlogError([self._diagnostics[key] for key in keys])


def suggestion(name: str, known: Iterable[str]) -> str:
    """A note for a misspelt name, or nothing."""
    found = closest(name, known)
    return f"did you mean `{found}`?" if found else ""
