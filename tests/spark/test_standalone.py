"""A standalone cluster, as `spark-submit` meets it: a master and a worker in processes of their own, with and without dynamic
allocation, under which Spark refuses barrier stages."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dlog.command import closure
from tests.engines import NO_SPARK
from tests.spark.submitting import COMMAND, DYNAMIC, SCRIPT, environment, of_spark, started, submitted

pytestmark = [pytest.mark.spark, pytest.mark.skipif(bool(NO_SPARK), reason=NO_SPARK)]


def _started(words: list[str], folder: Path, ready: str) -> tuple[subprocess.Popen[bytes], re.Match[str]]:
    command = [str(of_spark("bin", "spark-class")), *words, "--host", "127.0.0.1", "--webui-port", "0"]
    return started(command, folder / f"{words[0].rpartition('.')[2]}.log", ready, environment(folder))


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


def test_runs_and_sessions(master: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    assert submitted(master, tmp_path, "script.py").stdout.splitlines() == ["run 465 465", "session 245"]


def test_dynamic_allocation_runs_jobs_and_has_no_sessions(master: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    assert submitted(master, tmp_path, "script.py", **DYNAMIC).stdout.splitlines() == [
        "run 465 465",
        "session dynamic-allocation",
    ]


def test_the_command_runs_there(master: str, tmp_path: Path) -> None:
    program = closure(tmp_path)
    (tmp_path / "command.py").write_text(COMMAND)
    words = ["command.py", "run", str(program / "closure.dl"), "-F", str(program / "facts"), "-D", "out", "--engine", "spark"]
    submitted(master, tmp_path, *words)
    assert sorted((tmp_path / "out" / "path.csv").read_text().splitlines()) == ["1\t2", "1\t3", "2\t3"]
