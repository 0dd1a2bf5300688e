"""A place for processes that are started to be ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security.ended import QUICK, SLOW, WATCHED, Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for name in ("tmp", "out"):
        (tmp_path / name).mkdir()
    for name, text in (("slow.dl", SLOW), ("quick.dl", QUICK), ("watched.dl", WATCHED), ("wrong.dl", "a(1).")):
        (tmp_path / name).write_text(text)
    (tmp_path / "edge.facts").write_text("1\t2\n")
    return Place(tmp_path)
