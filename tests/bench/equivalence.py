"""Equivalence relations beside Souffle's: E1 components, E2 congruence closure, E3 Steensgaard's points-to analysis, E4 one
class of a million values. Pairs are counted, not written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tests.bench import engine_dlog, engine_souffle, inputs
from tests.bench.process import NotMeasured, Options, Result, best_of
from tests.bench.report import console, save, seconds, show
from tests.bench.workloads import Workload

ENGINES: dict[str, Callable[[Workload, float], Result]] = {
    "dlog": engine_dlog.run,
    "souffle, interpreted": engine_souffle.run_interpreted,
    "souffle, compiled": engine_souffle.run_compiled,
}


def components() -> dict[str, inputs.Rows]:
    return {"edge": inputs.random_graph(np.random.default_rng(31), 20_000, 24_000)}


def congruence(terms: int = 20_000) -> dict[str, inputs.Rows]:
    """Terms over smaller ones, the first of which are constants, some of them equal."""
    chosen = np.random.default_rng(32)
    own = np.arange(terms)
    apply = np.stack([own + terms // 4, chosen.integers(0, own // 4 + 40), chosen.integers(0, own // 4 + 40)], axis=1)
    return {"apply": apply, "equal": chosen.integers(0, terms // 4, (terms // 20, 2))}


def points_to(variables: int = 20_000) -> dict[str, inputs.Rows]:
    chosen = np.random.default_rng(33)

    def pairs(rows: int) -> inputs.Rows:
        return np.unique(chosen.integers(0, variables, (rows, 2)), axis=0)

    objects = np.arange(variables // 4)
    new = np.stack([chosen.integers(0, variables, len(objects)), variables + objects], axis=1)
    return {"new": new, "assign": pairs(variables // 3), "load": pairs(variables // 20), "store": pairs(variables // 20)}


def million() -> dict[str, inputs.Rows]:
    chosen = np.random.default_rng(34)
    values = chosen.permutation(1_000_000)
    return {"edge": np.stack([values[:-1], values[1:]], axis=1), "pick": chosen.integers(0, 1_000_000, (1000, 2))}


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("E1", "components", components, {"same": 308_425_439}),
        Workload("E2", "congruence closure", congruence, {"same": 25_068}),
        Workload("E3", "Steensgaard", points_to, {"points": 17_397, "alias": 72_090}),
        Workload("E4", "one class of a million", million, {"first": 1_000_000, "met": 997_002}),
    )
}


def run(options: Options) -> bool:
    """Measures, prints and saves; false when answers are wrong."""
    rows, saved, right = [], {}, True
    for name in options.workloads:
        workload = WORKLOADS[name]
        for engine, execute in ENGINES.items():
            try:
                found = best_of(options.repeat, partial(execute, workload, options.timeout))
            except NotMeasured as reason:
                rows.append([name, workload.title, engine, str(reason), ""])
                continue
            right = right and found.answer == workload.answer
            saved[f"{name}, {engine}"] = {"seconds": found.eval_seconds, "peak_mb": found.peak_mb, **found.answer}
            rows.append([name, workload.title, engine, seconds(found.eval_seconds), f"{found.peak_mb:.0f} MB"])
    show("equivalence relations", ["", "", "engine", "evaluation", "memory"], rows)
    if not right:
        console.print("[bold red]an answer is wrong")
    save("equivalence", saved, options.json)
    return right
