"""Checked clauses to rules in the normal form that rules.py promises.

    p(x, [y, z]) :- r([x, y]), !s(x + 1), z = y * 2.
    ->  p(v0, [v1, v2]) :- r(v3), v3 = [v0, v1] (Unpack), v4 = v0 + 1, !s(v4), v2 = v1 * 2.

Per conjunction: plain equations disappear (unify.py), arguments of atoms become variables and constants, and each `=` is
decided: it unpacks a record that has a value, or gives the other side's value to a variable, or compares. A conjunction that
cannot hold vanishes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from dlog.dataclass import immutable
from dlog.engine.compile.normal.comparisons import constant_truth
from dlog.engine.compile.normal.lower import (
    Falsehood,
    Lowering,
    Raw,
    RawAggregate,
    RawAtom,
    RawGenerator,
    Variables,
    aggregate_variables,
    raw_variables,
)
from dlog.engine.compile.normal.numbering import number_variables
from dlog.engine.compile.normal.unify import Unsatisfiable, unify
from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.typing.typed import TypedClause
from dlog.engine.ir.aggregates import AGGREGATES
from dlog.engine.ir.rules import (
    Aggregate,
    Arg,
    Atom,
    Compare,
    Constant,
    Generator,
    Head,
    Kind,
    Literal,
    Negation,
    Record,
    Rule,
    Term,
    Type,
    Unpack,
    Variable,
)
from dlog.engine.ir.traversal import literal_variables, term_variables
from dlog.grammar.source import Span


@immutable
class Part:
    """A literal of the result and the position of the literal it comes from."""

    position: int
    literal: Literal


def normalize(clause: TypedClause, types: Mapping[str, Type], problems: Problems) -> Rule | None:
    """The clause as a rule, or None when its body never holds."""
    lowering = Lowering(clause, types, problems)
    head, body = lowering.head(), lowering.body()
    variables = lowering.variables
    normalizer = _Normalizer(variables, problems)
    head_variables = {v for t in head for v in term_variables(t)}
    try:
        raw, substitution = unify(body, set(), variables)
        literals = normalizer.conjunction(raw, set(), head_variables, inside=False)
    except Unsatisfiable:
        return None
    terms = tuple(substitution.term(t) for t in head)
    made = Head(clause.head.relation, terms, clause.head.span)
    return number_variables(made, literals, variables, clause.text, clause.span)


class _Normalizer:
    def __init__(self, variables: Variables, problems: Problems) -> None:
        self.variables = variables
        self.problems = problems

    def conjunction(self, raw: list[Raw], outer: set[int], head: set[int], inside: bool) -> tuple[Literal, ...]:
        """Normalize unified literals. `outer` are bound around the conjunction, `head` used next to it; `inside` an aggregate
        repeated atoms may count."""
        parts, equations = self._flatten(raw)
        plain = [x for x in raw if not isinstance(x, RawAggregate)]
        around = outer | head | set(raw_variables(plain)) | {x.result.id for x in raw if isinstance(x, RawAggregate)}
        aggregates: list[tuple[int, RawAggregate, Aggregate | None]] = []
        for position, literal in enumerate(raw):
            if isinstance(literal, RawAggregate):
                init = self.simple(literal.init, position, equations, literal.span)
                made = self._aggregate(literal, init, around - {literal.result.id})
                aggregates.append((position, literal, made))
                empty = AGGREGATES[literal.op].empty(literal.kind) if init is None else init
                if made is None and empty is not None:
                    equations.append((position, Compare("=", literal.result, empty, literal.kind, literal.span)))
        generators = [(p, x) for p, x in enumerate(raw) if isinstance(x, RawGenerator)]
        made_aggregates = [(p, a) for p, _, a in aggregates if a is not None]
        decided = _Equations(self, parts, equations, generators, made_aggregates, outer).decide()
        ordered = sorted((*parts, *decided), key=lambda p: p.position)
        return tuple(_distinct((p.literal for p in ordered), inside))

    # ---------------------------------------------------------------------------------------------------------- atoms

    def _flatten(self, raw: list[Raw]) -> tuple[list[Part], list[tuple[int, Compare]]]:
        """Atoms and comparisons with simple arguments, and the equations, each with its position."""
        parts: list[Part] = []
        equations: list[tuple[int, Compare]] = []
        for position, literal in enumerate(raw):
            match literal:
                case RawAtom(relation=relation, args=args, negated=negated, span=span):
                    simple = tuple(self.simple(a, position, equations, span) for a in args)
                    atom = Atom(relation, simple, span)
                    parts.append(Part(position, Negation(atom, span) if negated else atom))
                case Compare(op="="):
                    equations.append((position, literal))
                case Compare():
                    truth = constant_truth(literal)
                    if truth is False:
                        raise Unsatisfiable
                    if truth is None:
                        parts.append(Part(position, literal))
                case RawGenerator() | RawAggregate() | Falsehood():
                    pass
        return parts, equations

    def simple(self, term: Term | None, position: int, equations: list[tuple[int, Compare]], span: Span) -> Arg:
        """The term itself where it is simple, else a fresh variable with an equation."""
        if term is None or isinstance(term, Variable | Constant):
            return term
        kind = Kind.RECORD if isinstance(term, Record) else term.result
        variable = self.variables.fresh(kind)
        equations.append((position, Compare("=", variable, term, kind, span)))
        return variable

    # ----------------------------------------------------------------------------------------------------- aggregates

    def _aggregate(self, raw: RawAggregate, init: Arg, around: set[int]) -> Aggregate | None:
        """The aggregate, or None where no alternative can hold and the value is that of an empty set."""
        alternatives: list[tuple[Literal, ...]] = []
        target = raw.target
        single = len(raw.alternatives) == 1
        for index, body in enumerate(raw.alternatives):
            others = [b for i, b in enumerate(raw.alternatives) if i != index]
            shared = set() if single else {v for b in others for v in raw_variables(b)} | set(term_variables(target))
            try:
                unified, substitution = unify(body, around | shared, self.variables)
                if single and target is not None:
                    target = substitution.term(target)
                used = set(term_variables(target))
                alternatives.append(self.conjunction(unified, around, shared | used, inside=True))
            except Unsatisfiable:
                continue
        if not alternatives:
            if init is not None or AGGREGATES[raw.op].identity is not None:
                return None
            raise Unsatisfiable
        outer = tuple(Variable(v) for v in dict.fromkeys(aggregate_variables(raw)) if v in around)
        used = _used(target, alternatives)
        first = (init,) if isinstance(init, Variable) and init.id not in used else ()
        outer = (*first, *(v for v in outer if v.id in used))
        return Aggregate(raw.result, raw.op, target, tuple(alternatives), outer, raw.kind, raw.span, init)


class _Equations:
    """Decides the equations of one conjunction in an order in which every value is there when it is used."""

    def __init__(
        self,
        owner: _Normalizer,
        parts: list[Part],
        equations: list[tuple[int, Compare]],
        generators: list[tuple[int, RawGenerator]],
        aggregates: list[tuple[int, Aggregate]],
        outer: set[int],
    ) -> None:
        self.owner = owner
        self.waiting: list[tuple[int, Compare | RawGenerator | Aggregate]] = [*equations, *generators, *aggregates]
        atoms = [p.literal for p in parts if isinstance(p.literal, Atom)]
        self.bound = outer | {a.id for atom in atoms for a in atom.args if isinstance(a, Variable)}
        self.results = {a.result.id for _, a in aggregates}
        self.parts: list[Part] = []

    def decide(self) -> list[Part]:
        while self.waiting:
            now, self.waiting = self.waiting, []
            before = len(self.parts)
            for position, item in now:
                if not self._decide(position, item):
                    self.waiting.append((position, item))
            if len(self.parts) == before and len(self.waiting) >= len(now):
                self._stuck()
                break
        return self.parts

    def _decide(self, position: int, item: Compare | RawGenerator | Aggregate) -> bool:
        match item:
            case Compare():
                return self._equation(position, item)
            case RawGenerator():
                return self._generator(position, item)
            case Aggregate():
                return self._aggregate(position, item)

    def _generator(self, position: int, raw: RawGenerator) -> bool:
        if not all(self._has_value(a) for a in raw.args):
            return False
        equations: list[tuple[int, Compare]] = []
        results = self._columns(raw.results, position, equations, raw.span)
        self.parts.append(Part(position, Generator(raw.function, raw.args, results, raw.kind, raw.span)))
        self.waiting += equations
        return True

    def _columns(
        self, terms: Iterable[Term | None], position: int, equations: list[tuple[int, Compare]], span: Span
    ) -> tuple[Arg, ...]:
        """Terms as arguments that are bound from now on."""
        simple = [self.owner.simple(term, position, equations, span) for term in terms]
        wild = self.owner.variables.wild
        columns = tuple(None if isinstance(x, Variable) and x.id in wild else x for x in simple)
        self.bound |= {c.id for c in columns if isinstance(c, Variable)}
        return columns

    def _aggregate(self, position: int, aggregate: Aggregate) -> bool:
        if any(v.id not in self.bound for v in aggregate.outer):
            return False
        self.bound.add(aggregate.result.id)
        self.parts.append(Part(position, aggregate))
        return True

    def _equation(self, position: int, equation: Compare) -> bool:
        left, right = equation.left, equation.right
        if isinstance(right, Variable) and (not isinstance(left, Variable) or right.id not in self.bound):
            left, right = right, left
        if isinstance(left, Variable) and left.id in self.results - self.bound:
            return False  # only its aggregate gives it a value
        if isinstance(left, Variable) and isinstance(right, Record) and left.id in self.bound:
            self._unpack(position, left, right, equation.span)
            return True
        if not self._has_value(right) or not (isinstance(left, Variable) or self._has_value(left)):
            return False
        if isinstance(left, Variable):
            self.bound.add(left.id)
        truth = constant_truth(Compare("=", left, right, equation.kind, equation.span))
        if truth is False:
            raise Unsatisfiable
        if truth is None:
            self.parts.append(Part(position, Compare("=", left, right, equation.kind, equation.span)))
        return True

    def _unpack(self, position: int, value: Variable, record: Record, span: Span) -> None:
        equations: list[tuple[int, Compare]] = []
        fields = self._columns(record.args, position, equations, span)
        self.parts.append(Part(position, Unpack(value, record.type, fields, span)))
        self.waiting += equations

    def _has_value(self, term: Term) -> bool:
        return all(v in self.bound for v in term_variables(term))

    def _stuck(self) -> None:
        """Grounded programs get here only through a cast that would have to be inverted."""
        for _, item in self.waiting:
            message = "not supported yet: taking a value through as() between different representations"
            self.owner.problems.add("unsupported", message, Label(item.span))


# ----------------------------------------------------------------------------------------------------------- small things


def _distinct(literals: Iterable[Literal], inside: bool) -> Iterator[Literal]:
    """Without repeated literals; in an aggregate's body an atom with unnamed arguments is counted each time."""
    seen: set[object] = set()
    for literal in literals:
        key = _key(literal, inside)
        if key is None:
            yield literal
        elif key not in seen:
            seen.add(key)
            yield literal


def _key(literal: Literal, inside: bool) -> object:
    match literal:
        case Atom(relation=relation, args=args):
            return None if inside and None in args else (relation, args)
        case Negation(atom=Atom(relation=relation, args=args)):
            return ("!", relation, args)
        case Unpack(value=value, type=name, fields=fields):
            return ("[]", value, name, fields)
        case Compare(op=op, left=left, right=right):
            return (op, left, right)
        case Generator(function=function, args=args, results=results):
            return None if inside and None in results else ("<", function, args, results)
        case Aggregate():
            return None


def _used(target: Term | None, alternatives: Iterable[tuple[Literal, ...]]) -> set[int]:
    """The variables a normalized aggregate mentions."""
    found = set(term_variables(target))
    for body in alternatives:
        for literal in body:
            match literal:
                case Atom(args=args) | Negation(atom=Atom(args=args)):
                    found |= {a.id for a in args if isinstance(a, Variable)}
                case Compare(left=left, right=right):
                    found |= {*term_variables(left), *term_variables(right)}
                case Unpack(value=value, fields=fields):
                    found |= {value.id} | {f.id for f in fields if isinstance(f, Variable)}
                case Generator():
                    found |= set(literal_variables(literal))
                case Aggregate():
                    found |= {literal.result.id} | {v.id for v in literal.outer}
                case _:
                    assert_never(literal)
    return found
