"""`print(x, y)` in a rule's body: writes its arguments to standard error for each match of the body.

    p(x, z) :- e(x, y), print("from", x, "by", y), e(y, z).

becomes a condition that holds always, on a functor that gives 1 and is called for each match of all others. A program that
declares a relation of this name has no such goals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.walk import walk
from dlog.grammar.syntax import (
    AggregateTerm,
    And,
    Atom,
    Body,
    Call,
    Clause,
    Constraint,
    Not,
    Number,
    Or,
    Program,
    RelationDecl,
    Wildcard,
)

PRINT: Final = "print"
CALL: Final = "print!"
"""The functor that stands for a goal, which nobody can write."""


def with_prints(program: Program, problems: Problems) -> Program:
    """The program with conditions in the place of its goals that print."""
    if PRINT not in problems.source.text:
        return program
    if any(isinstance(item, RelationDecl) and PRINT in item.names for item in program.items):
        return program
    changed = tuple(_printing(item, problems) if isinstance(item, Clause) and item.is_rule else item for item in program.items)
    problems.check()
    same = all(new is old for new, old in zip(changed, program.items, strict=True))
    return program if same else replace(program, items=changed)


def _printing(clause: Clause, problems: Problems) -> Clause:
    if clause.body is None or not any(_is_print(node) for node in walk(clause.body)):
        return clause
    for node in _misplaced(clause.body):
        notes = ["it stands beside the conditions of a rule, and writes a line for each match of all of them"]
        message = "`print` neither can be negated nor stand in an aggregate"
        problems.add("misplaced-print", message, Label(node.span), notes=notes)
    return replace(clause, body=_changed(clause.body, problems))


def prints(clause: Clause) -> bool:
    """Whether a clause has such goals, which are conditions by now."""
    return clause.body is not None and any(isinstance(node, Call) and node.name == CALL for node in walk(clause.body))


def _is_print(node: object) -> bool:
    return isinstance(node, Atom) and node.name == PRINT


def _misplaced(body: Body, inside: bool = False) -> Iterator[Atom]:
    """Those that are negated, or inside of aggregates."""
    match body:
        case Atom(name=name) if name == PRINT and inside:
            yield body
        case Not(body=inner):
            yield from _misplaced(inner, True)
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from _misplaced(part, inside)
        case Atom() | Constraint():
            for aggregate in (node for node in walk(body) if isinstance(node, AggregateTerm)):
                yield from _misplaced(aggregate.body, True)
        case _:
            pass


def _changed(body: Body, problems: Problems) -> Body:
    match body:
        case Atom(name=name, args=args) if name == PRINT:
            for arg in args:
                if isinstance(arg, Wildcard):
                    problems.add("wildcard-value", "`_` has no value to print", Label(arg.span))
            call = Call(CALL, args, span=body.span)
            return Constraint("!=", call, Number("0", span=body.span), span=body.span)
        case And(parts=parts) | Or(parts=parts):
            return replace(body, parts=tuple(_changed(part, problems) for part in parts))
        case _:
            return body
