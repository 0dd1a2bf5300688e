"""The file of compiled kernels, where it is damaged, cannot be kept or is being made by a process that dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from dlog.engine.kernels.core import building, library
from dlog.engine.kernels.core.building import _run as run_builder
from dlog.engine.kernels.core.library import DIGEST, Library

BODY = b"an object file and its description"
WHOLE = sha256(BODY).digest() + BODY


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """The paths that were built; building writes a whole file at once."""
    paths: list[Path] = []

    def build(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(WHOLE)
        paths.append(path)

    monkeypatch.setattr(library, "build", build)
    library._content.cache_clear()
    yield paths
    library._content.cache_clear()


@pytest.mark.parametrize("content", [b"", b"short", WHOLE[:-1], WHOLE + b"x", bytes(DIGEST) + BODY])
def test_a_damaged_library_is_never_given_to_llvm(content: bytes) -> None:
    with pytest.raises(ValueError, match="damaged"):
        Library(content)


@pytest.mark.parametrize("content", [None, b"", WHOLE[:-1]])
def test_a_library_that_is_not_there_or_damaged_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: list[Path], content: bytes | None
) -> None:
    path = tmp_path / "library"
    monkeypatch.setattr(library, "library_path", lambda: path)
    if content is not None:
        path.write_bytes(content)
    assert library._content() == path.read_bytes() == WHOLE
    assert built == [path]


def test_a_whole_library_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: list[Path]) -> None:
    monkeypatch.setattr(library, "library_path", lambda: tmp_path / "library")
    (tmp_path / "library").write_bytes(WHOLE)
    assert library._content() == WHOLE
    assert built == []


def test_without_a_place_to_keep_it_the_library_is_made_for_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way of a folder")
    monkeypatch.setattr(library, "library_path", lambda: tmp_path / "file" / "kernels" / "library")
    assert library._content() == WHOLE
    assert len(built) == 1 and not built[0].exists()
    assert "DLOG_CACHE names another folder" in capsys.readouterr().err


def test_remains_of_killed_builders_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda command, **_: Path(command[-2]).write_bytes(WHOLE) and _Done())
    for name in ("library.123", "library.lock", "other.123"):
        (tmp_path / name).write_bytes(b"")
    run_builder(tmp_path / "library")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["library", "library.lock", "other.123"]


class _Done:
    returncode = 0


def _aged(folder: Path, days: float) -> Path:
    folder.mkdir()
    (folder / "library").write_bytes(WHOLE)
    for place in (folder / "library", folder):
        os.utime(place, (time.time() - days * building.DAY,) * 2)
    return folder


def test_what_other_versions_have_left_goes_when_nobody_has_used_it_for_long(tmp_path: Path) -> None:
    mine, other = tmp_path / f"kernels-{'0' * 16}", _aged(tmp_path / "other", 90)
    mine.mkdir()
    old, late = (_aged(tmp_path / f"kernels-{digit * 16}", days) for digit, days in (("1", 31), ("2", 29)))
    link, used = tmp_path / f"kernels-{'3' * 16}", _aged(tmp_path / f"kernels-{'4' * 16}", 90)
    link.symlink_to(other)
    building.note_use(used / "library")
    building.remove_unused(other)
    assert old.is_dir()  # what is beside another kind of folder is not looked at
    building.remove_unused(mine)
    assert {*tmp_path.iterdir()} == {mine, other, late, link, used} and (other / "library").is_file()


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
def test_what_another_user_has_left_stays(tmp_path: Path) -> None:
    theirs = _aged(tmp_path / f"kernels-{'1' * 16}", 90)
    os.chown(theirs, 12345, -1)
    building.remove_unused(tmp_path / f"kernels-{'0' * 16}")
    assert theirs.is_dir()


def test_a_library_that_is_used_is_marked_each_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: list[Path]
) -> None:
    folder = _aged(tmp_path / "kernels", 2)
    monkeypatch.setattr(library, "library_path", lambda: folder / "library")
    assert library._content() == WHOLE and not built
    assert time.time() - (folder / "library").stat().st_mtime < building.DAY


def test_a_builder_ends_with_the_process_that_wants_the_library(tmp_path: Path) -> None:
    watched, held = os.pipe()
    command = [sys.executable, "-m", "dlog.engine.kernels.core.build", str(tmp_path / "library"), str(os.getpid())]
    builder = subprocess.Popen(command, stdin=watched, stderr=subprocess.DEVNULL)
    os.close(watched)
    os.close(held)
    assert builder.wait(timeout=300) == 1
    assert not list(tmp_path.iterdir())


FORKING = """
import os, subprocess, sys
from dlog.engine.kernels.core import building

with building._alone(__import__("pathlib").Path(sys.argv[1], "lock")):
    watched, held = os.pipe()
    command = [sys.executable, "-m", "dlog.engine.kernels.core.build", sys.argv[1] + "/library", str(os.getpid())]
    builder = subprocess.Popen(command, stdin=watched, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    forked = os.fork()
    if forked == 0:
        os.close(1)
        os.read(os.pipe()[0], 1)
    print(builder.pid, forked, flush=True)
    os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks in /proc whether processes run")
def test_neither_builder_nor_lock_stays_with_what_the_process_had_forked(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKING, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=False)
    builder, forked = map(int, done.stdout.split())
    try:
        with building._alone(tmp_path / "lock"):
            while _runs(builder):
                time.sleep(0.05)
        assert _runs(forked)
    finally:
        os.kill(forked, signal.SIGKILL)


def _runs(process: int) -> bool:
    """Whether a process of somebody else's runs."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
