"""One run of a program on Spark: DataFrames in, DataFrames out, a barrier stage between."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlog.engine.ir.rules import Program
from dlog.engine.plan.exchange.numbering import counts, refuse_counting, refuse_for_workers, refuse_printing
from dlog.engine.spark import application, jobs, shared_memory
from dlog.engine.spark.cutting import TOO_HEAVY
from dlog.engine.spark.error_translation import advice, failures, reason_of
from dlog.engine.spark.inputs import Arriving, in_blocks, unweighed
from dlog.engine.spark.jobs import OutputSlots
from dlog.engine.spark.tagged_rows import TAG, share_slots, sql_type
from dlog.engine.spark.task import Effort, Task
from dlog.engine.spark.ui_progress import Timeline
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError
from dlog.removal import remove_tree

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from dlog.engine.runtime.static.executor import Progress

OnProgress = Callable[[int, "Progress"], None]
DESCRIPTION = 400
"""Most characters of a job's description."""
REPORTS_SECONDS = 60.0
"""Patience for what is a matter of milliseconds."""


class Outcome:
    """The workers' reports, and their rows as DataFrames."""

    def __init__(self, spark: SparkSession, program: Program, task: Task | OutputSlots, workers: int) -> None:
        self.spark = spark
        self.program = program
        self.task = task
        self.workers = workers
        self.rows: dict[str, int] = {}
        """Of every relation, all workers together."""
        self.efforts: list[Effort] = []
        """What each worker's part took, by rank."""
        self.cached: DataFrame | None = None

    @property
    def seconds(self) -> float:
        """The seconds of evaluation, of the slowest worker."""
        return max((effort.seconds for effort in self.efforts), default=0.0)

    @property
    def longest_way(self) -> float:
        """Seconds of the processor from one exchange to the next, of the worker that took longest each time: what evaluation
        takes on the clock where every worker has a core of its own and messages take no time."""
        return sum(map(max, *(effort.by_step for effort in self.efforts))) if self.efforts[1:] else self.processor

    @property
    def processor(self) -> float:
        """Seconds of the processor in evaluation: the busiest worker's."""
        return max((effort.processor for effort in self.efforts), default=0.0)

    @property
    def steps(self) -> int:
        """Exchanges among the workers."""
        return max((effort.steps for effort in self.efforts), default=0)

    @property
    def rows_sent(self) -> int:
        """Rows that one worker sent to another."""
        return sum(effort.rows_sent for effort in self.efforts)

    @property
    def input_rows(self) -> Counter[str]:
        """The rows that came for each input, repeated ones too."""
        return sum((Counter(effort.input_rows) for effort in self.efforts), Counter())

    def frame(self, name: str) -> DataFrame:
        """A relation's rows; its columns are named as the attributes."""
        from pyspark.sql import functions as F

        relation = self.program.relations[name]
        if not relation.arity:
            return self.spark.range(self.rows.get(name, 0)).select()
        schema = ", ".join(f"`{n}` {sql_type(t)}" for n, t in relation.attributes)
        if self.task.folder is not None:
            return self.spark.read.schema(schema).parquet(str(Path(self.task.folder) / name))
        assert self.cached is not None
        number = self.task.outputs.index(name)
        slots = self.task.output_slots.columns[number]
        named = [F.col(s).alias(n) for s, (n, _) in zip(slots, relation.attributes, strict=True)]
        return self.cached.where(F.col(TAG) == number).select(*named)

    def arrow(self, name: str) -> pa.Table:
        """A relation's rows, all here: from the workers' files where they wrote files."""
        from dlog.engine.spark.arrow import schema_of

        relation = self.program.relations[name]
        if self.task.folder is None or not relation.arity:
            return self.frame(name).toArrow()
        import pyarrow as pa

        from dlog.engine.formats import parquet

        files = sorted((Path(self.task.folder) / name).glob("part-*.parquet"))
        return pa.concat_tables([schema_of(relation).empty_table(), *map(parquet.read, files)])

    def release(self) -> None:
        """Gives back what the rows take; the DataFrames must not be used afterwards."""
        if self.cached is not None:
            self.cached.unpersist()
        if self.task.folder is not None:
            with suppress(OSError):
                remove_tree(self.task.folder)


class _Reports:
    """The workers' reports to the driver while the stage runs. The rendezvous hears them on its own thread, the last ones
    perhaps after Spark says that the stage is done."""

    def __init__(self, workers: int, *on_progress: OnProgress) -> None:
        self.mistakes: list[Diagnostic] = []
        self.rows: dict[int, dict[str, int]] = {}
        self.evaluated: dict[int, Effort] = {}
        self._workers = workers
        self._on_progress = on_progress
        self._ended: set[int] = set()
        self._complete = threading.Event()

    def hear(self, rank: int, kind: str, content: Any) -> None:
        match kind:
            case "failed":
                self.mistakes += [d for d in content if d not in self.mistakes]
            case "rows":
                self.rows[rank] = content
            case "evaluated":
                self.evaluated[rank] = content
            case "progress":
                for hear in self._on_progress:
                    hear(rank, content)
            case "stopped":
                pass
            case _:
                raise InternalError("spark", f"a worker says {kind}")
        if kind in ("failed", "rows", "stopped"):
            self._ended.add(rank)
        if len(self._ended) == self._workers:
            self._complete.set()

    def wait(self) -> None:
        """Waits until every worker has reported how it ended; the reports are on their way when the stage is done."""
        if not self._complete.wait(REPORTS_SECONDS):
            lacking = self._workers - len(self._ended)
            raise DlogError(Diagnostic("spark-failed", f"{lacking} of {self._workers} workers did not tell how they ended"))


def run(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, DataFrame],
    outputs: Sequence[str],
    *,
    workers: int | None = None,
    options: Mapping[str, Any] | None = None,
    on_progress: OnProgress | None = None,
    strategy: str = "auto",
) -> Outcome:
    """Evaluates a program; returns when all is computed and the outputs are stored.

    Parameters
    ----------
    inputs
        Rows of relations; others have the facts of the program's text.
    outputs
        The relations whose rows are wanted.
    workers
        Default: as many as tasks can run at once, beside the workers of sessions.
    options
        For each worker's `ShardExecutor`: `memory`, `everywhere`; without a barrier stage `memory` only.
    strategy
        "barrier", a stage of workers that exchange rows; "jobs", one job after the other (`dlog.engine.spark.jobs`); "auto",
        the first unless Spark would refuse it.

    Raises
    ------
    DlogError
        The program's data is wrong, or Spark cannot run the stage.
    """
    refuse_printing(program)
    application.need_context(spark)
    if strategy == "jobs" or (strategy == "auto" and application.refuses_barriers(spark)):
        refuse_counting(program)
        return _in_jobs(spark, program, inputs, outputs, workers or max(application.slots(spark), 1), dict(options or {}))
    workers = _workers(spark, workers or (1 if counts(program) else None))
    if workers > 1:
        refuse_for_workers(program)
    program, given = _without_columns(program, inputs)
    arriving = in_blocks(spark, program, given, workers)
    run_stage = partial(_in_stage, spark, program, tuple(given), outputs, workers, dict(options or {}), on_progress)
    try:
        return run_stage(arriving)
    except DlogError as error:
        if error.diagnostics[0].code != TOO_HEAVY:
            raise
    return run_stage(in_blocks(spark, program, given, workers, trusting=False))


def _in_stage(
    spark: SparkSession,
    program: Program,
    inputs: Sequence[str],
    outputs: Sequence[str],
    workers: int,
    options: dict[str, Any],
    on_progress: OnProgress | None,
    arriving: Arriving,
) -> Outcome:
    """`run` in a barrier stage, which inputs reach as blocks."""
    reports = _Reports(workers, Timeline(spark, program), *([] if on_progress is None else [on_progress]))
    relations = program.relations
    task = Task(
        program=program,
        meeting=application.rendezvous_of(spark).open(workers, reports.hear, partial(application.started_together, spark)),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        output_slots=share_slots([relations[n] for n in outputs]),
        folder=_folder(outputs) if application.is_local(spark) else None,
        options=options,
    )
    outcome = Outcome(spark, program, task, workers)
    made = application.in_tasks(arriving.blocks, task, task.output_slots.schema, barrier=True)
    try:
        with unweighed(spark, arriving.light):
            _execute(spark, made, outcome, reports)
    except BaseException:
        outcome.release()
        raise
    outcome.rows = {n: sum(shard[n] for shard in reports.rows.values()) for n in relations if reports.rows}
    outcome.efforts = [effort for _, effort in sorted(reports.evaluated.items())]
    return outcome


def _in_jobs(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, DataFrame],
    outputs: Sequence[str],
    tasks: int,
    options: dict[str, Any],
) -> Outcome:
    """`run` without a barrier stage."""
    program, given = _without_columns(program, inputs)
    written = jobs.output_slots(program, outputs)
    try:
        result = jobs.evaluate(spark, program, given, written, tasks, options)
    except failures() as error:
        raise _refused(error) from error
    outcome = Outcome(spark, program, written, tasks)
    outcome.cached, outcome.rows = result.cached, result.rows
    outcome.efforts = [Effort(0.0, result.seconds, 0.0, result.supersteps, result.rows_sent)]
    return outcome


def _without_columns(program: Program, inputs: Mapping[str, DataFrame]) -> tuple[Program, dict[str, DataFrame]]:
    """Inputs without columns become facts of the program: whether they hold."""
    given = {name: data for name, data in inputs.items() if program.relations[name].arity}
    hold = [name for name in inputs if name not in given and inputs[name].limit(1).count()]
    return replace(program, facts={**program.facts, **dict.fromkeys(hold, ((),))}), given


def _workers(spark: SparkSession, wanted: int | None) -> int:
    """Raises DlogError where Spark would wait for slots that do not come."""
    there = application.free_slots(spark)
    if wanted is None and there < 1 <= application.slots(spark):
        message, note = "the workers of sessions keep all slots of the application", "close one, or ask for fewer workers"
        raise DlogError(Diagnostic("too-few-slots", message, notes=(note,)))
    if wanted is not None and wanted > there:
        message = f"{wanted} workers need as many tasks at once, and Spark has room for {there}"
        raise DlogError(
            Diagnostic("too-few-slots", message, notes=("give the application more cores, or ask for fewer workers",))
        )
    return max(wanted or there, 1)


def _folder(outputs: Sequence[str]) -> str:
    rows = application.rows_folder()
    for name in outputs:
        (rows / name).mkdir()
    return str(rows)


def _execute(spark: SparkSession, made: DataFrame, outcome: Outcome, reports: _Reports) -> None:
    """Runs the stage. Where rows come back through Spark, they stay cached."""
    context = spark.sparkContext
    context.setJobDescription(description(outcome.program, outcome.workers))
    try:
        if outcome.task.folder is None:
            # A shuffle ends the barrier stage. Without it every job on the rows would be a barrier stage, too: no `limit`, no
            # `union`. Blocks of rows that are lost come from the shuffle's files again, or where these are lost, too, from all
            # workers (`task`).
            outcome.cached = made.repartition(outcome.workers, *made.columns).persist()
            outcome.cached.count()
        else:
            made.collect()  # the workers wrote their rows themselves: there are none
        reports.wait()
    except failures() as error:
        if not reports.mistakes:
            raise _refused(error) from error
    finally:
        context.setJobDescription(None)
        shared_memory.sweep()
    if reports.mistakes:
        raise DlogError(reports.mistakes)


def description(program: Program, workers: int) -> str:
    """The description of a run in Spark's UI: its strata in order, all of which are this one job."""
    strata = [stratum for stratum in program.strata if stratum.rules]
    named = ", ".join(f"{i}. {' '.join(s.relations)}{' (recursive)' if s.recursive else ''}" for i, s in enumerate(strata, 1))
    text = f"dlog: {len(strata)} strata on {workers} workers: {named}" if strata else f"dlog: no rules, {workers} workers"
    return text if len(text) <= DESCRIPTION else text[: DESCRIPTION - 4] + " ..."


def _refused(error: Exception) -> DlogError:
    """Spark's failure as one of dlog's: the reason, not the stack."""
    return DlogError(Diagnostic("spark-failed", f"Spark could not finish the run: {reason_of(error)}", notes=advice(error)))
