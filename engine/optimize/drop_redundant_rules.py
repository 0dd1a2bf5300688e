"""drop_redundant_rules: rules that are there twice, and rules that give only what they read.

p(x, y) :- e(x, y).   p(a, b) :- e(a, b).   p(x, y) :- p(x, y), f(y).     ->     p(x, y) :- e(x, y).
"""

from __future__ import annotations

from dataclasses import replace

from dlog.engine.compile.strata.dependencies import retained
from dlog.engine.ir.printing import explicit_rule
from dlog.engine.ir.rules import Atom, Program, Rule
from dlog.engine.optimize.rewriting import Rules, rules_by_relation, with_rules


def drop_redundant_rules(program: Program, observed: frozenset[str]) -> Program:
    rules = rules_by_relation(program)
    whole = retained(program)
    kept: Rules = {name: found if name in whole else _without_redundant(found) for name, found in rules.items()}
    return program if kept == rules else with_rules(program, kept)


def _without_redundant(rules: list[Rule]) -> list[Rule]:
    return _without_repetitions([r for r in rules if not _says_nothing(r)])


def _without_repetitions(rules: list[Rule]) -> list[Rule]:
    """The first of those that differ in the names of their variables only: ids count in the order of the text."""
    if len(rules) < 2:
        return rules
    first: dict[str, Rule] = {}
    for rule in rules:
        plain = replace(rule, variables=tuple(f"v{i}" for i in range(len(rule.variables))))
        first.setdefault(explicit_rule(plain), rule)
    return list(first.values())


def _says_nothing(rule: Rule) -> bool:
    """Whether the head is among the body's atoms."""
    return any(isinstance(x, Atom) and x.relation == rule.head.relation and x.args == rule.head.args for x in rule.body)
