"""Images of states, as tests count and wait for them, and stories told to sessions that end and go on."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import dlog
from tests.dlog.persistence.state_sessions import crash
from tests.rounds import Story, states_of


def images(folder: Path) -> list[Path]:
    return sorted((folder / "state").glob("*.image"))


def settle(session: dlog.Session) -> None:
    """Waits until nothing is written beside the commits."""
    writing = session._engine._state.checkpoints._writing  # type: ignore[attr-defined]
    if writing is not None:
        writing.join()


def tell(story: Story, seed: int, ends: float = 0.6) -> None:
    """Tells a story to a session that is closed, or killed, and opened again between any two rounds."""
    rng = Random(seed)
    states = states_of(story.case, story.rounds)
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"state": folder, "threads": 1, "sync": "never"}
        session = dlog.session(story.case.text, **options)
        try:
            for round, expected in zip(story.rounds, states, strict=True):
                if rng.random() < 0.7:
                    settle(session)
                if rng.random() < ends:
                    session.close() if rng.random() < 0.5 else crash(session)
                    session = dlog.session(story.case.text, **options)
                for name, row, diff in round:
                    (session.insert if diff > 0 else session.remove)(name, row)
                session.commit()
                rows = {name: {repr(row) for row in session[name]} for name in session}
                assert rows == {name: set(held) for name, held in expected.items()}
        finally:
            crash(session)
