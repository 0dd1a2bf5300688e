"""Files that somebody else changes while dlog has them: what was checked is what is used."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dlog.engine.formats.text import read_bytes
from dlog.engine.trace.durable import files
from dlog.grammar.diagnostics import DlogError

SIZE = 1 << 20


def of_state(path: Path) -> np.ndarray:
    return files.mapped(path, SIZE)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no such modes")
@pytest.mark.parametrize("read", [read_bytes, of_state])
def test_what_somebody_else_can_change_is_not_mapped(tmp_path: Path, read: object) -> None:
    """A mapped file that is cut short ends whoever reads on; one that is written to is not what was checked."""
    assert callable(read)
    path = tmp_path / "file"
    path.write_bytes(b"x" * SIZE)
    path.chmod(0o666)
    found = read(path)
    with path.open("r+b") as file:
        file.write(b"y" * SIZE)
        file.truncate(0)
    assert np.all(found == ord("x"))


@pytest.mark.parametrize("read", [read_bytes, of_state])
def test_what_is_this_users_own_is_mapped(tmp_path: Path, read: object) -> None:
    assert callable(read)
    path = tmp_path / "file"
    path.write_bytes(b"x" * SIZE)
    path.chmod(0o600)
    found = read(path)
    with path.open("r+b") as file:
        file.write(b"y")
    assert found[0] == ord("y")


def test_a_file_of_a_state_that_is_too_short_is_damage(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * (SIZE - 1))
    with pytest.raises(DlogError, match="too short"):
        of_state(tmp_path / "file")
