"""dlog imported from a zip file: what it reads as files is there, once however often it is imported."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dlog.caches import DAY, remove_unused, try_lock
from dlog.zipped import unpacked
from tests.zipped import zip_of_dlog

SCRIPT = """import dlog
from dlog.engine.kernels.core.versions import kernel_files
from dlog.graphs import library
from dlog.pipeline import compile_program
found = compile_program("a(1). .decl a(x: number)")
print(*dlog.__path__, len(kernel_files()) > 50, library.folder().is_dir(), *found.relations)
"""


def told(archive: Path, cache: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(archive), "DLOG_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, cwd=archive.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_grammar_kernels_and_programs_are_found(tmp_path: Path) -> None:
    archive, cache = zip_of_dlog(tmp_path / "dlog.zip"), tmp_path / "cache"
    first = told(archive, cache)
    [folder] = cache.glob("zipped-*")
    assert first == f"{folder}/dlog True True a\n"
    before = folder.stat().st_mtime_ns
    assert told(archive, cache) == first
    assert folder.stat().st_mtime_ns == before
    assert [path.name for path in cache.iterdir() if path.name.startswith(".")] == []


@pytest.mark.slow
def test_another_state_of_the_file_is_unpacked_anew(tmp_path: Path) -> None:
    archive, cache = zip_of_dlog(tmp_path / "dlog.zip"), tmp_path / "cache"
    told(archive, cache)
    with archive.open("ab") as file:
        file.write(b"\n")
    told(archive, cache)
    assert len(list(cache.glob("zipped-*"))) == 2


@pytest.mark.slow
def test_where_nothing_can_be_kept_it_is_unpacked_for_the_process(tmp_path: Path) -> None:
    archive = zip_of_dlog(tmp_path / "dlog.zip")
    (tmp_path / "file").write_text("in the way of a folder")
    assert told(archive, tmp_path / "file" / "cache").endswith("/dlog True True a\n")


def test_the_folder_of_the_package_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLOG_CACHE", str(tmp_path / "cache"))
    archive = zip_of_dlog(tmp_path / "it.zip")
    assert (Path(unpacked(f"{archive}/dlog")) / "engine" / "kernels" / "core" / "jit.py").is_file()


def _aged(folder: Path, days: float) -> Path:
    folder.mkdir(mode=0o700, parents=True)
    (folder / "old.py").write_text("")
    for place in (folder / "old.py", folder):
        os.utime(place, (time.time() - days * DAY,) * 2)
    return folder


def test_what_was_unpacked_for_others_goes_when_nobody_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLOG_CACHE", str(tmp_path / "cache"))
    old, late, used = (_aged(tmp_path / "cache" / f"zipped-{d * 16}", days) for d, days in (("1", 31), ("2", 29), ("3", 90)))
    (tmp_path / "cache").chmod(0o700)
    holding = try_lock(used)
    assert holding is not None
    for place in (*used.iterdir(), used):
        os.utime(place, (0, 0))
    found = Path(unpacked(f"{zip_of_dlog(tmp_path / 'dlog.zip')}/dlog")).parent
    os.close(holding)
    assert {*(tmp_path / "cache").glob("zipped-*")} == {found, late, used} and not old.exists()
    for place in (found, *found.rglob("*")):
        os.utime(place, (0, 0))
    remove_unused(used, "zipped")
    assert found.is_dir()  # this process runs what is there


def test_what_was_unpacked_is_marked_when_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLOG_CACHE", str(tmp_path / "cache"))
    archive = zip_of_dlog(tmp_path / "dlog.zip")
    found = Path(unpacked(f"{archive}/dlog")).parent
    os.utime(found, (0, 0))
    assert Path(unpacked(f"{archive}/dlog")).parent == found
    assert time.time() - found.stat().st_mtime < DAY
