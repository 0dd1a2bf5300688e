"""Rules to strata in the order of evaluation; negation and aggregation look at finished strata.

    path <- path, edge;  far <- !path     ->   stratum {path} (recursive), stratum {far}

Relations without rules (inputs, facts) have no stratum: they are there before the first. A cycle through a negation or an
aggregate is one stratum, too. Its result is known to be well defined if it is recursion through `min` or `max` as lattice.py
says, or through `count` or `sum` as thresholds.py does. Of all others the rows decide (plan/static/alternating); where they
cannot, as relations do not keep all of theirs, the cycle is an error that shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.compile.check import Checked
from dlog.engine.compile.past import is_declared
from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.strata.dependencies import Dependency, components, dependencies, path_between, relations_read
from dlog.engine.compile.strata.lattice import NotWellDefined, lattice_of, lattice_of_subsumption
from dlog.engine.compile.strata.thresholds import mentioned, thresholds
from dlog.engine.compile.timed.findings import with_findings
from dlog.engine.garbage import uncollected
from dlog.engine.ir.aggregates import dominance_of
from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.printing import Printer
from dlog.engine.ir.rules import (
    AUTOINC,
    ITERATION_COUNTER,
    Aggregate,
    Compare,
    Constant,
    Head,
    Lattice,
    Program,
    Record,
    Relation,
    Retention,
    Rule,
    Stratum,
)
from dlog.engine.ir.traversal import literal_variables, stateful_functors
from dlog.grammar.diagnostics import Diagnostic
from dlog.grammar.source import Source

_KEEPS_SOME = "a relation of the cycle does not keep all of its rows: they may go as others come"
MAX_FACT_RULES = 64
"""Facts in the text up to which a relation with a subsumption can be a lattice, whose facts are rules."""


@dataclass(frozen=True, slots=True)
class _Graph:
    """Rules by head; `edges[r]` are the relations that r's rules read, each once, or that decide which of its rows stay."""

    rules: dict[str, list[Rule]]
    edges: dict[str, list[str]]
    retentions: dict[str, Retention]

    def reads(self, name: str) -> list[Dependency]:
        """The dependencies of a relation's rules, and of its subsumption."""
        return [d for rule in (*self.rules[name], *self.conditions(name)) for d in dependencies(rule)]

    def conditions(self, name: str) -> list[Rule]:
        """The rules of a relation's subsumption, without the two rows that they compare."""
        found = self.retentions.get(name)
        return [] if found is None else [replace(rule, body=rule.body[2:]) for rule in found.dominated]


Remarks: TypeAlias = list[tuple[Sequence[str], Diagnostic]]
"""Warnings, each with the relations that it is about."""


@uncollected
def stratify(checked: Checked, remarks: Remarks | None = None) -> Program:
    """`remarks` hear of cycles through negation or aggregates of which only the rows will say whether they have a result."""
    problems = Problems(checked.source)
    graph = _graph(checked)
    strata: list[Stratum] = []
    lattices: dict[str, Lattice] = {}
    alternating: set[str] = set()
    facts = dict(checked.facts)
    classes = frozenset(checked.classes.values())
    for component in components(graph.rules, graph.edges):
        if not checked.timed.keys().isdisjoint(component):
            if len(component) > 1:
                problems.take(_cycle_of_time(component, graph, checked))
            continue
        inner = _inner(component, graph)
        lattice = None
        if classes:
            lattices |= {name: Lattice(name, Dominance.LEAST, 1) for name in component if name in classes}
        if inner and any(d.how != "positive" for d in inner if d.relation not in classes):
            try:
                lattice = _lattice(component, graph, checked, inner)
            except NotWellDefined as why:
                if not _alternates(component, graph):
                    reason = f"recursion through this aggregate is not well defined: {why}" if str(why) else ""
                    problems.take(_cycle("not-stratified", component, graph, inner, reason, checked.source))
                elif remarks is not None and any(_may_be_meant_otherwise(d) for d in inner):
                    reason = "only the rows will say whether there is a result" + (f": {why}" if str(why) else "")
                    remarks.append((component, _cycle("unstratified", component, graph, inner, reason, checked.source)))
                alternating.update(component)
        elif graph.retentions and not graph.retentions.keys().isdisjoint(component):
            lattice = _subsumed(component, graph, checked)
        if lattice is not None:
            lattices[lattice.relation] = lattice
        rules = tuple([rule for name in component for rule in graph.rules[name]])
        if _facts_are_rules(component[0], graph, facts):
            rules = (*rules, *map(partial(_fact_rule, checked.relations[component[0]]), facts.pop(component[0], ())))
        if inner:
            _check_counters(rules, component, problems)
        strata.append(Stratum(tuple(component), rules, bool(inner) or lattice is not None))
    problems.check()
    program = Program(
        checked.source,
        checked.types,
        checked.relations,
        facts,
        tuple(strata),
        checked.io,
        lattices,
        checked.inline,
        checked.retentions,
        checked.first_symbols or _first_symbols(checked),
        checked.options,
        checked.eqrels,
        checked.classes,
        checked.functors,
        checked.timed,
        checked.at_once,
        frozenset(alternating),
    )
    program = with_findings(program, problems)
    problems.check()
    return program


def _check_counters(rules: Iterable[Rule], component: list[str], problems: Problems) -> None:
    """`autoinc()` would number the iterations of a recursive rule, which no text says."""
    for rule in rules:
        counters = [functor for functor in stateful_functors(rule) if functor.op == AUTOINC]
        if counters and not set(component).isdisjoint(relations_read(rule)):
            for counter in counters:
                notes = ["number the rows in a rule of its own, after the recursion"]
                problems.add("recursive-counter", "`autoinc()` in a recursive rule", Label(counter.span), notes=notes)


def _first_symbols(checked: Checked) -> tuple[str, ...]:
    """The strings of facts, relation by relation, where there is something to choose by them."""
    if not any(kept.keys for kept in checked.retentions.values()):
        return ()
    values = (value for rows in checked.facts.values() for row in rows for value in row)
    return tuple(dict.fromkeys(v.value for v in values if isinstance(v, Constant) and isinstance(v.value, str)))


def _graph(checked: Checked) -> _Graph:
    """Relations in the order of their declaration, so that strata do not depend on anything else."""
    by_head: dict[str, list[Rule]] = {}
    for rule in checked.rules:
        by_head.setdefault(rule.head.relation, []).append(rule)
    logs = {log: name for name, kept in checked.retentions.items() for log in kept.logs}
    ruled = by_head.keys() | logs.keys() | checked.timed.keys()
    rules = {name: by_head.get(name, []) for name in checked.relations if name in ruled}
    graph = _Graph(rules, {}, checked.retentions)
    for name, found in rules.items():
        read = [on for rule in found for on in relations_read(rule)]
        if name in checked.retentions:
            read += [on for rule in graph.conditions(name) for on in relations_read(rule)]
            read += checked.retentions[name].logs
        elif name in logs:
            read.append(logs[name])
        if name in checked.timed:
            read += filter(None, (checked.timed[name].source, checked.timed[name].event))
        graph.edges[name] = list(dict.fromkeys(read))
    return graph


def _inner(component: list[str], graph: _Graph) -> list[Dependency]:
    """The dependencies among the relations of a component: of most, which are one relation, there are none."""
    if len(component) == 1 and component[0] not in graph.edges[component[0]]:
        return []
    within = set(component)
    return [d for name in component for d in graph.reads(name) if d.on in within]


def _lattice(component: list[str], graph: _Graph, checked: Checked, inner: list[Dependency]) -> Lattice | None:
    """The lattice of a cycle through an aggregate, if it is one, and nothing if its aggregates are compared with bounds; raises
    NotWellDefined for all others."""
    if any(d.how == "negation" for d in inner):
        raise NotWellDefined("")
    if not graph.retentions.keys().isdisjoint(component):
        raise NotWellDefined(_KEEPS_SOME)
    if any(_is_extreme(d) for d in inner):
        return _extreme(component, graph, checked)
    for name in component:
        for rule in graph.rules[name]:
            thresholds(rule, set(component))
    return None


def _alternates(component: list[str], graph: _Graph) -> bool:
    """Whether passes evaluate a cycle through a negation or an aggregate: what is derived may depend on nothing else."""
    rules = [rule for name in component for rule in graph.rules[name]]
    counts = any(ITERATION_COUNTER in relations_read(rule) for rule in rules)
    return graph.retentions.keys().isdisjoint(component) and not counts and not any(any(stateful_functors(r)) for r in rules)


def _subsumed(component: list[str], graph: _Graph, checked: Checked) -> Lattice | None:
    """The lattice of a relation with a subsumption that is one."""
    (name, *others) = component
    if others or any(i.action == "input" and i.relation == name for i in checked.io):
        return None
    if len(checked.facts.get(name, ())) > MAX_FACT_RULES:
        return None
    try:
        return lattice_of_subsumption(name, graph.retentions[name], graph.rules[name])
    except NotWellDefined:
        return None


def _facts_are_rules(name: str, graph: _Graph, facts: Mapping[str, Sequence[object]]) -> bool:
    """Whether a relation's facts count as rules: where a subsumption keeps some of its rows, and there are few."""
    kept = graph.retentions.get(name)
    return kept is not None and bool(kept.dominated) and len(facts.get(name, ())) <= MAX_FACT_RULES


def _fact_rule(relation: Relation, row: tuple[Constant | Record, ...]) -> Rule:
    """A fact as a rule."""
    text = Printer((), explicit=False).call(relation.name, row) + "."
    return Rule(Head(relation.name, row, relation.span), (), (), (), text, relation.span)


def _is_extreme(dependency: Dependency) -> bool:
    """Whether it goes through a `min` or `max`."""
    return dependency.how == "aggregation" and dominance_of(dependency.op) is not None


def _extreme(component: list[str], graph: _Graph, checked: Checked) -> Lattice:
    """The lattice of a cycle through `min` or `max`; raises NotWellDefined with the reason."""
    (name, *others) = component
    if others:
        raise NotWellDefined("`min` or `max` needs a relation that is alone in its cycle")
    if checked.facts.get(name) or any(i.action == "input" and i.relation == name for i in checked.io):
        raise NotWellDefined(f"`{name}` must have no facts or input of its own: read them in the aggregate's body")
    return lattice_of(name, graph.rules[name])


def _may_be_meant_otherwise(dependency: Dependency) -> bool:
    """Whether a dependency that is not monotone may be a mistake, or would be monotone if it were written otherwise. A total of
    totals is what it says."""
    if dependency.how == "negation" or _is_extreme(dependency):
        return True
    body = dependency.rule.body
    results = {x.result.id for x in body if isinstance(x, Aggregate) and dependency.on in mentioned((x,))}
    compared = (x for x in body if isinstance(x, Compare) and x.op != "=")
    return any(not results.isdisjoint(literal_variables(x)) for x in compared)


def _cycle(
    code: str, component: list[str], graph: _Graph, inner: list[Dependency], reason: str, source: Source
) -> Diagnostic:
    """One for each component: its first offending literal and the cycle it closes; the other offending ones are labelled."""
    bad = sorted((d for d in inner if d.how != "positive"), key=lambda d: d.span.start)
    first = bad[0]
    way = path_between(first.on, first.relation, graph.edges, set(component)) if first.on != first.relation else [first.on]
    what = "itself" if first.on == first.relation else "each other"
    subject = f"`{first.relation}` depends" if first.on == first.relation else _listing(component) + " depend"
    message = f"{subject} on {what} through {'a negation' if first.how == 'negation' else 'an aggregate'}"
    labels = [Label(d.span, f"`{d.relation}` needs all of `{d.on}` here") for d in bad]
    labels += _steps(way, graph)
    notes = (f"the cycle: {' -> '.join([first.relation, *way])}", *([reason] if reason else []))
    return Diagnostic(code, message, tuple(labels), notes, source)


def _cycle_of_time(component: list[str], graph: _Graph, checked: Checked) -> Diagnostic:
    """A relation whose rows decide which there are in the same round, by way of what they meet or how long they are there."""
    name = min((n for n in component if n in checked.timed), key=lambda n: checked.timed[n].span.start)
    timed = checked.timed[name]
    way = [n for n in [name, *path_between(timed.source, name, graph.edges, set(component))] if is_declared(n)]
    way = [*way[-1:], *way] if len(set(way)) > 1 or len(way) == 1 else way
    shown, ends = ("`now()`", "bounds must not be of") if timed.how == "shown" else ("an event", "an event must not wait for")
    message = f"`{way[0]}` depends on itself through {shown}"
    notes = (f"the cycle: {' -> '.join(way)}", f"{ends} what follows from the rule in the same round")
    return Diagnostic("not-stratified", message, (Label(timed.span),), notes, checked.source)


def _steps(way: list[str], graph: _Graph) -> list[Label]:
    """A label for each further step of the cycle."""
    labels = []
    for relation, on in pairwise(way):
        step = next(d for d in graph.reads(relation) if d.on == on)
        if step.how == "positive":
            labels.append(Label(step.span, f"`{relation}` reads `{on}` here"))
    return labels


def _listing(names: list[str]) -> str:
    return ", ".join(f"`{n}`" for n in names[:-1]) + f" and `{names[-1]}`"
