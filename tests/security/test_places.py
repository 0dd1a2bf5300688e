"""What is among the temporary files where others can rename what is not theirs."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dlog.caches import own_lease
from dlog.engine.spark.application import _temporary_files
from dlog.engine.spark.shared_memory import SharedMemory
from dlog.grammar.diagnostics import DlogError


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_others_cannot_take_the_place_of_a_folder_for_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """They would be the JVM for PySpark, which reads there what the port of its own is."""
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(mode)
    monkeypatch.setattr("tempfile.tempdir", str(place))
    made = own_lease("spark")
    assert (made.folder.parent == place) == (mode == 0o1777)
    made.remove()
    assert not list(place.iterdir()) and not made.folder.exists()


def test_where_no_file_can_be_opened_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**named: object) -> str:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("dlog.temporary.mkdtemp", full)
    with pytest.raises(OSError, match="Too many open files"):
        own_lease("spark")


def test_spark_does_not_start_where_others_can_take_the_place_of_what_is_its(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("dlog.caches.SYSTEMS", ())
    with pytest.raises(DlogError, match="others can put something else in the place"), _temporary_files():
        pass
    assert not list(tmp_path.iterdir())


def test_workers_share_no_memory_where_others_can_take_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels look up what stands in blocks without asking."""
    (tmp_path / "shared").mkdir()
    monkeypatch.setattr("dlog.engine.spark.shared_memory._places", lambda: iter([tmp_path / "shared"]))
    made = SharedMemory.open()
    assert made is not None
    made.close()
    (tmp_path / "shared").chmod(0o777)
    assert SharedMemory.open() is None
    assert not list((tmp_path / "shared").iterdir())
