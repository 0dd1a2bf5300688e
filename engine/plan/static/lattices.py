"""monotone: the rule of a relation that is recursive through its own `min` or `max` becomes plain rules.

    d(x, v) :- node(x), v = min c : { source(x), c = 0 ; d(y, b), edge(y, x, w), c = b + w }.

becomes `d(x, 0) :- node(x), source(x).` and `d(x, b + w) :- node(x), d(y, b), edge(y, x, w).`: the relation keeps the least
value of a key.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.engine.compile.strata.thresholds import mentioned
from dlog.engine.ir.rules import Aggregate, Head, Lattice, Program, Rule, Variable
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label


def monotone(program: Program, rule: Rule) -> tuple[Rule, ...]:
    """The rules that a rule of a lattice stands for, one per alternative of its aggregate; other rules stand for themselves."""
    lattice = None if rule.weight is not None else program.lattices.get(rule.head.relation)
    aggregate = lattice and _own_aggregate(rule, lattice)
    if not lattice or not aggregate:
        return (rule,)
    others = tuple(x for x in rule.body if x is not aggregate)
    args, target = rule.head.args, aggregate.target
    if target is None or _mentions(aggregate.result, (*others, *(a for i, a in enumerate(args) if i != lattice.column))):
        message = f"not supported yet: the value of recursive `{aggregate.op}` used in its own rule besides the head"
        raise DlogError(Diagnostic("unsupported", message, (Label(aggregate.span),), source=program.source))
    head = Head(rule.head.relation, (*args[: lattice.column], target, *args[lattice.column + 1 :]), rule.head.span)
    return tuple(replace(rule, head=head, body=(*others, *alternative)) for alternative in aggregate.alternatives)


def _own_aggregate(rule: Rule, lattice: Lattice) -> Aggregate | None:
    """The aggregate through which the relation is recursive; those of rules of a subsumption are as all others."""
    value = rule.head.args[lattice.column]
    own = [x for x in rule.body if isinstance(x, Aggregate) and x.result == value and lattice.relation in mentioned((x,))]
    return own[0] if own else None


def _mentions(variable: Variable, parts: object) -> bool:
    """Whether the variable occurs anywhere within terms and literals."""
    if isinstance(parts, tuple):
        return any(_mentions(variable, p) for p in parts)
    if parts == variable:
        return True
    names = getattr(parts, "__slots__", ())
    return any(_mentions(variable, getattr(parts, n)) for n in names)
