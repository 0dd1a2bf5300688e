"""The sums of groups whose elements are no numbers of a trace: one element of each key is kept, and nothing of what made it.

Rows are parts: a key, words that end with a value, and how often the value comes. What a batch changes is found round by round,
by the sums of each key up to there. At totally ordered times only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.operators.delta import Columns, Delta, Moment, run_starts
from dlog.engine.operators.operator import Operator, joined
from dlog.engine.operators.readings import Trace
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope
from dlog.grammar.diagnostics import DlogError

BEFORE = -1
"""The round at which stands what there was before a batch."""


class Fold(Protocol):
    """How values become elements, and elements are added up, in arrays."""

    def elements(self, words: np.ndarray, diffs: np.ndarray) -> np.ndarray:
        """Those of values, each so many times."""

    def sums(self, elements: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """The sum of each run."""

    def scan(self, elements: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """The sums of each run up to each element."""

    def there(self, elements: np.ndarray) -> np.ndarray:
        """Which are more than nothing."""

    def words(self, elements: np.ndarray) -> np.ndarray:
        """Their values in a column."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """The sums of keys from round to round: `owners` are the numbers of the keys, `rounds` ascend for each."""

    owners: np.ndarray
    rounds: np.ndarray
    elements: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        return run_starts((self.owners,), len(self.owners))


class Accumulated(Operator):
    """Emits the sum of each key, one row: the key, the words between, and its value. `refused` makes a mistake of an update
    that takes a value away, where there is no way back."""

    def __init__(
        self, scheduler: Scheduler, scope: Scope, keys: int, fold: Fold, refused: Callable[[Delta], DlogError] | None
    ) -> None:
        super().__init__(scheduler, scope)
        self.keys, self.fold, self.refused = keys, fold, refused
        self.places = Trace(keys + 1, scope.depth)
        """The keys that have a sum, and where it is."""
        self._elements: np.ndarray | None = None
        self._free = np.empty(0, np.int64)

    @property
    def traces(self) -> Sequence[Trace]:
        return (self.places,)

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if delta is None or not (delta := delta.consolidated()).rows:
            return
        if self.refused is not None and (delta.diffs < 0).any():
            gone = np.flatnonzero(delta.diffs < 0)
            raise self.refused(delta.only(gone[[delta.rounds[gone].argmin()]]))
        made = self._changed(delta, moment)
        if made.rows:
            self.emit(made)

    def _changed(self, delta: Delta, moment: Moment) -> Delta:
        """What changes in the sums where some parts have come, and what is kept of them then."""
        delta = delta.only(np.lexsort((delta.rounds, *delta.columns[: self.keys][::-1])))
        starts = run_starts((*delta.columns[: self.keys], delta.rounds), delta.rows)
        elements = self.fold.sums(self.fold.elements(delta.columns[-1], delta.diffs), starts)
        columns, rounds = tuple(column[starts] for column in delta.columns[:-1]), delta.rounds[starts]
        firsts = run_starts(columns[: self.keys], len(starts))
        owners = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(starts)))
        columns = tuple(column[firsts] for column in columns)
        known, places = self._known(columns[: self.keys], len(firsts))
        sums = self._scanned(_Sums(owners, rounds, elements), firsts, known, places)
        there = self.fold.there(sums.elements)
        words = np.zeros(len(there), np.int64)
        words[there] = self.fold.words(sums.elements[there])
        ends = np.append(sums.starts[1:], len(there)) - 1
        self._keep(columns[: self.keys], known, places, sums.elements[ends], there[ends], moment)
        return _changes(columns, sums, there, words)

    def _known(self, keys: Columns, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the keys that have a sum, in order, and where it is."""
        found = self.places.reading().lookup(keys, count)
        columns = found.probes, found.delta.columns[-1]
        there = Delta(columns, np.zeros_like(found.delta.times), found.delta.diffs).consolidated()
        return there.columns[0], there.columns[1]

    def _scanned(self, came: _Sums, firsts: np.ndarray, known: np.ndarray, places: np.ndarray) -> _Sums:
        """The sums as they are after each round, for keys that have one also as they were before."""
        before = firsts[known] + np.arange(len(known))
        after = np.ones(len(came.owners) + len(known), bool)
        after[before] = False
        owners, rounds = np.empty(len(after), np.int64), np.full(len(after), BEFORE)
        elements = np.empty(len(after), came.elements.dtype)
        owners[after], rounds[after], elements[after] = came.owners, came.rounds, came.elements
        owners[before] = known
        if len(known):
            assert self._elements is not None
            elements[before] = self._elements[places]
        return _Sums(owners, rounds, self.fold.scan(elements, run_starts((owners,), len(owners))))

    def _keep(
        self, keys: Columns, known: np.ndarray, places: np.ndarray, elements: np.ndarray, there: np.ndarray, moment: Moment
    ) -> None:
        """Keeps the sums of all keys that have one."""
        held = np.full(len(elements), -1)
        held[known] = places
        new, gone = np.flatnonzero(there & (held < 0)), np.flatnonzero(~there & (held >= 0))
        held[new] = self._room(len(new), elements.dtype)
        assert self._elements is not None
        self._elements[held[there]] = elements[there]
        self._elements[held[gone]] = None if elements.dtype == object else 0
        self._free = np.concatenate([self._free, held[gone]])
        changed = np.concatenate([new, gone])
        if len(changed):
            columns = (*(key[changed] for key in keys), held[changed])
            times, diffs = np.full((1, len(changed)), self.rounds.low), np.repeat([1, -1], [len(new), len(gone)])
            self.places.insert(Delta(columns, times, diffs), self.rounds, moment)

    def _room(self, count: int, dtype: np.dtype[Any]) -> np.ndarray:
        """Places for so many more elements."""
        if self._elements is None:
            self._elements = np.empty(0, dtype)
        if count > len(self._free):
            held, more = len(self._elements), max(count, len(self._elements))
            self._elements = np.concatenate([self._elements, np.empty(more, dtype)])
            self._free = np.concatenate([self._free, np.arange(held + more - 1, held - 1, -1)])
        split = len(self._free) - count
        taken, self._free = self._free[split:], self._free[:split]
        return taken


def _changes(columns: Columns, sums: _Sums, there: np.ndarray, words: np.ndarray) -> Delta:
    """The updates that lead from one sum of a key to the next; `columns` are those of the keys, and what stands behind them."""
    follows = np.flatnonzero(sums.owners[1:] == sums.owners[:-1]) + 1
    goes, comes = follows[there[follows - 1]], np.flatnonzero(there & (sums.rounds > BEFORE))
    numbers, at = np.concatenate([goes - 1, comes]), np.concatenate([goes, comes])
    rows = (*(column[sums.owners[numbers]] for column in columns), words[numbers])
    diffs = np.repeat([-1, 1], [len(goes), len(comes)])
    return Delta(rows, sums.rounds[at][None, :], diffs).consolidated()
