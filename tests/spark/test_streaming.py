"""Structured Streaming into a session: each batch a round, once, also after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dlog
from dlog.grammar.diagnostics import DlogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROGRAM = """.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.input edge
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
SCHEMA = "x long, y long, diff long"


def drop(folder: Path, number: int, rows: list[tuple[int, int, int]]) -> None:
    """One more file in a folder that a stream reads."""
    folder.mkdir(exist_ok=True)
    columns = {name: pa.array(values) for name, values in zip(("x", "y", "diff"), zip(*rows, strict=True), strict=True)}
    pq.write_table(pa.table(columns), folder / f".{number}")
    os.utime(folder / f".{number}", (10**9 + number, 10**9 + number))  # Spark reads files in the order of their times
    (folder / f".{number}").rename(folder / f"{number:05}.parquet")


def run_stream(spark: SparkSession, folder: Path, session: dlog.Session) -> None:
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    query = dlog.stream(session, {"edge": source}, checkpoint=folder / "checkpoint", changes=folder / "out", availableNow=True)
    query.awaitTermination(300)


def written(folder: Path) -> dict[int, Counter[tuple[int, int]]]:
    """The changes of `path` by round, as they were written."""
    found: dict[int, Counter[tuple[int, int]]] = {}
    for path in sorted((folder / "out" / "path").glob("round-*.parquet")):
        for row in pq.read_table(path).to_pylist():
            found.setdefault(row["round"], Counter())[row["x"], row["y"]] += row["diff"]
    return found


def total(changes: dict[int, Counter[tuple[int, int]]]) -> list[tuple[int, int]]:
    rows: Counter[tuple[int, int]] = Counter()
    for round in changes.values():
        rows.update(round)
    assert set(rows.values()) <= {0, 1}
    return sorted(row for row, count in rows.items() if count)


def test_each_batch_is_a_round(spark: SparkSession, tmp_path: Path) -> None:
    drop(tmp_path / "in", 0, [(1, 2, 1), (2, 3, 1)])
    drop(tmp_path / "in", 1, [(2, 3, -1), (2, 4, 1)])
    with dlog.session(PROGRAM, state=tmp_path / "state") as session:
        run_stream(spark, tmp_path, session)
        assert sorted(session["path"]) == [(1, 2), (1, 4), (2, 4)]
    changes = written(tmp_path)
    assert [sorted(c.items()) for c in changes.values()] == [
        [((1, 2), 1), ((1, 3), 1), ((2, 3), 1)],
        [((1, 3), -1), ((1, 4), 1), ((2, 3), -1), ((2, 4), 1)],
    ]
    drop(tmp_path / "in", 2, [(4, 5, 1)])
    with dlog.session(PROGRAM, state=tmp_path / "state") as session:
        run_stream(spark, tmp_path, session)
        assert total(written(tmp_path)) == sorted(session["path"]) == [(1, 2), (1, 4), (1, 5), (2, 4), (2, 5), (4, 5)]


@pytest.mark.parametrize("few", [0, 100], ids=["past this process", "through it"])
def test_batches_come_to_the_workers_of_a_session(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """What goes in a batch goes before what comes; of a diff only the sign counts."""
    monkeypatch.setattr("dlog.streaming.MAX_RELAYED_ROWS", few)
    drop(tmp_path / "in", 0, [(1, 2, 1), (2, 3, 1), (3, 4, 1)])
    drop(tmp_path / "in", 1, [(2, 3, 1), (2, 3, -1), (3, 4, -1), (2, 4, 1)])
    drop(tmp_path / "in", 2, [(1, 2, -5), (2, 3, 0)])
    with dlog.session(PROGRAM, state=tmp_path / "state", engine="spark", spark=spark, workers=1) as session:
        run_stream(spark, tmp_path, session)
        assert (session.round, sorted(session["edge"])) == (3, [(2, 3), (2, 4)])
        assert total(written(tmp_path)) == sorted(session["path"]) == [(2, 3), (2, 4)]


RECORDS = """.type Point = [x: number, name: symbol]
.decl at(t: number, p: Point)
.input at
.decl on()
.input on
.decl seen(x: number, p: Point)
.output seen
seen(x, p) :- at(_, p), p = [x, _], on().
"""


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_records_are_texts_in_a_stream(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    for number, rows in enumerate(([(1, '[5, "a"]', 1), (2, "nil", 1), (3, '[7, "b, c"]', 1)], [(3, '[7,"b, c"]', -1)])):
        spark.createDataFrame(rows, "t long, p string, diff int").coalesce(1).write.parquet(str(tmp_path / f"in{number}"))
    (tmp_path / "in").mkdir()
    source = spark.readStream.schema("t long, p string, diff int").parquet(str(tmp_path / "in"))
    options = {"engine": engine, "spark": spark, "workers": 1} if engine == "spark" else {}
    with dlog.session(RECORDS, **options) as session:
        session.insert("on", [()])
        for number in range(2):
            file = next((tmp_path / f"in{number}").glob("*.parquet"))
            file.rename(tmp_path / "in" / file.name)
            flow = dlog.stream(session, {"at": source}, checkpoint=tmp_path / "checkpoint", changes=tmp_path, availableNow=True)
            flow.awaitTermination(300)
            assert sorted(session["seen"]) == [(5, (5, "a")), (7, (7, "b, c"))][: 2 - number]
    written = pq.read_table(sorted((tmp_path / "seen").glob("round-*.parquet"))[-1])
    assert written.to_pydict() == {"x": [7], "p": ["[7, b, c]"], "diff": [-1], "round": [2]}


def test_a_batch_that_comes_again_is_known(spark: SparkSession, tmp_path: Path) -> None:
    """As after a crash between the round and its files: the files are made again, the round is not."""
    drop(tmp_path / "in", 0, [(1, 2, 1)])
    drop(tmp_path / "in", 1, [(2, 3, 1)])
    with dlog.session(PROGRAM, state=tmp_path / "state") as session:
        run_stream(spark, tmp_path, session)
    expected = written(tmp_path)
    last = max((tmp_path / "out" / "path").glob("round-*.parquet"))
    last.unlink()
    for name in ("commits", "offsets"):
        for path in (tmp_path / "checkpoint" / name).iterdir():
            if name == "commits" and path.name.strip(".").removesuffix(".crc") == "1":
                path.unlink()
    with dlog.session(PROGRAM, state=tmp_path / "state") as session:
        run_stream(spark, tmp_path, session)
        assert session.round == 2
    assert written(tmp_path) == expected


def test_a_checkpoint_that_is_not_at_the_sessions_batch_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever file system it is named on, and for the very first batch, too."""
    (tmp_path / "in").mkdir()
    source = spark.readStream.schema("x long, y long").parquet(str(tmp_path / "in"))
    with dlog.session(PROGRAM) as session:
        session.commit(mark=0)
        for checkpoint in (tmp_path / "new", f"file:{tmp_path}/new", f"file://{tmp_path}/new"):
            with pytest.raises(DlogError, match="the session has batches up to 0 of another stream"):
                dlog.stream(session, {"edge": source}, checkpoint=checkpoint)
        (tmp_path / "known" / "offsets").mkdir(parents=True)
        (tmp_path / "known" / "offsets" / "0").touch()
        session.commit(mark=1)
        with pytest.raises(DlogError, match="the session has batches up to 1 of another stream"):
            dlog.stream(session, {"edge": source}, checkpoint=f"file:{tmp_path}/known")
        with pytest.raises(DlogError, match=r"the stream's checkpoint cannot be read: .*nowhere"):
            dlog.stream(session, {"edge": source}, checkpoint="nowhere://known")


def test_batches_of_another_checkpoint_are_not_taken_for_known(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(2):
        drop(tmp_path / "in", number, [(number, number + 1, 1)])
    with dlog.session(PROGRAM) as session:
        run_stream(spark, tmp_path, session)
        (tmp_path / "checkpoint").rename(tmp_path / "old")
        with pytest.raises(DlogError, match="the session has batches up to 1 of another stream"):
            run_stream(spark, tmp_path, session)
        drop(tmp_path / "in", 2, [(2, 3, 1)])
        session.commit(mark=-1)
        run_stream(spark, tmp_path, session)
        assert session.mark == 2 and (0, 3) in session["path"]


def test_sources_that_do_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = spark.readStream.schema("x long, y string").parquet(str(tmp_path / "in"))
    with dlog.session(PROGRAM) as session:
        with pytest.raises(DlogError, match="column y is string, but y is number"):
            dlog.stream(session, {"edge": source}, checkpoint=tmp_path / "checkpoint")
        signed = source.selectExpr("x", "x as y", "y as diff")
        with pytest.raises(DlogError, match="the column `diff` of the stream for edge is string"):
            dlog.stream(session, {"edge": signed}, checkpoint=tmp_path / "checkpoint")
        with pytest.raises(DlogError, match="unknown relation"):
            dlog.stream(session, {"egde": source}, checkpoint=tmp_path / "checkpoint")
        with pytest.raises(DlogError, match="`path` follows from rules"):
            dlog.stream(session, {"path": source}, checkpoint=tmp_path / "checkpoint")
        with pytest.raises(DlogError, match="must be a streaming DataFrame"):
            dlog.stream(session, {"edge": spark.range(2)}, checkpoint=tmp_path / "checkpoint")
        source = source.selectExpr("x", "x as y")
        with pytest.raises(DlogError, match="unknown relation `paht`"):
            dlog.stream(session, {"edge": source}, checkpoint=tmp_path / "checkpoint", outputs=("paht",))
        (tmp_path / "file").touch()
        with pytest.raises(DlogError, match="the stream does not start: "):
            dlog.stream(session, {"edge": source}, checkpoint=tmp_path / "file" / "checkpoint")


STREAMING = """
import sys
from pathlib import Path
import dlog
from dlog.engine.spark.application import start
from tests.spark.test_streaming import PROGRAM, run_stream
folder = Path(sys.argv[1])
spark = start("local[2]", {"spark.ui.enabled": "false"})
with dlog.session(PROGRAM, state=folder / "state") as session:
    run_stream(spark, folder, session)
"""


def test_a_killed_query_loses_and_doubles_nothing(tmp_path: Path) -> None:
    rows = [[(i, i + 1, 1)] + ([(i - 1, i, -1)] if i % 3 == 2 else []) for i in range(12)]
    for number, row in enumerate(rows):
        drop(tmp_path / "in", number, row)
    command = [sys.executable, "-c", STREAMING, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for rounds in (2, 6):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment, start_new_session=True)
        deadline = time.monotonic() + 300
        while len(written(tmp_path)) < rounds and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert subprocess.run(command, env=environment, stderr=subprocess.DEVNULL, timeout=600).returncode == 0
    edges = {(i, i + 1) for i in range(12)} - {(i - 1, i) for i in range(12) if i % 3 == 2}
    expected = dlog.run_text(PROGRAM, {"edge": edges})["path"]
    assert total(written(tmp_path)) == sorted(expected)
    with dlog.session(PROGRAM, state=tmp_path / "state") as session:
        assert session.round == 12
        assert set(session["path"]) == expected
