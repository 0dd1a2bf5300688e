"""What somebody leaves where dlog looks: each of these touches a file when it is run."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

LEFT_OUT = ("PYTHONPATH", "PYTHONSAFEPATH", "SPARK_HOME")
PROGRAM = """#define TWO 2
.decl edge(a: number, b: number)
.decl path(a: number, b: number)
edge(1, TWO). edge(TWO, 3).
path(a, b) :- edge(a, b).
path(a, c) :- path(a, b), edge(b, c).
.printsize path
"""


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def pickled(marker: Path) -> bytes:
    return pickle.dumps(Touch(marker))


def module(marker: Path) -> str:
    """Imported, it makes a file, and another one where the first is already: who imports it may do so again."""
    return f"import os\nos.makedirs({str(marker)!r}, exist_ok=True)\nraise ImportError('planted')\n"


def run(*command: str, cwd: Path, said: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """A process that has dlog from this checkout, and nothing else from the environment that says where modules are."""
    kept = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    whole = {**kept, **environment}
    return subprocess.run(command, cwd=cwd, env=whole, input=said, capture_output=True, text=True, timeout=120)


def dlog(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-P", "-c", STARTER, *arguments, cwd=cwd, **environment)


STARTER = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from dlog.__main__ import main; main()"
"""What the console script does."""


def nest(folder: Path, depth: int, link: Path) -> None:
    """Makes folders in one another, too deep for paths, with a file and a link in each."""
    folder.mkdir()
    place = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.symlink(link, "link", target_is_directory=True, dir_fd=place)
        os.close(os.open("file", os.O_CREAT, dir_fd=place))
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
