"""The workers of a session on Spark: a barrier stage that stays, and does what the driver asks.

Each of its tasks keeps a `SessionWorker`, reaches the others directly, and has a door for rows that Spark's tasks bring. They
hold their slots of the application until the session is closed, so a resident group leaves at least one for everything else
that Spark is to do meanwhile. A worker that is lost takes its state with it: the resident group is gone then, whatever Spark
does to run its stage again, and a session with a state goes on from that with another resident group.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import zmq

from dlog.dataclass import dataclass
from dlog.engine.spark import application
from dlog.engine.spark.delivery import Delivery, Door, deliver
from dlog.engine.spark.error_translation import advice, failures, reason_of
from dlog.engine.spark.pieces import frames_of, message_of
from dlog.engine.spark.rendezvous import EVERYWHERE, PATIENCE, Meeting
from dlog.engine.spark.secrets import Secrets
from dlog.engine.spark.shared_memory import sweep
from dlog.engine.spark.transport import PeerTransport
from dlog.engine.state import parts
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from dlog.engine.cluster.dictionary import Dictionary
    from dlog.engine.ir.rules import Relation, Type
    from dlog.engine.plan.exchange.decomposable import Feed

STARTING = 120.0
"""Seconds that a resident group has to assemble, and slots have to come back for one that takes the place of another."""
LOOKING = 1.0
"""Seconds after which whoever waits for answers asks Spark whether all tasks are still at work."""
_HERE = b"here"


class SparkResidentWorkers:
    """The driver's side; see `dlog.engine.cluster.sharded_engine.ResidentWorkers`."""

    def __init__(self, spark: SparkSession, workers: int | None = None, **limits: Any) -> None:
        self.spark = spark
        self.size = _size(spark, workers)
        self._process = os.getpid()
        self._secrets = Secrets.new()
        self._context: zmq.Context[Any] = zmq.Context()
        self._guard = self._secrets.guard(self._context)
        self._socket = self._secrets.listener(self._context, zmq.ROUTER)
        host, door = application.driver_host(spark)
        port = self._socket.bind_to_random_port(door)
        self._meeting = Meeting(f"tcp://{host}:{port}", 0, self.size, self._secrets, door != EVERYWHERE)
        self._group = f"dlog-workers-{uuid4().hex}"
        self._stage: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self.dictionary: Dictionary | None = None
        self._command_number = 0
        self._over: BaseException | str | None = None
        self._names: dict[int, bytes] = {}
        self._addresses: dict[int, str] = {}
        self._doors: dict[int, str] = {}
        self._shares_folder: dict[Path, bool] = {}
        self._thread = threading.Thread(target=self._employ, args=(limits,), name="dlog-workers", daemon=True)
        self._thread.start()
        application.holders.add(self)
        self._assemble()

    def _employ(self, limits: Mapping[str, Any]) -> None:
        """Runs the stage; returns when it has ended, one way or the other."""
        try:
            spark = self.spark
            spark.sparkContext.setJobGroup(self._group, f"dlog: a session's {self.size} workers", interruptOnCancel=True)
            rows = spark.range(self.size).repartition(self.size)
            application.in_tasks(rows, _Duty(self._meeting, dict(limits)), "worker int", barrier=True).collect()
            self._over = "they went home"
        except BaseException as error:
            self._over = error

    def _assemble(self) -> None:
        begun = time.monotonic()
        tasks: dict[int, int] = {}
        together = False
        while not together:
            if self._over is not None or time.monotonic() - begun > STARTING:
                raise self._loss("a session's workers do not start")
            if self._socket.poll(PATIENCE):
                name, kind, *said = self._socket.recv_multipart()
                if kind == _HERE:
                    rank, task, stage = (int(part) for part in said[:3])
                    if task >= tasks.get(rank, task):  # Spark may have started the stage again meanwhile
                        tasks[rank], self._names[rank] = task, name
                        self._addresses[rank], self._doors[rank] = (part.decode() for part in said[3:])
                    together = len(tasks) == self.size and application.started_together(self.spark, stage, [*tasks.values()])
        addresses = [self._addresses[rank] for rank in range(self.size)]
        for name in self._names.values():
            self._socket.send_multipart([name, *frames_of(addresses)])

    def _disbanded(self) -> bool:
        """Whether the stage in which the workers are is not as it was when this was first asked and all were at work."""
        if application.is_stopped(self.spark):
            return True
        running = self._running()
        self._stage = self._stage or running
        return running != self._stage

    def _running(self) -> tuple[int, int] | None:
        """The stage in which all workers are, and which attempt at it; None if there is none with so many tasks at work."""
        tracker = self.spark.sparkContext.statusTracker()
        jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group))
        stages = [stage for job in jobs if job is not None for stage in job.stageIds]
        found = tracker.getStageInfo(max(stages)) if stages else None
        return None if found is None or found.numActiveTasks < self.size else (found.stageId, found.currentAttemptId)

    def deliver(self, frame: DataFrame, relation: Relation, types: Mapping[str, Type], feeds: Sequence[Feed]) -> list[Any]:
        """See `delivery.deliver`. Where a worker is lost already, rows would wait for it."""
        self.ask(dict.fromkeys(range(self.size), ("reads", ("",))))
        doors = tuple(self._doors[rank] for rank in range(self.size))
        self.spark.sparkContext.setJobDescription(f"dlog: rows of {relation.name} to a session's workers")
        try:
            with self._attended():
                return deliver(frame, Delivery(relation, types, tuple(feeds), doors, self._secrets))
        except DlogError as error:
            if self._over is None:
                raise
            raise self._loss("Spark lost a session's workers") from error
        finally:
            self.spark.sparkContext.setJobDescription("")

    @contextmanager
    def _attended(self) -> Iterator[None]:
        """A block whose jobs end when a worker is lost: their tasks would wait long for it to take what they bring."""
        context, tag, done = self.spark.sparkContext, f"dlog-delivery-{uuid4().hex}", threading.Event()

        def watch() -> None:
            while not done.wait(LOOKING):
                if self._over is not None or self._disbanded():
                    self._over = self._over or "no worker answers"
                    with suppress(*failures()):
                        context.cancelJobsWithTag(tag)
                    return

        context.addJobTag(tag)
        watcher = threading.Thread(target=watch, name="dlog-delivery", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
            with suppress(*failures()):
                context.removeJobTag(tag)

    def sees(self, folder: Path) -> bool:
        """Whether all workers have this folder where the driver has it."""
        known = self._shares_folder.get(folder)
        if known is None:
            file = parts.incoming(folder.absolute())
            try:
                file.write_text(self._group)
                replies = self.ask(dict.fromkeys(range(self.size), ("reads", (str(file),))))
            finally:
                file.unlink(missing_ok=True)
            known = self._shares_folder[folder] = set(replies.values()) == {self._group.encode()}
        return known

    def ask(self, commands: Mapping[int, tuple[str, tuple[Any, ...]]]) -> dict[int, Any]:
        """An interruption is raised when the answers are there: until then nobody knows what state the workers are in."""
        if self._is_anothers:
            message = "a session's workers answer the process that has opened it, and this one was forked from that"
            raise DlogError(Diagnostic("no-workers", message, notes=("open a session in the forked process",)))
        with self._lock:
            if self._over is not None or application.is_stopped(self.spark):
                raise self._loss("Spark lost a session's workers")
            self._command_number += 1
            for rank, command in commands.items():
                self._socket.send_multipart([self._names[rank], *frames_of((self._command_number, *command))], copy=False)
            return self._answers(set(commands))

    def _answers(self, waiting: set[int]) -> dict[int, Any]:
        """The workers' replies to the last question; what they still had to say to earlier ones is passed over."""
        ranks = {name: rank for rank, name in self._names.items()}
        found: dict[int, Any] = {}
        looked = time.monotonic()
        while len(found) < len(waiting):
            if not self._socket.poll(PATIENCE):
                late = time.monotonic() - looked > LOOKING
                if self._over is not None or (late and self._disbanded()):
                    raise self._loss("Spark lost a session's workers")
                looked = time.monotonic() if late else looked
                continue
            name, *frames = self._socket.recv_multipart(copy=False)
            rank = ranks.get(name.bytes)
            if rank is None:
                raise self._loss("Spark lost a session's workers")  # a stage that was started again knows nothing
            number, answer = message_of(frames)
            if number == self._command_number:
                found[rank] = answer
        return found

    def _loss(self, what: str) -> DlogError:
        """Nobody asks these workers again: those of a stage that Spark has started anew would wait for ever."""
        over = self._over
        notes = advice(over) if isinstance(over, BaseException) else ()
        reason = reason_of(over) if isinstance(over, BaseException) else over or "no worker answers"
        self._over = self._over or what
        if application.is_stopped(self.spark):
            reason = "the SparkSession has been stopped"
        else:
            with suppress(*failures(), OSError):
                self.spark.sparkContext.cancelJobGroup(self._group)
        note = "open it again: with `state=` it goes on where it ended, without it has lost what it held"
        return DlogError(Diagnostic("no-workers", f"{what}: {reason}", notes=(note, *notes)))

    @property
    def is_gone(self) -> bool:
        """Whether the workers are no more."""
        return self._over is not None

    @property
    def _is_anothers(self) -> bool:
        """Whether this process was forked from the one that has the workers: the threads that talk to them are not here."""
        return self._process != os.getpid()

    def close(self) -> None:
        """Sends the workers home; doing it again does nothing, nor does it in a process that was forked."""
        if self._context.closed or self._is_anothers:
            return
        if self._over is None:
            for name in self._names.values():
                self._socket.send_multipart([name, *frames_of(None)])
        self._thread.join(10)
        self._socket.close(0)
        self._guard.stop()
        self._context.term()
        sweep()


def slots_again(spark: SparkSession, size: int) -> None:
    """Waits until there is room for as many workers as there were: Spark may be about to replace an executor."""
    begun = time.monotonic()
    while application.slots(spark) <= size and time.monotonic() - begun < STARTING:
        time.sleep(PATIENCE / 1000)


def _size(spark: SparkSession, wanted: int | None) -> int:
    if application.refuses_barriers(spark):
        message = "a session on Spark keeps its tasks, and dynamic allocation takes executors away and adds others"
        notes = ("start the application with spark.dynamicAllocation.enabled=false",)
        raise DlogError(Diagnostic("dynamic-allocation", message, notes=notes))
    there, free = application.slots(spark), application.free_slots(spark)
    if free < 2 or (wanted or 0) >= free:
        held = f", of which other sessions have {there - free}" if free < there else ""
        message = f"a session on Spark leaves one slot to everything else, and the application has {there}{held}"
        more = "close other sessions, or give" if held else "give"
        note = f"ask for at most {free - 1} workers" if free > 1 else f"{more} it more cores: local[{there - free + 2}]"
        raise DlogError(Diagnostic("too-few-slots", message, notes=(note,)))
    return wanted or free - 1


@dataclass(frozen=True)
class _Duty:
    """The function of each task."""

    meeting: Meeting
    limits: Mapping[str, Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import BarrierTaskContext

        for _ in batches:
            pass
        task = BarrierTaskContext.get()
        rank, tasks = task.partitionId(), [info.address for info in task.getTaskInfos()]
        host = self.meeting.host(tasks)
        transport = PeerTransport(rank, len(tasks), self.meeting.secrets, host)
        door = Door(self.meeting.secrets, host)
        context: zmq.Context[Any] = zmq.Context()
        socket = self.meeting.secrets.caller(context, zmq.DEALER)
        socket.connect(self.meeting.address)
        numbers = (str(number).encode() for number in (rank, task.taskAttemptId(), task.stageId()))
        socket.send_multipart([_HERE, *numbers, transport.address.encode(), door.address.encode()])
        try:
            transport.connect(message_of(socket.recv_multipart(copy=False)))
            self._serve(socket, transport, door)
        finally:
            door.close()
            transport.close()
            socket.close(2000)
            context.term()
        return iter(())

    def _serve(self, socket: zmq.Socket[Any], transport: PeerTransport, door: Door) -> None:
        from dlog.engine.cluster.session_worker import SessionWorker
        from dlog.engine.cluster.worker_group import WorkerGroup

        rank = transport.rank
        session_worker = SessionWorker(self.limits, WorkerGroup(transport), door.take)
        own: dict[str, Any] = {"write_rows": partial(write_rows, session_worker, rank), "reads": reads}
        while (command := message_of(socket.recv_multipart(copy=False))) is not None:
            number, name, args = command
            reply = _run(own[name] if name in own else getattr(session_worker, name), *args)
            socket.send_multipart(frames_of((number, reply)), copy=False)


def _run(function: Any, *args: Any) -> Any:
    """The result of a command, or the mistake it raises."""
    from dlog.engine.cluster.session_worker import Failed

    try:
        return function(*args)
    except Failed as failed:
        return failed.error
    except (DlogError, InternalError) as error:
        return error
    except MemoryError:
        return DlogError(Diagnostic("out-of-memory", "out of memory on a worker"))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return InternalError("worker", f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})")


def reads(file: str) -> bytes | None:
    """A command: what is in a file, if it is there."""
    try:
        return Path(file).read_bytes()
    except OSError:
        return None


def write_rows(session_worker: Any, rank: int, number: int, part: Any, name: str, folder: str) -> int:
    """A command: writes the worker's rows of a relation as one Parquet file; returns how many there are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dlog.engine.spark.arrow import ArrowCodec, schema_of

    relation, table, dictionary = session_worker.table(number, part, name)
    codec = ArrowCodec(dictionary.types, dictionary.symbols, dictionary.records)
    schema = schema_of(relation)
    target = Path(folder) / f"part-{rank:05}.parquet"
    with pq.ParquetWriter(target.absolute(), schema, compression="lz4", use_dictionary=False, write_statistics=False) as writer:
        for columns in codec.write(relation, table):
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    return int(table.rows)
