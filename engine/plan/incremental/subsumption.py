"""A relation with a subsumption that no rule of its own recursion derives is maintained by negation.

    best(x, n) :- mark(x, n).                best%all(x, n) :- mark(x, n).
    best(x, n) <= best(x, m) :-       ->     best%worse(x, n) :- best%all(x, n), best%all(x, m), mark(x, 0), n < m, n != m.
        n < m, mark(x, 0).                   best(x, n) :- best%all(x, n), !best%worse(x, n).

Whether rows dominate each other in a circle does not matter: all that are dominated by any go at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dlog.engine.compile.strata.dependencies import relations_read
from dlog.engine.ir.rules import Atom, Negation, Program, Rule, Stratum, Variable, reading_rule
from dlog.engine.ir.traversal import stateful_functors, user_aggregates
from dlog.engine.plan.incremental.threshold_rules import MARK


def separable(stratum: Stratum, program: Program) -> bool:
    """Whether negation says which rows of a stratum's relation stay."""
    name = stratum.relations[0]
    kept = program.retentions.get(name)
    if kept is None or stratum.recursive or len(stratum.relations) > 1 or kept.keys or kept.logs or kept.join is not None:
        return False
    rules = (*stratum.rules, *kept.dominated)
    if any(any(stateful_functors(rule)) or any(user_aggregates(rule.body)) for rule in rules):
        return False
    given = name in program.inputs or program.facts.get(name)
    return not given and all(name not in relations_read(replace(rule, body=rule.body[2:])) for rule in kept.dominated)


def separated(program: Program) -> Program:
    """The program in which negation says which rows stay, where it can."""
    found = {s.relations[0]: s for s in program.strata if s.relations[0] in program.iterated and separable(s, program)}
    if not found:
        return program
    strata = tuple(made for s in program.strata for made in (_strata(s, program) if found.get(s.relations[0]) is s else (s,)))
    made = [name + MARK + part for name in found for part in ("all", "worse")]
    relations = {name: replace(program.relations[name.split(MARK)[0]], name=name) for name in made}
    retentions = {name: kept for name, kept in program.retentions.items() if name not in found}
    return replace(program, strata=strata, relations=program.relations | relations, retentions=retentions)


def _strata(stratum: Stratum, program: Program) -> Iterator[Stratum]:
    (name,) = stratum.relations
    every, worse = f"{name}{MARK}all", f"{name}{MARK}worse"
    rules = tuple(replace(rule, head=replace(rule.head, relation=every)) for rule in stratum.rules)
    yield Stratum((every,), rules, False)
    yield Stratum((worse,), tuple(_compared(rule, every, worse) for rule in program.retentions[name].dominated), False)
    row = tuple(Variable(n) for n in range(program.relations[name].arity))
    plain = reading_rule(program.relations[name])
    yield Stratum((name,), (replace(plain, body=(Atom(every, row), Negation(Atom(worse, row)))),), False)


def _compared(rule: Rule, every: str, worse: str) -> Rule:
    left, right, *rest = rule.body
    assert isinstance(left, Atom) and isinstance(right, Atom)
    rows = (replace(left, relation=every), replace(right, relation=every))
    return replace(rule, head=replace(rule.head, relation=worse), body=(*rows, *rest))
