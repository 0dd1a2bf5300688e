"""Messages between workers over the network.

Every worker listens and calls every other one. A message is its sender's rank, then an object: pickled, with its
arrays out of band (PEP 574), so that they are neither copied into the pickle nor out of the message.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Sequence
from typing import Any

import zmq

from dlog.engine.spark.secrets import Secrets


def frames_of(message: Any) -> list[Any]:
    """A message as parts to send."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    return [head, *(b.raw() for b in buffers)]


def message_of(frames: Sequence[Any]) -> Any:
    """The message that parts are; its arrays are views of them."""
    head, *buffers = frames
    return pickle.loads(head.buffer, buffers=[b.buffer for b in buffers])


class PeerTransport:
    """See `dlog.engine.shards.gang.Transport`. `listen` first, then `connect` once all addresses are known."""

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
        self.address = f"tcp://{host}:{port}"
        self._outboxes: list[zmq.Socket[Any] | None] = []
        self._waiting: list[deque[Any]] = [deque() for _ in range(size)]

    def connect(self, addresses: Sequence[str]) -> None:
        for rank, address in enumerate(addresses):
            if rank == self.rank:
                self._outboxes.append(None)
                continue
            socket = self._secrets.caller(self._context, zmq.PUSH)
            socket.connect(address)
            self._outboxes.append(socket)

    def swap(self, messages: Sequence[Any]) -> list[Any]:
        rank = self.rank.to_bytes(4, "big")
        for socket, message in zip(self._outboxes, messages, strict=True):
            if socket is not None:
                socket.send_multipart([rank, *frames_of(message)], copy=False)
        return [messages[r] if r == self.rank else self._from(r) for r in range(self.size)]

    def _from(self, rank: int) -> Any:
        """The next message of a worker; others that come meanwhile wait. If the worker is gone, Spark ends this task too."""
        while not self._waiting[rank]:
            sender, *frames = self._inbox.recv_multipart(copy=False)
            self._waiting[int.from_bytes(sender.bytes, "big")].append(frames)
        return message_of(self._waiting[rank].popleft())

    def close(self, linger: int = 2000) -> None:
        """Lets what was sent go out, for up to `linger` milliseconds."""
        for socket in self._outboxes:
            if socket is not None:
                socket.close(linger)
        self._inbox.close()
        self._guard.stop()
        self._context.term()
