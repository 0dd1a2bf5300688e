"""Files that are written as a whole: many in one folder, and in the place of others."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dlog
from dlog import unfinished
from dlog.__main__ import run_command
from dlog.grammar.diagnostics import DlogError


def test_a_folder_is_not_listed_for_each_file_of_a_run(tmp_path: Path, monkeypatch) -> None:
    listed: list[Path] = []

    def counting(real: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda folder: (listed.append(Path(folder)), real(folder))[1]

    monkeypatch.setattr(unfinished, "LISTED", 3600.0)
    for name in ("listdir", "scandir"):  # globs use the second one
        monkeypatch.setattr(os, name, counting(getattr(os, name)))
    names, out = [f"r{i}" for i in range(40)], tmp_path / "out"
    (tmp_path / "p.dl").write_text("".join(f".decl {n}(x: number)\n{n}(1).\n.output {n}\n" for n in names))
    assert run_command(["run", str(tmp_path / "p.dl"), "-D", str(out)]) == 0
    assert listed.count(out) == 1
    assert sorted(path.stem for path in out.iterdir()) == sorted(names)


@pytest.mark.skipif(not hasattr(os, "fchmod"), reason="a system without such rights")
@pytest.mark.parametrize(("before", "after"), [(0o600, 0o600), (0o640, 0o640), (0o666, 0o644), (0o4755, 0o644)])
def test_who_could_not_read_an_output_cannot_read_the_one_in_its_place(tmp_path: Path, before: int, after: int) -> None:
    (tmp_path / "p.dl").write_text(".decl r(x: number)\nr(1).\n.output r\n")
    (tmp_path / "r.csv").write_text("secret\n")
    (tmp_path / "r.csv").chmod(before)
    mask = os.umask(0o022)
    try:
        assert run_command(["run", str(tmp_path / "p.dl"), "-D", str(tmp_path)]) == 0
    finally:
        os.umask(mask)
    assert (tmp_path / "r.csv").read_text() == "1\n"
    assert stat.S_IMODE((tmp_path / "r.csv").stat().st_mode) == after


def test_a_name_that_no_file_has_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(DlogError, match="no file has such a name"):
        dlog.run('.decl r(x: number)\nr(1).\n.output r(filename="a\0b.csv")\n', output=tmp_path)
    assert not list(tmp_path.iterdir())
