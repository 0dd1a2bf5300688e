"""Typed clauses to terms of the typed program: literals get values, functors their monomorphic names, variables ids.

    x + "b"    ->   cat(v0, "b")        to_number(f)   ->   ftoi(v1)        -1   ->   -1
    as(x, T)   ->   v0 (same representation), else a conversion of the bits

Literals are still as written: `RawAtom` arguments are any terms, `=` is not yet decided to bind, unpack or construct.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from dlog.dataclass import immutable
from dlog.engine.compile.normal.literals import calendar_literal, literal_text, number_constant
from dlog.engine.compile.normal.shapes import same_shape
from dlog.engine.compile.normal.short_numbers import narrowed, shortened, speaks_of_times
from dlog.engine.compile.prints import CALL
from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.scope import display
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
from dlog.engine.ir.functors import FUNCTORS, find_functor
from dlog.engine.ir.rules import (
    AUTOINC,
    NOW,
    PAD,
    Compare,
    Constant,
    Domain,
    Functor,
    Kind,
    Record,
    Term,
    Type,
    Variable,
    printing,
)
from dlog.engine.ir.signatures import Intrinsic
from dlog.engine.ir.table_functions import TABLE_FUNCTIONS
from dlog.engine.ir.traversal import term_variables
from dlog.grammar.diagnostics import InternalError
from dlog.grammar.source import Span
from dlog.grammar.syntax import BranchTerm, Call, Cast, Counter, Nil, RecordTerm, String, Wildcard
from dlog.grammar.syntax import Variable as Name


@immutable
class RawAtom:
    relation: str
    args: tuple[Term | None, ...]
    negated: bool
    span: Span


@immutable
class RawAggregate:
    result: Variable
    op: str
    target: Term | None
    alternatives: tuple[tuple[Raw, ...], ...]
    kind: Kind
    span: Span
    init: Term | None = None


@immutable
class RawGenerator:
    function: str
    args: tuple[Term, ...]
    results: tuple[Term | None, ...]
    kind: Kind
    span: Span


@immutable
class Falsehood:
    """A literal that never holds."""


Raw: TypeAlias = RawAtom | RawGenerator | RawAggregate | Compare | Falsehood


class Variables:
    """The variables of one rule: ids, names and kinds; `wild` are those that stand for `_` inside records."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.names: list[str] = []
        self.kinds: list[Kind] = []
        self.wild: set[int] = set()

    def named(self, name: str, kind: Kind) -> Variable:
        if name not in self.ids:
            self.ids[name] = self._add(display(name), kind)
        return Variable(self.ids[name])

    def fresh(self, kind: Kind) -> Variable:
        return Variable(self._add("", kind))

    def wildcard(self, kind: Kind) -> Variable:
        variable = self.fresh(kind)
        self.wild.add(variable.id)
        return variable

    def _add(self, name: str, kind: Kind) -> int:
        self.names.append(name)
        self.kinds.append(kind)
        return len(self.names) - 1


class Lowering:
    def __init__(self, clause: TypedClause, types: Mapping[str, Type], problems: Problems) -> None:
        self.clause = clause
        self.types = types
        self.problems = problems
        self.variables = Variables()
        self.short = types["number"].domain is Domain.SHORT
        """Whether numbers have 32 bits."""
        self.tags: list[Raw] = []
        """Literals that give tags to variables, for the conjunction that is being lowered."""

    def head(self) -> tuple[Term, ...]:
        return tuple(self._term(a) for a in self.clause.head.args)

    def body(self) -> list[Raw]:
        """After the head, whose terms it may have to give tags."""
        return [*self._conjunction(self.clause.body), *self.tags]

    def _conjunction(self, literals: Iterable[TypedLiteral]) -> list[Raw]:
        around, self.tags = self.tags, []
        lowered = [self._literal(literal) for literal in literals]
        lowered, self.tags = [*lowered, *self.tags], around
        return lowered

    def _kind(self, term: TypedTerm) -> Kind:
        return self.clause.kinds[term.slot]

    def _literal(self, literal: TypedLiteral) -> Raw:
        match literal:
            case TypedAtom(relation=relation, args=args, negated=negated):
                lowered = tuple(None if isinstance(a.node, Wildcard) else self._term(a) for a in args)
                return RawAtom(relation, lowered, negated, literal.span)
            case TypedCompare(op=op, left=left, right=right):
                return Compare(op, self._term(left), self._term(right), self._kind(left), literal.span)
            case TypedGenerator(function=function, args=args, results=results, slot=slot):
                kinds = TABLE_FUNCTIONS[function].kinds(self.clause.kinds[slot])
                if self.short and function == "range" and kinds[0] is Kind.FLOAT:
                    message = "not supported yet: ranges of floats of 32 bits"
                    self.problems.add("unsupported", message, Label(literal.span), notes=["ranges of numbers are"])
                made = tuple(None if isinstance(r.node, Wildcard) else self._term(r) for r in results)
                return RawGenerator(function, tuple(self._term(a) for a in args), made, kinds[0], literal.span)
            case TypedAggregate():
                return self._aggregate(literal)
            case TypedFalse():
                return Falsehood()

    def _aggregate(self, aggregate: TypedAggregate) -> RawAggregate:
        kind = self.clause.kinds[aggregate.slot]
        result = self.variables.named(aggregate.result, kind)
        bodies = [self._conjunction(body) for body in aggregate.alternatives]
        around, self.tags = self.tags, []
        target = None if aggregate.target is None else self._target(aggregate, aggregate.target)
        alternatives = tuple((*body, *self.tags) for body in bodies)
        self.tags = around
        init = None
        if aggregate.init is not None:
            init = self.variables.named(aggregate.init, self.clause.kinds[self.clause.slots[aggregate.init]])
        if self.short and aggregate.op in ("sum", "mean"):
            whole = self.variables.fresh(kind)
            self.tags.append(Compare("=", result, narrowed(whole, kind, aggregate.span), kind, aggregate.span))
            result = whole
        return RawAggregate(result, aggregate.op, target, alternatives, kind, aggregate.span, init)

    def _target(self, aggregate: TypedAggregate, target: TypedTerm) -> Term | None:
        """The target, converted to the kind of the result where that is always the same."""
        row = AGGREGATES.get(aggregate.op)
        if row is None or row.result is None:
            return self._term(target)
        if not row.target:
            return None
        converted = FUNCTORS[f"to_{row.result.value}"]
        return self._in_range(_applied(converted, (self._term(target),), self._kind(target), row.result, aggregate.span))

    def _term(self, term: TypedTerm) -> Term:
        kind = self._kind(term)
        text = literal_text(term.node)
        if text is not None:
            constant = number_constant(text, kind, self.short)
            if constant is None:
                raise InternalError("lower", f"literal {text} does not fit {kind.value}")
            return constant
        match term.node:
            case Name(name=name):
                return self.variables.named(name, kind)
            case Wildcard():
                return self.variables.wildcard(kind)
            case String(value=value):
                return Constant(value, Kind.SYMBOL)
            case Nil():
                return Constant(None, Kind.RECORD)
            case RecordTerm():
                return Record(self.clause.records[term.slot] or "", tuple(self._term(a) for a in term.args))
            case BranchTerm(branch=branch):
                return self._branch(f"${branch}", term.args)
            case Counter():
                return Functor(AUTOINC, (), kind, kind, term.node.span, True)
            case Call(name=name) if name == NOW:
                return Functor(NOW, (), kind, kind, term.node.span)
            case Call(name=name) if name.startswith("@"):
                return Functor(name, tuple(self._term(a) for a in term.args), kind, kind, term.node.span, term.stateful)
            case Call(name=name) if name == CALL:
                types = (self.clause.records[a.slot] or self._kind(a).value for a in term.args)
                return Functor(printing(types), tuple(self._term(a) for a in term.args), kind, kind, term.node.span, True)
            case Call(name=name, args=args):
                row = find_functor(name, len(args))
                if row is None:
                    raise InternalError("lower", f"no functor `{name}`")
                return self._call(row, term, kind)
            case Cast():
                return self._cast(term, kind)
            case _:
                raise InternalError("lower", f"a {type(term.node).__name__} came through")

    def _branch(self, name: str, args: tuple[TypedTerm, ...]) -> Record:
        """A value of an algebraic data type, as rules.py says."""
        branch = self.types[name]
        tag = Constant(self.types[branch.adt].branches.index(name), Kind.NUMBER)
        rest = (PAD,) * (len(branch.fields) - 1 - len(args))
        return Record(name, (tag, *(self._term(a) for a in args), *rest))

    def _is_enumeration(self, term: TypedTerm) -> bool:
        """Whether a term is of an algebraic data type without fields."""
        found = self.types.get(self.clause.records[term.slot] or "")
        return found is not None and bool(found.branches) and len(found.fields) == 1

    def _tag(self, term: TypedTerm) -> Term:
        """The tag of a value of an enumeration."""
        variable = self.variables.fresh(Kind.NUMBER)
        record = Record(self.clause.records[term.slot] or "", (variable,))
        self.tags.append(Compare("=", self._term(term), record, Kind.RECORD, term.node.span))
        return variable

    def _call(self, row: Intrinsic, term: TypedTerm, kind: Kind) -> Term:
        if row.name == "ord" and self._is_enumeration(term.args[0]):
            return self._tag(term.args[0])
        dated = calendar_literal(term.node)
        if dated is not None:
            return Constant(dated[1], kind)
        args = tuple(self._term(a) for a in term.args)
        if row.signature.variadic and row.signature.result is None and len(args) == 1:
            return args[0]
        if self.short and speaks_of_times(row.name):
            notes = ["dates need no more than 32"]
            message = f"`{row.name}` is about times, which need numbers of 64 bits"
            self.problems.add("unsupported", message, Label(term.node.span), notes=notes)
        return self._in_range(_applied(row, args, self._kind(term.args[0]), kind, term.node.span))

    def _in_range(self, term: Term) -> Term:
        """What a functor makes, in the range of its type."""
        return shortened(term) if self.short else term

    def _cast(self, term: TypedTerm, kind: Kind) -> Term:
        if kind is Kind.NUMBER and self._is_enumeration(term.args[0]):
            return self._tag(term.args[0])
        inner = self._term(term.args[0])
        source = self._kind(term.args[0])
        span = term.node.span
        types = [self.clause.records[slot] for slot in (term.args[0].slot, term.slot)]
        match source, kind:
            case (Kind.RECORD, Kind.RECORD) if not same_shape(types[0] or "", types[1] or "", self.types):
                message = f"as() from `{types[0]}` to `{types[1]}`, whose values are made otherwise"
                notes = ["records are alike that have as many fields, each of the same kind, or of records that are alike"]
                self.problems.add("type-mismatch", message, Label(span), notes=notes)
                return inner
            case (a, b) if a is b:
                return inner
            case (_, Kind.RECORD):
                self.problems.add("unsupported", f"not supported yet: as() from {source.value} to {kind.value}", Label(span))
                return inner
            case (Kind.NUMBER, _):
                return self._from_number(inner, kind, span)
            case _:
                number = self._in_range(Functor(_TO_NUMBER.get(source, "ord"), (inner,), source, Kind.NUMBER, span))
                return self._from_number(number, kind, span)

    def _from_number(self, number: Term, kind: Kind, span: Span) -> Term:
        """The value of another kind that has the bits of a number."""
        match kind:
            case Kind.UNSIGNED:
                return self._in_range(Functor("itou", (number,), kind, kind, span))
            case Kind.SYMBOL:
                return Functor("symbol_of", (number,), Kind.NUMBER, kind, span)
            case Kind.FLOAT:
                bits = self._in_range(Functor("float_of_bits", (number,), Kind.NUMBER, kind, span))
                return Functor("*", (bits, Constant(1.0, kind)), kind, kind, span)  # makes any NaN the one there is
            case _:
                return number


_TO_NUMBER: Final = {Kind.UNSIGNED: "utoi"}
"""What gives the number that has the bits of a value of a kind, where that is not `ord`."""


def _applied(row: Intrinsic, args: tuple[Term, ...], source: Kind, result: Kind, span: Span) -> Term:
    """A functor on arguments of which the first has kind `source`, by its monomorphic name; converting a kind to itself is
    nothing, nor is `cat` of one text."""
    if (row.identity and source is result) or (row.signature.variadic and len(args) == 1):
        return args[0]
    op = row.overloads.get(source, row.name)
    return Functor(op, args, source if FUNCTORS[op].by_argument else result, result, span)


# --------------------------------------------------------------------------------------------------- variables of things


def raw_variables(literals: Iterable[Raw]) -> Iterator[int]:
    """Every variable a conjunction mentions, those inside aggregates included."""
    for literal in literals:
        match literal:
            case RawAtom(args=args):
                for arg in args:
                    yield from term_variables(arg)
            case Compare(left=left, right=right):
                yield from term_variables(left)
                yield from term_variables(right)
            case RawGenerator(args=terms, results=results):
                for term in (*terms, *results):
                    yield from term_variables(term)
            case RawAggregate():
                yield literal.result.id
                yield from aggregate_variables(literal)
            case Falsehood():
                pass


def aggregate_variables(aggregate: RawAggregate) -> Iterator[int]:
    """Every variable an aggregate mentions."""
    yield from term_variables(aggregate.init)
    yield from term_variables(aggregate.target)
    for body in aggregate.alternatives:
        yield from raw_variables(body)
