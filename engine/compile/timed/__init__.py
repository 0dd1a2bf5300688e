"""Rules in which time passes: `now()` in comparisons, and atoms of events. Each is split, when it has been checked, into rules
without time and relations that the rounds of a session feed (`rules.Timed`).

A program that is run once has one round: there the rules are as they were written, with that round for `now()`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dlog.dataclass import dataclass
from dlog.engine.compile.problems import Problems
from dlog.engine.compile.strata.dependencies import relations_read
from dlog.engine.compile.timed.clock import at_first_round, bounded, check_clock, clocks, refuse
from dlog.engine.compile.timed.events import MARK, check_events, event_of, split_events, without_event
from dlog.engine.compile.timed.rewriting import NUMBER, compacted, types_of
from dlog.engine.ir.rules import NOW, Atom, Relation, Rule, Timed, Type, UserFunctor, Variable


@dataclass(slots=True)
class Timing:
    """Rules and relations of which some are timed; `at_once` are those of relations where they are not."""

    rules: list[Rule]
    relations: dict[str, Relation]
    timed: dict[str, Timed]
    at_once: dict[str, tuple[Rule, ...]]


def with_time(
    rules: Sequence[Rule],
    others: Iterable[Rule],
    relations: Mapping[str, Relation],
    types: Mapping[str, Type],
    functors: Mapping[str, UserFunctor],
    original: frozenset[str],
    eqrels: frozenset[str],
    problems: Problems,
) -> Timing:
    """Splits the rules in which time passes. `others` must not be of them; `original` are the relations of which an event that
    goes takes back what it had met, `eqrels` those that are equivalence relations."""
    declared = {name: relation for name, relation in relations.items() if name[:1] != MARK}
    if len(declared) == len(relations) and NOW not in problems.source.text:
        return Timing(list(rules), declared, {}, {})
    for clock in (functor for rule in others for functor in clocks(rule)):
        refuse(clock.span, problems)
    passing = {id(rule) for rule in rules if event_of(rule) is not None or clocks(rule)}
    good = [rule for rule in rules if id(rule) not in passing or _checked(rule, problems)]
    timing = Timing([], declared, {}, _at_once(good, passing))
    for rule in good:
        event = event_of(rule)
        if id(rule) not in passing:
            timing.rules.append(rule)
        elif event is None:
            _add_clock(rule, good, types, functors, timing)
        else:
            name = event.relation.removeprefix(MARK)
            split = split_events(rule, event, name in original, name in eqrels, relations, types, functors)
            timing.rules += [split.rules[0], *(r for r in split.rules[1:] if r.head.relation not in timing.relations)]
            timing.relations |= {made.name: made for made in split.relations}
            timing.timed |= split.timed
    return timing


def _checked(rule: Rule, problems: Problems) -> bool:
    clock = check_clock(rule, problems)
    return (event_of(rule) is None or check_events(rule, problems)) and clock


def _at_once(rules: Sequence[Rule], passing: set[int]) -> dict[str, tuple[Rule, ...]]:
    """All rules of relations of which some are timed, as they are in one round."""
    heads = {rule.head.relation for rule in rules if id(rule) in passing}
    found: dict[str, list[Rule]] = {name: [] for name in heads}
    for rule in (rule for rule in rules if rule.head.relation in heads):
        event = event_of(rule)
        plain = at_first_round(rule if event is None else without_event(rule, event)) if id(rule) in passing else rule
        found[rule.head.relation].append(plain)
    return {name: tuple(listed) for name, listed in found.items()}


def _add_clock(
    rule: Rule,
    rules: Sequence[Rule],
    types: Mapping[str, Type],
    functors: Mapping[str, UserFunctor],
    timing: Timing,
) -> None:
    """A rule that compares with `now()`."""
    made, rest = bounded(rule, _readers(rule.head.relation, rules))
    known = types_of(rule, timing.relations, types, functors)
    body = list(rest)
    for part in made:
        due = part.due.head.relation
        shown = due.replace("due@", "shown@", 1)
        columns = (*((f"@{k}", known[v]) for k, v in enumerate(part.variables)), ("@from", NUMBER), ("@to", NUMBER))
        if due not in timing.relations:
            timing.rules.append(part.due)
            timing.relations |= {name: Relation(name, columns, part.span) for name in (due, shown)}
            timing.timed[shown] = Timed("shown", due, span=part.span)
        body.append(Atom(shown, (*map(Variable, part.variables), None, None), part.span))
    timing.rules.append(compacted(rule, rule.head.relation, rule.head.args, body))


def _readers(relation: str, rules: Sequence[Rule]) -> frozenset[str]:
    """The relations that depend on one, itself included."""
    reading: dict[str, list[str]] = {}
    for rule in rules:
        for on in relations_read(rule):
            reading.setdefault(on.removeprefix(MARK), []).append(rule.head.relation)
    found, waiting = {relation}, [relation]
    while waiting:
        more = set(reading.get(waiting.pop(), ())) - found
        found |= more
        waiting += more
    return frozenset(found)
