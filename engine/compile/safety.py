"""Groundedness: every variable of a rule gets its values from somewhere.

Values come from positive atoms, from `=` with a bound side, from unpacking a bound record, and from aggregates. Heads,
negations, functor arguments and the other comparisons only use values. An aggregate's own variables do not leak out
(scope.py), and what it takes from outside is bound there, as in Souffle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from dlog.engine.compile.grounding import bound_variables, is_bound
from dlog.engine.compile.normal.comparisons import HAS_TYPE
from dlog.engine.compile.normal.generators import is_generator
from dlog.engine.compile.prints import CALL
from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.scope import Aggregation, Scoped, ScopedClause, display
from dlog.engine.compile.walk import variables, walk
from dlog.grammar.syntax import (
    AggregateTerm,
    Atom,
    BranchTerm,
    Call,
    Constraint,
    Not,
    RecordTerm,
    Term,
    Truth,
    Variable,
    Wildcard,
)

_REASONS: Final = {
    "a negated atom": "a negation only tests values, it does not produce any",
    "a comparison": "a comparison only tests values, it does not produce any",
    "an arithmetic expression": "a functor computes from its arguments, an equation is not solved for them",
    "the argument of a functor": "a functor computes from its arguments, an equation is not solved for them",
    "what is printed": "a value is printed that it has from elsewhere",
    "an aggregate": "an aggregate takes its outer variables from outside, as they are bound there",
}
"""Why an occurrence at such a place gives a variable no values."""


def check_safety(clause: ScopedClause, problems: Problems) -> None:
    _Safety(clause, problems).check()


class _Safety:
    def __init__(self, clause: ScopedClause, problems: Problems) -> None:
        self.head = clause.head
        self.clause = clause
        self.problems = problems
        self.reported: set[str] = set()

    def check(self) -> None:
        bound = self._bound_names(self.clause.body, set())
        self._check_wildcards_in_head()
        for variable in variables(self.head):
            self._use(variable, bound, self.clause.body, "")
        self._conjunction(self.clause.body, bound)

    def _bound_names(self, literals: tuple[Scoped, ...], known: set[str]) -> set[str]:
        """The names bound here; an aggregate binds its result once what it takes from outside is bound."""
        plain = [literal for literal in literals if not isinstance(literal, Aggregation)]
        waiting = [literal for literal in literals if isinstance(literal, Aggregation)]
        bound = bound_variables(plain, known)
        while waiting:
            results = {a.result for a in waiting}
            available = bound_variables(plain, bound | results)
            ready = [a for a in waiting if _outer_names(a) & (available - bound) == set()]
            if not ready:
                self._mutual(waiting)
                ready = waiting
            bound = bound_variables(plain, bound | {a.result for a in ready})
            waiting = [a for a in waiting if a not in ready]
        return bound

    def _mutual(self, waiting: list[Aggregation]) -> None:
        first, *others = waiting
        labels = (Label(first.span), *(Label(o.span, "and this one") for o in others))
        self.problems.add("mutual-aggregates", "these aggregates need each other's result", *labels)

    # -------------------------------------------------------------------------------------------------------- literals

    def _conjunction(self, literals: tuple[Scoped, ...], bound: set[str]) -> None:
        for literal in literals:
            match literal:
                case Atom(args=args):
                    self._functor_arguments(args, bound, literals)
                case Constraint(op=op) if op == HAS_TYPE:
                    pass
                case Not() | Constraint():
                    self._uses(literal, bound, literals)
                case Aggregation():
                    self._aggregation(literal, bound)
                case Truth():
                    pass
                case _:
                    assert_never(literal)

    def _aggregation(self, aggregation: Aggregation, outside: set[str]) -> None:
        for literals in aggregation.alternatives:
            bound = self._bound_names(literals, outside)
            self._conjunction(literals, bound)
            for variable in () if aggregation.target is None else variables(aggregation.target):
                self._use(variable, bound, literals, f"the target of `{aggregation.op}`")
        wild = () if aggregation.target is None else (n for n in walk(aggregation.target) if isinstance(n, Wildcard))
        for node in wild:
            message = f"`_` in the target of `{aggregation.op}` has no value"
            self.problems.add("wildcard-value", message, Label(node.span))

    def _functor_arguments(self, args: tuple[Term, ...], bound: set[str], literals: tuple[Scoped, ...]) -> None:
        """In a positive atom only what stands below a functor needs to be bound elsewhere."""
        for arg in args:
            for node in walk(arg):
                if isinstance(node, Call):
                    self._uses(node, bound, literals)

    # ------------------------------------------------------------------------------------------------------------ uses

    def _uses(self, node: Not | Constraint | Call, bound: set[str], literals: tuple[Scoped, ...]) -> None:
        before = len(self.reported)
        for variable in variables(node):
            self._use(variable, bound, literals, "")
        if len(self.reported) == before:
            self._wildcards(node, bound)

    def _use(self, variable: Variable, bound: set[str], literals: tuple[Scoped, ...], use: str) -> None:
        """Report a variable without values, once per clause. `use` says what needs it if that is not a literal or the head."""
        name = variable.name
        if name in bound or name in self.reported or not display(name):
            return
        self.reported.add(name)
        shown = display(name)
        places = [(_place(literal, name), literal.span) for literal in literals]
        places = [(place, span) for place, span in places if place]
        kinds = {place for place, _ in places}
        where = use or "the head"
        inside = not kinds and any(_has_own(literal, shown) for literal in literals)
        only = kinds.pop() if len(kinds) == 1 else "" if kinds else "an aggregate" if inside else where
        place = f": it occurs only in {only}" if only else ""
        message = f"variable `{shown}` of the rule for `{self.head.name}` is not bound{place}"
        labels = [Label(s, "used here") for _, s in places if not s.start <= variable.span.start < s.end]
        reason = "variables of an aggregate's body do not leak out of it" if inside else _REASONS.get(only, "")
        notes = [reason, "bind it with a positive atom or an `=` to a bound value"]
        self.problems.add("ungrounded-variable", message, Label(variable.span), *labels, notes=notes)

    def _wildcards(self, node: Not | Constraint | Call, bound: set[str]) -> None:
        """`_` has no value, so it cannot be compared or computed with; in a negated atom it stands for anything."""
        terms: list[Term]
        match node:
            case Not(body=Atom(args=args)):
                terms = [a for a in args if not isinstance(a, Wildcard)]
            case Constraint(op="=", left=left, right=right) if _is_result(left) or _is_result(right):
                terms = []  # `_ = min ...` asks for the witnesses only
            case Constraint(op="=", left=Wildcard(), right=right) if is_generator(right):
                terms = [right]  # `_ = range(...)` asks whether there is a value
            case Constraint(op="=", left=left, right=right):
                records = [t for t in (left, right) if isinstance(t, RecordTerm | BranchTerm)]
                terms = [t for t in (left, right) if not _is_pattern(t, left, right, bound)]
                terms = [t for t in terms if not (records and isinstance(t, Wildcard))]  # `_ = [x]` holds
            case Constraint(left=left, right=right):
                terms = [left, right]
            case Call(args=args):
                terms = list(args)
            case Not():
                terms = []
            case _:
                assert_never(node)
        for term in terms:
            for found in walk(term):
                if isinstance(found, Wildcard):
                    message = "`_` cannot be used as a value here"
                    notes = ["name the variable and bind it with a positive atom"]
                    self.problems.add("wildcard-value", message, Label(found.span), notes=notes)

    def _check_wildcards_in_head(self) -> None:
        for node in walk(self.head):
            if isinstance(node, Wildcard):
                message = f"`_` in the head of the rule for `{self.head.name}` has no value"
                self.problems.add("wildcard-value", message, Label(node.span))


def _is_result(term: Term) -> bool:
    """Whether the term is an aggregate."""
    return isinstance(term, Variable) and not display(term.name)


def _is_pattern(term: Term, left: Term, right: Term, bound: set[str]) -> bool:
    """Whether the term is a record that is taken apart here: the other side has a value, and no functor of `_` is inside."""
    if not isinstance(term, RecordTerm | BranchTerm):
        return False
    other = right if term is left else left
    inner = any(isinstance(w, Wildcard) for n in walk(term) if isinstance(n, Call) for w in walk(n))
    return not inner and (is_bound(other, bound) or isinstance(other, RecordTerm | BranchTerm))


def _outer_names(aggregation: Aggregation) -> set[str]:
    """The names that an aggregate takes from outside: those it mentions that are not of its own scopes."""
    first = set() if aggregation.init is None else {aggregation.init}
    return (_mentioned(aggregation) - _all_own(aggregation)) | first


def _mentioned(aggregation: Aggregation) -> set[str]:
    names = set() if aggregation.target is None else {v.name for v in variables(aggregation.target)}
    for literal in _inside(aggregation):
        if isinstance(literal, Aggregation):
            names |= {literal.result} | _mentioned(literal)
        else:
            names |= {v.name for v in variables(literal)}
    return names


def _all_own(aggregation: Aggregation) -> set[str]:
    own = set(aggregation.own)
    for literal in _inside(aggregation):
        if isinstance(literal, Aggregation):
            own |= _all_own(literal) | {literal.result}
    return own


def _has_own(literal: Scoped, shown: str) -> bool:
    return isinstance(literal, Aggregation) and any(display(n) == shown for n in _all_own(literal))


def _inside(aggregation: Aggregation) -> Iterator[Scoped]:
    return (literal for body in aggregation.alternatives for literal in body)


def _place(literal: Scoped, name: str) -> str:
    if isinstance(literal, Aggregation):
        return "an aggregate" if name in _outer_names(literal) else ""
    if not _occurs(variables(literal), name) or (isinstance(literal, Constraint) and literal.op == HAS_TYPE):
        return ""
    match literal:
        case Not():
            return "a negated atom"
        case Atom():
            return "the argument of a functor"
        case Constraint(left=Call(name=called)) if called == CALL:
            return "what is printed"
        case Constraint(left=left, right=right):
            calls = [n for side in (left, right) for n in walk(side) if isinstance(n, Call | AggregateTerm)]
            inside = any(_occurs(variables(c), name) for c in calls)
            return "an arithmetic expression" if inside else "a comparison" if literal.op != "=" else "an equation"
        case Truth():
            return ""


def _occurs(occurrences: Iterable[Variable], name: str) -> bool:
    return any(v.name == name for v in occurrences)
