"""Estimated costs of moving rows, by which plans for several workers are chosen.

The unit is a row that is written down, read and looked at once more than if it had stayed in its path.
"""

from __future__ import annotations

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import HalfJoin
from dlog.engine.plan.exchange.places import EVERYWHERE, SELF, Place
from dlog.engine.plan.statistics import UNKNOWN_ROWS, Statistics

SEND_COST = 1.5
"""The cost of a row for each other worker that it goes to, in rows written down and read once more."""
MIN_SHARE = 1e-6
"""The least share of rows that are assumed to lead anywhere."""
SIFTED_SHARE = 0.7
"""Share of rows that lead anywhere below which a semijoin pays that removes the others before they are sent."""
ASSUMED_WORKERS = 2
"""The number of workers where nobody said."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Figures of complete relations, over all `workers`."""

    statistics: Statistics
    workers: int = ASSUMED_WORKERS

    def rows(self, name: str) -> int:
        return self.statistics.rows(name) or 2**62

    def about(self, name: str) -> float:
        """The rows of a relation as far as they are known."""
        known = None if name.startswith("@") else self.statistics.rows(name)
        return UNKNOWN_ROWS if known is None else float(known)

    def distinct(self, name: str, columns: tuple[int, ...]) -> float | None:
        """Different values of columns, in ascending order, if they were counted."""
        return None if name.startswith("@") else self.statistics.distinct(name, columns)

    def share(self, join: HalfJoin) -> float:
        """How many of the rows that come to a join with a complete relation find anything there."""
        name, key = join.arrangement.relation, tuple(sorted(set(join.arrangement.key)))
        rows = self.about(name)
        group = rows / (self.distinct(name, key) or rows or 1.0)
        return min(1.0, max(join.rows / max(group, 1.0), MIN_SHARE))

    def price(self, place: Place) -> float:
        """The cost of a row that goes to a place."""
        others = self.workers - 1
        match place:
            case _ if place == SELF:
                return 1.0
            case _ if place == EVERYWHERE:
                return self.workers + SEND_COST * others
            case _:
                return 1.0 + SEND_COST * others / self.workers
