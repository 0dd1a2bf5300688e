"""What all tests share: the hypothesis profile, the engines under test and the place of the real inputs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A first run compiles kernels, and random programs are rejected when they are too big to evaluate naively. The same examples
# come every time, so that a change is judged by what it changes: few of them, or with `--hypothesis-profile full` more.
# `random` looks for new ones, and `quick` does not make what it finds smaller. `tests.examples` says how many.
CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("random", deadline=None, suppress_health_check=CHECKS)
settings.register_profile("quick", settings.get_profile("random"), phases=[Phase.generate])
settings.register_profile("full", settings.get_profile("random"), derandomize=True)
settings.register_profile("few", settings.get_profile("full"), max_examples=25)
settings.load_profile("few")

# What a shell starts in the background ignores interruptions, and so would what the tests start to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]

RunText = Callable[..., dict[str, set[tuple[Any, ...]]]]
RunProgram = Callable[[Path, Path, Path], dict[str, list[str]]]


@pytest.fixture(scope="session")
def run_text(request: pytest.FixtureRequest) -> RunText:
    """`run_text(program, facts, threads=1)`: every relation of the program as a set of tuples; on the embedded engine, or on
    the one that `tests.engines.EVERY_ENGINE` says."""
    from tests import engines

    return engines.text_runner(_engine(request), request)


@pytest.fixture(scope="session")
def run_program(request: pytest.FixtureRequest) -> RunProgram:
    """`run_program(program, facts, output)`: the lines of every file that a run writes, sorted; engines as in `run_text`."""
    from tests import engines

    return engines.program_runner(_engine(request), request)


def _engine(request: pytest.FixtureRequest) -> str:
    engine: str = getattr(request, "param", "embedded")
    return engine


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A Spark application on two cores of this machine."""
    from tests import engines

    if engines.NO_SPARK:
        pytest.skip(engines.NO_SPARK)
    from dlog.engine.spark.application import start
    from tests.bench.spark_graphframes import settings

    session = start("local[2]", {"spark.ui.enabled": "false", **settings()})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real inputs: `../shared/data`, or `$DLOG_SHARED`."""
    folder = Path(os.environ.get("DLOG_SHARED", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real inputs: {folder} is not there (DLOG_SHARED names another place)")
    return folder
