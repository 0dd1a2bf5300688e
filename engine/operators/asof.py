"""As-of joins that take back what they gave: a row keeps what it met when it came, until it goes.

At a time that belongs to a row's coming, the row meets what the other side has by then; that is remembered, and taken back
when the row goes. Times are totally ordered: this is for scopes without iterations. A row is there or not, however often."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.engine.operators.arrange import Arranged
from dlog.engine.operators.delta import Delta, Moment, empty, run_starts, together
from dlog.engine.operators.operator import Operator, joined
from dlog.engine.operators.readings import Reading, Trace
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope
from dlog.engine.trace.layer import build


class AsOfJoin(Operator):
    """Takes the changes of a set of rows, the `keys` columns of the key first; emits its columns, then those of the other side
    without the key."""

    def __init__(self, scheduler: Scheduler, scope: Scope, arity: int, keys: int, other: Arranged) -> None:
        super().__init__(scheduler, scope)
        self.keys, self.other = keys, other
        self.output_trace = Trace(arity + other.source.trace.arity - keys, scope.depth)
        other.precede(self, 1)

    @property
    def traces(self) -> Sequence[Trace]:
        return (self.output_trace,)

    @property
    def ports(self) -> int:
        return 2

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        delta = None if delta is None else delta.consolidated()
        if delta is None or not delta.rows:
            return
        came = self._inserted(delta)
        made = together([came, self._retracted_at_once(delta, came), self._retracted_later(delta)]).consolidated()
        if made.rows:
            self.output_trace.insert(made, self.rounds, moment)
            self.emit(made)

    def _inserted(self, delta: Delta) -> Delta:
        """What rows meet that come."""
        rows = delta.only(delta.diffs > 0)
        matches = self.other.now().lookup(rows.columns[: self.keys], rows.rows)
        seen = matches.only(matches.delta.rounds <= rows.rounds[matches.probes])
        met = rows.only(seen.probes)
        columns = (*met.columns, *seen.delta.columns[self.keys :])
        return Delta(columns, met.times, seen.delta.diffs).consolidated()

    def _retracted_at_once(self, delta: Delta, came: Delta) -> Delta:
        """What is taken back of that, from rows that go in the same batch: each at the next change of its row."""
        following = np.full(delta.rows, -1, np.int64)
        begins = np.zeros(delta.rows, bool)
        begins[run_starts(delta.columns, delta.rows)] = True
        following[:-1][~begins[1:]] = delta.rounds[1:][~begins[1:]]
        short = (delta.diffs > 0) & (following >= 0)
        goes, ends = delta.only(short), following[short]
        return _ended(goes, ends, came)

    def _retracted_later(self, delta: Delta) -> Delta:
        """What is taken back from rows that go and had come in an earlier batch: the first change of each such row."""
        first = np.zeros(delta.rows, bool)
        first[run_starts(delta.columns, delta.rows)] = True
        goes = delta.only(first & (delta.diffs < 0))
        if not goes.rows:
            return empty(self.output_trace.arity, len(delta.times))
        matches = self.output_trace.reading().lookup(goes.columns, goes.rows)
        return Delta(matches.delta.columns, goes.times[:, matches.probes], -matches.delta.diffs)


def _ended(goes: Delta, ends: np.ndarray, came: Delta) -> Delta:
    """What rows have met at their times, taken back at the rounds when they end."""
    arity = len(goes.columns)
    layer = build((*came.columns[:arity], came.rounds, *came.columns[arity:]), came.times, came.diffs)
    if layer is None or not goes.rows:
        return came.only(np.zeros(0, np.int64))
    keyed = Reading([layer], layer.arity, layer.depth)
    matches = keyed.lookup((*goes.columns, goes.rounds), goes.rows)
    columns = (*matches.delta.columns[:arity], *matches.delta.columns[arity + 1 :])
    return Delta(columns, ends[matches.probes][None, :], -matches.delta.diffs)
