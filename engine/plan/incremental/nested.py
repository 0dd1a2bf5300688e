"""Aggregates of which only the recursion says for what they are computed: a run does so block by block."""

from __future__ import annotations

from collections.abc import Iterator

from dlog.engine.ir.rules import Aggregate, Program, Rule, Stratum
from dlog.engine.plan.incremental.thresholds import pieces
from dlog.engine.plan.joins.delta import Paths
from dlog.engine.plan.static.aggregates import Aggregates
from dlog.engine.plan.static.lattices import monotone
from dlog.engine.plan.static.stages import Stages
from dlog.engine.plan.statistics import Declared, Estimator
from dlog.grammar.diagnostics import DlogError


def nested_aggregates(stratum: Stratum, program: Program) -> Iterator[Rule]:
    """The rules of a stratum that have such aggregates."""
    if not stratum.recursive or not any(_is_correlated(rule) for rule in stratum.rules):
        return
    whole, strata = pieces(program, stratum)
    for piece in strata:
        feedback = frozenset(piece.relations) if piece.recursive else frozenset()
        for rule in (r for r in piece.rules if _is_correlated(r)):
            if _nests(rule, whole, feedback):
                yield rule


def _is_correlated(rule: Rule) -> bool:
    return any(isinstance(literal, Aggregate) and literal.outer for literal in rule.body)


def _nests(rule: Rule, program: Program, feedback: frozenset[str]) -> bool:
    stages = Stages(program)
    paths = Paths(Estimator(Declared(), program.relations, feedback), feedback)
    try:
        for each in monotone(program, rule):
            Aggregates(program, paths, stages, feedback).lower(each, 0)
    except DlogError:
        return False  # it is refused wherever it is planned
    return bool(stages.nested)
