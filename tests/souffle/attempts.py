"""Runs tests, each in a process of its own that has dlog loaded already, within limits of time and memory."""

from __future__ import annotations

import multiprocessing
import os
import re
import resource
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.souffle.cases import Case
from tests.souffle.outputs import difference

GIB = 1 << 30


class End(StrEnum):
    """How a test ended."""

    HOLDS = "holds"
    DIFFERS = "differs"
    UNSUPPORTED = "not supported"
    REFUSED = "refused"
    ACCEPTED = "accepted wrongly"
    INTERNAL = "exit 2"
    TIMEOUT = "timeout"
    KILLED = "killed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a test ended and why. `for_want`: a program that must be refused is so only for constructs that dlog has not."""

    case: Case
    end: End
    detail: str = ""
    seconds: float = 0.0
    for_want: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """What a test may need, and what runs it: dlog itself, or `command`, which takes Soufflé's flags."""

    seconds: float
    memory: int
    processes: int
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Running:
    case: Case
    folder: Path
    process: BaseProcess
    started: float


def outcomes(cases: Sequence[Case], scratch: Path, limits: Limits) -> Iterator[Outcome]:
    """The outcome of each test, as they end."""
    if not limits.command:
        _load()
    waiting, running = list(reversed(cases)), list[_Running]()
    try:
        while waiting or running:
            while waiting and len(running) < limits.processes:
                running.append(_start(waiting.pop(), scratch, limits))
            wait([one.process.sentinel for one in running], timeout=0.1)
            for one in [one for one in running if _is_over(one, limits)]:
                running.remove(one)
                yield _outcome(one, limits)
                shutil.rmtree(one.folder)
    finally:
        for one in running:
            one.process.kill()
            one.process.join()


def _load() -> None:
    """Everything that a run imports, before processes are forked."""
    for name in ("dlog.command.cli", "dlog.command.findings", "dlog.display.progress", "dlog.interruption"):
        import_module(name)
    for name in ("formats.columnar", "formats.lines", "runtime.static.executor", "runtime.static.scope", "compiler"):
        import_module(f"dlog.engine.{name}")


def _start(case: Case, scratch: Path, limits: Limits) -> _Running:
    folder = scratch / case.name.replace("/", "-")
    (folder / "out").mkdir(parents=True)
    sys.stdout.flush()
    sys.stderr.flush()
    process = multiprocessing.get_context("fork").Process(target=_run, args=(case, folder, limits))
    process.start()
    return _Running(case, folder, process, time.monotonic())


def _run(case: Case, folder: Path, limits: Limits) -> None:
    """In the process: the test's command line, with its streams in files beside its output folder. Never returns."""
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    dialog = str(case.dialog or os.devnull)
    os.dup2(os.open(dialog, os.O_RDONLY), 0)
    for stream, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT), stream)
    os.chdir(folder / "out")
    if limits.command:
        os.execvp(limits.command[0], [*limits.command, *_souffle_arguments(case)])
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(stream, mode, closefd=False) for stream, mode in enumerate("rww"))
    from dlog.__main__ import run_command

    code = run_command(_arguments(case))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


_SHORT = frozenset({"semantic/ipv4_1"})
"""Tests whose rows are those of numbers with 32 bits only."""


def _arguments(case: Case) -> list[str]:
    includes = [word for path in case.includes for word in ("-I", str(path))]
    short = ["--word-size", "32"] if case.name in _SHORT else []
    output = "-" if case.to_stdout else "."
    return ["run", str(case.program), "-F", str(case.facts), "-D", output, "-j", "1", *short, *includes]


def _souffle_arguments(case: Case) -> list[str]:
    flags = [] if case.preprocessor else ["--no-preprocessor"]
    flags += [f"-I{path}" for path in case.includes]
    return [*flags, "-D-" if case.to_stdout else "-D.", "-F", str(case.facts), str(case.program)]


def _is_over(running: _Running, limits: Limits) -> bool:
    return not running.process.is_alive() or time.monotonic() - running.started > limits.seconds


def _outcome(running: _Running, limits: Limits) -> Outcome:
    case, process, folder = running.case, running.process, running.folder
    seconds = time.monotonic() - running.started
    if process.is_alive():
        process.kill()
        process.join()
        return Outcome(case, End.TIMEOUT, f"after {limits.seconds:g} s", seconds)
    process.join()
    code, said = process.exitcode, (folder / "stderr").read_text(encoding="utf-8", errors="replace")
    if code is None or code < 0:
        return Outcome(case, End.KILLED, f"signal {-(code or 0)}", seconds)
    if code not in (0, 1):
        return Outcome(case, End.INTERNAL, _last_line(said), seconds)
    wants = _missing_constructs(said) if code else []
    if case.negative:
        return Outcome(case, End.HOLDS if code else End.ACCEPTED, ", ".join(wants), seconds, bool(wants))
    if code:
        detail = ", ".join(wants) or _first_error(said)
        return Outcome(case, End.UNSUPPORTED if wants else End.REFUSED, detail, seconds)
    found = difference(case, folder / "out", folder / "stdout")
    return Outcome(case, End.DIFFERS if found else End.HOLDS, found, seconds)


def _missing_constructs(said: str) -> list[str]:
    """The constructs that a program was refused for because dlog has them not, if there is no other mistake."""
    errors = re.findall(r"error: (.*)", said)
    wants = [match[1] for error in errors if (match := re.search(r"not supported yet: (.*)", error))]
    return sorted(set(wants)) if len(wants) == len(errors) else []


def _first_error(said: str) -> str:
    return next((line for line in said.splitlines() if "error:" in line.lower()), _last_line(said))


def _last_line(said: str) -> str:
    return said.strip().rpartition("\n")[2]
