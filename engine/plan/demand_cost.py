"""The cost test of the demand transformation (`optimize/demand`), by estimates.

A demand begins with what the observed relations ask for: the smaller its share of a relation's values, the more is saved. How
far it then spreads through a recursion is not known before; at worst everything is computed, and the demand besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from dlog.engine.compile.strata.dependencies import relations_read
from dlog.engine.ir.rules import Atom, Constant, Program, Rule, Term
from dlog.engine.optimize.demand import Demand
from dlog.engine.plan.joins.domains import domains
from dlog.engine.plan.query import Query, Reading
from dlog.engine.plan.statistics import Estimator, Statistics

MAX_DEMANDED_SHARE = 0.5
"""Share of the possible values, on the average, up to which relations are computed by demand: the demand costs, too."""


def share_asked(program: Program, demanded: Program, asked: Mapping[str, Demand], statistics: Statistics) -> float:
    """The average share of their values that relations of the program are asked for at first in the demanded one."""
    estimator, known = _estimator(program, statistics)
    shares = []
    for name, what in asked.items():
        first = [rule for rule in _rules(demanded) if rule.head.relation == name and _is_first(rule, demanded)]
        if first:
            wanted = sum(_values(rule, estimator) for rule in first)
            possible = _possible(what, known)
            shares.append(min(1.0, wanted / possible) if possible else _share_of_unknown(first))
    return sum(shares) / len(shares) if shares else 1.0


def _share_of_unknown(first: Sequence[Rule]) -> float:
    """The share where nothing bounds the possible demands: constants are few."""
    return 0.0 if all(isinstance(arg, Constant) for rule in first for arg in rule.head.args) else 1.0


def _estimator(program: Program, statistics: Statistics) -> tuple[Estimator, Mapping[str, list[float | None]]]:
    """Estimates for relations without rules, and how many values the columns of those with rules can have."""
    derived = frozenset(rule.head.relation for rule in _rules(program))
    estimator = Estimator(statistics, program.relations, derived)
    return estimator, domains([(rule.head.relation, _query(rule)) for rule in _rules(program)], derived, estimator)


def _rules(program: Program) -> list[Rule]:
    return [rule for stratum in program.strata for rule in stratum.rules]


def _query(rule: Rule) -> Query:
    readings = tuple(Reading(x.relation, x.args) for x in rule.body if isinstance(x, Atom))
    return Query(readings, (), rule.head.args, False, rule.kinds)


def _is_first(rule: Rule, program: Program) -> bool:
    """Whether a rule reads nothing that is computed."""
    derived = {r.head.relation for r in _rules(program)}
    return derived.isdisjoint(relations_read(rule))


def _values(rule: Rule, estimator: Estimator) -> float:
    """How many different values a rule asks for: of each column at most as many as the rows of an atom that brings them in."""
    return prod(_column(term, rule, estimator) for term in rule.head.args)


def _column(term: Term, rule: Rule, estimator: Estimator) -> float:
    found = [
        min(estimator.distinct(x.relation, (column,)), _matches(x, estimator))
        for x in rule.body
        if isinstance(x, Atom)
        for column, arg in enumerate(x.args)
        if arg == term and not isinstance(term, Constant)
    ]
    return min(found, default=1.0)


def _matches(atom: Atom, estimator: Estimator) -> float:
    """Rows that agree with the atom's constants."""
    constants = tuple(column for column, arg in enumerate(atom.args) if isinstance(arg, Constant))
    return estimator.rows(atom.relation) / estimator.distinct(atom.relation, constants)


def _possible(asked: Demand, known: Mapping[str, list[float | None]]) -> float | None:
    columns = [known[asked.relation][c] for c in asked.columns]
    return prod(c for c in columns if c is not None) if all(columns) else None
