"""The rules that one rule becomes which is recursive through `count` or `sum` (see thresholds)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Final, Protocol

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.thresholds import Threshold, mentioned, thresholds
from dlog.engine.ir.rules import (
    Aggregate,
    Arg,
    Atom,
    Compare,
    Constant,
    Generator,
    Head,
    Kind,
    Lattice,
    Literal,
    Negation,
    Program,
    Rule,
    Term,
    Unpack,
    Variable,
)
from dlog.engine.ir.traversal import literal_variables, term_variables
from dlog.engine.plan.closures import closure, connected, evaluable
from dlog.engine.plan.incremental.weights import NUMBER, ONE, ZERO, exceeded, greatest, signed, weight_of
from dlog.engine.plan.joins.emit import term_kind
from dlog.engine.plan.query import is_partial
from dlog.engine.plan.static.aggregates import counts_bindings
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label

MARK: Final = "%"
"""Stands in the names of the relations that are made here, and in no others of a program."""


class StratumRewriting(Protocol):
    """The rewriting of a stratum. `bounds` are rules of strata before it, `sums` says that there is a column for them."""

    program: Program
    sums: bool
    lattices: dict[str, Lattice]
    bounds: list[Rule]

    def number(self, head: str) -> str: ...

    def declare(self, name: str, kinds: Iterable[Kind]) -> None: ...


def rules_of(scope: StratumRewriting, rule: Rule, own: set[str]) -> list[Rule]:
    """The rules that one becomes; `own` are the relations of its cycle."""
    return _Body(scope, rule, own).rules()


def counts(rule: Rule, own: set[str]) -> bool:
    return any(isinstance(x, Aggregate) and own & mentioned((x,)) for x in rule.body)


class _Body:
    """The rules that one rule becomes."""

    def __init__(self, scope: StratumRewriting, rule: Rule, own: set[str]) -> None:
        self.scope = scope
        self.rule = rule
        self.own = own
        self.thresholds = thresholds(rule, own)
        gone = {t.aggregate.result.id for t in self.thresholds}
        self.rest = tuple(x for x in rule.body if not gone & set(literal_variables(x)))
        self.kinds = list(rule.kinds)
        self.new_rules: list[Rule] = []

    def rules(self) -> list[Rule]:
        ways = [self._ways(threshold) for threshold in self.thresholds]
        for chosen in product(*ways):
            body = tuple(dict.fromkeys((*self.rest, *(x for way in chosen for x in way.literals))))
            if len(chosen) == 1 and chosen[0].covers:
                body = chosen[0].literals
            self._add(self.rule.head, body, "" if all(way.holds for way in chosen) else "a bound below 0")
        return self.new_rules

    def _add(self, head: Head, body: tuple[Literal, ...], part: str, weight: Term | None = None) -> None:
        """One more rule; `part` says what of the rule it is, if not the whole."""
        names = tuple(self.rule.variables) + tuple(f"_{i}{MARK}" for i in range(len(self.kinds) - len(self.rule.kinds)))
        text = f"{self.rule.text}  [{part}]" if part else self.rule.text
        parts = {"head": head, "body": body, "variables": names, "kinds": tuple(self.kinds), "text": text, "weight": weight}
        self.new_rules.append(replace(self.rule, **parts))  # type: ignore[arg-type]

    def _fresh(self, kind: Kind) -> Variable:
        self.kinds.append(kind)
        return Variable(len(self.kinds) - 1)

    def _kinds(self, terms: Iterable[Term]) -> list[Kind]:
        return [term_kind(t, self.kinds) for t in terms]

    # ------------------------------------------------------------------------------------------------------- one aggregate

    def _ways(self, threshold: Threshold) -> list[_Way]:
        """The ways in which the comparisons of an aggregate hold: by its rows or, where the bound is below 0, without any."""
        bound, computing = self._bound(threshold)
        if isinstance(bound, Constant) and int(bound.value or 0) < 0:
            return [_Way(())]
        name = self.scope.number(self.rule.head.relation)
        outer = tuple(sorted(threshold.aggregate.outer, key=lambda v: v.id))
        self.scope.declare(name, (*self._kinds(outer), NUMBER, *((NUMBER,) if self.scope.sums else ())))
        asked, rows, value = self._rows(name, threshold, outer)
        head = Head(name, (*outer, bound), self.rule.head.span)
        if isinstance(bound, Constant):
            self._add(head, (rows,), "sums", weight_of(value, bound))
            return [_Way(self._holds(name, (*outer, bound)), self._covers(asked, outer))]
        level = self._fresh(NUMBER)
        gives = (*computing, Compare("=", level, bound, NUMBER))
        limits = self._limits(name, threshold, outer, level, gives)
        least = Compare(">=", level, ZERO, NUMBER)
        self._add(replace(head, args=(*outer, level)), (rows, limits.reading, least), "sums", weight_of(value, level))
        holds = self._holds(name, (*outer, level))
        if self._covers(asked | limits.literals, outer):
            first = _Way(holds, covers=True)
        else:
            first = _Way(holds if limits.whole and limits.one else (*gives, *holds))
        below = Compare("<", level, ZERO, NUMBER)
        if limits.whole and self._covers(limits.literals, limits.keys):
            return [first, _Way((limits.reading, below), covers=True, holds=False)]
        return [first, _Way((*gives, below), holds=False)]

    def _covers(self, asked: set[Literal], known: Iterable[Variable]) -> bool:
        """Whether rows that come by some literals of the rest, and have these variables, are all that the head asks for."""
        used = {v for term in self.rule.head.args for v in term_variables(term)}
        return all(x in asked for x in self.rest) and used <= {v.id for v in known}

    def _holds(self, name: str, args: tuple[Arg, ...]) -> tuple[Literal, ...]:
        """The condition that a row of the groups holds."""
        if not self.scope.sums:
            return (Atom(name, args),)
        column = len(args)
        self.scope.lattices[name] = Lattice(name, None, column)
        total = self._fresh(NUMBER)
        level = args[-1]
        assert level is not None
        return Atom(name, (*args, total)), Compare(">", total, level, NUMBER)

    # ---------------------------------------------------------------------------------------------------------------- rows

    def _rows(self, name: str, threshold: Threshold, outer: tuple[Variable, ...]) -> tuple[set[Literal], Atom, Term]:
        """Makes the relation of an aggregate's matches: the literals of the rest that its rules have, too, a reading of it,
        and the value of a row."""
        aggregate = threshold.aggregate
        alternatives = aggregate.alternatives
        if len(alternatives) == 1 and not counts_bindings(aggregate):
            alternatives = (tuple(self._named(x) for x in alternatives[0]),)
        shared = set.intersection(*({v for x in body for v in literal_variables(x)} for body in alternatives))
        columns: tuple[Term, ...] = (*outer, *(Variable(i) for i in sorted(shared - {v.id for v in outer})))
        target: Term = ONE if aggregate.target is None else aggregate.target
        reading = [v for v in columns if isinstance(v, Variable)]
        if not isinstance(target, Constant) and target not in columns:
            columns = (*columns, target)
            target = self._fresh(term_kind(target, self.kinds))
            reading.append(target)
        rows = f"{name} rows"
        self.scope.declare(rows, self._kinds(columns))
        asked: set[Literal] = set(self.rest)
        for body in (made for alternative in alternatives for made in _bodies(alternative, self.own, threshold.falls)):
            with_rest = self._with_rest(body, {v for term in columns for v in term_variables(term)}, outer)
            self._add(Head(rows, columns, self.rule.head.span), tuple(dict.fromkeys((*with_rest, *body))), "matches")
            asked &= set(with_rest)
        return asked, Atom(rows, tuple(reading)), signed(target, aggregate.kind)

    def _with_rest(self, body: tuple[Literal, ...], needed: set[int], outer: tuple[Variable, ...]) -> tuple[Literal, ...]:
        """The literals of the rest beside which a body of an aggregate is evaluated: they bind what it does not."""
        apart = tuple(x for x in self.rest if not self.own & mentioned((x,)))
        for asked in (tuple(x for x in self.rest if self._asks(x, outer)), apart):
            if needed <= closure((*asked, *body)):
                return evaluable(asked, body)
        return self.rest

    def _named(self, literal: Literal) -> Literal:
        """An atom without anonymous arguments: its rows count each."""
        if not isinstance(literal, Atom):
            return literal
        columns = zip(literal.args, self.scope.program.relations[literal.relation].kinds, strict=True)
        return replace(literal, args=tuple(self._fresh(kind) if arg is None else arg for arg, kind in columns))

    def _asks(self, literal: Literal, outer: Sequence[Variable]) -> bool:
        """Whether a literal asks about an aggregate's outer variables alone, neither the cycle nor what could stop the run."""
        if not set(literal_variables(literal)) <= {v.id for v in outer} or self.own & mentioned((literal,)):
            return False
        return isinstance(literal, Atom | Negation) or (isinstance(literal, Compare) and not is_partial(literal))

    # --------------------------------------------------------------------------------------------------------------- bounds

    def _bound(self, threshold: Threshold) -> tuple[Term, tuple[Literal, ...]]:
        """The bound that the weights must exceed, and the literals that compute its parts."""
        aggregate, computing = threshold.aggregate, tuple[Literal, ...]()
        whole: Term | None = None
        if threshold.falls:
            (body,) = aggregate.alternatives
            body = tuple(x for x in body if not self.own & mentioned((x,)))
            used = {v for x in body for v in literal_variables(x)} | set(term_variables(aggregate.target))
            outer = tuple(v for v in aggregate.outer if v.id in used)
            result = self._fresh(aggregate.kind)
            body = (*self._groups(aggregate, body), *body)
            computing = (replace(aggregate, result=result, alternatives=(body,), outer=outer),)
            whole = signed(result, aggregate.kind)
        terms = [exceeded(c.op, signed(c.right, aggregate.kind), whole) for c in threshold.compares]
        bound = terms[0]
        for term in terms[1:]:
            bound = greatest(bound, term)
        return bound, computing

    def _groups(self, aggregate: Aggregate, body: tuple[Literal, ...]) -> tuple[Literal, ...]:
        """The literals of the rest that keep an aggregate from having groups which nobody asks for, where no atom of its own
        has all that tells groups apart."""
        known = set(aggregate.outer)
        atoms = [x for x in body if isinstance(x, Atom)]
        if any(known <= set(x.args) or None in x.args for x in atoms):
            return ()
        return tuple(x for x in self.rest if isinstance(x, Atom) and None not in x.args and self._asks(x, aggregate.outer))

    def _limits(
        self, name: str, threshold: Threshold, outer: tuple[Variable, ...], level: Variable, gives: tuple[Literal, ...]
    ) -> _Limits:
        """Makes the relation of the bounds."""
        known = {v.id for v in outer}
        inner = {x.result.id for x in gives if isinstance(x, Aggregate)} | {level.id}
        needed = {v for x in gives for v in literal_variables(x)} - inner
        without = [x for x in self.rest if not self.own & mentioned((x,))]
        chosen = connected(without, needed - known, known)
        if not needed <= closure(chosen):
            chosen = [x for x in without if x in chosen or (self._asks(x, outer) and needed & set(literal_variables(x)))]
        if not needed <= closure(chosen):
            chosen = without
        if not needed <= closure(chosen):
            # A group without matches is beneath every bound that is none below 0.
            counted = (x for given in gives if isinstance(given, Aggregate) for x in given.alternatives[0])
            chosen = [*without, *(x for x in counted if isinstance(x, Atom | Unpack | Generator))]
        if not needed <= closure(chosen):
            message = "not supported yet: a bound whose variables are bound by the recursion only"
            label = Label(threshold.compares[0].span)
            raise DlogError(Diagnostic("unsupported", message, (label,), source=self.scope.program.source))
        chosen = list(evaluable(chosen))
        used = {v for x in chosen for v in literal_variables(x)} | needed
        keys = tuple(v for v in outer if v.id in used)
        limits = f"{name} bounds"
        self.scope.declare(limits, (*self._kinds(keys), NUMBER))
        self._add(Head(limits, (*keys, level), self.rule.head.span), (*chosen, *gives), "bounds")
        self.scope.bounds.append(self.new_rules.pop())
        whole, one = all(x in without for x in chosen), needed <= {v.id for v in keys}
        return _Limits(Atom(limits, (*keys, level)), keys, set(chosen), whole, one)


@dataclass(frozen=True, slots=True)
class _Way:
    """Literals that say how a comparison holds: by its sum, or whatever that is. `covers`: they imply all others of the
    rule."""

    literals: tuple[Literal, ...]
    covers: bool = False
    holds: bool = True


@dataclass(frozen=True, slots=True)
class _Limits:
    """A reading of the bounds by their keys, and the literals of the rest that they come by. `whole`: all groups that the rest
    holds for have bounds; `one`: not more than one."""

    reading: Atom
    keys: tuple[Variable, ...]
    literals: set[Literal]
    whole: bool
    one: bool


# ---------------------------------------------------------------------------------------------------------------------- bodies


def _bodies(body: tuple[Literal, ...], own: set[str], falls: bool) -> list[tuple[Literal, ...]]:
    """The bodies whose matches weigh something: where negations make the value fall, those that are missing from it."""
    if not falls:
        return [body]
    given = tuple(x for x in body if not own & mentioned((x,)))
    return [(*given, x.atom) for x in body if isinstance(x, Negation) and own & mentioned((x,))]
