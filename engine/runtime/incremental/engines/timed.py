"""Relations that rounds feed (`rules.Timed`): each follows the changes of another one, and of the clock.

They are parts of a program, as strata are (`Layered`), but hold no rules. What a commit does to one is exact at each of its
rounds, and costs what changes in it and what is due.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dlog.engine.ir.rules import Program, Timed
from dlog.engine.operators.calendar import Calendar
from dlog.engine.operators.delta import Delta, empty, run_starts, together
from dlog.engine.operators.readings import Matches, Trace
from dlog.engine.operators.scope import Rounds
from dlog.engine.plan.incremental.layers import explain_timed
from dlog.engine.rounds_engine import Frames, PlainRounds
from dlog.engine.runtime.incremental.batches.changes import insertions, no_updates
from dlog.engine.values.differences import Columns, difference, row_groups, words
from dlog.engine.values.table import Table, from_words
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import InternalError

LAST = 2**63 - 1
"""A round that is never reached."""
MIN_CROWD = 1 << 12
"""What waits of rows that are gone, whatever there is: each of the others has two entries at most."""
Rows = tuple[Columns, int]


class Fed(PlainRounds, ABC):
    """The only relation of a part."""

    def __init__(self, program: Program, name: str, round: int) -> None:
        self.program, self.name, self.round = program, name, round
        self.timed: Timed = program.timed[name]
        self.relation = program.relations[name]
        self.last = no_updates(self.relation.arity)
        self.begun = False

    def advance(self, share: Mapping[str, Updates], last: int, before: Rows | None, again: bool) -> bool:
        """Goes on to a round, with what has changed up to it in what it reads; whether its own rows have. In the first commit
        all of that is new, but for what had come `before`; or nothing, if it had come in this round already (`again`)."""
        self.last = self._changed(share, last, before, again)
        self.round, self.begun = last, True
        return bool(self.last.rows)

    @abstractmethod
    def _changed(self, share: Mapping[str, Updates], last: int, before: Rows | None, again: bool) -> Updates:
        """`advance`: what changes in its own rows, by round."""

    @abstractmethod
    def restore(self, rows: Table, round: int) -> None:
        """Goes on from a round before the first commit: with what it showed rows of then, or else with its own rows."""

    def commit(self, inputs: Mapping[str, Updates], frames: Frames | None = None) -> int:
        """Nothing but rounds feeds it. Raises InternalError."""
        raise InternalError("commit", f"`{self.name}` goes on with the parts before it (`advance`), and takes no rows")

    def changes(self, relation: str) -> Updates:
        return self.last

    @property
    def touched(self) -> Iterable[str]:
        return (self.name,) if self.last.rows else ()

    def table(self, relation: str) -> Table:
        """The rows now; those that are shown have not been kept here."""
        return self._table((), 0)

    def external(self, relation: str) -> Table:
        return self._table((), 0)

    def rows(self, relation: str) -> int:
        return self.table(relation).rows

    def ranks(self, relation: str) -> np.ndarray | None:
        return np.zeros(self.rows(relation), np.int32)

    def explain(self) -> str:
        return explain_timed(self.name, self.timed)

    def close(self) -> None:
        self.last = no_updates(self.relation.arity)

    def _table(self, columns: Columns, rows: int) -> Table:
        kinds = self.relation.kinds
        found = columns or tuple(np.empty(0, np.int64) for _ in kinds)
        return Table(kinds, tuple(from_words(c, kind) for c, kind in zip(found, kinds, strict=True)), rows)


class Shown(Fed):
    """Rows from the round in their last column but one on, until before that in the last one."""

    def __init__(self, program: Program, name: str, round: int) -> None:
        super().__init__(program, name, round)
        self._calendar = Calendar()
        self._rows = 0
        """Those of the source."""
        self.visited = 0
        """Entries of the schedule that have been looked at since they became due."""

    def _changed(self, share: Mapping[str, Updates], last: int, before: Rows | None, again: bool) -> Updates:
        updates = share.get(self.timed.source)
        if updates is not None and updates.rows:
            self._schedule(updates)
        due = self._calendar.take(last + 1)
        if not due:
            return no_updates(self.relation.arity)
        delta = together([delta for _, delta in due])
        self.visited += delta.rows
        return _by_round(delta.consolidated())

    @property
    def crowded(self) -> bool:
        """Whether most of what waits is of rows that are gone: it had better be scheduled again."""
        return len(self._calendar) > MIN_CROWD + 4 * self._rows

    def restore(self, rows: Table, round: int) -> None:
        self._calendar, self._rows = Calendar(), 0
        columns = tuple(words(column) for column in rows.columns)
        self._schedule(insertions(columns, rows.rows, round), round)

    def _schedule(self, updates: Updates, done: int = -1) -> None:
        """Has changes wait, but for what they did up to a round that is `done`."""
        self._rows += int(updates.diffs.sum())
        first, end = updates.columns[-2:]
        begin = np.maximum(first, updates.rounds)
        come = (end > begin) & (begin > done)
        go = (end > begin) & (end > done) & (end < LAST)
        columns = tuple(np.concatenate((c[come], c[go])) for c in updates.columns)
        times = np.concatenate((begin[come], end[go]))
        if len(times):
            diffs = np.concatenate((updates.diffs[come], -updates.diffs[go]))
            self._calendar.add(0, Delta(columns, times[None], diffs), int(times.max()))


class Changed(Fed):
    """Rows that come or go, with +1 or -1 and the round, in that round only."""

    def __init__(self, program: Program, name: str, round: int) -> None:
        super().__init__(program, name, round)
        self._there = empty(self.relation.arity, 1)

    def restore(self, rows: Table, round: int) -> None:
        columns = tuple(words(column) for column in rows.columns)
        self._there = Delta(columns, columns[-1][None], np.ones(rows.rows, np.int64))

    def _changed(self, share: Mapping[str, Updates], last: int, before: Rows | None, again: bool) -> Updates:
        updates = share.get(self.timed.source) or no_updates(self.relation.arity - 2)
        if not self.begun and again:
            updates = no_updates(self.relation.arity - 2)
        elif not self.begun and before is not None:
            columns, diffs = difference(*before, updates.columns, updates.rows)
            updates = Updates(columns, diffs, np.full(len(diffs), last, np.int64))
        came = Delta((*updates.columns, updates.diffs, updates.rounds), updates.rounds[None], np.ones(updates.rows, np.int64))
        there = together([self._there, came]) if self._there.rows else came
        ended = there.only(there.rounds < last)
        self._there = there.only(there.rounds == last)
        gone = Delta(ended.columns, ended.times + 1, -ended.diffs)
        found = [part for part in (came, gone) if part.rows]
        return _by_round(together(found)) if found else no_updates(self.relation.arity)

    def table(self, relation: str) -> Table:
        return self._table(self._there.columns, self._there.rows)


class Kept(Fed):
    """What rows have met, as often as it adds up to: a number, and the round that it is of, in the last two columns."""

    def __init__(self, program: Program, name: str, round: int) -> None:
        super().__init__(program, name, round)
        self._trace = Trace(self.relation.arity, 1)
        self._key = self.relation.arity - 2
        self._event = program.relations[self.timed.event].arity - 2
        """Columns of what is kept, and of the event."""

    def restore(self, rows: Table, round: int) -> None:
        columns = tuple(words(column) for column in rows.columns)
        self._noted(Delta(columns, np.full((1, rows.rows), round), np.ones(rows.rows, np.int64)), round)

    def _changed(self, share: Mapping[str, Updates], last: int, before: Rows | None, again: bool) -> Updates:
        own, restored = share.get(self.name), None
        if own is not None and own.rows:
            restored = self._noted(Delta(own.columns, own.rounds[None], own.diffs), last)
        met = _coming(share.get(self.timed.source))
        parts = [] if met is None else [met]
        if self.timed.original and (went := self._went(share.get(self.timed.event), met)) is not None:
            parts.append(went)
        found = self._noted(self._counted(together(parts)), last) if parts else None
        if restored is not None and found is not None:
            return _by_round(together([restored, found]).consolidated())
        found = found or restored
        return no_updates(self.relation.arity) if found is None else _by_round(found)

    def _noted(self, delta: Delta, last: int) -> Delta | None:
        """Changes of the rows, which are kept from now on; None where they come to nothing."""
        return self._trace.insert(delta, Rounds(last, last + 1), ())

    def _lookup(self, columns: Sequence[np.ndarray], rows: int) -> Matches:
        """The rows that begin with these, each once."""
        found = self._trace.reading().lookup(columns, rows)
        if not found.probes.size:
            return found
        delta = found.delta
        layer = Delta((found.probes, *delta.columns), np.zeros((1, delta.rows), np.int64), delta.diffs).consolidated()
        return Matches(layer.columns[0], Delta(layer.columns[1:], layer.times, layer.diffs))

    def _went(self, changed: Updates | None, met: Delta | None) -> Delta | None:
        """What is taken back from rows that go: all that they had met when they came, with a diff of -1 at their round."""
        if changed is None:
            return None
        chosen = (changed.diffs > 0) & (changed.columns[-2] < 0)
        if not chosen.any():
            return None
        keys = tuple(c[chosen] for c in changed.columns[: self._event])
        rounds = changed.columns[-1][chosen]
        parts = [self._went_of_before(keys, rounds)]
        if met is not None:
            parts.append(self._went_at_once(keys, rounds, met))
        return together(parts)

    def _went_of_before(self, keys: Columns, rounds: np.ndarray) -> Delta:
        """Of rows that had come in an earlier commit: at the first round in which they go. Of others nothing is kept."""
        order = np.lexsort((rounds, *keys[::-1]))
        first = order[run_starts(tuple(c[order] for c in keys), len(rounds))]
        keys, rounds = tuple(c[first] for c in keys), rounds[first]
        matches = self._lookup(keys, len(rounds))
        return Delta(matches.delta.columns[: self._key], rounds[matches.probes][None], np.full(len(matches.probes), -1))

    def _went_at_once(self, keys: Columns, rounds: np.ndarray, met: Delta) -> Delta:
        """Of rows that came in this commit: at the next round in which they go."""
        places, ends = _next_after(met.columns[: self._event], met.rounds, keys, rounds)
        chosen = met.only(places)
        return Delta(chosen.columns, ends[None], np.full(len(ends), -1))

    def _counted(self, delta: Delta) -> Delta:
        """How often the rows are there from each round on in which that changes: the old number goes, the new one comes."""
        layer = delta.consolidated()
        if not layer.rows:
            return empty(self.relation.arity, 1)
        columns, rounds, diffs = layer.columns, layer.rounds, layer.diffs
        starts = run_starts(columns, layer.rows)
        matches = self._lookup(tuple(c[starts] for c in columns), len(starts))
        number, since = np.zeros((2, len(starts)), np.int64)
        number[matches.probes], since[matches.probes] = matches.delta.columns[-2:]
        runs = np.repeat(np.arange(len(starts)), np.diff(starts, append=layer.rows))
        sums = np.cumsum(diffs)
        after = number[runs] + sums - (sums - diffs)[starts][runs]
        previous = after - diffs
        earlier = np.concatenate((rounds[:1], rounds[:-1]))
        earlier[starts] = since
        parts = [
            Delta((*columns, counts, times), rounds[None], np.full(len(counts), sign)).only(counts != 0)
            for counts, times, sign in ((previous, earlier, -1), (after, rounds, 1))
        ]
        return together(parts)

    def table(self, relation: str) -> Table:
        layers = self._trace.reading().layers
        if not layers:
            return self._table((), 0)
        every = together([Delta.of_layer(layer) for layer in layers])
        now = Delta(every.columns, np.zeros_like(every.times), every.diffs).consolidated()
        return self._table(now.columns, now.rows)

    def external(self, relation: str) -> Table:
        return self.table(relation)


def _coming(updates: Updates | None) -> Delta | None:
    """What was met: without the last two columns, its diff and its round."""
    if updates is None or not updates.rows:
        return None
    comes = updates.diffs > 0
    *columns, diffs, rounds = (c[comes] for c in updates.columns)
    return Delta(tuple(columns), rounds[None], diffs) if len(diffs) else None


def _by_round(delta: Delta) -> Updates:
    """Changes, round by round."""
    found = delta.in_order_of_rounds()
    return Updates(found.columns, found.diffs, found.rounds)


def _next_after(
    columns: Columns, rounds: np.ndarray, keys: Columns, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The places of rows of which there is an end after their round, and the first such end of each; `keys` have those of
    rows, with their ends."""
    rows = len(rounds)
    joined = tuple(np.concatenate(pair) for pair in zip(columns, keys, strict=True))
    order, starts = row_groups(joined, rows + len(ends))
    groups = np.empty(len(order), np.int64)
    groups[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    moments, ranks = np.unique(np.concatenate((rounds, ends)), return_inverse=True)
    codes = groups * len(moments) + ranks
    later = np.sort(codes[rows:])
    found = np.searchsorted(later, codes[:rows], side="right")
    places = np.flatnonzero(found < len(later))
    code = later[found[places]]
    same = code // len(moments) == groups[places]
    return places[same], moments[code[same] % len(moments)]


FEEDING: dict[str, type[Fed]] = {"shown": Shown, "changed": Changed, "kept": Kept}
