"""Bench of join orders: the same program with the atoms of its long bodies in every order.

A planner that orders joins itself gives the same time for all; one that follows the text does not.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench import engine_dlog, engine_souffle
from tests.bench.process import NotMeasured, Options, best_seconds
from tests.bench.report import as_ratio, quotient, save, seconds_or_reason, show
from tests.bench.workloads import WORKLOADS, Workload

BOUND = 1.5
LENGTH = 3


def run(options: Options) -> bool:
    """False when dlog's worst order takes more than 1.5 times its best."""
    names = [name for name in ("W3", "W7", "W9") if name in options.workloads]
    engines = [engine for engine in ("dlog", "souffle") if engine in options.engines]
    figures = {name: {engine: by_order(WORKLOADS[name], engine, options) for engine in engines} for name in names}
    rows = [
        [name, engine, *map(seconds_or_reason, extremes(times)), as_ratio(spread(times))]
        for name, row in figures.items()
        for engine, times in row.items()
    ]
    show(f"orders of body atoms (bound for dlog: {BOUND})", ["workload", "engine", "best", "worst", "worst / best"], rows)
    save("orders", figures, options.json)
    spreads = [spread(row["dlog"]) for row in figures.values() if "dlog" in row]
    return all(value is not None and value <= BOUND for value in spreads)


def by_order(workload: Workload, engine: str, options: Options) -> dict[str, float | str]:
    text = workload.program("souffle" if engine == "souffle" else "dlog").read_text(encoding="ascii")
    measured = dlog_seconds if engine == "dlog" else souffle_seconds
    return {
        "".join(map(str, order)): best_seconds(
            options.repeats, lambda reordered=reordered: measured(reordered, workload, options.timeout)
        )
        for order, reordered in reorderings(text)
    }


def reorderings(text: str) -> Iterator[tuple[tuple[int, ...], str]]:
    for order in itertools.permutations(range(LENGTH)):
        yield order, "\n".join(reorder(line, order) for line in text.splitlines()) + "\n"


def reorder(line: str, order: Sequence[int]) -> str:
    """The rule with its body atoms in this order; a line without a body of that many atoms is left alone.

    >>> reorder("p(x) :- a(x), b(x, y), c(y).", (2, 0, 1))
    'p(x) :- c(y), a(x), b(x, y).'
    """
    head, arrow, body = line.partition(" :- ")
    atoms = re.findall(r"\w+\([^()]*\)", body)
    if not arrow or len(atoms) != len(order) or body != ", ".join(atoms) + ".":
        return line
    return f"{head} :- {', '.join(atoms[i] for i in order)}."


def dlog_seconds(text: str, workload: Workload, timeout: float) -> float:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.dl"
        program.write_text(text, encoding="ascii")
        done = engine_dlog.execute(program, workload.facts(), timeout)
    check({name: done.relations[name] for name in workload.rows}, workload)
    return done.evaluate_seconds


def souffle_seconds(text: str, workload: Workload, timeout: float) -> float:
    command = engine_souffle.interpreted
    load = engine_souffle.load_cost(engine_souffle.without_rules(text), workload.facts(), command)
    cost, sizes = engine_souffle.execute(command(text), workload.facts(), timeout)
    check(sizes, workload)
    return cost.seconds - load.seconds


def check(answer: dict[str, int], workload: Workload) -> None:
    if answer != workload.answer:
        raise NotMeasured("wrong answer")


def extremes(times: dict[str, float | str]) -> tuple[float | str, float | str]:
    """The fastest and the slowest order; an order that could not be measured is the slowest."""
    measured = [value for value in times.values() if not isinstance(value, str)]
    reasons = [value for value in times.values() if isinstance(value, str)]
    if not measured:
        return reasons[0], reasons[0]
    return min(measured), reasons[0] if reasons else max(measured)


def spread(times: dict[str, float | str]) -> float | None:
    best, worst = extremes(times)
    return quotient(worst, best)
