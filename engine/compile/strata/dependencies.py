"""The dependency graph of relations, with the literals that make its edges, and its cycles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal as OneOf

from dlog.dataclass import immutable
from dlog.engine.ir.rules import Aggregate, Atom, Compare, Generator, Literal, Negation, Program, Rule, Stratum, Unpack
from dlog.engine.ir.traversal import stateful_functors
from dlog.grammar.source import Span


@immutable
class Dependency:
    """`relation` of a rule's head reads `on` in the literal at `span`, in the way `how`."""

    relation: str
    on: str
    how: OneOf["positive", "negation", "aggregation"]
    span: Span
    rule: Rule
    op: str = ""
    """Of the aggregate."""


def dependencies(rule: Rule) -> Iterator[Dependency]:
    for how, on, span, op in _reads(rule.body):
        yield Dependency(rule.head.relation, on, how, span, rule, op)


def relations_read(rule: Rule) -> list[str]:
    """The relations that the rule's body mentions, in the order of the text."""
    found: list[str] = []
    for literal in rule.body:
        if type(literal) is Atom:  # by far the most
            found.append(literal.relation)
        elif type(literal) is not Compare:
            found += [on for _, on, _, _ in _reads((literal,))]
    return found


def read_by(literal: Literal) -> list[str]:
    """The relations that a literal mentions."""
    return [on for _, on, _, _ in _reads((literal,))]


def _reads(body: Iterable[Literal]) -> Iterator[tuple[OneOf["positive", "negation", "aggregation"], str, Span, str]]:
    for literal in body:
        match literal:
            case Atom():
                yield "positive", literal.relation, literal.span, ""
            case Negation(atom=atom):
                yield "negation", atom.relation, literal.span, ""
            case Aggregate(alternatives=bodies, op=op):
                for inner in bodies:
                    for _, on, span, _ in _reads(inner):
                        yield "aggregation", on, span, op
            case Compare() | Unpack() | Generator():
                pass


def through_aggregates(program: Program) -> frozenset[str]:
    """The relations that are in a cycle through an aggregate."""
    return frozenset(
        name
        for stratum in program.strata
        if stratum.recursive
        and any(d.how == "aggregation" and d.on in stratum.relations for rule in stratum.rules for d in dependencies(rule))
        for name in stratum.relations
    )


def relations_asked(program: Program, stratum: Stratum) -> set[str]:
    """The relations that a stratum's rules read, those of subsumption included."""
    found = {on for rule in stratum.rules for on in relations_read(rule)}
    return found | _read_by_subsumption(program, stratum)


def retained(program: Program) -> frozenset[str]:
    """The relations that stay as the text has them: those of which rows may go, all others of their strata, and what
    subsumption reads; those of strata with stateful functors, and what these read."""
    retaining = program.retentions.keys() | program.iterated
    strata = [s for s in program.strata if not retaining.isdisjoint(s.relations)]
    kept = {name for s in strata for name in (*s.relations, *_read_by_subsumption(program, s))}
    stateful = [s for s in program.strata if any(map(stateful_functors, s.rules))]
    return frozenset(kept.union(*((*s.relations, *relations_asked(program, s)) for s in stateful)))


def _read_by_subsumption(program: Program, stratum: Stratum) -> set[str]:
    kept = (program.retentions[name] for name in stratum.relations if name in program.retentions)
    return {on for retention in kept for rule in retention.dominated for on in relations_read(rule)}


def components(nodes: Iterable[str], edges: dict[str, list[str]]) -> list[list[str]]:
    """Strongly connected components (Tarjan, without recursion), each after those it depends on; `edges` lead to what a node
    reads. Nodes keep their order within a component."""
    order = {node: i for i, node in enumerate(nodes)}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    open_: set[str] = set()
    found: list[list[str]] = []
    for root in order:
        if root in index:
            continue
        work: list[tuple[str, Iterator[str]]] = []
        _enter(root, index, low, stack, open_, work, edges)
        while work:
            node, following = work[-1]
            step = None
            for on in following:
                if on in order and (on not in index or on in open_):
                    step = on
                    break
            if step is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    found.append(_leave(node, stack, open_, order))
            elif step not in index:
                _enter(step, index, low, stack, open_, work, edges)
            else:
                low[node] = min(low[node], index[step])
    return found


def _enter(
    node: str,
    index: dict[str, int],
    low: dict[str, int],
    stack: list[str],
    open_: set[str],
    work: list[tuple[str, Iterator[str]]],
    edges: dict[str, list[str]],
) -> None:
    index[node] = low[node] = len(index)
    stack.append(node)
    open_.add(node)
    work.append((node, iter(edges.get(node, ()))))


def _leave(node: str, stack: list[str], open_: set[str], order: dict[str, int]) -> list[str]:
    """Pop the component whose root is `node`."""
    component: list[str] = []
    while not component or component[-1] != node:
        component.append(stack.pop())
        open_.discard(component[-1])
    return sorted(component, key=order.__getitem__)


def path_between(start: str, goal: str, edges: dict[str, list[str]], within: set[str]) -> list[str]:
    """A shortest path from start to goal (both included) inside `within`."""
    previous: dict[str, str] = {}
    queue = [start]
    seen = {start}
    for node in queue:
        if node == goal and node != start:
            break
        for following in edges.get(node, ()):
            if following in within and following not in seen:
                seen.add(following)
                previous[following] = node
                queue.append(following)
    path = [goal]
    while path[-1] != start:
        path.append(previous[path[-1]])
    return path[::-1]
