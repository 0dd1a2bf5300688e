"""Rows, values and literals of a proof, in the words of the language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any

from dlog.branch import Branch
from dlog.engine.compile.past import is_declared, moment
from dlog.engine.ir.printing import Printer
from dlog.engine.ir.rules import Aggregate, Atom, Literal
from dlog.grammar.source import Source
from dlog.grammar.unparse import quote


def literal_of(value: Any) -> str:
    """A Python value as a literal.

    >>> literal_of((1, ("a", None), 0.5))
    '[1, ["a", nil], 0.5]'
    >>> literal_of(Branch("Node", 1, Branch("Leaf")))
    '$Node(1, $Leaf())'
    """
    match value:
        case None:
            return "nil"
        case str():
            return quote(value)
        case tuple():
            return _deep(value)
        case date():
            return f'{"timestamp" if isinstance(value, datetime) else "date"}("{value.isoformat()}")'
        case _:
            return str(value)


def _deep(record: tuple[Any, ...]) -> str:
    """Records nest deeply as lists do, so this does not recurse."""
    pieces: list[str] = []
    stack: list[Any] = [("value", record)]
    while stack:
        what, value = stack.pop()
        if what == "value" and isinstance(value, tuple):
            stack += reversed(_spread(value))
        else:
            pieces.append(value if what == "text" else literal_of(value))
    return "".join(pieces)


def _spread(record: tuple[Any, ...]) -> list[tuple[str, Any]]:
    branch = isinstance(record, Branch)
    found: list[tuple[str, Any]] = [("text", f"${record.name}(" if isinstance(record, Branch) else "[")]
    for number, value in enumerate(record[1:] if branch else record):
        found += [("text", ", ")] * bool(number) + [("value", value)]
    return [*found, ("text", ")" if branch else "]")]


def row_text(relation: str, row: Iterable[Any]) -> str:
    """
    >>> row_text("edge", (1, "b"))
    'edge(1, "b")'
    """
    return f"{relation}({', '.join(map(literal_of, row))})"


def event_text(event: str, row: Iterable[Any], round: int, met: Iterable[tuple[str, Any]]) -> str:
    """A row that came, and what it met.

    >>> event_text("order", (1, "tea"), 3, [("p", 4)])
    '@order(1, "tea")  came in round 3, with p = 4'
    """
    values = ", ".join(f"{name} = {literal_of(value)}" for name, value in met)
    return f"@{row_text(event, row)}  came in round {round}{', with ' * bool(values)}{values}"


def bounds_text(first: int, end: int) -> str:
    """The rounds from which on and until before which a row is there.

    >>> bounds_text(2, 9), bounds_text(0, 9), bounds_text(2, 2**63 - 1)
    ('2 <= now(), now() < 9', 'now() < 9', '2 <= now()')
    """
    texts = [f"{first} <= now()"] * (first > 0) + [f"now() < {end}"] * (end < 2**63 - 1)
    return ", ".join(texts) or "now()"


def literal_text(literal: Literal, names: Sequence[str], source: Source) -> str:
    """A literal as in a body; an aggregate as it was written."""
    if isinstance(literal, Atom) and not is_declared(literal.relation) and moment(literal.relation) is None:
        return source.text[literal.span.start : literal.span.end]
    if isinstance(literal, Aggregate):
        return f"{names[literal.result.id]} = {aggregate_text(literal, source)}"
    return Printer(names).literal(literal)


def aggregate_text(aggregate: Aggregate, source: Source) -> str:
    """The aggregate as it was written."""
    return " ".join(source.text[aggregate.span.start : aggregate.span.end].split())
