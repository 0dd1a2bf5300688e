"""`dlog run --engine spark` as a user meets it: files out, exit codes, interruption, machines without Java or PySpark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dlog.engine.spark import application
from dlog.engine.spark.error_translation import reason_of
from dlog.engine.spark.job import _refused
from dlog.grammar.diagnostics import DlogError
from tests.dlog.command import ROOT, arguments, closure
from tests.engines import NO_SPARK

NEEDS_SPARK = pytest.mark.skipif(bool(NO_SPARK), reason=NO_SPARK)
SECONDS = 300
"""Patience on a busy machine."""

ENDLESS = """.decl n(x: number)
n(0).
n(x + 1) :- n(x), x < 100000000000.
.decl square(x: number, y: number)
square(x, y) :- n(x), n(y).
.output square
"""


def finished(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


def python(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return finished([sys.executable, "-c", code], folder, **environment)


def run(*words: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return finished(arguments("run", *words, "--engine", "spark"), cwd, **environment)


@pytest.mark.spark
@NEEDS_SPARK
def test_outputs_go_to_files_and_nothing_else_is_said(tmp_path: Path) -> None:
    program = closure(tmp_path) / "closure.dl"
    program.write_text(program.read_text() + ".printsize path\n")
    done = run("closure.dl", "-F", "facts", "-D", "out", "--workers", "2", "--stats-json", "stats.json", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "path\t3\n", "")
    assert sorted((tmp_path / "out" / "path.csv").read_text().splitlines()) == ["1\t2", "1\t3", "2\t3"]
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["path.csv"]
    assert '"path": 3' in (tmp_path / "stats.json").read_text()


@pytest.mark.spark
@NEEDS_SPARK
def test_an_interruption_ends_everything_within_seconds(tmp_path: Path) -> None:
    (tmp_path / "endless.dl").write_text(ENDLESS)
    process = subprocess.Popen(
        arguments("run", "endless.dl", "-w", "-D", "out", "--engine", "spark"),
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        family = wait_for_workers(process.pid)
        time.sleep(2)
        started = time.perf_counter()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)
        seconds = time.perf_counter() - started
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors == "interrupted\n"
    assert seconds < 60  # two or three, on a machine that is not busy
    assert not list(tmp_path.glob("out/*"))
    deadline = time.monotonic() + SECONDS
    while any(Path(f"/proc/{pid}").exists() for pid in family) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not [pid for pid in family if Path(f"/proc/{pid}").exists()]


def wait_for_workers(pid: int) -> list[int]:
    """All descendants of a process, once Spark's Python workers are among them."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        family = descendants(pid)
        if sum("pyspark.daemon" in words or "pyspark/daemon" in words for words in family.values()) >= 2:
            return list(family)
        time.sleep(0.2)
    raise AssertionError("Spark's workers did not start")


def descendants(pid: int) -> dict[int, str]:
    """The command lines of all processes below one."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    parents: dict[int, list[tuple[int, str]]] = {}
    for line in listed.splitlines():
        child, parent, words = line.split(None, 2)
        parents.setdefault(int(parent), []).append((int(child), words))
    found, todo = {}, [pid]
    while todo:
        for child, words in parents.get(todo.pop(), []):
            found[child] = words
            todo.append(child)
    return found


@pytest.mark.spark
@NEEDS_SPARK
def test_spark_submit_runs_a_script(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import dlog\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "edges = spark.createDataFrame([(1, 2), (2, 3)], 'x long, y long')\n"
        "text = '''.decl e(x: number, y: number)\n.input e\n.decl p(x: number, y: number)\n.output p\n"
        "p(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n'''\n"
        "result = dlog.run(text, {'e': edges}, engine='spark')\n"
        "print('found', sorted(map(tuple, result['p'].df.collect())))\n"
    )
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [str(submit), "--master", "local[2]", "--conf", "spark.ui.enabled=false", "script.py"]
    done = finished(command, tmp_path, PYSPARK_PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr
    assert "found [(1, 2), (1, 3), (2, 3)]" in done.stdout


# ----------------------------------------------------------------------------------------- what is not there, without Spark


@pytest.mark.slow
@NEEDS_SPARK
def test_without_java_one_thing_is_to_be_done(tmp_path: Path) -> None:
    closure(tmp_path)
    done = run("closure.dl", "-F", "facts", cwd=tmp_path, JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == (
        f"error: Spark needs Java: JAVA_HOME is {tmp_path}, where there is no bin/java\n"
        "  = install a Java runtime 17 or 21, or set JAVA_HOME to one\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("package", ["pyspark", "zmq"])
def test_without_a_package_the_extra_is_named(tmp_path: Path, package: str) -> None:
    closure(tmp_path)
    words = ["run", "closure.dl", "-F", "facts", "--engine", "spark"]
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.modules[{package!r}] = None; sys.argv[1:] = {words!r}\n"
    code += "from dlog.__main__ import main; main()"
    done = python(code, tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"error: the Spark engine needs {package}\n  = pip install 'dlog-engine[spark]' brings it\n"


def test_workers_without_dlog_are_told_as_such() -> None:
    told = RuntimeError("x\nModuleNotFoundError: No module named 'dlog.engine.spark'\n\tat org.apache.spark.X(Y.scala:1)")
    [mistake] = _refused(told).diagnostics
    assert mistake.message == "Spark could not finish the run: its Python workers have no module dlog.engine.spark"
    assert mistake.notes == (
        "before Spark starts, set PYSPARK_PYTHON to a Python that is on all of its machines and has dlog-engine[spark]",
        f"where they have the files of this one, that is PYSPARK_PYTHON={sys.executable}",
    )


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `rods` cannot be found. Verify it. SQLSTATE: 42P01; line 1 pos 2",
            "The table or view `rods` cannot be found",
        ),
        (
            "Job aborted: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
            "file:/a.parquet. SQLSTATE: KD001\n\tat org.apache.A(B.scala:3)\nCaused by: java.io.IOException: bad magic\n\tat x",
            "Encountered error while reading file file:/a.parquet: bad magic",
        ),
        ("java.lang.RuntimeException: out of luck\n\tat a.B.c(D.java:1)\n", "java.lang.RuntimeException: out of luck"),
        ("", "no reason given"),
    ],
)
def test_reasons_are_sentences(said: str, reason: str) -> None:
    assert reason_of(RuntimeError(said)) == reason


KILLED = (
    "An error occurred.\n: org.apache.spark.SparkException: Job aborted due to stage failure: Stage 2 has "
    "failed the maximum allowable number of times: 4. Most recent failure reason: Stage failed because barrier task failed.\n"
    "ExecutorLostFailure (executor 4 exited caused by one of the running tasks) Reason: {}\n\tat org.apache.A(B.scala:3)"
)
BY_YARN = (
    "Container killed by YARN for exceeding physical memory limits. 1.0 GB of 1 GB physical memory used. Consider boosting."
)
BY_KUBERNETES = "The executor with id 4 exited with exit code 137(SIGKILL, possible container OOM)."
NO_PYTHON = (
    "Job aborted: org.apache.spark.SparkException: "
    "EOFException occurred while reading the port number from pyspark.daemon's stdout"
)


@pytest.mark.parametrize(
    ("said", "reason", "note"),
    [
        (KILLED.format(BY_YARN), f"it lost an executor: {BY_YARN[:-20]}", "memoryOverhead"),
        (KILLED.format(BY_KUBERNETES), f"it lost an executor: {BY_KUBERNETES[:-1]}", "memoryOverhead"),
        (KILLED.format("Worker is lost. See logs."), "it lost an executor: Worker is lost", ""),
        (NO_PYTHON, "EOFException occurred while reading the port number from pyspark.daemon's stdout", "domain.socket"),
    ],
)
def test_executors_that_are_lost_or_have_no_python_are_a_reason(said: str, reason: str, note: str) -> None:
    [mistake] = _refused(RuntimeError(said)).diagnostics
    assert mistake.message.endswith(reason)
    assert (note in mistake.notes[0]) if note else mistake.notes == ()


def test_a_jvm_that_does_not_start_is_a_mistake_with_its_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from dlog.engine.spark.application import start\n"
        "from dlog.grammar.diagnostics import DlogError\n"
        "try:\n    start()\nexcept DlogError as error:\n    print(error.diagnostics[0].message)\n"
    )
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'Error: A JNI error has occurred, class file version 61.0' >&2\nexit 1\n")
    java.chmod(0o755)
    done = python(code, tmp_path, JAVA_HOME=str(tmp_path))
    assert done.stdout == "Spark does not start: Error: A JNI error has occurred, class file version 61.0\n", done.stderr
    assert done.stderr == ""


def test_slots_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from dlog.engine.spark.job import _workers

    monkeypatch.setattr(application, "free_slots", lambda spark: 4)
    assert [_workers(None, wanted) for wanted in (None, 1, 4)] == [4, 1, 4]  # type: ignore[arg-type]
    with pytest.raises(DlogError, match="5 workers need as many tasks at once, and Spark has room for 4"):
        _workers(None, 5)  # type: ignore[arg-type]
    monkeypatch.setattr(application, "slots", lambda spark: 4)
    monkeypatch.setattr(application, "free_slots", lambda spark: 0)
    with pytest.raises(DlogError, match="the workers of sessions keep all slots"):
        _workers(None, None)  # type: ignore[arg-type]


def test_sessions_of_spark_connect_and_stopped_ones_are_refused() -> None:
    connected = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(DlogError, match="one of Spark Connect has none"):
        application.need_context(connected)
    running: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=object(), master="yarn"))
    application.need_context(running)
    running.sparkContext._jsc = None
    with pytest.raises(DlogError, match="the SparkSession has been stopped"):
        application.need_context(running)
