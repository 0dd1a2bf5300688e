"""Programs on Spark: what `dlog.run(..., engine="spark")` and `dlog run --engine spark` do.

result = dlog.run("program.dl", {"edge": edges_df}, engine="spark")
result["path"].df.groupBy("x").count().show()
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from dlog.display.preview import Preview
from dlog.display.report import Report
from dlog.engine.ir import rules
from dlog.engine.spark import application, job, sources
from dlog.engine.spark.error_translation import failures
from dlog.facts import check_names, load_facts
from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import STDOUT, Job, compile_to_run, observed_relations, optimized, stage, with_functors
from dlog.relation import Relation, overview, title, unknown_relation
from dlog.rows import is_frame
from dlog.tabular import Previewable, Tabular

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from dlog.codec import Codec, Row
    from dlog.display.progress import Display
    from dlog.engine.runtime.static.executor import Progress
    from dlog.engine.values.table import Table


ConstantRows: TypeAlias = dict[str, tuple[tuple[rules.Constant | rules.Record, ...], ...]]
MAX_FACT_ROWS = 1_000
"""Rows given by the driver that become facts of the program: one more DataFrame would take tasks of its own."""
MAX_FETCHED_ROWS = 10_000
"""Rows of a session's workers up to which all are fetched to show the first of them."""
PLAIN = (rules.Kind.NUMBER, rules.Kind.UNSIGNED, rules.Kind.FLOAT, rules.Kind.SYMBOL)


class _InSpark(ABC):
    """A relation whose rows are with Spark."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def df(self) -> DataFrame: ...

    def create_view(self, name: str | None = None) -> None:
        """Registers the rows, as of now, as a temporary view of the Spark session, by default under the relation's name."""
        self.df.createOrReplaceTempView(name or self.name)


class SparkRelation(_InSpark, Tabular):
    """One relation of a finished run: `df` is a Spark DataFrame of its rows, which are distinct and stay with Spark until they
    are asked for."""

    def __init__(self, relation: rules.Relation, outcome: job.Outcome) -> None:
        self._relation = relation
        self._outcome = outcome

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
        return self._outcome.rows[self.name]

    def __len__(self) -> int:
        return self.rows

    @property
    def df(self) -> DataFrame:
        """The rows as a DataFrame: number is bigint, unsigned decimal(20,0), float double, symbols and records are strings."""
        return self._outcome.frame(self.name)

    def to_arrow(self) -> pa.Table:
        """All rows, brought to the driver."""
        return self._outcome.arrow(self.name)

    def __iter__(self) -> Iterator[Row]:
        if not self._relation.arity:
            return iter([()] * self.rows)
        table, codec = self._outcome_table()
        return iter(Relation(self._relation, table, codec))

    def _outcome_table(self) -> tuple[Table, Codec]:
        from dlog.codec import Codec
        from dlog.engine.runtime.storage.memory import Memory
        from dlog.engine.runtime.storage.records import RecordTables
        from dlog.engine.spark.arrow import ArrowCodec
        from dlog.engine.values.symbols import SymbolTable

        codec = Codec(self._outcome.program, SymbolTable(), RecordTables(Memory(None)))
        arrow = ArrowCodec(self._outcome.program.types, codec.symbols, codec.records)
        return arrow.read(self._relation, self.to_arrow()), codec

    def _title(self) -> str:
        return title("SparkRelation", self._relation, self.rows)

    def _first(self, rows: int) -> pa.Table | None:
        return first_of(self.df, rows)


class Remote(Protocol):
    """The holder of relations whose rows are not in this process; see `dlog.engine.rounds_engine.RoundsEngine`."""

    def table(self, relation: str) -> Table: ...

    def rows(self, relation: str) -> int: ...

    def frame(self, relation: str) -> DataFrame: ...


class RemoteRelation(_InSpark, Relation):
    """A relation of a session on Spark. Its rows are fetched when they are first asked for; `df` leaves them with Spark."""

    def __init__(self, relation: rules.Relation, engine: Remote, codec: Codec) -> None:
        self._relation = relation
        self._engine = engine
        self._codec = codec

    @cached_property
    def _table(self) -> Table:  # type: ignore[override]
        return self._engine.table(self.name)

    @property
    def name(self) -> str:
        return self._relation.name

    @property
    def rows(self) -> int:
        return self._engine.rows(self.name)

    def _first(self, rows: int) -> pa.Table | None:
        fetched = "_table" in self.__dict__ or self.rows <= MAX_FETCHED_ROWS
        return super()._first(rows) if fetched else None

    @property
    def df(self) -> DataFrame:
        """The rows as of now as a DataFrame, which later rounds do not change."""
        return self._engine.frame(self.name)


def first_of(frame: DataFrame, rows: int) -> pa.Table | None:
    """The first rows of a DataFrame; None where Spark does not give them any more."""
    with suppress(*failures(), AttributeError):  # of a session that is at its end attributes are None
        return frame.limit(rows).toArrow()
    return None


class SparkResult(Previewable, Mapping[str, SparkRelation]):
    """A finished run: the relations that the program puts out, or all of them where it names none."""

    def __init__(self, outcome: job.Outcome) -> None:
        self._outcome = outcome

    @property
    def seconds(self) -> float:
        """The seconds of evaluation on the slowest worker."""
        return self._outcome.seconds

    @property
    def processor(self) -> float:
        """How many seconds of the processor evaluation took on the busiest worker."""
        return self._outcome.processor

    @property
    def longest_way(self) -> float:
        """The same between two exchanges, of the worker that was busiest there, over all of them."""
        return self._outcome.longest_way

    @property
    def steps(self) -> int:
        """The number of exchanges between the workers."""
        return self._outcome.steps

    @property
    def rows_sent(self) -> int:
        """Rows that went from one worker to another; without a barrier stage, those that went from one job to the next."""
        return self._outcome.rows_sent

    @property
    def spread(self) -> dict[str, int]:
        """How many values were so frequent, at the home of which relations, that their rows were spread over the workers."""
        return {name: values for effort in self._outcome.efforts[:1] for name, values in effort.spread.items()}

    def repeated(self, name: str) -> int:
        """How many rows came for an input that were there already; 0 without a barrier stage, where nobody counts."""
        return max(self._outcome.input_rows[name] - self._outcome.rows.get(name, 0), 0)

    def release(self) -> None:
        """Gives back the room that the rows take; DataFrames of them must not be used afterwards."""
        self._outcome.release()

    def __getitem__(self, name: str) -> SparkRelation:
        if name not in self._outcome.task.outputs:
            raise unknown_relation(name, self)
        return SparkRelation(self._outcome.program.relations[name], self._outcome)

    def __iter__(self) -> Iterator[str]:
        return iter(self._outcome.task.outputs)

    def __len__(self) -> int:
        return len(self._outcome.task.outputs)

    def __contains__(self, name: object) -> bool:
        return name in self._outcome.task.outputs

    def _preview(self) -> Preview:
        relations = {name: self._outcome.program.relations[name] for name in self}
        return overview("dlog.SparkResult", relations, self._outcome.rows.__getitem__)


def run_on_rows(
    program: rules.Program,
    facts: str | Path | Mapping[str, Any] | None,
    spark: SparkSession | None,
    workers: int | None,
    output: str | None = None,
    strategy: str = "auto",
    **options: Any,
) -> SparkResult:
    """A typed program on rows given by name (DataFrames, or whatever the embedded engine takes) or a folder of files."""
    named = () if facts is None or isinstance(facts, str | Path) else check_names(program, facts)
    program = optimized(program, named, classes=False)
    with stage("start"):
        spark = spark or application.start()
        application.need_context(spark)
    with stage("loading"):
        if isinstance(facts, str | Path):
            inputs = frames_of_files(spark, program, str(facts))
        else:
            given = {name: rows for name, rows in (facts or {}).items() if name in program.relations}
            tables = input_rows(spark, program, given)
            program = replace(program, facts=_with(program.facts, tables.few))
            read = {name: data for name, data in spark_inputs(spark, program).items() if name not in tables.few}
            inputs = {**read, **tables.frames}
    with stage("evaluation"):
        names = sorted(observed_relations(program))
        outcome = _evaluated(spark, program, inputs, names, workers=workers, options=options, strategy=strategy)
    if output is not None:
        _write(spark, program, outcome, output)
    return SparkResult(outcome)


def quieten() -> None:
    """For a terminal: Py4J logs a call that Ctrl-C cuts short, with its stack."""
    logging.getLogger().addHandler(logging.NullHandler())


class _Together:
    """The progress of all workers together, from what each reports of itself now and then."""

    def __init__(self, show: Callable[[Progress], None]) -> None:
        self._show = show
        self._last: dict[int, Progress] = {}

    def __call__(self, rank: int, progress: Progress) -> None:
        """The stratum is the one that was begun last, as are its rows; the memory is everyone's."""
        self._last[rank] = progress
        latest = max(p.stratum for p in self._last.values())
        there = [p for p in self._last.values() if p.stratum == latest]
        iteration = max(p.iteration for p in there)
        delta, rows = sum(p.delta for p in there), sum(p.rows for p in there)
        held = sum(p.bytes for p in self._last.values())
        self._show(replace(there[0], iteration=iteration, delta=delta, rows=rows, bytes=held))


def run_job(run: Job, workers: int | None, display: Display, strategy: str = "auto") -> Report:
    """Runs `dlog run --engine spark`."""
    from dlog.memory import peak_bytes

    quieten()
    program = with_functors(compile_to_run(run.program, run.include, run.macros, run.on_warnings, run.pragmas), run)
    facts, output = run.folders(program)
    program = optimized(program, classes=False)
    with stage("start"):
        spark = application.start()
    started = time.perf_counter()
    with stage("loading"):
        inputs = frames_of_files(spark, program, facts)
    loaded = time.perf_counter()
    options = {} if run.memory is None else {"memory": run.memory}
    shown = _Together(display.show)
    with stage("evaluation"):
        names = sorted({io.relation for io in program.io if io.action != "input"})
        how: dict[str, Any] = {"workers": workers, "options": options, "on_progress": shown, "strategy": strategy}
        outcome = _evaluated(spark, program, inputs, names, **how)
    evaluated = time.perf_counter()
    if output == STDOUT:
        display.close()
    try:
        _write(spark, program, outcome, output)
    finally:
        outcome.release()
    written = time.perf_counter()
    return Report(loaded - started, evaluated - loaded, written - evaluated, peak_bytes(), outcome.rows, ())


def _evaluated(
    spark: SparkSession, program: rules.Program, inputs: Mapping[str, DataFrame], *names: Any, **how: Any
) -> job.Outcome:
    """See `job.run`. Where Spark fails, the sources that it cannot read are told."""
    try:
        return job.run(spark, program, inputs, *names, **how)
    except DlogError as error:
        if error.diagnostics[0].code == "spark-failed":
            _raise_together(sources.unreadable(program, inputs))
        raise


# ------------------------------------------------------------------------------------------------------------------ inputs


def frames_of_files(spark: SparkSession, program: rules.Program, facts: str) -> dict[str, DataFrame]:
    """The inputs that the program's directives name: through Spark, or files of the folder `facts` that the driver reads."""
    frames = spark_inputs(spark, program)
    files = [io for io in program.io if io.action == "input" and not sources.is_spark(io)]
    if files:
        from dlog.engine.runtime.static.executor import Executor
        from dlog.pipeline import available_cores, load_inputs

        from_files = rules.Program(**{**_fields(program), "io": tuple(files), "facts": {}})
        executor = Executor(from_files)
        load_inputs(executor, from_files, facts, available_cores())
        for name in dict.fromkeys(io.relation for io in files):
            _add(frames, name, _frame(spark, program, name, executor.table(name), executor))
    return frames


def _fields(program: rules.Program) -> dict[str, Any]:
    return {name: getattr(program, name) for name in program.__dataclass_fields__}


def spark_inputs(spark: SparkSession, program: rules.Program) -> dict[str, DataFrame]:
    """The inputs with IO=spark; all that is wrong with them together. A relation may have several."""
    frames: dict[str, DataFrame] = {}
    mistakes: list[DlogError] = []
    for io in program.io:
        if io.action == "input" and sources.is_spark(io):
            try:
                _add(frames, io.relation, sources.read(spark, io, program))
            except DlogError as error:
                mistakes.append(error)
    _raise_together(mistakes)
    return frames


def _add(frames: dict[str, DataFrame], name: str, rows: DataFrame) -> None:
    frames[name] = frames[name].unionAll(rows) if name in frames else rows


def _raise_together(mistakes: list[DlogError]) -> None:
    if mistakes:
        raise DlogError([d for error in mistakes for d in error.diagnostics]) from mistakes[0].__cause__


class _InputRows(NamedTuple):
    """Rows given by name: DataFrames, and the rows of relations that have few, which need none."""

    frames: dict[str, DataFrame]
    few: ConstantRows


def input_rows(spark: SparkSession, program: rules.Program, facts: Mapping[str, Any]) -> _InputRows:
    """DataFrames stay as they are."""
    from dlog.engine.runtime.static.executor import Executor

    frames = {name: data for name, data in facts.items() if is_frame(data)}
    others = {name: data for name, data in facts.items() if name not in frames}
    few: ConstantRows = {}
    if others:
        executor = Executor(rules.Program(**{**_fields(program), "facts": {}}))
        load_facts(executor, program, others)
        for name in others:
            relation, table = program.relations[name], executor.table(name)
            if table.rows <= MAX_FACT_ROWS and all(type.kind in PLAIN for _, type in relation.attributes):
                few[name] = _constants(relation, table, executor)
            else:
                frames[name] = _frame(spark, program, name, table, executor)
    return _InputRows(frames, few)


def _constants(relation: rules.Relation, table: Table, executor: Any) -> tuple[tuple[rules.Constant, ...], ...]:
    from dlog.codec import Codec

    kinds = [type.kind for _, type in relation.attributes]
    plain = tuple((name, replace(type, domain=rules.Domain.PLAIN)) for name, type in relation.attributes)
    rows = Relation(replace(relation, attributes=plain), table, Codec(executor.program, executor.symbols, executor.records))
    return tuple(tuple(map(rules.Constant, row, kinds)) for row in rows)


def _with(facts: ConstantRows, more: ConstantRows) -> ConstantRows:
    return {**facts, **{name: (*facts.get(name, ()), *rows) for name, rows in more.items()}}


def started() -> SparkSession:
    """The active session, or a new one. Raises DlogError where there is no Spark."""
    return application.start()


def is_spark(io: rules.Io) -> bool:
    """Whether Spark reads or writes for a directive."""
    return sources.is_spark(io)


def _frame(spark: SparkSession, program: rules.Program, name: str, table: Table, executor: Any) -> DataFrame:
    import pyarrow as pa

    from dlog.engine.spark.arrow import ArrowCodec, schema_of
    from dlog.engine.spark.tagged_rows import sql_type

    relation = program.relations[name]
    codec = ArrowCodec(program.types, executor.symbols, executor.records)
    schema = schema_of(relation)
    if not relation.arity:
        return spark.range(table.rows).select()
    pieces = [pa.Table.from_arrays(columns, schema=schema) for columns in codec.write(relation, table)]
    declared = ", ".join(f"`{n}` {sql_type(t)}" for n, t in relation.attributes)
    return spark.createDataFrame(pa.concat_tables(pieces) if pieces else schema.empty_table(), declared)


# ----------------------------------------------------------------------------------------------------------------- outputs


def _write(spark: SparkSession, program: rules.Program, outcome: job.Outcome, output: str) -> None:
    """Every `.output` and `.printsize`: through Spark, or files that the driver writes."""
    from dlog.engine.formats import remark_parameters, save

    for io in program.io:
        if io.action not in ("output", "printsize"):
            continue
        relation = SparkRelation(program.relations[io.relation], outcome)
        with stage(f"writing {io.relation}"):
            if io.action == "output" and sources.is_spark(io) and output != STDOUT:
                sources.write(spark, io, program, relation.df)
                continue
            if output != STDOUT:
                Path(output).mkdir(parents=True, exist_ok=True)
            if io.action == "printsize":
                print(f"{io.get('name', io.relation)}\t{relation.rows}")
                continue
            table, codec = _collected(relation)
            remark_parameters(io)
            save(_to_file(io), program.relations[io.relation], program, table, codec.symbols, codec.records, output)


def _collected(relation: SparkRelation) -> tuple[Table, Codec]:
    if relation._relation.arity:
        return relation._outcome_table()
    from dlog.codec import Codec
    from dlog.engine.runtime.storage.memory import Memory
    from dlog.engine.runtime.storage.records import RecordTables
    from dlog.engine.values.symbols import SymbolTable
    from dlog.engine.values.table import Table

    return Table((), (), relation.rows), Codec(relation._outcome.program, SymbolTable(), RecordTables(Memory(None)))


def _to_file(io: rules.Io) -> rules.Io:
    """An output that Spark would write as one that `-D -` prints."""
    if not sources.is_spark(io):
        return io
    return rules.Io(io.action, io.relation, tuple((k, v) for k, v in io.params if k.lower() != "io"), io.span)
