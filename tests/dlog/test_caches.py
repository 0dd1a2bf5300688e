"""Where what is made for later runs is kept, also where users have no home."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlog.caches import cache_root


@pytest.fixture
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary files of a user whose home cannot be written to."""
    (tmp_path / "home").write_text("in the way of a folder")
    (tmp_path / "tmp").mkdir()
    for name in ("DLOG_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


def test_a_home_that_can_be_written_to_has_it(tmp_path: Path, homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "another"))
    assert cache_root() == tmp_path / "another" / ".cache" / "dlog"
    monkeypatch.setenv("DLOG_CACHE", str(tmp_path / "told"))
    assert cache_root() == tmp_path / "told"


def test_without_one_it_is_among_the_temporary_files_for_this_user_alone(homeless: Path) -> None:
    found = cache_root()
    assert found.parent == homeless
    assert found.stat().st_mode & 0o777 == 0o700
    assert cache_root() == found


def test_a_folder_that_cannot_be_written_to_does_only_if_it_has_something(
    tmp_path: Path, homeless: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "another"))
    users = cache_root()
    monkeypatch.setattr("dlog.caches.os.access", lambda path, mode: path != users)
    assert cache_root().parent == homeless
    (users / "kernels").mkdir()
    assert cache_root() == users


def test_a_user_without_any_home_has_it_there_too(homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", none)
    assert cache_root().parent == homeless


def test_a_folder_that_others_can_enter_is_not_trusted(homeless: Path) -> None:
    cache_root().chmod(0o755)
    with pytest.raises(OSError, match="is not for this user alone"):
        cache_root()


def test_a_link_that_others_may_have_left_is_not_followed(homeless: Path, tmp_path: Path) -> None:
    place = cache_root()
    place.rmdir()
    (tmp_path / "theirs").mkdir(mode=0o700)
    place.symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError, match="is not for this user alone"):
        cache_root()
