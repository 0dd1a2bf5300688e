"""Edits that mend what a finding is about: the name that was meant, a variable that is meant to occur once."""

from __future__ import annotations

import re
from typing import Final

from dlog.dataclass import dataclass
from dlog.grammar.diagnostics import Diagnostic
from dlog.grammar.source import Span

_MEANT: Final = re.compile(r"^did you mean `([^`]+)`\?")
_QUOTED: Final = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Fix:
    """`replacement` in the place of `span`, an offset into the text of the finding's own source."""

    title: str
    span: Span
    replacement: str


def fixes(finding: Diagnostic) -> list[Fix]:
    """What an editor may offer for a finding."""
    found = [_rename(finding, meant[1]) for note in finding.notes if (meant := _MEANT.match(note))]
    if finding.code == "single-use-variable" and finding.labels:
        span = finding.labels[0].span
        found.append(Fix("mark as meant to occur once", Span(span.start, span.start), "_"))
    return [fix for fix in found if fix is not None]


def _rename(finding: Diagnostic, meant: str) -> Fix | None:
    """The misspelled name, which the message quotes, replaced where the finding points."""
    if finding.source is None or not finding.labels:
        return None
    span, text = finding.labels[0].span, finding.source.text
    for written in _QUOTED.findall(finding.message):
        at = text.find(written, span.start, max(span.end, span.start + len(written)))
        if at >= 0:
            return Fix(f"replace by `{meant}`", Span(at, at + len(written)), meant)
    return None
