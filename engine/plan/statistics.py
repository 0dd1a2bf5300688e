"""The planner's statistics of the sizes of relations, and its assumptions where there are none.

`Statistics` is what an executor offers: actual figures of relations that are complete. `Estimator` closes the gaps: relations
of the stratum being planned and the planner's own temporaries get assumed figures. Its figures are positive and finite, and a
relation has at most `rows` distinct values of any columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from math import prod
from typing import Protocol, TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Relation

Key: TypeAlias = tuple[int, ...]
"""Columns, ascending: no two rows agree on all of them. Without any, there is one row at most."""

MIN_ROWS = 0.5
"""Rows that stand for an empty relation, so that costs stay comparable."""

UNKNOWN_ROWS = 1000.0
"""Rows of a relation about which nothing is known."""

UNKNOWN_GROWTH = 4.0
"""A recursive relation is taken to be this many times the largest relation its stratum reads."""

UNKNOWN_FANOUT = 8.0
"""Assumed matches per unbound column of a lookup in a relation whose values have not been counted."""


SecondMoment: TypeAlias = Callable[[str, tuple[int, ...]], float | None]
"""Of a relation and columns: the sum over their distinct values of the square of the number of rows, the self-join's size."""


class Statistics(Protocol):
    """Figures of complete relations; `None` where there are none yet. May have a `second_moment` (`SecondMoment`), `keys`
    (`Keys`), and say of relations whether they are `indexed` for many runs of the plan besides."""

    def rows(self, relation: str) -> int | None:
        """Number of rows."""

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        """Number of distinct values of these columns together; an approximation will do."""


class Keys:
    """The keys of complete relations, as plans tell them (`dlog.engine.plan.keys`)."""

    def __init__(self) -> None:
        self._of: dict[str, set[Key]] = {}

    def of(self, relation: str) -> Iterable[Key]:
        return self._of.get(relation, ())

    def learn(self, keys: Iterable[tuple[str, Key]]) -> None:
        for relation, key in keys:
            self._of.setdefault(relation, set()).add(key)

    def forget(self) -> None:
        """Drops the bounds: they may hold only for the rows that were there when they were learned."""
        self._of.clear()


@dataclass(frozen=True, slots=True)
class Declared:
    """Statistics without data: `sizes` where a user gave them, plausible figures elsewhere."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    otherwise: int = 10_000
    keys: Keys = field(default_factory=Keys)

    def rows(self, relation: str) -> int | None:
        return self.sizes.get(relation, self.otherwise)

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        return None


class Estimator:
    """Statistics without gaps, remembering what was asked; `declare` tells it of the planner's own relations."""

    def __init__(self, statistics: Statistics, relations: Mapping[str, Relation], unknown: Iterable[str] = ()) -> None:
        self._statistics = statistics
        self._second_moment: SecondMoment | None = getattr(statistics, "second_moment", None)
        self._keys: Keys | None = getattr(statistics, "keys", None)
        self._indexed: Callable[[str], bool] | None = getattr(statistics, "indexed", None)
        self._relations = relations
        self._declared: dict[str, int] = {}
        """The arities of the planner's own relations."""
        self._unknown = frozenset(unknown)
        self._rows: dict[str, float] = {}
        self._distinct: dict[tuple[str, tuple[int, ...]], float | None] = {}
        self._skew: dict[tuple[str, tuple[int, ...]], float] = {}
        self._domains: Mapping[str, Sequence[float | None]] = {}
        self._assumed = UNKNOWN_ROWS

    def assume(self, read: Iterable[str]) -> None:
        """Takes unknown relations to be larger than the largest of the relations in `read`."""
        known = [self.rows(r) for r in read if r not in self._unknown]
        self._assumed = max([UNKNOWN_ROWS, *(UNKNOWN_GROWTH * n for n in known)])

    def set_domains(self, domains: Mapping[str, Sequence[float | None]]) -> None:
        """Tells how many values the columns of unknown relations can have."""
        self._domains = domains
        for relation, columns in domains.items():
            if columns and None not in columns:
                self._rows[relation] = max(min(self._assumed, prod(c or 1.0 for c in columns)), MIN_ROWS)

    def keys(self, relation: str) -> Sequence[Key]:
        """The keys of a complete relation; one without columns where there is one row at most."""
        if self._keys is None or relation in self._unknown or relation.startswith("@"):
            return ()
        rows = self._statistics.rows(relation)
        return ((),) if rows is not None and rows <= 1 else tuple(self._keys.of(relation))

    def _has_key(self, relation: str, columns: tuple[int, ...]) -> bool:
        return any(set(key) <= set(columns) for key in self.keys(relation))

    def indexed(self, relation: str) -> bool:
        """Whether indexes of the relation are made once for many runs of the plan."""
        return self._indexed is not None and self._indexed(relation)

    def declare(self, relation: str, arity: int, rows: float) -> None:
        self._declared[relation] = arity
        self._rows[relation] = max(rows, MIN_ROWS)

    def arity(self, relation: str) -> int:
        declared = self._declared.get(relation)
        return self._relations[relation].arity if declared is None else declared

    def rows(self, relation: str) -> float:
        if (found := self._rows.get(relation)) is not None:
            return found
        asked = None if relation in self._unknown else self._statistics.rows(relation)
        self._rows[relation] = result = self._assumed if asked is None else max(float(asked), MIN_ROWS)
        return result

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float:
        """Distinct values of `columns` (ascending) together."""
        if not columns:
            return 1.0
        rows = self.rows(relation)
        if len(columns) == self.arity(relation):
            return rows
        counted = self.counted(relation, columns)
        return counted or max(1.0, rows / UNKNOWN_FANOUT ** (self.arity(relation) - len(columns)))

    def counted(self, relation: str, columns: tuple[int, ...]) -> float | None:
        """The same, if there is evidence for it."""
        if (relation, columns) in self._distinct:
            return self._distinct[relation, columns]
        if relation.startswith("@"):
            asked = None
        elif self._has_key(relation, columns):
            asked = self.rows(relation)
        elif relation in self._unknown:
            bounds = self._domains.get(relation)
            known = [b for c in columns if bounds is not None and (b := bounds[c]) is not None]
            asked = prod(known) if len(known) == len(columns) else None
        else:
            asked = self._statistics.distinct(relation, columns)
        result = None if asked is None else min(max(asked, 1.0), max(self.rows(relation), 1.0))
        self._distinct[relation, columns] = result
        return result

    def skew(self, relation: str, columns: tuple[int, ...]) -> float:
        """How many times more rows a value picked by its weight has than a value picked evenly; 1 for no skew."""
        if self._second_moment is None or relation in self._unknown or relation.startswith("@"):
            return 1.0
        if not columns or len(columns) == self.arity(relation) or self._has_key(relation, columns):
            return 1.0
        if (found := self._skew.get((relation, columns))) is not None:
            return found
        moment, rows = self._second_moment(relation, columns), self.rows(relation)
        even = rows / self.distinct(relation, columns)
        self._skew[relation, columns] = result = 1.0 if moment is None else max(1.0, moment / rows / even)
        return result
