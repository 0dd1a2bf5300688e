"""The history of a session: the changes of its recent rounds, shared by everybody who reads a past one.

It goes back as far as the window asks for, in rounds or in time, and as far as open views do: each relation has a trace of its
changes (`dlog.engine.trace.changes`). Nothing is noted where nobody asks for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import timedelta
from functools import partial
from threading import RLock
from typing import Protocol

import numpy as np

from dlog.arguments import whole
from dlog.dataclass import dataclass
from dlog.engine.compile.past import is_declared
from dlog.engine.interruption import Delayed
from dlog.engine.ir.rules import Kind, Relation
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.changes import ChangeTrace, compacted_to
from dlog.engine.trace.layer import Layer
from dlog.engine.trace.past_rows import MANY_CHANGES
from dlog.engine.trace.values import ANY, Values
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.follow.changes import none
from dlog.sessions.marks import MARK
from dlog.sessions.marks import RELATION as MARKED

MARKS = 1024
"""Moments that a window of time is told by: it is longer than it was asked for by up to a part in so many."""


@dataclass(frozen=True, slots=True)
class Window:
    """How far back rounds can be read: so many, or so long; and of some relations at least so many."""

    rounds: int = 0
    duration: timedelta | None = None
    own: Mapping[str, int] = field(default_factory=dict)

    @property
    def general(self) -> bool:
        """Whether it is for all relations."""
        return bool(self.rounds or self.duration)

    def __bool__(self) -> bool:
        return self.general or bool(self.own)


def window(given: int | timedelta) -> Window:
    """The window that is meant. Raises DlogError for what means none."""
    if isinstance(given, timedelta) and given >= timedelta(0):
        return Window(duration=given or None)
    try:
        return Window(whole("history", given, 0, "a number of rounds, 0 or more, or a timedelta"))
    except DlogError as error:
        raise DlogError([replace(found, code="bad-history") for found in error.diagnostics]) from None


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """The changes of a commit at a time, by relation: if `general` of all that changed, with the kinds of their rows."""

    general: bool
    time: int
    changes: Mapping[str, tuple[tuple[Kind, ...], Updates]]


class Journal(Protocol):
    """An engine, which keeps what commits change until somebody wants it (`dlog.engine.rounds_engine`)."""

    def journal(self) -> int | None: ...
    def take_journal(self) -> dict[str, Updates]: ...


@dataclass(frozen=True, slots=True)
class _Kept:
    """Changes that an engine keeps: those of the rounds after `before`, of these relations."""

    journal: Journal
    relations: Mapping[str, Relation]
    before: int


@dataclass(frozen=True, slots=True)
class Mark:
    """The round that was the last one at a time, in nanoseconds since 1970."""

    round: int
    time: int


@dataclass(frozen=True, slots=True)
class FrozenHistory:
    """A history at one time: the oldest round of relations with windows of their own; for all others moments, of which the
    first is of the oldest round; and the kinds and the changes of relations."""

    own: int
    marks: tuple[Mark, ...]
    batches: Mapping[str, tuple[tuple[Kind, ...], Sequence[Batch]]]


class History:
    """The changes of the rounds up to `last`."""

    def __init__(self, window: Window, clock: Callable[[], int] = time.time_ns) -> None:
        self.window, self.has_window = window, bool(window)
        """How far back it goes, and whether that is anywhere, without open views."""
        self.last = 0
        self._clock = clock
        self._lock = RLock()
        self._general = self._before = 0
        """The oldest round of which all relations can be read; and before the last commit was noted."""
        self._own: dict[str, int] = dict.fromkeys(window.own, 0)
        """That of relations with windows of their own."""
        self.traces: dict[str, tuple[tuple[Kind, ...], ChangeTrace]] = {}
        """By relation its kinds and its changes, those that changed last at the end."""
        self._read: set[str] = set()
        """Relations whose past somebody has read of late."""
        self._untidy: set[str] = set()
        """Relations of which changes were noted as somebody read: the next commit tidies their traces."""
        self._kept: _Kept | None = None
        """The last commits, whose changes the engine keeps."""
        self._journaled = 0
        """Words that those of the last commit take there; 0 where it was noted at once."""
        self._marks: list[Mark] = []
        self.marking: Updates | None = None
        """The marks that the commit under way gives its rounds."""

    # ------------------------------------------------------------------------------------------------------------- writing

    def note(self, before: int, last: int, noted: HistoryEntry) -> None:
        """Takes in the changes of the rounds after `before` up to `last`. May be told again, if more is noted then."""
        with self._lock:
            self.settle()
            self._journaled = 0
            self._go_on(before, last, noted.time)
            for name, (kinds, updates) in noted.changes.items():
                self._add(name, kinds, updates, before)
            self._general = self._before if noted.general else last

    def note_later(self, before: int, last: int, journal: Journal, relations: Mapping[str, Relation]) -> bool:
        """The same of all relations, whose changes the engine keeps until somebody reads them, or it has many; false where it
        does not."""
        words = journal.journal()
        if words is None:
            return False
        with self._lock:
            self._journaled = words
            if self._kept is None:
                self._kept = _Kept(journal, relations, before)
            self._go_on(before, last, self._clock() if self.window.duration is not None else 0)
            self._general = self._before
            if self.marking is not None:
                self._add(MARK, MARKED.kinds, self.marking, before)
        return True

    def settle(self, reads: bool = False) -> None:
        """Takes in what the engine has kept: as it is to give way to another one, or as somebody `reads`, who is not to wait
        for more than that."""
        if self._kept is None:
            return
        with self._lock, Delayed():
            kept, self._kept = self._kept, None
            if kept is not None:
                for name, updates in kept.journal.take_journal().items():
                    if updates.rows and name in kept.relations and is_declared(name):
                        self._add(name, kept.relations[name].kinds, updates, kept.before, not reads)
                        if reads:
                            self._untidy.add(name)

    def _go_on(self, before: int, last: int, time: int) -> None:
        """Goes on to a round, and does what readers have put off."""
        if self.last not in (before, last):
            self.begin(before)
        if self.last != last:
            self._before, self.last = self._general, last
            self._mark(time)
        while self._untidy:
            name = self._untidy.pop()
            if name in self.traces:
                self.traces[name][1].tidy(self._oldest_of(name))

    def _add(self, name: str, kinds: tuple[Kind, ...], updates: Updates, before: int, tidies: bool = True) -> None:
        """Adds changes of a relation in rounds after `before`, unless they are there."""
        self._trace(name, kinds, before).note(updates, self._oldest_of(name), tidies)

    def entry(
        self, relations: Mapping[str, Relation], changes: Callable[[str], Updates], touched: Iterable[str], readers: bool
    ) -> HistoryEntry:
        """What is to be noted of a commit: the changes of all relations, or of those that have windows of their own."""
        general, own, found = self.window.general or readers, self.window.own, {}
        for name in touched:
            if (general or name in own) and name in relations and is_declared(name):
                updates = changes(name)
                if updates.rows:
                    found[name] = relations[name].kinds, updates
        if general and self.marking is not None:
            found[MARK] = MARKED.kinds, self.marking
        return HistoryEntry(general, self._clock() if self.window.duration is not None else 0, found)

    def begin(self, round: int) -> None:
        """Forgets everything: no round before this one can be read."""
        with self._lock:
            self.settle()
            self.last = self._general = self._before = round
            self._own, self.traces, self._marks = dict.fromkeys(self.window.own, round), {}, []

    def keep(self, window: Window) -> None:
        """Goes back as far as a window from now on."""
        with self._lock:
            self.window, self.has_window = window, bool(window)
            self._own = {name: self._own.get(name, self._general) for name in window.own}

    def drop(self, relations: Iterable[str]) -> None:
        """Forgets relations: what has their names from now on is another one."""
        with self._lock:
            self.settle()
            for name in relations:
                self.traces.pop(name, None)

    def keep_rows(self, relations: Mapping[str, Relation], table: Callable[[str], Table]) -> None:
        """After a commit, keeps the rows as they are now of relations whose past somebody reads, and of which much has changed:
        to undo that later takes longer than a copy."""
        if not self._read or 0 < self._journaled < MANY_CHANGES:
            return
        with self._lock, suppress(MemoryError):  # rows that are not kept are found from others
            for name in tuple(self._read):
                found = self._known_trace(relations[name]) if name in relations else None
                if found is None or not found.is_read(self.last):
                    self._read.discard(name)
                else:
                    most = self._journaled // (found.arity + 2) if self._journaled else found.noted(self.last)
                    found.keep_rows(self.last, most, partial(table, name))

    def _trace(self, name: str, kinds: tuple[Kind, ...], before: int) -> ChangeTrace:
        """The trace of a relation, which is now the last in order; a new one where its rows are of other kinds now."""
        found = self.traces.pop(name, None)
        if found is None or found[0] != kinds:
            found = kinds, ChangeTrace(len(kinds), before)
        self.traces[name] = found
        return found[1]

    def _mark(self, now: int) -> None:
        """Notes the time of a commit, but for those that come in quick succession."""
        if self.window.duration is not None:
            if not self._marks:
                self._marks = [Mark(self._before, now)]
            if len(self._marks) > 1 and now - self._marks[-2].time < _nanoseconds(self.window.duration) // MARKS:
                self._marks.pop()
            self._marks.append(Mark(self.last, now))

    def forget(self, readers: Sequence[int] = ()) -> None:
        """Gives up rounds that neither the window nor any of these readers needs."""
        with self._lock:
            wanted = self._window_start()
            held = min(readers) if readers else wanted
            self._general = self._before = max(self._general, min(wanted, held))
            for name, rounds in self.window.own.items():
                oldest = min(wanted, self.last - rounds, held)
                self._own[name] = max(self._own.get(name, self._general), oldest)
            while self.traces and self._kept is None:  # else they may have changes that the engine keeps
                name = next(iter(self.traces))
                if self.traces[name][1].last > self._oldest_of(name):
                    return
                del self.traces[name]

    def trim(self) -> None:
        """Frees what has been given up at once; else that is done bit by bit, as changes come."""
        with self._lock:
            self.settle()
            for name, (_, trace) in self.traces.items():
                trace.forget(self._oldest_of(name))

    def _window_start(self) -> int:
        """The oldest round that the window asks for."""
        if self.window.duration is None:
            return self.last - self.window.rounds
        start = self._clock() - _nanoseconds(self.window.duration)
        while len(self._marks) > 1 and self._marks[1].time <= start:
            del self._marks[0]
        return self._marks[0].round if self._marks else self.last

    def _oldest_of(self, name: str) -> int:
        return min(self._own.get(name, self._general), self._general)

    # ------------------------------------------------------------------------------------------------------------- reading

    @property
    def is_empty(self) -> bool:
        """Whether it has no changes."""
        return self._kept is None and not self.traces

    @property
    def oldest(self) -> int:
        """The oldest round of which any relation can be read."""
        return min([self._general, *self._own.values()])

    def oldest_of(self, relation: str) -> int:
        """The oldest round of which a relation can be read."""
        return self._oldest_of(relation)

    def between(self, relation: Relation, after: int, upto: int) -> Updates:
        """The changes of a relation in the rounds after a readable one up to another, round by round."""
        with self._lock:
            trace = self._trace_of(relation, upto)
            return none(relation.arity) if trace is None else trace.between(after, upto)

    def net(self, relation: Relation, after: int, upto: int) -> Layer | None:
        """What these changes come to."""
        with self._lock:
            trace = self._trace_of(relation, upto)
            return None if trace is None else trace.net(after, upto)

    def marks(self) -> Updates:
        """The marks of the rounds after the oldest of which all relations can be read."""
        return self.between(MARKED, self._general, self.last)

    def table(self, relation: Relation, now: Callable[[], Table], round: int, values: Values = ANY) -> Table:
        """The rows as of a readable round, given a way to read those of now; some that have other values than these may be
        left out."""
        with self._lock:
            trace = self._known_trace(relation)
            trace = self._trace_of(relation, self.last if trace is None else trace.last_needed(round, self.last))
            if trace is None:
                return now()
            if values:
                return trace.selected(values, round, now, self.last)
            self._read.add(relation.name)
            return trace.table(round, now, self.last)

    def _trace_of(self, relation: Relation, upto: int) -> ChangeTrace | None:
        """The changes of a relation, all of those up to a round."""
        if self._kept is not None and upto > self._kept.before:
            self.settle(reads=True)
        return self._known_trace(relation)

    def _known_trace(self, relation: Relation) -> ChangeTrace | None:
        """The same, without what the engine keeps."""
        kinds, trace = self.traces.get(relation.name, (relation.kinds, None))
        return trace if kinds == relation.kinds else None

    # ---------------------------------------------------------------------------------------------------------- persistence

    @property
    def nbytes(self) -> int:
        """Bytes of the changes of all relations."""
        self.settle()
        return sum(trace.nbytes for _, trace in self.traces.values())

    @property
    def rows(self) -> int:
        """Changes that are kept."""
        self.settle()
        return sum(trace.rows for _, trace in self.traces.values())

    def frozen(self) -> FrozenHistory | None:
        """A snapshot that later changes leave as it is; None where no history is asked for beyond open views."""
        with self._lock:
            if not self.window:
                return None
            self.settle()
            kept = {n: t for n, t in self.traces.items() if self.window.general or n in self.window.own}
            marks = [Mark(self._general, self._clock()), *self._marks[1:]] if self.window.general else []
            if self._marks and marks:
                marks[0] = self._marks[0]
            own = min(self._own.values(), default=self.last)
            return FrozenHistory(own, tuple(marks), {n: (kinds, trace.batches) for n, (kinds, trace) in kept.items()})

    def restore(self, kept: FrozenHistory, last: int) -> None:
        """Goes on from a snapshot as of the round `last`. Raises ValueError where nobody can have made it."""
        with self._lock:
            self.begin(last)
            there = {name: found for name, found in kept.batches.items() if found[1]}
            traces = {name: (kinds, ChangeTrace.of(len(kinds), batches)) for name, (kinds, batches) in there.items()}
            if any(trace.last > last for _, trace in traces.values()):
                raise ValueError("it has later rounds than there are")
            if min([kept.own, *(mark.round for mark in kept.marks)]) < 0:
                raise ValueError("it has rounds before the first")
            compacted = {name: compacted_to(batches) for name, (_, batches) in there.items()}
            if kept.marks and max(compacted.values(), default=0) > kept.marks[0].round:
                raise ValueError("it does not tell rounds apart that can be read")
            self.traces = dict(sorted(traces.items(), key=lambda item: item[1][1].last))
            own = self.window.own.items()
            self._own = {name: max(kept.own, last - rounds, compacted.get(name, 0)) for name, rounds in own}
            if kept.marks and kept.marks[0].round <= last:
                self._general = self._before = kept.marks[0].round
                self._marks = list(kept.marks) if self.window.duration is not None else []


def _nanoseconds(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1) * 1000


def changes_of(relation: Relation, net: Layer | None, round: int) -> Updates:
    """Net changes as those of a round."""
    if net is None:
        return none(relation.arity)
    return Updates(net.columns(), net.diffs(), np.full(net.rows, round, np.int64))
