"""What is wrong with a program, for people: diagnostics with a code, spans, notes, and the two exceptions that carry them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlog.grammar.source import Source, Span


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


class DlogError(Exception):
    """The user's mistake: one or more diagnostics, all those of a stage. Exit code 1."""

    def __init__(self, diagnostics: Sequence[Diagnostic] | Diagnostic) -> None:
        self.diagnostics = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        super().__init__("; ".join(d.message for d in self.diagnostics))


class InternalError(Exception):
    """A broken promise inside dlog; `stage` says where. Exit code 2."""

    def __init__(self, stage: str, message: str) -> None:
        self.stage = stage
        super().__init__(f"internal error in {stage}: {message}")
