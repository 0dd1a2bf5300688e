"""Calls of table functions, for the naive evaluator: each is taken out of its term to an equation beside the literal, and what
they give is written out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from dlog.grammar.source import Span
from dlog.grammar.syntax import (
    AggregateTerm,
    And,
    Atom,
    Body,
    Call,
    Clause,
    Constraint,
    Not,
    Or,
    RecordTerm,
    Term,
    Truth,
    Variable,
)
from tests.naive_functors import wrap

GENERATORS = {"range", "split", "json_each", "regex_captures"}


def without_calls(clause: Clause) -> Clause:
    """The clause with a new variable in the place of each call, and an equation for it in the body."""
    beside: list[Body] = []
    naming = _Naming()
    heads = tuple(Atom(h.name, naming.terms(h.args, beside), span=h.span) for h in clause.heads)
    body = None if clause.body is None else naming.body(clause.body)
    if beside:
        body = And((*beside, *(() if body is None else (body,))), span=clause.span)
    return replace(clause, heads=heads, body=body)


class _Naming:
    def __init__(self) -> None:
        self.count = 0

    def terms(self, terms: tuple[Any, ...], beside: list[Body]) -> tuple[Any, ...]:
        return tuple(self.term(t, beside) for t in terms)

    def term(self, term: Any, beside: list[Body]) -> Any:
        match term:
            case AggregateTerm():
                return self.aggregate(term)
            case Call(name=name) if name in GENERATORS:
                self.count += 1
                result = Variable(f"#{self.count}", span=term.span)
                call = Call(name, self.terms(term.args, beside), span=term.span)
                beside.append(Constraint("=", result, call, span=term.span))
                return result
            case tuple():
                return self.terms(term, beside)
            case _ if is_dataclass(term) and not isinstance(term, Span):
                parts = {f.name: self.term(getattr(term, f.name), beside) for f in fields(term)}
                return replace(term, **parts)  # type: ignore[type-var]
            case _:
                return term

    def aggregate(self, term: AggregateTerm) -> AggregateTerm:
        inside: list[Body] = []
        target = None if term.target is None else self.term(term.target, inside)
        body = self.body(term.body)
        return replace(term, target=target, body=And((*inside, body), span=term.span) if inside else body)

    def body(self, body: Body) -> Body:
        match body:
            case And(parts=parts) | Or(parts=parts):
                return replace(body, parts=tuple(map(self.body, parts)))
            case Truth():
                return body
            case Constraint(op="=", left=RecordTerm(), right=Call(name=name) as call) if name in GENERATORS:
                inside: list[Body] = []
                whole = replace(body, right=replace(call, args=self.terms(call.args, inside)))
                return And((*inside, whole), span=body.span) if inside else whole
            case Not(body=Atom()) | Atom() | Constraint():
                beside: list[Body] = []
                literal = self.term(body, beside)
                return And((*beside, literal), span=body.span) if beside else literal
            case _:
                return body


def is_call(term: Term) -> bool:
    return isinstance(term, Call) and term.name in GENERATORS


def rows_of(name: str, args: list[Any], kind: str) -> Iterator[tuple[Any, ...]]:
    """The rows that a table function gives, each once."""
    match name:
        case "range":
            yield from ((value,) for value in values_of(name, args, kind))
        case "split":
            text, separator = args
            yield from enumerate(text.split(separator) if separator else list(text))
        case "regex_captures":
            pattern, text = args
            for number, match in enumerate(re.finditer(pattern, text, re.ASCII)):
                groups = enumerate((match[0], *match.groups()))
                yield from ((number, group, taken) for group, taken in groups if taken is not None)
        case _:
            raise NotImplementedError(name)


def values_of(name: str, args: list[Any], kind: str) -> Iterator[Any]:
    """The values that a table function of one column gives, each once."""
    assert name == "range"
    first, end = args[:2]
    step = args[2] if len(args) > 2 else (1 if first <= end else -1)
    if step == 0:
        if first != end:
            yield first
        return
    while (first < end) if step > 0 else (end < first):
        yield first
        after = first + step if kind == "float" else wrap(first + step, kind)
        if after == first or (after > first) != (step > 0):
            break
        first = after
