"""Fixtures of the tests of what a user touches."""


from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dlog
from dlog.__main__ import run_command
from tests.dlog.command import CLOSURE, Finished
from tests.dlog.persistence.state_sessions import PATHS, Open, crash
from tests.dlog.watching import KINDS, RunWatch


@pytest.fixture
def reopen(tmp_path: Path) -> Iterator[Open]:
    """Opens a session on the one state of the test, without a closing of the last one if that is still open."""
    sessions: list[dlog.Session] = []

    def open(program: str | None = PATHS, *args: Any, **options: Any) -> dlog.Session:
        if sessions and not sessions[-1]._closed:
            crash(sessions[-1])
        sessions.append(dlog.session(program, *args, **{"state": tmp_path / "state", "threads": 1, **options}))
        return sessions[-1]

    yield open
    for session in sessions:
        with warnings.catch_warnings():
            crash(session)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "closure.dl").write_text(CLOSURE)
    (tmp_path / "kinds.dl").write_text(KINDS)
    return tmp_path


@pytest.fixture
def watch(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> RunWatch:
    """`watch(program, stream text, flags...)` within this process: the stream is the file changes.txt."""

    def run(program: str, stream: str, *flags: str) -> Finished:
        (folder / "changes.txt").write_text(stream, encoding="utf-8", newline="")
        monkeypatch.chdir(folder)
        code = run_command(["watch", program, "changes.txt", *flags])
        return Finished(code, *capfd.readouterr())

    return run
