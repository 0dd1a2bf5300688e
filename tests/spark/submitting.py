"""What tests share that bring up a cluster, and send it programs as users do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.conftest import ROOT

SECONDS = 300
DYNAMIC = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "true"}
SCRIPT = """import sys
import dlog
from dlog.grammar.diagnostics import DlogError
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
edges = spark.range(30).selectExpr("id as x", "id + 1 as y")
text = '''.decl e(x: number, y: number)
.input e
.decl p(x: number, y: number)
.output p
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
'''
result = dlog.run(text, {"e": edges}, engine="spark", spark=spark)
print("run", result["p"].rows, result["p"].df.count())
try:
    with dlog.session(text, {"e": edges}, engine="spark", spark=spark) as session:
        session.remove("e", (10, 11))
        session.commit()
        print("session", len(session["p"]))
except DlogError as error:
    print("session", error.diagnostics[0].code)
"""
COMMAND = "from dlog.__main__ import main\nmain()\n"


def of_spark(*parts: str) -> Path:
    """A file of PySpark's own."""
    import pyspark

    return Path(pyspark.__file__).parent.joinpath(*parts)


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder),
    }


def started(
    command: Sequence[str], log: Path, ready: str, surroundings: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], re.Match[str]]:
    """A process, once its log has said that it is there."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=log.parent, env=surroundings, stdout=out, stderr=out, start_new_session=True)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if found := re.search(ready, log.read_text()):
            return process, found
        assert process.poll() is None, log.read_text()
        time.sleep(0.5)
    process.kill()
    raise AssertionError(log.read_text())


def submitted(
    master: str, folder: Path, *words: str, surroundings: Mapping[str, str] | None = None, **settings: str
) -> subprocess.CompletedProcess[str]:
    """A script that was run on the cluster."""
    settings = {"spark.ui.enabled": "false", **settings}
    confs = [word for item in settings.items() for word in ("--conf", "=".join(item))]
    command = [str(of_spark("bin", "spark-submit")), "--master", master, *confs, *words]
    given = environment(folder) if surroundings is None else surroundings
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done
