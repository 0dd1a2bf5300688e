"""Executors that die under a session whose workers exchange rows: no answer changes, and nothing hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.engines import NO_SPARK

pytestmark = [pytest.mark.spark, pytest.mark.skipif(bool(NO_SPARK), reason=NO_SPARK)]
STORIES = ["without_a_state", "between_rounds", "amid_a_round", "amid_a_delivery", "with_files", "live_graph", "left_open"]
SECONDS = 600
"""More than any of it takes; less than waiting for a worker that is no more."""


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `tests/spark/workers_killed.py` found."""
    work = tmp_path_factory.mktemp("workers")
    command = [sys.executable, "-m", "tests.spark.workers_killed", *STORIES]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_WORKER_DIR": str(work)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: found for line in done.stdout.splitlines() for name, found in json.loads(line).items()}


def test_a_session_without_a_state_says_that_its_workers_are_lost_and_frees_their_slots(figures: dict[str, Any]) -> None:
    found = figures["without_a_state"]
    assert found["codes"] == [["no-workers"]] * 3
    assert found["another is right"]


def test_a_session_with_a_state_goes_on_when_a_worker_dies_between_rounds(figures: dict[str, Any]) -> None:
    assert figures["between_rounds"] == {"round": 3, "committed": True, "read": True, "at hand": True, "back": True}


def test_a_session_with_a_state_goes_on_when_a_worker_dies_amid_a_round(figures: dict[str, Any]) -> None:
    found = figures["amid_a_round"]
    assert found["killed amid"], "the round was over before: nothing was tested"
    assert found["right"] and found["reopened"]


def test_a_delivery_ends_when_a_worker_dies(figures: dict[str, Any]) -> None:
    found = figures["amid_a_delivery"]
    assert found["codes"] == ["no-workers"]
    assert found["seconds"] < 60, "tasks waited for a worker that is no more"


def test_a_session_goes_on_from_files_that_only_workers_read(figures: dict[str, Any]) -> None:
    found = figures["with_files"]
    assert set(found["codes"]) <= {"no-workers", "spark-failed"}
    assert (found["rows"], found["sizes"], found["reopened"]) == (3, 2, 3)
    assert found["files"]


def test_a_live_graph_goes_on_when_executors_die(figures: dict[str, Any]) -> None:
    found = figures["live_graph"]
    assert (found["committed"], found["asked"]) == (152, 13)
    assert found["read"] == ["far", *(f"n{i}" for i in range(10)), "out"]


def test_a_process_ends_though_nobody_closed_a_session_whose_workers_are_lost(figures: dict[str, Any]) -> None:
    assert figures["left_open"] == {"round": 1}
