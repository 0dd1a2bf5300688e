"""dlog in a zip file, which is how `spark-submit --py-files` brings it. Python imports modules from there, but kernels and
grammars are read as files: so it is unpacked, once for each state of the file, and imported from where that went."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from zipfile import ZipFile

from dlog.caches import cache_root


def unpacked(package: str) -> str:
    """The folder that has what the zip file has as the folder `package`, which is a path that leads into it."""
    inside = Path(package)
    archive = next(parent for parent in inside.parents if parent.is_file())
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    target = _place() / f"zipped-{digest}"
    if not target.is_dir():
        _unpack(archive, target)
    return str(target / inside.relative_to(archive))


def _place() -> Path:
    """A folder that can be written to; one for this process alone where that is nowhere else."""
    try:
        found = cache_root()
        found.mkdir(parents=True, exist_ok=True)
        if os.access(found, os.W_OK):
            return found
    except OSError:
        pass
    alone = tempfile.mkdtemp(prefix="dlog-")
    atexit.register(shutil.rmtree, alone, ignore_errors=True)
    return Path(alone)


def _unpack(archive: Path, target: Path) -> None:
    """All of it or nothing: other processes may be about to do the same."""
    beside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        with ZipFile(archive) as file:
            file.extractall(beside)
        beside.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
