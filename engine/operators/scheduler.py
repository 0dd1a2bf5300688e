"""In which order operators run.

A queue holds the operators that have something to do, each with a moment. What is first is decided by where they are: the rank
in the outermost region, of the operator or of the loop it is in; then, within a loop, the iteration, the rank there, and so on.
So an operator runs once for a moment, after all that can still send it something for that moment, and one that nothing reaches
is never looked at; no result is ever seen of which only a part is up to date.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import chain
from typing import Protocol

from dlog.engine.operators.calendar import Calendar
from dlog.engine.operators.delta import Moment
from dlog.engine.operators.scope import Region, Rounds, Scope
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError

Key = tuple[int, ...]


class Node(Protocol):
    """What an operator is to its scheduler."""

    scope: Scope
    later: Calendar
    activations: int

    def activate(self, moment: Moment) -> None: ...
    def release(self) -> None: ...


class Link(Protocol):
    """What an edge is: one operator, or a loop with it, comes before another, unless what it feeds is a later iteration."""

    @property
    def source(self) -> Node: ...
    @property
    def target(self) -> Node: ...
    @property
    def feedback(self) -> bool: ...


Item = Node | Region


class Scheduler:
    """The operators of a dataflow, and the batch at work. `max_iterations` ends a loop that does not end itself."""

    def __init__(self, max_iterations: int | None = None) -> None:
        self.max_iterations = max_iterations
        self.operators: list[Node] = []
        self.rounds = Rounds(0, 0)
        self.failed = self.running = False
        """Whether a batch has failed, or is at work: that may still fail."""
        self._edges: list[Link] = []
        self._ranks: dict[int, int] | None = None
        self._paths: dict[int, tuple[int, ...]] = {}
        self._queue: list[tuple[Key, int, Moment]] = []
        self._queued: set[tuple[int, Moment]] = set()
        self._numbers: dict[int, int] = {}
        self._expecting: set[int] = set()
        self._each_batch: list[Node] = []

    # --------------------------------------------------------------------------------------------------------------- graph

    def add(self, operator: Node) -> None:
        self._numbers[id(operator)] = len(self.operators)
        self.operators.append(operator)
        self._ranks = None

    def connected(self, edge: Link) -> None:
        self._edges.append(edge)
        self._ranks = None

    def _rank_all(self) -> None:
        """Orders the items of every region, operators and loops, by what feeds what."""
        successors: dict[int, set[int]] = {}
        missing: dict[int, int] = {}
        items = self._items()
        for edge in self._edges:
            before, after = _siblings(edge)
            if before is not after and not edge.feedback and id(after) not in successors.setdefault(id(before), set()):
                successors[id(before)].add(id(after))
                missing[id(after)] = missing.get(id(after), 0) + 1
        ready = [number for number, item in enumerate(items) if id(item) not in missing]
        numbers = {id(item): number for number, item in enumerate(items)}
        ranks: dict[int, int] = {}
        heapq.heapify(ready)
        while ready:
            first = id(items[heapq.heappop(ready)])
            ranks[first] = len(ranks)
            for following in successors.get(first, ()):
                missing[following] -= 1
                if not missing[following]:
                    heapq.heappush(ready, numbers[following])
        if len(ranks) < len(items):
            raise InternalError("dataflow", "operators feed each other in a circle outside of a loop")
        self._ranks = ranks
        self._paths = {
            self._numbers[id(o)]: tuple(ranks[id(item)] for item in (*_regions(o.scope.region), o)) for o in self.operators
        }

    def _items(self) -> list[Item]:
        regions = {id(r): r for operator in self.operators for r in _regions(operator.scope.region)}
        return [*self.operators, *regions.values()]

    # --------------------------------------------------------------------------------------------------------------- queue

    def wake(self, operator: Node, moment: Moment) -> None:
        """Has an operator run at a moment of this batch."""
        number = self._numbers[id(operator)]
        queued = number, moment
        if queued not in self._queued:
            if moment and self.max_iterations is not None and max(moment) >= self.max_iterations:
                raise _endless(self.max_iterations)
            self._queued.add(queued)
            heapq.heappush(self._queue, (self._key(number, moment), number, moment))

    def expect(self, operator: Node) -> None:
        """Has an operator asked, when later batches begin, for what is due then."""
        self._expecting.add(self._numbers[id(operator)])

    def each_batch(self, operator: Node) -> None:
        """Has an operator run in every batch."""
        self._each_batch.append(operator)

    def _key(self, number: int, moment: Moment) -> Key:
        if self._ranks is None:
            self._rank_all()
        path = self._paths[number]
        return path if not moment else (path[0], *chain.from_iterable(zip(moment, path[1:], strict=True)))

    @property
    def done(self) -> int:
        """The first round that is not done, those of the batch at work included."""
        return self.rounds.low if self.failed else self.rounds.high

    def next_round(self) -> int | None:
        """The first round for which something waits already."""
        waiting = ((o.later.next_round(), o.scope.scale) for o in self._expected())
        return min((round // scale for round, scale in waiting if round is not None), default=None)

    def _expected(self) -> Iterator[Node]:
        return (self.operators[number] for number in sorted(self._expecting))

    # ----------------------------------------------------------------------------------------------------------------- run

    def check(self) -> None:
        """Raises DlogError where a batch has failed: nothing can be done, or read, any more."""
        if self.failed and not self.running:
            note = "a batch has failed half way: what its operators hold is neither before nor after it"
            raise DlogError(Diagnostic("dataflow-failed", "the dataflow can go on no longer", notes=(note,)))

    def begin(self, high: int) -> None:
        """Begins the batch of the rounds from where the last one ended up to `high`."""
        if self.running:
            notes = ("what is called in a round may insert rows for the next one, which is done when it has returned",)
            raise DlogError(Diagnostic("commit-inside-commit", "a round is being done, in which no other begins", notes=notes))
        self.check()
        self.rounds = Rounds(self.rounds.high, high)
        if self._ranks is None:  # keys of what is queued already would be of other ranks
            self._rank_all()
        for operator in [*self._expected()]:
            operator.release()
            if not operator.later:
                self._expecting.discard(self._numbers[id(operator)])
        for operator in self._each_batch:
            self.wake(operator, ())

    def run(self) -> None:
        """Runs operators until none has anything to do: then the batch is done."""
        self.failed = self.running = True
        try:
            while self._queue:
                _, number, moment = heapq.heappop(self._queue)
                self._queued.discard((number, moment))
                self.operators[number].activate(moment)
            self.failed = False
        finally:
            self.running = False


def _regions(region: Region) -> tuple[Region, ...]:
    """The loops that a region is in, itself included, the outermost first."""
    return () if region.parent is None else (*_regions(region.parent), region)


def _siblings(edge: Link) -> tuple[Item, Item]:
    """What has to be ordered for an edge: its ends, or the loops around them, in the innermost region around both."""
    before, after = edge.source.scope.region, edge.target.scope.region
    common = min(before.depth, after.depth)
    while before.around(common) is not after.around(common):
        common -= 1
    return (
        edge.source if before.depth == common else before.around(common + 1),
        edge.target if after.depth == common else after.around(common + 1),
    )


def _endless(limit: int) -> DlogError:
    message = f"a loop has not come to an end after {limit:,} iterations"
    note = "a loop ends when nothing changes any more: is there a `distinct`, `min` or another reduction on every way around?"
    return DlogError(Diagnostic("too-many-iterations", message, notes=(note,)))
