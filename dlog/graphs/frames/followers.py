"""Followers that keep answers about a graph in Spark up to date: the twins of those in `dlog.graphs.live`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from dlog.grammar.diagnostics import DlogError
from dlog.graphs.frames.changing import EditedEnds, EditedFrames, Rows
from dlog.graphs.frames.numbers import Numbers
from dlog.graphs.frames.running import SparkRunning
from dlog.graphs.frames.vertices import AddedVertices
from dlog.graphs.live import Maintained
from dlog.graphs.mistakes import mistake
from dlog.graphs.questions import OnSpark, Rules
from dlog.graphs.running import as_table
from dlog.sessions.persistence.durable import workers_lost

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dlog.graphs.frames.protocols import LiveFrames

Reply = TypeVar("Reply")


class SparkMaintained(Maintained):
    """Rules in a session. `made` makes it, of the graph as of the last commit: again when the workers of one are lost."""

    def __init__(self, rules: Rules, made: Callable[[], Any]) -> None:
        super().__init__(rules, made())
        self._open_session = made
        self._has_last_changes = True
        """Whether the session knows what the last commit changed."""

    def prepared(self, edited: EditedEnds | EditedFrames) -> tuple[Rows, Rows]:  # type: ignore[override]
        """The part of a change that `advance` needs; DlogError if the change does not do."""
        added = edited.added(self._rules)
        return edited.removed(self._rules), added

    def advance(self, changes: tuple[Rows, Rows], vertices: AddedVertices, live: Any) -> None:  # type: ignore[override]
        try:
            self._commit(changes, vertices)
            self._has_last_changes = True
        except DlogError as error:
            if not workers_lost(error):
                raise
            self._renew()

    def _commit(self, changes: tuple[Rows, Rows], vertices: AddedVertices) -> None:
        removed, added = changes
        self._stage(self._session.remove, "edge", removed)
        self._stage(self._session.insert, "edge", added)
        if self._rules.vertices:
            self._stage(self._session.insert, "vertex", (vertices.numbers,))
            for many in vertices.many:
                self._stage(self._session.insert, "vertex", many.names.select("number"))
        self._session.commit()

    def _stage(self, act: Callable[[str, Any], None], relation: str, rows: Rows) -> None:
        if isinstance(rows, tuple):
            if len(rows[0]):
                act(relation, as_table(rows))
        elif rows is not None:
            act(relation, rows)

    def _renew(self) -> None:
        lost, self._session, self._has_last_changes = self._session, self._open_session(), False
        lost.close()

    def _ask(self, question: Callable[[Any], Reply]) -> Reply:
        """The session's reply about the answer, or another session's where its workers were lost."""
        try:
            return question(self._session[self._rules.answer_relation])
        except DlogError as error:
            if not workers_lost(error):
                raise
        self._renew()
        return question(self._session[self._rules.answer_relation])

    def frame(self) -> DataFrame:
        return self._ask(lambda rows: cast("DataFrame", rows.df))

    def rows_here(self) -> pa.Table:
        return self._ask(lambda rows: rows.to_arrow())

    def count(self) -> int:
        return self._ask(lambda rows: int(rows.rows))

    def changed_here(self) -> pa.Table:
        """Columns, then diffs."""
        try:
            if self._has_last_changes:
                *columns, diffs = self.changes()
                return as_table((*columns, np.asarray(diffs, np.int64)))
        except DlogError as error:
            if not workers_lost(error):
                raise
        message = "what the last commit changed is not known any more: Spark lost the workers that knew"
        raise mistake("past-round", message, "`df` and `table` have the rows as of the last commit")


class SparkRecomputed:
    """A computation that is done again."""

    def __init__(self, compute: OnSpark, graph: Numbers, running: SparkRunning) -> None:
        self._compute = compute
        self._running = running
        self._answer = self._before = compute(graph, running)

    def prepared(self, edited: EditedEnds | EditedFrames) -> None:
        return None

    def advance(self, changes: None, vertices: AddedVertices, live: LiveFrames) -> None:
        if self._before is not self._answer:
            self._before.release()
        self._before = self._answer
        self._answer = self._compute(live.numbers, self._running)

    def frame(self) -> DataFrame:
        return self._answer.rows

    def rows_here(self) -> DataFrame:
        return self._answer.rows

    def changed_here(self) -> DataFrame:
        """Columns, then diffs."""
        from pyspark.sql import functions as F

        old, new = self._before.rows, self._answer.rows
        came, went = new.subtract(old.toDF(*new.columns)), old.toDF(*new.columns).subtract(new)
        return came.withColumn("diff", F.lit(1).cast("bigint")).unionAll(went.withColumn("diff", F.lit(-1).cast("bigint")))

    def count(self) -> int:
        return self._answer.rows.count() if self._answer.count is None else self._answer.count

    def close(self) -> None:
        for answer in {id(a): a for a in (self._before, self._answer)}.values():
            answer.release()
