"""linearize: a relation that is closed under a transitive rule follows its steps one at a time.

    path(x, y) :- edge(x, y).                        path{step}(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), path(y, z).     ->     path(x, y) :- path{step}(x, y).
                                                     path(x, z) :- path(x, y), path{step}(y, z).

What the other rules derive are the steps; the relation is their transitive closure. A row is then derived once for every last
(or first) step that leads to it instead of once for every place where its way can be cut, and what lookups need is an
arrangement of the steps only. Columns may be several on each side, and further columns may stay the same throughout. Steps
that are themselves derived from the relation would often be as many as its rows: such relations stay (the bench's pointer
analysis W9 gained nothing).

The steps come last, so that filters on where ways begin pass through the recursion, or first where more readers fix where ways
end. No filter reaches a relation that is observed: its rules do not depend on its readers, which may come and go.

Source: linearization of doubly recursive rules, W. Zhang, C. T. Yu and D. Troy, Necessary and sufficient conditions to
linearize doubly recursive programs in logic databases, ACM TODS 15(3), 1990.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import relations_read, retained
from dlog.engine.ir.rules import Atom, Constant, Program, Relation, Rule, Variable
from dlog.engine.ir.traversal import occurrences
from dlog.engine.optimize.rewriting import Rules, has_given_rows, rules_by_relation, with_rules


@dataclass(frozen=True, slots=True)
class _Transitive:
    """`r(u, x, z) :- r(u, x, y), r(u, y, z).`: the columns where ways begin (x) and end (z)."""

    rule: Rule
    first: Atom
    second: Atom
    begin: frozenset[int]
    end: frozenset[int]


def linearize(program: Program, observed: frozenset[str]) -> Program:
    rules, made = rules_by_relation(program), dict[str, Relation]()
    readers = cache(lambda: _readers(rules))
    kept = retained(program)
    for stratum in program.strata:
        name = stratum.relations[0]
        if name in kept:
            continue
        found = _transitive_rule(program, name, rules[name]) if len(stratum.relations) == 1 else None
        if found is not None:
            steps = _steps_of(program, name)
            first = name not in observed and _begins_with_a_step(found, readers())
            rules[name], rules[steps.name] = _linear(found, steps, first, rules[name])
            made[steps.name] = steps
    return with_rules(program, rules, made) if made else program


def _transitive_rule(program: Program, name: str, rules: list[Rule]) -> _Transitive | None:
    """The one rule of a relation that reads it, if it is transitive."""
    if len(rules) == 1:
        return None
    direct = [rule for rule in rules if name in relations_read(rule)]
    if len(direct) != 1 or name in program.lattices or has_given_rows(program, name):
        return None
    return _transitive(direct[0])


def _transitive(rule: Rule) -> _Transitive | None:
    """The rule as a transitive one, if it is one: with ways that begin in the leftmost column that does not stay."""
    match rule.body:
        case (Atom() as left, Atom() as right) if left.relation == right.relation == rule.head.relation:
            found = _composed(rule, left, right), _composed(rule, right, left)
            return min((t for t in found if t is not None), key=lambda t: min(t.begin), default=None)
    return None


def _composed(rule: Rule, first: Atom, second: Atom) -> _Transitive | None:
    """The rule as one that goes on from where `first` ends with `second`."""
    head = rule.head.args
    if not all(isinstance(a, Variable) for a in (*head, *first.args, *second.args)):
        return None
    same = {c for c, a in enumerate(head) if first.args[c] == a == second.args[c]}
    begin = {c for c, a in enumerate(head) if first.args[c] == a != second.args[c]}
    end = {c for c, a in enumerate(head) if first.args[c] != a == second.args[c]}
    middle = {first.args[c] for c in end}
    if len(same) + len(begin) + len(end) < len(head) or len(set(head)) < len(head):
        return None
    if not begin or len(middle) < len(end) or middle & set(head) or middle != {second.args[c] for c in begin}:
        return None
    return _Transitive(rule, first, second, frozenset(begin), frozenset(end)) if len(begin) == len(end) else None


def _steps_of(program: Program, name: str) -> Relation:
    made = f"{name}{{step}}"
    while made in program.relations:
        made += "'"
    return replace(program.relations[name], name=made)


# ------------------------------------------------------------------------------------------------------------- direction


def _readers(rules: Rules) -> dict[str, list[Atom]]:
    """The atoms that read each relation. Linear rules read as the transitive ones do whose place they take, but for the
    relation itself, which is looked at before."""
    found: dict[str, list[Atom]] = {}
    for some in rules.values():
        for rule in some:
            for atom in (x.atom for x in occurrences(rule.body)):
                found.setdefault(atom.relation, []).append(atom)
    return found


def _begins_with_a_step(transitive: _Transitive, readers: Mapping[str, Sequence[Atom]]) -> bool:
    """Whether the steps come first: more readers fix where ways end than where they begin."""
    reading = readers[transitive.rule.head.relation]
    return _fixed(reading, transitive.end) > _fixed(reading, transitive.begin)


def _fixed(readers: Iterable[Atom], columns: frozenset[int]) -> int:
    """How many atoms have a constant in one of the columns."""
    return sum(any(isinstance(atom.args[c], Constant) for c in columns) for atom in readers)


# ---------------------------------------------------------------------------------------------------------------- making


def _linear(transitive: _Transitive, steps: Relation, first: bool, rules: list[Rule]) -> tuple[list[Rule], list[Rule]]:
    """The rules of the relation and those of its steps."""
    rule = transitive.rule
    step = transitive.first if first else transitive.second
    body = tuple(replace(a, relation=steps.name) if a is step else a for a in (transitive.first, transitive.second))
    ends = tuple(a for a in rule.head.args if isinstance(a, Variable))
    others = [replace(r, head=replace(r.head, relation=steps.name)) for r in rules if r is not rule]
    text = others[0].text if len(others) == 1 else f"{rule.text}  [steps]"
    alone = replace(rule, body=(Atom(steps.name, ends),), text=text)
    return [alone, replace(rule, body=body)], others
