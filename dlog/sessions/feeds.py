"""Relations that are fed by collections, and what these have staged for the next commit."""

from __future__ import annotations

from collections.abc import Container
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

from dlog.sessions.ingest.staged_changes import Diff

if TYPE_CHECKING:
    from dlog.engine.operators.scheduler import Scheduler


class Fed(Protocol):
    """What feeds need of their session."""

    _lock: RLock

    def insert(self, relation: str, rows: Any) -> None: ...
    def remove(self, relation: str, rows: Any) -> None: ...


class Feeds:
    """The feeds of a session, which is told to them each time: who holds it by them would keep it after it is let go. What it
    forgets of what is staged, they stage again: their collections do not go back."""

    def __init__(self) -> None:
        self.schedulers: dict[str, Scheduler] = {}
        """What the collection that feeds a relation is run by."""
        self._changes: list[tuple[str, Any, Diff]] = []

    def stage(self, session: Fed, relation: str, rows: Any, diff: Diff) -> None:
        """Stages rows that a collection has, or no longer has: columns of the feed's own."""
        with session._lock:
            _stage(session, relation, rows, diff)
            self._changes.append((relation, rows, diff))

    @property
    def staged(self) -> int:
        """How many changes wait for the commit."""
        return len(self._changes)

    def stage_again(self, session: Fed, first: int = 0) -> None:
        """The changes from a number on, once what was staged has been forgotten."""
        for change in self._changes[first:]:
            _stage(session, *change)

    def committed(self) -> None:
        self._changes = []

    def keep(self, relations: Container[str]) -> None:
        """Forgets what waits for others: they are gone."""
        self._changes = [change for change in self._changes if change[0] in relations]


def _stage(session: Fed, relation: str, rows: Any, diff: Diff) -> None:
    change = session.insert if diff > 0 else session.remove
    change(relation, rows)
