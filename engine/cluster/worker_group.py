"""Workers that evaluate one program together, and how they reach each other.

All of them call `swap` in the same order; each call is one step in which everyone hands everyone a message. There is no other
communication. A worker that fails says so in its next step, and every other one stops with `PeerFailed` there.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from queue import Queue
from typing import Any, Protocol

from dlog.dataclass import dataclass


class Transport(Protocol):
    """Carries one message from each worker to each other one, per step."""

    rank: int
    """The worker's number; 0 is the root."""
    size: int

    def swap(self, messages: Sequence[Any]) -> list[Any]:
        """Hands `messages[w]` to worker w; returns what each worker had for this one, by rank. A message may hold NumPy arrays,
        which the receiver must not write to and the sender may change when its next call returned: the receiver, which has
        called it then too, must have copied what it keeps."""
        ...


class PeerFailed(Exception):
    """Another worker stopped with an error of its own, which it reports itself."""

    def __init__(self, rank: int) -> None:
        super().__init__(f"worker {rank} failed")
        self.rank = rank


@dataclass(frozen=True, slots=True)
class _Failure:
    pass


class WorkerGroup:
    """One worker's view of all of them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.rank = transport.rank
        self.size = transport.size
        self.steps = 0
        self.step_seconds = array("d")
        """Seconds of this process' processor in each step."""
        self._at = time.process_time()

    def take_stock(self) -> None:
        """Ends a step of the account without an exchange."""
        now = time.process_time()
        self.step_seconds.append(now - self._at)
        self._at = now

    @property
    def is_root(self) -> bool:
        return self.rank == 0

    def swap(self, messages: Sequence[Any]) -> list[Any]:
        """One step. Raises PeerFailed."""
        self.steps += 1
        received = self._transport.swap(messages) if self.size > 1 else list(messages)
        self.take_stock()
        for rank, message in enumerate(received):
            if isinstance(message, _Failure):
                raise PeerFailed(rank)
        return received

    def share(self, message: Any) -> list[Any]:
        """The messages of all workers, by rank."""
        return self.swap([message] * self.size)

    def from_root(self, message: Any) -> Any:
        """The root's message, on every worker."""
        return self.share(message if self.is_root else None)[0]

    def fail(self) -> None:
        """Tells the others to stop, in place of the next step."""
        if self.size > 1:
            self._transport.swap([_Failure()] * self.size)


class ThreadTransport:
    """Workers that are threads of one process: messages are handed over as they are."""

    def __init__(self, rank: int, boxes: Sequence[Sequence[Queue[Any]]]) -> None:
        self.rank = rank
        self.size = len(boxes)
        self._boxes = boxes

    def swap(self, messages: Sequence[Any]) -> list[Any]:
        for peer, message in enumerate(messages):
            self._boxes[peer][self.rank].put(message)
        return [box.get() for box in self._boxes[self.rank]]

    @classmethod
    def connected(cls, size: int) -> list[ThreadTransport]:
        """As many transports as there are workers, one for each thread."""
        boxes: list[list[Queue[Any]]] = [[Queue() for _ in range(size)] for _ in range(size)]
        return [cls(rank, boxes) for rank in range(size)]
