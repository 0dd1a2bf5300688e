"""The rights that a new file gets from the one in whose place it comes: never more than that one gave to anybody."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from dlog.dataclass import dataclass

_LIST = "system.posix_acl_access"
"""Where the system keeps the list of who else has rights to a file: its mode shows, as those of its group, their bounds."""
_NONE = (errno.ENODATA, errno.ENOTSUP) if hasattr(errno, "ENODATA") else (errno.ENOTSUP,)


@dataclass(frozen=True, slots=True)
class Rights:
    """What the system knows of who may do what with a file; `others` is its list, empty where there is none, None where that is
    not known."""

    mode: int
    user: int
    group: int
    others: bytes | None


def rights_of(descriptor: int) -> Rights:
    """Those of an open file. Raises OSError."""
    about = os.fstat(descriptor)
    return Rights(about.st_mode, about.st_uid, about.st_gid, _others(descriptor))


def rights_at(path: Path) -> Rights | None:
    """Those of a regular file, None where there is none. It is not opened: closing it would end the locks that this process has
    of it. Raises OSError."""
    about = path.lstat() if os.path.lexists(path) else None
    if about is None or not stat.S_ISREG(about.st_mode):
        return None
    if not hasattr(os, "O_PATH"):
        return Rights(about.st_mode, about.st_uid, about.st_gid, b"")
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        return rights_of(descriptor)
    finally:
        os.close(descriptor)


def give(descriptor: int, before: Rights, most: int = 0o777) -> None:
    """Gives an open file the rights of another one, as far as `most` has them. Where the group is another one now, it has none,
    and who was in the one before has no more than that had; where a list cannot be given, only the owner has rights. Raises
    OSError."""
    if not hasattr(os, "fchmod"):
        return
    made = rights_of(descriptor)
    mode = before.mode & most & 0o777
    if before.group != made.group:
        mode &= 0o700 | before.mode >> 3 & 0o7
    os.fchmod(descriptor, mode if _give_others(descriptor, before, made) else mode & 0o700)


def _give_others(descriptor: int, before: Rights, made: Rights) -> bool:
    """Whether a file has the list of another one now, or none if that has none: a folder may have lists for new ones."""
    if before.others == made.others == b"":
        return True
    if before.others is None or (before.others and (before.user, before.group) != (made.user, made.group)):
        return False
    with suppress(OSError):
        if before.others:
            os.setxattr(descriptor, _LIST, before.others)
        else:
            os.removexattr(descriptor, _LIST)
        return True
    return False


def _others(descriptor: int) -> bytes | None:
    if not hasattr(os, "getxattr"):
        return b""
    for name in (descriptor, f"/proc/self/fd/{descriptor}"):  # the first is not for what is only looked at
        try:
            return os.getxattr(name, _LIST)
        except OSError as error:
            if error.errno in _NONE:
                return b""
    return None
