"""dlog as an engine: the command as a user runs it, which tells its own load, evaluation and write times."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.bench.engine_souffle import written_numbers
from tests.bench.process import Cost, Result, measure
from tests.bench.workloads import Workload

COMMAND = [sys.executable, "-m", "dlog"]


@dataclass(frozen=True, slots=True)
class Run:
    """A finished `dlog run`: its cost from outside and what it told about itself."""

    cost: Cost
    load_seconds: float
    evaluate_seconds: float
    write_seconds: float
    relations: dict[str, int]
    numbers: dict[str, int]


def run(workload: Workload, timeout: float) -> Result:
    done = execute(workload.program("dlog"), workload.facts(), timeout)
    answer = {name: done.relations[name] for name in workload.rows} | done.numbers
    cost = done.cost
    return Result(done.evaluate_seconds, done.load_seconds, cost.seconds, cost.cpu_seconds, cost.peak_mb, answer)


def execute(program: Path, facts: Path, timeout: float = 600, out: Path | None = None) -> Run:
    """Runs a program. Written relations of one number are read back, unless the caller keeps the output folder `out`."""
    with tempfile.TemporaryDirectory() as folder:
        told_in, written = Path(folder) / "stats.json", out or Path(folder) / "out"
        written.mkdir(exist_ok=True)
        flags = ["-F", str(facts), "-D", str(written), "--stats-json", str(told_in)]
        cost = measure([*COMMAND, "run", str(program), *flags], timeout)
        told = json.loads(told_in.read_text())
        numbers = {} if out else written_numbers(written)
    times = told["load_seconds"], told["evaluate_seconds"], told["write_seconds"]
    return Run(cost, *times, told["relations"], numbers)
