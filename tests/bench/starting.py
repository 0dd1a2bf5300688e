"""Benches of what comes before the work: starting the commands, and compiling a program of a thousand rules."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.bench import engine_souffle
from tests.bench.engine_dlog import COMMAND
from tests.bench.process import Options, best_seconds, measure
from tests.bench.report import save, seconds, seconds_or_reason, show
from tests.bench.workloads import PROGRAMS

START = str(PROGRAMS / "start.dl")
RULES = 1000

# Ten rules over one input: recursion of all kinds, a cyclic and a long body, negation, an aggregate. `{i}` numbers the copies,
# `{before}` is the copy before.
GROUP = """
.decl path{i}(x: number, y: number)
.decl both{i}(x: number, y: number)
.decl odd{i}(x: number, y: number)
.decl even{i}(x: number, y: number)
.decl ring{i}(x: number, y: number, z: number)
.decl far{i}(x: number, y: number)
.decl leaf{i}(x: number)
.decl size{i}(x: number, n: number)
.output size{i}
path{i}(x, y) :- edge(x, y).
path{i}(x, z) :- path{i}(x, y), path{i}(y, z).
both{i}(x, y) :- path{i}(x, y), path{i}(y, x), {before}(x, _).
odd{i}(x, y) :- edge(x, y).
odd{i}(x, z) :- even{i}(x, y), edge(y, z).
even{i}(x, z) :- odd{i}(x, y), edge(y, z).
ring{i}(x, y, z) :- edge(x, y), edge(y, z), edge(z, x), x < y.
far{i}(a, e) :- edge(a, b), even{i}(b, c), edge(c, d), odd{i}(d, e), a != e.
leaf{i}(x) :- edge(_, x), !edge(x, _), !ring{i}(x, _, _).
size{i}(x, n) :- leaf{i}(x), n = count : {{ path{i}(_, x) }}.
"""


def run_start(options: Options) -> bool:
    """`dlog --version`, `dlog check` and the whole `dlog run`, against their bounds; Python and Souffle for comparison."""
    python = [sys.executable, "-c", "pass"]
    commands: dict[str, tuple[list[str], float | None]] = {
        "python -c pass": (python, None),
        "dlog --version": ([*COMMAND, "--version"], 0.15),
        "dlog check": ([*COMMAND, "check", START], 0.4),
        "dlog run": ([*COMMAND, "run", START], 1.0),
    }
    runs = max(options.repeats, 5)
    figures = {
        name: best_seconds(runs, lambda command=command: measure(command).seconds) for name, (command, _) in commands.items()
    }
    bounds = {name: bound for name, (_, bound) in commands.items()}
    if "souffle" in options.engines:
        figures["souffle"] = best_seconds(runs, lambda: measure([engine_souffle.executable(), START]).seconds)
    return judge("start", "start-up with a program of ten lines", figures, bounds, options)


def run_plan(options: Options) -> bool:
    """What `check`, `plan` and `run` take for a thousand rules over three facts, beyond what they take for ten lines."""
    bounds = {"dlog check": None, "dlog plan": 2.0, "dlog run": None}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "rules.dl"
        program.write_text(thousand_rules(), encoding="ascii")

        def beyond_start(command: str) -> float:
            flags = ["-D", folder] if command == "run" else []
            large, small = ([*COMMAND, command, *flags, file] for file in (str(program), START))
            return measure(large).seconds - measure(small).seconds

        figures = {
            name: best_seconds(options.repeats, lambda name=name: beyond_start(name.removeprefix("dlog "))) for name in bounds
        }
    return judge("plan", f"{RULES:,} rules, beyond the time for ten lines", figures, bounds, options)


def thousand_rules() -> str:
    groups = (GROUP.format(i=i, before=f"both{i - 1}" if i else "edge") for i in range(RULES // 10))
    return ".decl edge(x: number, y: number)\nedge(1, 2). edge(2, 3). edge(3, 1).\n" + "".join(groups)


def judge(bench: str, title: str, figures: dict[str, float | str], bounds: dict[str, float | None], options: Options) -> bool:
    """Prints and saves; false when a figure that has a bound exceeds it or is missing."""
    missed = {name for name, bound in bounds.items() if bound is not None and not within(figures[name], bound)}

    def verdict(name: str) -> list[str]:
        bound = bounds.get(name)
        return ["", ""] if bound is None else [seconds(bound), "missed" if name in missed else "kept"]

    show(title, ["command", "time", "bound", ""], [[name, seconds_or_reason(v), *verdict(name)] for name, v in figures.items()])
    save(bench, {"seconds": figures, "bounds": bounds}, options.json)
    return not missed


def within(figure: float | str, bound: float) -> bool:
    return not isinstance(figure, str) and figure <= bound
