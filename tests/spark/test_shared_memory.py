"""Blocks between workers of one machine: they arrive as they were or go as messages, and nothing stays behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlog.engine.spark import shared_memory, transport
from dlog.engine.spark.secrets import Secrets
from dlog.engine.spark.shared_memory import MIN_FILE_BYTES, SharedMemory, Slot, sweep
from dlog.engine.spark.transport import PeerTransport
from tests.conftest import ROOT

SIZES = (0, 1, 63, 64, 65, MIN_FILE_BYTES)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where folders may be."""
    monkeypatch.setattr(shared_memory, "_places", lambda: iter([tmp_path]))
    return tmp_path


@pytest.fixture
def box(place: Path) -> Iterator[SharedMemory]:
    found = SharedMemory.open()
    assert found is not None
    yield found
    found.close()


def pieces() -> list[memoryview]:
    rng = np.random.default_rng(1)
    return [memoryview(rng.bytes(size)) for size in SIZES]


def test_a_block_arrives_piece_by_piece_and_its_file_is_gone(box: SharedMemory) -> None:
    slot = Slot.find(box.address, 3)
    assert slot is not None
    block = slot.put(pieces())
    assert block is not None
    assert stat.S_IMODE(box.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((box.folder / block.name).stat().st_mode) == 0o600
    taken = box.take(block)
    assert taken == pieces()
    assert all(piece.readonly for piece in taken)
    assert [path.name for path in box.folder.iterdir()] == [shared_memory.LOCK]


def test_what_is_small_is_left_to_messages(box: SharedMemory) -> None:
    slot = Slot.find(box.address, 3)
    assert slot is not None
    assert slot.put([memoryview(bytes(MIN_FILE_BYTES - 1))]) is None
    assert slot.put([memoryview(bytes(MIN_FILE_BYTES))]) is not None


def test_more_pieces_than_one_call_writes_arrive(box: SharedMemory) -> None:
    many = [memoryview(bytes([n % 256]) * (n % 200)) for n in range(3 * shared_memory.PIECES_PER_CALL)]
    slot = Slot.find(box.address, 3)
    assert slot is not None
    block = slot.put(many)
    assert block is not None
    assert box.take(block) == many


def test_where_there_is_no_room_nothing_is_left_behind(box: SharedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    slot = Slot.find(box.address, 3)
    assert slot is not None

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "writev", full)
    assert slot.put(pieces()) is None
    assert [path.name for path in box.folder.iterdir()] == [shared_memory.LOCK]


def test_a_folder_that_says_something_else_is_no_way(box: SharedMemory) -> None:
    other = ("0" if box.address[0] != "0" else "1") + box.address[1:]
    assert Slot.find(other, 0) is None
    assert Slot.find(f"{box.address} elsewhere", 0) is None
    assert Slot.find("", 0) is None


def test_a_peer_whose_folder_is_gone_gets_messages(place: Path) -> None:
    box = SharedMemory.open()
    assert box is not None
    slot = Slot.find(box.address, 0)
    assert slot is not None
    box.close()
    assert slot.put(pieces()) is None
    assert list(place.iterdir()) == []


def test_folders_of_the_living_stay_and_those_of_the_dead_go(place: Path) -> None:
    inbox: Any = multiprocessing.get_context("spawn").Queue()
    process = multiprocessing.get_context("spawn").Process(target=_open_and_wait, args=(str(place), inbox))
    process.start()
    try:
        folder = Path(inbox.get(timeout=60))
        sweep()
        assert folder.exists()
    finally:
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    assert folder.exists()
    sweep()
    assert not folder.exists()


def _open_and_wait(place: str, inbox: Any) -> None:
    shared_memory._places = lambda: iter([Path(place)])
    box = SharedMemory.open()
    assert box is not None
    (box.folder / "0-1").write_bytes(bytes(MIN_FILE_BYTES))
    inbox.put(str(box.folder))
    signal.pause()


def test_a_folder_without_a_lock_goes_when_it_is_old(place: Path) -> None:
    young, old = (Path(place / f"dlog-worker-{name}") for name in ("young", "old"))
    young.mkdir()
    old.mkdir()
    os.utime(old, (0, 0))
    sweep()
    assert [path.name for path in place.iterdir()] == [young.name]


@pytest.mark.parametrize("boxes", ["all", "one", "none"])
def test_large_messages_arrive_with_letterboxes_and_without(place: Path, boxes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    put = Slot.put
    monkeypatch.setattr(Slot, "put", lambda slot, pieces: left.append(len(pieces)) or put(slot, pieces))
    secrets, height = Secrets.new(), 3 * MIN_FILE_BYTES
    transports = []
    for rank in range(3):
        if boxes == "none" or (boxes == "one" and rank):
            monkeypatch.setattr(transport.SharedMemory, "open", classmethod(lambda cls: None))
        transports.append(PeerTransport(rank, 3, secrets, "127.0.0.1"))

    def work(own: PeerTransport) -> list[bool]:
        own.connect([t.address for t in transports])
        found = []
        for step in range(4):
            sent = [{"rows": np.full(height, 100 * step + 10 * own.rank + peer), "step": step} for peer in range(3)]
            got = own.swap(sent)
            expected = [100 * step + 10 * sender + own.rank for sender in range(3)]
            found.append([(set(m["rows"].tolist()), m["step"]) for m in got] == [({e}, step) for e in expected])
        return found

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(work, transports)) == [[True] * 4] * 3
    for one in transports:
        one.close()
    assert len(left) == {"all": 24, "one": 8, "none": 0}[boxes]
    assert list(place.iterdir()) == []


def test_a_small_message_is_one_frame(place: Path) -> None:
    own = PeerTransport(1, 2, Secrets.new(), "127.0.0.1")
    assert len(own._frames({"rows": np.arange(3), "step": 1}, None)) == 1
    own.close()


ELSEWHERE = """import sys
from dlog.engine.spark.shared_memory import SharedMemory, Slot
box = SharedMemory.open()
print(box.address, flush=True)
print(Slot.find(sys.stdin.readline().rstrip(), 1) is None, flush=True)
sys.stdin.readline()
box.close()
"""
"""A worker that says where its shared memory is, and whether it does not find the one it is told."""


@pytest.mark.parametrize("where", ["a container of its own", "this machine"])
def test_workers_in_containers_of_one_machine_send_messages(where: str) -> None:
    apart = where == "a container of its own"
    own = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
    if apart and subprocess.run([*own, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user cannot make containers with `unshare`")
    command = [*(own if apart else []), sys.executable, "-c", ELSEWHERE]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    box = SharedMemory.open()
    assert box is not None
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        theirs = worker.stdout.readline().rstrip()
        assert (Slot.find(theirs, 0) is None) == apart
        worker.stdin.write(f"{box.address}\n")
        worker.stdin.flush()
        assert worker.stdout.readline() == f"{apart}\n"
    box.close()
