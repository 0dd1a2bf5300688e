"""A standalone cluster, as `spark-submit` meets it: a master and a worker in processes of their own, with and without dynamic
allocation, under which Spark refuses barrier stages."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.dlog.command import closure
from tests.engines import NO_SPARK

pytestmark = [pytest.mark.spark, pytest.mark.skipif(bool(NO_SPARK), reason=NO_SPARK)]
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


def _environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder),
    }


def _started(words: list[str], folder: Path, ready: str) -> tuple[subprocess.Popen[bytes], re.Match[str]]:
    """A process of Spark's, once its log has said that it is there."""
    import pyspark

    log = folder / f"{words[0].rpartition('.')[2]}.log"
    launcher = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with log.open("wb") as out:
        command = [str(launcher), *words, "--host", "127.0.0.1", "--webui-port", "0"]
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(folder), stdout=out, stderr=out, start_new_session=True
        )
    for _ in range(SECONDS):
        if found := re.search(ready, log.read_text()):
            return process, found
        assert process.poll() is None, log.read_text()
        time.sleep(1)
    raise AssertionError(log.read_text())


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster with two slots."""
    folder = tmp_path_factory.mktemp("standalone")
    running = []
    try:
        process, found = _started(["org.apache.spark.deploy.master.Master", "--port", "0"], folder, r"spark://127.0.0.1:\d+")
        running.append(process)
        words = ["org.apache.spark.deploy.worker.Worker", found[0], "--cores", "2", "--memory", "2g"]
        process, _ = _started(words, folder, "Successfully registered with master")
        running.append(process)
        yield found[0]
    finally:
        for process in reversed(running):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def submitted(master: str, folder: Path, *words: str, **settings: str) -> str:
    """What a script on the cluster prints."""
    import pyspark

    settings = {"spark.ui.enabled": "false", **settings}
    confs = [word for item in settings.items() for word in ("--conf", "=".join(item))]
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [str(submit), "--master", master, *confs, *words]
    done = subprocess.run(
        command, cwd=folder, env=_environment(folder), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_runs_and_sessions(master: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    assert submitted(master, tmp_path, "script.py").splitlines() == ["run 465 465", "session 245"]


def test_dynamic_allocation_runs_jobs_and_has_no_sessions(master: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    assert submitted(master, tmp_path, "script.py", **DYNAMIC).splitlines() == ["run 465 465", "session dynamic-allocation"]


def test_the_command_runs_there(master: str, tmp_path: Path) -> None:
    program = closure(tmp_path)
    (tmp_path / "command.py").write_text("from dlog.__main__ import main\nmain()\n")
    words = ["command.py", "run", str(program / "closure.dl"), "-F", str(program / "facts"), "-D", "out", "--engine", "spark"]
    submitted(master, tmp_path, *words)
    assert sorted((tmp_path / "out" / "path.csv").read_text().splitlines()) == ["1\t2", "1\t3", "2\t3"]
