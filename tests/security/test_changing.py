"""Files that somebody else changes while dlog has them: what was checked is what is used."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from dlog.engine.formats.budget import Budget
from dlog.engine.formats.text import read_bytes
from dlog.engine.state import files
from dlog.engine.state.files import text_to_extend
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.persistence.folder import State
from dlog.sessions.persistence.saving import takes_files
from dlog.temporary import lease
from tests.security.planted import dlog

SIZE = 1 << 20


def of_facts(path: Path) -> np.ndarray:
    with Budget().part() as part:
        return read_bytes(path, part, str(path))


def of_state(path: Path) -> np.ndarray:
    return files.mapped(path, SIZE)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no such modes")
@pytest.mark.parametrize("read", [of_facts, of_state])
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


@pytest.mark.parametrize("read", [of_facts, of_state])
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


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no such modes")
@pytest.mark.parametrize("left", ["link", "name", "pipe", "link in an own folder"])
def test_changes_are_not_written_where_others_had_links_lead(tmp_path: Path, left: str) -> None:
    (tmp_path / "p.dl").write_text(".decl e(x: number)\n.decl t(x: number)\nt(x) :- e(x).\n")
    (tmp_path / "changes").write_text("1,e,+1,5\n")
    mine, out = tmp_path / "mine", tmp_path / "out"
    mine.write_text("kept\n")
    out.mkdir()
    path = out / "t.changes.csv"
    {"name": path.hardlink_to, "pipe": lambda _: os.mkfifo(path)}.get(left, path.symlink_to)(mine)
    out.chmod(0o755 if "own" in left else 0o777)
    done = dlog("watch", "p.dl", "changes", "-D", "out", cwd=tmp_path)
    assert (done.returncode, mine.read_text()) == (1, "kept\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no such modes")
def test_a_folder_is_nobody_elses_if_those_that_lead_to_it_are_not(tmp_path: Path) -> None:
    """Who can rename an own folder puts another one in its place: with other names of this user's files in it, and what workers
    write goes there."""
    mine, folder = tmp_path / "mine", tmp_path / "shared" / "state"
    mine.write_text("kept\n")
    with closing(State(folder, "never", None)) as state:
        assert takes_files(state)
        (tmp_path / "shared").chmod(0o777)
        assert not takes_files(state)
    (folder / "lock").unlink()
    (folder / "lock").hardlink_to(mine)
    with pytest.raises(DlogError, match="another name"):
        State(folder, "never", None)
    assert mine.read_text() == "kept\n"
    (tmp_path / "shared").chmod(0o755)
    State(folder, "never", None).close()


def test_changes_go_on_in_a_folder_that_others_can_write_to(tmp_path: Path) -> None:
    for anew in (True, True, False):
        tmp_path.chmod(0o777)
        with text_to_extend(tmp_path / "file", anew) as file:
            file.write("a\n")
    assert (tmp_path / "file").read_text() == "a\na\n"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no such modes")
@pytest.mark.parametrize("way", ["link", "folder"])
def test_a_lock_is_not_put_where_others_had_a_temporary_folder_lead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """They can, where the place of temporary files has no sticky bit."""
    mine, place = tmp_path / "mine", tmp_path / "shared"
    for folder in (mine, place):
        folder.mkdir()
    (mine / "owner").write_text("me")
    moved: list[Path] = []

    def exchanged(**named: object) -> str:
        made = Path(mkdtemp(**named))  # type: ignore[call-overload]
        made.rename(place / "moved")
        moved.append(mine.rename(made) if way == "folder" else mine)
        if way == "link":
            made.symlink_to(mine)
        return str(made)

    monkeypatch.setattr("dlog.temporary.mkdtemp", exchanged)
    with pytest.raises(OSError, match=r"somebody else|Not a directory|Too many levels"):
        lease("dump", place)
    assert [path.name for path in moved[0].iterdir()] == ["owner"] and (moved[0] / "owner").read_text() == "me"
