"""The changes of a relation in its recent rounds: what they come to between two rounds, and the relation as of a past one.

They are batches in order of rounds, without what was there before them: the relation as it is now is there anyhow, and as of
round r it is that without what came after r. Within the window no two changes cancel out, so batches are merged only until they
are worth a look: then reading some rounds costs what changed in them, and rounds that nobody can read any more go batch by
batch. The latest changes wait, as they came, until there are enough of them for a batch, or until they are read.

A spine (`spine.py`) would have all rows, with the rounds in which they came and went. Beside this it needs more memory, for it
has once more what the engine has, and a read of all rows merges all of its batches: `python -m tests.bench history-spine` has
the figures, docs/history.md what follows. What it does better, to find the rows of one key by a search, is done here, too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.layer import Described, Layer, build, build_block
from dlog.engine.trace.merge import Merge
from dlog.engine.trace.past_rows import CHANGES_PER_READ, KEPT_ROWS_PER_CHANGE, MIN_STEP, ROWS_OF_A_TABLE, KnownTables
from dlog.engine.trace.undoing import ChangesWith, PickedChanges, StoredRows, changed_at_once
from dlog.engine.trace.values import Values, rows_with
from dlog.engine.trace.waiting import WaitingChanges
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates

MAX_WAITING = 128
"""Commits whose changes wait to become one batch: trades their memory, some hundred bytes a commit, against making batches."""
MAX_BATCH_ROWS = 1 << 12
"""Changes of a batch, but for more in one round: those that wait are worth one then."""
PARTS, MAX_LARGE_ROWS = 16, 1 << 16
"""Where there are many changes batches have a part in so many of them, and up to so many: each is a file of a state, and looked
through for some of its rounds."""
SMALL_CHANGES, SMALL_ROWS, FEW_SEEKS = 1 << 12, 1 << 14, 4
"""Where there are no more changes and rows than this the whole table is found as fast as some rows are sought; and where there
are no more rows, who has sought some so often since the last batch was made has it found, too: it is kept."""
MAX_ROUND = MAX_WEIGHT = 1 << 62
"""Rounds, and the sum of all |diff|, are less: with as much again they are words."""
_START = Antichain.start(1)


class ChangeTrace:
    """The changes after the round `begin`. For one thread at a time; batches are for any."""

    def __init__(self, arity: int, begin: int) -> None:
        self.arity, self.begin, self.last = arity, begin, begin
        """Of the rows; the oldest round that can be read; the last one that was noted."""
        self._batches: list[Batch] = []
        self._ends: list[int] = []
        """Of each batch the round after the last one that it may have changes of: there the next one begins."""
        self._sealed_rows = 0
        """Changes in batches."""
        self._waiting = WaitingChanges(arity)
        self._sealed = begin
        """The last round that is in a batch, or could be."""
        self._noted = 0
        """Changes that were noted last."""
        self._known = KnownTables(begin)
        self._seeks = 0
        """How often rows with some values were read since the last batch was made."""

    @staticmethod
    def of(arity: int, batches: Sequence[Batch]) -> ChangeTrace:
        """Those that batches hold, of which there is one at least, the oldest first. Raises ValueError where nobody can have
        written them."""
        ends = [batch.description.upper for batch in batches]
        if [batch.description.lower for batch in batches[1:]] != ends[:-1]:
            raise ValueError("batches do not touch")
        if any(len(f) != 1 or len(f.elements[0]) != 1 for batch in batches for f in _frontiers(batch)):
            raise ValueError("a frontier is no round")
        if any((layer.arity, layer.depth) != (arity, 1) for batch in batches for layer in batch.layers):
            raise ValueError("layers have other columns than their relation")
        _refuse_strange(batches)
        found = ChangeTrace(arity, max(time[0] for batch in batches for time in batch.description.since))
        found._batches, found._sealed_rows = list(batches), sum(batch.rows for batch in batches)
        found._ends = [_end(batch) for batch in batches]
        found.last = found._sealed = _end(batches[-1]) - 1
        return found

    @property
    def rows(self) -> int:
        """Changes that are kept."""
        return self._sealed_rows + self._waiting.rows

    @property
    def batches(self) -> tuple[Batch, ...]:
        """All changes."""
        self._seal()
        return tuple(self._batches)

    @property
    def nbytes(self) -> int:
        """Bytes of the batches, of what waits, and of past rows that are kept."""
        return sum(batch.nbytes for batch in self._batches) + self._waiting.nbytes + self._known.nbytes

    # ------------------------------------------------------------------------------------------------------------- writing

    def note(self, updates: Updates, oldest: int, tidies: bool = True) -> None:
        """Adds the changes of further rounds, unless it has them; those of a row in one round are added up. They must stay as
        they are. Rounds before `oldest` are given up at times, as far as it `tidies`."""
        last = updates.last
        if last <= self.last:
            return
        self._noted, self.last = updates.rows, last
        self._waiting.add(updates)
        if tidies:
            self.tidy(oldest)

    def tidy(self, oldest: int) -> None:
        """Makes batches of what waits, if that is much, and gives up what nobody needs, among it rounds before `oldest`."""
        waiting = self._waiting
        if len(waiting.parts) >= MAX_WAITING or waiting.rows >= MAX_BATCH_ROWS:
            self.forget(oldest)
            self._known.age(self.last)
            self._seal()

    def is_read(self, last: int) -> bool:
        """Whether somebody has read a past round of late, now that `last` is the last one."""
        self._known.age(last)
        return self._known.reach >= 0

    def noted(self, round: int) -> int:
        """How many changes were noted last, if those were the ones up to a round."""
        return self._noted if self.last == round else 0

    def keep_rows(self, round: int, changes: int, now: Callable[[], Table]) -> None:
        """Keeps the rows of the last round, after a commit of about so many changes, if that is worth it."""
        if self._known.has_use(changes, self.rows):
            self._known.keep_present(round, StoredRows.of(now()), self.rows)

    def _seal(self) -> None:
        """Makes batches of what waits."""
        if self._waiting.parts:
            all = self._waiting.take()
            most = max(MAX_BATCH_ROWS, min((self._sealed_rows + all.rows) // PARTS, MAX_LARGE_ROWS))
            for start, end in _cut(all.rounds, most):
                self._append(all, start, end, most)

    def _append(self, all: Updates, start: int, end: int, most: int) -> None:
        """Adds a batch of some of these changes, and merges the last ones while they have no more than so many together."""
        last = int(all.rounds[end - 1])
        lower, upper = Antichain.at(self._sealed + 1), Antichain.at(last + 1)
        columns, rounds = tuple(column[start:end] for column in all.columns), all.rounds[None, start:end]
        batch, batches = Batch.of(lower, upper, columns, rounds, all.diffs[start:end]), self._batches
        self._sealed, self._sealed_rows, self._seeks = last, self._sealed_rows + batch.rows, 0
        while batches and 2 * batch.rows > batches[-1].rows and batch.rows + batches[-1].rows <= most:
            batch = Merge((batches.pop(), batch), _START).result
            self._ends.pop()
        batches.append(batch)
        self._ends.append(last + 1)

    def forget(self, oldest: int) -> None:
        """Gives up rounds before `oldest`."""
        if oldest > self.begin:
            self.begin = oldest
            gone = bisect_right(self._ends, oldest + 1)
            self._sealed_rows -= sum(batch.rows for batch in self._batches[:gone])
            del self._batches[:gone], self._ends[:gone]
            self._known.forget(oldest)
            if self._waiting.parts and oldest >= self._waiting.last:
                self._waiting.begin()
                self._sealed = self.last

    # ------------------------------------------------------------------------------------------------------------- reading

    def between(self, after: int, upto: int) -> Updates:
        """The changes of the rounds after `after` up to `upto`, round by round."""
        block = self._gathered(after, upto)
        block = block[:, np.argsort(block[-2], kind="stable")]
        return Updates(tuple(block[: self.arity]), block[-1], block[-2])

    def net(self, after: int, upto: int) -> Layer | None:
        """What these changes come to, each row once, at time 0; None where that is nothing."""
        block = self._gathered(after, upto)
        block[-2] = 0
        return build_block(block, self.arity)

    def last_needed(self, round: int, last: int) -> int:
        """The last round whose changes tell the relation as of one, given that as of the round `last`; 0 where its rows are
        known."""
        nearest = self._nearest(round, last)
        return 0 if nearest == round else max(round, nearest)

    def table(self, round: int, now: Callable[[], Table], last: int) -> Table:
        """The relation as of a round that can be read, given a way to read that of the round `last`."""
        if round == last:
            return now()
        table = self._past(round, now, last)
        self._known.note_read(last - round, table.rows)
        return table

    def selected(self, values: Values, round: int, now: Callable[[], Table], last: int) -> Table:
        """The rows as of a round that have these values, of which there are some, and perhaps others: all of those that are
        known, or just these where their changes can be sought, which all layers have in order of the first column."""
        nearest = self._nearest(round, last)
        if round in (last, nearest):
            return self.table(round, now, last)
        table = now() if nearest == last else self._known.of(nearest).table
        after, upto = min(nearest, round), max(nearest, round)
        layers = self._layers(after, upto)
        changes = sum([layer.rows for layer in layers])
        self._seeks += 1
        is_small = table.rows <= SMALL_ROWS and (changes <= SMALL_CHANGES or self._seeks > FEW_SEEKS)
        if is_small or (0 not in values and changes > table.rows):
            return self.table(round, lambda: table, last)
        found = ChangesWith(values, layers, after, upto, upto <= self._sealed)
        return found.changed(StoredRows.of(rows_with(values, table)), 0, 1 if nearest > round else -1).table()

    def _past(self, round: int, now: Callable[[], Table], last: int) -> Table:
        nearest = self._nearest(round, last)
        if nearest == last:
            return self._from(nearest, StoredRows.of(now()), round, last)
        known = self._known.of(nearest)
        return known.table if nearest == round else self._from(nearest, known.rows, round, last)

    def _nearest(self, round: int, last: int) -> int:
        """The round nearest to one whose rows are known; that of now is the nearest where adding up changes from the others on
        takes longer than to read it."""
        lead = CHANGES_PER_READ * (self.last - self.begin) // max(self.rows, 1)
        return self._known.nearest(round, last, lead)

    def _from(self, known: int, rows: StoredRows, round: int, last: int) -> Table:
        """The relation as of a round, of that of another. Where there are many changes in between, tables on the way are kept:
        adding up what lies between two of them takes no longer than reading one."""
        back, after, upto = known > round, min(known, round), max(known, round)
        layers, sign = self._layers(after, upto), 1 if back else -1
        summed = upto <= self._sealed
        step = max(MIN_STEP, (rows.rows + ROWS_OF_A_TABLE) // KEPT_ROWS_PER_CHANGE + 1)
        found = changed_at_once(rows, layers, after, upto, summed, sign, 2 * step)
        if found is not None:
            return self._known.keep(round, found, self.rows)
        picked = PickedChanges(layers, after, upto, summed)
        if picked.rows > 2 * step:
            picked = picked.cut(step)
        parts = range(picked.parts)
        for part in reversed(parts) if back else parts:
            rows = picked.changed(rows, part, sign)
            table = self._known.keep(picked.before(part if back else part + 1), rows, self.rows)
        return table

    def _layers(self, after: int, upto: int) -> list[Layer | Described]:
        """Those that have changes in between."""
        layers: list[Layer | Described] = [layer for batch in self._within(after, upto) for layer in batch.layers]
        if upto > self._sealed and self._waiting.parts:
            layers.append(self._waiting.layer())
        return layers

    def _gathered(self, after: int, upto: int) -> np.ndarray:
        """Columns, rounds and diffs of the changes in between, batch by batch."""
        parts = list(self._parts(after, upto))
        sizes = [layer.rows if chosen is None else len(chosen) for layer, chosen in parts]
        found, end = np.empty((self.arity + 2, sum(sizes)), np.int64), 0
        for (layer, chosen), size in zip(parts, sizes, strict=True):
            start, end = end, end + size
            for field in range(self.arity + 2):
                layer.copy_values(field, chosen, found[field, start:end])
        return found

    def _parts(self, after: int, upto: int) -> Iterable[tuple[Layer, np.ndarray | None]]:
        """The layers with changes in between, and which of theirs these are (None: all)."""
        for batch in self._between(after, upto):
            for layer in batch.layers:
                if after < _begin(batch) and _end(batch) <= upto + 1:
                    yield layer, None
                else:
                    rounds = layer.times()[0]
                    yield layer, np.flatnonzero((rounds > after) & (rounds <= upto))

    def _between(self, after: int, upto: int) -> list[Batch]:
        """The batches that may have changes in between; none wait then."""
        if upto > self._sealed:
            self._seal()
        return self._within(after, upto)

    def _within(self, after: int, upto: int) -> list[Batch]:
        first = bisect_right(self._ends, after + 1)
        return self._batches[first : bisect_left(self._ends, upto + 1, lo=first) + 1]


def _begin(batch: Batch) -> int:
    """The first round that a batch may have changes of."""
    return batch.description.lower.elements[0][0]


def _end(batch: Batch) -> int:
    """The round after the last one that it may have changes of."""
    return batch.description.upper.elements[0][0]


def _cut(rounds: np.ndarray, most: int) -> Iterable[tuple[int, int]]:
    """Parts of changes, whose rounds ascend, of so many at most, but for more in one round: none has some of a round only."""
    start, size = 0, -(-len(rounds) // -(-len(rounds) // most))
    while start < len(rounds):
        end = min(start + size, len(rounds))
        if end < len(rounds):
            whole = int(np.searchsorted(rounds, rounds[end]))
            end = whole if whole > start else int(np.searchsorted(rounds, rounds[start], side="right"))
        yield start, end
        start = end


def _refuse_strange(batches: Sequence[Batch]) -> None:
    """Raises ValueError where nobody can have written the rounds of batches: merges advance them, and readers that have seen
    what they add up to would see it change."""
    for batch in batches:
        (lower,), (upper,), (since,) = (f.elements[0] for f in _frontiers(batch))
        if not 0 <= lower < upper < MAX_ROUND or not 0 <= since < MAX_ROUND:
            raise ValueError("rounds do not ascend")
        for layer in batch.layers:
            rounds = layer.times()[0]
            settled = batch.oldest and layer.settled
            if not settled and not max(lower, 1) <= rounds.min() <= rounds.max() < max(upper, since + 1):
                raise ValueError("changes are not of the rounds of their batch")
    if compacted_to(batches) >= batches[-1].description.upper.elements[0][0]:
        raise ValueError("the last rounds are given up")
    if sum(layer.weight for batch in batches for layer in batch.layers) >= MAX_WEIGHT:
        raise ValueError("there are more changes than can be counted")


def _frontiers(batch: Batch) -> tuple[Antichain, Antichain, Antichain]:
    return batch.description.lower, batch.description.upper, batch.description.since


def compacted_to(batches: Sequence[Batch]) -> int:
    """The first round that batches of a trace tell apart from those before; 0 where that is all of them."""
    since = max(time[0] for batch in batches for time in batch.description.since)
    return since if since >= batches[0].description.lower.elements[0][0] else 0


def net_of(updates: Updates) -> Layer | None:
    """What changes come to, as `ChangeTrace.net` has it."""
    return build(updates.columns, (0,), updates.diffs) if updates.rows else None


def none(arity: int) -> Updates:
    """No changes."""
    empty = np.empty(0, np.int64)
    return Updates((empty,) * arity, empty, empty)
