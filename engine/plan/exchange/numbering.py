"""Checks for what several workers cannot do: rules that use the number of a string or a record, as each worker numbers its own,
recursion through `count` and `sum`, whose sums are in one place, and relations that do not keep all of their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dlog.engine.compile.strata.dependencies import dependencies, through_aggregates
from dlog.engine.compile.strata.thresholds import mentioned
from dlog.engine.ir.rules import (
    AUTOINC,
    ITERATION_COUNTER,
    Aggregate,
    Atom,
    Functor,
    Program,
    Rule,
    printed_types,
)
from dlog.engine.ir.traversal import functors, prints, stateful_functors, user_aggregates
from dlog.engine.plan.incremental.nested import nested_aggregates
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label
from dlog.grammar.source import Span

_NUMBERS: Final = {"ord": "ord", "symbol_of": "as() into symbols"}
"""Functors that deal with the numbers of symbols and records, and their names in messages."""


def ords(rule: Rule) -> Iterator[Functor]:
    """Every `ord` of a rule, and every functor that one worker must call for all."""
    return (functor for functor in functors(rule) if functor.op in _NUMBERS or functor.stateful)


def refuse_for_workers(program: Program) -> None:
    """Raises DlogError for a program that several workers are to run together and that only one can."""
    rules = [rule for stratum in program.strata for rule in stratum.rules]
    numbered = {functor.span: functor.op for rule in rules for functor in functors(rule) if functor.op in _NUMBERS}
    why = "each worker numbers strings and records for itself"
    found = [_refused(_NUMBERS[op], span, why, program) for span, op in numbered.items()]
    if found := [*found, *_counting(program)]:
        raise DlogError(found)


def counts(program: Program) -> bool:
    """Whether a program is recursive through `count` or `sum`, has relations that do not keep all of their rows, functors that
    are stateful, or aggregates of users: one worker runs it."""
    return any(_counting(program))


def refuse_printing(program: Program) -> None:
    """Raises DlogError for a program that prints, where nobody would see it."""
    found = [rule.span for s in program.strata for rule in s.rules if prints(rule)]
    notes = ("it would be in the logs of a task: without engine=\"spark\" it is on standard error",)
    message = "not supported on Spark: `print`"
    if found:
        raise DlogError([Diagnostic("not-on-spark", message, (Label(span),), notes, program.source) for span in found])


def refuse_counting(program: Program) -> None:
    """Raises DlogError for a program that one worker alone can run for what it counts or keeps."""
    if found := list(_counting(program)):
        raise DlogError(found)


def _counting(program: Program) -> Iterator[Diagnostic]:
    for rule in (r for s in program.strata for r in s.rules):
        if any(isinstance(x, Atom) and x.relation == ITERATION_COUNTER for x in rule.body):
            yield _refused("recursive_iteration_cnt", rule.span, "iterations are counted in one place", program)
    for stratum in (s for s in program.strata if not program.alternating.isdisjoint(s.relations)):
        inner = (d for rule in stratum.rules for d in dependencies(rule) if d.on in stratum.relations)
        what = "recursion through a negation or an aggregate"
        span = next(d.span for d in inner if d.how != "positive")
        yield _refused(what, span, "whether its passes have come to an end is decided in one place", program)
    for name, kept in program.retentions.items():
        if name in program.iterated:
            ways = {"subsumption": kept.dominated, "a lattice": kept.join, "a choice domain": kept.keys, "debug_delta": True}
            what = next(way for way, found in ways.items() if found)
            span = kept.dominated[0].span if kept.dominated else program.relations[name].span
            yield _refused(what, span, f"which rows `{name}` keeps is decided in one place", program)
    stateful = {f.span: f for s in program.strata for rule in s.rules for f in stateful_functors(rule)}
    for span, functor in stateful.items():
        name = f"`{functor.op}()`" if functor.op == AUTOINC else f"the stateful functor `{functor.op}`"
        if printed_types(functor.op) is not None:
            name = "`print`"
        yield _refused(name, span, "what it gives is decided in one place", program)
    folded = {x.span: x.op for s in program.strata for rule in s.rules for x in user_aggregates(rule.body)}
    for span, op in folded.items():
        yield _refused(f"the aggregate `{op}`", span, "a user's functor takes the values of a group in order", program)
    for rule in (rule for s in program.strata for rule in nested_aggregates(s, program)):
        why = "it is computed in one place for the values that come"
        yield _refused("an aggregate whose variables only the recursion binds", rule.span, why, program)
    cycles = through_aggregates(program) - program.lattices.keys() - program.alternating
    spans = (span for name in sorted(cycles) for span in _recursive(program.rules.get(name, ()), cycles))
    for span in dict.fromkeys(spans):
        yield _refused("recursion through `count` and `sum`", span, "the sums of a group are in one place", program)


def _recursive(rules: Iterable[Rule], cycles: frozenset[str]) -> Iterator[Span]:
    """The recursive aggregates of rules."""
    return (x.span for rule in rules for x in rule.body if isinstance(x, Aggregate) and cycles & mentioned((x,)))


def _refused(what: str, span: Span, why: str, program: Program) -> Diagnostic:
    notes = (why, "one worker can run it: `--workers 1`, workers=1")
    return Diagnostic("not-on-spark", f"not supported on Spark: {what}", (Label(span),), notes, program.source)
