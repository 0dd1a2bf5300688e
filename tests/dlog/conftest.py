"""Fixtures of the tests of what a user touches."""


from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dlog
from tests.dlog.persistence.state_sessions import PATHS, Open, crash


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
