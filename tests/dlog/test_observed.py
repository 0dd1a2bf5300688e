"""A run computes what its outputs need, and says so."""

from __future__ import annotations

import json
from pathlib import Path

from tests.dlog.command import dlog

PROGRAM = """.decl edge(x: number, y: number)
.input edge
.decl path(from: number, to: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl cycle(x: number)
cycle(x) :- path(x, x).
.decl start(x: number)
start(x) :- edge(x, _), !edge(_, x).
.decl size(n: number)
size(n) :- n = count : { edge(_, _) }.
.decl reached(x: number)
.printsize start
"""


def relations(folder: Path, more: str, without: str = "nothing") -> dict[str, int]:
    (folder / "p.dl").write_text(PROGRAM.replace(without, "") + more)
    (folder / "edge.facts").write_text("1\t2\n2\t3\n3\t2\n4\t1\n")
    finished = dlog("run", "p.dl", "-D", "out", "--stats-json", "stats.json", cwd=folder)
    assert finished.code == 0, finished.err
    rows = json.loads((folder / "stats.json").read_text())["relations"]
    assert isinstance(rows, dict)
    return rows


def test_only_what_outputs_need_is_computed(tmp_path: Path) -> None:
    rows = relations(tmp_path, "reached(y) :- path(4, y). .output reached")
    assert rows == {"edge": 4, "start": 1, "reached": 3, "path{from = 4}": 3}
    assert sorted((tmp_path / "out" / "reached.csv").read_text().split()) == ["1", "2", "3"]


def test_without_outputs_everything_is_computed(tmp_path: Path) -> None:
    rows = relations(tmp_path, "reached(y) :- path(4, y).", without=".printsize start")
    assert rows == {"edge": 4, "path": 9, "cycle": 2, "start": 1, "size": 1, "reached": 3}


def test_the_plan_is_of_what_is_computed(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM + "reached(y) :- path(4, y). .output reached")
    shown = dlog("plan", "p.dl", cwd=tmp_path).out
    assert [line for line in shown.splitlines() if line.startswith("stratum")] == [
        "stratum start",
        "stratum path{from = 4}, recursive",
        "stratum reached",
    ]
