"""Rows written out as facts, `edge(1, 2). name("a", [3, nil]).`, as Python values, checked against a program's declarations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlog.arguments import text as argument_text
from dlog.branch import Branch
from dlog.codec import Row
from dlog.engine.ir import rules
from dlog.grammar import syntax
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label
from dlog.grammar.source import Source, Span
from dlog.sessions.text import Text


def rows_of_facts(text: Text, facts: str, shown: str | None = None) -> list[tuple[str, Row]]:
    """The relation and the row of each fact, those of a relation together. DlogError for what is no fact of constants."""
    facts = argument_text("facts", facts, "rows written out as text: edge(1, 2).")
    lines = (facts if shown is None else shown).split("\n")
    new = text.parsed(Source(facts, "<facts>", None, {"<facts>": lines}))
    clauses = tuple(item for item in new.items if isinstance(item, syntax.Clause) and item.body is None)
    wrong = [item.span for item in new.items if item not in clauses]
    if wrong or not clauses:
        raise _no_facts(wrong, new.source)
    program = text.placed_in(new.source).compiled((*text.declarations, *clauses))
    computed = [rule.span for stratum in program.strata for rule in stratum.rules]
    if computed:
        raise _no_facts(computed, new.source)
    return [(name, _row(row)) for name, rows in program.facts.items() for row in rows]


def _no_facts(wrong: Sequence[Span], source: Source) -> DlogError:
    note = "a row is written out in constants: edge(1, 2)."
    if not wrong:
        return DlogError(Diagnostic("no-facts", "there is no row", notes=(note,)))
    return DlogError([Diagnostic("no-facts", "this is not a row", (Label(span),), (note,), source) for span in wrong])


def _row(constants: Sequence[rules.Constant | rules.Record]) -> Row:
    return tuple(_value(constant) for constant in constants)


def _value(term: rules.Term) -> Any:
    match term:
        case rules.Constant(value=value):
            return value
        case rules.Record(type=name, args=args) if name.startswith("$"):
            return Branch(name[1:], *(_value(a) for a in args[1:] if a != rules.PAD))
        case rules.Record(args=args):
            return tuple(_value(a) for a in args)
        case _:
            raise AssertionError("facts are constant")
