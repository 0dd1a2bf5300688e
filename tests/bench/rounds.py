"""The bench `rounds`: programs maintained while their inputs change.

Every workload is a process of its own, which runs it in several ways and tells a line for each. All answers are compared with
computations from the edges alone, at the end and, where the changes of every round are delivered, on the way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

from tests.bench import rounds_bfs, rounds_closure, rounds_degrees, rounds_triangles, rounds_w10
from tests.bench.process import NotMeasured, Options, measure
from tests.bench.report import console, save, show
from tests.bench.rounds_engine import WARM
from tests.bench.rounds_measure import HEADER, Row, cells, from_json, to_json

MILLION = 1_000_000
PATIENCE = 1800
"""Least seconds before a workload is given up: the largest ones take minutes to make and to check."""

WORKLOADS: dict[str, Callable[[int], Iterator[Row]]] = {
    "bfs-1k": lambda rounds: rounds_bfs.run(1000, 2000, rounds + WARM),
    "bfs-1m": lambda rounds: rounds_bfs.run(MILLION, 10 * MILLION, rounds + WARM),
    "degrees-10k": lambda rounds: rounds_degrees.run(10_000, 50_000, calls=20),
    "degrees-10m": lambda rounds: rounds_degrees.run(10 * MILLION, 50 * MILLION),
    "general": lambda rounds: rounds_degrees.run_general(10_000, 50_000),
    "triangles": lambda rounds: rounds_triangles.run(MILLION, 10 * MILLION),
    "star": lambda rounds: rounds_triangles.run_star(MILLION),
    "closure": lambda rounds: rounds_closure.run(1000, 5000, 500),
    "w10": lambda rounds: rounds_w10.run(rival_rounds={"single": 300, "batch": 20}),
}
"""Each with the number of rounds that are measured one by one."""


def run(options: Options) -> bool:
    """Runs the workloads and shows a table; false when an answer is wrong or a workload fails."""
    rows, failed = [], []
    for name in options.workloads:
        try:
            rows += lines_of_child(name, options)
        except NotMeasured as reason:
            console.print(f"{name}: {reason}", markup=False)
            failed.append(name)
    title = f"rounds: time of a call of one round or of many (load of the machine {os.getloadavg()[0]:.1f})"
    show(title, HEADER, map(cells, rows))
    for row in rows:
        if row.notes:
            console.print(f"{row.workload}: {row.way}: {row.notes}", markup=False, soft_wrap=True)
    save("rounds", [vars_of(row) for row in rows], options.json)
    return not failed and all(row.right for row in rows)


def vars_of(row: Row) -> dict[str, object]:
    return {name: getattr(row, name) for name in row.__slots__} | {"rate": row.rate}


def lines_of_child(name: str, options: Options) -> list[Row]:
    """Runs one workload in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.rounds", name, str(options.rounds)]
    *remarks, told = measure(command, max(options.timeout, PATIENCE)).stdout.splitlines()
    for remark in remarks:
        console.print(remark, markup=False)
    return from_json(told)


def main(name: str, rounds: str) -> None:
    print(to_json(WORKLOADS[name](int(rounds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
