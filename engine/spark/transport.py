"""Messages between workers over the network.

Every worker listens and calls every other one. A message is its sender's rank and an object: pickled, with its
arrays out of band (PEP 574), so that they are neither copied into the pickle nor out of the message. Between workers of one
machine large arrays are left in the receiver's shared memory, and the message says where.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import zmq

from dlog.engine.spark.pieces import cut, frames_of, message_of, parts_of
from dlog.engine.spark.secrets import Secrets
from dlog.engine.spark.shared_memory import SharedFile, SharedMemory, Slot


class _InSharedMemory(NamedTuple):
    """What is sent in place of a message whose arrays are in the shared memory: its pickle, and where they are."""

    head: bytes
    arrays: SharedFile


class PeerTransport:
    """See `dlog.engine.cluster.worker_group.Transport`. It listens at once; `connect` when all addresses are known."""

    def __init__(self, rank: int, size: int, secrets: Secrets, host: str) -> None:
        self.rank = rank
        self.size = size
        self._secrets = secrets
        self._context: zmq.Context[Any] = zmq.Context()
        self._guard = secrets.guard(self._context)
        self._inbox = secrets.listener(self._context, zmq.PULL)
        if ":" in host:
            self._inbox.ipv6 = True
        port = self._inbox.bind_to_random_port(f"tcp://{host}")
        self._shared_memory = SharedMemory.open() if size > 1 else None
        self.address = f"tcp://{host}:{port} {'' if self._shared_memory is None else self._shared_memory.address}"
        self._slots: list[Slot | None] = []
        self._outboxes: list[zmq.Socket[Any] | None] = []
        self._waiting: list[deque[Any]] = [deque() for _ in range(size)]

    def connect(self, addresses: Sequence[str]) -> None:
        for rank, address in enumerate(addresses):
            if rank == self.rank:
                self._outboxes.append(None)
                self._slots.append(None)
                continue
            door, _, shared_memory = address.partition(" ")
            socket = self._secrets.caller(self._context, zmq.PUSH)
            socket.connect(door)
            self._outboxes.append(socket)
            self._slots.append(Slot.find(shared_memory, self.rank))

    def swap(self, messages: Sequence[Any]) -> list[Any]:
        for socket, slot, message in zip(self._outboxes, self._slots, messages, strict=True):
            if socket is not None:
                socket.send_multipart(self._frames(message, slot), copy=False)
        return [messages[r] if r == self.rank else self._from(r) for r in range(self.size)]

    def _frames(self, message: Any, slot: Slot | None) -> list[Any]:
        """A message to a worker, its arrays left in its shared memory if they are large."""
        parts = parts_of((self.rank, message))
        block = slot.put(parts[1:]) if slot is not None else None
        return cut(parts) if block is None else frames_of((self.rank, _InSharedMemory(parts[0], block)))

    def _from(self, rank: int) -> Any:
        """The next message of a worker; others that come meanwhile wait. If the worker is gone, Spark ends this task too."""
        while not self._waiting[rank]:
            sender, message = message_of(self._inbox.recv_multipart(copy=False))
            self._waiting[sender].append(message)
        message = self._waiting[rank].popleft()
        if not isinstance(message, _InSharedMemory):
            return message
        assert self._shared_memory is not None
        _, message = pickle.loads(message.head, buffers=self._shared_memory.take(message.arrays))
        return message

    def close(self, linger: int = 2000) -> None:
        """Lets what was sent go out, for up to `linger` milliseconds."""
        for socket in self._outboxes:
            if socket is not None:
                socket.close(linger)
        self._inbox.close()
        if self._shared_memory is not None:
            self._shared_memory.close()
        self._guard.stop()
        self._context.term()
