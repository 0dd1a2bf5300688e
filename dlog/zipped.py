"""dlog in a zip file, which is how `spark-submit --py-files` brings it. Python imports modules from there, but kernels and
grammars are read as files: so it is unpacked, once for each state of the file, and imported from where that went."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from zipfile import ZipFile

from dlog.caches import OTHERS, cache_root, note_use, own_folder, own_tree, remove_unused, try_lock
from dlog.temporary import lease, sweep


def unpacked(package: str) -> str:
    """The folder that has what the zip file has as the folder `package`, which is a path that leads into it."""
    inside = Path(package)
    archive = next(parent for parent in inside.parents if parent.is_file())
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    target = _place() / f"zipped-{digest}"
    sweep([target.parent])  # who finds it unpacked leases nothing there
    if not _is_own(target):
        if os.path.lexists(target):
            target = _alone() / target.name
        _unpack(archive, target)
        remove_unused(target, "zipped")
        try_lock(target)
    return str(target / inside.relative_to(archive))


def _place() -> Path:
    """A folder that can be written to; one for this process alone where that is nowhere else."""
    try:
        found = cache_root()
        if os.access(found, os.W_OK):
            return found
    except OSError:
        pass
    return _alone()


def _alone() -> Path:
    """Raises OSError where others could put something else in its place."""
    return own_folder(lease("zipped").folder)


def _is_own(target: Path) -> bool:
    """Whether it has been unpacked, and nobody else can have changed anything: it is run."""
    try:
        if not target.is_dir() or not own_tree(own_folder(target)):
            return False
        try_lock(target)  # from here on nobody removes it
        note_use(target)
        return own_tree(own_folder(target))
    except OSError:
        return False


def _unpack(archive: Path, target: Path) -> None:
    """All of it or nothing: other processes may be about to do the same."""
    beside = lease("zipped", target.parent)
    try:
        made = beside.folder / target.name
        with ZipFile(archive) as file:
            file.extractall(made)
        for path in (made, *made.rglob("*")):
            path.chmod(path.stat().st_mode & ~OTHERS)
        made.chmod(0o700)  # Python puts what it compiles beside the modules, and the mask may let everybody write there
        made.rename(target)
    except OSError:
        if not _is_own(target):
            raise
    finally:
        beside.remove()
