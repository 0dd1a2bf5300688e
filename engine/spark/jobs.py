"""A run without a barrier stage: a job for each superstep, and Spark's shuffle between them
(`dlog.engine.plan.exchange.supersteps`).

For places where Spark refuses barrier stages (dynamic allocation), and for more tasks than run at once. A task that is lost is
run again, by itself; rows are in Spark's hands between jobs, as blocks. Tasks keep nothing: what a relation has passes through
each job of a recursion, but is not derived again.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from dlog.dataclass import dataclass
from dlog.engine.cluster import superstep
from dlog.engine.cluster.superstep import RowCounts, TaskRows
from dlog.engine.ir.rules import Program, Relation, Type
from dlog.engine.plan.exchange.places import EVERYWHERE
from dlog.engine.plan.exchange.supersteps import Superstep, Supersteps, supersteps
from dlog.engine.spark.application import in_tasks
from dlog.engine.spark.cutting import MISTAKE, NOTHING, SCHEMA, Cut, lanes_of
from dlog.engine.spark.gc_tuning import spare
from dlog.engine.spark.inputs import as_declared
from dlog.engine.spark.tagged_rows import Slots, share_slots
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

KINDS = {"kept": 0, "sent": 1, "counts": 2, "mistakes": 3}
LEFT = f"{SCHEMA}, kind int, rows bigint"
"""What a superstep leaves: blocks that are kept or sent, and of each task how many rows a relation has, or its mistakes."""
_COLUMNS = ("lane", "relation", "owner", "block", "kind", "rows")
_NO_BLOCK = f"select 0 lane, {NOTHING} relation, {NOTHING} owner, cast(null as binary) block, 0 kind, 0L rows"
_GIVEN = ("lane", "relation", "owner", "block", "kind")


@dataclass(frozen=True)
class OutputSlots:
    """The relations to be put out, and their slots."""

    outputs: tuple[str, ...]
    output_slots: Slots
    folder: None = None


@dataclass(frozen=True)
class Evaluation:
    """For `mapInArrow`: a task's blocks and their kinds to what it leaves (`LEFT`). `names` numbers the relations."""

    step: Superstep
    number: int
    plan: Supersteps
    names: tuple[str, ...]
    tasks: int
    options: Mapping[str, Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        lanes = lanes_of(self.tasks)
        given: list[superstep.InputBlock] = []
        for batch in batches:
            for relation, owner, block, kind in zip(*(c.to_pylist() for c in batch.columns[1:]), strict=True):
                if owner == MISTAKE and relation != NOTHING:
                    yield _output_batch(lanes[0], relation, 0, block, "mistakes")
                    return
                if relation != NOTHING:
                    given.append(("sent" if kind == KINDS["sent"] else "kept", self.names[relation], block))
        rank, homes = context.partitionId(), self.plan.homes
        try:
            pieces, counts = superstep.evaluated(self.step, self.number, homes, given, rank, self.tasks, **self.options)
        except DlogError as error:
            yield _output_batch(lanes[0], NOTHING, 0, pickle.dumps(error.diagnostics), "mistakes")
            return
        numbers = {name: number for number, name in enumerate(self.names)}
        for kept_or_sent, name, owner, block in pieces:
            yield _output_batch(lanes[owner], numbers[name], owner, block, kept_or_sent)
        for name, rows in counts.items():
            yield _output_batch(lanes[0], numbers[name], rank, None, "counts", rows)
        spare()


def _output_batch(lane: int, relation: int, owner: int, block: bytes | None, kind: str, rows: int = 0) -> pa.RecordBatch:
    import pyarrow as pa

    values = (lane, relation, owner, block, KINDS[kind], rows)
    types = (pa.int32(), pa.int32(), pa.int32(), pa.binary(), pa.int32(), pa.int64())
    return pa.RecordBatch.from_arrays([pa.array([v], t) for v, t in zip(values, types, strict=True)], list(_COLUMNS))


@dataclass(frozen=True)
class OutputRows:
    """For `mapInArrow`: blocks of the outputs to their rows in the slots. `relations` are theirs by number."""

    relations: Mapping[int, tuple[int, Relation]]
    types: Mapping[str, Type]
    slots: Slots

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from dlog.engine.cluster.blocks import rows_of
        from dlog.engine.runtime.storage.memory import Memory
        from dlog.engine.runtime.storage.records import RecordTables
        from dlog.engine.spark.arrow import ArrowCodec
        from dlog.engine.spark.tagged_rows import in_slots
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
    """See `dlog.engine.cluster.superstep.Stage`: every superstep is a job."""

    def __init__(self, spark: SparkSession, program: Program, plan: Supersteps, tasks: int, options: Mapping[str, Any]) -> None:
        self.spark = spark
        self.program = program
        self.plan = plan
        self.tasks = tasks
        self.options = options
        self.names = (*plan.program.relations, *(out for step in plan.steps for out in step.outgoing))
        self.supersteps = 0
        self.rows_sent = 0

    def superstep(self, step: Superstep, number: int, inputs: Sequence[TaskRows]) -> tuple[DataFrame, RowCounts]:
        self.supersteps += 1
        work = Evaluation(step, number, self.plan, self.names, self.tasks, self.options)
        given = self.blocks(inputs).select(*_GIVEN).repartition(self.tasks, "lane")
        made = in_tasks(given, work, LEFT)
        self.spark.sparkContext.setJobDescription(self._description(step, number))
        left = made.localCheckpoint(eager=False)
        # One job computes all partitions, which stay, and reports the counts.
        said = left.where(f"kind >= {KINDS['counts']}").collect()
        if mistakes := [row for row in said if row.kind == KINDS["mistakes"]]:
            raise self._error(mistakes)
        counts = superstep.together_of((self.names[row.relation], row.rows) for row in said)
        self.rows_sent += sum(counts.get(out, 0) * self.shares(name) for out, name in step.outgoing.items())
        return left, counts

    def shares(self, name: str) -> int:
        """How many tasks have a row of a relation."""
        return self.tasks if self.plan.homes[name] == EVERYWHERE else 1

    def blocks(self, inputs: Iterable[TaskRows]) -> DataFrame:
        """The blocks of these rows; what a superstep left is read once for all that it left."""
        wanted: dict[int, tuple[DataFrame, list[str]]] = {}
        for rows in inputs:
            numbers = ", ".join(str(self.names.index(name)) for name in rows.relations)
            _, conditions = wanted.setdefault(id(rows.of), (rows.of, []))
            conditions.append(f"kind = {KINDS[rows.kind]} and relation in ({numbers})")
        parts = [frame.where(" or ".join(conditions)) for frame, conditions in wanted.values()]
        return reduce(lambda a, b: a.unionAll(b), parts)

    def _description(self, step: Superstep, number: int) -> str:
        heads = (rule.head.relation for s in step.program.strata for rule in s.rules)
        named = dict.fromkeys(step.outgoing.get(name, name) for name in heads) if number == 1 else step.growing
        return f"dlog: {' '.join(named)}, superstep {number}" if named else "dlog: rows that arrived"

    def _error(self, rows: Sequence[Any]) -> DlogError:
        from dlog.engine.spark.sources import at_input

        given = {held: name for name, every in self.plan.stored_names.items() for held in every}
        listed = []
        for row in rows:
            error = DlogError(pickle.loads(row.block))
            listed.append(error if row.relation == NOTHING else at_input(error, given[self.names[row.relation]], self.program))
        mistakes: list[Diagnostic] = []
        for error in listed:
            mistakes += [d for d in error.diagnostics if d not in mistakes]
        return DlogError(mistakes)


def input_blocks(
    spark: SparkSession, program: Program, plan: Supersteps, inputs: Mapping[str, DataFrame], tasks: int
) -> DataFrame:
    """All inputs and facts as blocks that are kept."""
    numbers = {name: number for number, name in enumerate(plan.program.relations)}
    lanes = lanes_of(tasks)
    facts = [(lanes[o], numbers[n], o, bytearray(b), 0, 0) for n, o, b in superstep.blocks_of_facts(program, plan, tasks)]
    parts = [spark.sql(_NO_BLOCK)]
    if facts:
        parts.append(spark.createDataFrame(facts, LEFT))
    for name, data in inputs.items():
        relation = program.relations[name]
        targets = tuple((numbers[held], plan.homes[held]) for held in plan.stored_names[name])
        rows = in_tasks(as_declared(relation, data), Cut(targets, relation, program.types, tasks), SCHEMA)
        parts.append(rows.selectExpr("*", "0 kind", "0L rows"))
    return reduce(lambda a, b: a.unionAll(b), parts)


@dataclass(frozen=True)
class Result:
    """Rows of the outputs as they share slots, cached; how many rows each relation has, seconds, supersteps, rows that
    went from one to the next."""

    cached: DataFrame
    rows: dict[str, int]
    seconds: float
    supersteps: int
    rows_sent: int


def evaluate(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, DataFrame],
    written: OutputSlots,
    tasks: int,
    options: Mapping[str, Any],
) -> Result:
    """Evaluates a program; inputs have columns. Raises DlogError, and what Spark raises."""
    started = time.perf_counter()
    plan = supersteps(program, tasks)
    if plan.alone:
        tasks = 1
    stage = JobStage(spark, program, plan, tasks, options)
    given = input_blocks(spark, program, plan, inputs, tasks).persist()
    try:
        held_rows, counts = superstep.run(plan, given, stage)
        rows = {n: counts[plan.stored_names[n][0]] // stage.shares(plan.stored_names[n][0]) for n in program.relations}
        cached = _rows(stage, held_rows, program, written).persist()
        cached.count()
    finally:
        given.unpersist()
        spark.sparkContext.setJobDescription(None)
    return Result(cached, rows, time.perf_counter() - started, stage.supersteps, stage.rows_sent)


def _rows(stage: JobStage, held_rows: Mapping[str, TaskRows], program: Program, written: OutputSlots) -> DataFrame:
    plan = stage.plan
    relations, parts = {}, []
    for tag, name in enumerate(written.outputs):
        held = plan.stored_names[name][0]
        if program.relations[name].arity:
            relations[stage.names.index(held)] = tag, program.relations[name]
            found = stage.blocks([held_rows[held]])
            once = found.where("owner = 0") if plan.homes[held] == EVERYWHERE else found
            parts.append(once.select("relation", "block"))
    if not parts:
        return stage.spark.createDataFrame([], written.output_slots.schema)
    blocks = reduce(lambda a, b: a.unionAll(b), parts)
    return in_tasks(blocks, OutputRows(relations, program.types, written.output_slots), written.output_slots.schema)


def output_slots(program: Program, outputs: Sequence[str]) -> OutputSlots:
    return OutputSlots(tuple(outputs), share_slots([program.relations[n] for n in outputs]))
