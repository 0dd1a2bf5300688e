"""Workers find those of their own start, and nobody else: stages that Spark starts again, without Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

zmq = pytest.importorskip("zmq")

from dlog.engine.spark.pieces import message_of  # noqa: E402
from dlog.engine.spark.rendezvous import Meeting, Rendezvous, Visitor, own_host  # noqa: E402
from dlog.engine.spark.secrets import Secrets  # noqa: E402
from dlog.engine.spark.transport import PeerTransport  # noqa: E402

SOON, LATE = 500, 30_000
"""Milliseconds: that nothing comes, that something does."""


class Stage:
    """A stage of two workers; `attempts` are the tasks that run, as Spark would say."""

    def __init__(self, rendezvous: Rendezvous) -> None:
        self.attempts: list[set[int]] = []
        self.heard: list[Any] = []
        self.meeting = rendezvous.open(2, lambda *said: self.heard.append(said), self.together)
        self.visitors: list[Visitor] = []

    def together(self, stage: int, tasks: Sequence[int]) -> bool:
        assert stage == 7
        return any(set(tasks) <= attempt for attempt in self.attempts)

    def arrive(self, rank: int, task: int) -> Visitor:
        visitor = Visitor(self.meeting, rank, task)
        self.visitors.append(visitor)
        visitor.tell("here", (f"address of {task}", 7))
        return visitor


@pytest.fixture
def rendezvous() -> Iterator[Rendezvous]:
    made = Rendezvous("127.0.0.1")
    yield made
    made.close()


@pytest.fixture
def stage(rendezvous: Rendezvous) -> Iterator[Stage]:
    made = Stage(rendezvous)
    yield made
    for visitor in made.visitors:
        visitor.close()


def answer(visitor: Visitor, patience: int = LATE) -> list[str] | None:
    """Where all are, if the driver says so in time."""
    return message_of(visitor._socket.recv_multipart(copy=False)) if visitor._socket.poll(patience) else None


def test_workers_of_one_start_meet(stage: Stage) -> None:
    stage.attempts = [{4, 5}]
    first = stage.arrive(0, 5)
    assert answer(first, SOON) is None
    second = stage.arrive(1, 4)
    assert answer(first) == answer(second) == ["address of 5", "address of 4"]


@pytest.mark.slow
def test_a_worker_that_was_left_over_is_not_met_by_the_next_start(stage: Stage) -> None:
    """Of tasks 4 and 5 only 5 came; those of the next start are 6 and 7, and 6 comes first: its number follows that of 5."""
    stage.attempts = [{5}, {6, 7}]
    left, first = stage.arrive(1, 5), stage.arrive(0, 6)
    assert answer(first, SOON) is None
    second = stage.arrive(1, 7)
    assert answer(first) == answer(second) == ["address of 6", "address of 7"]
    assert answer(left, SOON) is None


def test_a_start_after_one_that_had_met_meets_again(stage: Stage) -> None:
    stage.attempts = [{0, 1}]
    assert [answer(v) for v in [stage.arrive(0, 0), stage.arrive(1, 1)]] == [["address of 0", "address of 1"]] * 2
    stage.attempts = [{2, 3}]
    first = stage.arrive(1, 2)
    assert answer(first, SOON) is None
    assert answer(stage.arrive(0, 3)) == answer(first) == ["address of 3", "address of 2"]


def test_what_a_worker_of_a_former_start_says_is_not_heard(stage: Stage) -> None:
    stage.attempts = [{0, 1}, {2, 3}]
    old, new = stage.arrive(0, 0), stage.arrive(0, 2)
    other = stage.arrive(1, 3)
    assert answer(new) == answer(other)
    old.tell("rows", "old")
    new.tell("rows", "new")
    other.tell("rows", "other")
    again = stage.arrive(0, 4), stage.arrive(1, 5)
    stage.attempts.append({4, 5})
    again[1].tell("here", ("address of 5", 7))
    assert answer(again[1]) is not None  # the driver answers in order, so it has heard all of this
    assert sorted(stage.heard) == [(0, "rows", "new"), (1, "rows", "other")]


def test_an_error_in_hearing_a_worker_stops_nobody(rendezvous: Rendezvous, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", shown.append)

    def refuse(*said: Any) -> None:
        raise ValueError("a display that is gone")

    visitor = Visitor(rendezvous.open(1, refuse, lambda *_: True), 0, 0)
    visitor.tell("progress", 1)
    visitor.tell("here", ("there", 7))
    found = answer(visitor)
    visitor.close()
    assert found == ["there"]
    assert [str(arguments.exc_value) for arguments in shown] == ["a display that is gone"]


@pytest.mark.slow
def test_strangers_are_not_answered(rendezvous: Rendezvous, stage: Stage) -> None:
    stage.attempts = [{0, 1}]
    forged = Secrets(rendezvous.secrets.listener_public, b"", *zmq.curve_keypair())
    stranger = Visitor(Meeting(rendezvous.address, 1, 2, forged), 0, 0)
    stranger.tell("here", ("elsewhere", 7))
    known = stage.arrive(1, 1)
    assert answer(known, SOON) is None
    assert answer(stage.arrive(0, 0)) == answer(known) == ["address of 0", "address of 1"]
    stranger.close()


def test_messages_between_workers_arrive_in_order_whoever_is_faster() -> None:
    secrets, steps = Secrets.new(), 20
    transports = [PeerTransport(rank, 3, secrets, "127.0.0.1") for rank in range(3)]

    def work(transport: PeerTransport) -> list[list[int]]:
        transport.connect([t.address for t in transports])
        found = []
        for step in range(steps):
            got = transport.swap([np.full(1000 * rank, 100 * step + 10 * transport.rank + rank) for rank in range(3)])
            assert [len(a) for a in got] == [1000 * transport.rank] * 3
            found.append([int(a[0]) for a in got] if transport.rank else [])
        return found

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(work, transports))
    for transport in transports:
        transport.close()
    assert found[1:] == [[[100 * step + 10 * sender + rank for sender in range(3)] for step in range(steps)] for rank in (1, 2)]


@pytest.mark.parametrize(
    ("ways", "tasks", "found"),
    [
        ({"driver": "10.0.0.5"}, ["node:1", "other:1"], "10.0.0.5"),
        ({"driver": "127.0.0.1", "node": "127.0.0.1"}, ["node:1", "node:2"], "127.0.0.1"),
        ({"driver": "127.0.0.1", "node": "127.0.0.1", "other": "10.0.0.5"}, ["node:1", "other:1"], "10.0.0.5"),
        ({"driver": "127.0.0.1", "node": "10.0.0.5"}, ["unknown:1", "node:1"], "10.0.0.5"),
        ({"driver": "::1", "node": "::1"}, ["node:1"], "::1"),
    ],
)
def test_a_host_that_only_this_machine_knows_is_not_told_to_workers_elsewhere(
    ways: dict[str, str], tasks: list[str], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def towards(address: str) -> str:
        host = address.removeprefix("tcp://").partition(":")[0]
        if host not in ways:
            raise OSError("Name or service not known")
        return ways[host]

    monkeypatch.setattr("dlog.engine.spark.rendezvous._host_towards", towards)
    assert own_host("tcp://driver:5", tasks) == found
