"""dlog as a library: run a program, read its relations.

    import dlog
    result = dlog.run("program.dl", facts="facts")
    for row in result["path"]: ...

Bulk data goes in and out as Arrow tables or NumPy arrays; Python tuples are for small relations and tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dlog.arguments import by_relation, whole_or_none
from dlog.engine.embedded.executor import Executor
from dlog.engine.program import rules
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.pipeline import available_cores, compile_program, load_inputs, stage, write_outputs
from dlog.rows import from_tuples, table_of
from dlog.values import Codec, Row

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from dlog.engine.values.table import Table
    from dlog.spark import SparkResult

ENGINES = ("embedded", "spark")
STRATEGIES = ("auto", "barrier", "jobs")
Facts: TypeAlias = Iterable[Row] | Any
"""Rows as Python tuples, a dict of columns, an array of two dimensions, or whatever speaks Arrow: a table of pyarrow, pandas,
polars, DuckDB ... (`dlog.rows`)."""


class Relation:
    """One relation of a finished run: a set of rows, in no particular order.

    Iterating gives tuples of Python values: int, float, str, tuples for records, None for nil."""

    def __init__(self, relation: rules.Relation, table: Table, codec: Codec) -> None:
        self._relation = relation
        self._table = table
        self._codec = codec

    @property
    def name(self) -> str:
        return self._relation.name

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self._relation.attributes)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._table.rows

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[Row]:
        if not self._table.columns:
            return iter([()] * self.rows)
        return zip(*(self._codec.to_python(type, column) for _, type, column in self._columns()), strict=True)

    def __repr__(self) -> str:
        return f"<dlog.Relation {self.name}({', '.join(self.attributes)}), {self.rows} rows>"

    def head(self, rows: int) -> Relation:
        """The first so many of the rows."""
        from dlog.engine.values.table import Table

        columns = tuple(column[:rows] for column in self._table.columns)
        return Relation(self._relation, Table(self._table.kinds, columns, min(rows, self.rows)), self._codec)

    def to_numpy(self) -> dict[str, np.ndarray]:
        """One array for each column: int64, uint64, float64, or objects for symbols and records."""
        return {name: self._codec.to_numpy(type, column) for name, type, column in self._columns()}

    def to_arrow(self) -> pa.Table:
        """An Arrow table; records are strings as in output files."""
        import pyarrow as pa

        return pa.table({name: self._codec.to_arrow(type, column) for name, type, column in self._columns()})

    def to_pandas(self) -> pd.DataFrame:
        """A pandas DataFrame (pandas must be installed)."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """A polars DataFrame (polars must be installed)."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def _columns(self) -> Iterator[tuple[str, rules.Type, np.ndarray]]:
        for (name, type), column in zip(self._relation.attributes, self._table.columns, strict=True):
            yield name, type, column


class Result(Mapping[str, Relation]):
    """A finished run: every declared relation by name."""

    def __init__(self, program: rules.Program, executor: Executor) -> None:
        self._program = program
        self._executor = executor
        self._codec = Codec(program, executor.symbols, executor.records)

    def __getitem__(self, name: str) -> Relation:
        relation = self._program.relations[name]
        return Relation(relation, self._executor.table(name), self._codec)

    def __iter__(self) -> Iterator[str]:
        return iter(self._program.relations)

    def __len__(self) -> int:
        return len(self._program.relations)

    def __repr__(self) -> str:
        return "<dlog.Result " + ", ".join(f"{name}: {self._executor.rows(name)} rows" for name in self) + ">"


def run(
    program: str | Path,
    facts: str | Path | Mapping[str, Facts] | None = None,
    output: str | Path | None = None,
    threads: int | None = None,
    memory: int | None = None,
    include: Sequence[str] = (),
    macros: Sequence[str] = (),
    engine: str = "embedded",
    spark: SparkSession | None = None,
    workers: int | None = None,
    strategy: str = "auto",
) -> Result | SparkResult:
    """Runs a program and returns its relations.

    Parameters
    ----------
    program
        A program file, or the text of a program: a string with a line break is text.
    facts
        The folder of the input files, or the rows of each input relation by name; then no file is read. Without it the program
        has only the facts in its text.
    output
        The folder for the output files; without it none is written.
    threads
        Default: one per core.
    memory
        Bytes above which the run stops with an error; on Spark, bytes of each worker.
    engine
        "embedded", in this process, or "spark": then facts may be DataFrames, and the result is a `dlog.spark.SparkResult`.
    spark
        The session to use; default: the active one, else a new one.
    workers
        How many tasks of Spark work together; default: as many as run at once.
    strategy
        How they do on Spark: "barrier", in one stage in which they exchange rows; "jobs", in one job after the other, which
        runs anywhere; "auto", the first unless Spark would refuse it.

    Raises
    ------
    DlogError
        The program, or its data, is wrong. `error.diagnostics` has all mistakes that were found.
    """
    is_text = isinstance(program, str) and "\n" in program
    if engine not in ENGINES:
        raise DlogError(Diagnostic("bad-argument", f"engine={engine!r} is not one of {', '.join(ENGINES)}"))
    tasks = whole_or_none("workers", workers, 1, "a number of tasks, 1 or more")
    if engine != "spark" and (spark is not None or workers is not None):
        raise DlogError(Diagnostic("bad-argument", '`spark` and `workers` are for engine="spark"'))
    typed = compile_program(program if is_text else Path(program), include, macros)
    if engine == "spark":
        from dlog.spark import run_given

        if strategy not in STRATEGIES:
            raise DlogError(Diagnostic("bad-argument", f"strategy={strategy!r} is not one of {', '.join(STRATEGIES)}"))
        options: dict[str, Any] = {"strategy": strategy} if memory is None else {"strategy": strategy, "memory": memory}
        return run_given(typed, facts, spark, tasks, None if output is None else str(output), **options)
    cores = threads or available_cores()
    executor = Executor(typed, threads=cores, memory=memory, on_progress=None)
    if isinstance(facts, str | Path):
        load_inputs(executor, typed, str(facts), cores)
    elif facts is not None:
        load_given(executor, typed, facts)
    with stage("evaluation"):
        executor.run()
    if output is not None:
        write_outputs(executor, typed, str(output), cores)
    return Result(typed, executor)


def run_text(program_text: str, facts: Mapping[str, Iterable[Row]], threads: int = 1) -> dict[str, set[Row]]:
    """Every declared relation of a program given as text, as a set of Python tuples. Reads and writes no file.

    >>> run_text(".decl a(x: number) .decl b(x: number) b(x + 1) :- a(x).", {"a": [(1,), (2,)]})["b"] == {(2,), (3,)}
    True
    """
    typed = compile_program(program_text)
    executor = Executor(typed, threads=threads, memory=None, on_progress=None)
    load_given(executor, typed, facts)
    with stage("evaluation"):
        executor.run()
    return {name: set(relation) for name, relation in Result(typed, executor).items()}


def load_given(executor: Executor, program: rules.Program, facts: Mapping[str, Facts]) -> None:
    """Loads rows by relation name; all unknown names are reported together."""
    check_names(program, facts)
    codec = Codec(program, executor.symbols, executor.records)
    for name, rows in facts.items():
        with stage(f"loading {name}"):
            taken = from_tuples if isinstance(rows, Relation) else table_of
            executor.load(name, taken(program.relations[name], codec, rows))


def check_names(program: rules.Program, facts: Mapping[str, Facts]) -> None:
    """Raises DlogError for rows of relations that the program does not declare."""
    from difflib import get_close_matches

    by_relation("facts", facts, "a folder, or rows by the name of their relation")
    unknown = []
    for name in facts:
        if name not in program.relations:
            close = get_close_matches(name, program.relations, 1) if isinstance(name, str) else []
            notes = (f"did you mean `{close[0]}`?",) if close else ()
            unknown.append(Diagnostic("unknown-relation", f"facts are given for `{name}`, which is not declared", notes=notes))
    if unknown:
        raise DlogError(unknown)
