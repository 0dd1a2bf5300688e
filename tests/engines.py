"""The engines that the shared suites run on: the embedded one, several workers as threads of this process, and on Spark.

What differs is only who computes: `run_text` and `run_program` give the same whichever it is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.shards import run_sharded, run_sharded_program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.conftest import RunProgram, RunText

ENGINES = ["embedded", "shards", pytest.param("spark", marks=pytest.mark.spark)]
EVERY_ENGINE = pytest.mark.parametrize("run_text", ENGINES, indirect=True, scope="session")
EVERY_ENGINE_FOR_PROGRAMS = pytest.mark.parametrize("run_program", ENGINES, indirect=True, scope="session")

Row = tuple[Any, ...]
Lines = dict[str, list[str]]


def _no_spark() -> str:
    lacking = [f"the package {name}" for name in ("pyspark", "zmq", "pandas") if find_spec(name) is None]
    if shutil.which("java") is None:
        lacking.append("`java` on the PATH")
    return f"tests on Spark need {' and '.join(lacking)}" if lacking else ""


NO_SPARK = _no_spark()
"""Why this machine cannot run the tests on Spark; empty if it can."""


def text_runner(engine: str, request: pytest.FixtureRequest) -> RunText:
    """See the fixture `run_text`. Threads are workers where there are workers."""
    match engine:
        case "shards":
            return lambda text, facts, threads=1: run_sharded(text, facts, workers=threads)
        case "spark":
            spark = request.getfixturevalue("spark")
            return lambda text, facts, threads=1: run_on_spark(spark, text, facts, threads)
        case _:
            from dlog.api import run_text

            return run_text


def run_on_spark(
    spark: SparkSession, text: str, facts: Mapping[str, Iterable[Row]], workers: int, **options: Any
) -> dict[str, set[Row]]:
    """Every relation of a program as a set of tuples. A row that comes twice is an error."""
    from dlog.pipeline import compile_program
    from dlog.spark import run_on_rows

    result = run_on_rows(compile_program(text), facts, spark, workers, **options)
    found = {name: list(relation) for name, relation in result.items()}
    assert {name: len(rows) for name, rows in found.items()} == {name: relation.rows for name, relation in result.items()}
    assert all(len({repr(row) for row in rows}) == len(rows) for rows in found.values()), "a row comes twice"
    result.release()
    return {name: set(rows) for name, rows in found.items()}


def program_runner(engine: str, request: pytest.FixtureRequest) -> RunProgram:
    """See the fixture `run_program`."""
    match engine:
        case "shards":
            return run_sharded_program
        case "spark":
            request.getfixturevalue("spark")
            return _by_command_here
        case _:
            return _by_command


def _by_command(program: Path, facts: Path, output: Path) -> Lines:
    command = [sys.executable, "-m", "dlog", "run", str(program), "-F", str(facts), "-D", str(output)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return lines_of(output)


def _by_command_here(program: Path, facts: Path, output: Path) -> Lines:
    """The command in this process, which has a Spark application already."""
    from dlog.__main__ import run_command

    assert run_command(["run", str(program), "-F", str(facts), "-D", str(output), "--engine", "spark"]) == 0
    return lines_of(output)


def lines_of(folder: Path) -> Lines:
    return {file.name: sorted(file.read_text().splitlines()) for file in folder.glob("*.csv")}
