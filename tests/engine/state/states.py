"""States for the tests of the store: written in rounds, and the code of the error that opening one gives."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dlog.engine.state.store import Store
from dlog.grammar.diagnostics import DlogError
from tests.engine.state.durable_model import Writer


def code_of(folder: Path) -> str:
    """The code of the error that opening gives."""
    with pytest.raises(DlogError) as refused:
        Store.open(folder, "program")
    return refused.value.diagnostics[0].code


def write(folder: Path, rounds: int, checkpoint_after: int = 0, killed: bool = False) -> None:
    """A state of so many rounds: closed, or as a process leaves it that is killed."""
    writer = Writer(folder.parent / "alive" if killed else folder, "never")
    for _ in range(rounds):
        if writer.commit() == checkpoint_after:
            for _ in writer.checkpoint():
                pass
    if killed:
        shutil.copytree(folder.parent / "alive", folder)
    writer.store.close()
