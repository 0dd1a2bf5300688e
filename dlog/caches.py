"""The cache folders, with what one run makes for the next: machine code, the tables of grammars.

Their content is run, or believed. So nothing is read from a place that somebody else can write to: the folder and all that lead
to it belong to this user or to root, others cannot write to them (to a place with the sticky bit they can, but not replace what
is there), and neither the folder nor what is read from it is a link. In a user namespace all whom it does not map are shown as
one owner: that is nobody's word for this user or root, and counts only for folders on the way that nobody else can write to.
Where there are no such owners and modes, on Windows, the user's own folder is trusted as it is.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlog.temporary import Lease

OTHERS = stat.S_IWGRP | stat.S_IWOTH
DAY = 86_400.0
UNUSED = 30 * DAY
"""Seconds after which what other versions have left in a cache goes."""
LINKS = 40
"""Links that a path leads through at most, as on Linux."""
SYSTEMS = (Path("/tmp"), Path("/var/tmp"))
"""The system's places for temporary files, which have the sticky bit."""
STICKY = {*SYSTEMS, Path("/dev/shm")}
"""Where a folder of this process stays what it is, though no owner is shown: the system's, as `/` is."""
OVERFLOW = 65534
"""The owner that is shown for those whom a user namespace does not map, unless the system says another one."""
_LEASED = re.compile("dlog-cache-[a-z0-9_]{8}")
"""The names of temporary folders for caches: processes that others start have theirs from these."""
ALL_OF_ROOT = ["0", "0", "4294967295"]
"""What a process reads of its users' numbers that is in no namespace of its own."""


class Untrusted(PermissionError):
    """Somebody else may have written what is there."""


def cache_root() -> Path:
    """The folder that `DLOG_CACHE` names, else the user's. One among the temporary files where that cannot be made, or is empty
    and cannot be written to, as in the containers of clusters. One that cannot be trusted is remarked upon, and not used.
    Raises OSError if `DLOG_CACHE` names a folder that cannot be made."""
    try:
        if chosen := os.environ.get("DLOG_CACHE"):
            return own_folder(_anywhere(Path(chosen)))
        try:
            return _users()
        except Untrusted:
            raise
        except (OSError, RuntimeError):
            return _temporary()
    except Untrusted as problem:
        return _instead(problem)


def _users() -> Path:
    """Raises RuntimeError if there is no home, OSError if it cannot be used."""
    found = own_folder(_users_cache())
    if not os.access(found, os.W_OK) and not any(found.iterdir()):
        raise PermissionError(f"{found} cannot be written to")
    return found


def _users_cache() -> Path:
    if sys.platform == "darwin":
        return home() / "Library" / "Caches" / "dlog"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home())) / "dlog"
    return named_folder("XDG_CACHE_HOME", ".cache") / "dlog"


def home() -> Path:
    """The user's. Raises RuntimeError where there is none but one that depends on the current folder."""
    found = Path.home()
    if not found.is_absolute():
        raise RuntimeError(f"{found} is no home: it would be another one in each folder")
    return found


def named_folder(variable: str, usual: str) -> Path:
    """The folder that a variable names, else a part of the home. Names that depend on the current folder do not count, as in
    the XDG base directory specification: what lies there may be anybody's. Raises RuntimeError if there is no home."""
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else home() / usual


def _anywhere(named: Path) -> Path:
    """Raises Untrusted for a name that depends on the current folder."""
    if not named.is_absolute():
        raise Untrusted(f"{named} is in the current folder, whosever that is")
    return named


def _temporary() -> Path:
    """One that later runs find, else one for this process."""
    import tempfile

    try:
        user = f"-{os.getuid()}" if hasattr(os, "getuid") else ""
        place = Path(tempfile.gettempdir())
        return _fresh() if _is_here(place) else own_folder(place / f"dlog{user}")
    except OSError as problem:
        return _instead(problem, _fresh)


def _is_here(place: Path) -> bool:
    """Whether the temporary files are where they are because of the current folder: by a name that depends on it, or for want
    of another one."""
    named = [name for name in map(os.environ.get, ("TMPDIR", "TEMP", "TMP")) if name]
    fixed = {"/tmp", "/var/tmp", "/usr/tmp", *filter(os.path.isabs, named)}
    depending = {os.path.abspath(name) for name in named} | {os.getcwd()}
    return os.path.abspath(place) in depending - set(map(os.path.normpath, fixed))


def _fresh() -> Path:
    from dlog.temporary import lease

    return own_folder(lease("cache").folder)


def _instead(problem: OSError, *places: Callable[[], Path]) -> Path:
    """Another folder, for this process and those that it starts: one remark is enough."""
    for place in places or (_users, _temporary):
        try:
            found = place()
        except (OSError, RuntimeError):
            continue
        if str(found) != os.environ.get("DLOG_CACHE"):
            os.environ["DLOG_CACHE"] = str(found)
            print(f"warning: {problem}: what is kept between runs goes to {found}", file=sys.stderr)
        return found
    raise problem


def own_lease(kind: str) -> Lease:
    """A temporary folder (dlog/temporary.py) that nobody else can enter, or put another one in its place: where the temporary
    files are, else where the system has them. Raises OSError."""
    from dlog.temporary import lease

    problems: list[OSError] = []
    for place in (None, *SYSTEMS):
        try:
            made = lease(kind, place)
            try:
                own_folder(made.folder)
            except OSError:
                made.remove()
                raise
            return made
        except OSError as error:
            problems.append(error)
    if any(isinstance(problem, Untrusted) for problem in problems):
        raise Untrusted("others can put something else in the place of what is among the temporary files")
    raise problems[0]


def own_folder(folder: Path) -> Path:
    """The folder, made if it is not there, by the path that no link is part of. Raises Untrusted, or another OSError."""
    folder = _without_own_links(folder.parent) / folder.name
    missing = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    if gone := [place for place in missing if _LEASED.fullmatch(place.name)]:
        raise Untrusted(f"{gone[0]} went with the process that had it")  # made anew it would have no owner, and stay
    _refuse_leading([parent for parent in folder.parents if parent not in missing], folder)
    if missing and hasattr(os, "getuid") and os.getuid() == _unmapped():  # what is made would not be known for this user's
        _refuse_unmapped(folder, folder)
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)
        if place != folder:  # somebody else may have been quicker
            _refuse(place, _no_link(place, place.lstat()), leads=folder)
    about = _no_link(folder, folder.lstat())
    if not stat.S_ISDIR(about.st_mode):
        raise NotADirectoryError(f"{folder} is no folder")
    _refuse(folder, about)
    return folder


def _without_own_links(path: Path) -> Path:
    """The path that links lead to. Raises Untrusted where somebody else made one of them, or can put another one in its place:
    it may lead to what is this user's, but was somebody's archive before; and OSError for links without end."""
    if not hasattr(os, "getuid"):
        return Path(os.path.realpath(path))
    reached, parts, followed = Path(path.anchor), list(path.parts[:0:-1]), 0
    while parts:
        place = reached.parent if (part := parts.pop()) == ".." else reached / part
        if part == ".." or not place.is_symlink():
            reached = place
            continue
        followed += 1
        if followed > LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        _refuse_leading([reached, *reached.parents], place)
        _refuse_owner(place, place.lstat(), leads=place)
        target = Path(place.readlink())
        reached = Path(target.anchor) if target.is_absolute() else reached
        parts += reversed(target.parts[1:] if target.is_absolute() else target.parts)
    return reached


def _no_link(folder: Path, about: os.stat_result) -> os.stat_result:
    if stat.S_ISLNK(about.st_mode):
        raise Untrusted(f"{folder} is a link")
    return about


def own_tree(folder: Path) -> bool:
    """Whether all that is in a folder, which has been looked at, is this user's: no links, devices or others' files."""
    for place, folders, files in os.walk(folder):
        try:
            for name in (*folders, *files):
                path = Path(place, name)
                _refuse(path, _without_links(path, path.lstat()))
        except OSError:
            return False
    return True


def own_content(path: Path) -> bytes:
    """The content of a file in a folder that has been checked. Raises Untrusted, or another OSError."""
    quiet = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    _without_links(path, path.lstat())
    with open(os.open(path, os.O_RDONLY | quiet), "rb") as file:
        _refuse(path, _without_links(path, os.fstat(file.fileno())))
        return file.read()


def keep(path: Path, content: bytes) -> None:
    """Writes a file of a cache, all or nothing: other processes may be about to read it. What writers that were killed have
    left goes. Raises OSError."""
    from dlog.unfinished import remove_left, replacing

    remove_left(path.parent.glob(".*.part"))
    with replacing(path, 0o600) as file:
        file.write(content)


KEY_SIZE = 32


def own_key() -> bytes:
    """A secret of this user, by which dlog authenticates what it has written where others may write, too. Made when it is first
    needed. Raises OSError where it cannot be kept."""
    path = cache_root() / "key"
    if not os.path.lexists(path):
        keep(path, secrets.token_bytes(KEY_SIZE))
    found = own_content(path)
    if len(found) != KEY_SIZE or (hasattr(os, "getuid") and path.lstat().st_mode & 0o077):
        raise Untrusted(f"{path} is no secret")
    return found


def refuse_others(path: Path, about: os.stat_result) -> None:
    """Raises Untrusted for a file, wherever it is, that somebody else can write to."""
    _refuse(path, about)


def stays(path: Path, about: os.stat_result) -> bool:
    """Whether nobody else can change a file while it is mapped: what was looked at would be something else when it is used."""
    try:
        _refuse(path, about)
    except Untrusted:
        return False
    return True


def is_own_place(folder: Path) -> bool:
    """Whether nobody else can put something into a folder, or another one in its place: what was looked at there is what is
    used after that."""
    try:
        found = _without_own_links(folder.absolute())
        _refuse_leading(found.parents, found)
        _refuse(found, found.stat())
    except OSError:
        return False
    return True


def _without_links(path: Path, about: os.stat_result) -> os.stat_result:
    if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
        raise Untrusted(f"{path} is neither a file nor a folder")
    return about


def _refuse_leading(folders: Iterable[Path], place: Path) -> None:
    """Raises Untrusted if somebody else can put something else in the place of what folders lead to."""
    for folder in folders:
        _refuse(folder, folder.stat(), leads=place)


def _refuse(path: Path, about: os.stat_result, leads: Path | None = None) -> None:
    """Raises Untrusted if somebody else can write there, or replace what a folder `leads` to."""
    if not hasattr(os, "getuid"):
        return
    _refuse_owner(path, about, leads)
    kept = leads is not None and about.st_mode & stat.S_ISVTX
    own = about.st_mode & OTHERS == stat.S_IWGRP and _is_own_group(about.st_gid) and not _has_list(path)
    if about.st_mode & OTHERS and not kept and not own:
        raise Untrusted(f"others can write to {path}")


def _refuse_owner(path: Path, about: os.stat_result, leads: Path | None) -> None:
    if about.st_uid == 0:
        return
    if about.st_uid == _unmapped():
        if leads is None or not stat.S_ISDIR(about.st_mode) or about.st_mode & OTHERS:
            _refuse_unmapped(path, leads or path)
    elif about.st_uid != os.getuid():
        raise Untrusted(f"{path} belongs to another user")


def _refuse_unmapped(path: Path, place: Path) -> None:
    """Raises Untrusted for what may be anybody's, unless it is in a temporary folder of this process, or is the system's and
    leads to one in which `place` is."""
    from dlog.temporary import kept_above

    fresh = kept_above(place)
    if fresh is None or not (path.is_relative_to(fresh) or (path in STICKY and fresh.is_relative_to(path))):
        raise Untrusted(f"{path} may be anybody's: its owner is not told in this user namespace")


def _has_list(path: Path) -> bool:
    """Whether there is a list of those who may: then the group's modes are what any of these may at most."""
    try:
        return "system.posix_acl_access" in os.listxattr(path, follow_symlinks=False)
    except (AttributeError, OSError):  # no such lists here
        return False


def _is_own_group(group: int) -> bool:
    """Whether a group has this user alone, as many systems make one for each; root's counts as that, too."""
    if not _is_known_group(group):
        return False
    try:
        import grp
        import pwd

        user, found = pwd.getpwuid(os.getuid()), grp.getgrgid(group)
    except (ImportError, KeyError):
        return group == 0
    alone = group == user.pw_gid and found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}
    return group == 0 or (alone and not any(other.pw_gid == group and other.pw_uid != user.pw_uid for other in pwd.getpwall()))


def _is_known_group(group: int) -> bool:
    """Whether a number says in this user namespace which group it is: one that is not mapped may be any, and one that is mapped
    by itself, as by `--map-root-user` and as root's in containers of users, is one of the outside, with all who are in it."""
    if sys.platform != "linux":
        return True
    try:
        ranges = [tuple(map(int, line.split())) for line in Path("/proc/self/gid_map").read_text().splitlines()]
    except OSError:  # a system without namespaces
        return True
    return any(first <= group < first + count and count > 1 for first, _, count in ranges)


def _unmapped() -> int | None:
    """The owner that is shown for all whom the user namespace of this process does not map: it may be the number of this user,
    too. None where all are mapped."""
    if sys.platform != "linux":
        return None
    with suppress(OSError):
        if Path("/proc/self/uid_map").read_text().split() == ALL_OF_ROOT:
            return None
    try:
        return int(Path("/proc/sys/kernel/overflowuid").read_text())
    except (OSError, ValueError):
        return OVERFLOW


# ------------------------------------------------------------------------------------------------------- what others have left


def note_use(path: Path) -> None:
    """Says, once a day, that something is not among what nobody uses."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)


_LOCK = ".lock"
"""The file in a folder that who uses it holds: folders themselves cannot be locked where they are another machine's (NFS)."""


def try_lock(folder: Path) -> int | None:
    """Holds a folder for as long as this process lives, so that nobody removes it as unused; None where that cannot be, or it
    is being removed. A forked process holds it, too, as it goes on with what is there."""
    with suppress(OSError, ImportError):
        import fcntl

        descriptor = _opened_lock(folder)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return descriptor
        os.close(descriptor)
    return None


def _opened_lock(folder: Path) -> int:
    """Raises OSError."""
    place = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        return os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=place)
    finally:
        os.close(place)


def remove_unused(folder: Path, kind: str) -> None:
    """Removes what is beside a folder of a kind (`KIND-0123456789abcdef`), of the same kind, this user's own, unused for long
    and held by nobody: one that comes back makes it anew."""
    named = re.compile(f"{kind}-[0-9a-f]{{16}}")
    if named.fullmatch(folder.name) is None:
        return
    for other in folder.parent.iterdir():
        with suppress(OSError, RecursionError):  # Python looks at no folders as deep as that
            if other != folder and named.fullmatch(other.name) and _is_unused(other):
                _remove_unheld(other)


def _is_unused(folder: Path) -> bool:
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or (hasattr(os, "getuid") and about.st_uid != os.getuid()):
        return False
    return max(place.lstat().st_mtime for place in (folder, *folder.rglob("*"))) < time.time() - UNUSED


def _remove_unheld(folder: Path) -> None:
    try:
        import fcntl
    except ImportError:
        shutil.rmtree(folder, ignore_errors=True)
        return
    from dlog.locks import hold

    held = hold(lambda: _opened_lock(folder))
    try:
        fcntl.flock(held.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        held.close()
