"""Souffle as an engine, interpreted and compiled, when a build is found in $SOUFFLE or on PATH.

Evaluation time is the time of the program minus that of the same program without rules, which loads its inputs and prints
their sizes: what is left is evaluation, with the indexes that only the rules need. (Its profiler would tell the two apart, but
counts tuples while it evaluates.) Compiled programs are kept in the cache folder; compiling is not counted.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench.inputs import cache_folder
from tests.bench.process import Cost, NotMeasured, Result, measure
from tests.bench.workloads import Workload

THREADS = "-j2"
Command = Callable[[str], list[str]]


def executable() -> str:
    found = shutil.which(os.environ.get("SOUFFLE") or "souffle")
    if found is None:
        raise NotMeasured("absent")
    return found


@functools.cache
def version() -> str:
    told = subprocess.run([executable(), "--version"], capture_output=True, text=True, check=True).stdout
    return " ".join(re.findall(r"Version: (\S+)|(\d+) bits", told)[0]).strip()


def run_interpreted(workload: Workload, timeout: float) -> Result:
    return without_load(workload, interpreted, timeout)


def run_compiled(workload: Workload, timeout: float) -> Result:
    return without_load(workload, compiled, timeout)


def without_load(workload: Workload, command: Command, timeout: float) -> Result:
    text = workload.program("souffle").read_text(encoding="ascii")
    load = load_cost(without_rules(text), workload.facts(), command)
    cost, answer = execute(command(text), workload.facts(), timeout)
    evaluation = max(cost.seconds - load.seconds, 0.001)
    return Result(evaluation, load.seconds, cost.seconds, cost.cpu_seconds, cost.peak_mb, answer)


@functools.cache
def load_cost(text: str, facts: Path, command: Command) -> Cost:
    """The fastest of three runs that only load."""
    return min((execute(command(text), facts)[0] for _ in range(3)), key=lambda cost: cost.seconds)


def without_rules(text: str) -> str:
    """The declarations of the inputs alone, printing their sizes.

    >>> without_rules(".decl e(x: number)\\n.input e\\n.decl p(x: number)\\n.output p\\np(x) :- e(x).\\n")
    '.decl e(x: number)\\n.input e\\n.printsize e\\n'
    """
    inputs = re.findall(r"^\.input (\w+)", text, re.MULTILINE)
    declared = [line for name in inputs for line in re.findall(rf"^\.decl {name}\(.*$", text, re.MULTILINE)]
    return "".join(f"{line}\n.input {name}\n.printsize {name}\n" for name, line in zip(inputs, declared, strict=True))


def execute(command: list[str], facts: Path, timeout: float = 600) -> tuple[Cost, dict[str, int]]:
    """Runs the command on the facts; the answer holds what `.printsize` printed and the numbers that were written."""
    with tempfile.TemporaryDirectory() as out:
        cost = measure([*command, THREADS, "-F", str(facts), "-D", out], timeout)
        return cost, printed_sizes(cost.stdout) | written_numbers(Path(out))


def printed_sizes(stdout: str) -> dict[str, int]:
    return {name: int(size) for name, size in re.findall(r"^(\w+)\t(\d+)$", stdout, re.MULTILINE)}


def written_numbers(folder: Path) -> dict[str, int]:
    return {path.stem: int(path.read_text().strip()) for path in folder.glob("*.csv")}


def stored(text: str) -> Path:
    """The program as a file of the cache folder, named by its text."""
    folder = cache_folder() / "souffle"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (hashlib.sha256((version() + text).encode()).hexdigest()[:16] + ".dl")
    path.write_text(text, encoding="ascii")
    return path


def interpreted(text: str) -> list[str]:
    return [executable(), str(stored(text))]


def compiled(text: str) -> list[str]:
    program = stored(text)
    binary = program.with_suffix("")
    if not binary.exists():  # -j decides at compile time whether loops are parallel
        done = subprocess.run([executable(), THREADS, "-o", str(binary), str(program)], capture_output=True, text=True)
        if done.returncode != 0:
            raise NotMeasured("does not compile")
    return [str(binary)]
