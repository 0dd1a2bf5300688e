"""Folders that last as long as their process, however that ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dlog import temporary
from dlog.removal import remove_tree
from dlog.temporary import LOCK, lease, sweep
from tests.security.planted import nest

HOLD = """import sys
from pathlib import Path
from dlog.temporary import lease
made = lease("spark", Path(sys.argv[1]))
print(made.folder, flush=True)
sys.stdin.read()
"""


def test_a_folder_is_for_this_user_alone_and_goes_with_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with lease("dump") as folder:
        assert folder.parent == tmp_path and folder.stat().st_mode & 0o777 == 0o700
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_leaves_goes_with_the_next_lease(tmp_path: Path) -> None:
    held = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert held.stdout is not None and held.stdin is not None
    folder = Path(held.stdout.readline().strip())
    (folder / "rows").write_text("many")
    sweep([tmp_path])
    assert folder.is_dir()
    held.kill()
    held.communicate()
    assert folder.is_dir()
    made = lease("spark", tmp_path)
    assert list(tmp_path.iterdir()) == [made.folder]
    made.remove()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders are not known by their locks")
def test_folders_in_one_another_are_removed_however_many_and_links_are_not_followed(tmp_path: Path) -> None:
    """An archive may bring them. 5,000 are more than a process may have files open, or Python calls in one another."""
    kept, left = tmp_path / "kept", tmp_path / "dlog-dump-abcdefgh"
    (kept / "folder").mkdir(parents=True)
    (kept / "folder" / "file").touch()
    nest(left, 5000, kept)
    (left / LOCK).write_bytes(bytes(temporary.TOKEN_SIZE))
    sweep([tmp_path])
    assert list(tmp_path.iterdir()) == [kept] and (kept / "folder" / "file").exists()


def test_what_cannot_be_removed_does_not_keep_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "tree" / name / "inner").mkdir(parents=True)
        (tmp_path / "tree" / name / "inner" / name).touch()
    unlink = os.unlink

    def refusing(name: str, **place: int) -> None:
        if name == "b":
            raise PermissionError(1, "refused", name)
        unlink(name, **place)

    monkeypatch.setattr(os, "unlink", refusing)
    with pytest.raises(PermissionError, match="refused"):
        remove_tree(tmp_path / "tree")
    assert [path.name for path in (tmp_path / "tree").rglob("*") if path.is_file()] == ["b"]


def test_a_process_that_ends_leaves_nothing(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.DEVNULL, check=True, capture_output=True)
    assert not list(tmp_path.iterdir())


WRITE = """import itertools, os, sys
from pathlib import Path
for number in itertools.count():
    try:
        place = Path(sys.argv[1], "blocks", str(number % 64))
        place.parent.mkdir(exist_ok=True)
        place.mkdir(exist_ok=True)
        (place / str(number)).touch()
    except OSError:
        pass
    if not number:
        print("begun", flush=True)
"""


def test_what_others_still_write_while_a_folder_goes_is_removed_by_the_next_sweep(tmp_path: Path) -> None:
    """A JVM ends some time after the process that has started it."""
    made = lease("spark", tmp_path)
    writes = subprocess.Popen([sys.executable, "-c", WRITE, made.folder], stdout=subprocess.PIPE, text=True)
    assert writes.stdout is not None and writes.stdout.readline() == "begun\n"
    made.remove()
    writes.kill()
    writes.communicate()
    sweep([tmp_path])
    assert not list(tmp_path.iterdir())


def test_a_forked_child_removes_nothing(tmp_path: Path) -> None:
    made = lease("spark", tmp_path)
    child = os.fork()
    if not child:
        temporary.remove_all()
        os._exit(0)
    os.waitpid(child, 0)
    assert made.folder.is_dir()
    made.remove()
    assert not list(tmp_path.iterdir())


def test_what_somebody_gave_the_name_of_a_folder_of_ours_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a place without the sticky bit others can rename what is this user's, though not remove what is in it."""
    monkeypatch.setattr(temporary, "YOUNG", -1.0)
    for name in ("without", "begun", "owned"):
        mine = tmp_path / f"dlog-dump-{name}" / "thesis"
        mine.mkdir(parents=True)
        (mine / "chapter").write_text("years of work")
    (tmp_path / "dlog-dump-begun" / f".{LOCK}").write_text("")
    (tmp_path / "dlog-dump-named").mkdir()
    (tmp_path / "dlog-dump-named" / f".{LOCK}").write_text("who owns this")
    (tmp_path / "dlog-dump-owned" / LOCK).write_text("me")
    begun = tmp_path / "dlog-dump-left"
    begun.mkdir()
    (begun / f".{LOCK}").write_text("")
    lease("dump", tmp_path).remove()
    assert not begun.exists()
    assert len(list(tmp_path.glob("dlog-dump-*/thesis/chapter"))) == 3
    assert (tmp_path / "dlog-dump-named" / f".{LOCK}").read_text() == "who owns this"


@pytest.fixture
def thesis(tmp_path: Path) -> Path:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "chapter").write_text("years of work")
    return mine


def test_what_has_been_given_the_name_of_a_folder_of_ours_meanwhile_is_not_removed_at_the_end(
    tmp_path: Path, thesis: Path
) -> None:
    made = lease("dump", tmp_path)
    (made.folder / "rows").mkdir()
    made.folder.rename(tmp_path / "moved")
    thesis.rename(made.folder)
    made.remove()
    assert (made.folder / "chapter").read_text() == "years of work"
    sweep([tmp_path])
    (tmp_path / "moved").rename(tmp_path / "dlog-dump-moved")
    sweep([tmp_path])
    assert [path.name for path in tmp_path.iterdir()] == [made.folder.name]


@pytest.mark.parametrize("held", [False, True])
def test_what_is_given_the_name_of_a_folder_of_ours_while_it_is_removed_stays(
    tmp_path: Path, thesis: Path, monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    """Another one of ours that is in use stays, too."""
    left, free_lock = tmp_path / "dlog-dump-left", temporary.free_lock
    other = lease("worker", tmp_path) if held else None
    left.mkdir()
    (left / LOCK).write_text("0" * temporary.TOKEN_SIZE)

    def meanwhile(folder: Path) -> os.stat_result | None:
        found = free_lock(folder)
        if found is not None:
            folder.rename(tmp_path / "moved")
            (thesis if other is None else other.folder).rename(folder)
        return found

    monkeypatch.setattr(temporary, "free_lock", meanwhile)
    sweep([tmp_path])
    assert (left / ("chapter" if other is None else LOCK)).exists()


def test_a_folder_without_a_lock_is_not_left_where_it_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> bool:
        raise OSError("no locks left")

    monkeypatch.setattr(temporary, "lock", full)
    with pytest.raises(OSError, match="no locks left"):
        lease("dump", tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_only_looks_alike_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary, "YOUNG", -1.0)
    (tmp_path / "dlog-mine").mkdir()
    (tmp_path / "dlog-spark-file").write_text("")
    (tmp_path / "home").mkdir()
    (tmp_path / "dlog-spark-link").symlink_to(tmp_path / "home")
    (tmp_path / "dlog-spark-left").mkdir()
    piped = tmp_path / "dlog-spark-pipe"
    piped.mkdir()
    os.mkfifo(piped / LOCK)  # opening it must not wait for a writer
    sweep([tmp_path])
    assert not (tmp_path / "dlog-spark-left").exists()
    names = {path.name for path in tmp_path.iterdir()}
    assert names - {"dlog-spark-pipe"} == {"dlog-mine", "dlog-spark-file", "home", "dlog-spark-link"}


@pytest.mark.skipif(os.getuid() != 0, reason="gives a folder to another user")
def test_what_belongs_to_others_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary, "YOUNG", -1.0)
    (tmp_path / "dlog-spark-theirs").mkdir()
    os.chown(tmp_path / "dlog-spark-theirs", 12345, -1)
    sweep([tmp_path])
    assert (tmp_path / "dlog-spark-theirs").exists()


def test_an_interruption_at_the_end_leaves_no_folder_and_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is tired of waiting for a process to end by itself."""
    monkeypatch.setattr(temporary, "_leases", {})

    class Slow:
        ended = 0

        def end(self) -> None:
            Slow.ended += 1
            raise KeyboardInterrupt

    made = [lease("spark", tmp_path) for _ in range(3)]
    for one in made[:2]:
        one.processes.append(Slow())
    temporary.remove_all()
    assert Slow.ended == 2
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_somebody_removed_is_not_there(tmp_path: Path) -> None:
    made = lease("spark", tmp_path)
    assert made.is_there
    shutil.rmtree(made.folder)
    assert not made.is_there
    made.folder.mkdir()
    (made.folder / LOCK).write_text(made.token)
    assert not made.is_there
    made.remove()
