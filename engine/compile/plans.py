"""Checks of `.plan`, the orders in which a rule's author wants its atoms read.

A recursive rule has a version for each of its atoms that is recursive with its head: version n reads what is new of the n-th of
them. An order has the numbers of all positive atoms outside of aggregates. The planner chooses its own orders, from the sizes
of relations; a plan that does not fit its rule is a mistake all the same, since rule and plan were not meant like this. One of
a rule without versions has a warning only: it would say nothing, and published programs have such.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from dlog.engine.compile.normal.disjunction import alternatives
from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.strata.dependencies import components
from dlog.engine.compile.walk import parts, walk
from dlog.grammar.diagnostics import Diagnostic
from dlog.grammar.literal_facts import LiteralFact
from dlog.grammar.source import Span
from dlog.grammar.syntax import And, Atom, Body, Clause, ExecutionPlan


def check_plans(
    clauses: Sequence[Clause], inputs: Collection[str], shown: Collection[str], inline: frozenset[str], problems: Problems
) -> None:
    """Adds what is wrong with the plans of clauses whose names are right. Rules that read `inline` relations get other atoms
    later, and are not looked at; nor are those that Souffle drops before: no `shown` relation needs them, or they read one that
    is empty whatever the `inputs` have."""
    planned = [clause for clause in clauses if clause.plan is not None]
    if not planned:
        return
    empty = _empty(clauses, inputs)
    clauses = [clause for clause in clauses if clause.body is not None]
    edges = _edges(clauses)
    cycles, needed = _cycles(edges), _reachable(shown, edges)
    for clause in planned:
        if clause.body is None or any(isinstance(n, Atom) and n.name in inline for n in walk(clause.body)):
            continue
        for body in alternatives(clause.body, problems):
            read = [literal.name for literal in body if isinstance(literal, Atom)]
            if not empty.isdisjoint(read):
                continue
            for head in (head for head in clause.heads if head.name in needed):
                _check_plan(clause.plan, read, cycles[head.name], problems)


def ineffective_plans(clauses: Sequence[Clause]) -> Iterator[Diagnostic]:
    """A warning for each plan of a rule that is not recursive."""
    clauses = [clause for clause in clauses if clause.body is not None]
    cycles = _cycles(_edges(clauses)) if any(clause.plan is not None for clause in clauses) else {}
    for clause in clauses:
        if clause.plan is None or clause.body is None:
            continue
        read = {n.name for n in walk(clause.body) if isinstance(n, Atom)}
        if all(read.isdisjoint(cycles[head.name]) for head in clause.heads):
            message = "a plan of a rule that is not recursive has no effect"
            yield Diagnostic("ineffective-plan", message, (Label(clause.plan.span),))


def _empty(clauses: Sequence[Clause], inputs: Collection[str]) -> set[str]:
    """The relations that nothing fills: they are read, are no inputs, and each of their rules reads another such relation."""
    filled = {*inputs, *(name for clause in clauses if clause.body is None for name in _heads(clause))}
    rules = [(head.name, _certain(clause.body)) for clause in clauses if clause.body is not None for head in clause.heads]
    read = {name for _, names in rules for name in names} - filled
    empty: set[str] = set()
    while new := read - empty - {head for head, names in rules if empty.isdisjoint(names)}:
        empty |= new
    return empty


def _heads(clause: Clause) -> list[str]:
    return [clause.name] if type(clause) is LiteralFact else [head.name for head in clause.heads]


def _certain(body: Body) -> list[str]:
    """What every alternative of a body reads."""
    literals = body.parts if isinstance(body, And) else (body,)
    return [literal.name for literal in literals if isinstance(literal, Atom)]


def _edges(clauses: Sequence[Clause]) -> dict[str, list[str]]:
    """What the rules of each derived relation read."""
    edges: dict[str, list[str]] = {}
    for clause in clauses:
        read = [n.name for part in parts(clause)[len(clause.heads) :] for n in walk(part) if isinstance(n, Atom)]
        for head in clause.heads:
            edges.setdefault(head.name, []).extend(read)
    return edges


def _reachable(shown: Collection[str], edges: Mapping[str, Sequence[str]]) -> set[str]:
    """The relations that shown ones are computed from, these included."""
    found, waiting = set(shown), list(shown)
    while waiting:
        new = set(edges.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def _cycles(edges: dict[str, list[str]]) -> dict[str, frozenset[str]]:
    """The relations that are recursive with each derived one; none if it does not read itself over any way."""
    found: dict[str, frozenset[str]] = {}
    for component in components(edges, edges):
        recursive = len(component) > 1 or component[0] in edges[component[0]]
        found.update((name, frozenset(component if recursive else ())) for name in component)
    return found


def _check_plan(plan: ExecutionPlan | None, read: Sequence[str], cycle: frozenset[str], problems: Problems) -> None:
    versions = sum(name in cycle for name in read)
    if not versions:
        return
    for index, (version, order) in enumerate(plan.orders if plan is not None else ()):
        span = plan.order_spans[index] if plan is not None and plan.order_spans else Span(0, 0)
        if versions <= version:
            numbers = "is version 0" if versions == 1 else f"are versions 0 to {versions - 1}"
            note = f"there {numbers}: one for each recursive atom of the body"
            problems.add("bad-plan", f"the rule has no version {version}", Label(span), notes=[note])
        if sorted(order) != [*range(1, len(read) + 1)]:
            problems.add("bad-plan", _disorder(order, len(read)), Label(span))


def _disorder(order: Sequence[int], atoms: int) -> str:
    if len(order) != atoms:
        has = f"{atoms} atom{'' if atoms == 1 else 's'}"
        return f"the body has {has}, but {len(order)} {'is' if len(order) == 1 else 'are'} ordered"
    missing = ", ".join(str(n) for n in range(1, atoms + 1) if n not in order)
    return f"the order lacks {missing}: it has every number from 1 to {atoms} once"
