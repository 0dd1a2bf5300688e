"""Subscriptions: a relation, or the answers to a question, as a stream of rounds, each with its changes, no two rounds mixed.

The sum of what a subscriber got up to a round is the relation as of that round: first a snapshot (all rows as insertions, at
the round the subscription starts), then the changes of each later round, in order. With `progress` the first round and the last
one of every commit are delivered even if nothing changed: an item says that all up to its round has been delivered.

What has arrived waits until it is taken, up to a limit. A subscriber that is slower than that has its session's next commit
wait for it, or its subscription ends and says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import isnan
from threading import Condition, get_ident
from typing import TYPE_CHECKING, Literal, TypeAlias

from dlog.arguments import bad_argument, whole_or_none
from dlog.codec import Codec
from dlog.dataclass import dataclass
from dlog.engine.interruption import Delayed
from dlog.engine.ir.rules import Relation
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.follow.changes import none, split
from dlog.sessions.follow.envelopes import Delivered, Envelope
from dlog.sessions.mistakes import slow_subscriber

if TYPE_CHECKING:
    import asyncio

Callback: TypeAlias = Callable[[int, Delivered], object]
Item: TypeAlias = tuple[int, Delivered]
Slow = Literal["end", "wait"]
LIMIT = 1_000_000
"""Changes that wait for a subscriber by default: trades memory against the patience with slow ones."""


@dataclass(frozen=True, slots=True)
class SubscriptionTerms:
    """What a subscriber asked for; see `Session.subscribe`."""

    snapshot: bool = True
    progress: bool = False
    up_to: int | None = None
    limit: int = LIMIT
    slow: Slow = "end"


class Subscription:
    """One subscriber; a context manager that closes it.

    Iterating waits for rounds and ends when the subscription, or its session, is closed, or `up_to` is reached; so does `async
    for`, which lets other tasks run meanwhile. `fetch` takes what is there. With a callback nothing is left to take: it is
    called in the thread that commits, after the commit.
    """

    def __init__(self, name: str, terms: SubscriptionTerms, envelope: Envelope, callback: Callback | None) -> None:
        self.name, self.terms = name, terms
        self._envelope, self._callback = envelope, callback
        self._waiting: deque[tuple[int, Iterator[Item]]] = deque()
        """By commit, how many changes there are, and the items."""
        self._size = 0
        self._first: Item | None = None
        """The first of those that wait, where it has been looked at."""
        self._arrived = Condition()
        self._wakers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._reader: int | None = None
        """The thread that took something last."""
        self._open = True
        self._error: DlogError | None = None

    @property
    def closed(self) -> bool:
        """Whether no more rounds will come."""
        return not self._open

    @property
    def follows_all(self) -> bool:
        """Whether it takes note of commits that change nothing in what it is about."""
        return self.terms.progress or self.terms.up_to is not None

    @property
    def wants_rows(self) -> bool:
        """Whether it has to know the rows that there are at first."""
        return self.terms.snapshot or self._envelope.needs_rows

    @property
    def waiting(self) -> int:
        """How many changes wait to be taken, about."""
        return self._size

    # ---------------------------------------------------------------------------------------------------------- delivering

    def deliver(self, updates: Updates, last: int, codec: Codec, relation: Relation, first: int | None = None) -> None:
        """Takes the changes of one commit, which ended with the round `last`; of the beginning, which is the round `first`."""
        if not self._open:
            return
        if updates.rows or self.terms.progress:
            items = self._items(updates, last, codec, relation, first)
            if self._callback is None:
                self._enqueue(updates.rows, items, last)
            else:
                for round, changes in items:
                    self._callback(round, changes)
        if self.terms.up_to is not None and last + 1 >= self.terms.up_to:
            self.close()

    def _enqueue(self, rows: int, items: Iterator[Item], last: int) -> None:
        """Has items wait to be taken, unless there are too many of them."""
        size = max(rows, 1)  # a commit that changes nothing waits, too
        with self._arrived:
            full = self._size and self._size + size > self.terms.limit
            if full and (self.terms.slow == "end" or self._reader == get_ident()):
                self._end(slow_subscriber(self.name, self._size, self.terms.limit, last))
                return
            self._waiting.append((size, items))
            self._size += size
            self._notify()

    def wait_for_room(self) -> None:
        """Waits until a slow subscriber, for whom commits are to wait, has taken what there is above its limit. One that reads
        in this thread cannot."""
        with self._arrived:
            if self.terms.slow == "wait" and self._reader != get_ident():
                self._arrived.wait_for(lambda: self._size <= self.terms.limit or not self._open)

    def _items(
        self, updates: Updates, last: int, codec: Codec, relation: Relation, first: int | None
    ) -> Iterator[Item]:
        end = last + 1 if self.terms.up_to is None else min(last + 1, self.terms.up_to)
        reached = -1
        if self.terms.progress and first is not None and first < end and not (updates.rows and updates.first <= first):
            reached = first
            yield first, self._envelope.of(relation, none(relation.arity), codec)
        for round, changed in split(updates):
            if round >= end:
                break
            found = self._envelope.of(relation, changed, codec, hidden=round == first and not self.terms.snapshot)
            if found or self.terms.progress:
                reached = round
                yield round, found
        if self.terms.progress and reached < end - 1:
            yield end - 1, self._envelope.of(relation, none(relation.arity), codec)

    def fail(self, error: DlogError) -> None:
        """Ends the subscription with an error, which is raised when all that has arrived is taken."""
        with self._arrived:
            self._error, self._open = error, False
            self._notify()

    def _end(self, error: DlogError) -> None:
        """Ends it with an error at once: what has arrived is gone."""
        self._error, self._open, self._size, self._first = error, False, 0, None
        self._waiting.clear()
        self._notify()

    def close(self) -> None:
        """Ends the subscription; what has arrived can still be taken."""
        with self._arrived:
            self._open = False
            self._notify()

    def _notify(self) -> None:
        """Wakes whoever waits for something to take, or for room."""
        self._arrived.notify_all()
        wakers, self._wakers = self._wakers, []
        for loop, waker in wakers:
            with suppress(RuntimeError):  # the loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(_wake, waker)

    # -------------------------------------------------------------------------------------------------------------- taking

    def fetch(self, timeout: float | None = 0.0, most: int | None = None) -> list[Item]:
        """The rounds that have arrived. If there is none, waits up to `timeout` seconds for one (None: until one comes or the
        subscription is closed). With `most` no more of them than have so many changes together, but one at least: no round is
        parted."""
        changes = whole_or_none("most", most, 1, "a number of changes, 1 or more")
        self._wait(timeout)
        return self._take_available(None, changes)

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        self._wait(None)
        found = self._take_available(1)
        if not found:
            raise StopIteration
        return found[0]

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Item:
        from asyncio import get_running_loop  # not before it is used: most sessions have no use for it, and it is large

        while True:
            found = self._take_available(1)
            if found:
                return found[0]
            with self._arrived:
                if self._has_items():
                    continue
                if not self._open:
                    self._raise()
                    raise StopAsyncIteration
                loop = get_running_loop()
                waker: asyncio.Future[None] = loop.create_future()
                self._wakers.append((loop, waker))
            try:
                await waker
            finally:
                with self._arrived:
                    self._wakers = [other for other in self._wakers if other[1] is not waker]

    def _take_available(self, most: int | None, changes: int | None = None) -> list[Item]:
        """Takes items that are there, up to so many, with up to so many changes if it is more than one. An interruption puts
        them back."""
        found: list[Item] = []
        room = None
        try:
            with Delayed():
                while (most is None or len(found) < most) and (item := self._take(room)) is not None:
                    found.append(item)
                    if changes is not None:
                        room = changes = changes - len(item[1])
        except BaseException:
            self._put_back(found)
            raise
        if not found:
            self._raise()
        return found

    def _raise(self) -> None:
        """Raises the error that ended the subscription, once."""
        with self._arrived:
            error, self._error = self._error, None
        if error is not None:
            raise error

    def _wait(self, timeout: float | None) -> None:
        """Waits until there may be something to take, nothing will come any more, or the time is over."""
        if timeout is not None and (not isinstance(timeout, int | float) or isnan(timeout)):
            raise bad_argument("timeout", "a number of seconds, or None", timeout)
        with self._arrived:
            self._reader = get_ident()
            self._arrived.wait_for(lambda: self._has_items() or not self._open, timeout)

    def _has_items(self) -> bool:
        """Whether there is something to take; forgets commits of which all has been taken."""
        while self._first is None and self._waiting:
            size, items = self._waiting[0]
            try:
                self._first = next(items, None)
            except DlogError as error:
                self._end(error)
                return False
            if self._first is None:
                self._waiting.popleft()
                self._size -= size
                self._arrived.notify_all()
        return self._first is not None

    def _take(self, room: int | None = None) -> Item | None:
        """The first item, unless it has more changes than there is room for."""
        with self._arrived:
            self._reader = get_ident()
            self._has_items()
            if room is not None and self._first is not None and len(self._first[1]) > room:
                return None
            item, self._first = self._first, None
            self._has_items()
            return item

    def _put_back(self, items: list[Item]) -> None:
        """Puts back items that an interruption kept from their reader."""
        with self._arrived:
            later = [] if self._first is None else [self._first]
            self._first = None
            self._waiting.appendleft((0, iter([*items, *later])))

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<dlog.Subscription to {self.name}{', closed' if self.closed else ''}>"


def _wake(waker: asyncio.Future[None]) -> None:
    if not waker.done():
        waker.set_result(None)
