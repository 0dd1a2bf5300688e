"""Scopes: what the times of a collection consist of.

The root's times are `(round,)`. A loop adds an iteration. An *alt/neu* scope (`times.altneu`) has two moments for each round of
the root, `Alt r` before `Neu r`: as rounds are totally ordered, they are the rounds `2r` and `2r + 1`.

Operators of a scope and of the alt/neu scopes in it run side by side, in the same *region*; a loop is a region within another.
"""

from __future__ import annotations

from dataclasses import field

from dlog.dataclass import dataclass
from dlog.engine.times.frontier import Antichain


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Where operators run in one order: the outermost, or a loop, which is one item in the order of the region around it."""

    parent: Region | None = None
    depth: int = 0

    def around(self, depth: int) -> Region:
        """The region of that depth that this one is, or is in."""
        region = self
        while region.depth > depth:
            assert region.parent is not None
            region = region.parent
        return region


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """`scale` is how many rounds it has for each of the root: 2 within an alt/neu scope."""

    parent: Scope | None = None
    region: Region = field(default_factory=Region)
    scale: int = 1

    @property
    def depth(self) -> int:
        """Coordinates of its times."""
        return self.region.depth + 1

    def loop(self) -> Scope:
        """A scope within whose times have one more iteration."""
        return Scope(self, Region(self.region, self.region.depth + 1), self.scale)

    def altneu(self) -> Scope:
        """A scope within that has each round twice; only where times are rounds alone."""
        return Scope(self, self.region, 2 * self.scale)


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of a batch as a scope counts them: from `low` up to, without, `high`."""

    low: int
    high: int

    def scaled(self, scale: int) -> Rounds:
        return self if scale == 1 else Rounds(self.low * scale, self.high * scale)

    def after(self, moment: tuple[int, ...]) -> Antichain:
        """The times that may still come when a moment is done, and with it all that are before it in lexicographic order.

        >>> print(Rounds(3, 5).after((0, 7)))
        {(3, 0, 8), (3, 1, 0), (5, 0, 0)}
        """
        if not moment:
            return Antichain(((self.high,),))
        depth = len(moment)
        later = [(self.low, *moment[:k], moment[k] + 1, *(0,) * (depth - k - 1)) for k in range(depth)]
        return Antichain.of([*later, self.end(depth)])

    def start(self, depth: int) -> tuple[int, ...]:
        """The first time, with so many iterations."""
        return (self.low, *(0,) * depth)

    def end(self, depth: int) -> tuple[int, ...]:
        return (self.high, *(0,) * depth)
