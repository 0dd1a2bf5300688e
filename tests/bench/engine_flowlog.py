"""FlowLog as an engine, where $FLOWLOG or PATH has its compiler, which makes a program of differential dataflow in Rust of each
workload.

The programs are dlog's own but for components and distances, whose minima it has in heads. Cargo builds what it makes into the
cache folder, with crates from the registry; compiling is not counted. Evaluation is the time until the dataflow is executed,
less what each input took to load, as it tells both (with two workers: the first one's half of a load).
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

from tests.bench.engine_datatoad import seconds
from tests.bench.inputs import cache_folder
from tests.bench.process import NotMeasured, Result, measure
from tests.bench.workloads import Workload

BUILD = {"CARGO_INCREMENTAL": "0", "CARGO_BUILD_JOBS": "1"}
"""What it would build without a folder that is kept: programs in one piece. The folder is there for the crates."""


def flowlog(workers: int) -> Callable[[Workload, float], Result]:
    def engine(workload: Workload, timeout: float) -> Result:
        program = compiled(workload.program("flowlog").read_text(encoding="ascii"), workload.facts(), "-D", ".")
        with tempfile.TemporaryDirectory() as out:  # it writes where it runs
            cost = measure(["env", "-C", out, str(program), "-w", str(workers)], timeout)
            answer = written(Path(out), workload)
        load, whole = told(cost.stdout)
        return Result(whole - load, load, cost.seconds, cost.cpu_seconds, cost.peak_mb, answer)

    return engine


def executable() -> str:
    found = shutil.which(os.environ.get("FLOWLOG") or "flowlog-compiler")
    if found is None:
        raise NotMeasured("absent")
    return str(Path(found).absolute())


def compiled(text: str, facts: Path, *options: str) -> Path:
    """The program for these facts, whose place it has built in, in the cache folder; built if it is not there. The options say
    where it writes."""
    compiler, folder = executable(), cache_folder().absolute() / "flowlog-programs"
    key = "\n".join([version(compiler), str(facts.absolute()), *options, text])
    program = folder / f"p{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        source = program.with_suffix(".dl")
        source.write_text(text, encoding="ascii")
        places = ["-F", str(facts.absolute()), "-B", str(folder / "build"), "-o", str(program)]
        command = [compiler, str(source), *places, *options]
        if subprocess.run(command, capture_output=True, env=os.environ | BUILD).returncode != 0:
            raise NotMeasured("does not compile")
    return program


@functools.cache
def version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def told(stdout: str) -> tuple[float, float]:
    """Seconds of all loads, one after the other, and of everything.

    >>> told("250ms:\\tData loaded for e\\n50ms:\\tData loaded for s\\n1.5s:\\tDataflow executed\\n")
    (0.3, 1.5)
    """
    loads = re.findall(r"^(\S+):\tData loaded", stdout, re.MULTILINE)
    whole = re.findall(r"^(\S+):\tDataflow executed", stdout, re.MULTILINE)
    if not whole:
        raise NotMeasured("tells no time")
    return sum(map(seconds, loads)), seconds(whole[0])


def written(folder: Path, workload: Workload) -> dict[str, int]:
    """Sizes as it wrote them; of distances, all rows: its sum would be that of different distances."""
    answer = {}
    for path in folder.glob("*.csv"):
        rows = [line.split("\t") for line in path.read_text(encoding="ascii").splitlines()]
        if workload.values:
            answer |= {path.stem: len(rows), **dict.fromkeys(workload.values, sum(int(row[-1]) for row in rows))}
        else:
            answer[path.stem] = int(rows[0][0])
    return answer
