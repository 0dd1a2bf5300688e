"""Connections to dlog's listeners from whoever has no keys: nothing is unpickled, and little is taken."""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlparse

import numpy as np
import pytest

zmq = pytest.importorskip("zmq")

from dlog.engine.spark import secrets as keys  # noqa: E402
from dlog.engine.spark.delivery import Door  # noqa: E402
from dlog.engine.spark.pieces import MAX_FRAME_BYTES, SMALL_BYTES, frames_of, message_of  # noqa: E402
from dlog.engine.spark.rendezvous import Rendezvous, Visitor  # noqa: E402
from dlog.engine.spark.secrets import Secrets  # noqa: E402
from dlog.engine.spark.transport import PeerTransport  # noqa: E402
from dlog.memory import current_bytes  # noqa: E402
from tests.conftest import ROOT  # noqa: E402
from tests.security.planted import pickled, run  # noqa: E402

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"CURVE".ljust(20, b"\0") + b"\0" + bytes(31)
"""ZMTP 3.1, as it begins."""
LONG_COMMAND, LONG_MESSAGE = b"\x06", b"\x02"


@pytest.fixture
def rendezvous(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rendezvous]:
    monkeypatch.setattr(keys, "PATIENCE", 500)
    made = Rendezvous("127.0.0.1")
    yield made
    made.close()


def call(address: str) -> socket.socket:
    there = urlparse(address)
    return socket.create_connection((there.hostname, there.port or 0), timeout=20)


def ended(connection: socket.socket) -> bool:
    """Whether the other side hangs up."""
    with connection, suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass
    return True


def still_meets(rendezvous: Rendezvous) -> bool:
    visitor = Visitor(rendezvous.open(1, lambda *_: None, lambda *_: True), 0, 0)
    try:
        return visitor.meet("here", 1) == ["here"]
    finally:
        visitor.close()


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff", bytes(1000), GREETING, GREETING + bytes(1000)])
def test_a_connection_that_says_nothing_of_use_is_ended(rendezvous: Rendezvous, said: bytes) -> None:
    begun = time.monotonic()
    connection = call(rendezvous.address)
    connection.sendall(said)
    assert ended(connection)
    assert time.monotonic() - begun < 10
    assert still_meets(rendezvous)


@pytest.mark.parametrize("kind", [LONG_COMMAND, LONG_MESSAGE])
@pytest.mark.parametrize("size", [MAX_FRAME_BYTES + keys.ENVELOPE + 1, 1 << 30, (1 << 63) - 1])
def test_what_is_longer_than_a_piece_is_not_taken_from_strangers(rendezvous: Rendezvous, kind: bytes, size: int) -> None:
    before = current_bytes()
    connection = call(rendezvous.address)
    with suppress(OSError):
        connection.sendall(GREETING + kind + struct.pack(">Q", size))
        for _ in range(256):
            connection.sendall(bytes(1 << 20))
    assert ended(connection)
    assert current_bytes() - before < 64 << 20
    assert still_meets(rendezvous)


def test_many_strangers_at_once_cost_no_more_than_a_piece_each(rendezvous: Rendezvous) -> None:
    before = current_bytes()
    several = [call(rendezvous.address) for _ in range(100)]
    for connection in several:
        with suppress(OSError):
            connection.sendall(GREETING + LONG_COMMAND + struct.pack(">Q", 1 << 40))
    assert still_meets(rendezvous)
    assert all(ended(connection) for connection in several)
    assert current_bytes() - before < 100 * MAX_FRAME_BYTES + (32 << 20)


def plain(context: Any, kind: int, secrets: Secrets) -> Any:
    return context.socket(kind)


def with_keys_of_its_own(context: Any, kind: int, secrets: Secrets) -> Any:
    made = context.socket(kind)
    made.curve_serverkey = secrets.listener_public
    made.curve_publickey, made.curve_secretkey = zmq.curve_keypair()
    return made


@pytest.mark.slow
@pytest.mark.parametrize("caller", [plain, with_keys_of_its_own])
@pytest.mark.parametrize("listener", ["rendezvous", "worker", "door"])
def test_pickles_of_strangers_are_not_read(tmp_path: Path, rendezvous: Rendezvous, caller: Any, listener: str) -> None:
    marker, secrets, context = tmp_path / "was run", rendezvous.secrets, zmq.Context()
    transport, door = PeerTransport(0, 2, secrets, "127.0.0.1"), Door(secrets, "127.0.0.1")
    address = {"rendezvous": rendezvous.address, "worker": transport.address.split(" ")[0], "door": door.address}[listener]
    stranger = caller(context, zmq.DEALER if listener == "rendezvous" else zmq.PUSH, secrets)
    stranger.linger = 0
    stranger.connect(address)
    sizes = struct.pack("<Q", len(pickled(marker)))
    for message in ([pickled(marker)], [sizes, pickled(marker)], [bytes(4), sizes, pickled(marker)]):
        with suppress(zmq.Again):
            stranger.send_multipart(message, zmq.NOBLOCK)
    assert not transport._inbox.poll(700) and not door._socket.poll(0)
    assert not marker.exists()
    stranger.close()
    transport.close()
    door.close()
    context.term()


@pytest.mark.slow
def test_without_a_guard_nobody_is_let_in() -> None:
    secrets, context = Secrets.new(), zmq.Context()
    listener, caller = secrets.listener(context, zmq.PULL), secrets.caller(context, zmq.PUSH)
    caller.connect(f"tcp://127.0.0.1:{listener.bind_to_random_port('tcp://127.0.0.1')}")
    with suppress(zmq.Again):
        caller.send(b"hello", zmq.NOBLOCK)
    assert not listener.poll(700)
    caller.close()
    listener.close()
    context.term()


def test_keys_are_not_shown() -> None:
    secrets = Secrets.new()
    assert secrets.caller_secret.decode() not in repr(secrets) and secrets.listener_secret.decode() not in repr(secrets)


class Received:
    def __init__(self, content: Any) -> None:
        self.buffer = memoryview(bytes(content))


@pytest.mark.parametrize(
    "size", [0, 1, 3, 10_000, SMALL_BYTES, *(MAX_FRAME_BYTES + more for more in (-1, 0, 1)), 3 * MAX_FRAME_BYTES]
)
def test_messages_of_any_size_go_in_pieces_and_come_whole(size: int) -> None:
    message = ["é" * (size // 2), np.arange(size, dtype=np.uint8), np.zeros(0, np.int64), np.arange(size // 8)]
    frames = frames_of(message)
    assert max(len(frame) for frame in frames) <= MAX_FRAME_BYTES and (len(frames) == 1) == (size <= 10_000)
    found = message_of([Received(frame) for frame in frames])
    assert found[0] == message[0]
    for got, sent in zip(found[1:], message[1:], strict=True):
        assert got.dtype == sent.dtype and np.array_equal(got, sent) and (got.flags.aligned or got.size == 0)


def test_workers_swap_what_is_larger_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.engine.spark.shared_memory._places", lambda: iter(()))
    secrets, rows = Secrets.new(), np.arange(MAX_FRAME_BYTES)
    transports = [PeerTransport(rank, 2, secrets, "127.0.0.1") for rank in range(2)]

    def work(transport: PeerTransport) -> list[Any]:
        transport.connect([t.address for t in transports])
        return transport.swap([rows + transport.rank, rows + transport.rank])

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(work, transports))
    for transport in transports:
        transport.close()
    assert all(np.array_equal(got, rows + rank) for each in found for rank, got in enumerate(each))
    assert threading.active_count() < 50


ON_SPARK = """import os, sys, tempfile
from pathlib import Path
os.umask(0)
sys.path.insert(0, sys.argv[1])
from dlog.engine.spark.application import in_tasks, start
os.environ["PYTHONPATH"] = sys.argv[1]
spark = start("local[1]")
in_tasks(spark.range(2), lambda batches: batches, "id bigint").collect()
place = Path(spark.conf.get("spark.python.unix.domain.socket.dir", "/nowhere"))
print(oct(place.stat().st_mode), place.parent == Path(tempfile.gettempdir()), len(list(place.glob(".*.sock"))) > 0)
"""


@pytest.mark.spark
def test_sockets_in_the_file_system_are_where_nobody_else_can_enter(tmp_path: Path) -> None:
    """They have no passwords, and what comes by them is unpickled; the mask alone would say who may connect."""
    pytest.importorskip("pyspark")
    with TemporaryDirectory(prefix="t") as short:
        done = run(sys.executable, "-P", "-c", ON_SPARK, str(ROOT), cwd=tmp_path, TMPDIR=short)
        assert done.stdout == "0o40700 True True\n", done.stderr
        assert not list(Path(short).glob("dlog*"))


LISTENING = """import os, re, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from dlog.engine.spark.application import start
os.environ["PYTHONPATH"] = sys.argv[1]
spark = start("local[1]", {"spark.ui.enabled": "false"})
process = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
links = (os.readlink(path) for path in Path(f"/proc/{process}/fd").iterdir())
own = {found[1] for link in links if (found := re.fullmatch(r"socket:\\[([0-9]+)\\]", link))}
rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/{process}/net/{name}").read_text().splitlines()[1:]]
print(*sorted(row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[9] in own))
"""


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system does not tell who listens where")
def test_spark_that_dlog_starts_for_this_machine_listens_to_nobody_else(tmp_path: Path) -> None:
    """Whoever reaches its ports need not say who it is, and what comes there is unpacked as Java's objects."""
    pytest.importorskip("pyspark")
    done = run(sys.executable, "-P", "-c", LISTENING, str(ROOT), cwd=tmp_path)
    heard = done.stdout.split()
    assert len(heard) > 1, done.stderr
    assert set(heard) <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
