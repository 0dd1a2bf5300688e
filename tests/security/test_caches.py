"""Files that somebody left where dlog keeps what one run makes for the next: none is run."""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dlog.caches import Untrusted, _is_own_group, own_content, own_folder, own_tree
from dlog.engine.kernels.core import building, library
from dlog.grammar import parser
from dlog.temporary import lease
from dlog.zipped import unpacked
from tests.conftest import ROOT
from tests.security.planted import PROGRAM, dlog, module, pickled, run
from tests.zipped import zip_of_dlog

TABLES = "grammar-*.json"


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "was run"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "work" / "program.dl"
    path.parent.mkdir()
    path.write_text(PROGRAM)
    return path


def check(program: Path, cache: Path) -> str:
    done = dlog("check", str(program), cwd=program.parent, DLOG_CACHE=str(cache))
    assert done.returncode == 0 and done.stdout.endswith("ok (2 relations, 2 rules)\n"), done
    return done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda kept: kept, lambda kept: b"0\n" + kept, lambda kept: kept + kept])
def test_a_pickle_in_the_place_of_the_grammars_tables_is_not_run(
    program: Path, tmp_path: Path, marker: Path, wrap: Callable[[bytes], bytes]
) -> None:
    cache = tmp_path / "cache"
    check(program, cache)
    [tables] = cache.glob(TABLES)
    tables.write_bytes(wrap(pickled(marker)))
    tables.with_suffix(".tables").write_bytes(wrap(pickled(marker)))
    assert check(program, cache) == ""
    assert not marker.exists()
    assert "parser" in json.loads(tables.read_bytes())[0]


@pytest.mark.slow
def test_tables_that_say_what_is_to_be_run_are_refused(program: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    check(program, cache)
    [tables] = cache.glob(TABLES)
    planted = tables.read_bytes().replace(b'"options":{', b'"options":{"_plugins":{"LALR_Parser":1},', 1)
    tables.write_bytes(planted)
    assert check(program, cache) == ""
    assert b"_plugins" in planted and b"_plugins" not in tables.read_bytes()


def test_nothing_is_read_from_a_cache_that_others_can_write_to(program: Path, tmp_path: Path) -> None:
    cache, homes = tmp_path / "cache", tmp_path / "homes"
    cache.mkdir()
    cache.chmod(0o777)
    done = dlog("check", str(program), cwd=program.parent, DLOG_CACHE=str(cache), XDG_CACHE_HOME=str(homes))
    assert done.returncode == 0
    assert done.stderr == (f"warning: others can write to {cache}: what is kept between runs goes to {homes / 'dlog'}\n")
    assert not list(cache.iterdir())
    assert len(list((homes / "dlog").glob(TABLES))) == 1


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="there are no groups")
def test_a_group_is_this_users_alone_only_if_it_is_nobodys_first_one_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of groups do not name those who have it from the list of users."""
    import grp
    import pwd

    me, group = pwd.struct_passwd(("me", "x", os.getuid(), 4711, "", "/", "")), grp.struct_group(("me", "x", 4711, ["me"]))
    users = [me, pwd.struct_passwd(("you", "x", os.getuid() + 1, 4712, "", "/", ""))]
    monkeypatch.setattr(pwd, "getpwuid", lambda _: me)
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    monkeypatch.setattr(grp, "getgrgid", lambda _: group)
    assert _is_own_group(4711)
    users[1] = pwd.struct_passwd(("you", "x", os.getuid() + 1, 4711, "", "/", ""))
    assert not _is_own_group(4711)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no access control lists")
@pytest.mark.parametrize("what", ["cache", "what leads to it", "file"])
def test_nothing_is_read_from_a_cache_that_a_list_lets_others_write_to(tmp_path: Path, what: str) -> None:
    """With a list the group's modes are what any in it may at most: no word of the group."""
    cache = tmp_path / "leads" / "cache"
    cache.mkdir(parents=True)
    place = {"cache": cache, "what leads to it": cache.parent, "file": cache / "file"}[what]
    (cache / "file").write_text("kept")
    place.chmod(0o770)
    assert os.getuid() or own_content(own_folder(cache) / "file") == b"kept"  # others may have a group with somebody in it
    entries = [(1, 7, -1), (2, 7, 65534), (4, 0, -1), (0x10, 7, -1), (0x20, 0, -1)]  # user 65534 may write
    made = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(place, "system.posix_acl_access", made)
    except OSError:
        pytest.skip("no access control lists in this file system")
    with pytest.raises(Untrusted, match="others can write"):
        own_content(own_folder(cache) / "file")


def test_a_program_is_checked_where_no_folder_can_be_trusted_and_leaves_nothing(program: Path, tmp_path: Path) -> None:
    for name in ("cache", "homes", "tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
    named = {"DLOG_CACHE": str(tmp_path / "cache"), "XDG_CACHE_HOME": str(tmp_path / "homes"), "TMPDIR": str(tmp_path / "tmp")}
    done = dlog("check", str(program), cwd=program.parent, **named)
    assert (done.returncode, done.stderr) == (0, "")
    assert not [path for name in ("cache", "homes", "tmp") for path in (tmp_path / name).rglob("*") if path.is_file()]
    assert not [*(tmp_path / "tmp").iterdir(), *(tmp_path / "homes").iterdir()]


FROM_HERE = [
    {"XDG_CACHE_HOME": ""},
    {"XDG_CACHE_HOME": "."},
    {"HOME": "home"},
    {"HOME": "."},
    {"DLOG_CACHE": "dlog"},
    {"HOME": "/dev/null", "TMPDIR": "."},
    {"HOME": "/dev/null", "TMPDIR": "tmp"},
    {"HOME": "/dev/null", "TMPDIR": "../here/tmp"},
]


@pytest.mark.parametrize("named", FROM_HERE)
def test_nothing_is_read_from_a_cache_that_lies_in_the_current_folder(tmp_path: Path, named: dict[str, str]) -> None:
    """What somebody unpacks or clones is the user's own, also where it looks like a cache; a name from here is no choice."""
    here, home = tmp_path / "here", tmp_path / "home"
    for folder in (home, *(here / name for name in ("dlog", "home/.cache/dlog", ".cache/dlog", "tmp"))):
        folder.mkdir(mode=0o700, parents=True)
    for name in ("", "tmp/"):
        (here / f"{name}dlog-{os.getuid()}").mkdir(mode=0o700)
    program = "import sys; sys.path.insert(0, sys.argv[1]); from dlog.caches import cache_root; print(cache_root())"
    environment = {"DLOG_CACHE": "", "XDG_CACHE_HOME": "/dev/null" if "TMPDIR" in named else "", "HOME": str(home)}
    done = run(sys.executable, "-P", "-c", program, str(ROOT), cwd=here, **{**environment, **named})
    found = Path(done.stdout.strip())
    assert found.is_absolute(), done.stderr
    assert not found.is_relative_to(here) or found.name.startswith("dlog-cache-"), done.stderr


@pytest.mark.parametrize("how", ["link", "open"])
def test_somebody_who_is_quicker_to_make_what_leads_to_a_cache_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Such a race can be won in a folder that anybody may write to; once is enough."""
    theirs = tmp_path / "clone"
    (theirs / "dlog").mkdir(mode=0o700, parents=True)
    real = Path.mkdir

    def slow(self: Path, *args: object, **given: object) -> None:
        if self == tmp_path / "new":
            self.symlink_to(theirs) if how == "link" else (real(self), self.chmod(0o777))
        real(self, *args, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", slow)
    with pytest.raises(Untrusted):
        own_folder(tmp_path / "new" / "dlog")


def test_among_the_temporary_files_a_folder_for_the_process_is_enough(program: Path, tmp_path: Path) -> None:
    for name, mode in (("homes", 0o777), ("tmp", 0o1777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    taken = tmp_path / "tmp" / f"dlog-{os.getuid()}"
    taken.symlink_to(tmp_path / "homes")
    named = {"DLOG_CACHE": "", "XDG_CACHE_HOME": str(tmp_path / "homes"), "TMPDIR": str(tmp_path / "tmp")}
    done = dlog("check", str(program), cwd=program.parent, **named)
    assert done.returncode == 0
    assert f"what is kept between runs goes to {tmp_path / 'tmp' / 'dlog-cache-'}" in done.stderr
    assert done.stderr.count("warning: ") == 1
    assert [*(tmp_path / "tmp").iterdir()] == [taken] and not [*(tmp_path / "homes").iterdir()]


@pytest.mark.parametrize("how", ["link", "open"])
def test_a_library_that_somebody_else_may_have_left_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """LLVM gets the bytes of a file that is read once; so it is enough that they are never read."""
    path, made = tmp_path / "kernels" / "library", b"made here"
    path.parent.mkdir(mode=0o700)
    (tmp_path / "theirs").write_bytes(b"planted")
    if how == "link":
        path.symlink_to(tmp_path / "theirs")
    else:
        path.write_bytes(b"planted")
        path.chmod(0o666)
    monkeypatch.setattr(library, "library_path", lambda: path)
    monkeypatch.setattr(library, "_is_whole", lambda content: content != b"")
    monkeypatch.setattr(library, "build", lambda path: path.write_bytes(made))
    assert library._library_bytes() == made
    assert (tmp_path / "theirs").read_bytes() == b"planted"


def test_a_library_in_a_folder_that_others_can_write_to_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kernels" / "library"
    path.parent.mkdir()
    path.write_bytes(b"planted")
    path.parent.chmod(0o777)
    monkeypatch.setattr(library, "library_path", lambda: path)
    monkeypatch.setattr(library, "_is_whole", lambda content: content != b"")
    monkeypatch.setattr(library, "build", lambda path: path.write_bytes(b"made here"))
    assert library._library_bytes() == b"made here"
    assert path.read_bytes() == b"planted"


KERNEL = """import sys; sys.path.insert(0, sys.argv[1])
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.versions import cache_folder
from dlog.engine.kernels.static.hashes import row_bits
print(row_bits(1000), cache_folder())
"""


@pytest.mark.slow
def test_pickles_in_numbas_cache_are_run_only_where_nobody_else_can_have_left_them(tmp_path: Path, marker: Path) -> None:
    cache = tmp_path / "cache"

    def result() -> str:
        done = run(sys.executable, "-P", "-c", KERNEL, str(ROOT), cwd=tmp_path, DLOG_CACHE=str(cache))
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = result()
    folder = Path(first.split()[1])
    [index] = folder.rglob("*.nbi")
    stamp = len(pickle.dumps(_stamped(index)))
    index.write_bytes(index.read_bytes()[:stamp] + pickled(marker))
    index.chmod(0o622)
    assert result() == first
    assert not marker.exists()
    index.chmod(0o600)
    index.parent.chmod(0o733)
    assert result() == first
    assert not marker.exists()
    index.parent.chmod(0o700)
    run(sys.executable, "-P", "-c", KERNEL, str(ROOT), cwd=tmp_path, DLOG_CACHE=str(cache))
    assert marker.exists()  # what was planted is what Numba would run


def _stamped(index: Path) -> object:
    """Numba's version, with which the file begins."""
    with index.open("rb") as file:
        return pickle.load(file)


@pytest.mark.parametrize("how", ["open", "link", "within"])
def test_what_a_zip_file_was_unpacked_to_is_imported_only_if_nobody_else_can_have_changed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marker: Path, how: str
) -> None:
    monkeypatch.setenv("DLOG_CACHE", str(tmp_path / "cache"))
    archive = zip_of_dlog(tmp_path / "dlog.zip")
    first = Path(unpacked(f"{archive}/dlog"))
    planted = first / "caches.py"
    planted.write_text(module(marker))
    if how == "link":
        first.parent.rename(tmp_path / "theirs")
        first.parent.symlink_to(tmp_path / "theirs")
    else:
        (planted if how == "within" else first.parent).chmod(0o777)
    second = Path(unpacked(f"{archive}/dlog"))
    assert second != first
    assert (second / "caches.py").read_text() == (ROOT / "dlog" / "caches.py").read_text()
    assert not marker.exists()


def test_nobody_else_enters_what_a_zip_file_was_unpacked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would write `__pycache__` there as the mask says, and read what others put into it."""
    (tmp_path / "cache").mkdir(mode=0o755)
    monkeypatch.setenv("DLOG_CACHE", str(tmp_path / "cache"))
    mask = os.umask(0)
    try:
        found = Path(unpacked(f"{zip_of_dlog(tmp_path / 'dlog.zip')}/dlog")).parent
    finally:
        os.umask(mask)
    assert found.parent == tmp_path / "cache"
    assert found.stat().st_mode & 0o777 == 0o700


def test_tables_are_kept_for_this_user_alone(program: Path, tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        check(program, tmp_path / "cache")
    finally:
        os.umask(mask)
    [tables] = (tmp_path / "cache").iterdir()
    assert tables.stat().st_mode & 0o777 == 0o600
    assert tables.name == parser._tables_file(parser.GRAMMAR.read_text()).name  # type: ignore[union-attr]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners")
def test_links_that_others_made_or_can_replace_lead_to_no_cache(tmp_path: Path) -> None:
    """What they lead to may be this user's, and somebody's archive that was unpacked there."""
    shared, real = tmp_path / "shared", Path(os.path.realpath(tmp_path)) / "real"
    for folder in (shared, real):
        folder.mkdir()
    (shared / "link").symlink_to(real)
    assert own_folder(shared / "link" / "cache") == real / "cache"
    shared.chmod(0o777)
    with pytest.raises(Untrusted, match="others can write"):
        own_folder(shared / "link" / "cache")
    shared.chmod(0o1777)
    assert own_folder(shared / "link" / "cache") == real / "cache"
    if os.getuid() == 0:
        os.chown(shared / "link", 65534, 65534, follow_symlinks=False)
        with pytest.raises(Untrusted, match="another user"):
            own_folder(shared / "link" / "cache")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners")
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_link_leads_to_no_cache_where_others_can_replace_the_folder_it_is_in(tmp_path: Path, mode: int) -> None:
    """By one of somebody's archive, say, with such a link in it."""
    shared, real = tmp_path / "shared", Path(os.path.realpath(tmp_path)) / "real"
    (shared / "mine").mkdir(parents=True)
    real.mkdir()
    (shared / "mine" / "link").symlink_to(real)
    shared.chmod(mode)
    if mode & 0o1000:
        assert own_folder(shared / "mine" / "link" / "cache") == real / "cache"
    else:
        with pytest.raises(Untrusted, match="others can write"):
            own_folder(shared / "mine" / "link" / "cache")


NOBODY = 65534


def show(monkeypatch: pytest.MonkeyPatch, *places: Path) -> None:
    """Has places, and what is in them, belong to whom the user namespace of this process does not map."""
    monkeypatch.setattr("dlog.caches._unmapped", lambda: NOBODY)
    for name in ("stat", "lstat"):
        real = getattr(Path, name)

        def shown(path: Path, *given: object, real: Callable[..., os.stat_result] = real, **named: object) -> os.stat_result:
            about = real(path, *given, **named)
            if not any(path.is_relative_to(place) for place in places):
                return about
            return os.stat_result((*about[:4], NOBODY, *about[5:]))

        monkeypatch.setattr(Path, name, shown)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners")
def test_links_of_whom_a_user_namespace_does_not_map_lead_to_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, real = Path(os.path.realpath(tmp_path)) / "theirs", Path(os.path.realpath(tmp_path)) / "real"
    (real / "cache").mkdir(parents=True)
    theirs.mkdir()
    (theirs / "link").symlink_to(real)
    assert own_folder(theirs / "link" / "cache") == real / "cache"
    show(monkeypatch, theirs)
    with pytest.raises(Untrusted, match="may be anybody's"):
        own_folder(theirs / "link" / "cache")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners")
def test_folders_of_whom_a_user_namespace_does_not_map_lead_to_a_cache_where_nobody_else_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Path(os.path.realpath(tmp_path)) / "theirs"
    (theirs / "cache").mkdir(parents=True)
    show(monkeypatch, theirs)
    real, own = Path.lstat, theirs / "cache"
    monkeypatch.setattr(Path, "lstat", lambda path: os.lstat(path) if path == own else real(path))
    for mode in (0o755, 0o711):
        theirs.chmod(mode)
        assert own_folder(own) == own
    for mode in (0o1777, 0o777, 0o775):
        theirs.chmod(mode)
        with pytest.raises(Untrusted, match="may be anybody's"):
            own_folder(own)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners")
def test_a_user_with_the_number_of_whom_a_user_namespace_does_not_map_owns_nothing_but_new_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path(os.path.realpath(tmp_path)) / "tmp"
    (place / "cache").mkdir(mode=0o700, parents=True)
    show(monkeypatch, place)
    monkeypatch.setattr("dlog.caches.os.getuid", lambda: NOBODY)
    for name in ("cache", "not there yet"):
        with pytest.raises(Untrusted, match="may be anybody's"):
            own_folder(place / name)
    assert [path.name for path in place.iterdir()] == ["cache"]
    made = lease("cache", place)
    with made as folder:
        assert own_folder(folder / "kernels") == folder / "kernels"
        assert own_tree(folder)
        with pytest.raises(Untrusted, match="may be anybody's"):
            own_folder(place / "cache")
        (folder / "owner").rename(folder / "other")  # no longer known for what this process made
        with pytest.raises(Untrusted, match="may be anybody's"):
            own_folder(folder)
        (folder / "other").rename(folder / "owner")
        made.is_own = False  # as in a process that was forked: the one before may be gone
        with pytest.raises(Untrusted, match="may be anybody's"):
            own_folder(folder)
        made.is_own = True


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners")
def test_new_folders_are_trusted_in_the_systems_places_whose_owner_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path(os.path.realpath(tmp_path)) / "tmp"
    place.mkdir()
    place.chmod(0o1777)
    show(monkeypatch, place)
    with lease("cache", place) as folder:
        with pytest.raises(Untrusted, match="may be anybody's"):
            own_folder(folder)
        monkeypatch.setattr("dlog.caches.STICKY", {place})
        assert own_folder(folder) == folder
        with pytest.raises(Untrusted, match="may be anybody's"):
            own_folder(place / "dlog")
        place.chmod(0o777)
        with pytest.raises(Untrusted, match="others can write"):
            own_folder(folder)


ROOTS = """import os, sys; sys.path.insert(0, sys.argv[1])
from dlog.caches import cache_root
print(cache_root(), cache_root().is_dir(), cache_root())
"""


def apart(*options: str) -> list[str]:
    """What runs a command in a user namespace. Skips where this user can make none."""
    command = ["unshare", "--user", *options]
    try:
        subprocess.run([*command, "true"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user cannot make user namespaces with `unshare`")
    return command


def test_nothing_is_read_from_what_passes_for_this_users_in_a_user_namespace(tmp_path: Path) -> None:
    """Another user of the machine may have made it: a process whose number stands for all others sees no difference."""
    planted = tmp_path / f"dlog-{NOBODY}"
    planted.mkdir(mode=0o755)
    command = [*apart(f"--map-user={NOBODY}"), sys.executable, "-P", "-c", ROOTS, str(ROOT)]
    done = run(*command, cwd=tmp_path, DLOG_CACHE="", XDG_CACHE_HOME="", HOME="/dev/null", TMPDIR=str(tmp_path))
    found = [Path(name) for name in done.stdout.split()]
    assert done.returncode == 0 and found[0].name.startswith("dlog-cache-") and found[0] == found[2], done
    assert done.stderr.count("warning: ") == 1 and f"what is kept between runs goes to {found[0]}" in done.stderr
    assert [*tmp_path.iterdir()] == [planted] and not [*planted.iterdir()]


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="nobody else gives folders to others")
def test_links_of_others_lead_to_no_cache_in_a_user_namespace(tmp_path: Path) -> None:
    theirs, real = tmp_path / "theirs", tmp_path / "real"
    (real / "cache").mkdir(parents=True)
    theirs.mkdir()
    (theirs / "link").symlink_to(real)
    for place in (theirs, theirs / "link"):
        os.chown(place, 12345, 12345, follow_symlinks=False)
    command = [*apart("--map-current-user"), sys.executable, "-P", "-c", ROOTS, str(ROOT)]
    done = run(*command, cwd=tmp_path, DLOG_CACHE=str(theirs / "link" / "cache"), XDG_CACHE_HOME=str(tmp_path / "homes"))
    assert done.returncode == 0 and done.stdout.startswith(f"{tmp_path / 'homes' / 'dlog'} "), done
    assert f"{theirs / 'link'} may be anybody's" in done.stderr


GROUPS = """import os, sys; sys.path.insert(0, sys.argv[1])
from dlog.caches import _is_own_group
print(*(_is_own_group(group) for group in (0, 12345, 65534)))
"""


def test_a_group_that_a_user_namespace_maps_by_itself_or_not_at_all_is_no_group_of_this_users(tmp_path: Path) -> None:
    """Root's is one of the outside there, whoever is in it."""
    done = run(*apart("--map-root-user"), sys.executable, "-P", "-c", GROUPS, str(ROOT), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "False False False\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="links are the system's to follow")
def test_links_lead_as_the_system_follows_them(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").symlink_to("a/b")
    (tmp_path / "a" / "b" / "up").symlink_to("..")
    assert own_folder(tmp_path / "c" / ".." / "cache") == Path(os.path.realpath(tmp_path)) / "a" / "cache"
    assert own_folder(tmp_path / "c" / "up" / "cache") == Path(os.path.realpath(tmp_path)) / "a" / "cache"
    (tmp_path / "d").symlink_to("e")
    (tmp_path / "e").symlink_to("d")
    with pytest.raises(OSError, match="symbolic links"):
        own_folder(tmp_path / "d" / "cache")


def test_the_lock_of_a_build_is_for_this_user_alone(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        with building._alone(tmp_path / "library.lock"):
            pass
    finally:
        os.umask(mask)
    assert (tmp_path / "library.lock").stat().st_mode & 0o777 == 0o600


KEPT = "from dlog.caches import own_key; own_key()"
PARSED = "from dlog.grammar.parser import tables; tables()"


@pytest.mark.parametrize("code", [KEPT, PARSED])
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="nothing is known of writers that were killed")
def test_what_a_killed_writer_left_in_a_cache_goes_when_it_is_written_again(tmp_path: Path, code: str) -> None:
    """Both have the same number, as the first process of each container has, which runs while they look for the other one."""
    killed = "import signal; os.replace = lambda *_, **__: signal.raise_signal(9)"
    place = f"import os, sys; os.getpid = lambda: 1; sys.path.insert(0, {str(ROOT)!r})"
    cache = tmp_path / "cache"
    done = run(sys.executable, "-P", "-c", f"{place}; {killed}; {code}", cwd=tmp_path, DLOG_CACHE=str(cache))
    assert done.returncode == -9 and len(list(cache.iterdir())) == 1
    run(sys.executable, "-P", "-c", f"{place}; {code}", cwd=tmp_path, DLOG_CACHE=str(cache)).check_returncode()
    [kept] = cache.iterdir()
    assert kept.suffix in ("", ".json")


def test_what_a_killed_process_left_beside_an_unpacked_zip_file_goes(tmp_path: Path) -> None:
    """Nobody unpacks that again."""
    archive, cache = zip_of_dlog(tmp_path / "dlog.zip"), tmp_path / "cache"
    killed = "import os; from dlog.temporary import Lease; Lease.remove = lambda _: os.kill(os.getpid(), 9)"
    code = f"from dlog.zipped import unpacked; unpacked({str(archive / 'dlog')!r})"
    place = f"import sys; sys.path.insert(0, {str(ROOT)!r})"
    done = run(sys.executable, "-P", "-c", f"{place}; {killed}; {code}", cwd=tmp_path, DLOG_CACHE=str(cache))
    assert done.returncode == -9 and len(list(cache.iterdir())) == 2
    run(sys.executable, "-P", "-c", f"{place}; {code}", cwd=tmp_path, DLOG_CACHE=str(cache)).check_returncode()
    [kept] = cache.iterdir()
    assert kept.name.startswith("zipped-")
