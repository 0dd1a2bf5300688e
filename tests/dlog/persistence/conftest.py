"""What tests of states share."""

from __future__ import annotations

import pytest

from dlog.sessions.engines import Engines


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes each engine that starts from nothing."""
    noted: list[str] = []
    make = Engines.make
    monkeypatch.setattr(Engines, "make", lambda *args: noted.append("made") or make(*args))
    return noted
