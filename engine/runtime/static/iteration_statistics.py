"""What a planner is told of relations that change from iteration to iteration, for plans that serve all of them."""

from __future__ import annotations

from typing import Final

from dlog.dataclass import dataclass
from dlog.engine.plan.static.iterations import MARK
from dlog.engine.runtime.storage.catalog import Catalog

DELTA_SHARE: Final = 10
"""How many times fewer rows than it has a delta is planned with: it may hold all rows when the plan is made, and later few."""


LEAST_STANDING: Final = 1000
"""Rows that stand, at least, as far as plans of loops are concerned: there are few when these are made, and later many, and a
plan that goes through all of them in each iteration takes the square of their number."""


@dataclass(frozen=True)
class IterationStatistics:
    """Statistics for plans that serve all iterations: nothing is taken for granted of relations that change."""

    catalog: Catalog
    moving: frozenset[str]
    looping: bool
    """Whether plans serve many iterations: indexes are made once, and those of what changes grow with it."""

    @property
    def keys(self) -> object:
        return self.catalog.keys

    def indexed(self, relation: str) -> bool:
        return self.looping

    def rows(self, relation: str) -> int | None:
        if relation not in self.moving:
            return self.catalog.rows(relation)
        rows = self.catalog.relations[relation].rows
        return max(rows, LEAST_STANDING if self.looping else 2) if MARK not in relation else max(rows // DELTA_SHARE, 2)

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        return None if relation in self.moving else self.catalog.distinct(relation, columns)

    def second_moment(self, relation: str, columns: tuple[int, ...]) -> float | None:
        return None if relation in self.moving else self.catalog.second_moment(relation, columns)
