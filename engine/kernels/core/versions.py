"""Which files hold kernels, and the folder for the machine code of what is in them now.

Numba stamps a cached function with the content of its defining file only: edit a callee in another module and the caller
keeps the old machine code (numba issue 1833). So the folder's name is a hash of every file that holds kernels: an edit means
a fresh folder (dlog/caches.py says where).
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from dlog.caches import cache_root

ENGINE = Path(__file__).resolve().parents[2]
FOLDERS = ("kernels", "values", "formats")
"""Folders of the engine with modules that hold kernels."""


@cache
def cache_folder() -> Path:
    """The folder for the machine code of this version of the kernels and of the compiler."""
    sha = hashlib.sha256(_compiler().encode())
    for path in kernel_files():
        sha.update(path.relative_to(ENGINE).as_posix().encode() + path.read_bytes())
    return cache_root() / f"kernels-{sha.hexdigest()[:16]}"


def kernel_files() -> list[Path]:
    """Every file of the engine that holds kernels or has a part in compiling them."""
    files = (path for folder in FOLDERS for path in sorted((ENGINE / folder).rglob("*.py")))
    return [path for path in files if ENGINE / "kernels" in path.parents or b"import entry" in path.read_bytes()]


def _compiler() -> str:
    """Numba's version as its installation is named, without importing it."""
    spec = find_spec("numba")
    packages = Path(spec.origin).parent.parent if spec is not None and spec.origin is not None else Path()
    return " ".join(sorted(path.name for pattern in ("numba-*", "llvmlite-*") for path in packages.glob(pattern)))
