"""Many files in one folder: what writing one costs does not grow with those that are there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dlog.__main__ import run_command
from dlog.engine.formats import whole_files


def test_a_folder_is_not_listed_for_each_file_of_a_run(tmp_path: Path, monkeypatch) -> None:
    listed: list[Path] = []

    def counting(real: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda folder: (listed.append(Path(folder)), real(folder))[1]

    monkeypatch.setattr(whole_files, "LISTED", 3600.0)
    for name in ("listdir", "scandir"):  # globs use the second one
        monkeypatch.setattr(os, name, counting(getattr(os, name)))
    names, out = [f"r{i}" for i in range(40)], tmp_path / "out"
    (tmp_path / "p.dl").write_text("".join(f".decl {n}(x: number)\n{n}(1).\n.output {n}\n" for n in names))
    assert run_command(["run", str(tmp_path / "p.dl"), "-D", str(out)]) == 0
    assert listed.count(out) == 1
    assert sorted(path.stem for path in out.iterdir()) == sorted(names)
