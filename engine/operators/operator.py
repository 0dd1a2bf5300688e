"""Operators, the edges between them, and how what one emits reaches the others.

An edge carries a function of deltas, which is where everything stateless happens: each delta that an operator emits goes once
through each different function, and to all operators that read the outcome.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.operators.calendar import Calendar
from dlog.engine.operators.delta import Delta, Moment, together
from dlog.engine.operators.readings import Trace
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Rounds, Scope

Function = Callable[[Delta], Delta]
Route = tuple[Function | None, bool, list[tuple["Operator", int]]]
"""A function that what an operator emits goes through (None: as it is), whether it keeps times, and the ports it leads to."""


def same(delta: Delta) -> Delta:
    """The function of an edge that changes nothing."""
    return delta


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """From what an operator emits, by a function, to a port of another. A feedback edge leads to a later iteration: it counts
    for nothing in the order of operators."""

    source: Operator
    function: Function
    target: Operator
    port: int
    feedback: bool = False
    keeps_times: bool = False
    """Whether the function is known to give nothing at other times than it gets."""
    deferred: bool = False
    """Whether the target applies the function itself, when it needs the outcome."""


class Operator(ABC):
    """A node of the dataflow. It runs at the moments for which something has arrived, or that it asked for itself."""

    defers = False
    """Whether it applies functions of edges itself where nobody can tell when that is done (`total`)."""

    def __init__(self, scheduler: Scheduler, scope: Scope) -> None:
        self.scheduler, self.scope = scheduler, scope
        self.edges: dict[int, tuple[Function, list[Edge]]] = {}
        """The edges out of it, by function."""
        self._routes: list[Route] | None = None
        """The same as `emit` takes them, once it has."""
        self.inbox: dict[Moment, list[tuple[int, Delta]]] = {}
        self.later = Calendar()
        """What has arrived for rounds after those of the batch."""
        self.activations = 0
        """How often it has run."""
        self.received, self.emitted = 0, 0
        """Updates that have arrived for it to run on, and those that it has emitted."""
        scheduler.add(self)

    @abstractmethod
    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        """Takes what has arrived for a moment, by port."""

    @property
    def ports(self) -> int:
        return 1

    @property
    def traces(self) -> Sequence[Trace]:
        """What it holds."""
        return ()

    @property
    def held(self) -> int:
        """How many updates it holds."""
        return sum(trace.spine.rows for trace in self.traces)

    @property
    def rounds(self) -> Rounds:
        """The rounds of the batch, as its scope counts them."""
        return self.scheduler.rounds.scaled(self.scope.scale)

    def __str__(self) -> str:
        loops = self.scope.depth - 1
        return type(self).__name__ + (f" in {loops} {'loop' if loops == 1 else 'loops'}" if loops else "")

    def connect(self, source: Operator, function: Function, port: int = 0, feedback: bool = False) -> Edge:
        """Has a port take what `source` emits, by a function."""
        keeps_times, total = getattr(function, "keeps_times", False), getattr(function, "total", False)
        edge = Edge(source, function, self, port, feedback, keeps_times, self.defers and keeps_times and total)
        source.edges.setdefault(id(function), (function, []))[1].append(edge)
        source._routes = None
        self.scheduler.connected(edge)
        return edge

    def emit(self, delta: Delta) -> None:
        """Sends updates, which are of rounds of the batch, to all that read them."""
        if not delta.rows:
            return
        self.emitted += delta.rows
        if self._routes is None:
            self._routes = [_route(function, edges) for function, edges in self.edges.values()]
        for function, keeps_times, targets in self._routes:
            changed = delta if function is None else function(delta)
            if changed.rows:
                in_batch = keeps_times or changed is delta
                for target, port in targets:
                    if in_batch:
                        target.take(port, changed)
                    else:
                        target.accept(port, changed)

    def accept(self, port: int, delta: Delta) -> None:
        """Puts updates where they wait for their moment; those of rounds after the batch, where they wait for that."""
        high = self.scheduler.rounds.high * self.scope.scale
        last = int(np.maximum.reduce(delta.rounds)) if delta.rows else 0
        if last >= high:
            future = delta.rounds >= high
            if future.all():
                self.later.add(port, delta, last)
                self.scheduler.expect(self)
                return
            self.accept(port, delta.only(future))
            delta = delta.only(~future)
        self.take(port, delta)

    def take(self, port: int, delta: Delta) -> None:
        """Puts updates of rounds of the batch where they wait for their moment."""
        if delta.depth == 1:
            self._put((), port, delta)
            return
        for moment, part in delta.by_moment():
            self._put(moment, port, part)

    def _put(self, moment: Moment, port: int, delta: Delta) -> None:
        waiting = self.inbox.get(moment)
        if waiting is None:
            self.inbox[moment] = [(port, delta)]
            self.scheduler.wake(self, moment)
        else:  # it is awake already
            waiting.append((port, delta))

    def release(self) -> None:
        """Takes from the calendar what is due in the batch that begins."""
        for port, delta in self.later.take(self.rounds.high):
            self.take(port, delta)

    def activate(self, moment: Moment) -> None:
        """Runs at a moment."""
        self.activations += 1
        arrived: list[list[Delta]] = [[] for _ in range(self.ports)]
        for port, delta in self.inbox.pop(moment, ()):
            arrived[port].append(delta)
            self.received += delta.rows
        self.run(moment, arrived)


def outcome(edge: Edge, delta: Delta) -> Delta:
    """What the function of an edge makes of what has come by it."""
    _, edges = edge.source.edges[id(edge.function)]
    return edge.function(delta) if _all_defer(edges) else delta


def _route(function: Function, edges: list[Edge]) -> Route:
    as_it_is = function is same or _all_defer(edges)
    return None if as_it_is else function, edges[0].keeps_times, [(edge.target, edge.port) for edge in edges]


def _all_defer(edges: list[Edge]) -> bool:
    """Whether all that read the outcome of a function apply it themselves; else it is applied once for all."""
    return all(edge.deferred for edge in edges)


def joined(parts: list[Delta]) -> Delta | None:
    """All that has arrived at a port, if anything."""
    return together(parts) if parts else None
