"""Removes folders of any depth, never through a link."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from contextlib import suppress


def remove_tree(name: str | os.PathLike[str], within: int | None = None) -> None:
    """Removes a folder with all that is in it, `within` the folder of a descriptor if there is one. What is deep comes up
    first, so that neither calls nor descriptors are as many as folders in one another: `shutil.rmtree` removes no more of these
    than Python has calls. Goes on after what cannot be removed. Raises OSError for the first of that."""
    if not {os.open, os.rename} <= os.supports_dir_fd:
        try:
            shutil.rmtree(name)
        except RecursionError as error:
            raise OSError(f"{os.fspath(name)} has too many folders in one another") from error
        return
    problems: list[OSError] = []
    root = _opened(name, within)
    try:
        waiting = os.listdir(root)
        while waiting:
            try:
                _remove(waiting.pop(), root, waiting, problems)
            except OSError as error:
                problems.append(error)
    finally:
        os.close(root)
    if problems:
        raise problems[0]
    os.rmdir(name, dir_fd=within)


def _opened(name: str | os.PathLike[str], within: int | None) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)


def _remove(name: str, root: int, waiting: list[str], problems: list[OSError]) -> None:
    """Removes what is in the root. Folders in it that are not empty come into the root, and wait there."""
    if _is_gone(name, root):
        return
    folder = _opened(name, root)
    try:
        for inner in os.listdir(folder):
            try:
                if not _is_gone(inner, folder):
                    fresh = secrets.token_hex(16)
                    os.rename(inner, fresh, src_dir_fd=folder, dst_dir_fd=root)
                    waiting.append(fresh)
            except OSError as error:
                problems.append(error)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=root)


def _is_gone(name: str, folder: int) -> bool:
    """Removes it, unless it is a folder with something in it."""
    with suppress(FileNotFoundError):  # another one removes it, too
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            return True
        try:
            os.rmdir(name, dir_fd=folder)
        except FileNotFoundError:
            raise
        except OSError:
            return False
    return True
