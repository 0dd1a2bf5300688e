"""Executors in JVMs of their own: what they need reaches them, and the death of one changes no answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.engines import NO_SPARK
from tests.spark.cluster import ITERATIONS, LENGTH, WIDTH

pytestmark = [pytest.mark.spark, pytest.mark.skipif(bool(NO_SPARK), reason=NO_SPARK)]
SECONDS = 600
SUM = LENGTH * (LENGTH + 1) // 2


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `tests/spark/cluster.py` found. It runs somewhere else: the workers have to be told where dlog is."""
    script = Path(__file__).with_name("cluster.py")
    command = [sys.executable, str(script), "typed", "killed_while_it_runs", "killed_with_blocks", "killed_afterwards"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        command,
        cwd=tmp_path_factory.mktemp("cluster"),
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        found |= json.loads(line)
    return found


def test_every_type_goes_through_and_rows_can_be_used_as_any(figures: dict[str, Any]) -> None:
    typed = figures["typed"]
    assert typed.pop("seconds") > 0
    assert typed == {
        "as embedded": True, "rows": True, "first": True, "limit": 3, "union": True, "any": [[]], "crossed": True,
    }  # fmt: skip


def test_an_executor_that_dies_in_mid_iteration_changes_no_answer(figures: dict[str, Any]) -> None:
    killed = figures["killed_while_it_runs"]
    assert killed["killed"] == 1
    assert killed["other tasks"], "the stage was not started again: nothing was tested"
    assert (killed["reported"], killed["rows"], killed["sum"]) == (LENGTH + 1, LENGTH + 1, SUM)


def test_a_worker_that_dies_with_rows_in_its_shared_memory_changes_no_answer_and_leaves_nothing(figures: dict[str, Any]) -> None:
    killed = figures["killed_with_blocks"]
    assert (killed["killed"], killed["left"], killed["rows"]) == (1, [], WIDTH * (ITERATIONS + 1))


def test_rows_that_died_with_an_executor_are_derived_again_by_all_workers(figures: dict[str, Any]) -> None:
    killed = figures["killed_afterwards"]
    assert killed["executors"] == 2
    assert (killed["rows"], killed["sum"]) == (LENGTH + 1, SUM)
