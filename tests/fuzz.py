"""Mutated programs, each compiled, planned, run and opened as a session: nothing may end but well or with a DlogError.

    python -m tests.fuzz --minutes 60          # seed 0, from program 0 on, in one process
    python -m tests.fuzz --seed 0 --only 1234  # one program, with its text and what becomes of it

A child process tries the programs, within limits of time and memory; one that takes too long is counted and left alone, one
that kills the process is a finding. Findings that raise the same at the same place are one, shown with the smallest text that
was found by leaving lines and tokens out. Exit code 1 if there is any.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from multiprocessing.connection import Connection
from os import chdir
from typing import Any

from tests.fuzz_mutations import TOKEN, corpus, mutant

SECONDS = 8.0
"""For one program; the first of a process has to import everything."""
STARTING = 60.0
MEMORY = 6 << 30
"""Addresses of the child; most of what kernels reserve they never touch."""
ROWS = 3
SHRINKING = 30.0
"""Seconds to make the text of a finding smaller."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended: "ok", "refused" (DlogError), "slow", or what was raised and where."""

    end: str
    detail: str = ""

    @property
    def is_finding(self) -> bool:
        return self.end not in ("ok", "refused", "slow")


# ------------------------------------------------------------------------------------------------------------- one program


def attempt(text: str) -> Outcome:
    """Everything that is done with a program; the first step that raises decides."""
    from dlog.grammar.diagnostics import DlogError, render_all

    try:
        try:
            program = _checked(text)
        except DlogError as error:
            render_all(error.diagnostics)
            return Outcome("refused")
        _planned(program)
        for step in (_run, _maintained):
            try:
                step(text, program)
            except DlogError as error:
                render_all(error.diagnostics)
        return Outcome("ok")
    except MemoryError:
        return Outcome("slow")
    except BaseException as error:
        return Outcome(_place(error), "".join(traceback.format_exception(error))[-3000:])


def _place(error: BaseException) -> str:
    """The first cause and where it was raised: what makes two findings one."""
    while error.__cause__ is not None:
        error = error.__cause__
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/dlog/" in f.filename]
    where = f"{'/'.join(frames[-1].filename.rsplit('/', 2)[1:])}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} in {where}"


def _checked(text: str) -> Any:
    from dlog.engine.compiler import STAGES, print_stage
    from dlog.grammar.preprocess import preprocess
    from dlog.pipeline import compile_program, stage

    program = compile_program(text)
    with stage("printing"):
        for name in STAGES:
            print_stage(preprocess(text), name)
    return program


def _planned(program: Any) -> None:
    from dlog.engine.plan.explain import explain
    from dlog.engine.plan.incremental.build import explain_maintenance
    from dlog.engine.plan.incremental.thresholds import summed, weighted
    from dlog.engine.plan.static.build import build_scope
    from dlog.engine.plan.static.restrict import restrict
    from dlog.engine.plan.statistics import Declared
    from dlog.grammar.diagnostics import DlogError
    from dlog.pipeline import optimized, stage

    try:
        improved, maintained = summed(optimized(program)), weighted(program)
        with stage("planner"):
            for stratum in improved.strata:
                explain(restrict(build_scope(stratum, improved, Declared())), improved)
            for stratum in maintained.strata:
                explain_maintenance(stratum, maintained, Declared())
    except DlogError:
        pass


def _run(text: str, program: Any) -> None:
    import dlog
    from dlog.engine.formats import check_directives
    from dlog.pipeline import stage

    with stage("output"):
        check_directives(program)
    result: Any = dlog.run(text, _rows(program), threads=1, memory=2 << 30)
    for name in result:
        for _ in zip(range(5), result[name], strict=False):
            pass
        if result[name].rows < 10_000:
            result[name].to_arrow().validate(full=True)


def _maintained(text: str, program: Any) -> None:
    import dlog

    with dlog.session(text, threads=1, memory=2 << 30, max_iterations=1000) as session:
        for name, rows in _rows(program).items():
            for row in rows:
                session.insert(name, row)
                session.commit()
        for name, rows in _rows(program).items():
            session.remove(name, rows[0])
        session.commit()
        for name in program.relations:
            list(session[name].to_numpy())


def _rows(program: Any) -> dict[str, list[tuple[Any, ...]]]:
    inputs = dict.fromkeys(io.relation for io in program.io if io.action == "input")
    relations = [program.relations[name] for name in inputs]
    return {r.name: [tuple(_value(type, i) for _, type in r.attributes) for i in range(ROWS)] for r in relations if r.arity}


def _value(type: Any, i: int) -> Any:
    from dlog.engine.ir.rules import Kind

    match type.kind:
        case Kind.NUMBER | Kind.UNSIGNED:
            return i
        case Kind.FLOAT:
            return i / 2
        case Kind.SYMBOL:
            return "aé🙂"[: i + 1]
        case _:
            return None


# ---------------------------------------------------------------------------------------------------------- the other process


def serve(link: Connection) -> None:
    """Tries what comes until nothing more does, in a folder where it cannot harm."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        chdir(folder)
        while (text := link.recv()) is not None:
            link.send(attempt(text))
        chdir("/")


class Child:
    """A process that tries programs, started again when it has been killed or has died."""

    def __init__(self) -> None:
        self._process: Any = None

    def attempt(self, text: str) -> Outcome:
        limit = SECONDS
        if self._process is None:
            self._start()
            limit = STARTING
        try:
            self._link.send(text)
            if not self._link.poll(limit):
                self.stop()
                return Outcome("slow")
            return self._link.recv()  # type: ignore[no-any-return]
        except (EOFError, ConnectionError):
            self._process.join()
            code, self._process = self._process.exitcode, None
            return Outcome(f"died with {code}")

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._link, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other,), daemon=True)
        self._process.start()
        other.close()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


# --------------------------------------------------------------------------------------------------------------- the search


def shrunk(text: str, outcome: Outcome, child: Child) -> str:
    """A smaller text that ends in the same way: without pieces of halving sizes, first of lines, then of tokens."""
    stop = time.monotonic() + SHRINKING
    for parts in (text.splitlines(keepends=True), None):
        parts = TOKEN.findall(text) if parts is None else parts
        size = max(1, len(parts) // 2)
        while size and time.monotonic() < stop:
            at = 0
            while at < len(parts) and time.monotonic() < stop:
                less = parts[:at] + parts[at + size :]
                if child.attempt("".join(less) + "\n").end == outcome.end:
                    parts = less
                else:
                    at += size
            size //= 2
        text = "".join(parts)
    return text


def search(seed: int, first: int, minutes: float, most: int | None, progress: bool = True) -> dict[str, str]:
    """Tries programs from number `first` on; the findings, by how they end."""
    child, ends, findings = Child(), Counter[str](), dict[str, str]()
    stop, number = time.monotonic() + 60 * minutes, first
    try:
        while time.monotonic() < stop and (most is None or number < first + most):
            text = mutant(seed, number)
            outcome = child.attempt(text)
            ends["found" if outcome.is_finding else outcome.end] += 1
            if outcome.is_finding and outcome.end not in findings:
                smaller = shrunk(text, outcome, child)
                findings[outcome.end] = f"number {number}: {outcome.end}\n{outcome.detail}\n{smaller}"
                print(f"{'=' * 80}\n{findings[outcome.end]}".encode("utf-8", "backslashreplace").decode(), flush=True)
            number += 1
            if progress and number % 500 == 0:
                print(f"-- {number} programs: {dict(ends)}", flush=True)
    finally:
        child.stop()
    print(f"seed {seed}, programs {first} to {number - 1} of {len(corpus())} texts: {dict(ends)}", flush=True)
    return findings


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--only", type=int, help="try this program alone and show it")
    given = parser.parse_args(arguments)
    if given.only is not None:
        text = mutant(given.seed, given.only)
        outcome = Child().attempt(text)
        print(text.encode("utf-8", "backslashreplace").decode(), outcome.end, outcome.detail, sep="\n")
        return int(outcome.is_finding)
    return 1 if search(given.seed, given.first, given.minutes, None) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
