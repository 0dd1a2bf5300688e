"""What all tests share: the hypothesis profile, the executor under test and the place of the real inputs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

# A first run compiles kernels, and random programs are rejected when they are too big to evaluate naively. The same examples
# come every time, so that a change is judged by what it changes; `--hypothesis-profile random` looks for new ones, and
# `quick` does not make what it finds smaller.
CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("random", deadline=None, suppress_health_check=CHECKS)
settings.register_profile("quick", settings.get_profile("random"), phases=[Phase.generate])
settings.register_profile("dlog", settings.get_profile("random"), derandomize=True)
settings.load_profile("dlog")

ROOT = Path(__file__).resolve().parents[1]

RunText = Callable[..., dict[str, set[tuple[Any, ...]]]]


@pytest.fixture(scope="session")
def run_text() -> RunText:
    """`run_text(program, facts, threads=1)`: every relation of the program as a set of tuples."""
    from dlog.api import run_text

    return run_text


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real inputs: `../shared/data`, or `$DLOG_SHARED`."""
    folder = Path(os.environ.get("DLOG_SHARED", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real inputs: {folder} is not there (DLOG_SHARED names another place)")
    return folder
