"""Subscriptions: a relation as a stream of rounds, each with its changes, never two rounds mixed.

The sum of what a subscriber got up to a round is the relation as of that round: first a snapshot (all rows as insertions, at
the round the subscription starts), then the changes of each later round, in order. With `progress` the last round of every
commit is delivered even if nothing changed, and says that all up to it has been delivered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from math import isnan
from threading import Condition
from typing import TypeAlias

from dlog.arguments import bad_argument
from dlog.engine.interruption import Delayed
from dlog.engine.ir.rules import Relation
from dlog.engine.values.updates import Updates
from dlog.sessions.follow.changes import Changes, none, split
from dlog.values import Codec

Callback: TypeAlias = Callable[[int, Changes], object]
Item: TypeAlias = tuple[int, Changes]


class Subscription:
    """One subscriber; a context manager that closes it.

    Iterating waits for rounds and ends when the subscription, or its session, is closed, or `up_to` is reached; `fetch` takes
    what is there. With a callback nothing is left to take: it is called in the thread that commits, after the commit.
    """

    def __init__(self, relation: Relation, callback: Callback | None, progress: bool, up_to: int | None) -> None:
        self.relation = relation
        self._callback = callback
        self._progress = progress
        self._up_to = up_to
        self._waiting: deque[Iterator[Item]] = deque()
        self._first: Item | None = None
        """The first of those that wait, where it has been looked at."""
        self._arrived = Condition()
        self._open = True

    @property
    def closed(self) -> bool:
        """Whether no more rounds will come."""
        return not self._open

    @property
    def follows_all(self) -> bool:
        """Whether it takes note of commits that change nothing in its relation."""
        return self._progress or self._up_to is not None

    # ---------------------------------------------------------------------------------------------------------- delivering

    def deliver(self, updates: Updates, last: int, codec: Codec, relation: Relation) -> None:
        """Takes the changes of one commit, which ended with the round `last`."""
        if not self._open:
            return
        if updates.rows or self._progress:
            items = self._items(updates, last, codec, relation)
            if self._callback is None:
                with self._arrived:
                    self._waiting.append(items)
                    self._arrived.notify_all()
            else:
                for round, changes in items:
                    self._callback(round, changes)
        if self._up_to is not None and last + 1 >= self._up_to:
            self.close()

    def _items(self, updates: Updates, last: int, codec: Codec, relation: Relation) -> Iterator[Item]:
        end = last + 1 if self._up_to is None else min(last + 1, self._up_to)
        reached = -1
        for reached, changes in split(updates):
            if reached >= end:
                return
            yield reached, Changes(relation, changes, codec)
        if self._progress and reached < end - 1:
            yield end - 1, Changes(relation, none(relation.arity), codec)

    def close(self) -> None:
        """Ends the subscription; what has arrived can still be taken."""
        with self._arrived:
            self._open = False
            self._arrived.notify_all()

    # -------------------------------------------------------------------------------------------------------------- taking

    def fetch(self, timeout: float | None = 0.0) -> list[Item]:
        """The rounds that have arrived. If there is none, waits up to `timeout` seconds for one (None: until one comes or the
        subscription is closed)."""
        self._wait(timeout)
        found: list[Item] = []
        try:
            with Delayed():
                while (item := self._take()) is not None:
                    found.append(item)
        except BaseException:
            self._put_back(found)
            raise
        return found

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        self._wait(None)
        found: list[Item] = []
        try:
            with Delayed():
                if (item := self._take()) is not None:
                    found.append(item)
        except BaseException:
            self._put_back(found)
            raise
        if not found:
            raise StopIteration
        return found[0]

    def _wait(self, timeout: float | None) -> None:
        """Waits until there may be something to take, nothing will come any more, or the time is over."""
        if timeout is not None and (not isinstance(timeout, int | float) or isnan(timeout)):
            raise bad_argument("timeout", "a number of seconds, or None", timeout)
        with self._arrived:
            self._arrived.wait_for(lambda: self._has_items() or not self._open, timeout)

    def _has_items(self) -> bool:
        """Whether there is something to take; forgets commits of which all has been taken."""
        while self._first is None and self._waiting:
            self._first = next(self._waiting[0], None)
            if self._first is None:
                self._waiting.popleft()
        return self._first is not None

    def _take(self) -> Item | None:
        with self._arrived:
            self._has_items()
            item, self._first = self._first, None
            return item

    def _put_back(self, items: list[Item]) -> None:
        """Puts back items that an interruption kept from their reader."""
        with self._arrived:
            later = [] if self._first is None else [self._first]
            self._first = None
            self._waiting.appendleft(iter([*items, *later]))

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<dlog.Subscription to {self.relation.name}{', closed' if self.closed else ''}>"
