"""The search of homes: of all assignments of columns to relations the cheapest, by branch and bound.

What an assignment costs is a sum over rules, each of which depends on the homes of the relations that it mentions. A rule
counts as soon as these have homes, so that the sum over the rules that count is never more than the whole: where it reaches
the cost of the best assignment known, none that begins this way is looked at. A condition costs nothing, or without end.

Source: Land and Doig, An Automatic Method of Solving Discrete Programming Problems, Econometrica 1960.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from math import inf
from typing import TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Rule
from dlog.engine.ir.traversal import occurrences

Homes: TypeAlias = Mapping[str, int]
"""The place of each relation, see `places`."""

VISITS_MAX = 20_000
"""Partial assignments looked at in one search: keeps planning short where no bound helps."""


@dataclass(frozen=True, slots=True)
class Charge:
    """One part of the sum: `cost` of the homes that the relations `of` have. The relations that are not searched for may have
    any."""

    of: frozenset[str]
    cost: Callable[[Homes], float]


def possible(holds: bool) -> float:
    """The cost of a condition."""
    return 0.0 if holds else inf


def cheapest_homes(
    choices: Mapping[str, Sequence[int]], charges: Sequence[Charge], below: float = inf, visits: int = VISITS_MAX
) -> dict[str, int] | None:
    """The first of the cheapest assignments, in the order of the choices; None where none costs less than `below`. A search
    that ends early, after so many `visits`, returns the best it has seen."""
    return _Search(tuple(choices.items()), _by_depth(tuple(choices), charges), below, visits).run()


def mentioned(rule: Rule, names: Iterable[str]) -> frozenset[str]:
    """The relations among `names` on whose homes it depends where a rule is evaluated and where its rows go."""
    return frozenset((rule.head.relation, *(x.atom.relation for x in occurrences(rule.body)))).intersection(names)


def _by_depth(names: Sequence[str], charges: Sequence[Charge]) -> list[list[_Memo]]:
    """The charges that are known once the first so many relations have homes."""
    depth = {name: number for number, name in enumerate(names, 1)}
    known: list[list[_Memo]] = [[] for _ in range(len(names) + 1)]
    for charge in charges:
        searched = tuple(name for name in names if name in charge.of)
        known[max(map(depth.__getitem__, searched), default=0)].append(_Memo(charge, searched))
    return known


@dataclass(slots=True)
class _Memo:
    """A charge, which is asked once for each assignment to its own relations."""

    charge: Charge
    searched: tuple[str, ...]
    costs: dict[tuple[int, ...], float] = field(default_factory=dict)

    def cost(self, homes: Homes) -> float:
        key = tuple(homes[name] for name in self.searched)
        if key not in self.costs:
            self.costs[key] = self.charge.cost(homes)
        return self.costs[key]


@dataclass(slots=True)
class _Level:
    """The relation to be placed at one depth: the places still to be tried, and what the homes of those before it cost."""

    name: str
    places: Iterator[int]
    cost: float


@dataclass(slots=True)
class _Search:
    """A depth-first walk."""

    choices: Sequence[tuple[str, Sequence[int]]]
    memos: Sequence[Sequence[_Memo]]
    bound: float
    visits: int
    best: dict[str, int] | None = None
    homes: dict[str, int] = field(default_factory=dict)
    levels: list[_Level] = field(default_factory=list)

    def run(self) -> dict[str, int] | None:
        self._enter(0.0)
        while self.levels:
            level = self.levels[-1]
            place = next(level.places, None) if self.visits > 0 else None
            if place is None:
                self.levels.pop()
            else:
                self.homes[level.name] = place
                self._enter(level.cost)
        return self.best

    def _enter(self, cost: float) -> None:
        """Goes on from the homes at hand, the last of which is not counted in the cost yet."""
        self.visits -= 1
        depth = len(self.levels)
        cost = self._charged(depth, cost)
        if cost < self.bound and depth < len(self.choices):
            name, places = self.choices[depth]
            self.levels.append(_Level(name, iter(places), cost))
        elif cost < self.bound:
            self.best, self.bound = {name: self.homes[name] for name, _ in self.choices}, cost

    def _charged(self, depth: int, cost: float) -> float:
        """The cost with what this depth adds, as far as the bound matters."""
        for memo in self.memos[depth]:
            if cost >= self.bound:
                break
            cost += memo.cost(self.homes)
        return cost
