"""Differential dataflow, Ascent and datafrog as engines: the workloads written by hand in Rust (rust/), a process for each run.

Cargo builds them once into the cache folder, with crates from the registry. What they measure is without load, as everywhere:
from vectors in memory to the last row. They read inputs as files of 32-bit integers, written beside the others when first
asked for.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet

from tests.bench.inputs import cache_folder
from tests.bench.process import NotMeasured, Result, measure
from tests.bench.workloads import Workload

CRATES = Path(__file__).with_name("rust")
DEDUPLICATED = {"W9": ":dedup"}
"""Workloads that differential dataflow does faster where it makes intermediate results distinct."""
WITHOUT_MINIMA = ("W5", "W6")
"""Workloads that engines without recursive minima cannot say."""

Engine = Callable[[Workload, float], Result]


@functools.cache
def binary(crate: str, name: str) -> str:
    """The program of a crate, built if it has changed."""
    if shutil.which("cargo") is None:
        raise NotMeasured("no cargo")
    target = cache_folder() / "rust" / crate
    places = ["--manifest-path", str(CRATES / crate / "Cargo.toml"), "--target-dir", str(target)]
    command = ["cargo", "build", "--release", "--jobs", "1", *places]
    if subprocess.run(command, capture_output=True).returncode != 0:
        raise NotMeasured("does not build")
    return str(target / "release" / name)


def facts(workload: Workload) -> Path:
    """The folder with the inputs, as files of unsigned 32-bit integers too."""
    folder = workload.facts()
    for path in folder.glob("*.parquet"):
        written = path.with_suffix(".u32")
        if not written.exists():
            columns = [column.to_numpy() for column in pyarrow.parquet.read_table(path).columns]
            np.stack(columns, 1).astype("<u4").tofile(written)
    return folder


def run(command: list[str], timeout: float) -> Result:
    """Runs a program that prints its `eval`, `load` and `answer` as JSON."""
    cost = measure(command, timeout)
    told = json.loads(cost.stdout.splitlines()[-1])
    return Result(told["eval"], told["load"], cost.seconds, cost.cpu_seconds, cost.peak_mb, told["answer"])


def differential(workers: int) -> Engine:
    def engine(workload: Workload, timeout: float) -> Result:
        name = workload.name + DEDUPLICATED.get(workload.name, "")
        return run([binary("differential", "dd_static"), name, str(facts(workload)), "-w", str(workers)], timeout)

    return engine


def ascent(threads: int) -> Engine:
    def engine(workload: Workload, timeout: float) -> Result:
        way = ["env", f"RAYON_NUM_THREADS={threads}", binary("ascent", "ascent_static"), "par" if threads > 1 else "serial"]
        return run([*way, workload.name, str(facts(workload))], timeout)

    return engine


def datafrog(workload: Workload, timeout: float) -> Result:
    if workload.name in WITHOUT_MINIMA:
        raise NotMeasured("no minima")
    return run([binary("datafrog", "frog_static"), workload.name, str(facts(workload))], timeout)
