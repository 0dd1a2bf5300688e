"""Which variables steps of a path read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Functor, Record, Term, Variable
from dlog.engine.plan.joins.emit import sink_terms


def live_after(path: nodes.Path) -> list[frozenset[int]]:
    """Per step, the variables that later steps or the sinks read."""
    needed: set[int] = set()
    for sink in path.sinks:
        _add_variables(sink_terms(sink), needed)
    result = []
    for step in reversed(path.steps):
        result.append(frozenset(needed))
        _add_variables(_terms_of(step), needed)
    return result[::-1]


def reads(step: nodes.Step) -> set[int]:
    """The variables that a step reads."""
    found: set[int] = set()
    _add_variables(_terms_of(step), found)
    return found


def _terms_of(step: nodes.Step) -> Sequence[Term | None]:
    match step:
        case nodes.HalfJoin(key=key) | nodes.LookUp(key=key):
            return key
        case nodes.Extend(proposers=proposers):
            return [t for p in proposers for t in p.key]
        case nodes.SemiJoin(args=args) | nodes.AntiJoin(args=args):
            return args
        case nodes.Filter(compare=compare):
            return compare.left, compare.right
        case nodes.Generate(args=args):
            return args
        case nodes.Map(term=term):
            return (term,)
        case nodes.UnpackRecord(variable=variable):
            return (Variable(variable),)


def _add_variables(terms: Iterable[Term | None], found: set[int]) -> None:
    """Adds the ids of the variables in terms."""
    for term in terms:
        if isinstance(term, Variable):
            found.add(term.id)
        elif isinstance(term, Functor | Record):
            _add_variables(term.args, found)
