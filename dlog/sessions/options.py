"""The options of a session: its arguments, checked, and the maker of its engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from dlog.api import ENGINES
from dlog.arguments import MAX_COUNT, bad_argument, by_relation, memory, path, program, texts, threads, whole_or_none
from dlog.dataclass import dataclass
from dlog.engine.rounds_engine import EngineMaker
from dlog.engine.runtime.incremental.engines.choice import EmbeddedMaker
from dlog.engine.state.sync import Sync
from dlog.functors import FunctorSource
from dlog.pipeline import available_cores
from dlog.sessions.engines import Engines
from dlog.sessions.follow.history import Window, window
from dlog.sessions.mistakes import mistake
from dlog.sessions.text import Text, read_text

ProgramSource = str | Path
StateSource = str | Path | Mapping[str, Any] | None
Preprocessing = tuple[tuple[str, ...], tuple[str, ...]]
"""Folders of included files; macros."""


@dataclass(frozen=True, slots=True)
class Options:
    """See `dlog.session`. `threads` is how many there are to be; `spark` may be workers that several sessions share."""

    threads: int
    memory: int | None
    max_iterations: int | None
    history: Window
    preprocessing: Preprocessing
    state: str | Path | None
    sync: Sync
    engine: str
    spark: Any
    workers: int | None
    functors: FunctorSource

    def engines(self) -> Engines:
        """The maker of the session's engines."""
        return Engines(self._maker(), self.memory, self.max_iterations)

    def _maker(self) -> EngineMaker:
        if self.engine == "spark":
            from dlog.engine.spark.session_engine import SharedWorkers, SparkMaker

            return self.spark if isinstance(self.spark, SharedWorkers) else SparkMaker(self.spark, self.workers)
        return EmbeddedMaker(self.threads)


def options(
    *,
    threads: Any,
    memory: Any,
    max_iterations: Any,
    history: Any,
    include: Any,
    macros: Any,
    state: Any,
    sync: Any,
    engine: Any,
    spark: Any,
    workers: Any,
    functors: Any,
) -> Options:
    """The options that are meant. Raises DlogError for what means none, before anything is opened."""
    checked = _limits(threads, memory, max_iterations)
    preprocessing = texts("include", include, "a list of folders"), texts("macros", macros, 'a list of definitions, ["N=3"]')
    if state is not None:
        state = path("state", state, "the name of a folder")
    if sync not in get_args(Sync):
        note = f"it is one of {', '.join(get_args(Sync))}"
        raise mistake("bad-sync", f"{sync!r} does not say when to force the log to the disk", note)
    if engine not in ENGINES:
        raise bad_argument("engine", f"one of {', '.join(ENGINES)}", engine)
    tasks = whole_or_none("workers", workers, 1, "a number of tasks, 1 or more")
    if engine != "spark" and (spark is not None or workers is not None):
        raise mistake("bad-argument", '`spark` and `workers` are for engine="spark"')
    return Options(*checked, window(history), preprocessing, state, sync, engine, spark, tasks, functors)


def _limits(cores: Any, bytes: Any, iterations: Any) -> tuple[int, int | None, int | None]:
    limit = whole_or_none("max_iterations", iterations, 1, "a number of iterations, 1 or more", MAX_COUNT)
    return threads(cores) or available_cores(), memory(bytes), limit


def check_facts(given: StateSource) -> StateSource:
    """A folder that is there, or rows by relation."""
    if given is None:
        return None
    if isinstance(given, str | Path):
        if not Path(given).is_dir():
            raise mistake("missing-file", f"facts={str(given)!r}: there is no such folder")
        return given
    return by_relation("facts", given, "a folder, or rows by the name of their relation")


def read(given: ProgramSource, chosen: Options) -> Text:
    """A program file, or the text of a program."""
    return replace(read_text(program(given), *chosen.preprocessing), functors=chosen.functors)
