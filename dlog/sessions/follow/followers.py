"""The followers of a session's rounds, notified after each commit: its history, open views of past rounds, subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Protocol
from weakref import WeakSet

import numpy as np

from dlog.arguments import MAX_COUNT, whole
from dlog.codec import Codec
from dlog.dataclass import dataclass, immutable
from dlog.engine.ir.rules import Program
from dlog.engine.trace.changes import net_of
from dlog.engine.trace.undoing import undone
from dlog.engine.values.differences import words
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.follow.changes import after, from_table, none
from dlog.sessions.follow.history import History, Journal, Window
from dlog.sessions.follow.sources import Moments, Source
from dlog.sessions.follow.subscriptions import Subscription
from dlog.sessions.mistakes import unreadable_round


class Reader(Protocol):
    """Somebody who may still read a round."""

    round: int


@immutable
class Committed:
    """A commit: the rounds after `before` up to `last`, and how to read its changes and the rows after it."""

    before: int
    last: int
    program: Program
    codec: Codec
    changes: Callable[[str], Updates]
    touched: Callable[[], Iterable[str]]
    """The relations that may have changes."""
    table: Callable[[str], Table]
    journal: Journal | None = None
    """What keeps its changes until the history wants them."""

    def table_at(self, relation: str, round: int) -> Table:
        """The rows as of a round of the commit, or as of the one before it."""
        if round >= self.last:
            return self.table(relation)
        net = net_of(self.changes_after(relation, round))
        return self.table(relation) if net is None else undone(self.table(relation), net)

    def changes_after(self, relation: str, round: int) -> Updates:
        """The changes of the rounds after one."""
        return after(self.changes(relation), round)


@dataclass(frozen=True, slots=True)
class _Past:
    """The rounds that a history has, up to the last commit."""

    history: History
    commit: Committed

    @property
    def program(self) -> Program:
        return self.commit.program

    @property
    def last(self) -> int:
        return self.commit.last

    @property
    def codec(self) -> Codec:
        return self.commit.codec

    def table_at(self, relation: str, round: int) -> Table:
        return self.history.table(self.program.relations[relation], lambda: self.commit.table(relation), round)

    def changes_after(self, relation: str, round: int) -> Updates:
        return self.history.between(self.program.relations[relation], round, self.last)


@dataclass(slots=True)
class _Following:
    """A subscription, what it is about, and the round it is to start at if that is still to come."""

    subscription: Subscription
    source: Source
    relation: str | None
    """The one relation that it is about."""
    start: int | None
    program: Program
    number: int

    @property
    def follows_all(self) -> bool:
        """Whether it is told of commits that change nothing in its relation."""
        return self.start is not None or self.relation is None or self.subscription.follows_all


class _Subscribed:
    """The subscriptions of a session, found by what a commit has touched."""

    def __init__(self) -> None:
        self._named: dict[str, list[_Following]] = {}
        self._others: list[_Following] = []
        """Those that are told of every commit."""
        self._program: Program | None = None
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._named or self._others)

    def __iter__(self) -> Iterator[_Following]:
        yield from list(self._others)
        for listed in list(self._named.values()):
            yield from listed

    def add(
        self, subscription: Subscription, source: Source, relation: str | None, start: int | None, program: Program
    ) -> _Following:
        self._count += 1
        made = _Following(subscription, source, relation, start, program, self._count)
        self._forget_closed([source.name])
        self._put(made)
        return made

    def followers_of(self, commit: Committed) -> list[_Following]:
        """The subscriptions to be notified of a commit, the oldest first; all where the program has changed."""
        known = self._program is commit.program
        self._program = commit.program
        named = commit.touched() if known else list(self._named)
        found = [f for name in named for f in self._named.get(name, ())]
        return sorted([*self._others, *found], key=lambda following: following.number)

    def sort(self, told: Sequence[_Following]) -> None:
        """Sorts subscriptions anew after these have been notified: some may have begun, or ended."""
        begun = [f for f in self._others if not f.follows_all]
        self._others = [f for f in self._others if f.follows_all and not f.subscription.closed]
        for following in begun:
            self._put(following)
        self._forget_closed({f.source.name for f in told})

    def _put(self, following: _Following) -> None:
        if following.follows_all:
            self._others.append(following)
        else:
            self._named.setdefault(following.source.name, []).append(following)

    def _forget_closed(self, names: Iterable[str]) -> None:
        for name in names:
            left = [f for f in self._named.pop(name, ()) if not f.subscription.closed]
            if left:
                self._named[name] = left

    def remove(self, following: _Following) -> None:
        following.subscription.close()
        self._others = [f for f in self._others if f is not following]
        self._forget_closed([following.source.name])

    def clear(self) -> None:
        for following in self:
            following.subscription.close()
        self._named, self._others = {}, []


class Followers:
    """All of them. `last_round` is the last round that this object knows of; `lock` is held for moments only, so that a view
    can be opened while a commit runs. The rest is used under the session's lock."""

    def __init__(self, window: Window) -> None:
        self.readers: WeakSet[Reader] = WeakSet()
        self.history = History(window)
        self.last_round = 0
        self.lock = Lock()
        self.waits = False
        """Whether a subscriber has ever asked that commits wait for it."""
        self._following = _Subscribed()

    def nobody(self, last: int) -> bool:
        """Whether nobody wants to hear of a commit up to `last`; then that is all there is to do."""
        with self.lock:
            if self.history.has_window or self._following or self.readers:
                return False
            if not self.history.is_empty:
                self.history.begin(last)
            self.last_round = last
            return True

    def wait_for_room(self) -> None:
        """Waits for slow subscribers that want commits to wait. The session's lock is not held: they may read meanwhile."""
        for following in self._following:
            following.subscription.wait_for_room()

    def committed(self, commit: Committed) -> None:
        """Notes the changes and delivers them; what callbacks raise comes out, the first of them, when all were called."""
        with self.lock:
            self._note(commit)
            self.last_round = commit.last
        if not self._following:
            return
        told = self._following.followers_of(commit)
        raised = [error for following in told if (error := _deliver(following, commit)) is not None]
        self._following.sort(told)
        if raised:
            raise raised[0]

    def keep_rows(self, commit: Committed) -> None:
        """Has the history keep the rows after a commit, of relations whose past somebody reads."""
        self.history.keep_rows(commit.program.relations, commit.table)

    def _note(self, commit: Committed) -> None:
        """Has the history take in the changes of a commit, as far as anybody may read the rounds before it."""
        history, readers = self.history, bool(self.readers)
        if not history.has_window and not readers:
            if not history.is_empty:
                history.begin(commit.last)
        elif history.last == commit.before and self._note_later(commit, readers):
            self.forget()
        elif history.last != commit.last or (readers and not history.window.general):
            noted = history.entry(commit.program.relations, commit.changes, commit.touched(), readers)
            history.note(commit.before, commit.last, noted)
            self.forget()
        else:
            self.forget()

    def _note_later(self, commit: Committed, readers: bool) -> bool:
        """Has the engine keep the changes of a commit until somebody wants to read them, if all are wanted and it does."""
        history = self.history
        if commit.journal is None or not (readers or history.window.general):
            return False
        return history.note_later(commit.before, commit.last, commit.journal, commit.program.relations)

    def read(self, reader: Reader, round: int | None) -> None:
        """Makes the reader's a round (None: the present one), readable as long as the reader exists, or until `leave`."""
        with self.lock:
            reader.round = self.last_round if round is None else whole("round", round, -MAX_COUNT, "the number of a round")
            self.check(reader.round)
            self.readers.add(reader)

    def check(self, round: int, relation: str | None = None) -> None:
        """Raises DlogError where a round of a relation, or of all, cannot be read."""
        oldest = self.oldest(relation)
        if not oldest <= round <= self.last_round:
            raise unreadable_round(round, oldest, self.last_round, relation)

    def oldest(self, relation: str | None = None) -> int:
        """The oldest round of a relation, or of any, that can be read."""
        history = self.history
        if history.last < self.last_round:  # nobody has asked for it since
            return self.last_round
        return min(history.oldest if relation is None else history.oldest_of(relation), self.last_round)

    def leave(self, reader: Reader) -> None:
        with self.lock:
            self.readers.discard(reader)
            self.forget()

    def keep(self, window: Window) -> None:
        """Has history go back as far as a window from now on."""
        with self.lock:
            if self.history.last < self.last_round:
                self.history.begin(self.last_round)
            self.history.keep(window)
            self.forget()
            self.history.trim()

    def forget(self) -> None:
        """Lets go of rounds that neither the history nor a view needs."""
        self.history.forget([reader.round for reader in self.readers] if self.readers else ())

    def subscribe(
        self, subscription: Subscription, source: Source, relation: str | None, start: int | None, commit: Committed
    ) -> None:
        """Begins with the rounds from `start` (None: now) on, of which `commit` is the last there is. `relation` is the one
        that it is about."""
        now = commit.last
        self.waits |= subscription.terms.slow == "wait"
        start = now if start is None else start
        if start < now:
            self.check(start, relation)
        if subscription.terms.up_to is not None and subscription.terms.up_to <= start:
            subscription.close()  # it ends before it begins
            return
        waits = start > now
        following = self._following.add(subscription, source, relation, start if waits else None, commit.program)
        if not waits:
            try:
                _begin(following, commit if start == now else _Past(self.history, commit), start)
            except BaseException:
                # Nobody gets the subscription: it could not be closed.
                self._following.remove(following)
                raise

    def close(self) -> None:
        self._following.clear()


def _deliver(following: _Following, commit: Committed) -> Exception | None:
    """Delivers a commit; what a callback raises is kept for later, what answering a question raises ends the subscription."""
    subscription, source = following.subscription, following.source
    try:
        if following.program is not commit.program:
            following.program = commit.program
            if not source.there(commit.program):
                subscription.close()
                return None
        if following.start is None:
            updates = source.changes(commit, commit.before)
        elif commit.last < following.start:
            return None
    except DlogError as error:
        subscription.fail(error)
        return None
    try:
        if following.start is None:
            subscription.deliver(updates, commit.last, source.codec(commit), source.relation)
        else:
            start, following.start = following.start, None
            _begin(following, commit, start)
    except Exception as error:
        return error
    return None


def _begin(following: _Following, moments: Moments, start: int) -> None:
    """The first delivery: all rows as of `start`, if asked for, then what happened since."""
    subscription, source = following.subscription, following.source
    then = source.rows(moments, start) if subscription.wants_rows else None
    updates = none(source.relation.arity) if start == moments.last else source.changes(moments, start)
    updates = updates if then is None else _beginning(then, start, updates)
    subscription.deliver(updates, moments.last, source.codec(moments), source.relation, start)


def _beginning(then: Table, start: int, later: Updates) -> Updates:
    """All rows of a round, then what happened since."""
    rows = from_table(tuple(words(column) for column in then.columns), then.rows, start)
    columns = tuple(np.concatenate(pair) for pair in zip(rows.columns, later.columns, strict=True))
    return Updates(columns, np.concatenate((rows.diffs, later.diffs)), np.concatenate((rows.rounds, later.rounds)))
