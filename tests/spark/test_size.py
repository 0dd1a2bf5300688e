"""More rows than Spark's driver has memory, more than a worker may take, and rows that crowd at one vertex."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dlog
from dlog.grammar.diagnostics import DlogError
from tests.conftest import ROOT
from tests.engine.cluster.test_skew import PROGRAM, skewed
from tests.engines import NO_SPARK, run_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.skipif(bool(NO_SPARK), reason=NO_SPARK)]

CLOSURE = """.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.input edge
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
MEBIBYTE = 2**20


def test_a_hub_changes_no_answer(spark: SparkSession) -> None:
    facts = {"e": skewed(5_000, 2_000)}
    assert run_on_spark(spark, PROGRAM, facts, 2, everywhere=0) == dlog.run_text(PROGRAM, facts)


def test_a_hub_is_spread_over_the_workers_and_the_result_says_so(spark: SparkSession) -> None:
    """Of 200,000 edges 60 in 100 leave one vertex: with two workers that is more than one of them should have."""
    edges = spark.range(200_000).selectExpr("if(id % 10 < 6, -1, id) as x", "id as y")
    text = ".decl e(x: number, y: number)\n.decl r(y: number, x: number)\n.input e\n.output r\nr(y, x) :- e(x, y), y < 100.\n"
    result = dlog.run(text, {"e": edges}, engine="spark")
    assert result.spread == {"e": 1}
    wanted = edges.where("y < 100").select("y", "x").distinct()
    assert result["r"].rows == wanted.count() == result["r"].df.intersect(wanted).count()
    few = dlog.run(text, {"e": edges.limit(20_000)}, engine="spark")
    assert few.spread == {}


def test_a_worker_that_would_take_too_much_stops_with_an_error(spark: SparkSession) -> None:
    """A path of 3,000 edges: 4.5M rows, 72 MB; the next run is none the worse."""
    edges = spark.range(3_000).selectExpr("id as x", "id + 1 as y")
    with pytest.raises(DlogError, match="out of memory: the limit is 8 MiB") as caught:
        dlog.run(CLOSURE, {"edge": edges}, engine="spark", memory=8 * MEBIBYTE)
    assert {d.code for d in caught.value.diagnostics} == {"out-of-memory"}
    assert dlog.run(CLOSURE, {"edge": edges}, engine="spark", memory=400 * MEBIBYTE)["path"].rows == 3_000 * 3_001 // 2


PASSING = """
import json, sys
import dlog
from dlog.engine.spark.application import start

ROWS, WIDTH, target = 600_000, 1_000, sys.argv[1]
spark = start("local[2]", {"spark.driver.memory": "512m", "spark.ui.enabled": "false"})
text = '''.decl item(n: number, text: symbol)
.decl kept(text: symbol, n: number)
.input item(IO=spark, table=items)
.output kept(IO=spark, path="%s", format=parquet)
kept(t, n) :- item(n, t).
''' % target
spark.range(ROWS).selectExpr("id as n", f"rpad(cast(id as string), {WIDTH}, 'x') as text").createOrReplaceTempView("items")
result = dlog.run(text, engine="spark", output=".")
heap = spark._jvm.java.lang.Runtime.getRuntime().maxMemory()
found = spark.read.parquet(target).selectExpr("count(*)", "sum(n)", "sum(length(text))").first()
print(json.dumps({"heap": heap, "rows": result["kept"].rows, "found": [int(x) for x in found]}))
"""


def test_a_relation_larger_than_the_drivers_memory_passes_through(tmp_path: Path) -> None:
    """600 MB of text through a JVM of 512, from a source of Spark's to a target of Spark's."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", PASSING, str(tmp_path / "kept")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    figures = json.loads(done.stdout)
    assert figures["heap"] < 600_000 * 1_000
    assert figures["rows"] == 600_000
    assert figures["found"] == [600_000, 600_000 * 599_999 // 2, 600_000 * 1_000]
