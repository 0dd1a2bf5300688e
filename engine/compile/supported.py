"""Refuses what is not executed yet, all of it at once, each at its place. What passes is the language of the later stages."""

from __future__ import annotations

from collections.abc import Iterator

from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.walk import Node, parts, walk
from dlog.grammar.literal_facts import LiteralFact
from dlog.grammar.source import Source, Span
from dlog.grammar.syntax import (
    AggregateTerm,
    Clause,
    Item,
    Program,
)


def refuse_unsupported(program: Program, source: Source) -> None:
    """Raise `not supported yet: <construct>` for every use of one."""
    problems = Problems(source)
    for item in program.items:
        if type(item) is LiteralFact:
            continue
        for construct, span in _in_item(item):
            problems.add("unsupported", f"not supported yet: {construct}", Label(span))
    problems.check()


def _in_item(item: Item) -> Iterator[tuple[str, Span]]:
    match item:
        case Clause():
            for root in parts(item):
                for node in walk(root):
                    yield from _in_term(node)
        case _:
            pass


def _in_term(node: Node) -> Iterator[tuple[str, Span]]:
    match node:
        case AggregateTerm(op=op) if op.startswith("@"):
            yield "user-defined aggregates", node.span
        case _:
            pass
