"""Where what is made for later runs is kept, also where users have no home."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dlog.caches import Untrusted, cache_root, own_content, own_folder, own_tree


@pytest.fixture
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary files of a user whose home cannot be written to."""
    (tmp_path / "home").write_text("in the way of a folder")
    (tmp_path / "tmp").mkdir()
    for name in ("DLOG_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "")  # what is set meanwhile is forgotten after the test
        monkeypatch.delenv(name)
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


@pytest.mark.parametrize("mode", [0o702, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_not_used(homeless: Path, capsys: pytest.CaptureFixture[str], mode: int) -> None:
    refused = cache_root()
    refused.chmod(mode)
    found = cache_root()
    assert found != refused and found.stat().st_mode & 0o777 == 0o700
    assert f"others can write to {refused}" in capsys.readouterr().err


def test_one_that_others_can_read_is(homeless: Path) -> None:
    cache_root().chmod(0o755)
    assert cache_root().parent == homeless


def test_a_link_that_others_may_have_left_is_not_followed(homeless: Path, tmp_path: Path) -> None:
    place = cache_root()
    place.rmdir()
    (tmp_path / "theirs").mkdir(mode=0o700)
    place.symlink_to(tmp_path / "theirs")
    assert cache_root() not in (place, tmp_path / "theirs")


def test_the_folder_that_is_named_gets_the_same_look(
    tmp_path: Path, homeless: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "told").mkdir(mode=0o700)
    (tmp_path / "told").chmod(0o777)
    monkeypatch.setenv("DLOG_CACHE", str(tmp_path / "told"))
    found = cache_root()
    assert found.parent == homeless
    assert cache_root() == found and os.environ["DLOG_CACHE"] == str(found)  # processes that start now have it, too
    assert capsys.readouterr().err.count("warning: ") == 1


def test_what_leads_to_the_folder_is_looked_at(tmp_path: Path, homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "open" / "told"
    told.mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("DLOG_CACHE", str(told))
    told.parent.chmod(0o1777)  # whoever can write there can move nothing that is not theirs
    assert cache_root() == told
    told.parent.chmod(0o777)
    assert cache_root().parent == homeless


def test_a_folder_of_another_user_is_not_used(tmp_path: Path, homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told"
    told.mkdir(mode=0o700)
    monkeypatch.setenv("DLOG_CACHE", str(told))
    give_away(told, monkeypatch)
    with pytest.raises(Untrusted, match="belongs to another user"):
        own_folder(told)


def test_a_way_that_leads_through_links_is_told_without_them(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "far")
    assert own_folder(tmp_path / "near" / "cache") == tmp_path / "far" / "cache"


def test_folders_that_are_made_are_for_this_user_alone_whatever_the_mask_says(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        made = own_folder(tmp_path / "one" / "two")
    finally:
        os.umask(mask)
    assert {place.stat().st_mode & 0o777 for place in (made, made.parent)} == {0o700}


def test_a_file_is_read_unless_it_is_a_link_or_no_file_or_anothers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"content")
    assert own_content(file) == b"content" and own_tree(tmp_path)
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(Untrusted):
            own_content(tmp_path / name)
        assert not own_tree(tmp_path)
        (tmp_path / name).unlink()
    file.chmod(0o602)
    with pytest.raises(Untrusted, match="others can write"):
        own_content(file)
    file.chmod(0o600)
    give_away(file, monkeypatch)
    with pytest.raises(Untrusted, match="another user"):
        own_content(file)


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() == 0:
        os.chown(path, 12345, -1)
    else:
        me = os.getuid()
        monkeypatch.setattr("dlog.caches.os.getuid", lambda: me + 1)
