"""YARN, as `spark-submit` meets it, with the driver here and in a container of its own. dlog gets to containers in a zip file,
and in an archive of an environment."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.maven import NoJar
from tests.conftest import ROOT
from tests.engines import NO_SPARK
from tests.spark.on_yarn import LENGTH, VERTICES
from tests.spark.submitting import COMMAND, DYNAMIC, SCRIPT, submitted
from tests.spark.yarn import Yarn, environment_with_dlog, yarn
from tests.zipped import zip_of_dlog

pytestmark = [pytest.mark.spark, pytest.mark.skipif(bool(NO_SPARK), reason=NO_SPARK)]
CLOSURE = """.decl edge(x: number, y: number)
.input edge(IO=spark, path="{0}/edge", format=csv, columns="_c0:_c1", inferSchema=true)
.decl path(x: number, y: number)
.output path(IO=spark, path="{0}/path", format=csv)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    try:
        with yarn(tmp_path_factory.mktemp("yarn")) as running:
            yield running
    except NoJar as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled kernels, and room for what containers unpack."""
    from dlog.engine.kernels.core.library import prepare
    from dlog.engine.kernels.core.versions import cache_folder

    prepare()
    folder = tmp_path_factory.mktemp("cache")
    shutil.copytree(cache_folder(), folder / cache_folder().name)  # what is a link is not trusted
    return folder


def told(text: str) -> dict[str, Any]:
    stories = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {name: found for story in stories for name, found in story.items()}


@pytest.fixture(scope="module")
def figures(cluster: Yarn, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `tests/spark/on_yarn.py` finds, whose driver is here."""
    stories = ["places", "runs", "killed_while_it_runs", "rounds"]
    return told(_on_yarn(cluster, cache, tmp_path_factory.mktemp("client"), *stories))


def _on_yarn(cluster: Yarn, cache: Path, folder: Path, *stories: str, **settings: str) -> str:
    script = str(Path(__file__).with_name("on_yarn.py"))
    words = ["--deploy-mode", "client", "--py-files", str(zip_of_dlog(folder / "dlog.zip")), script, str(ROOT), *stories]
    surroundings = {**cluster.environment, "PYSPARK_PYTHON": sys.executable, "DLOG_CACHE": str(cache)}
    settings = {**cluster.settings, "spark.executorEnv.DLOG_CACHE": str(cache), **settings}
    return submitted("yarn", folder, *words, surroundings=surroundings, **settings).stdout


def test_executors_have_dlog_from_the_zip_file(figures: dict[str, Any], cache: Path) -> None:
    [folder] = figures["places"]["folders"]
    assert Path(folder).parent in cache.glob("zipped-*")


def test_runs_with_a_barrier_stage_and_in_jobs(figures: dict[str, Any]) -> None:
    assert figures["runs"] == {"rows": [VERTICES, VERTICES, 10], "sent": True}


def test_a_container_that_dies_in_mid_iteration_changes_no_answer(figures: dict[str, Any]) -> None:
    killed = figures["killed_while_it_runs"]
    assert (killed["killed"], killed["other tasks"], killed["rows"]) == (1, True, LENGTH + 1)


def test_a_session_goes_on_when_a_container_dies_between_rounds(figures: dict[str, Any]) -> None:
    assert figures["rounds"] == {"round": 3, "right": [True, True]}


def test_the_command_runs_in_a_container_with_an_environment_from_an_archive(
    cluster: Yarn, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "edge").mkdir()
    (tmp_path / "edge" / "edges.csv").write_text("1,2\n2,3\n")
    (tmp_path / "closure.dl").write_text(CLOSURE.format(tmp_path))
    (tmp_path / "command.py").write_text(COMMAND)
    shipped = ["--archives", f"{environment_with_dlog(tmp_path)}#env", "--files", str(tmp_path / "closure.dl")]
    words = ["--deploy-mode", "cluster", *shipped, "command.py", "run", "closure.dl", "--engine", "spark"]
    named = {"PYSPARK_PYTHON": "./env/bin/python", "DLOG_CACHE": str(cache)}
    where = ("spark.yarn.appMasterEnv", "spark.executorEnv")
    inside = {f"{process}.{name}": value for process in where for name, value in named.items()}
    submitted("yarn", tmp_path, *words, surroundings=cluster.environment, **cluster.settings, **inside)
    found = [line for file in (tmp_path / "path").glob("part-*") for line in file.read_text().splitlines()]
    assert sorted(found) == ["1,2", "1,3", "2,3"]


@pytest.mark.slow  # the same is tested on a standalone cluster
def test_dynamic_allocation_runs_jobs_and_has_no_sessions(cluster: Yarn, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.replace("range(30)", "range(6)"))
    surroundings = {**cluster.environment, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "DLOG_CACHE": str(cache)}
    settings = {**cluster.settings, **DYNAMIC, "spark.executorEnv.DLOG_CACHE": str(cache)}
    done = submitted("yarn", tmp_path, "script.py", surroundings=surroundings, **settings)
    assert [line for line in done.stdout.splitlines() if line[:3] in ("run", "ses")] == [
        "run 21 21",
        "session dynamic-allocation",
    ]


@pytest.mark.slow
def test_a_container_killed_over_its_memory_is_a_mistake_that_says_what_to_do(
    cluster: Yarn, cache: Path, tmp_path: Path
) -> None:
    settings = {
        "spark.stage.maxConsecutiveAttempts": "1",
        "spark.executor.cores": "1",
        "spark.executor.memoryOverhead": "384m",
    }
    [found] = told(_on_yarn(cluster, cache, tmp_path, "over_memory", **settings)).values()
    assert found["code"] == "spark-failed"
    assert "Container killed by YARN for exceeding physical memory limits" in found["message"]
    assert "spark.executor.memoryOverhead" in found["notes"][0]
