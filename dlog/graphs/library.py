"""The programs of `programs/graph`, as what `dlog.run` and `dlog.session` take.

A program with steps, where each step reads all of the one before, is its file and a line for each step. Nothing is formatted
into a program: what varies are macros and relations.
"""

from __future__ import annotations

from pathlib import Path

from dlog.dataclass import dataclass

_HERE = Path(__file__).resolve().parent
_FOLDERS = (_HERE / "programs", _HERE.parents[1] / "programs" / "graph")
"""Where the programs are in an installed dlog, and in a checkout."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program of the library with its macros; `steps` steps are written out if it has any, 0 if it has none."""

    name: str
    macros: tuple[str, ...] = ()
    steps: int = 0

    @property
    def source(self) -> Path | str:
        """The file, or a text that includes it."""
        return self.text if self.steps else self._file

    @property
    def text(self) -> str:
        """A text that includes the file, by its whole path: a file of the same name in the current folder is somebody's own."""
        include = f'#include "{self._file}"'
        if not self.steps:
            return f"{include}\n"
        first = 1 if self.name == "label_propagation" else 0
        lines = [f"STEP({n}, {n + 1})" for n in range(first, self.steps)]
        return "\n".join(["#define STEPS_FOLLOW", include, *lines, ""])

    @property
    def _file(self) -> Path:
        return folder() / self.name / "program.dl"


def folder() -> Path:
    """The folder with a folder for each program."""
    return next(path for path in _FOLDERS if path.is_dir())


def names() -> list[str]:
    """The programs there are."""
    return sorted(path.parent.name for path in folder().glob("*/program.dl"))
