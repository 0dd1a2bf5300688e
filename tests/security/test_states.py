"""Files that somebody left in a state folder: they are refused as damage is, and never run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

import dlog
from dlog.grammar.diagnostics import DlogError
from tests.dlog.state_sessions import PATHS, put
from tests.security.planted import pickled


def written(folder: Path) -> list[str]:
    with dlog.session(PATHS, state=folder, threads=1) as session:
        for number in range(5):
            put(session, (number, number + 1))
    return sorted(path.name for path in folder.iterdir() if path.is_file())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_pickles_in_a_state_are_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "was run"
    names = written(tmp_path / "state")
    assert len(names) > 8
    for name in names:
        folder = tmp_path / f"state of {name}"
        written(folder)
        (folder / name).write_bytes(pickled(marker))
        try:
            with dlog.session(PATHS, state=folder, threads=1) as session:
                assert len(session["path"]) == 15
        except DlogError as error:
            assert "damaged" in str(error)
        assert not marker.exists()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_is_written_where_links_in_a_state_lead(tmp_path: Path) -> None:
    names = [*written(tmp_path / "state"), "manifest.json.new"]
    for name in names:
        folder, mine = tmp_path / f"state of {name}", tmp_path / f"not {name}"
        written(folder)
        mine.write_text("kept")
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(mine)
        with suppress(DlogError), dlog.session(PATHS, state=folder, threads=1) as session:
            for number in range(20, 25):
                put(session, (number, number + 1))
        assert mine.read_text() == "kept", name


def test_nothing_is_appended_where_a_whole_log_is_a_link(tmp_path: Path) -> None:
    written(tmp_path / "state")
    [log] = (tmp_path / "state").glob("*.log")
    whole = log.rename(tmp_path / "elsewhere").read_bytes()
    log.symlink_to(tmp_path / "elsewhere")
    with suppress(DlogError), dlog.session(PATHS, state=tmp_path / "state", threads=1) as session:
        put(session, (20, 21))
    assert (tmp_path / "elsewhere").read_bytes() == whole
