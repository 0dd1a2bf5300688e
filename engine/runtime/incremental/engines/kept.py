"""What rows have met when they came (`rules.Timed`, `kept`): numbers that are added up, and kept through later changes.

Where many events come of which nothing is there from before, what they have met is there once: it is passed on as it is, and
lies in a heap until the trace takes all of it, or an event goes. As long as none has gone, each comes for the first time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Program
from dlog.engine.operators.delta import Columns, Delta, empty, run_starts, together
from dlog.engine.operators.readings import Matches, Trace
from dlog.engine.operators.scope import Rounds
from dlog.engine.runtime.incremental.batches.changes import no_updates
from dlog.engine.runtime.incremental.engines.timed import Fed, Row, Rows, by_round, is_few
from dlog.engine.values.differences import row_groups, words
from dlog.engine.values.table import Table
from dlog.engine.values.updates import RowUpdates, Updates

MAX_WAITING = 256
"""Rows whose numbers wait for the trace at most: one insert of so many takes a part of a millisecond."""
MAX_HEAPED = 1 << 13
"""Rows of the heap at most: the trace takes them in a millisecond, a third of what it does with ten parts of them."""


@dataclass(slots=True)
class Number:
    """How often a row is there, and since which round; and what the trace has for these."""

    number: int
    since: int
    kept: int
    kept_since: int


class Kept(Fed):
    """What rows have met, as often as it adds up to: a number, and the round that it is of, in the last two columns."""

    def __init__(self, program: Program, name: str, round: int, passing: bool = False) -> None:
        super().__init__(program, name, round, passing)
        self._trace = Trace(self.relation.arity, 1)
        self._key = self.relation.arity - 2
        self._event = program.relations[self.timed.event].arity - 2
        """Columns of what is kept, and of the event."""
        self._waiting: defaultdict[Row, dict[Row, Number]] = defaultdict(dict)
        """By event the numbers of rows that have changed of late."""
        self._waiting_count = 0
        self._heap: list[Delta] = []
        self._heap_count = 0
        self._returning = False
        """Whether events may come that have been before."""

    def restore(self, rows: Table, round: int) -> None:
        self._returning = True
        columns = tuple(words(column) for column in rows.columns)
        self._noted(Delta(columns, np.full((1, rows.rows), round), np.ones(rows.rows, np.int64)), round)

    def _changed(self, share: Mapping[str, Updates], last: int, before: Rows | None, again: bool) -> Updates:
        own, source, event = share.get(self.name), share.get(self.timed.source), share.get(self.timed.event)
        anew = own is not None and own.rows > 0
        goes = event is not None and _goes(event)
        if anew or goes:
            self._returning = True
            self._keep_heap(self.round)
        event = event if self.timed.original and goes else None
        if not anew and is_few(given := [each for each in (source, event) if each is not None]):
            sums = self._few_sums(source, event, last) if given else {}
            if sums is not None:
                return self._add(sums, last)
        self._keep_waiting(self.round)
        met = _coming(source)
        if not (anew or goes or met is None) and self._is_new(met):
            return self._heaped(met, last)
        return self._added(own if anew else None, met, event, last)

    def _added(self, own: Updates | None, met: Delta | None, event: Updates | None, last: int) -> Updates:
        """What comes of rows of its own, of what was met and of events that take back what they had met."""
        restored = None if own is None else self._noted(Delta(own.columns, own.rounds[None], own.diffs), last)
        parts = [] if met is None else [met]
        if (went := self._went(event, met)) is not None:
            parts.append(went)
        found = self._noted(self._counted(together(parts)), last) if parts else None
        if restored is not None and found is not None:
            return by_round(together([restored, found]).consolidated())
        found = found or restored
        return no_updates(self.relation.arity) if found is None else by_round(found)

    # ------------------------------------------------------------------------------------------------------------ few rows

    def _few_sums(self, source: Updates | None, event: Updates | None, last: int) -> dict[Row, int] | None:
        """What is added to the numbers of rows where few changes come; None unless all are of the round `last`."""
        sums: defaultdict[Row, int] = defaultdict(int)
        for (*row, diff, round), sign in () if source is None else source.listed():
            if sign > 0:
                if round != last:
                    return None
                sums[tuple(row)] += diff
        for (*key, diff, round), sign in () if event is None else event.listed():
            if sign > 0 > diff:
                if round != last:
                    return None
                for gone in self._rows_of(tuple(key)):
                    sums[gone] -= 1
        return sums

    def _add(self, sums: Mapping[Row, int], round: int) -> Updates:
        """Adds to the numbers of rows in a round."""
        found: dict[Row, int] = {}
        for row, sum in sums.items():
            if sum:
                at = self._number(row)
                if at.number:
                    found[*row, at.number, at.since] = -1
                at.number, at.since = at.number + sum, round
                if at.number:
                    found[*row, at.number, round] = 1
        if self._waiting_count > MAX_WAITING:
            self._keep_waiting(round)
        return RowUpdates(found, self.relation.arity, round)

    def _number(self, row: Row) -> Number:
        """The number of a row, which waits from now on."""
        of_event = self._waiting[row[: self._event]]
        if (at := of_event.get(row)) is None:
            stored = self._stored(row) if self._returning else ()
            number, since = stored[0][-2:] if stored else (0, 0)
            at = of_event[row] = Number(number, since, number, since)
            self._waiting_count += 1
        return at

    def _rows_of(self, event: Row) -> list[Row]:
        """All rows that are there of an event; their numbers wait from now on."""
        of_event = self._waiting[event]
        for *row, number, since in self._stored(event):
            if (key := tuple(row)) not in of_event:
                of_event[key] = Number(number, since, number, since)
                self._waiting_count += 1
        return [row for row, at in of_event.items() if at.number]

    def _stored(self, key: Row) -> list[Row]:
        """The rows of the trace that begin with a key, with their numbers and rounds."""
        reading = self._trace.reading()
        found = reading.seek_packed(np.array(key, np.int64)[:, None], 1)
        if not found.total:
            return []
        delta = reading.gather(found).delta
        if delta.rows > 1:
            delta = Delta(delta.columns, np.zeros_like(delta.times), delta.diffs).consolidated()
        return list(zip(*[column.tolist() for column in delta.columns], strict=True))

    def _keep_waiting(self, round: int) -> None:
        """Has the trace take what waits, as of a round."""
        changes: list[Row] = []
        for row, at in (item for of_event in self._waiting.values() for item in of_event.items()):
            if (at.number, at.since) == (at.kept, at.kept_since):
                continue
            if at.kept:
                changes.append((*row, at.kept, at.kept_since, -1))
            if at.number:
                changes.append((*row, at.number, at.since, 1))
        self._waiting.clear()
        self._waiting_count = 0
        if changes:
            *columns, diffs = np.array(changes, np.int64).T.copy()
            self._noted(Delta(tuple(columns), np.full((1, len(changes)), round), diffs), round)

    # ---------------------------------------------------------------------------------------------------------- many rows

    def _is_new(self, met: Delta) -> bool:
        """Whether nothing is there of what was met, where no event goes."""
        return not self._returning or not self._trace.reading().seek(met.columns, met.rows).total

    def _heaped(self, met: Delta, last: int) -> Updates:
        """What was met is there, once, from its round on; it comes to the heap."""
        ones = np.ones(met.rows, np.int64)
        self._heap.append(Delta((*met.columns, ones, met.rounds), met.times, ones))
        self._heap_count += met.rows
        if self._heap_count > MAX_HEAPED:
            self._keep_heap(last)
        return Updates((*met.columns, ones, met.rounds), ones, met.rounds)

    def _keep_heap(self, round: int) -> None:
        """Has the trace take the heap, as of a round."""
        if self._heap:
            heap = together(self._heap)
            self._heap, self._heap_count = [], 0
            self._noted(Delta(heap.columns, np.full((1, heap.rows), round), heap.diffs), round)

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
        self._keep_heap(self.round)
        self._keep_waiting(self.round)
        layers = self._trace.reading().layers
        if not layers:
            return self._table((), 0)
        every = together([Delta.of_layer(layer) for layer in layers])
        now = Delta(every.columns, np.zeros_like(every.times), every.diffs).consolidated()
        return self._table(now.columns, now.rows)

    def external(self, relation: str) -> Table:
        return self.table(relation)


def _goes(event: Updates) -> bool:
    """Whether an event goes."""
    if isinstance(event, RowUpdates):
        return any(row[-2] < 0 < sign for row, sign in event.listed())
    if not event.rows:
        return False
    signs = event.columns[-2]
    return bool(signs.min() < 0 and ((signs < 0) & (event.diffs > 0)).any())


def _coming(updates: Updates | None) -> Delta | None:
    """What was met: without the last two columns, its diff and its round."""
    if updates is None or not updates.rows:
        return None
    comes = updates.diffs > 0
    *columns, diffs, rounds = updates.columns if comes.all() else (c[comes] for c in updates.columns)
    return Delta(tuple(columns), rounds[None], diffs) if len(diffs) else None


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


