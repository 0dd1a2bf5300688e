"""Measured processes, and what a measurement is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 20_000
"""Rounds measured one by one, unless a bench has another default."""
METER = Path(__file__).with_name("meter.py")


class NotMeasured(Exception):
    """There is no figure, and the message says why in a word or two: absent, too slow, refused."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a finished process took."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    stdout: str


@dataclass(frozen=True, slots=True)
class Result:
    """One measured run. `eval_seconds` is without load; `wall`, `cpu_seconds` and `peak_mb` are of the whole process; `answer`
    maps relations to sizes (or to their one number)."""

    eval_seconds: float
    load_seconds: float
    wall: float
    cpu_seconds: float
    peak_mb: float
    answer: dict[str, int]


def measure(command: list[str], timeout: float = 600) -> Cost:
    """Runs `command` from the project's root; raises `NotMeasured` when it fails or takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "cost.json"
        metered = [sys.executable, "-I", "-S", str(METER), str(report), *command]
        with subprocess.Popen(
            metered, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                stdout, stderr = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise NotMeasured(f"> {timeout:.0f} s") from None
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if not report.exists():
            raise NotMeasured(last_line(stderr) or "does not start")
        cost = json.loads(report.read_text())
    if cost.pop("status") != 0:
        raise NotMeasured(last_line(stderr) or "fails")
    return Cost(stdout=stdout, **cost)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:120] if lines else ""


@dataclass(frozen=True, slots=True)
class Options:
    """How to measure: which engines, best of how many runs, seconds before a run is given up, where the figures go, how many
    rounds one by one, at which scale factor."""

    workloads: tuple[str, ...]
    engines: tuple[str, ...]
    repeats: int
    timeout: float
    json: Path | None
    rounds: int = ROUNDS
    scale: float = 1.0


def best_seconds(repeats: int, run: Callable[[], float]) -> float | str:
    """The fastest of some runs, or why there is none."""
    try:
        return min(run() for _ in range(repeats))
    except NotMeasured as reason:
        return str(reason)


def best_of(repeats: int, run: Callable[[], Result]) -> Result:
    """The run with the fastest evaluation."""
    return min((run() for _ in range(repeats)), key=lambda result: result.eval_seconds)


def result_of_child(module: str, workload: str, timeout: float) -> Result:
    """Measures `python -m module workload`, which prints its `eval_seconds`, `load_seconds` and `answer` as JSON."""
    cost = measure([sys.executable, "-m", module, workload], timeout)
    told = json.loads(cost.stdout.splitlines()[-1])
    return Result(told["eval_seconds"], told["load_seconds"], cost.seconds, cost.cpu_seconds, cost.peak_mb, told["answer"])
