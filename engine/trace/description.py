"""The times that a batch covers.

A batch holds exactly the updates at times in advance of `lower` and not in advance of `upper`. Compaction may have advanced
the times it stores to `since`: what accumulates at a time is right only where that time is in advance of `since`.
"""

from __future__ import annotations

from dlog.dataclass import immutable
from dlog.engine.times.frontier import Antichain
from dlog.engine.times.lattice import Time, less_equal
from dlog.grammar.diagnostics import InternalError


@immutable
class Description:
    """The times of a batch: `lower` precedes `upper`."""

    lower: Antichain
    upper: Antichain
    since: Antichain

    def followed_by(self, later: Description, since: Antichain) -> Description:
        """The description of both batches' updates, compacted to `since`. They must touch."""
        if self.upper != later.lower:
            raise InternalError("trace", f"batches {self} and {later} are not contiguous")
        return Description(self.lower, later.upper, self.since.join(later.since).join(since))

    def may_reach(self, time: Time) -> bool:
        """Whether an update can be at or before `time`. If not, a reader at `time` skips the batch.

        >>> batch = Description(Antichain.at(3, 4), Antichain.at(5, 6), Antichain.at(0, 0))
        >>> batch.may_reach((9, 3)), batch.may_reach((4, 4))
        (False, True)
        """
        return any(less_equal(lower, time) for lower in self.lower)

    def may_lie_between(self, lower: Antichain, upper: Antichain) -> bool:
        """Whether an update can be in advance of `lower` and not in advance of `upper`."""
        return not self.upper.precedes(lower) and not upper.precedes(self.lower)

    def __str__(self) -> str:
        return f"[{self.lower}, {self.upper}) since {self.since}"


def strictly_before(frontier: Antichain, time: Time) -> bool:
    """Whether compaction to `frontier` never moves an earlier update to a time in advance of `time`: changes from there on are
    then told apart from what was before.

    >>> strictly_before(Antichain.at(4, 0), (5, 0)), strictly_before(Antichain.at(5, 0), (5, 0))
    (True, False)
    """
    return any(all(t == 0 or f < t for f, t in zip(element, time, strict=True)) for element in frontier)
