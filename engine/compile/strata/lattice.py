"""Recursion through `min` and `max`: when it has one well-defined answer.

    dist(x, d) :- node(x), d = min c : { source(x), c = 0 ; dist(y, b), edge(y, x, w), c = b + w }.

A relation that is alone in its cycle holds, per key, the least (greatest) value, if the value of each row depends
monotonically on the values of others: a better input can only give a better output, never take one away. The checks below
ensure that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dlog.engine.compile.normal.comparisons import COMPARISONS
from dlog.engine.ir.aggregates import dominance_of
from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.functors import FUNCTORS, is_called
from dlog.engine.ir.kinds import NUMERIC
from dlog.engine.ir.rules import (
    Aggregate,
    Arg,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Lattice,
    Literal,
    Negation,
    Record,
    Retention,
    Rule,
    Term,
    Unpack,
    Variable,
)
from dlog.engine.ir.traversal import literal_variables, term_variables

_ALLOWED: Final = "allowed are v, v + e, e + v, v - e, min and max"


class NotWellDefined(Exception):
    """Raised where a recursion through an aggregate is refused; says why."""


def lattice_of(relation: str, rules: list[Rule]) -> Lattice:
    """The lattice that a relation's rules make of it; raises NotWellDefined with the reason."""
    if len(rules) != 1:
        raise NotWellDefined(f"`{relation}` must have exactly one rule: put the other cases into the aggregate's body")
    (rule,) = rules
    aggregate = _aggregate_of(relation, rule)
    column = _column(rule, aggregate)
    keys = {a.id for i, a in enumerate(rule.head.args) if i != column and isinstance(a, Variable)}
    if any(v.id not in keys for v in aggregate.outer):
        names = ", ".join(f"`{rule.variables[v.id]}`" for v in aggregate.outer if v.id not in keys)
        raise NotWellDefined(f"the aggregate takes {names} from outside, which is not among the other columns of the head")
    dominance = dominance_of(aggregate.op)
    if dominance is None:
        raise NotWellDefined(f"only the value of `min` or `max` can be a column, not that of `{aggregate.op}`")
    for body in aggregate.alternatives:
        _check_body(relation, column, aggregate.target, body, aggregate.outer, rule)
    return Lattice(relation, dominance, column)


def lattice_of_subsumption(relation: str, retention: Retention, rules: list[Rule]) -> Lattice:
    """The lattice that a relation is whose rows with the same key are dominated by a comparison of one column; raises
    NotWellDefined with the reason."""
    column, dominance = _compared(retention)
    for rule in rules:
        values = _check_body(relation, column, rule.head.args[column], rule.body, (), rule)
        if not values.isdisjoint(v for c, term in enumerate(rule.head.args) if c != column for v in term_variables(term)):
            raise NotWellDefined(f"a key of `{relation}` depends on a value, which may go")
    return Lattice(relation, dominance, column)


def _compared(retention: Retention) -> tuple[int, Dominance]:
    """The column that a subsumption compares, and which value of a key stays."""
    if len(retention.dominated) != 1 or retention.keys or retention.logs:
        raise NotWellDefined("more than one comparison says which rows are dominated")
    (rule,) = retention.dominated
    match rule.body:
        case (Atom(args=less), Atom(args=greater), *rest):
            columns = [c for c, (a, b) in enumerate(zip(less, greater, strict=True)) if a != b]
            if len(columns) != 1 or len({*less, *greater}) != len(less) + 1 or None in less or None in greater:
                raise NotWellDefined("the rows that are compared do not differ in one column alone")
            (column,) = columns
            dominance = _direction(less[column], greater[column], rest)
            if dominance is not None:
                return column, dominance
        case _:
            pass
    raise NotWellDefined("the values of a key are compared by more than one `<`, `<=`, `>` or `>=`")


def _direction(less: Arg, greater: Arg, conditions: Iterable[Literal]) -> Dominance | None:
    """Which value dominates, where that is said by one comparison (beside that which tells the rows apart)."""
    found = None
    for literal in conditions:
        if not isinstance(literal, Compare) or {literal.left, literal.right} != {less, greater} or literal.kind not in NUMERIC:
            return None
        if literal.op == "!=":
            continue
        op = literal.op if literal.left == greater else COMPARISONS[literal.op].mirrored
        if found is not None or op[0] not in "<>":
            return None
        found = Dominance(op[0])
    return found


def _aggregate_of(relation: str, rule: Rule) -> Aggregate:
    recursive = [x for x in rule.body if isinstance(x, Aggregate) and _mentions(relation, x)]
    if len(recursive) != 1:
        raise NotWellDefined("exactly one aggregate of the rule may mention the relation")
    others = [x for x in rule.body if x is not recursive[0]]
    if any(_mentions(relation, x) for x in others):
        raise NotWellDefined(f"outside the aggregate the rule must not mention `{relation}`")
    return recursive[0]


def _mentions(relation: str, literal: Literal) -> bool:
    match literal:
        case Atom(relation=name) | Negation(atom=Atom(relation=name)):
            return name == relation
        case Aggregate(alternatives=bodies):
            return any(_mentions(relation, x) for body in bodies for x in body)
        case Compare() | Unpack() | Generator():
            return False


def _column(rule: Rule, aggregate: Aggregate) -> int:
    ids = [a.id for a in rule.head.args if isinstance(a, Variable)]
    if len(ids) != len(rule.head.args) or len(set(ids)) != len(ids):
        raise NotWellDefined("the arguments of the head must be distinct variables")
    if aggregate.result.id not in ids:
        raise NotWellDefined("the aggregate's result must be a column of the head")
    for literal in rule.body:
        if literal is not aggregate and aggregate.result.id in literal_variables(literal):
            raise NotWellDefined("the rule must not test or use the aggregate's result elsewhere")
    return ids.index(aggregate.result.id)


# ------------------------------------------------------------------------------------------------------------ alternatives


def _check_body(
    relation: str, column: int, target: Term | None, body: tuple[Literal, ...], outer: tuple[Variable, ...], rule: Rule
) -> set[int]:
    """Checks that a row whose value is `target` grows with those of the relation that the body reads; returns the variables
    that do."""
    atoms = [x for x in body if isinstance(x, Atom) and x.relation == relation]
    if any(_mentions(relation, x) and not isinstance(x, Atom) for x in body):
        raise NotWellDefined(f"inside the aggregate `{relation}` must not be negated or aggregated again")
    values: set[int] = set()
    for atom in atoms:
        value = atom.args[column]
        if value is None:
            continue  # whether there is a row at all does not depend on its value
        if not isinstance(value, Variable):
            raise NotWellDefined(f"the value column of `{relation}` must be a variable inside the aggregate")
        name = rule.variables[value.id]
        if value in outer:
            raise NotWellDefined(f"`{name}` comes from outside: rows with that very value go as they improve")
        if value.id in values:
            raise NotWellDefined(f"`{name}` is the value of two rows: they would have to be equal")
        if any(isinstance(a, Variable) and a.id == value.id for i, a in enumerate(atom.args) if i != column):
            raise NotWellDefined(f"`{name}` is a value and a key")
        values.add(value.id)
    if values:
        _check_values(values, target, [x for x in body if x not in atoms], rule)
    return values


def _check_values(values: set[int], target: Term | None, others: list[Literal], rule: Rule) -> None:
    """Values flow only into the target: directly, or through `v = term` literals that define further such variables."""
    defining = _defining(values, others)
    for literal in (x for x in others if x not in defining):
        used = values & set(literal_variables(literal))
        if used:
            name = rule.variables[min(used)]
            if isinstance(literal, Compare) and literal.op == "=":
                raise NotWellDefined(f"`{name}` is used in an equation whose value does not grow with it ({_ALLOWED})")
            raise NotWellDefined(f"`{name}` is tested or used by another literal, which a better value may make false")
    if target is not None and not _monotone(target, values):
        raise NotWellDefined(f"the aggregate's target does not grow with the recursive value ({_ALLOWED})")


def _defining(values: set[int], others: list[Literal]) -> list[Compare]:
    """The equations `v = monotone term of values`, with their left sides added to `values`."""
    found: list[Compare] = []
    while True:
        more = [x for x in others if x not in found and isinstance(x, Compare) and _defines(x, values, others)]
        if not more:
            return found
        found += more
        values |= {x.left.id for x in more if isinstance(x.left, Variable)}


def _defines(literal: Compare, values: set[int], others: list[Literal]) -> bool:
    """`v = term` where v gets its values from nowhere else."""
    left = literal.left
    if literal.op != "=" or not isinstance(left, Variable) or not values & set(term_variables(literal.right)):
        return False
    producers = [x for x in others if x is not literal and left.id in set(literal_variables(x))]
    bound = any(not isinstance(x, Compare) or (x.op == "=" and x.left == left) for x in producers)
    return left.id not in values and not bound and _monotone(literal.right, values)


def _monotone(term: Term, values: set[int]) -> bool:
    """Whether a term grows with the values it mentions."""
    if not values & set(term_variables(term)):
        return True
    match term:
        case Variable():
            return True
        case Functor(op=op, args=args) if term.result in NUMERIC and not is_called(op) and FUNCTORS[op].monotone:
            growing = args if FUNCTORS[op].monotone == "all" else args[:1]
            others = args[len(growing) :]
            return all(_monotone(a, values) for a in growing) and not any(values & set(term_variables(a)) for a in others)
        case Constant() | Functor() | Record():
            return False
