"""DataFrames on their way to the workers of a session, past the driver: tasks cut their rows and call at the workers' doors.

A task says which blocks it has brought to whom; the driver tells each worker for which to look. What tasks brought that failed
or were run twice, nobody asks for.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import zmq

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Relation, Type
from dlog.engine.plan.exchange.decomposable import Feed
from dlog.engine.spark.cutting import gathered, table_of
from dlog.engine.spark.gc_tuning import spare
from dlog.engine.spark.pieces import cut, joined
from dlog.engine.spark.secrets import Secrets
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

SCHEMA = "feed int, owner int, block string, mistake binary"
"""What tasks say: which block they have brought to which worker, for which of the feeds; or what is wrong with the rows."""
LINGER_MILLISECONDS = 120_000
"""The time that a task has to get rid of its blocks, and that a worker waits for one that was sent."""


class Door:
    """The socket at which a worker receives blocks."""

    def __init__(self, secrets: Secrets, host: str) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        self._guard = secrets.guard(self._context)
        self._socket = secrets.listener(self._context, zmq.PULL)
        if ":" in host:
            self._socket.ipv6 = True
        self.address = f"tcp://{host}:{self._socket.bind_to_random_port(f'tcp://{host}')}"
        self._waiting: dict[str, Any] = {}

    def take(self, names: Collection[str]) -> dict[str, Any]:
        """The blocks with these names. Others that have come belong to nobody. Raises DlogError where one does not come."""
        found: dict[str, Any] = {}
        while missing := [name for name in names if name not in found]:
            if not self._socket.poll(LINGER_MILLISECONDS):
                raise DlogError(Diagnostic("no-workers", f"{len(missing)} blocks of a DataFrame do not arrive at a worker"))
            name, *frames = self._socket.recv_multipart(copy=False)
            if name.bytes.decode() in names:
                [found[name.bytes.decode()]] = joined(frames)
        return found

    def close(self) -> None:
        self._socket.close()
        self._guard.stop()
        self._context.term()


@dataclass(frozen=True)
class Delivery:
    """For `mapInArrow`: batches with the columns of a relation, in order, to rows of `SCHEMA`. `doors` are the workers'."""

    relation: Relation
    types: Mapping[str, Type]
    feeds: tuple[Feed, ...]
    doors: tuple[str, ...]
    secrets: Secrets

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context: zmq.Context[Any] = zmq.Context()
        sockets = [self.secrets.caller(context, zmq.PUSH) for _ in self.doors]
        try:
            for socket, door in zip(sockets, self.doors, strict=True):
                socket.connect(door)
            for rows in gathered(batches):
                for feed, owner, block in self._blocks(rows):
                    name = uuid4().hex
                    sockets[owner].send_multipart([name.encode(), *cut([block])], copy=False)
                    yield _report(feed, owner, name, None)
        except DlogError as error:
            yield _report(0, 0, None, pickle.dumps(error.diagnostics))
        finally:
            for socket in sockets:
                socket.close(LINGER_MILLISECONDS)
            context.term()
        spare()

    def _blocks(self, rows: list[pa.RecordBatch]) -> Iterator[tuple[int, int, bytes]]:
        from dlog.engine.cluster.blocks import cut_everywhere
        from dlog.engine.cluster.dictionary import Dictionary

        size = len(self.doors)
        table, symbols, records = table_of(rows, self.relation, self.types)
        for number, feed in enumerate(self.feeds):
            dictionary = Dictionary(symbols, records, self.types, size)
            for owner, block in cut_everywhere(self.relation, table, feed.place, dictionary, size):
                yield number, owner, block


def _report(feed: int, owner: int, block: str | None, mistake: bytes | None) -> pa.RecordBatch:
    import pyarrow as pa

    columns = [pa.array([feed], pa.int32()), pa.array([owner], pa.int32()), pa.array([block], pa.string())]
    return pa.RecordBatch.from_arrays([*columns, pa.array([mistake], pa.binary())], ["feed", "owner", "block", "mistake"])


def deliver(frame: DataFrame, delivery: Delivery) -> list[tuple[int, Feed, str]]:
    """Sends a DataFrame's rows, in the relation's columns and types, to the workers. Returns the worker, the feed and the name
    of each block. Raises DlogError where the rows are wrong."""
    from dlog.engine.spark.application import in_tasks
    from dlog.engine.spark.error_translation import failures, reason_of
    from dlog.engine.spark.inputs import has_plain_rows, has_python, unweighed

    try:
        light = has_plain_rows(delivery.relation) and not has_python(frame)
        with unweighed(frame.sparkSession, light):
            said: Sequence[Any] = in_tasks(frame, delivery, SCHEMA).collect()
    except failures() as error:
        message = f"the rows for {delivery.relation.name} cannot be read: {reason_of(error)}"
        raise DlogError(Diagnostic("spark-failed", message)) from error
    mistakes: list[Diagnostic] = []
    for row in said:
        if row.mistake is not None:
            mistakes += [d for d in pickle.loads(row.mistake) if d not in mistakes]
    if mistakes:
        raise DlogError(mistakes)
    return [(row.owner, delivery.feeds[row.feed], row.block) for row in said]
