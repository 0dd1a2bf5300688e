"""Bench of programs of many rules: what a session, `check`, `run` and `plan` take before there is work to do."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.engine_dlog import COMMAND
from tests.bench.process import Options
from tests.bench.report import save, show
from tests.bench.shapes import SHAPES

SIZES = (500, 1000, 2000, 5000, 10_000)
BOUNDS = {2000: 0.5, 10_000: 3.0}
"""Seconds of CPU for a session of so many rules, from its text to the first round."""

OPEN = "import sys, dlog; dlog.session(open(sys.argv[1]).read() + '\\n').commit()"


def run(options: Options) -> bool:
    """CPU seconds beyond those for a program of one rule, and the growth from one size to five times that."""
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "rules.dl"
        commands = {
            "session": [sys.executable, "-c", OPEN, str(program)],
            **{name: [*COMMAND, name, str(program)] for name in ("check", "plan")},
            "run": [*COMMAND, "run", "-D", folder, str(program)],
        }
        program.write_text(".decl a(x: number)\na(1).\n")
        start = {name: _least(command, options) for name, command in commands.items()}
        for shape, text in SHAPES.items():
            for size in SIZES:
                program.write_text(text(size))
                figures[f"{shape} {size}"] = {n: _least(c, options) - start[n] for n, c in commands.items()}
    rows = [[name, *(f"{figures[name][c]:.2f}" for c in commands), _growth(name, figures)] for name in figures]
    show("opening: CPU s", ["rules", *commands, "per rule x, session"], rows)
    save("opening", {"seconds": figures}, options.json)
    return all(found["session"] <= BOUNDS.get(int(name.split()[1]), 1e9) for name, found in figures.items())


def _growth(name: str, figures: dict[str, dict[str, float]]) -> str:
    """How many times the session's time for one rule is that of a fifth (or half) of the rules."""
    shape, size = name.split()
    smaller = next((s for s in (int(size) // 5, int(size) // 2) if f"{shape} {s}" in figures), None)
    if smaller is None:
        return ""
    return f"{figures[name]['session'] / int(size) / (figures[f'{shape} {smaller}']['session'] / smaller):.2f}"


def _least(command: list[str], options: Options) -> float:
    """The least CPU time of some runs: that of a shared machine says little else."""
    return min(_cpu(command) for _ in range(max(1, min(options.repeats, 3))))


def _cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
