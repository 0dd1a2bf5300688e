"""Antichains: sets of mutually incomparable times that stand for all times at or after any of them.

As a *lower* bound a frontier says which times may still come (or may be read); as an *upper* bound, which times are not there
yet. The empty frontier means: none. An `Antichain` is immutable and holds its elements minimal and in lexicographic order, so
that equal frontiers compare equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from dlog.dataclass import immutable
from dlog.engine.times.lattice import Time, join, less_equal, minimum


@immutable
class Antichain:
    """Make it with `Antichain.of`, which keeps only minimal elements."""

    elements: tuple[Time, ...]

    @staticmethod
    def of(times: Iterable[Time]) -> Antichain:
        """The minimal elements of `times`.

        >>> Antichain.of([(2, 2), (0, 3), (1, 1), (0, 3)]).elements
        ((0, 3), (1, 1))
        """
        listed = tuple(times)
        if len(listed) == 1:
            return Antichain(listed)
        kept: list[Time] = []
        for time in sorted(listed):  # a time before another one comes before it in lexicographic order too
            if not any(less_equal(k, time) for k in kept):
                kept.append(time)
        return Antichain(tuple(kept))

    @staticmethod
    def at(*time: int) -> Antichain:
        """The frontier of one time.

        >>> Antichain.at(3, 0)
        Antichain(elements=((3, 0),))
        """
        return Antichain((time,))

    @staticmethod
    @cache
    def start(depth: int) -> Antichain:
        """The frontier of all times."""
        return Antichain((minimum(depth),))

    def dominates(self, time: Time) -> bool:
        """Whether `time` is at or after some element: whether it is *in advance of* this frontier."""
        return any(less_equal(e, time) for e in self.elements)

    def precedes(self, other: Antichain) -> bool:
        """Whether every element of `other` is in advance of this frontier; the empty one comes after all others."""
        if len(self.elements) == len(other.elements) == 1:
            return less_equal(self.elements[0], other.elements[0])
        return all(self.dominates(e) for e in other.elements)

    def join(self, other: Antichain) -> Antichain:
        """The earliest frontier that both precede: the times in advance of both."""
        if self.elements == other.elements:
            return self
        if len(self.elements) == len(other.elements) == 1:
            return Antichain((join(self.elements[0], other.elements[0]),))
        return Antichain.of(join(a, b) for a in self.elements for b in other.elements)

    def __iter__(self) -> Iterator[Time]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def __str__(self) -> str:
        return "{" + ", ".join(f"({', '.join(map(str, e))})" for e in self.elements) + "}"
