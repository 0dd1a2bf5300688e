"""Clauses of one form, of which one is checked and normalized for all.

Clauses that differ in names of relations with columns of the same types, in names of variables, in literals and in their places
become rules that differ in just these. Of a literal its value may decide more: where it is compared with another one, or put in
place of a variable. Then the form has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.compile.normal.disjunction import clause_text
from dlog.engine.compile.normal.literals import number_constant
from dlog.engine.compile.resolve import Resolved
from dlog.engine.compile.walk import children
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Head,
    Kind,
    Literal,
    Negation,
    Record,
    Rule,
    Term,
    Unpack,
    Variable,
)
from dlog.grammar import syntax
from dlog.grammar.source import Span

_DIGITS: Final = 15
"""Of so many digits every number fits every kind, and floats tell them apart."""
_PLAIN: Final = frozenset({syntax.And, syntax.Or, syntax.Not, syntax.RecordTerm, syntax.Wildcard, syntax.Nil})
"""Nodes that say nothing but what they are and how many parts they have."""
_Key: TypeAlias = tuple[object, ...]
_Literal: TypeAlias = tuple[type, str]


class Form:
    """What decides the rules of a clause (`key`), and the names and places in it by the order of the text."""

    def __init__(self, clause: syntax.Clause, columns: dict[str, int]) -> None:
        self.relations: dict[str, int] = {}
        self.variables: dict[str, int] = {}
        self.literals: dict[_Literal, int] = {}
        self.spans: list[Span] = []
        self._columns = columns
        self._said: list[object] = [len(clause.heads)]
        self._occurrences = 0
        self._literals = 0
        self._decisive = False
        for head in clause.heads:
            self._node(head)
        if clause.body is not None:
            self._node(clause.body)
        if self._decisive:
            self._said.append(tuple(self.literals))
            self.literals = {}
        self.key: _Key = tuple(self._said)

    def _node(self, node: Any) -> None:
        kind = type(node)
        self.spans.append(node.span)
        if kind is syntax.Variable:
            self._occurrences += 1
            self._said.append(self.variables.setdefault(node.name, len(self.variables)))
        elif kind is syntax.Atom:
            name = node.name
            self._said += ("atom", self.relations.setdefault(name, len(self.relations)), self._columns[name])
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
        self._said.append(node.op)
        self._node(node.left)
        self._node(node.right)
        if self._literals > literals and (node.op == "=" or self._occurrences == occurrences):
            self._decisive = True

    def _number(self, text: str) -> None:
        if text.isdecimal() and text[0] != "0" and len(text) <= _DIGITS:
            self._literal(syntax.Number, text)
        else:
            self._literals += 1
            self._said += (syntax.Number, text)

    def _literal(self, kind: type, text: str) -> None:
        self._literals += 1
        self._said += (kind, self.literals.setdefault((kind, text), len(self.literals)))

    def _other(self, node: Any) -> None:
        parts = children(node)
        kind = type(node)
        self._said += (kind, len(parts))
        if kind is syntax.Not and type(node.body) is not syntax.Atom:
            self._decisive = True  # it may turn another comparison into an equation
        elif kind is syntax.Call:
            self._said.append(node.name)
            if len(parts) == 1 and type(parts[0]) is syntax.Number:  # a sign
                self._literals += 1
                self._said.append(parts[0].text)
                return
        elif kind is syntax.BranchTerm:
            self._said.append(node.branch)
            self._decisive = True  # its tag is a constant like those that literals become
        elif kind is syntax.Cast:
            self._said.append(node.type)
        elif kind is syntax.AggregateTerm:
            self._aggregate(node, parts)
            return
        elif kind is syntax.Truth:
            self._said.append(node.value)
        elif kind not in _PLAIN:
            self._said.append(node)
        for part in parts:
            self._node(part)

    def _aggregate(self, node: syntax.AggregateTerm, parts: Sequence[Any]) -> None:
        """What is inside is not compared with what the aggregate is, of which nothing is known."""
        self._said += (node.op, node.target is None, node.init is None)
        literals = self._literals
        for part in parts:
            self._node(part)
        self._literals = literals
        self._occurrences += 1


class Forms:
    """The rules of a program's clauses, by form."""

    def __init__(self, resolved: Resolved) -> None:
        numbers: dict[tuple[str, ...], int] = {}
        self._columns = {
            name: numbers.setdefault(tuple([a.type for a in attributes]), len(numbers))
            for name, attributes in resolved.attributes.items()
        }
        self._source = resolved.source
        self._known: dict[_Key, _Template | None] = {}

    def form(self, clause: syntax.Clause) -> Form:
        return Form(clause, self._columns)

    def rules(self, form: Form, clause: syntax.Clause) -> list[Rule] | None:
        """The rules of a clause, if there are those of another one of its form."""
        template = self._known.get(form.key)
        return None if template is None else template.filled(form, clause_text(clause, self._source), clause.span)

    def keep(self, form: Form, rules: Sequence[Rule]) -> None:
        """Lets clauses of a form have the rules of this one, which are without mistakes."""
        if form.key not in self._known:
            template = _Template(form, rules)
            self._known[form.key] = template if template.is_general() else None


@dataclass(slots=True)
class _Filling:
    """What stands for the template's names in another clause; spans by the identity of the template's."""

    relations: dict[str, str]
    constants: dict[Constant, Constant]
    spans: dict[int, Span]

    def term(self, term: Any) -> Any:
        kind = type(term)
        if kind is Constant:
            return self.constants.get(term, term)
        if kind is Functor:
            span = self.spans.get(id(term.span), term.span)
            return Functor(term.op, self.terms(term.args), term.kind, term.result, span, term.stateful)
        if kind is Record:
            return Record(term.type, self.terms(term.args))
        return term

    def terms(self, terms: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([t if type(t) is Variable else self.term(t) for t in terms])

    def literal(self, literal: Literal) -> Literal:
        span = self.spans.get(id(literal.span), literal.span)
        match literal:
            case Atom(relation=relation, args=args):
                return Atom(self.relations[relation], self.terms(args), span)
            case Compare(op=op, left=left, right=right, kind=of):
                return Compare(op, self.term(left), self.term(right), of, span)
            case Negation(atom=atom):
                return Negation(self.literal(atom), span)  # type: ignore[arg-type]
            case Unpack(value=value, type=name, fields=fields):
                return Unpack(value, name, self.terms(fields), span)
            case Generator(args=args, results=results):
                return replace(literal, args=self.terms(args), results=self.terms(results), span=span)
            case Aggregate(target=target, alternatives=bodies):
                made = tuple([tuple([self.literal(x) for x in body]) for body in bodies])
                return replace(literal, target=self.term(target), alternatives=made, span=span)

    def head(self, head: Head) -> Head:
        return Head(self.relations[head.relation], self.terms(head.args), self.spans.get(id(head.span), head.span))


class _Template:
    """The rules of a clause for others of its form."""

    def __init__(self, form: Form, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._relations = list(form.relations)
        self._spans = [id(s) for s in form.spans]
        self._held = form.spans  # so that these are the spans' own
        self._constants = [_constants(kind, text) for kind, text in form.literals]
        self._names = [[_base(name, form.variables) for name in rule.variables] for rule in rules]
        self._variables = form.variables

    def is_general(self) -> bool:
        """Whether the rules have every literal that clauses of the form may have others for, and no name of a variable is like
        those that variables without one get."""
        there = {c for rule in self._rules for part in (rule.head, *rule.body) for c in _constants_of(part)}
        literals = all(not there.isdisjoint(own) for own in self._constants)
        return bool(self._rules) and literals and not any(map(_is_made, self._variables))

    def filled(self, form: Form, text: str, span: Span) -> list[Rule] | None:
        if any(map(_is_made, form.variables)):
            return None
        constants: dict[Constant, Constant] = {}
        for own, (kind, said) in zip(self._constants, form.literals, strict=True):
            constants.update(zip(own, _constants(kind, said), strict=True))
        relations = dict(zip(self._relations, form.relations, strict=True))
        filling = _Filling(relations, constants, dict(zip(self._spans, form.spans, strict=True)))
        variables = list(form.variables)
        made = []
        for rule, names in zip(self._rules, self._names, strict=True):
            named = tuple([name if number is None else variables[number] + name for number, name in names])
            body = tuple([filling.literal(x) for x in rule.body])
            made.append(Rule(filling.head(rule.head), body, named, rule.kinds, text, span))
        return made


def _base(name: str, variables: dict[str, int]) -> tuple[int | None, str]:
    """The number of the variable in the clause that has a name in the rule, and the primes that tell it from others."""
    base = name.rstrip("'")
    number = variables.get(base)
    return (None, name) if number is None else (number, name[len(base) :])


def _is_made(name: str) -> bool:
    """Whether a name is like that of a variable without one, `_1`."""
    return name[0] == "_" and name[1:].isdecimal()


def _constants(kind: type, text: str) -> list[Constant]:
    """What a literal may become, by its kind."""
    if kind is syntax.String:
        return [Constant(text, Kind.SYMBOL)]
    made = [number_constant(text, of) for of in (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT)]
    return [c for c in made if c is not None]


def _constants_of(part: Head | Literal | Term | None) -> Iterator[Constant]:
    match part:
        case Constant():
            yield part
        case Head(args=args) | Atom(args=args) | Functor(args=args) | Record(args=args) | Unpack(fields=args):
            for arg in args:
                yield from _constants_of(arg)
        case Generator(args=args, results=results):
            for arg in (*args, *results):
                yield from _constants_of(arg)
        case Negation(atom=atom):
            yield from _constants_of(atom)
        case Compare(left=left, right=right):
            yield from _constants_of(left)
            yield from _constants_of(right)
        case Aggregate(target=target, alternatives=bodies):
            yield from _constants_of(target)
            for body in bodies:
                for literal in body:
                    yield from _constants_of(literal)
        case _:
            pass
