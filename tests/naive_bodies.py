"""What the naive evaluator reads off a clause before it evaluates it: variables, used relations, the disjunctive form of a
body and an order of its goals in which everything is bound before it is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from dlog.grammar.source import Span
from dlog.grammar.syntax import (
    AggregateTerm,
    And,
    Atom,
    Body,
    BranchTerm,
    Clause,
    Constraint,
    Not,
    Or,
    RecordTerm,
    Term,
    Truth,
    Variable,
    Wildcard,
)

Goal = Atom | Not | Constraint | Truth


class Ungrounded(Exception):
    """No order of the body binds every variable before it is needed."""


def walk(node: Any, inside_aggregates: bool = True) -> Iterator[Any]:
    """The node and all nodes below it. An aggregate that is not entered is not visited either."""
    if isinstance(node, tuple):
        for child in node:
            yield from walk(child, inside_aggregates)
    elif is_dataclass(node) and not isinstance(node, Span) and (inside_aggregates or not isinstance(node, AggregateTerm)):
        yield node
        for field in fields(node):
            yield from walk(getattr(node, field.name), inside_aggregates)


def variables(node: Any, inside_aggregates: bool = True) -> set[str]:
    return {n.name for n in walk(node, inside_aggregates) if isinstance(n, Variable)}


def free_variables(node: Any) -> set[str]:
    """The variables that may be bound from outside: in an aggregate, all but those of its target."""
    match node:
        case Variable(name=name):
            return {name}
        case AggregateTerm(target=target, body=body):
            return free_variables((target, body)) - variables(target, inside_aggregates=False)
        case tuple():
            return {name for child in node for name in free_variables(child)}
        case _ if is_dataclass(node) and not isinstance(node, Span):
            return free_variables(tuple(getattr(node, field.name) for field in fields(node)))
        case _:
            return set()


def used_relations(
    node: Any, how: str = "plain", bounds: frozenset[tuple[str, str]] = frozenset()
) -> Iterator[tuple[str, str]]:
    """The relations a clause reads, each with how: plain, not, the name of the aggregates around it, nested, or bounded: more
    rows of it only make a comparison of a count or sum truer. `bounds` are the variables that are compared, and which way."""
    match node:
        case Clause(heads=heads, body=body):
            given = tuple(h.args for h in heads)
            shown = frozenset((name, "other") for name in free_variables(given))
            yield from used_relations((given, body), how, shown | frozenset(compared(body)))
        case Not(body=body):
            yield from used_relations(body, "bounded" if how == "falls" else "not")
        case Constraint(op="=", left=Variable(name=name), right=AggregateTerm() as term):
            ways = {way for variable, way in bounds if variable == name}
            bound = len(ways) == 1 and ways < {*GROWS.values()} and how == "plain"
            yield from used_relations(term, ways.pop() if bound else how)
        case Constraint(op=op, left=left, right=right):
            for side, other, way in ((left, right, GROWS.get(op, how)), (right, left, FALLS.get(op, how))):
                alone = isinstance(side, AggregateTerm) and not isinstance(other, AggregateTerm)
                yield from used_relations(side, way if alone and how == "plain" else how)
        case AggregateTerm(op=op):
            if op in ("count", "sum") and how in ("grows", "falls"):
                yield from used_relations((node.target, node.body), how)
            else:
                yield from used_relations((node.target, node.body), op if how in ("plain", "grows", "falls", op) else "nested")
        case tuple():
            for child in node:
                yield from used_relations(child, how, bounds)
        case _ if is_dataclass(node) and not isinstance(node, Span):
            if isinstance(node, Atom):
                yield node.name, {"grows": "bounded", "falls": "count"}.get(how, how)
            yield from used_relations(tuple(getattr(node, f.name) for f in fields(node)), how, bounds)


GROWS = {">": "grows", ">=": "grows", "<": "falls", "<=": "falls"}
"""What has to become of the left side for a comparison to stay true; FALLS: of the right one."""
FALLS = {">": "falls", ">=": "falls", "<": "grows", "<=": "grows"}


def compared(body: Body | None) -> Iterator[tuple[str, str]]:
    """The variables of a body with the ways in which they are used: those of a comparison, or any other."""
    for node in walk(body, inside_aggregates=False):
        match node:
            case Constraint(op=op, left=left, right=right):
                for side, other, ways in ((left, right, GROWS), (right, left, FALLS)):
                    alone = isinstance(side, Variable) and side.name not in variables(other)
                    aggregate = op == "=" and (isinstance(other, AggregateTerm) or isinstance(side, AggregateTerm))
                    for name in free_variables(side) if not aggregate else ():
                        yield name, ways.get(op, "other") if alone else "other"
            case Atom(args=args):
                for name in free_variables(args):
                    yield name, "other"
            case _:
                pass


def alternatives(body: Body) -> list[list[Goal]]:
    """The disjunctive form: a body holds where all goals of one of its alternatives do."""
    match body:
        case And(parts=parts):
            found: list[list[Goal]] = [[]]
            for part in parts:
                found = [[*goals, *more] for goals in found for more in alternatives(part)]
            return found
        case Or(parts=parts):
            return [goals for part in parts for goals in alternatives(part)]
        case _:
            return [[body]]


def in_order(goals: Iterable[Goal], bound: set[str], scope: set[str]) -> list[Goal]:
    """The goals, each after those that bind what it needs; tests come as early as they can."""
    rest, ordered = list(goals), []
    while rest:
        ready = [g for g in rest if is_ready(g, bound, scope)]
        if not ready:
            raise Ungrounded(f"nothing binds the variables of {rest}")
        tests = [g for g in ready if not isinstance(g, Atom)]
        goal = tests[0] if tests else max(ready, key=lambda g: len(variables(g, inside_aggregates=False) & bound))
        rest.remove(goal)
        ordered.append(goal)
        bound = bound | (set() if isinstance(goal, Not) else variables(goal, inside_aggregates=False))
    return ordered


def is_ready(goal: Goal, bound: set[str], scope: set[str]) -> bool:
    match goal:
        case Truth():
            return True
        case Not(body=body):
            return free_variables(body) & scope <= bound
        case Constraint(op="=", left=left, right=right):
            return any(is_known(a, bound, scope) and is_pattern((b,), bound, scope) for a, b in ((left, right), (right, left)))
        case Constraint(left=left, right=right):
            return is_known(left, bound, scope) and is_known(right, bound, scope)
        case Atom(args=args):
            return is_pattern(args, bound, scope)


def is_known(term: Term, bound: set[str], scope: set[str]) -> bool:
    """Whether the bound variables are all it takes to compute the term. What an aggregate binds itself is not in the scope."""
    unnamed = any(isinstance(n, Wildcard) for n in walk(term, inside_aggregates=False))
    return not unnamed and free_variables(term) & scope <= bound


def is_pattern(terms: tuple[Term, ...], bound: set[str], scope: set[str]) -> bool:
    """Whether the terms can be compared with given values: records of variables, and terms known once those are bound."""
    flat = list(terms)
    while any(isinstance(t, RecordTerm | BranchTerm) for t in flat):
        flat = [inner for t in flat for inner in (t.args if isinstance(t, RecordTerm | BranchTerm) else (t,))]
    bound = bound | {t.name for t in flat if isinstance(t, Variable)}
    return all(isinstance(t, Wildcard) or is_known(t, bound, scope) for t in flat)
