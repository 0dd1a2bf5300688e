"""The task of the barrier stage: one worker, from its rows of the input to its rows of the output."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Program
from dlog.engine.spark.tagged_rows import Slots

if TYPE_CHECKING:
    import pyarrow as pa

    from dlog.engine.cluster.executor import ShardExecutor
    from dlog.engine.runtime.static.executor import Progress
    from dlog.engine.spark.arrow import ArrowCodec
    from dlog.engine.spark.rendezvous import Meeting, Visitor
    from dlog.engine.spark.transport import PeerTransport

REPORT_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort of a worker in a run: seconds until it had its rows, seconds of evaluation on the clock and of the processor,
    exchanges, rows sent to other workers; how many heavy values of which relations were spread; the processor's seconds of each
    step between two exchanges; and the rows that came for each input."""

    taking: float
    seconds: float
    processor: float
    steps: int
    rows_sent: int
    spread: Mapping[str, int] = field(default_factory=dict)
    by_step: Sequence[float] = ()
    input_rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """All that the workers need to know; the same for each. `inputs` and `outputs` are names of relations; `folder` is where
    each worker writes its share of the outputs as Parquet, or None where they go through Spark."""

    program: Program
    meeting: Meeting
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    output_slots: Slots
    folder: str | None
    options: Mapping[str, Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Runs inside Spark: takes the partition's rows, yields the worker's."""
        from pyspark import BarrierTaskContext

        from dlog.engine.spark.gc_tuning import spare
        from dlog.engine.spark.rendezvous import Visitor

        context = BarrierTaskContext.get()
        visitor = Visitor(self.meeting, context.partitionId(), context.taskAttemptId())
        try:
            yield from _Worker(self, visitor, context).run(batches)
        finally:
            visitor.close()
        spare()


class _Worker:
    def __init__(self, task: Task, visitor: Visitor, context: Any) -> None:
        self.task = task
        self.visitor = visitor
        self.context = context
        self.rank: int = context.partitionId()
        self.size = task.meeting.size
        self.reported = 0.0, 0
        self.input_rows: Counter[str] = Counter()

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A mistake of the user's goes to the driver as it is, and the task ends: trying again would not help."""
        from dlog.engine.cluster.worker_group import PeerFailed
        from dlog.grammar.diagnostics import DlogError

        self._need_all()
        try:
            executor, codec = self._evaluate(batches)
        except DlogError as error:
            self.visitor.tell("failed", error.diagnostics)
            return
        except PeerFailed:
            self.visitor.tell("stopped", None)
            return
        self.visitor.tell("rows", {name: executor.rows(name) for name in self.task.program.relations})
        if self.task.folder is None:
            yield from self._rows(executor, codec)
        else:
            self._write(executor, codec, Path(self.task.folder))

    def _need_all(self) -> None:
        """Fails where not all workers run again: of rows that died with an executor Spark begins with the workers that made
        them, but none derives its share without the others. A task that fails has Spark start all of them again."""
        if len(self.context.getTaskInfos()) < self.size:
            raise RuntimeError("an executor was lost with rows of this result, and all workers have to derive them again")

    def _evaluate(self, batches: Iterator[pa.RecordBatch]) -> tuple[ShardExecutor, ArrowCodec]:
        from dlog.engine.cluster.executor import ShardExecutor
        from dlog.engine.cluster.worker_group import WorkerGroup
        from dlog.engine.spark.arrow import ArrowCodec
        from dlog.engine.spark.transport import PeerTransport

        begun = time.perf_counter()
        host = self.task.meeting.host([info.address for info in self.context.getTaskInfos()])
        transport = PeerTransport(self.rank, self.size, self.task.meeting.secrets, host)
        try:
            worker_group = WorkerGroup(self._connected(transport))
            executor = ShardExecutor(self.task.program, worker_group, on_progress=self._report, **self.task.options)
            codec = ArrowCodec(self.task.program.types, executor.symbols, executor.records)
            self._load(executor, batches)
            worker_group.take_stock()
            before, started, processor = len(worker_group.step_seconds), time.perf_counter(), time.process_time()
            executor.run()
            seconds, processor = time.perf_counter() - started, time.process_time() - processor
            worker_group.take_stock()
            spread = {name: len(heavy) for name, heavy in executor.split.items()}
            taken = started - begun, seconds, processor
            effort = Effort(
                *taken,
                worker_group.steps,
                executor.row_exchange.rows_sent,
                spread,
                worker_group.step_seconds[before:],
                dict(self.input_rows),
            )
            self.visitor.tell("evaluated", effort)
        finally:
            transport.close()
        return executor, codec

    def _connected(self, transport: PeerTransport) -> PeerTransport:
        if self.size > 1:
            transport.connect(self.visitor.meet(transport.address, self.context.stageId()))
        return transport

    def _report(self, progress: Progress) -> None:
        """Now and then, and when a stratum begins."""
        at, stratum = self.reported
        if progress.stratum > stratum or time.perf_counter() - at > REPORT_SECONDS:
            self.reported = time.perf_counter(), progress.stratum
            self.visitor.tell("progress", progress)

    # --------------------------------------------------------------------------------------------------------------- in

    def _load(self, executor: ShardExecutor, batches: Iterator[pa.RecordBatch]) -> None:
        """Mistakes in the rows are told to the other workers first: they are about to wait for this one."""
        from dlog.engine.spark.cutting import MISTAKE, NOTHING
        from dlog.engine.spark.sources import at_input
        from dlog.grammar.diagnostics import DlogError

        for batch in batches:
            _, numbers, owners, blocks = batch.columns
            for number, owner, block in zip(numbers.to_pylist(), owners.to_pylist(), blocks, strict=True):
                if number == NOTHING:
                    continue
                name = self.task.inputs[number]
                if owner == MISTAKE:
                    executor.worker_group.fail()
                    raise at_input(DlogError(pickle.loads(block.as_buffer())), name, self.task.program)
                self.input_rows[name] += executor.load_block(name, block.as_buffer(), owner)

    # -------------------------------------------------------------------------------------------------------------- out

    def _rows(self, executor: ShardExecutor, codec: ArrowCodec) -> Iterator[pa.RecordBatch]:
        """All rows of the outputs in the shared slots."""
        from dlog.engine.spark.tagged_rows import in_slots

        slots = self.task.output_slots
        for number, name in enumerate(self.task.outputs):
            relation = self.task.program.relations[name]
            for columns in codec.write(relation, executor.table(name, copy=False)) if relation.arity else ():
                yield in_slots(slots, number, columns)

    def _write(self, executor: ShardExecutor, codec: ArrowCodec, folder: Path) -> None:
        """One Parquet file per output relation that has rows here, whole or not there at all."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        from dlog.engine.spark.arrow import schema_of

        for name in self.task.outputs:
            relation = self.task.program.relations[name]
            if not executor.rows(name) or not relation.arity:
                continue
            schema = schema_of(relation)
            target = folder / name / f"part-{self.rank:05}.parquet"
            beside = target.with_name(f".{target.name}-{self.context.taskAttemptId()}")
            options = {"compression": "lz4", "use_dictionary": False, "write_statistics": False}
            with pq.ParquetWriter(beside.absolute(), schema, **options) as writer:
                for columns in codec.write(relation, executor.table(name, copy=False)):
                    writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            beside.rename(target)
