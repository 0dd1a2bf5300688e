"""dlog imported from a zip file: what it reads as files is there, once however often it is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dlog.zipped import unpacked
from tests.zipped import zip_of_dlog

SCRIPT = """import dlog
from dlog.engine.kernels.jit import kernel_files
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


def test_grammar_kernels_and_programs_are_found(tmp_path: Path) -> None:
    archive, cache = zip_of_dlog(tmp_path / "dlog.zip"), tmp_path / "cache"
    first = told(archive, cache)
    [folder] = cache.glob("zipped-*")
    assert first == f"{folder}/dlog True True a\n"
    before = folder.stat().st_mtime_ns
    assert told(archive, cache) == first
    assert folder.stat().st_mtime_ns == before
    assert [path.name for path in cache.iterdir() if path.name.startswith(".")] == []


def test_another_state_of_the_file_is_unpacked_anew(tmp_path: Path) -> None:
    archive, cache = zip_of_dlog(tmp_path / "dlog.zip"), tmp_path / "cache"
    told(archive, cache)
    with archive.open("ab") as file:
        file.write(b"\n")
    told(archive, cache)
    assert len(list(cache.glob("zipped-*"))) == 2


def test_where_nothing_can_be_kept_it_is_unpacked_for_the_process(tmp_path: Path) -> None:
    archive = zip_of_dlog(tmp_path / "dlog.zip")
    (tmp_path / "file").write_text("in the way of a folder")
    assert told(archive, tmp_path / "file" / "cache").endswith("/dlog True True a\n")


def test_the_folder_of_the_package_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLOG_CACHE", str(tmp_path / "cache"))
    archive = zip_of_dlog(tmp_path / "it.zip")
    assert (Path(unpacked(f"{archive}/dlog")) / "engine" / "kernels" / "jit.py").is_file()
