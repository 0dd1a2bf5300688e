"""Subtype checking of one typed clause, by Souffle's rule of sources and sinks.

A positive body atom is a source: each of its variables is of the attribute's type, or of what several atoms have in common.
The head is a sink: a variable's type must be below the attribute's. Literals and results of functors fit every type of their
kind; a negated atom asks for the kind only.

    .type A <: symbol   .type B <: symbol   .decl a(x: A)   .decl b(x: B)
    b(x) :- a(x).               an A is not a B
    b(cat(x, "")) :- a(x).      fine
"""

from __future__ import annotations

from collections.abc import Iterable

from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.resolve import Resolved
from dlog.engine.compile.scope import display
from dlog.engine.compile.typing.domains import check_domains, check_result, result_domain
from dlog.engine.compile.typing.typed import (
    TypedAggregate,
    TypedAtom,
    TypedClause,
    TypedCompare,
    TypedFalse,
    TypedGenerator,
    TypedLiteral,
    TypedTerm,
)
from dlog.engine.ir.aggregates import AGGREGATES
from dlog.engine.ir.rules import Domain
from dlog.grammar.source import Span
from dlog.grammar.syntax import BranchTerm, Cast, RecordTerm, Variable


def check_subtypes(clause: TypedClause, resolved: Resolved, problems: Problems) -> None:
    _Subtypes(clause, resolved, problems).check()


def calendar_types(clause: TypedClause, resolved: Resolved, problems: Problems) -> dict[str, str]:
    """The types of those variables that are dates or times."""
    found = _Subtypes(clause, resolved, problems)
    found.infer()
    types = {name: found.variable_types(name) for name in clause.slots}
    return {name: min(own) for name, own in types.items() if own and all(resolved.table.types[t].is_calendar for t in own)}


class _Subtypes:
    """`types[v]` are the types a variable may have, absent while nothing restricts it; `linked` are equal variables."""

    def __init__(self, clause: TypedClause, resolved: Resolved, problems: Problems) -> None:
        self.clause = clause
        self.resolved = resolved
        self.table = resolved.table
        self.problems = problems
        self.before = len(problems)
        self.linked: dict[str, str] = {}
        self.types: dict[str, frozenset[str]] = {}
        self.first: dict[str, tuple[Span, str]] = {}
        self.anonymous: list[tuple[TypedTerm, TypedTerm]] = []

    def infer(self) -> None:
        self._link(self.clause.body)
        self._link_anonymous()
        self._sources(self.clause.body)
        for arg in self.clause.head.args:
            self._fields(arg)

    def check(self) -> None:
        self.infer()
        check_domains(self.clause, self.domain, self.problems)
        if len(self.problems) == self.before and not self.resolved.is_legacy:
            self._sink()

    def _sink(self) -> None:
        attributes = self.resolved.attributes[self.clause.head.relation]
        for arg, attribute in zip(self.clause.head.args, attributes, strict=True):
            types = self._types(arg)
            check_result(arg, self.table.types[attribute.type], attribute, self.problems)
            if types and not all(self.table.is_subtype(t, attribute.type) for t in types):
                shown = " or ".join(f"`{t}`" for t in sorted(types))
                what = f"`{display(arg.node.name)}`" if isinstance(arg.node, Variable) else "this term"
                message = f"{what} is {shown}, which is not a subtype of `{attribute.type}`"
                notes = [f"convert it with as(..., {attribute.type}) if that is meant"]
                declared = Label(attribute.span, f"attribute `{attribute.name}` of `{self.clause.head.relation}`")
                self.problems.add("not-a-subtype", message, Label(arg.node.span), declared, notes=notes)

    def _root(self, name: str) -> str:
        while (next := self.linked.get(name)) is not None:
            self.linked[name] = self.linked.get(next, next)  # half as far the next time
            name = next
        return name

    def _link(self, body: Iterable[TypedLiteral]) -> None:
        for literal in body:
            match literal:
                case TypedCompare(left=left, right=right) if self._is_anonymous(left) or self._is_anonymous(right):
                    self.anonymous.append((left, right))
                case TypedCompare(left=TypedTerm(node=Variable(name=a)), right=TypedTerm(node=Variable(name=b))):
                    self._join(a, b)
                case TypedAggregate(result=result, target=target, alternatives=alternatives, op=op):
                    if (
                        op in AGGREGATES
                        and AGGREGATES[op].result is None
                        and target is not None
                        and isinstance(target.node, Variable)
                    ):
                        self._join(result, target.node.name)
                    for inner in alternatives:
                        self._link(inner)
                case TypedAtom() | TypedCompare() | TypedFalse() | TypedGenerator():
                    pass

    def _is_anonymous(self, term: TypedTerm) -> bool:
        """Whether a record is of no declared type: its fields are of the types of those they equal."""
        return (self.clause.records[term.slot] or "").startswith("[")

    def _link_anonymous(self) -> None:
        """Equal fields of equal records of no declared type are equal, too."""
        held: dict[str, TypedTerm] = {}
        pairs = list(self.anonymous)
        for left, right in pairs:
            match left.node, right.node:
                case RecordTerm(), RecordTerm():
                    pairs += zip(left.args, right.args, strict=False)
                case (Variable(name=a), Variable(name=b)):
                    one, other = held.get(self._root(a)), held.get(self._root(b))
                    self._join(a, b)
                    pairs += [(one, other)] if one and other else []
                    known = one or other
                    held |= {self._root(a): known} if known else {}
                case (Variable(name=name), RecordTerm()) | (RecordTerm(), Variable(name=name)):
                    record = right if isinstance(left.node, Variable) else left
                    first = held.setdefault(self._root(name), record)
                    pairs += [(first, record)] if first is not record else []
                case _:
                    pass

    def _join(self, a: str, b: str) -> None:
        a, b = self._root(a), self._root(b)
        if a != b:
            self.linked[a] = b

    def _sources(self, body: Iterable[TypedLiteral]) -> None:
        for literal in body:
            match literal:
                case TypedAtom(negated=False):
                    attributes = self.resolved.attributes[literal.relation]
                    for arg, attribute in zip(literal.args, attributes, strict=True):
                        self._narrow(arg, attribute.type)
                case TypedCompare(op=op, left=left, right=right):
                    self._cast_equation(op, left, right)
                    self._fields(left)
                    self._fields(right)
                case TypedAggregate(alternatives=alternatives):
                    for inner in alternatives:
                        self._sources(inner)
                case TypedGenerator(results=results):
                    for result in results:
                        self._fields(result)
                case TypedAtom() | TypedFalse():
                    pass

    def _cast_equation(self, op: str, left: TypedTerm, right: TypedTerm) -> None:
        """`x = as(y, T)` makes x a T, `x = date("2026-11-25")` a date."""
        for one, other in ((left, right), (right, left)):
            if op == "=" and isinstance(one.node, Variable) and isinstance(other.node, Cast):
                self._narrow(one, other.node.type)
            elif op == "=" and isinstance(one.node, Variable) and (name := self._calendar(other)):
                self._narrow(one, name)

    def _calendar(self, term: TypedTerm) -> str:
        """The type of what a functor on dates or times gives; empty if it is none."""
        domain = result_domain(term)
        name = "" if domain in (None, Domain.PLAIN) or domain is None else domain.value
        return name if name and self.table.types[name].domain is domain else ""

    def _narrow(self, term: TypedTerm, type_name: str) -> None:
        if not isinstance(term.node, Variable):
            self._fields(term)
            return
        name = self._root(term.node.name)
        old = self.types.get(name)
        if old is None:
            self.types[name] = frozenset({self.table.canonical(type_name)})
            self.first[name] = (term.node.span, type_name)
            return
        new: frozenset[str] = frozenset().union(*(self.table.common(t, type_name) for t in old))
        if new:
            self.types[name] = new
            return
        span, first = self.first[name]
        message = f"no value of `{display(term.node.name)}` can be both `{first}` and `{type_name}`"
        labels = (Label(term.node.span, f"`{type_name}` here"), Label(span, f"`{first}` here"))
        self.problems.add("disjoint-types", message, *labels)

    def _fields(self, term: TypedTerm) -> None:
        """Fields of a record pattern or construction are of the field's type."""
        match term.node:
            case BranchTerm(branch=branch):
                _, declared = self.table.branches[branch]
                types = [field.type for field in declared.fields]
            case RecordTerm() if self._is_anonymous(term):
                for arg in term.args:
                    self._fields(arg)
                return
            case RecordTerm():
                record = self.clause.records[term.slot]
                types = [] if record is None else [name for _, name in self.table.types[record].fields]
            case _:
                return
        for arg, type_name in zip(term.args, types, strict=False):
            self._narrow(arg, type_name)

    def variable_types(self, name: str) -> frozenset[str]:
        return self.types.get(self._root(name), frozenset())

    def domain(self, term: TypedTerm) -> Domain | None:
        """What the values of a term are, None where nothing says so."""
        result = result_domain(term)
        if result is not None:
            return result
        found = {self.table.types[name].domain for name in self._types(term)}
        return found.pop() if len(found) == 1 else None

    def _types(self, term: TypedTerm) -> frozenset[str]:
        match term.node:
            case Variable(name=name):
                return self.variable_types(name)
            case Cast(type=type_name):
                return frozenset({self.table.canonical(type_name)})
            case BranchTerm(branch=branch):
                return frozenset({self.table.branches[branch][0]})
            case _:
                return frozenset()
