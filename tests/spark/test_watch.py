"""`dlog watch --engine spark`: the lines that the embedded engine writes, and a state that either goes on with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dlog.__main__ import run_command
from tests.dlog.command import CLOSURE, Finished
from tests.dlog.watching import CHANGES, KINDS, STREAM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
RunWatch = Callable[..., Finished]


@pytest.fixture
def watch(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> RunWatch:
    """`watch(program, stream, flags...)` on the tests' Spark."""
    monkeypatch.chdir(tmp_path)

    def run(program: str, stream: str, *flags: str) -> Finished:
        Path("program.dl").write_text(program)
        Path("changes.txt").write_text(stream, encoding="utf-8")
        return Finished(run_command(["watch", "program.dl", "changes.txt", *flags]), *capfd.readouterr())

    return run


def test_changes_come_out_round_by_round(watch: RunWatch) -> None:
    finished = watch(CLOSURE, STREAM, "--engine", "spark")
    assert (finished.code, finished.out, finished.err) == (0, CHANGES, "")


def test_every_type_and_facts_from_files_answer_as_embedded(watch: RunWatch) -> None:
    program = KINDS + ".input all\n"
    Path("facts").mkdir()
    Path("facts", "all.facts").write_text("1\t2\t0.5\ta\tnil\n-1\t18446744073709551615\t3\tgrün\t[1, [2, nil]]\n")
    stream = '1,all,+1,7,8,0.25,"a, b","[3, nil]"\n1,flag,+1\n2,all,-1,1,2,0.5,a,nil\n2,flag,-1\n'
    found, expected = (watch(program, stream, "-F", "facts", "--engine", engine) for engine in ("spark", "embedded"))
    assert found == expected
    assert [line.split(",")[0] for line in found.out.splitlines()] == ["0", "0", "1", "1", "2", "2"]


@pytest.mark.parametrize("flags", [(), ("--state", "state")], ids=["alone", "with a state"])
def test_facts_may_come_from_where_spark_reads(
    spark: SparkSession, watch: RunWatch, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    spark.createDataFrame([(1, 2), (2, 3)], "src long, dst long").write.parquet(str(tmp_path / "known"))
    Path("facts").mkdir()
    Path("facts", "start.facts").write_text("1\n")
    program = f""".decl edge(x: number, y: number)
.input edge(IO=spark, path="{tmp_path}/known", format=parquet, columns="src:dst")
.decl start(x: number)
.input start
.decl reached(x: number)
.output reached
reached(x) :- start(x).
reached(y) :- reached(x), edge(x, y).
"""
    found = watch(program, "1,edge,+1,3,4\n2,edge,-1,1,2\n", "-F", "facts", "--engine", "spark", *flags)
    assert (found.code, found.err) == (0, "")
    assert sorted(found.out.splitlines()) == [
        "0,reached,+1,1", "0,reached,+1,2", "0,reached,+1,3", "1,reached,+1,4",
        "2,reached,-1,2", "2,reached,-1,3", "2,reached,-1,4",
    ]  # fmt: skip


def test_a_state_goes_on_behind_its_last_round(watch: RunWatch) -> None:
    first = STREAM.split("5,edge")[0]
    state = "--state", "state", "--engine", "spark"
    begun = watch(CLOSURE, first, *state, "--workers", "1")
    with pytest.warns(RuntimeWarning, match="rounds up to 2 are in the state"):
        resumed = watch(CLOSURE, STREAM, *state, "-D", "out")
    assert (begun.code, begun.out) == (0, CHANGES.split("5,path")[0])
    assert (resumed.code, resumed.out) == (0, "")
    assert Path("out", "path.changes.csv").read_text() == "5,path" + CHANGES.split("5,path", 1)[1]


def test_more_workers_than_there_are_slots_are_refused(watch: RunWatch) -> None:
    finished = watch(CLOSURE, STREAM, "--engine", "spark", "--workers", "99")
    assert (finished.code, finished.out) == (1, "")
    assert "a session on Spark leaves one slot to everything else" in finished.err


def test_a_bad_line_ends_the_stream_after_the_rounds_before_it(watch: RunWatch) -> None:
    finished = watch(CLOSURE, "1,edge,+1,1,2\n2,edge,+1,2,3\n3,edge,+1,2,three\n", "--engine", "spark")
    assert (finished.code, finished.out) == (1, "1,path,+1,1,2\n2,path,+1,1,3\n2,path,+1,2,3\n")
    assert "`three` is not a number" in finished.err
