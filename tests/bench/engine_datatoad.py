"""datatoad as an engine, where $DATATOAD or PATH has its program: it is told to load, then given the rules at once or one by
one, whichever is faster, and tells its own times."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench.engine_rust import WITHOUT_MINIMA
from tests.bench.engine_souffle import without_rules
from tests.bench.process import NotMeasured, Result, measure
from tests.bench.workloads import Workload

AT_ONCE = ("W1", "W2", "W8")
"""Workloads whose rules are faster when they are given in one line."""
TURNED = {"path(x, z) :- path(x, y), edge(y, z).": "path(x, z) :- edge(x, y), path(y, z)."}
"""Rules that are faster said the other way round."""
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9}


def datatoad(workers: int) -> Callable[[Workload, float], Result]:
    def engine(workload: Workload, timeout: float) -> Result:
        program = shutil.which(os.environ.get("DATATOAD") or "datatoad")
        if program is None:
            raise NotMeasured("absent")
        if workload.name in WITHOUT_MINIMA:
            raise NotMeasured("no minima")
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "script"
            script.write_text(commands(workload), encoding="ascii")
            cost = measure([program, "-w", str(workers), str(script)], timeout)
        found = {tag: seconds(time) for time, tag in re.findall(r'^\.time\s+(\S+)\s+\["(\w+)"\]', cost.stdout, re.MULTILINE)}
        answer = {name: size for name, size in listed(cost.stdout).items() if name in workload.rows}
        return Result(found["done"], found["loaded"], cost.seconds, cost.cpu_seconds, cost.peak_mb, answer)

    return engine


def commands(workload: Workload) -> str:
    """What it is told: to load inputs from files separated by commas, the rules, to list what there is."""
    text = workload.program().read_text(encoding="ascii")
    inputs = re.findall(r"^\.input (\w+)", without_rules(text), re.MULTILINE)
    lines = [f".flow {name} {comma_separated(workload.facts() / f'{name}.facts')}" for name in inputs]
    between = " " if workload.name in AT_ONCE else "\n"
    return "\n".join([".time start", *lines, ".time loaded", between.join(rules(text)), ".time done", ".list", ".quit", ""])


def rules(text: str) -> list[str]:
    """The rules as it reads them: each variable has a name.

    >>> rules(".decl p(x: number)\\np(x) :- e(x, _).\\n")
    ['p(x) :- e(x, u).']
    """
    found = [line.strip() for line in text.splitlines() if ":-" in line and not line.startswith("//")]
    return [re.sub(r"\b_\b", "u", TURNED.get(rule, rule)) for rule in found]


def comma_separated(path: Path) -> Path:
    written = path.with_suffix(".csv")
    if not written.exists():
        written.write_bytes(path.read_bytes().replace(b"\t", b","))
    return written


def seconds(text: str) -> float:
    """
    >>> seconds("250ms")
    0.25
    """
    number, unit = re.fullmatch(r"([\d.]+)(\D+)", text).groups()  # type: ignore[union-attr]
    return float(number) * UNITS[unit]


def listed(stdout: str) -> dict[str, int]:
    """Rows of relations, whose parts are listed one by one."""
    sizes: dict[str, int] = {}
    for size, name in re.findall(r"^\s*(\d+) (\w+)\s+\[", stdout, re.MULTILINE):
        sizes[name] = sizes.get(name, 0) + int(size)
    return sizes
