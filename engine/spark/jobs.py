"""A run without a barrier stage: a job for each superstep, and Spark's shuffle between them (`dlog.engine.plan.supersteps`).

For places where Spark refuses barrier stages (dynamic allocation), and for more tasks than run at once. A task that is lost is
run again, by itself; rows are in Spark's hands between jobs, as blocks.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from dlog.engine.plan.places import EVERYWHERE
from dlog.engine.plan.supersteps import Step, Supersteps, supersteps
from dlog.engine.program.rules import Program, Relation, Type
from dlog.engine.shards import superstep
from dlog.engine.shards.superstep import Figures, Lot
from dlog.engine.spark.cutting import MISTAKE, NOTHING, SCHEMA, Cut, lanes_of
from dlog.engine.spark.inputs import as_declared
from dlog.engine.spark.slots import Slots, share_slots
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

KINDS = {"kept": 0, "sent": 1, "figures": 2, "mistakes": 3}
LEFT = f"{SCHEMA}, kind int, rows bigint, mark bigint"
"""What a superstep leaves: blocks that are kept or sent, and of each task how many rows a relation has and a fingerprint of
them, or its mistakes."""
_COLUMNS = ("lane", "relation", "owner", "block", "kind", "rows", "mark")
_NO_BLOCK = f"select 0 lane, {NOTHING} relation, {NOTHING} owner, cast(null as binary) block, 0 kind"


@dataclass(frozen=True)
class Written:
    """Which relations are put out, in which slots."""

    outputs: tuple[str, ...]
    output_slots: Slots
    folder: None = None


@dataclass(frozen=True)
class Evaluation:
    """For `mapInArrow`: a task's blocks (`SCHEMA`) to what it leaves (`LEFT`). `names` numbers the relations."""

    step: Step
    plan: Supersteps
    names: tuple[str, ...]
    tasks: int
    options: Mapping[str, Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        lanes = lanes_of(self.tasks)
        given: list[tuple[str, Any]] = []
        for batch in batches:
            for number, owner, block in zip(*(c.to_pylist() for c in batch.columns[1:]), strict=True):
                if owner == MISTAKE and number != NOTHING:
                    yield _left(lanes[0], number, 0, block, "mistakes")
                    return
                if number != NOTHING:
                    given.append((self.names[number], block))
        rank, homes = context.partitionId(), self.plan.homes
        try:
            pieces, figures = superstep.evaluated(self.step, homes, given, rank, self.tasks, **self.options)
        except DlogError as error:
            yield _left(lanes[0], NOTHING, 0, pickle.dumps(error.diagnostics), "mistakes")
            return
        numbers = {name: number for number, name in enumerate(self.names)}
        for kind, name, owner, block in pieces:
            yield _left(lanes[owner], numbers[name], owner, block, kind)
        for name, (rows, mark) in figures.items():
            yield _left(lanes[0], numbers[name], rank, None, "figures", rows, mark)


def _left(lane: int, relation: int, owner: int, block: bytes | None, kind: str, rows: int = 0, mark: int = 0) -> pa.RecordBatch:
    import pyarrow as pa

    signed = mark - 2**64 if mark >= 2**63 else mark
    values = (lane, relation, owner, block, KINDS[kind], rows, signed)
    types = (pa.int32(), pa.int32(), pa.int32(), pa.binary(), pa.int32(), pa.int64(), pa.int64())
    return pa.RecordBatch.from_arrays([pa.array([v], t) for v, t in zip(values, types, strict=True)], list(_COLUMNS))


@dataclass(frozen=True)
class Rows:
    """For `mapInArrow`: blocks of the outputs to their rows in the slots. `relations` are theirs by number."""

    relations: Mapping[int, tuple[int, Relation]]
    types: Mapping[str, Type]
    slots: Slots

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from dlog.engine.embedded.records import RecordTables
        from dlog.engine.embedded.relation import Memory
        from dlog.engine.shards.blocks import rows_of
        from dlog.engine.spark.arrow import ArrowCodec
        from dlog.engine.spark.slots import in_slots
        from dlog.engine.values.symbols import SymbolTable

        for batch in batches:
            for number, block in zip(batch.column("relation").to_pylist(), batch.column("block").to_pylist(), strict=True):
                tag, relation = self.relations[number]
                symbols, records = SymbolTable(), RecordTables(Memory(None))
                rows = rows_of(block, relation, self.types, symbols, records)
                codec = ArrowCodec(self.types, symbols, records)
                for columns in codec.write(relation, superstep.table_of(relation, [rows])):
                    yield in_slots(self.slots, tag, columns)


class JobStage:
    """See `dlog.engine.shards.superstep.Stage`: every superstep is a job."""

    def __init__(
        self, spark: SparkSession, program: Program, plan: Supersteps, tasks: int, options: Mapping[str, Any]
    ) -> None:
        self.spark = spark
        self.program = program
        self.plan = plan
        self.tasks = tasks
        self.options = options
        self.names = tuple(plan.program.relations)
        self.supersteps = 0

    def superstep(self, step: Step, number: int, lots: Sequence[Lot]) -> tuple[DataFrame, Figures]:
        from pyspark.sql import functions as F

        self.supersteps += 1
        parts = [self.spark.sql(_NO_BLOCK), *(self.blocks(lot) for lot in lots)]
        rows = reduce(lambda a, b: a.unionAll(b), [p.select("lane", "relation", "owner", "block") for p in parts])
        work = Evaluation(step, self.plan, self.names, self.tasks, self.options)
        made = rows.repartition(self.tasks, "lane").mapInArrow(work, LEFT)
        self.spark.sparkContext.setJobDescription(self._description(step, number))
        left = made.localCheckpoint(eager=True)
        said = left.where(F.col("kind") >= KINDS["figures"]).select("relation", "block", "kind", "rows", "mark").collect()
        if mistakes := [row for row in said if row.kind == KINDS["mistakes"]]:
            raise self._error(mistakes)
        figures = ({self.names[row.relation]: (row.rows, row.mark)} for row in said)
        return left, superstep.together_of(figures)

    def blocks(self, lot: Lot) -> DataFrame:
        from pyspark.sql import functions as F

        numbers = [self.names.index(name) for name in lot.relations]
        return lot.of.where((F.col("kind") == KINDS[lot.kind]) & F.col("relation").isin(numbers))

    def _description(self, step: Step, number: int) -> str:
        derived = [name for name in step.relations if any(name in s.relations and s.rules for s in self.plan.program.strata)]
        return f"dlog: stratum {' '.join(derived)}, superstep {number}" if derived else "dlog: inputs"

    def _error(self, rows: Sequence[Any]) -> DlogError:
        from dlog.engine.spark.sources import at_input

        given = {held: name for name, every in self.plan.held.items() for held in every}
        listed = []
        for row in rows:
            error = DlogError(pickle.loads(row.block))
            listed.append(error if row.relation == NOTHING else at_input(error, given[self.names[row.relation]], self.program))
        mistakes: list[Diagnostic] = []
        for error in listed:
            mistakes += [d for d in error.diagnostics if d not in mistakes]
        return DlogError(mistakes)


def given_blocks(
    spark: SparkSession, program: Program, plan: Supersteps, inputs: Mapping[str, DataFrame], tasks: int
) -> DataFrame:
    """All inputs and facts as blocks that are kept."""
    numbers = {name: number for number, name in enumerate(plan.program.relations)}
    lanes = lanes_of(tasks)
    facts = [(lanes[o], numbers[n], o, bytearray(b), 0) for n, o, b in superstep.blocks_of_facts(program, plan, tasks)]
    parts = [spark.sql(_NO_BLOCK)]
    if facts:
        parts.append(spark.createDataFrame(facts, f"{SCHEMA}, kind int"))
    for name, data in inputs.items():
        relation = program.relations[name]
        targets = tuple((numbers[held], plan.homes[held]) for held in plan.held[name])
        rows = as_declared(relation, data).mapInArrow(Cut(targets, relation, program.types, tasks), SCHEMA)
        parts.append(rows.selectExpr("*", "0 kind"))
    return reduce(lambda a, b: a.unionAll(b), parts)


@dataclass(frozen=True)
class Result:
    """Rows of the outputs as they share slots, cached; how many rows each relation has, seconds, supersteps."""

    cached: DataFrame
    rows: dict[str, int]
    seconds: float
    supersteps: int


def evaluate(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, DataFrame],
    written: Written,
    tasks: int,
    options: Mapping[str, Any],
) -> Result:
    """Evaluates a program; inputs have columns. Raises DlogError, and what Spark raises."""
    started = time.perf_counter()
    plan = supersteps(program, tasks)
    if plan.alone:
        tasks = 1
    stage = JobStage(spark, program, plan, tasks, options)
    given = given_blocks(spark, program, plan, inputs, tasks).persist()
    try:
        lots, figures = superstep.run(plan, given, stage)
        shares = {n: tasks if plan.homes[plan.held[n][0]] == EVERYWHERE else 1 for n in program.relations}
        rows = {n: figures[plan.held[n][0]][0] // shares[n] for n in program.relations}
        cached = _rows(stage, lots, program, written).persist()
        cached.count()
    finally:
        given.unpersist()
        spark.sparkContext.setJobDescription(None)  # type: ignore[arg-type]
    return Result(cached, rows, time.perf_counter() - started, stage.supersteps)


def _rows(stage: JobStage, lots: Mapping[str, Lot], program: Program, written: Written) -> DataFrame:
    from pyspark.sql import functions as F

    plan = stage.plan
    relations, parts = {}, []
    for tag, name in enumerate(written.outputs):
        held = plan.held[name][0]
        if program.relations[name].arity:
            relations[stage.names.index(held)] = tag, program.relations[name]
            found = stage.blocks(lots[held])
            once = found.where(F.col("owner") == 0) if plan.homes[held] == EVERYWHERE else found
            parts.append(once.select("relation", "block"))
    if not parts:
        return stage.spark.createDataFrame([], written.output_slots.schema)
    blocks = reduce(lambda a, b: a.unionAll(b), parts)
    return blocks.mapInArrow(Rows(relations, program.types, written.output_slots), written.output_slots.schema)


def written_as(program: Program, outputs: Sequence[str]) -> Written:
    return Written(tuple(outputs), share_slots([program.relations[n] for n in outputs]))
