"""There is one NaN: whatever its bits were outside, and whatever made it: one key, written `nan`. Zeros stay two."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dlog
from dlog.__main__ import run_command
from dlog.watch.watch import Watch, watch

NAN = 0x7FF8000000000000


def double(word: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", word))[0])


def bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def words(rows: Any) -> list[int]:
    return sorted(bits(value) for (value,) in rows)


STRANGE = [math.nan, double(NAN | 1 << 63), double(NAN + 0x123), double(0xFFF0000000000001), 1.5, -0.0, 0.0]
EXPECTED = sorted([NAN, bits(1.5), 0, 1 << 63])
PROGRAM = """
.decl f(x: float)
.decl g(x: float)
g(x) :- f(x).
.decl many(n: number)
many(n) :- n = count : { f(_) }.
.decl ends(least: float, most: float)
ends(a, b) :- a = min x : { f(x) }, b = max x : { f(x) }.
.decl both(x: float)
both(x) :- f(x), made(x).
.decl made(x: float)
made(0.0 / 0.0).
"""
ROWS: dict[str, Callable[[], Any]] = {
    "tuples": lambda: [(x,) for x in STRANGE],
    "many tuples": lambda: [(x,) for x in STRANGE * 50],
    "numpy": lambda: {"x": np.array(STRANGE)},
    "a list": lambda: {"x": STRANGE},
    "two dimensions": lambda: np.array(STRANGE)[:, None],
    "arrow": lambda: pa.table({"x": np.array(STRANGE)}),
    "narrow": lambda: pa.table({"x": np.array(STRANGE, np.float32)}),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_rows(rows: Callable[[], Any]) -> None:
    found = dlog.run(PROGRAM, {"f": rows()})
    with dlog.session(PROGRAM) as s:
        s.insert("f", rows())
        s.commit()
        for r in (found, s):
            assert words(r["f"]) == words(r["g"]) == EXPECTED
            assert list(r["many"]) == [(4,)]
            assert [tuple(map(bits, row)) for row in r["ends"]] == [(1 << 63, NAN)]
            assert words(r["both"]) == words(r["made"]) == [NAN]
        s.remove("f", [(STRANGE[1],)])
        s.commit()
        assert words(s["f"]) == [0, bits(1.5), 1 << 63]
        assert not list(s["both"])


TEXT = "nan\n-nan\nNaN\n-NAN\nnan(123)\n1.5\n-0.0\n0\n"


def test_files_in_and_out(tmp_path: Path) -> None:
    (tmp_path / "f.facts").write_text(TEXT)
    pq.write_table(pa.table({"x": np.array(STRANGE)}), tmp_path / "f.parquet")
    for given in ("f.facts", "f.parquet"):
        program = f'{PROGRAM}.input f(filename="{given}")\n.output g, made\n.output both(IO=parquet)\n'
        (tmp_path / "p.dl").write_text(program)
        result = dlog.run(tmp_path / "p.dl", tmp_path)
        assert words(result["f"]) == EXPECTED
        assert run_command(["run", str(tmp_path / "p.dl"), "-F", str(tmp_path), "-D", str(tmp_path)]) == 0
        assert (tmp_path / "g.csv").read_text() == "-0\n0\n1.5\nnan\n"
        assert (tmp_path / "made.csv").read_text() == "nan\n"
        assert [bits(x) for x in pq.read_table(tmp_path / "both.parquet")["x"].to_pylist()] == [NAN]


def test_records(tmp_path: Path) -> None:
    program = ".type R = [x: float, n: number]\n.decl p(r: R)\n.input p\n.decl q(r: symbol)\n.output p\n"
    (tmp_path / "p.facts").write_text("[nan, 1]\n[-nan, 1]\n[NAN, 1]\n")
    assert dlog.run(program, tmp_path)["p"].rows == 1
    assert dlog.run(program.replace(".input p\n", ""), {"p": [((x, 1),) for x in STRANGE]})["p"].rows == 4


def test_what_operations_make() -> None:
    program = """
.decl inf(x: float)
inf(1.0 / 0.0). inf(-1.0 / 0.0).
.decl made(how: symbol, x: float)
made("minus", x - x) :- inf(x).
made("plus", x + y) :- inf(x), inf(y), x < y.
made("times", x * 0.0) :- inf(x).
made("over", x / x) :- inf(x).
made("neg", -(x - x)) :- inf(x).
made("power", (-x) ^ 0.5) :- x = 1.0.
made("text", to_float("-nan")).
made("min", min(x - x, x)) :- inf(x).
made("sum", y) :- y = sum x : { inf(x) }.
made("mean", y) :- y = mean x : { inf(x) }.
.decl shown(t: symbol)
shown(to_string(x)) :- made(_, x).
shown(cat(to_string(x), "")) :- made(_, x).
"""
    with dlog.session(program) as s:
        for found in (dlog.run(program), s):
            assert {(how, bits(x)) for how, x in found["made"]} == {
                (how, NAN) for how in ("minus", "plus", "times", "over", "neg", "power", "text", "min", "sum", "mean")
            }
            assert list(found["shown"]) == [("nan",)]


def test_changes_as_lines(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(".decl f(x: float)\n.decl g(x: float)\ng(x) :- f(x).\n")
    (tmp_path / "changes").write_text("1,f,+1,-nan\n2,f,+1,nan\n3,f,-1,NaN\n")
    for format in ("csv", "json"):
        watch(Watch(tmp_path / "p.dl", str(tmp_path / "changes"), output=str(tmp_path), format=format))  # type: ignore[arg-type]
    assert (tmp_path / "g.changes.csv").read_text() == "1,g,+1,nan\n3,g,-1,nan\n"
    lines = [json.loads(line) for line in (tmp_path / "g.changes.jsonl").read_text().splitlines()]
    assert [(line["round"], line["diff"]) for line in lines] == [(1, 1), (3, -1)]


@pytest.mark.parametrize("rule", ["b(x * 0.0) :- a(x).", "b(y) :- a(x), y = x * 0.0."])
def test_a_computed_nan_or_zero_is_proved_by_what_gives_it(rule: str) -> None:
    with dlog.session(f".decl a(x: float)\n.decl b(x: float)\n{rule}\n", {"a": [(1.0,), (-1.0,), (math.inf,)]}) as session:
        assert sorted(map(repr, session["b"])) == ["(-0.0,)", "(0.0,)", "(nan,)"]
        for value, source in ((math.nan, "inf"), (-0.0, "-1"), (0.0, "1")):
            assert f"a({source}" in str(session.why("b", (value,)))
