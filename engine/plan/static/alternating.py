"""The alternating fixed point: strata whose relations depend on themselves through negation or aggregates.

    cost(p, c) :- price(p, c).
    cost(p, c) :- part(p, _, _), c = sum n * k : { part(p, s, n), cost(s, k) }.

is evaluated in passes. In each the rules derive their least fixed point from the rows that come from outside, while negations
and aggregates read, of the relations of the stratum, what the pass before has derived (`cost%before`; nothing at first). The
answer is there when a pass derives what the one before did. Where no row depends on itself through a negation or an aggregate
(parts of parts, as long as none is a part of its own), a pass settles all rows whose dependencies are settled. With negation
alone the passes are, in turn, ever larger sets of rows that hold and ever smaller ones of rows that may.

Source: Van Gelder, The Alternating Fixpoint of Logic Programs with Negation, 1989.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import assert_never

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import dependencies
from dlog.engine.compile.strata.thresholds import mentioned
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Generator,
    Kind,
    Literal,
    Negation,
    Program,
    Rule,
    Stratum,
    Unpack,
    Variable,
)
from dlog.engine.ir.traversal import positive_atoms, term_variables
from dlog.engine.plan.explain import explain
from dlog.engine.plan.static.build import build_scope
from dlog.engine.plan.static.iterations import part
from dlog.engine.plan.statistics import Statistics
from dlog.grammar.source import Span


def before(relation: str) -> str:
    """The name of what the pass before has derived of a relation."""
    return part(relation, "before")


@dataclass(frozen=True)
class Passes:
    """A stratum as each pass evaluates it."""

    stratum: Stratum
    program: Program

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, one for each of the stratum's."""
        own = set(self.stratum.relations)
        return tuple(replace(rule, body=tuple(_reading(x, own) for x in rule.body)) for rule in self.stratum.rules)

    @cached_property
    def feedback(self) -> tuple[str, ...]:
        """The relations of which the pass before is read."""
        read = {on for rule in self.rules for on in mentioned(rule.body)}
        return tuple(name for name in self.stratum.relations if before(name) in read)

    @cached_property
    def pass_stratum(self) -> Stratum:
        own = set(self.stratum.relations)
        recursive = any(x.relation in own for rule in self.rules for x in positive_atoms(rule.body))
        return Stratum(self.stratum.relations, self.rules, recursive)

    @cached_property
    def extended(self) -> Program:
        """The program with what passes read of the ones before."""
        relations = {before(n): replace(self.program.relations[n], name=before(n)) for n in self.feedback}
        return replace(self.program, relations=self.program.relations | relations, alternating=frozenset())

    @cached_property
    def keys(self) -> Mapping[str, tuple[int, ...]]:
        """The columns of each relation whose values come from no aggregate over the stratum."""
        valued = _valued(self.pass_stratum)
        return {n: tuple(c for c in range(self.program.relations[n].arity) if (n, c) not in valued) for n in self.feedback}

    @cached_property
    def aggregates(self) -> frozenset[tuple[str, Kind]]:
        """The aggregates over the stratum: their names and the kinds of their results."""
        own = {before(name) for name in self.feedback}
        found = (x for rule in self.rules for x in rule.body if isinstance(x, Aggregate))
        return frozenset((x.op, x.kind) for x in found if not own.isdisjoint(mentioned((x,))))

    def spans(self, rule: Rule) -> Iterator[Span]:
        """Where a rule of the stratum reads its relations in negations and aggregates."""
        return (d.span for d in dependencies(rule) if d.how != "positive" and d.on in self.stratum.relations)


def _reading(literal: Literal, own: Collection[str], all_atoms: bool = False) -> Literal:
    """The literal, whose negations and aggregates read what the pass before has derived; `all_atoms`: so do its atoms."""
    match literal:
        case Atom(relation=name):
            return replace(literal, relation=before(name)) if all_atoms and name in own else literal
        case Negation(atom=atom):
            return replace(literal, atom=_reading(atom, own, True))  # type: ignore[arg-type]
        case Aggregate(alternatives=bodies):
            return replace(literal, alternatives=tuple(tuple(_reading(x, own, True) for x in body) for body in bodies))
        case Compare() | Unpack() | Generator():
            return literal
        case _:
            assert_never(literal)


# ---------------------------------------------------------------------------------------------------------------- columns


def _valued(stratum: Stratum) -> set[tuple[str, int]]:
    """The columns whose values come from aggregates over what the pass before has derived, or from such columns."""
    found: set[tuple[str, int]] = set()
    while True:
        more = {column for rule in stratum.rules for column in _valued_in_head(rule, stratum.relations, found)} - found
        if not more:
            return found
        found |= more


def _valued_in_head(rule: Rule, own: Collection[str], valued: Collection[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    computed = _computed(rule.body, own, valued)
    for c, term in enumerate(rule.head.args):
        if computed & set(term_variables(term)):
            yield rule.head.relation, c


def _computed(body: Sequence[Literal], own: Collection[str], valued: Collection[tuple[str, int]]) -> set[int]:
    """The variables of a body that only such columns and aggregates bind."""
    columns = ((x.relation, c, a) for x in body if isinstance(x, Atom) for c, a in enumerate(x.args))
    bound = {a.id for name, c, a in columns if isinstance(a, Variable) and (name, c) not in valued}
    found: set[int] = set()
    size = -1
    while size != len(found):
        size = len(found)
        for literal in body:
            found |= _bound_by(literal, own, valued, found) - bound
    return found


def _bound_by(
    literal: Literal, own: Collection[str], valued: Collection[tuple[str, int]], computed: Collection[int]
) -> set[int]:
    """The variables to which a literal gives computed values."""
    match literal:
        case Atom(relation=name, args=args):
            return {a.id for c, a in enumerate(args) if isinstance(a, Variable) and (name, c) in valued}
        case Aggregate(result=result):
            reads = any(on in map(before, own) for on in mentioned((literal,)))
            return {result.id} if reads else set()
        case Compare(op="=", left=Variable() as left, right=right):
            return {left.id} if not set(term_variables(right)).isdisjoint(computed) else set()
        case Unpack(value=value, fields=fields):
            return {f.id for f in fields if isinstance(f, Variable)} if value.id in computed else set()
        case Generator(args=args, results=results):
            reads = any(not set(term_variables(a)).isdisjoint(computed) for a in args)
            return {r.id for r in results if isinstance(r, Variable)} if reads else set()
        case Compare() | Negation():
            return set()
        case _:
            assert_never(literal)


# ---------------------------------------------------------------------------------------------------------------- as text


def explain_alternating(stratum: Stratum, program: Program, statistics: Statistics) -> str:
    """The plan of a pass, and what it reads of the one before."""
    passes = Passes(stratum, program)
    lines = [f"stratum {', '.join(stratum.relations)}, pass after pass until nothing changes"]
    lines += [f"  {before(name)} has the rows of {name} that the pass before derived" for name in passes.feedback]
    scope = build_scope(passes.pass_stratum, passes.extended, statistics)
    lines += explain(scope, passes.extended).splitlines()[1:]
    return "\n".join(lines) + "\n"
