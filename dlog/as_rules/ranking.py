"""The first rows of each group: those before which there are few enough, added up column by column of the order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlog.as_rules import terms as T
from dlog.as_rules.bodies import Body, Fresh, Stored
from dlog.as_rules.program import Program, Sum
from dlog.as_rules.terms import Term
from dlog.dataclass import dataclass
from dlog.grammar.syntax import Body as Literal
from dlog.grammar.syntax import Constraint, Variable


@dataclass(frozen=True, slots=True)
class Order:
    """A column by which rows are in order, and whether the greatest come first."""

    name: str
    descending: bool


class Ranking:
    """Fills relations with the first rows of groups."""

    def __init__(self, program: Program, fresh: Fresh) -> None:
        self._program, self._fresh = program, fresh

    def fill(self, stored: Stored, source: Stored, keys: Sequence[str], order: Sequence[Order], count: int) -> None:
        """Has a relation hold the first so many rows of another one, by key, each as often as there is room for it."""
        row = self._fresh.read(source)
        sums = [each for k in range(len(order)) for each in self._before(row, source, keys, order[:k], order[k])]
        before: Term = T.ZERO
        for each in sums:
            before = T.plus(before, each.result)
        most = T.number(count)
        literals = [row.reads[0].atom, *_there(row)]
        head = [row.columns[name] for name in stored.names]
        if source.weighted:
            head.append(T.call("min", row.weight[0], T.minus(most, before)))
        self._program.rule(stored, head, literals, sums, [Constraint("<", before, most)])

    def _before(
        self, row: Body, source: Stored, keys: Sequence[str], same: Sequence[Order], column: Order
    ) -> Iterator[Sum]:
        """How many rows of the group come before one by a column, of those that do not differ in the columns before that."""
        kind = source.kinds[source.names.index(column.name)]
        for number in range(2 if kind is float else 1):
            other = self._fresh.read(source)
            shared = [*keys, *(each.name for each in same)]
            values = {_name(other.columns[name]): row.columns[name] for name in shared}
            other = other.substituted(values)
            conditions = _less(other.columns[column.name], row.columns[column.name], column.descending, kind is float)[number]
            weight = other.weight[0] if source.weighted else None
            where = (*_there(other), *conditions)
            yield Sum(self._fresh.variable("before", int), weight, other.reads[0].atom, where)


def _there(body: Body) -> tuple[Literal, ...]:
    """Where a row is there at least once."""
    return () if body.positive else tuple(Constraint(">", weight, T.ZERO) for weight in body.weight)


def _less(one: Term, other: Term, descending: bool, is_float: bool) -> list[tuple[Constraint, ...]]:
    """Where one value comes before another, in cases. NaN is greater than all numbers."""
    compared = (Constraint(">" if descending else "<", one, other),)
    if not is_float:
        return [compared]
    number, greatest = (other, one) if descending else (one, other)
    return [compared, (Constraint("!=", greatest, greatest), Constraint("<=", number, number))]


def _name(term: Term) -> str:
    assert isinstance(term, Variable)
    return term.name

