"""Comparisons of floats for equality. What aggregates yield may be compared: a minimum is one of the values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlog.engine.compile.normal.literals import literal_kinds
from dlog.engine.compile.walk import Node, outside_aggregates, walk
from dlog.engine.ir.rules import Kind
from dlog.grammar.diagnostics import Diagnostic, Label
from dlog.grammar.syntax import (
    AggregateTerm,
    Atom,
    Call,
    Cast,
    Clause,
    Constraint,
    Item,
    Not,
    Number,
    RelationDecl,
    SubtypeDecl,
    Term,
    UnionDecl,
    Variable,
)

_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "^", "**", "min", "max"})
"""Functors whose result is a float where an argument is."""


class Floats:
    """The columns of a program's relations that are floats."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._types = _float_types(items)
        self._columns = {
            name: columns
            for item in items
            if isinstance(item, RelationDecl)
            for columns in ([at for at, attribute in enumerate(item.attributes) if attribute.type in self._types],)
            for name in item.names
            if columns
        }

    def compared(self, clause: Clause) -> Iterator[Diagnostic]:
        """Each `=` and `!=` of a clause between floats that both have a value without it."""
        if clause.body is None:
            return
        nodes = list(outside_aggregates(clause.body))
        comparisons = [node for node in nodes if isinstance(node, Constraint) and node.op in ("=", "!=")]
        if not comparisons:
            return
        bound, floats = self._variables(nodes)
        for node in comparisons:
            sides = (node.left, node.right)
            if any(self._is_float(side, floats) for side in sides) and all(_has_value(side, bound) for side in sides):
                note = "compare with a tolerance, as in `x - y < 1e-9, y - x < 1e-9`"
                yield Diagnostic("float-equality", f"floats are compared by `{node.op}`", (Label(node.span),), (note,))

    def _variables(self, nodes: list[Node]) -> tuple[set[str], set[str]]:
        """The variables that atoms bind, and those of them that are floats."""
        negated = {id(inner) for node in nodes if isinstance(node, Not) for inner in walk(node)}
        bound: set[str] = set()
        floats: set[str] = set()
        for node in nodes:
            if isinstance(node, Atom) and id(node) not in negated:
                bound |= {arg.name for arg in node.args if isinstance(arg, Variable)}
                args = [node.args[at] for at in self._columns.get(node.name, ()) if at < len(node.args)]
                floats |= {arg.name for arg in args if isinstance(arg, Variable)}
        return bound, floats

    def _is_float(self, term: Term, floats: set[str]) -> bool:
        match term:
            case Variable(name=name):
                return name in floats
            case Number(text=text):
                return literal_kinds(text) == frozenset({Kind.FLOAT})
            case Cast(type=name):
                return name in self._types
            case Call(name=name, args=args):
                return name == "to_float" or (name in _ARITHMETIC and any(self._is_float(arg, floats) for arg in args))
            case _:
                return False


def _has_value(term: Term, bound: set[str]) -> bool:
    """Whether a term has a value by the atoms of the body alone. An aggregate's is taken as it comes."""
    nodes = list(walk(term))
    if any(isinstance(node, AggregateTerm) for node in nodes):
        return False
    return all(node.name in bound for node in nodes if isinstance(node, Variable))


def _float_types(items: Sequence[Item]) -> set[str]:
    """The names of `float`, its subtypes and the unions of these."""
    bases: dict[str, tuple[str, ...]] = {item.name: (item.base,) for item in items if isinstance(item, SubtypeDecl)}
    bases |= {item.name: item.members for item in items if isinstance(item, UnionDecl)}
    found, before = {"float"}, 0
    while len(found) > before:
        before = len(found)
        found |= {name for name, parts in bases.items() if all(part in found for part in parts)}
    return found
