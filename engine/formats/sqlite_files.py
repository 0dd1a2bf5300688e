"""The files of SQLite databases, opened so that nothing that others have left, or leave meanwhile, has another file touched.

SQLite opens a database and what lies beside it (`-journal`, `-wal`, `-shm`) by name, goes where links lead, and removes the
file that a journal of several databases names. In a folder where nobody else can write it works in place, once none of these is
there. Elsewhere a name may stand for something else from one moment to the next: there it works on a copy in a folder of its
own, which is made through descriptors, and what is written is renamed to its place as a whole.

Nothing is made beside a database that is only read, as that would stay where the process is killed. One that keeps a log of
changes, and has none, is therefore read without SQLite's locks, and as a copy if it turns out to have been written meanwhile;
so is one that was left half written.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl, unquote, urlsplit

from dlog.caches import own_folder, refuse_others
from dlog.dataclass import dataclass
from dlog.engine.formats.parameters import directive_error, missing_file
from dlog.engine.formats.rights import Rights, rights_of
from dlog.engine.formats.whole_files import write_whole
from dlog.engine.ir.rules import Io, Program
from dlog.temporary import lease, sweep_temporary

MEMORY = ":memory:"
PATIENCE = 5.0
"""Seconds to wait for who writes a database, as SQLite does."""
_BESIDE = ("-journal", "-wal", "-shm")
_SEVERAL = bytes.fromhex("d9d505f920a163d7")
"""What a journal ends with that is one of several."""
_LOGS = 19
"""The byte of a database that tells readers that it has a log of changes (2)."""
_TICK = 50_000_000
"""Nanoseconds within which two changes of a file may have the same time."""
_LOCKED_FROM, _SHARED_FROM, _SHARED = 0x40000000, 0x40000002, 510
"""The bytes of a database that SQLite locks: a byte each for who is about to write, then those that readers share."""


class Trap(Exception):
    """A file that is not to be opened, and why."""


class Changed(Exception):
    """A database was written while it was read without a lock, or is to be brought back first: what was read, or went wrong, is
    void."""


@dataclass(frozen=True, slots=True)
class Database:
    """Where a database is; `path` is None for one in memory. One that is `immutable` is read without a look at its journals."""

    path: Path | None
    immutable: bool = False


def database_of(io: Io, program: Program, folder: Path) -> Database:
    """The database that a directive names, by a path or as SQLite's URIs do."""
    name = io.get("filename", io.get("dbname", f"{io.get('name', io.relation)}.sqlite"))
    immutable = False
    if name.startswith("file:"):
        parts = urlsplit(name)
        name = unquote(parts.path)
        said = parse_qsl(parts.query, keep_blank_values=True)
        for key, value in said:
            if (key, value) != ("mode", "ro") and key != "immutable":
                message = f"`{key}={value}` is not for the URI of a database: it may have mode=ro and immutable=1"
                raise directive_error(io, program, "bad-parameter", message)
        if parts.netloc not in ("", "localhost") or not name or "\0" in name or (said and io.action != "input"):
            raise directive_error(io, program, "bad-parameter", f"{io.get('filename', io.get('dbname'))} names no file to use")
        immutable = dict(said).get("immutable", "0").lower() in ("1", "true", "yes", "on")
    return Database(None if name == MEMORY else folder / name, immutable)


@contextmanager
def reading(io: Io, program: Program, database: Database, copied: bool = False) -> Iterator[sqlite3.Connection]:
    """A database to read, as a copy where that is wanted or must be. Raises Changed, which a copy never does."""
    if database.path is None:
        with closing(sqlite3.connect(MEMORY)) as connection:
            yield connection
        return
    if not database.path.is_file():
        raise missing_file(io, program, database.path)
    path = Path(os.path.realpath(database.path))  # beside which SQLite looks for journals
    sweep_temporary()  # copies of others that were killed: who reads the database in its place leases no folder
    with _mistakes(io, program, "unreadable-file", "read", path):
        found = _version(path)
        if not copied and _is_own(path) and (database.immutable or not _has_log(path)):
            _refuse_traps(path)
            if database.immutable or not _keeps_log(path):
                with _in_place(path, database.immutable) as connection:
                    yield connection
                return
            if abs(time.time_ns() - found[-1]) > _TICK and not _has_content(_beside(path, "-journal")):
                with _unless_changed(path, found), _in_place(path, immutable=True) as connection:
                    yield connection
                return
        with lease("sqlite") as place:
            copy = _copy_to_read(path, _place_for(place), database.immutable)
            with closing(sqlite3.connect(copy)) as connection:
                yield connection


@contextmanager
def writing(io: Io, program: Program, database: Database) -> Iterator[sqlite3.Connection]:
    """A database to write, made if it is not there; what the block did counts when it ends well."""
    if database.path is None:
        with closing(sqlite3.connect(MEMORY)) as connection:
            yield connection
        return
    path = Path(os.path.realpath(database.path.parent), database.path.name)
    with _mistakes(io, program, "unwritable-file", "write", path):
        if path.is_symlink():
            raise Trap(f"{path} is a link: name the database itself")
        if _is_own(path):
            _refuse_traps(path)
            with closing(sqlite3.connect(path)) as connection, connection:
                yield connection
            return
        with lease("sqlite") as place:
            copy = _place_for(place)
            with _copied_to_write(path, copy) as mode:
                with closing(sqlite3.connect(copy)) as connection, connection:
                    yield connection
                _put_in_place(io, program, path, copy, mode)


@contextmanager
def _mistakes(io: Io, program: Program, code: str, what: str, path: Path) -> Iterator[None]:
    """Tells what a file has against it."""
    try:
        yield
    except Trap as trap:
        raise directive_error(io, program, code, str(trap)) from None
    except OSError as error:
        raise directive_error(io, program, code, f"cannot {what} {path}: {error.strerror or error}") from error


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}{suffix}")


# ------------------------------------------------------------------------------------------------------------- in its place


def _is_own(path: Path) -> bool:
    """Whether nobody else can put a file beside a database, or write to one that is there."""
    try:
        if path.parent.is_dir():
            own_folder(path.parent)
        for file in (_beside(path, suffix) for suffix in _BESIDE):
            if os.path.lexists(file):
                refuse_others(file, file.lstat())
    except OSError:
        return False
    return True


@contextmanager
def _in_place(path: Path, immutable: bool) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable={int(immutable)}", uri=True)) as connection:
        connection.execute("pragma query_only = on")
        yield connection


@contextmanager
def _unless_changed(path: Path, found: tuple[int, ...]) -> Iterator[None]:
    """Raises Changed where a database was written since it was found, whatever else the block raises for that."""
    try:
        yield
    except Exception:
        if _version(path) != found:
            raise Changed from None
        raise
    if _version(path) != found:
        raise Changed


def _version(path: Path) -> tuple[int, ...]:
    """What is another one when a database has been written, the time last. Raises OSError."""
    about = path.stat()
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


def _keeps_log(path: Path) -> bool:
    """Whether who opens a database makes files for its log of changes, which who only reads leaves. Raises OSError."""
    with path.open("rb") as file:
        return file.read(_LOGS + 1)[_LOGS:] == b"\2"


def _has_log(path: Path) -> bool:
    """Whether a log of changes lies beside a database, or what is shared by those who have one open. Whoever left these, who
    reads a database in its place may replace or remove them."""
    return any(os.path.lexists(_beside(path, suffix)) for suffix in ("-wal", "-shm"))


def _has_content(file: Path) -> bool:
    return file.is_file() and file.stat().st_size > 0


def _refuse_traps(path: Path) -> None:
    """Raises Trap for what lies beside a database and has SQLite write to another file, remove it, or wait."""
    for file in (path, *(_beside(path, suffix) for suffix in _BESIDE)):
        if os.path.lexists(file):
            about = file.lstat()
            if not stat.S_ISREG(about.st_mode) or (file != path and about.st_nlink > 1):
                raise Trap(f"{file} is a link, or no file")
    _refuse_common(_beside(path, "-journal"))


def _refuse_common(journal: Path, shown: Path | None = None) -> None:
    """Raises Trap for a journal of several databases: SQLite removes the file that it names as their common one."""
    if not journal.exists():
        return
    with journal.open("rb") as file:
        file.seek(max(0, journal.stat().st_size - len(_SEVERAL)))
        if file.read() == _SEVERAL:
            note = "sqlite3, or what was writing them, brings them back, if you trust who left them"
            raise Trap(f"{shown or journal} is of several databases, left half written: {note}")


# --------------------------------------------------------------------------------------------------------------- by a copy


def _place_for(folder: Path) -> Path:
    """The name of a copy. Raises OSError where others can put another folder in the place of the temporary one."""
    return own_folder(folder) / "database"


def _copy_to_read(path: Path, copy: Path, immutable: bool) -> Path:
    """A copy with what lies beside, from which SQLite brings back what was committed last."""
    with _opened(path, os.O_RDONLY) as file:
        _lock(file, path, exclusive=False)
        found = _version(path)
        if immutable:
            _copy(file, copy)
            return copy
        with _opened_beside(path, "-wal") as log:
            begin = log.read(32) if log else b""
            _copy(file, copy)
            if _copy(log, _beside(copy, "-wal")) != begin if log else _version(path) != found:
                raise Trap(f"{path} is being written")
        with _opened_beside(path, "-journal") as journal:
            if journal:
                _copy(journal, _beside(copy, "-journal"))
    _refuse_common(_beside(copy, "-journal"), _beside(path, "-journal"))
    return copy


@contextmanager
def _copied_to_write(path: Path, copy: Path) -> Iterator[Rights | None]:
    """Has a database copied, if there is one, and nobody else write to it; the rights of the user's own."""
    for suffix in ("-wal", "-journal"):
        with _opened_beside(path, suffix) as file:
            if file and file.read(1) > b"\0":  # of a journal that was done with zeros may stay
                raise Trap(f"{_beside(path, suffix)} was left half written, or is in use: sqlite3 brings it back")
    if not os.path.lexists(path):
        yield None
        return
    with _opened(path, os.O_RDWR) as file:
        _lock(file, path, exclusive=True)
        _copy(file, copy)
        before = rights_of(file.fileno())
        yield before if before.user == os.getuid() else None


def _put_in_place(io: Io, program: Program, path: Path, copy: Path, before: Rights | None) -> None:
    def write(file: BinaryIO) -> None:
        with copy.open("rb") as source:
            shutil.copyfileobj(source, file)

    if _beside(copy, "-wal").exists():  # the last to close a database writes what is in its log
        raise Trap(f"{path} could not be written as a whole")
    write_whole(io, program, path, write, before)


def _opened(path: Path, how: int) -> BinaryIO:
    """A file that is no link. Raises Trap for links, pipes and the like, or OSError."""
    try:
        descriptor = os.open(path, how | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Trap(f"{path} is a link, or no file") from None
        raise
    file = os.fdopen(descriptor, "r+b" if how & os.O_RDWR else "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise Trap(f"{path} is a link, or no file")
    return file


@contextmanager
def _opened_beside(path: Path, suffix: str) -> Iterator[BinaryIO | None]:
    """What lies beside a database; None where nothing does."""
    try:
        file = _opened(_beside(path, suffix), os.O_RDONLY)
    except FileNotFoundError:
        yield None
        return
    with file:
        yield file


def _copy(file: BinaryIO, copy: Path) -> bytes:
    """Copies a file from its begin on; its first bytes. Raises OSError where that would fill the disk."""
    if os.fstat(file.fileno()).st_size > shutil.disk_usage(copy.parent).free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    file.seek(0)
    with copy.open("xb") as target:
        shutil.copyfileobj(file, target)
    with copy.open("rb") as target:
        return target.read(32)


def _lock(file: BinaryIO, path: Path, exclusive: bool) -> None:
    """Takes SQLite's own lock of a database, until the file is closed. Raises Trap where others do not give it up."""
    import fcntl

    how, begin = (fcntl.LOCK_EX, _LOCKED_FROM) if exclusive else (fcntl.LOCK_SH, _SHARED_FROM)
    last = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.lockf(file, how | fcntl.LOCK_NB, _SHARED_FROM + _SHARED - begin, begin)
            return
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            if time.monotonic() > last:
                raise Trap(f"{path} is in use") from None
        time.sleep(PATIENCE / 100)
