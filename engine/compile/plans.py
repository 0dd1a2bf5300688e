"""Checks of `.plan`, the orders in which a rule's author wants its atoms read.

A recursive rule has a version for each of its atoms that is recursive with its head: version n reads what is new of the n-th of
them. An order has the numbers of all positive atoms outside of aggregates. The planner chooses its own orders, from the sizes
of relations; a plan that does not fit its rule is a mistake all the same, since rule and plan were not meant like this.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlog.engine.compile.normal.disjunction import alternatives
from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.strata.dependencies import components
from dlog.engine.compile.walk import parts, walk
from dlog.grammar.source import Span
from dlog.grammar.syntax import Atom, Clause, ExecutionPlan


def check_plans(clauses: Sequence[Clause], inline: frozenset[str], problems: Problems) -> None:
    """Adds what is wrong with the plans of clauses whose names are right. Rules that read `inline` relations get other atoms
    later, and are not looked at."""
    clauses = [clause for clause in clauses if clause.body is not None]
    planned = [clause for clause in clauses if clause.plan is not None]
    if not planned:
        return
    cycles = _cycles(clauses)
    for clause in planned:
        if clause.body is None or any(isinstance(n, Atom) and n.name in inline for n in walk(clause.body)):
            continue
        for body in alternatives(clause.body, problems):
            read = [literal.name for literal in body if isinstance(literal, Atom)]
            for head in clause.heads:
                _check_plan(clause.plan, read, cycles[head.name], problems)


def _cycles(clauses: Sequence[Clause]) -> dict[str, frozenset[str]]:
    """The relations that are recursive with each derived one; none if it does not read itself over any way."""
    edges: dict[str, list[str]] = {}
    for clause in clauses:
        read = [n.name for part in parts(clause)[len(clause.heads) :] for n in walk(part) if isinstance(n, Atom)]
        for head in clause.heads:
            edges.setdefault(head.name, []).extend(read)
    found: dict[str, frozenset[str]] = {}
    for component in components(edges, edges):
        recursive = len(component) > 1 or component[0] in edges[component[0]]
        found.update((name, frozenset(component if recursive else ())) for name in component)
    return found


def _check_plan(plan: ExecutionPlan | None, read: Sequence[str], cycle: frozenset[str], problems: Problems) -> None:
    versions = sum(name in cycle for name in read)
    for index, (version, order) in enumerate(plan.orders if plan is not None else ()):
        span = plan.order_spans[index] if plan is not None and plan.order_spans else Span(0, 0)
        if not versions:
            problems.add("bad-plan", "a plan of a rule that is not recursive", Label(span), notes=["the rule has no versions"])
        elif version >= versions:
            numbers = "is version 0" if versions == 1 else f"are versions 0 to {versions - 1}"
            note = f"there {numbers}: one for each recursive atom of the body"
            problems.add("bad-plan", f"the rule has no version {version}", Label(span), notes=[note])
        if versions and sorted(order) != [*range(1, len(read) + 1)]:
            problems.add("bad-plan", _disorder(order, len(read)), Label(span))


def _disorder(order: Sequence[int], atoms: int) -> str:
    if len(order) != atoms:
        has = f"{atoms} atom{'' if atoms == 1 else 's'}"
        return f"the body has {has}, but {len(order)} {'is' if len(order) == 1 else 'are'} ordered"
    missing = ", ".join(str(n) for n in range(1, atoms + 1) if n not in order)
    return f"the order lacks {missing}: it has every number from 1 to {atoms} once"
