"""Runs the command line as a user does: in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

CLOSURE = """\
.decl edge(from: number, to: number)
.input edge
.decl path(from: number, to: number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@dataclass(frozen=True, slots=True)
class Finished:
    code: int
    out: str
    err: str


def arguments(*words: str | Path) -> list[str]:
    """The command line of `dlog words...`, whatever is installed: this checkout's."""
    bootstrap = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from dlog.__main__ import main; main()"
    return [sys.executable, "-c", bootstrap, *map(str, words)]


def dlog(*words: str | Path, cwd: Path, stdin: str = "") -> Finished:
    process = subprocess.run(
        arguments(*words), cwd=cwd, input=stdin, capture_output=True, text=True, timeout=120, check=False
    )
    return Finished(process.returncode, process.stdout, process.stderr)


def closure(folder: Path, edges: str = "1\t2\n2\t3\n") -> Path:
    """A folder with the program `closure.dl` and its input in `facts`."""
    (folder / "closure.dl").write_text(CLOSURE)
    (folder / "facts").mkdir()
    (folder / "facts" / "edge.facts").write_text(edges)
    return folder
