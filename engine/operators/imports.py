"""Arrangements of another dataflow: read where they are, nothing is copied."""

from __future__ import annotations

from weakref import finalize

from dlog.engine.operators.arrange import Indexed
from dlog.engine.operators.delta import Delta, Moment
from dlog.engine.operators.readings import Reading
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.cursor import Cursor
from dlog.grammar.diagnostics import Diagnostic, DlogError


class Import(Indexed):
    """Sees of an arrangement what is of its own rounds, though the other dataflow may be ahead. Its first batch begins with
    what has accumulated by then, since rounds before may be told apart no longer."""

    def __init__(self, scheduler: Scheduler, scope: Scope, source: Indexed) -> None:
        super().__init__(scheduler, scope)
        self.source, self.trace, self.keys = source, source.trace, source.keys
        self._handle = source.trace.spine.handle()
        finalize(self, self._handle.abandon)
        scheduler.each_batch(self)

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        low, high = self.rounds.low, self.rounds.high
        ahead = self.source.scheduler.done
        if high > ahead:
            self.source.scheduler.check()
            message = f"an imported arrangement has come to round {ahead}: this dataflow cannot do rounds up to {high} yet"
            raise DlogError(Diagnostic("import-behind", message))
        spine = self.trace.spine
        since = self._handle.frontier
        if low == 0:
            (round,) = since.elements[0]
            if high <= round:
                raise DlogError(_compacted(high, round))
            since = Antichain.start(1)
        cursor = Cursor(spine.arity, spine.depth, spine.batches, since, Antichain.at(high))
        found = cursor.updates_between(Antichain.at(low), Antichain.at(high))
        self._handle.set_logical_compaction(Antichain.at(max(high - 1, *self._handle.frontier.elements[0])))
        self.emit(Delta(found.columns, found.times, found.diffs))

    def now(self) -> Reading:
        return self.trace.reading().below(self.rounds.high)

    def before(self) -> Reading:
        return self.trace.reading().below(self.rounds.low)


def _compacted(high: int, since: int) -> Diagnostic:
    message = f"an imported arrangement has been compacted to round {since}: how it was at round {high - 1} is lost"
    note = f"a new dataflow that imports it begins with `advance_to({since + 1})`, or later"
    return Diagnostic("time-compacted", message, notes=(note,))
