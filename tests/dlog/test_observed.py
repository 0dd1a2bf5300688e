"""A run computes what its outputs need, and says so."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.dlog.command import dlog
from tests.engine.runtime.runs import executor_of, rows_of, variant

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


@pytest.mark.slow
def test_only_what_outputs_need_is_computed(tmp_path: Path) -> None:
    rows = relations(tmp_path, "reached(y) :- path(4, y). .output reached")
    assert rows == {"edge": 4, "start": 1, "reached": 3, "path{from = 4}": 3}
    assert sorted((tmp_path / "out" / "reached.csv").read_text().split()) == ["1", "2", "3"]


@pytest.mark.slow
def test_without_outputs_everything_is_computed(tmp_path: Path) -> None:
    rows = relations(tmp_path, "reached(y) :- path(4, y).", without=".printsize start")
    assert rows == {"edge": 4, "path": 9, "cycle": 2, "start": 1, "size": 1, "reached": 3}


@pytest.mark.slow
def test_the_plan_is_of_what_is_computed(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM + "reached(y) :- path(4, y). .output reached")
    shown = dlog("plan", "p.dl", cwd=tmp_path).out
    assert [line for line in shown.splitlines() if line.startswith("stratum")] == [
        "stratum start",
        "stratum path{from = 4}, recursive",
        "stratum reached",
    ]


COUNTED = """.decl edge(x: number, y: number, w: number)
.decl near(x: number, y: number)
near(x, y) :- edge(x, y, _).
near(x, y) :- edge(y, x, _).
.decl path(x: number, y: number)
path(x, y) :- near(x, y).
path(x, z) :- path(x, y), path(y, z), x < 20.
path(x, z) :- path(x, y), near(y, z), x < 20.
.decl cost(y: number, d: number)
cost(y, d) :- near(y, _), d = min c : { y = 0, c = 0 ; cost(x, b), edge(x, y, w), c = b + w }.
.decl widest(y: number, n: number)
widest(y, n) :- near(y, _), n = max w : { edge(_, y, w) }, n > 0.
.decl known(y: number, s: symbol)
known(0, "given"). known(1, "1").
known(y, to_string(y)) :- near(y, _).
.decl total(n: number)
total(n) :- n = count : { path(_, _) }.
"""
EDGES = [(x, (x * k + 1) % 150, (x * k) % 17 + 1) for x in range(150) for k in (1, 7, 11)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("bulk", [False, True])
def test_new_rows_of_rules_are_the_rows_of_their_relations(threads: int, hashed: bool, bulk: bool) -> None:
    """However often a row was derived, or improved, and by however many workers at once."""
    with variant(hashed=hashed, bulk=bulk):
        executor = executor_of(COUNTED, {"edge": EDGES}, threads=threads)
        executor.run()
        new: Counter[str] = Counter()
        for rule in executor.profile:
            assert 0 <= rule.new <= rule.derived
            new[rule.text.partition("(")[0]] += rule.new
        rows = {name: len(set(rows_of(executor, name))) for name in executor.program.relations}
    facts = {"edge": rows["edge"], "known": 2}
    assert {name: new[name] + facts.get(name, 0) for name in rows} == rows


@pytest.mark.slow
def test_rows_that_were_known_or_improved_are_derived_but_not_new(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(COUNTED + "edge(0, 1, 9). edge(0, 2, 1). edge(2, 1, 1).\n.output cost, near\n")
    shown = dlog("run", "p.dl", "-D", "out", "--stats", "-w", cwd=tmp_path).err.splitlines()
    assert shown[0].split() == ["seconds", "derived", "new", "rows", "iterations", "rule"]
    found = {line.split(maxsplit=4)[4].strip(): line.split()[1:3] for line in shown[1:] if ":-" in line}
    assert found["near(x, y) :- edge(x, y, _)."] == ["3", "3"]
    [cost] = [figures for rule, figures in found.items() if rule.startswith("cost(")]
    assert int(cost[0]) > 3
    assert cost[1] == "3" == str(len((tmp_path / "out" / "cost.csv").read_text().split("\n")) - 1)
