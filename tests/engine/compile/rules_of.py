"""Helpers: a program text to the text of its rules, or to the codes and places of its mistakes."""

from __future__ import annotations

from dlog.engine.compiler import compile_source
from dlog.engine.ir.printing import explicit_rule
from dlog.engine.ir.rules import Program
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.source import Source


def compiled(text: str) -> Program:
    return compile_source(Source(text))


def rules(text: str) -> list[str]:
    """All rules in the order of their strata, as `explain` shows them."""
    return [explicit_rule(rule) for stratum in compiled(text).strata for rule in stratum.rules]


def mistakes(text: str) -> list[tuple[str, str]]:
    """Code and marked text of each diagnostic."""
    try:
        compiled(text)
    except DlogError as error:
        spans = [(d.code, d.labels[0].span) for d in error.diagnostics]
        return [(code, text[span.start : span.end]) for code, span in spans]
    return []
