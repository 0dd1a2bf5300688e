"""Typed rules as text, in the words of the language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dlog.dataclass import dataclass
from dlog.engine.ir.functors import FUNCTORS, is_called, is_infix
from dlog.engine.ir.rules import (
    NOW,
    PAD,
    Aggregate,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Kind,
    Literal,
    Negation,
    Record,
    Rule,
    Term,
    Unpack,
    Variable,
    printed_types,
)
from dlog.grammar.unparse import quote

_MARKS: Final = {Kind.NUMBER: "", Kind.UNSIGNED: "u", Kind.FLOAT: "f", Kind.SYMBOL: "s", Kind.RECORD: "r"}
_ON_TEXTS: Final = {name: f"{'!' * negated}{name.removeprefix('not_')}" for name, negated in
                    (("match", False), ("not_match", True), ("contains", False), ("not_contains", True))}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Printer:
    """Prints what has these words for its variables, by number.

    `explicit` shows what typing has decided, too: the kinds of overloaded operations, the types of records, and the outer
    variables of aggregates.
    """

    names: Sequence[str]
    explicit: bool = False

    def literal(self, literal: Literal) -> str:
        match literal:
            case Atom():
                return self.atom(literal)
            case Negation(atom=atom):
                return f"!{self.atom(atom)}"
            case Compare():
                return self.compare(literal)
            case Unpack(value=value, type=name, fields=fields) if name.startswith("$"):
                return f"{self.term(value)} = {self._branch(name, fields)}"
            case Unpack(value=value, type=name, fields=fields):
                return f"{self.term(value)} {f'is {name}' if self.explicit else '= '}[{self._list(fields)}]"
            case Generator():
                return self.generator(literal)
            case Aggregate():
                return self.aggregate(literal)

    def atom(self, atom: Atom) -> str:
        return self.call(atom.relation, atom.args)

    def call(self, name: str, args: Iterable[Term | None]) -> str:
        return f"{name}({self._list(args)})"

    def compare(self, compare: Compare) -> str:
        left, right = (self.alone(side) for side in (compare.left, compare.right))
        if compare.op in _ON_TEXTS:
            return f"{_ON_TEXTS[compare.op]}({left}, {right})"
        mark = self._mark(compare.kind) if compare.op in ("<", "<=", ">", ">=") else ""
        return f"{left} {compare.op}{mark} {right}"

    def generator(self, generator: Generator) -> str:
        mark = self._mark(generator.kind)
        return f"{self.results(generator)} ={mark} {self.call(generator.function, generator.args)}"

    def results(self, generator: Generator) -> str:
        """The left side of a generator."""
        results = self._list(generator.results)
        return results if len(generator.results) == 1 else f"[{results}]"

    def aggregate(self, aggregate: Aggregate) -> str:
        target = "" if aggregate.target is None else " " + self.term(aggregate.target)
        bodies = " ; ".join(", ".join(map(self.literal, body)) for body in aggregate.alternatives)
        outer = f" per {', '.join(self.names[v.id] for v in aggregate.outer)}" if self.explicit and aggregate.outer else ""
        init = "" if aggregate.init is None else f"{self.term(aggregate.init)}, "
        return f"{self.term(aggregate.result)} = {aggregate.op}{target} : {init}{{ {bodies} }}{outer}"

    def term(self, term: Term | None) -> str:
        match term:
            case None:
                return "_"
            case Variable(id=number):
                return self.names[number]
            case Constant(value=value, kind=kind):
                return constant_text(value, kind)
            case Functor():
                return self._functor(term)
            case Record(type=name, args=args) if name.startswith("$"):
                return self._branch(name, args)
            case Record(type=name, args=args):
                return f"{name if self.explicit else ''}[{self._list(args)}]"

    def alone(self, term: Term) -> str:
        """A term beside no other: an operation without parentheses, unless explicit."""
        text = self.term(term)
        infix = isinstance(term, Functor) and is_infix(term.op)
        return text[1:-1] if infix and not self.explicit else text

    def _functor(self, functor: Functor) -> str:
        texts = [self.term(arg) for arg in functor.args]
        if functor.op == NOW:
            return "now()"
        if printed_types(functor.op) is not None:
            return f"print({', '.join(texts)})"
        if is_called(functor.op):
            return f"{functor.op}({', '.join(texts)})"
        row = FUNCTORS[functor.op]
        if row.form == "infix":
            return f"({texts[0]} {row.written}{self._mark(functor.kind)} {texts[1]})"
        if row.form == "prefix":
            return f"{row.written}{' ' * row.written.isalpha()}{texts[0]}"
        return f"{functor.op}({', '.join(texts)})"

    def _branch(self, name: str, fields: Sequence[Term | None]) -> str:
        own = [field for field in fields[1:] if field != PAD]
        return f"{name}({self._list(own)})" if own else name

    def _list(self, terms: Iterable[Term | None]) -> str:
        return ", ".join(map(self.term, terms))

    def _mark(self, kind: Kind) -> str:
        return _MARKS[kind] if self.explicit else ""


def explicit_rule(rule: Rule) -> str:
    """A rule with all that typing has decided: `path(x, z) :- path(x, y), edge(y, z).`"""
    printer = Printer(rule.variables, explicit=True)
    head = printer.call(rule.head.relation, rule.head.args)
    body = ", ".join(map(printer.literal, rule.body))
    return f"{head} :- {body}." if body else f"{head}."


def constant_text(value: int | float | str | None, kind: Kind) -> str:
    match value:
        case None:
            return "nil"
        case str():
            return quote(value)
        case int() | float():
            return f"{value}u" if kind is Kind.UNSIGNED else str(value)
