"""Half-joins: changes meet what other relations had before them, in a total order of times.

Rows carry, in their last columns, the time at which what they have met is true. They meet what is before their own times in
the order of the work: by batch, then by moment, then by round; rows at the same time if `ties` says so. If each of several
relations proposes its changes to the others, those after it with ties and those before it without, every combination is found
once, by its last change: on partially ordered times, too. """

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.operators.arrange import Arranged
from dlog.engine.operators.delta import Delta, Moment, together
from dlog.engine.operators.operator import Operator, joined
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope
from dlog.engine.trace.overflow import products


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """A relation that proposals meet: `key` are the places, among theirs, of the columns to look up by."""

    arranged: Arranged
    key: tuple[int, ...]
    ties: bool

    def precede(self, operator: Operator) -> None:
        """Has the relation be up to date when an operator runs, and history be told from the batch."""
        self.arranged.source.trace.slack = 1
        self.arranged.precede(operator, 1)

    def counts(self, proposals: Delta) -> np.ndarray:
        """How many updates there are for each proposal."""
        found = self.arranged.now().seek([proposals.columns[place] for place in self.key], proposals.rows)
        return np.asarray((found.ranges[:, 1] - found.ranges[:, 0]).sum(axis=0))

    def meet(self, proposals: Delta, key: tuple[int, ...], low: int, moment: Moment) -> Delta:
        """The proposals with the columns behind the key of what was there before them, in a batch whose first round is
        `low`."""
        matches = self.arranged.now().lookup([proposals.columns[place] for place in key], proposals.rows)
        met, mine = matches.delta, proposals.only(matches.probes)
        in_batch = (met.rounds >= low) & (met.times[1:] == np.array(moment, np.int64)[:, None]).all(axis=0)
        before = met.rounds <= mine.rounds if self.ties else met.rounds < mine.rounds
        kept = ~in_batch | before
        met, mine = met.only(kept), mine.only(kept)
        depth = len(mine.times)
        carried = [np.maximum(t, m) for t, m in zip(mine.columns[-depth:], met.times, strict=True)]
        columns = (*mine.columns[:-depth], *met.columns[len(key) :], *carried)
        return Delta(columns, mine.times, products(mine.diffs, met.diffs, "a half-join"))


class HalfJoin(Operator):
    """Proposals meet one relation."""

    def __init__(self, scheduler: Scheduler, scope: Scope, relation: Relation) -> None:
        super().__init__(scheduler, scope)
        self.relation = relation
        relation.precede(self)

    @property
    def ports(self) -> int:
        return 2

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if delta is not None:
            self.emit(self.relation.meet(delta, self.relation.key, self.rounds.low, moment))


class Extend(Operator):
    """Proposals get one more column, whose values all of several relations have: each has it behind its key. For every
    proposal the relation with the fewest rows *proposes* the values, and the others *validate* them, so no more are looked at
    than the least of them has: joins in this manner are worst-case optimal."""

    def __init__(self, scheduler: Scheduler, scope: Scope, relations: Sequence[Relation]) -> None:
        super().__init__(scheduler, scope)
        self.relations = relations
        self.proposed = 0
        """Values that have been looked at."""
        for relation in relations:
            relation.precede(self)

    @property
    def ports(self) -> int:
        return 2

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if delta is None:
            return
        counts = np.stack([relation.counts(delta) for relation in self.relations])
        proposers = np.where(counts.min(axis=0) > 0, counts.argmin(axis=0), -1)
        parts = [self._extended(delta.only(proposers == k), k, moment) for k in range(len(self.relations))]
        self.emit(together(parts))

    def _extended(self, delta: Delta, proposer: int, moment: Moment) -> Delta:
        """The proposals for which one of the relations has the fewest rows, with the values that all have."""
        low, depth = self.rounds.low, len(delta.times)
        first = self.relations[proposer]
        found = first.meet(delta, first.key, low, moment)
        self.proposed += found.rows
        for k, relation in enumerate(self.relations):
            if k != proposer:
                found = relation.meet(found, (*relation.key, len(found.columns) - depth - 1), low, moment)
        return found


def propose(delta: Delta) -> Delta:
    """Has updates carry their times in columns, the last ones."""
    return delta.with_columns((*delta.columns, *delta.times))


def settle(delta: Delta) -> Delta:
    """Moves updates to the times that they carry."""
    depth = len(delta.times)
    return Delta(delta.columns[:-depth], np.stack(delta.columns[-depth:]), delta.diffs)
