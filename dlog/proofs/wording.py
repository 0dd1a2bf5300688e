"""Rows, terms and literals in the words of the language, with values in the place of variables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dlog.engine.ir.functors import FUNCTORS
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Constant,
    Functor,
    Kind,
    Literal,
    Negation,
    Record,
    Term,
    Unpack,
    Variable,
)
from dlog.grammar.source import Source
from dlog.grammar.unparse import quote

_WORDS = {"not_match": "!match", "not_contains": "!contains"}


def literal_of(value: Any) -> str:
    """A Python value as a literal.

    >>> literal_of((1, ("a", None), 0.5))
    '[1, ["a", nil], 0.5]'
    """
    match value:
        case None:
            return "nil"
        case str():
            return quote(value)
        case tuple():
            return _deep(value)
        case _:
            return str(value)


def _deep(record: tuple[Any, ...]) -> str:
    """Records nest deeply as lists do, so this does not recurse."""
    pieces: list[str] = []
    stack: list[Any] = [("text", "]"), *reversed(_spread(record)), ("text", "[")]
    while stack:
        what, value = stack.pop()
        if what == "value" and isinstance(value, tuple):
            stack += [("text", "]"), *reversed(_spread(value)), ("text", "[")]
        else:
            pieces.append(value if what == "text" else literal_of(value))
    return "".join(pieces)


def _spread(record: tuple[Any, ...]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for number, value in enumerate(record):
        found += [("text", ", ")] * bool(number) + [("value", value)]
    return found


def row_text(relation: str, row: Iterable[Any]) -> str:
    """
    >>> row_text("edge", (1, "b"))
    'edge(1, "b")'
    """
    return f"{relation}({', '.join(map(literal_of, row))})"


def term_text(term: Term | None, names: Sequence[str]) -> str:
    """A term with these words for its variables."""
    match term:
        case None:
            return "_"
        case Variable(id=number):
            return names[number]
        case Constant(value=value, kind=kind):
            return f"{value}u" if kind is Kind.UNSIGNED else literal_of(value)
        case Functor(op=op, args=args):
            row, texts = FUNCTORS[op], [term_text(a, names) for a in args]
            if row.form == "infix":
                return f"({texts[0]} {row.written} {texts[1]})"
            if row.form == "prefix":
                return f"{row.written}{' ' * row.written.isalpha()}{texts[0]}"
            return f"{op}({', '.join(texts)})"
        case Record(args=args):
            return f"[{', '.join(term_text(a, names) for a in args)}]"


def atom_text(atom: Atom, names: Sequence[str]) -> str:
    return f"{atom.relation}({', '.join(term_text(a, names) for a in atom.args)})"


def compare_text(compare: Compare, names: Sequence[str]) -> str:
    left, right = (bare(term_text(side, names)) for side in (compare.left, compare.right))
    if compare.op.endswith(("match", "contains")):
        return f"{_WORDS.get(compare.op, compare.op)}({left}, {right})"
    return f"{left} {compare.op} {right}"


def literal_text(literal: Literal, names: Sequence[str], source: Source) -> str:
    """A literal as in a body."""
    match literal:
        case Atom():
            return atom_text(literal, names)
        case Negation(atom=atom):
            return f"!{atom_text(atom, names)}"
        case Compare():
            return compare_text(literal, names)
        case Unpack(value=value, fields=fields):
            return f"{names[value.id]} = [{', '.join(term_text(f, names) for f in fields)}]"
        case Aggregate(result=result):
            return f"{names[result.id]} = {aggregate_text(literal, source)}"


def aggregate_text(aggregate: Aggregate, source: Source) -> str:
    """The aggregate as it was written."""
    return " ".join(source.text[aggregate.span.start : aggregate.span.end].split())


def bare(text: str) -> str:
    """Without the parentheses around an operation that stands alone."""
    if not text.startswith("("):
        return text
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1] if place == len(text) - 1 else text
    return text
