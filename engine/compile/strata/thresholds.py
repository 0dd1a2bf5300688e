"""Recursion through `count` and `sum`: when it has one well-defined answer.

    controls(x, z) :- company(x), company(z), sum s : {controls(x, y), owns(y, z, s)} > 50.
    removed(v) :- vertex(v), count : {edge(v, u), !removed(u)} < 3.

An aggregate may read relations of its own cycle if its value is only compared with bounds, in the direction in which more rows
of those make the comparison truer: what they add to lies above a bound, what they take from lies below one. Weights that are
summed must not be negative. The answer is the least fixed point then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet

from dlog.dataclass import dataclass
from dlog.engine.compile.normal.comparisons import COMPARISONS
from dlog.engine.compile.strata.lattice import NotWellDefined
from dlog.engine.ir.rules import Aggregate, Atom, Compare, Constant, Generator, Kind, Literal, Negation, Rule, Unpack
from dlog.engine.ir.traversal import literal_variables, term_variables


@dataclass(frozen=True, slots=True)
class Threshold:
    """An aggregate over relations of its own cycle and the comparisons of its result, which stands on their left side. `falls`
    says that negations make the value fall, to below the bounds."""

    aggregate: Aggregate
    compares: tuple[Compare, ...]
    falls: bool


def thresholds(rule: Rule, own: AbstractSet[str]) -> tuple[Threshold, ...]:
    """The recursive aggregates of a rule; `own` are the relations of its cycle. Raises NotWellDefined with the reason."""
    recursive = [x for x in rule.body if isinstance(x, Aggregate) and own & mentioned((x,))]
    return tuple(_threshold(rule, aggregate, own, {a.result.id for a in recursive}) for aggregate in recursive)


def mentioned(body: Iterable[Literal]) -> set[str]:
    """The relations that a body mentions, its aggregates' bodies included."""
    return set(_mentioned(body))


def _mentioned(body: Iterable[Literal]) -> Iterator[str]:
    for literal in body:
        match literal:
            case Atom(relation=name) | Negation(atom=Atom(relation=name)):
                yield name
            case Aggregate(alternatives=bodies):
                for inner in bodies:
                    yield from _mentioned(inner)
            case Compare() | Unpack() | Generator():
                pass


def _threshold(rule: Rule, aggregate: Aggregate, own: AbstractSet[str], results: Collection[int]) -> Threshold:
    op, falls = aggregate.op, _falls(aggregate, own)
    if op not in ("count", "sum"):
        raise NotWellDefined("only `count` and `sum` can be compared, and `min` and `max` be the value of a relation")
    if aggregate.kind is Kind.FLOAT:
        raise NotWellDefined("a `sum` of floats depends on their order: sum values of type number or unsigned")
    if isinstance(aggregate.target, Constant) and int(aggregate.target.value or 0) < 0:
        raise NotWellDefined("the values of a `sum` must not be negative")
    if falls and len(aggregate.alternatives) > 1:
        raise NotWellDefined(f"a `{op}` with a negation of its cycle must have no alternatives")
    return Threshold(aggregate, tuple(_compares(rule, aggregate, falls, results)), falls)


def _falls(aggregate: Aggregate, own: AbstractSet[str]) -> bool:
    """Whether more rows of the cycle make the value less."""
    literals = [x for body in aggregate.alternatives for x in body if own & mentioned((x,))]
    if any(isinstance(x, Aggregate) for x in literals):
        raise NotWellDefined("an aggregate within the aggregate must not read the cycle")
    negated = [x for x in literals if isinstance(x, Negation)]
    if negated and len(negated) < len(literals):
        raise NotWellDefined(f"more rows of the cycle make the `{aggregate.op}` both greater and less")
    return bool(negated)


def _compares(rule: Rule, aggregate: Aggregate, falls: bool, results: Collection[int]) -> Iterator[Compare]:
    """The comparisons of the aggregate's result, which must be all that uses it."""
    result, op = aggregate.result, aggregate.op
    allowed = ("<", "<=") if falls else (">", ">=")
    needed = f"more rows of the cycle make the `{op}` {'less' if falls else 'greater'}: compare it with a bound by"
    needed += f" `{allowed[0]}` or `{allowed[1]}`"
    if any(result.id in term_variables(term) for term in rule.head.args):
        raise NotWellDefined(f"{needed}, and do not use its value in the head")
    users = [x for x in rule.body if x is not aggregate and result.id in literal_variables(x)]
    for user in users:
        compare = _on_the_left(user, result.id)
        if compare is None or compare.op not in allowed:
            raise NotWellDefined(needed if isinstance(user, Compare) else f"{needed}, and do not use its value elsewhere")
        if any(v in results for v in term_variables(compare.right)):
            raise NotWellDefined("the bound must not depend on another aggregate over the cycle")
        yield compare
    if not users:
        raise NotWellDefined(needed)


def _on_the_left(literal: Literal, result: int) -> Compare | None:
    """An inequality with the result alone on its left side."""
    if not isinstance(literal, Compare) or literal.op not in ("<", "<=", ">", ">="):
        return None
    left, op, right = literal.left, literal.op, literal.right
    if list(term_variables(left)) != [result]:
        left, op, right = right, COMPARISONS[op].mirrored, left
    alone = getattr(left, "id", None) == result and result not in term_variables(right)
    return Compare(op, left, right, literal.kind, literal.span) if alone else None
