"""The results of a commit and of a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dlog.sessions.follow.changes import Changes
from dlog.sessions.mistakes import mistake

if TYPE_CHECKING:
    from dlog.sessions.reading import Reading


class Round:
    """The result of one commit: the rounds `first` to `number`, usually one.

    Its changes can be read until the next commit. `len` counts the changes of all relations; iterating gives the names of those
    that changed."""

    __slots__ = ("_session", "first", "number")

    def __init__(self, session: Reading, first: int, number: int) -> None:
        self._session = session
        self.first = first
        self.number = number

    def changes(self, relation: str) -> Changes:
        """The changes of one relation by the commit."""
        now = self._session.round
        if now != self.number:
            message = f"the changes of round {self.number} are gone: this is round {now}"
            raise mistake("past-round", message, "read the changes of a round before the next one, or subscribe to them")
        return self._session.changes(relation)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._touched() if len(self.changes(name)))

    def __len__(self) -> int:
        return sum(len(self.changes(name)) for name in self._touched())

    def _touched(self) -> Iterable[str]:
        """The relations that may have changes. Raises where these are gone, as `changes` does."""
        return self._session.touched if self._session.round == self.number else self._session

    def __bool__(self) -> bool:
        return True

    def __int__(self) -> int:
        return self.number

    __index__ = __int__

    def __repr__(self) -> str:
        return f"<dlog.Round {self.number}>" if self.first == self.number else f"<dlog.Round {self.first} to {self.number}>"


class Transaction:
    """A block of changes; `round` is what it committed, None before its end."""

    __slots__ = ("round",)

    def __init__(self) -> None:
        self.round: Round | None = None
