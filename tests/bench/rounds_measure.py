"""What is told about a run of rounds: latencies, how they drift, rates and memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.bench.report import seconds

WINDOW = 1000
"""Rounds at the beginning that are made again at the end."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `call` has the seconds of a call (of one round, or of many) by name: p50, p90, p99, max, mean;
    `drift` is p99 of the first window, made again after all others, by
    what it was at first; `engine_mb` is what the engine counts, `rss_mb` the process."""

    workload: str
    way: str
    calls: int
    rounds: int
    call: dict[str, float]
    drift: float | None
    engine_mb: float | None
    rss_mb: float
    right: bool
    notes: str = ""

    @property
    def rate(self) -> float:
        """Rounds per second."""
        return self.rounds / (self.calls * self.call["mean"]) if self.calls else 0.0


def row_of(
    workload: str,
    way: str,
    nanos: NDArray[np.int64],
    rounds: int,
    used: int | None,
    right: bool,
    notes: str = "",
    again: NDArray[np.int64] | None = None,
) -> Row:
    """The line of a run whose calls took so many nanoseconds each, and whose first window took as many `again` at the end."""
    engine_mb, slower = None if used is None else used / 2**20, None if again is None else drift(nanos, again)
    return Row(workload, way, len(nanos), rounds, figures(nanos), slower, engine_mb, resident_mb(), right, notes)


def figures(nanos: NDArray[np.int64]) -> dict[str, float]:
    p50, p90, p99 = np.percentile(nanos, [50, 90, 99]) / 1e9
    return {"p50": float(p50), "p90": float(p90), "p99": float(p99), "max": nanos.max() / 1e9, "mean": nanos.mean() / 1e9}


def drift(nanos: NDArray[np.int64], again: NDArray[np.int64]) -> float:
    """How much slower the slow calls of the first window are when it comes again."""
    return float(np.percentile(again, 99) / np.percentile(nanos[: len(again)], 99))


def resident_mb() -> float:
    """Memory of this process now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


HEADER = ["workload", "calls", "p50", "p90", "p99", "max", "mean", "rounds/s", "drift", "MB", "RSS", "answer"]


def cells(row: Row) -> list[str]:
    times = [duration(row.call[name]) for name in ("p50", "p90", "p99", "max", "mean")]
    slower = "-" if row.drift is None else f"{row.drift:.2f}"
    memory = ["-" if row.engine_mb is None else f"{row.engine_mb:,.0f}", f"{row.rss_mb:,.0f}"]
    answer = "right" if row.right else "WRONG"
    return [f"{row.workload}: {row.way}", f"{row.calls:,}", *times, f"{row.rate:,.0f}", slower, *memory, answer]


def duration(value: float) -> str:
    """Three digits, in the unit that suits."""
    return f"{value * 1e6:.3g} us" if value < 0.001 else seconds(value)


def to_json(rows: Iterable[Row]) -> str:
    return json.dumps([asdict(row) for row in rows])


def from_json(text: str) -> list[Row]:
    return [Row(**row) for row in json.loads(text)]
