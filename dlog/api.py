"""dlog as a library: run a program, read its relations.

    import dlog
    result = dlog.run("program.dl", facts="facts")
    for row in result["path"]: ...

Bulk data goes in and out as Arrow tables or NumPy arrays; Python tuples are for small relations and tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from dlog import arguments
from dlog.codec import Codec, Row
from dlog.display.preview import Preview
from dlog.engine.ir import rules
from dlog.engine.runtime.static.executor import Executor
from dlog.facts import Facts, check_names, load_facts
from dlog.functors import FunctorSource, linked
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.pipeline import available_cores, compile_to_run, load_inputs, readable, stage, write_outputs
from dlog.relation import Relation, overview, unknown_relation
from dlog.tabular import Previewable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dlog.spark import SparkResult

EXAMPLES = 3
"""Rows of each relation that a result shows."""
ENGINES = ("embedded", "spark")
STRATEGIES = ("auto", "barrier", "jobs")


class Result(Previewable, Mapping[str, Relation]):
    """A finished run: every declared relation by name."""

    def __init__(self, program: rules.Program, executor: Executor) -> None:
        self._program = program
        self._executor = executor
        self._codec = Codec(program, executor.symbols, executor.records)

    def __getitem__(self, name: str) -> Relation:
        relation = self._program.relations.get(name) if isinstance(name, str) else None
        if relation is None:
            raise unknown_relation(name, self, self._program.inline)
        return Relation(relation, self._executor.table(name), self._codec)

    def __contains__(self, name: object) -> bool:
        return name in self._program.relations

    def __iter__(self) -> Iterator[str]:
        return iter(self._program.relations)

    def __len__(self) -> int:
        return len(self._program.relations)

    def _preview(self) -> Preview:
        return overview("dlog.Result", self._program.relations, self._executor.rows, self._examples)

    def _examples(self, name: str) -> Relation:
        return Relation(self._program.relations[name], self._executor.first_rows(name, EXAMPLES), self._codec)


@overload
def run(
    program: str | Path,
    facts: str | Path | Mapping[str, Facts] | None = None,
    output: str | Path | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    include: Sequence[str] = (),
    macros: Sequence[str] = (),
    engine: Literal["embedded"] = "embedded",
    *,
    functors: FunctorSource = None,
) -> Result: ...


@overload
def run(
    program: str | Path,
    facts: str | Path | Mapping[str, Facts] | None = None,
    output: str | Path | None = None,
    *,
    memory: int | str | None = None,
    include: Sequence[str] = (),
    macros: Sequence[str] = (),
    engine: Literal["spark"],
    spark: SparkSession | None = None,
    workers: int | None = None,
    strategy: str = "auto",
    functors: FunctorSource = None,
) -> SparkResult: ...


@overload
def run(
    program: str | Path,
    facts: str | Path | Mapping[str, Facts] | None = None,
    output: str | Path | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    include: Sequence[str] = (),
    macros: Sequence[str] = (),
    engine: str = "embedded",
    spark: SparkSession | None = None,
    workers: int | None = None,
    strategy: str = "auto",
    *,
    functors: FunctorSource = None,
) -> Result | SparkResult: ...


def run(
    program: str | Path,
    facts: str | Path | Mapping[str, Facts] | None = None,
    output: str | Path | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    include: Sequence[str] = (),
    macros: Sequence[str] = (),
    engine: str = "embedded",
    spark: SparkSession | None = None,
    workers: int | None = None,
    strategy: str = "auto",
    *,
    functors: FunctorSource = None,
) -> Result | SparkResult:
    """Runs a program and returns its relations.

    Parameters
    ----------
    program
        A program file, or the text of a program: a string with a line break is text, and so is one that looks like a clause or
        a directive; any other one is a file's name.
    facts
        The folder of the input files, or the rows of each input relation by name; then no file is read. Without it the program
        has only the facts in its text.
    output
        The folder for the output files; without it none is written.
    threads
        Default: one per core.
    memory
        Bytes above which the run stops with an error, also as "2G" or "512M"; on Spark, of each worker.
    engine
        "embedded", in this process, or "spark": then facts may be DataFrames, and the result is a `dlog.spark.SparkResult`.
    spark
        The session to use; default: the active one, else a new one.
    workers
        How many tasks of Spark work together; default: as many as run at once.
    strategy
        How they do on Spark: "barrier", in one stage in which they exchange rows; "jobs", in one job after the other, which
        runs anywhere; "auto", the first unless Spark would refuse it.
    functors
        Functions for the functors that the program declares, by name, or modules that have them (see `dlog.functor`).

    Raises
    ------
    DlogError
        The program, or its data, is wrong. `error.diagnostics` has all mistakes that were found.
    """
    given, limit = arguments.program(program), arguments.memory(memory)
    cores = arguments.threads(threads) or available_cores()
    folders = arguments.texts("include", include, "a list of folders")
    definitions = arguments.texts("macros", macros, 'a list of definitions, ["N=3"]')
    if engine not in ENGINES:
        raise DlogError(Diagnostic("bad-argument", f"engine={engine!r} is not one of {', '.join(ENGINES)}"))
    tasks = arguments.whole_or_none("workers", workers, 1, "a number of tasks, 1 or more")
    if engine != "spark" and (spark is not None or workers is not None):
        raise DlogError(Diagnostic("bad-argument", '`spark` and `workers` are for engine="spark"'))
    typed = linked(compile_to_run(given, folders, definitions), functors)
    if engine == "spark":
        from dlog.spark import run_on_rows

        if strategy not in STRATEGIES:
            raise DlogError(Diagnostic("bad-argument", f"strategy={strategy!r} is not one of {', '.join(STRATEGIES)}"))
        options: dict[str, Any] = {"strategy": strategy} if limit is None else {"strategy": strategy, "memory": limit}
        return run_on_rows(typed, facts, spark, tasks, None if output is None else str(output), **options)
    named = () if facts is None or isinstance(facts, str | Path) else check_names(typed, facts)
    executor = Executor(readable(typed, named), threads=cores, memory=limit, on_progress=None)
    if isinstance(facts, str | Path):
        load_inputs(executor, typed, str(facts), cores, memory=limit)
    elif facts is not None:
        load_facts(executor, typed, facts)
    with stage("evaluation"):
        executor.run()
    if output is not None:
        write_outputs(executor, typed, str(output), cores)
    return Result(typed, executor)


def run_text(
    program_text: str, facts: Mapping[str, Iterable[Row]], threads: int = 1, functors: FunctorSource = None
) -> dict[str, set[Row]]:
    """Every declared relation of a program given as text, as a set of Python tuples. Reads and writes no file.

    >>> run_text(".decl a(x: number) .decl b(x: number) b(x + 1) :- a(x).", {"a": [(1,), (2,)]})["b"] == {(2,), (3,)}
    True
    """
    cores = arguments.threads(threads) or available_cores()
    typed = linked(compile_to_run(arguments.text("program_text", program_text, "the text of a program")), functors)
    executor = Executor(readable(typed, check_names(typed, facts)), threads=cores, memory=None, on_progress=None)
    load_facts(executor, typed, facts)
    with stage("evaluation"):
        executor.run()
    return {name: set(relation) for name, relation in Result(typed, executor).items()}
