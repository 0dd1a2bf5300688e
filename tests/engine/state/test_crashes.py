"""Crashes, full disks, interruptions and killed writers: what was acknowledged is there."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from dlog.engine.state import files, log
from dlog.engine.state.records import Framing
from dlog.engine.state.segments import segment_path
from dlog.engine.state.store import Store
from dlog.grammar.diagnostics import DlogError
from tests.engine.kernels.workbench import JIT
from tests.engine.state.durable_model import Writer, expected, recover, updates
from tests.engine.state.states import write

ROOT = Path(__file__).parents[3]


# -------------------------------------------------------------------------------------------------------- fault injection


class Crash(BaseException):
    """The process is gone."""


class FailingDisk:
    """Stands for the module os in `files`: from the given operation on, of those that change the disk, nothing happens any
    more; if it is a write, half of its bytes are written. With another `failure` only writing fails."""

    def __init__(self, operations: int, failure: BaseException | None = None) -> None:
        self.left, self.failure = operations, failure

    def __getattr__(self, name: str) -> object:
        real = getattr(os, name)
        if name not in ("write", "fsync", "ftruncate", "replace", "unlink"):
            return real

        def operation(*arguments: object) -> object:
            if self.failure is not None and name != "write":
                return real(*arguments)
            self.left -= 1
            if self.left == 0 and name == "write":
                os.write(arguments[0], bytes(arguments[1])[: len(bytes(arguments[1])) // 2])  # type: ignore[arg-type]
            if self.left <= 0:
                raise self.failure or Crash
            return real(*arguments)

        return operation


def scenario(folder: Path, acknowledged: list[int]) -> None:
    writer = Writer(folder, "always")
    steps = iter(())
    try:
        for round in range(1, 15):
            acknowledged.append(writer.commit())
            next(steps, None)
            if round % 5 == 0:
                steps = writer.checkpoint()  # type: ignore[assignment]
        acknowledged.append(99)
    finally:
        with suppress(Crash):  # the system closes a dead process's files
            writer.store.close()


@pytest.mark.slow
def test_a_crash_at_any_operation_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Crashes before each operation on the disk in turn, in the middle of each write."""
    for operations in itertools.count(1):
        folder = tmp_path / str(operations)
        acknowledged = [0]
        with monkeypatch.context() as patched:
            patched.setattr(files, "os", FailingDisk(operations))
            with suppress(Crash):
                scenario(folder, acknowledged)
        if acknowledged[-1] == 99:
            break
        with monkeypatch.context() as patched:  # and once more while the state is being opened
            patched.setattr(files, "os", FailingDisk(operations % 3 + 1))
            with suppress(Crash):
                recover(folder)
        found = recover(folder)
        assert acknowledged[-1] <= found[0] <= acknowledged[-1] + 1, operations
        assert found == expected(found[0]), operations
    assert operations > 60


def test_a_full_disk_is_told_and_nothing_half_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(tmp_path, "never")
    for _ in range(3):
        writer.commit()
    with monkeypatch.context() as patched:
        patched.setattr(files, "os", FailingDisk(1, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
        with pytest.raises(DlogError, match="No space left"):
            writer.store.append(4, {"kept": updates([((8, 8), 1)], 4)})
    assert writer.store.round == 3
    writer.commit()
    writer.store.close()
    assert recover(tmp_path) == expected(4)


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["create", "sync_folder", "open_to_append"])
def test_a_segment_that_is_refused_leaves_the_one_before_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Rounds go on in the old segment, the last record of which a kill may tear."""
    writer = Writer(tmp_path, "never")
    writer.commit()
    with monkeypatch.context() as patched:
        patched.setattr(files, step, full)
        with pytest.raises(DlogError, match="No space left"):
            writer.checkpoint()
    writer.commit()
    writer.store.close()
    with segment_path(tmp_path, 1).open("ab") as file:
        payload = log.encode(3, {"kept": updates([((8, 8), 1)], 3)}, {})
        framing = Framing.of(writer.store._manifest.state, 1)
        file.write(framing.framed(payload, file.tell(), 2, 3)[:-5])
    assert recover(tmp_path) == expected(2)


def test_a_checkpoint_that_was_prepared_goes_on_in_the_segment_that_is_there(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "alive", "never")
    writer.commit()
    writer.store.prepare()
    assert beside(tmp_path / "alive").stat().st_size == 0
    writer.commit()
    finish(writer)
    assert not beside(tmp_path / "alive").exists() and not writer.store.prepared
    writer.commit()
    shutil.copytree(tmp_path / "alive", tmp_path / "killed")
    writer.store.close()
    assert recover(tmp_path / "killed") == recover(tmp_path / "alive") == expected(3)


def test_what_was_prepared_goes_with_the_store_and_when_one_that_was_killed_is_opened(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "alive", "never")
    writer.commit()
    writer.store.prepare()
    writer.commit()
    shutil.copytree(tmp_path / "alive", tmp_path / "killed")
    assert beside(tmp_path / "killed").exists()
    with segment_path(tmp_path / "killed", 1).open("ab") as file:
        file.write(bytes(5))
    writer.store.close()
    for folder in (tmp_path / "killed", tmp_path / "alive"):
        assert recover(folder) == expected(2)
        assert not beside(folder).exists()


@pytest.mark.parametrize("step", ["fill", "sync_folder", "open_to_append"])
def test_a_prepared_segment_that_is_refused_leaves_the_one_before_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    writer = Writer(tmp_path, "never")
    writer.commit()
    writer.store.prepare()
    with monkeypatch.context() as patched:
        patched.setattr(files, step, full)
        with pytest.raises(DlogError, match="No space left"):
            finish(writer)
    writer.commit()
    writer.store.prepare()
    finish(writer)
    writer.store.close()
    assert recover(tmp_path) == expected(2)


def beside(folder: Path) -> Path:
    """The file that is to be the second segment."""
    return folder / "00000002.log.new"


def finish(writer: Writer) -> None:
    for _ in writer.checkpoint():
        pass


def test_an_append_that_could_not_be_taken_back_is_when_the_state_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(tmp_path, "always")
    for _ in range(3):
        writer.commit()
    with monkeypatch.context() as patched:
        patched.setattr(files, "sync", full)
        patched.setattr(os, "ftruncate", full)
        with pytest.raises(DlogError, match="No space left"):
            writer.store.append(4, {"kept": updates([((8, 8), 1)], 4)})
    writer.store.close()
    assert recover(tmp_path) == expected(3)


def test_a_full_disk_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 3)
    monkeypatch.setattr(os, "write", full)
    with Store.open(tmp_path, "program") as store:
        assert store.round == 3


def test_an_interrupted_append_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(tmp_path, "never")
    for _ in range(3):
        writer.commit()
    with monkeypatch.context() as patched:
        patched.setattr(files, "os", FailingDisk(1, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            writer.store.append(4, {"kept": updates([((8, 8), 1)], 4)})
    writer.commit()
    writer.store.close()
    assert recover(tmp_path) == expected(4)


def kill(folder: Path, kills: int, seed: int, sync: str) -> int:
    """Runs the killer in a process of its own; returns how many rounds have been written in all."""
    command = [sys.executable, "-m", "tests.engine.state.killing", str(folder), str(kills), str(seed), sync]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not JIT or not hasattr(os, "fork"), reason="needs fork, and quick kernels")
def test_killed_writers_lose_nothing(tmp_path: Path) -> None:
    assert kill(tmp_path, 20, 1, "never") > 100


@pytest.mark.exhaustive
@pytest.mark.skipif(not JIT or not hasattr(os, "fork"), reason="needs fork, and quick kernels")
@pytest.mark.parametrize(("seed", "sync"), [(2, "always"), (3, "never"), (4, "often")])
def test_hundreds_of_killed_writers_lose_nothing(tmp_path: Path, seed: int, sync: str) -> None:
    assert kill(tmp_path, 200, seed, sync) > 1000
