"""The form of a clause: what decides its rules but for names of relations with columns of the same types, names of variables,
literals and places. Of a literal its value may decide more: where it is compared with another one, or put in place of a
variable. Then the form has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from dlog.engine.compile.walk import children
from dlog.grammar import syntax
from dlog.grammar.source import Span

_DIGITS: Final = 15
"""Of so many digits every number fits every kind, and floats tell them apart."""
_PLAIN: Final = frozenset({syntax.And, syntax.Or, syntax.Not, syntax.RecordTerm, syntax.Wildcard, syntax.Nil})
"""Nodes that say nothing but what they are and how many parts they have."""
Key: TypeAlias = tuple[object, ...]
LiteralKey: TypeAlias = tuple[type, str]


def is_plain(number: str) -> bool:
    """Whether it is enough to know what a literal is compared with, not what it is."""
    return number.isdecimal() and number[0] != "0" and len(number) <= _DIGITS


class Form:
    """What decides the rules of a clause (`key`), and the names and places in it by the order of the text."""

    def __init__(self, clause: syntax.Clause, columns: Mapping[str, int]) -> None:
        self.relations: dict[str, int] = {}
        self.variables: dict[str, int] = {}
        self.literals: dict[LiteralKey, int] = {}
        self.spans: list[Span] = []
        self.words: list[object] = [len(clause.heads)]
        self._columns = columns
        self._occurrences = 0
        self._literals = 0
        self.decisive = False
        for head in clause.heads:
            self._node(head)
        if clause.body is not None:
            self._node(clause.body)
        if self.decisive:
            self.words.append(tuple(self.literals))
            self.literals = {}
        self.key: Key = tuple(self.words)

    def some_spans(self, numbers: Iterable[int]) -> list[Span]:
        """The spans with these numbers."""
        return [self.spans[number] for number in numbers]

    def _node(self, node: Any) -> None:
        kind = type(node)
        self.spans.append(node.span)
        if kind is syntax.Variable:
            self._occurrences += 1
            self.words.append(self.variables.setdefault(node.name, len(self.variables)))
        elif kind is syntax.Atom:
            name = node.name
            self.words += ("atom", self.relations.setdefault(name, len(self.relations)), self._columns[name])
            for arg in node.args:
                self._node(arg)
        elif kind is syntax.Constraint:
            self._constraint(node)
        elif kind is syntax.Number:
            self._number(node.text)
        elif kind is syntax.String:
            self._literal(syntax.String, node.value)
        else:
            self._other(node)

    def _constraint(self, node: syntax.Constraint) -> None:
        occurrences, literals = self._occurrences, self._literals
        self.words.append(node.op)
        self._node(node.left)
        self._node(node.right)
        if self._literals > literals and (node.op == "=" or self._occurrences == occurrences):
            self.decisive = True

    def _number(self, text: str) -> None:
        if is_plain(text):
            self._literal(syntax.Number, text)
        else:
            self._literals += 1
            self.words += (syntax.Number, text)

    def _literal(self, kind: type, text: str) -> None:
        self._literals += 1
        self.words += (kind, self.literals.setdefault((kind, text), len(self.literals)))

    def _other(self, node: Any) -> None:
        parts = children(node)
        kind = type(node)
        self.words += (kind, len(parts))
        if kind is syntax.Not and type(node.body) is not syntax.Atom:
            self.decisive = True  # it may turn another comparison into an equation
        elif kind is syntax.Call:
            self.words.append(node.name)
            if len(parts) == 1 and type(parts[0]) is syntax.Number:  # a sign
                self._literals += 1
                self.words.append(parts[0].text)
                return
        elif kind is syntax.BranchTerm:
            self.words.append(node.branch)
            self.decisive = True  # its tag is a constant like those that literals become
        elif kind is syntax.Cast:
            self.words.append(node.type)
        elif kind is syntax.AggregateTerm:
            self._aggregate(node, parts)
            return
        elif kind is syntax.Truth:
            self.words.append(node.value)
        elif kind not in _PLAIN:
            self.words.append(node)
        for part in parts:
            self._node(part)

    def _aggregate(self, node: syntax.AggregateTerm, parts: Sequence[Any]) -> None:
        """What is inside is not compared with what the aggregate is, of which nothing is known."""
        self.words += (node.op, node.target is None, node.init is None)
        literals = self._literals
        for part in parts:
            self._node(part)
        self._literals = literals
        self._occurrences += 1
