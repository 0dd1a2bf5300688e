"""The rendezvous of a run's workers: the driver listens, each worker says where it is and hears where the others are.

Spark may start a stage again when a task was lost. Its tasks have new and larger numbers then, while some of the former start
may still be about. So the driver answers when it has heard of every rank and their tasks belong to one start, which Spark
knows; and what a task says after a later one of its rank spoke up is not heard any more.
"""

from __future__ import annotations

import socket as sockets
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlparse

import zmq

from dlog.dataclass import dataclass
from dlog.engine.spark.pieces import frames_of, message_of
from dlog.engine.spark.secrets import Secrets

PATIENCE = 100
"""Milliseconds."""
EVERYWHERE = "tcp://*"
"""Where the driver listens whose workers are on other machines, too: it does not know on which of its ways they come."""


@dataclass(frozen=True)
class Meeting:
    """The parameters of a worker that joins: the driver's address, the run's number, its workers, and the keys."""

    address: str
    run: int
    size: int
    secrets: Secrets
    is_here: bool = False
    """Whether all workers are on the driver's machine."""

    def host(self, tasks: Sequence[str]) -> str:
        """The host under which the others reach a worker on this machine; tasks' addresses are as Spark has them."""
        return own_host(self.address, () if self.is_here else tasks)


Together = Callable[[int, Sequence[int]], bool]
"""Whether tasks, by number, belong to one start of a stage that still runs."""


@dataclass
class _Run:
    size: int
    on_message: Callable[[int, str, Any], None]
    together: Together
    present: dict[int, tuple[int, bytes, str]] = field(default_factory=dict)
    """By rank: the task's number, the name of its connection, and its address."""
    latest: dict[int, int] = field(default_factory=dict)
    """By rank: the last task that spoke up."""

    def heeds(self, rank: int, task: int) -> bool:
        """Whether a task still speaks for its rank."""
        self.latest[rank] = max(task, self.latest.get(rank, task))
        return self.latest[rank] == task

    def join(self, rank: int, task: int, name: bytes, address: str, stage: int) -> bool:
        """Enters a worker; whether all of one start are there."""
        self.present[rank] = task, name, address
        tasks = [task for task, _, _ in self.present.values()]
        return len(tasks) == self.size and self.together(stage, tasks)


class Rendezvous:
    """The driver's side; one for all runs of a Spark application. A thread answers."""

    def __init__(self, host: str, door: str = EVERYWHERE) -> None:
        self.secrets = Secrets.new()
        self._context: zmq.Context[Any] = zmq.Context()
        self._guard = self.secrets.guard(self._context)
        self._socket = self.secrets.listener(self._context, zmq.ROUTER)
        port = self._socket.bind_to_random_port(door)
        self.address = f"tcp://{host}:{port}"
        self._is_here = door != EVERYWHERE
        self._runs: dict[int, _Run] = {}
        self._numbers = 0
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="dlog-rendezvous", daemon=True)
        self._thread.start()

    def open(self, size: int, on_message: Callable[[int, str, Any], None], together: Together) -> Meeting:
        """A new run of `size` workers. `on_message(rank, kind, content)` hears what they report, on the answering thread."""
        self._numbers += 1
        self._runs[self._numbers] = _Run(size, on_message, together)
        return Meeting(self.address, self._numbers, size, self.secrets, self._is_here)

    def _serve(self) -> None:
        while not self._closing:
            if self._socket.poll(PATIENCE):
                name, *frames = self._socket.recv_multipart(copy=False)
                try:
                    self._answer(name.bytes, *message_of(frames))
                except Exception:  # in hearing one worker: the others need answers all the same
                    threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), self._thread)))

    def _answer(self, name: bytes, number: int, rank: int, task: int, kind: str, content: Any) -> None:
        run = self._runs[number]
        if not run.heeds(rank, task):
            return
        if kind != "here":
            run.on_message(rank, kind, content)
            return
        address, stage = content
        if run.join(rank, task, name, address, stage):
            addresses = [run.present[r][2] for r in range(run.size)]
            for _, peer, _ in run.present.values():
                self._socket.send_multipart([peer, *frames_of(addresses)])
            run.present.clear()

    def close(self) -> None:
        self._closing = True
        self._thread.join()
        self._socket.close()
        self._guard.stop()
        self._context.term()


class Visitor:
    """A worker's connection to the driver; `task` is the number that Spark gave to this try of it."""

    def __init__(self, meeting: Meeting, rank: int, task: int) -> None:
        self._meeting = meeting
        self._rank = rank
        self._task = task
        self._context: zmq.Context[Any] = zmq.Context()
        self._socket = meeting.secrets.caller(self._context, zmq.DEALER)
        self._socket.connect(meeting.address)

    def tell(self, kind: str, content: Any) -> None:
        self._socket.send_multipart(frames_of((self._meeting.run, self._rank, self._task, kind, content)))

    def meet(self, address: str, stage: int) -> list[str]:
        """Says where this worker of a stage is; returns where all are. Waits for as long as Spark lets the task live."""
        self.tell("here", (address, stage))
        return list(message_of(self._socket.recv_multipart(copy=False)))

    def close(self) -> None:
        self._socket.close(2000)
        self._context.term()


def own_host(address: str, tasks: Sequence[str] = ()) -> str:
    """The host under which those who can reach `address` reach this machine, and so can workers at `tasks`, as Spark has them.
    The driver's name may lead to an address that its machine has for itself alone, which is none for workers elsewhere."""
    found = _host_towards(address)
    for task in tasks if _is_here_only(found) else ():
        with suppress(OSError, ValueError):
            other = _host_towards(f"tcp://{task}")
            if not _is_here_only(other):
                return other
    return found


def _is_here_only(host: str) -> bool:
    return ip_address(host.partition("%")[0]).is_loopback


def _host_towards(address: str) -> str:
    """The address of this host from which messages to another one come."""
    peer = urlparse(address)
    found = sockets.getaddrinfo(peer.hostname, peer.port, type=sockets.SOCK_DGRAM)
    family, kind, protocol, _, target = found[0]
    with sockets.socket(family, kind, protocol) as probe:
        probe.connect(target)
        return str(probe.getsockname()[0])
