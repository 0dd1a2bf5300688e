"""A session's engine on Spark."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dlog.engine.cluster.session_worker import DeliveredBlock
from dlog.engine.cluster.sharded_engine import ShardedRounds
from dlog.engine.ir.rules import Program, Relation
from dlog.engine.plan.exchange.numbering import refuse_printing
from dlog.engine.plan.incremental.layers import Part
from dlog.engine.rounds_engine import Frames, Image, RoundsEngine, StartingPoint
from dlog.engine.runtime.incremental.engines.layered import Layered
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.spark import application
from dlog.engine.spark.error_translation import failures, reason_of
from dlog.engine.spark.inputs import as_declared
from dlog.engine.spark.resident_workers import SparkResidentWorkers, slots_again
from dlog.engine.spark.tagged_rows import sql_type
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class SparkRounds(ShardedRounds):
    """`ShardedRounds` whose workers are Spark's, and whose relations are DataFrames too. Rows that are in DataFrames go to them
    from the tasks that read these, without the driver."""

    resident_workers: SparkResidentWorkers

    def fitting(self, relation: Relation, rows: Any) -> DataFrame | None:
        """A DataFrame in the relation's columns and types."""
        if not (hasattr(rows, "sparkSession") and hasattr(rows, "mapInArrow")) or not relation.arity:
            return None
        return as_declared(relation, rows)

    def _received(self, frames: Frames) -> bool:
        blocks: dict[int, list[DeliveredBlock]] = {}
        for name, listed in frames.items():
            relation, feeds = self.program.relations[name], self.plan.feeds[name]
            for rows, diff in listed:
                for rank, feed, block in self.resident_workers.deliver(rows, relation, self.program.types, feeds):
                    blocks.setdefault(rank, []).append(DeliveredBlock(feed.part, feed.name, diff, block))
        replies = self.resident_workers.ask({rank: ("receive", (self.number, own)) for rank, own in blocks.items()})
        for reply in replies.values():
            if isinstance(reply, DlogError | InternalError):
                raise reply
        return True

    @property
    def elsewhere(self) -> bool:
        return True

    def saves(self, folder: Path) -> bool:
        """Tried where executors are processes of their own: whether all workers see what is written here. Spark would take some
        names for patterns."""
        if set(str(folder.absolute())) & set("*?[]{}\\"):
            return False
        return application.is_local(self.resident_workers.spark) or self.resident_workers.sees(folder)

    def save(self, relation: Relation, rows: DataFrame, folder: Path) -> int:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        self.resident_workers.ask({})  # raises where the workers are gone, perhaps with their application
        self.resident_workers.spark.sparkContext.setJobDescription(f"dlog: rows of {relation.name} to a session's state")
        seen = Observation()
        try:
            counted = rows.toDF(*_columns(relation)).observe(seen, F.count(F.lit(1)).alias("rows"))
            counted.write.parquet(_local(folder))
            return int(seen.get["rows"])
        except failures() as error:
            message = f"the rows for {relation.name} cannot be read or saved: {reason_of(error)}"
            raise DlogError(Diagnostic("spark-failed", message)) from error
        finally:
            self.resident_workers.spark.sparkContext.setJobDescription("")

    def saved(self, relation: Relation, files: Sequence[Path], without: Table | None = None) -> DataFrame:
        spark, names = self.resident_workers.spark, _columns(relation)
        kinds = zip(names, relation.attributes, strict=True)
        schema = ", ".join(f"{name} {sql_type(type)}" for name, (_, type) in kinds)
        rows = spark.read.schema(schema).parquet(*map(_local, files))
        if without is not None:
            named = ", ".join(f"`{n}` {sql_type(t)}" for n, t in relation.attributes)
            gone = spark.createDataFrame(self._as_arrow(relation, without), named).toDF(*names)
            rows = rows.join(gone, names, "left_anti")
        return rows

    def frame(self, relation: str) -> DataFrame:
        """The rows of a relation as of now: a snapshot that later rounds do not change. The workers write it to a folder of
        this machine where that is theirs too; else it passes through the driver."""
        spark, declared = self.resident_workers.spark, self.program.relations[relation]
        if not declared.arity:
            return spark.range(self.rows(relation)).select()
        schema = ", ".join(f"`{n}` {sql_type(t)}" for n, t in declared.attributes)
        if not application.is_local(spark):
            return spark.createDataFrame(self._arrow(relation), schema)
        folder = application.rows_folder()
        feed = self.plan.answers[relation]
        with self._lock:
            command = "write_rows", (self.number, feed.part, feed.name, str(folder))
            replies = self.resident_workers.ask(dict.fromkeys(self.holders(relation), command))
        for reply in replies.values():
            if isinstance(reply, DlogError | InternalError):
                raise reply
        return spark.read.schema(schema).parquet(str(folder))

    def _arrow(self, relation: str) -> pa.Table:
        return self._as_arrow(self.program.relations[relation], self.table(relation))

    def _as_arrow(self, relation: Relation, table: Table) -> pa.Table:
        import pyarrow as pa

        from dlog.engine.spark.arrow import ArrowCodec, schema_of

        codec = ArrowCodec(self.program.types, self.symbols, self.records)
        schema = schema_of(relation)
        pieces = [pa.Table.from_arrays(c, schema=schema) for c in codec.write(relation, table)]
        return pa.concat_tables(pieces) if pieces else schema.empty_table()


def _columns(relation: Relation) -> list[str]:
    """Names for the columns of a file: those of attributes may differ in nothing but their case."""
    return [f"c{number}" for number in range(relation.arity)]


def _local(path: Path) -> str:
    """A path of this machine's as Spark takes it, which knows no escapes."""
    return f"file://{path.absolute()}"


class SparkLayers(Layered):
    """See `dlog.engine.rounds_engine.RoundsEngine`. For programs some of whose relations rounds feed: those are with the
    driver, which gives the others to engines of parts, one after the other, that have their rows with the same workers."""

    here = False

    def __init__(
        self, program: Program, resident_workers: SparkResidentWorkers, old: RoundsEngine | StartingPoint | None = None
    ) -> None:
        self.resident_workers = resident_workers
        super().__init__(program, {}, old=old)

    def _part_engine(self, part: Part, start: StartingPoint) -> RoundsEngine:
        return SparkRounds(part.program, self.resident_workers, start)

    def _commit_part(self, engine: RoundsEngine, share: Mapping[str, Updates], frames: Frames | None, last: int) -> None:
        spark = cast("SparkRounds", engine)
        spark.round = max(spark.round, last - 1)  # frames are of the round behind its own
        spark.commit(share, frames)

    @property
    def elsewhere(self) -> bool:
        return True

    def _first(self) -> SparkRounds:
        """The part with all inputs."""
        return cast("SparkRounds", self._layers[0].engine)

    def fitting(self, relation: Relation, rows: Any) -> DataFrame | None:
        return self._first().fitting(relation, rows)

    def saves(self, folder: Path) -> bool:
        return self._first().saves(folder)

    def save(self, relation: Relation, rows: DataFrame, folder: Path) -> int:
        return self._first().save(relation, rows, folder)

    def saved(self, relation: Relation, files: Sequence[Path], without: Table | None = None) -> DataFrame:
        return self._first().saved(relation, files, without)

    def frame(self, relation: str) -> DataFrame:
        return self._of(relation, lambda engine: cast("SparkRounds", engine).frame(relation))


class SparkMaker:
    """Makes the engines of one session; they share its workers, which go home with `close`."""

    elsewhere = True

    def __init__(self, spark: SparkSession | None = None, workers: int | None = None) -> None:
        self._spark = spark
        self._workers = workers
        self._resident_workers: list[SparkResidentWorkers] = []
        """The one at work, if there is any."""
        # At the end of the process too: sockets of threads that Python has stopped by then are never closed, and ZeroMQ waits.
        self._go_home = weakref.finalize(self, _close, self._resident_workers)

    def __call__(self, program: Program, *, old: RoundsEngine | StartingPoint | None = None, **limits: Any) -> RoundsEngine:
        """The engine for a program. `old` is the one that its earlier form had, or what that left behind. Raises DlogError
        where there is no Spark, or too few slots."""
        refuse_printing(program)
        if not self._resident_workers or self.has_lost_workers:
            spark = self._spark or application.start()
            application.need_context(spark)
            for lost in self._resident_workers:
                lost.close()
                slots_again(spark, lost.size)
            self._resident_workers[:] = [SparkResidentWorkers(spark, self._workers, **limits)]
        if program.timed:
            return SparkLayers(program, self._resident_workers[0], old)
        return SparkRounds(program, self._resident_workers[0], old)

    @property
    def has_lost_workers(self) -> bool:
        """Whether there were workers, and there will be others when an engine is made."""
        return bool(self._resident_workers) and self._resident_workers[0].is_gone

    def resumed(self, program: Program, image: Image, *, old: StartingPoint, **limits: Any) -> None:
        """Workers keep no images."""
        return

    def in_one_thread(self) -> None:
        return

    def close(self) -> None:
        """A session that is not closed does this when nobody has it any more, or the process ends."""
        self._go_home()


class SharedWorkers(SparkMaker):
    """The same for several sessions at once: they have their rows with the same workers, which stay when one of them is closed,
    until `end`. So they take no more slots than one session."""

    def __init__(self, spark: SparkSession, workers: int | None = None) -> None:
        super().__init__(spark, workers)
        self._common = StartingPoint(SymbolTable(), RecordTables(Memory(None)), 0)
        """Workers know one driver, and what it means by ids."""

    def __call__(self, program: Program, *, old: RoundsEngine | StartingPoint | None = None, **limits: Any) -> RoundsEngine:
        return super().__call__(program, old=old or self._common, **limits)

    def close(self) -> None:
        """A session is at its end; others may not be."""

    def end(self) -> None:
        """Sends the workers home: none of the sessions can be used any more."""
        super().close()


def _close(groups: Sequence[SparkResidentWorkers]) -> None:
    for resident_workers in groups:
        resident_workers.close()
