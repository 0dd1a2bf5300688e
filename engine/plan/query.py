"""A body as the planner sees it: readings of relations, and conditions over the variables that the readings bind.

Sets of variables are bit masks: bit i stands for variable i of the rule. `canonical` puts the parts of a query into an order
that does not depend on the order of the text, so that neither do plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias, assert_never, cast

from dlog.dataclass import immutable
from dlog.engine.ir.functors import may_stop
from dlog.engine.ir.nodes import AntiJoin, LookUp, View
from dlog.engine.ir.rules import (
    Aggregate,
    Arg,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Kind,
    Literal,
    Negation,
    Record,
    Rule,
    Term,
    Unpack,
    Variable,
)
from dlog.engine.ir.short_functors import NARROWING

Condition: TypeAlias = Compare | Unpack | Generator | AntiJoin | LookUp


@immutable
class Reading:
    """A positive atom, read at `view`; `place` is where it stands in its body."""

    relation: str
    args: tuple[Arg, ...]
    view: View = "all"
    place: int = 0


@immutable
class Query:
    """The values of `output` for all matches of `readings` that satisfy `conditions`. With `bag` each match counts, else only
    distinct values do. `kinds` are those of the variables."""

    readings: tuple[Reading, ...]
    conditions: tuple[Condition, ...]
    output: tuple[Term, ...]
    bag: bool
    kinds: tuple[Kind, ...]


def mask(term: Term | None) -> int:
    """The variables of a term."""
    if isinstance(term, Variable):
        return 1 << term.id
    if isinstance(term, Functor | Record):
        return mask_all(term.args)
    return 0


def mask_all(terms: Iterable[Term | None]) -> int:
    result = 0
    for term in terms:
        result |= mask(term)
    return result


def ids(variables: int) -> Iterator[int]:
    """The numbers of the variables in a mask, ascending."""
    while variables:
        low = variables & -variables
        yield low.bit_length() - 1
        variables ^= low


def condition_mask(condition: Condition) -> int:
    """The variables a condition reads or binds."""
    match condition:
        case Compare(left=left, right=right):
            return mask(left) | mask(right)
        case Unpack(value=value, fields=fields):
            return mask(value) | mask_all(fields)
        case Generator(args=given, results=results):
            return mask_all(given) | mask_all(results)
        case AntiJoin(args=args):
            return mask_all(args)
        case LookUp(key=key, variable=variable):
            return mask_all(key) | 1 << variable
        case _:
            assert_never(condition)


def newly_bound(condition: Condition, bound: int) -> int | None:
    """The variables that a condition binds in addition; `None` if it cannot be evaluated yet."""
    match condition:
        case Compare(op=op, left=left, right=right):
            unbound = (mask(left) | mask(right)) & ~bound
            return unbound if not unbound or (op == "=" and solve(left, right, unbound)) else None
        case Unpack(value=value, fields=fields):
            if bound >> value.id & 1:
                return mask_all(fields) & ~bound
            return None if None in fields or mask_all(fields) & ~bound else 1 << value.id
        case Generator(args=given, results=results):
            return None if mask_all(given) & ~bound else mask_all(results) & ~bound
        case AntiJoin(args=args):
            return None if mask_all(args) & ~bound else 0
        case LookUp(key=key, variable=variable):
            return None if mask_all(key) & ~bound else 1 << variable & ~bound
        case _:
            assert_never(condition)


def solve(left: Term, right: Term, unbound: int) -> tuple[Variable, Term] | None:
    """Solves `left = right` for its one unbound variable: the variable and the term that gives its value.

    Integers wrap around, so that sums and differences can be solved for either operand; those of 32 bits at these."""
    short: Functor | None = None
    if mask(right) & unbound:
        left, right = right, left
    if mask(right) & unbound or may_stop(left) or (may_stop(right) and not isinstance(left, Variable)):
        return None
    while isinstance(left, Functor):
        if left.op in NARROWING and left.kind is not Kind.FLOAT:
            short = left
            left = left.args[0]
            continue
        if (undone := _undo(left, right, unbound)) is None:
            return None
        left, right = undone
    if short is not None:
        right = Functor(short.op, (right,), short.kind, short.result, short.span)
    return (left, right) if isinstance(left, Variable) and mask(left) == unbound else None


def _undo(term: Functor, value: Term, unbound: int) -> tuple[Term, Term] | None:
    """The operand with unbound variables of a sum or difference, and the term that it is equal to."""
    if term.kind not in (Kind.NUMBER, Kind.UNSIGNED) or len(term.args) != 2:
        return None
    first, second = term.args
    kind = term.kind
    match term.op, bool(mask(first) & unbound), bool(mask(second) & unbound):
        case "+", True, False:
            return first, Functor("-", (value, second), kind, kind, term.span)
        case "+", False, True:
            return second, Functor("-", (value, first), kind, kind, term.span)
        case "-", True, False:
            return first, Functor("+", (value, second), kind, kind, term.span)
        case "-", False, True:
            return second, Functor("-", (first, value), kind, kind, term.span)
        case _:
            return None


def closure(bound: int, conditions: Sequence[Condition]) -> int:
    """The variables that the conditions bind, given `bound`. One is looked at again when a variable of its own is bound."""
    readers: dict[int, list[Condition]] = {}
    for condition in conditions:
        for variable in ids(condition_mask(condition) & ~bound):
            readers.setdefault(variable, []).append(condition)
    waiting = list(conditions)
    while waiting:
        before = bound
        for condition in waiting:
            bound |= newly_bound(condition, bound) or 0
        waiting = [condition for variable in ids(bound & ~before) for condition in readers.get(variable, ())]
    return bound


def bindable(query: Query) -> int:
    """The variables that the query binds, its readings in any order."""
    return closure(mask_all(a for r in query.readings for a in r.args), query.conditions)


def is_partial(condition: Condition) -> bool:
    """Whether evaluating the condition can stop the run."""
    match condition:
        case Compare(left=left, right=right):
            return may_stop(left) or may_stop(right)
        case Generator(args=args):
            return any(map(may_stop, args))
        case _:
            return False


def can_stop(rule: Rule) -> bool:
    """Whether evaluating the rule can stop the run."""
    return any(map(may_stop, rule.head.args)) or _has_partial(rule.body)


def _has_partial(body: Iterable[Literal]) -> bool:
    for literal in body:
        match literal:
            case Compare() | Generator():
                if is_partial(literal):
                    return True
            case Aggregate(target=target, alternatives=alternatives):
                if may_stop(target) or any(map(_has_partial, alternatives)):
                    return True
            case Atom() | Negation() | Unpack():
                pass
            case _:
                assert_never(literal)
    return False


def targets(condition: Condition) -> int:
    """The variables that an assignment or a generator may bind."""
    if isinstance(condition, Generator):
        return mask_all(condition.results)
    if not isinstance(condition, Compare) or condition.op != "=":
        return 0
    return mask_all(t for t in (condition.left, condition.right) if isinstance(t, Variable))


def plain(args: Iterable[Term | None]) -> tuple[Arg, ...]:
    """Arguments that are known to be variables, constants or anonymous."""
    found = tuple(args)
    assert all(a is None or isinstance(a, Variable | Constant) for a in found)
    return cast("tuple[Arg, ...]", found)


# ------------------------------------------------------------------------------------------------------ canonical order


MAX_REFINEMENTS = 24
"""Times that colours are refined: what only parts tell apart that are further away stays in the order of the text."""


def canonical(query: Query) -> Query:
    """The same query with readings and conditions in an order derived from names, columns and how variables connect them."""
    return in_order(query, *canonical_order(query))


def canonical_order(query: Query) -> tuple[list[int], list[int]]:
    """The numbers of a query's readings and of its conditions in canonical order.

    Variables get colours from where they occur, refined until they tell apart what differs (colour refinement)."""
    readings, conditions = list(range(len(query.readings))), list(range(len(query.conditions)))
    if len(readings) + len(conditions) >= 2:
        colours = _colours(query)
        readings.sort(key=lambda i: _shape(query.readings[i], colours))
        conditions.sort(key=lambda i: _shape(query.conditions[i], colours))
    return readings, conditions


def in_order(query: Query, readings: Sequence[int], conditions: Sequence[int]) -> Query:
    """The query with its readings and conditions, by their numbers, in another order."""
    ordered = tuple([query.readings[i] for i in readings]), tuple([query.conditions[i] for i in conditions])
    return Query(*ordered, query.output, query.bag, query.kinds)


def _colours(query: Query) -> list[int]:
    colours = [0] * len(query.kinds)
    for place, term in enumerate(query.output, 1):
        for i in ids(mask(term)):
            colours[i] = colours[i] or place
    number = len(set(colours))
    if number == len(colours):
        return colours
    parts: tuple[Reading | Condition, ...] = (*query.readings, *query.conditions)
    masks = [mask_all(p.args) if isinstance(p, Reading) else condition_mask(p) for p in parts]
    for _ in range(min(len(parts), MAX_REFINEMENTS)):
        shapes: list[list[Any]] = [[] for _ in colours]
        for part, variables in zip(parts, masks, strict=True):
            shape = _shape(part, colours)
            for i in ids(variables):
                shapes[i].append((shape, _places(part, i)))
        keys = [(colours[i], tuple(sorted(s))) for i, s in enumerate(shapes)]
        ranks = {key: n for n, key in enumerate(sorted(set(keys)))}
        colours = [ranks[key] for key in keys]
        before, number = number, len(set(colours))
        if number in (before, len(colours)):
            return colours
    return colours


def _shape(part: Reading | Condition, colours: list[int]) -> tuple[Any, ...]:
    """A value that orders parts; equal for parts that differ in variables of the same colour only."""
    match part:
        case Reading(relation=relation, args=args):
            return ("0", relation, *(_term(a, colours) for a in args))
        case Compare(op=op, left=left, right=right):
            return ("1", op, _term(left, colours), _term(right, colours))
        case Unpack(value=value, type=type, fields=fields):
            return ("2", type, *(_term(a, colours) for a in (value, *fields)))
        case Generator(function=function, args=given, results=results):
            return ("5", function, *(_term(a, colours) for a in (*given, *results)))
        case LookUp(relation=relation, key=key, variable=variable):
            return ("3", relation, *(_term(a, colours) for a in key), f"v{colours[variable]:06}")
        case AntiJoin(relation=relation, args=args):
            return ("4", relation, *(_term(a, colours) for a in args))
        case _:
            assert_never(part)


def _term(term: Term | None, colours: list[int]) -> str:
    match term:
        case None:
            return "_"
        case Variable(id=i):
            return f"v{colours[i]:06}"
        case Constant(value=value, kind=kind):
            return f"c{kind.value} {value!r}"
        case Functor(op=op, args=args) | Record(type=op, args=args):
            return f"f{op}({','.join(_term(a, colours) for a in args)})"


def _places(part: Reading | Condition, variable: int) -> tuple[int, ...]:
    match part:
        case Reading(args=args):
            terms: tuple[Term | None, ...] = args
        case Compare(left=left, right=right):
            terms = (left, right)
        case Unpack(value=value, fields=fields):
            terms = (value, *fields)
        case Generator(args=given, results=results):
            terms = (*given, *results)
        case LookUp(key=key, variable=v):
            terms = (*key, Variable(v))
        case AntiJoin(args=args):
            terms = args
        case _:
            assert_never(part)
    return tuple(i for i, t in enumerate(terms) if mask(t) >> variable & 1)
