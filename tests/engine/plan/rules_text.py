"""Typed programs from short text, so that tests of the planner need no other stage.

Everything is a number; `p(x, 3, _)`, `!n(x)`, `x < y`, `z = x + y`, `r = [x, y]` (a record `pair`), `c = count : { ...; ... }`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dlog.engine.ir.aggregates import AGGREGATES
from dlog.engine.ir.rules import (
    Aggregate,
    Arg,
    Atom,
    Compare,
    Constant,
    Functor,
    Head,
    Io,
    Kind,
    Lattice,
    Literal,
    Negation,
    Program,
    Record,
    Relation,
    Rule,
    Stratum,
    Term,
    Type,
    Unpack,
    Variable,
)
from dlog.grammar.source import Source

NUMBER = Type("number", Kind.NUMBER)


def split_top(text: str, separator: str) -> list[str]:
    """Splits at separators outside of brackets."""
    parts, depth, last = [], 0, ""
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == separator and depth == 0:
            parts.append(last.strip())
            last = ""
        else:
            last += c
    return [*parts, last.strip()] if last.strip() else parts


class _Reader:
    def __init__(self) -> None:
        self.names: list[str] = []

    def variable(self, name: str) -> Variable:
        if name not in self.names:
            self.names.append(name)
        return Variable(self.names.index(name))

    def term(self, text: str) -> Term:
        text = text.strip()
        for op in "+-*/":
            if len(parts := split_top(text, op)) == 2:
                return Functor(op, (self.term(parts[0]), self.term(parts[1])), Kind.NUMBER, Kind.NUMBER)
        if text.startswith("["):
            return Record("pair", tuple(self.term(t) for t in split_top(text[1:-1], ",")))
        return Constant(int(text), Kind.NUMBER) if text.isdigit() else self.variable(text)

    def arg(self, text: str) -> Arg:
        term = None if text.strip() == "_" else self.term(text)
        assert term is None or isinstance(term, Variable | Constant)
        return term

    def atom(self, text: str) -> Atom:
        name, args = text.rstrip(")").split("(", 1)
        return Atom(name.strip(), tuple(self.arg(a) for a in split_top(args, ",")))

    def literal(self, text: str) -> Literal:
        if found := re.match(r"(\w+) *= *(\w+) *([^:]*):\s*\{(.*)\}$", text, re.S):
            return self.aggregate(*found.groups())
        if text.startswith("!") and "=" not in text:
            return Negation(self.atom(text[1:]))
        if re.match(r"\w+\(", text):
            return self.atom(text)
        found = re.match(r"(.+?) *(!=|<=|>=|<|>|=) *(.+)$", text)
        assert found, text
        left, op, right = found.groups()
        if op == "=" and right.startswith("["):
            value = self.variable(left)
            return Unpack(value, "pair", tuple(self.arg(a) for a in split_top(right[1:-1], ",")))
        return Compare(op, self.term(left), self.term(right), Kind.NUMBER)

    def aggregate(self, result: str, op: str, target: str, body: str) -> Aggregate:
        alternatives = tuple(tuple(self.literal(x) for x in split_top(a, ",")) for a in split_top(body, ";"))
        value = self.term(target) if target.strip() else None
        return Aggregate(self.variable(result), op, value, alternatives, (), AGGREGATES[op].result or Kind.NUMBER)


def variables(part: object) -> set[int]:
    if isinstance(part, Variable):
        return {part.id}
    if isinstance(part, tuple | list):
        return set().union(*map(variables, part)) if part else set()
    return set().union(*(variables(getattr(part, n)) for n in getattr(part, "__slots__", ())), set())


def _with_outer(body: Sequence[Literal], around: set[int]) -> tuple[Literal, ...]:
    """The body with the outer variables of its aggregates set."""
    result: list[Literal] = []
    for literal in body:
        if isinstance(literal, Aggregate):
            others = [variables(x) if not isinstance(x, Aggregate) else {x.result.id} for x in body if x is not literal]
            here = around.union(*others)
            inner = variables(literal.alternatives) | variables(literal.target)
            outer = tuple(Variable(i) for i in sorted(here & inner))
            alternatives = tuple(_with_outer(a, here | variables(literal.target)) for a in literal.alternatives)
            literal = Aggregate(literal.result, literal.op, literal.target, alternatives, outer, literal.kind)
        result.append(literal)
    return tuple(result)


def rule(text: str) -> Rule:
    reader = _Reader()
    head, _, body = text.strip().rstrip(".").partition(":-")
    name, args = head.strip().rstrip(")").split("(", 1)
    terms = tuple(reader.term(a) for a in split_top(args, ","))
    literals = _with_outer([reader.literal(x) for x in split_top(body, ",")], variables(terms))
    return Rule(Head(name, terms), literals, tuple(reader.names), (Kind.NUMBER,) * len(reader.names), text.strip())


def program(
    text: str,
    arities: Mapping[str, int] | None = None,
    recursive: bool = False,
    inputs: Sequence[str] = (),
    lattices: Mapping[str, Lattice] | None = None,
) -> tuple[Stratum, Program]:
    """One stratum with the rules in `text` (one per line), and a program around it."""
    rules = tuple(rule(line) for line in text.strip().splitlines() if line.strip())
    found: dict[str, int] = dict(arities or {})
    for r in rules:
        found[r.head.relation] = len(r.head.args)
        _collect(r.body, found)
    relations = {n: Relation(n, tuple((f"c{i}", NUMBER) for i in range(a))) for n, a in found.items()}
    stratum = Stratum(tuple(sorted({r.head.relation for r in rules})), rules, recursive)
    io = tuple(Io("input", name) for name in inputs)
    return stratum, Program(Source(text), {}, relations, {}, (stratum,), io, dict(lattices or {}))


def _collect(body: Sequence[Literal], found: dict[str, int]) -> None:
    for x in body:
        match x:
            case Atom(relation=name, args=args) | Negation(atom=Atom(relation=name, args=args)):
                found[name] = len(args)
            case Aggregate(alternatives=alternatives):
                for a in alternatives:
                    _collect(a, found)
