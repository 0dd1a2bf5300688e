"""Clauses of one form, of which one is checked and normalized for all: they become rules that differ in just what they differ
in themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

from dlog.dataclass import immutable
from dlog.engine.compile.normal.alike_forms import AlikeForm, ShapeForm
from dlog.engine.compile.normal.disjunction import clause_text
from dlog.engine.compile.normal.forms import Form, Key
from dlog.engine.compile.normal.literals import number_constant
from dlog.engine.compile.resolve import Resolved
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
from dlog.grammar.alike_clauses import AlikeClause, ClauseShape
from dlog.grammar.source import Span

AnyForm: TypeAlias = Form | AlikeForm


class Forms:
    """The rules of a program's clauses, by form."""

    def __init__(self, resolved: Resolved) -> None:
        numbers: dict[tuple[str, ...], int] = {}
        self._columns = {
            name: numbers.setdefault(tuple([a.type for a in attributes]), len(numbers))
            for name, attributes in resolved.attributes.items()
        }
        self._source = resolved.source
        self._templates: dict[Key, _Template | None] = {}
        self._shapes: dict[ClauseShape, ShapeForm] = {}

    def form(self, clause: syntax.Clause) -> AnyForm:
        if type(clause) is not AlikeClause:
            return Form(clause, self._columns)
        shape = self._shapes.get(clause.shape)
        if shape is None:
            shape = self._shapes[clause.shape] = ShapeForm(clause.shape)
        return AlikeForm(shape, clause, self._columns)

    def rules(self, form: AnyForm, clause: syntax.Clause) -> list[Rule] | None:
        """The rules of a clause, if there are those of another one of its form."""
        template = self._templates.get(form.key)
        return None if template is None else template.filled(form, clause_text(clause, self._source), clause.span)

    def keep(self, form: AnyForm, rules: Sequence[Rule]) -> None:
        """Lets clauses of a form have the rules of this one, which are without mistakes."""
        if form.key not in self._templates:
            template = _Template(form, rules)
            self._templates[form.key] = template if template.is_general() else None


@immutable
class _Filling:
    """What stands for the template's names in another clause, by their numbers, and for its constants."""

    relations: Sequence[str]
    constants: Mapping[Constant, Constant]
    spans: Sequence[Span]


Fill: TypeAlias = Callable[[_Filling], Any]


class _Fills:
    """Functions that make parts of rules for other clauses."""

    def __init__(self, form: AnyForm, constants: Collection[Constant]) -> None:
        self._relations = form.relations
        self._constants = constants
        self._spans = form.spans  # so that these are the spans' own
        self._places = {id(span): number for number, span in enumerate(self._spans)}
        self.spans: list[int] = []
        """The spans of the clause that the rules have, by their numbers in it."""

    def of(self, value: Any) -> Fill:
        """What makes a value for another clause."""
        return self._changed(value) or (lambda _: value)

    def _changed(self, value: Any) -> Fill | None:
        """The same; None where all clauses have this one."""
        kind = type(value)
        if kind is Variable:
            return None
        if kind is Constant:
            return (lambda filling: filling.constants[value]) if value in self._constants else None
        if kind is Span:
            return self._span(value)
        if kind is tuple:
            return self._tuple(value)
        return self._node(value) if is_dataclass(kind) else None

    def _span(self, span: Span) -> Fill | None:
        number = self._places.get(id(span))
        if number is None:
            return None
        place = len(self.spans)
        self.spans.append(number)
        return lambda filling: filling.spans[place]

    def _tuple(self, values: tuple[Any, ...]) -> Fill | None:
        fills = [self._changed(value) for value in values]
        if not any(fills):
            return None
        parts = tuple(zip(values, fills, strict=True))
        return lambda filling: tuple([v if fill is None else fill(filling) for v, fill in parts])

    def _node(self, node: Any) -> Fill | None:
        made, names = type(node), [f.name for f in fields(node)]
        values = [getattr(node, name) for name in names]
        fills = [self._relation(v) if n == "relation" else self._changed(v) for n, v in zip(names, values, strict=True)]
        changed = [(i, fill) for i, fill in enumerate(fills) if fill is not None]
        if not changed:
            return None

        def fill(filling: _Filling) -> Any:
            now = values.copy()
            for i, part in changed:
                now[i] = part(filling)
            return made(*now)

        return fill

    def _relation(self, name: str) -> Fill:
        number = self._relations[name]
        return lambda filling: filling.relations[number]


class _Template:
    """The rules of a clause for others of its form."""

    def __init__(self, form: AnyForm, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._constants = [_constants(kind, text) for kind, text in form.literals]
        self._names = [[_base(name, form.variables) for name in rule.variables] for rule in rules]
        self._variables = form.variables
        fills = _Fills(form, frozenset([c for own in self._constants for c in own]))
        self._fills = [(fills.of(rule.head), [fills.of(literal) for literal in rule.body]) for rule in rules]
        self._spans = fills.spans

    def is_general(self) -> bool:
        """Whether the rules have every literal that clauses of the form may have others for, and no name of a variable is like
        those that variables without one get."""
        there = {c for rule in self._rules for part in (rule.head, *rule.body) for c in _constants_of(part)}
        literals = all(not there.isdisjoint(own) for own in self._constants)
        return bool(self._rules) and literals and not any(map(_is_made, self._variables))

    def filled(self, form: AnyForm, text: str, span: Span) -> list[Rule] | None:
        if any(map(_is_made, form.variables)):
            return None
        constants: dict[Constant, Constant] = {}
        for own, (kind, said) in zip(self._constants, form.literals, strict=True):
            constants.update(zip(own, _constants(kind, said), strict=True))
        filling = _Filling(list(form.relations), constants, form.some_spans(self._spans))
        variables = list(form.variables)
        made = []
        for rule, names, (head, body) in zip(self._rules, self._names, self._fills, strict=True):
            named = tuple([name if number is None else variables[number] + name for number, name in names])
            made.append(Rule(head(filling), tuple([literal(filling) for literal in body]), named, rule.kinds, text, span))
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
