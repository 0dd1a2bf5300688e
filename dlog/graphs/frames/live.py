"""A graph in Spark that changes, and answers that follow it: the twin of `dlog.graphs.live`.

Vertices and edges go from Spark's tasks to the workers of sessions, which all answers share; so do large DataFrames of changes.
Small changes pass through the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa

from dlog.display.preview import Preview
from dlog.graphs.analyses import Analyses
from dlog.graphs.frames.changing import ChangedNumbers, ChangingFrame
from dlog.graphs.frames.followers import SparkMaintained, SparkRecomputed
from dlog.graphs.frames.frame_changes import edges_of, ids_of
from dlog.graphs.frames.lineage import Origin
from dlog.graphs.frames.numbers import Numbers, values_of
from dlog.graphs.frames.running import SparkRunning
from dlog.graphs.frames.vertices import NONE, AddedVertices, Vertices
from dlog.graphs.live import CLOSED, FailedAnswer, Following, Maintained
from dlog.graphs.names import Codes, one_or_many
from dlog.graphs.numbered import weights
from dlog.graphs.questions import Computation, Question, Rules, Shape
from dlog.graphs.results import title
from dlog.graphs.running import as_facts
from dlog.graphs.sources import SourceGraph
from dlog.spark import first_of
from dlog.tabular import Tabular

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dlog.graphs.frames.protocols import FrameGraph


class SparkLive(Following["SparkLiveResult"], Analyses["SparkLiveResult"]):
    """A graph in Spark whose edges come and go. Made by `SparkGraph.live`; a context manager that closes it.

    The methods of `SparkGraph` give answers that stay up to date. Changes are given in any form that `dlog.graph` takes; those
    that are large DataFrames do not pass through the driver. Vertices that come later never go; where a method speaks of the
    least id, they come after all others, unless ids are integers.
    """

    _edges: ChangingFrame

    def __init__(self, graph: FrameGraph) -> None:
        from dlog.engine.spark.session_engine import SharedWorkers

        super().__init__()
        self._beginning = graph.numbers
        self._columns = graph.columns
        self._workers = SharedWorkers(graph.origin)
        self._running = SparkRunning(graph.origin, self._workers)
        self._named = Vertices(self._beginning)
        self._edges = ChangingFrame(self._beginning, self._named)
        self._origin = Origin(self._beginning)
        self._later = NONE
        self._numbers: Numbers | None = None

    @property
    def directed(self) -> bool:
        return self._beginning.directed

    @property
    def numbers(self) -> Numbers:
        """The graph as of the last commit."""
        if self._numbers is None:
            self._numbers = ChangedNumbers(self._beginning, self._named.between(self._later), self._edges.frame())
        return self._numbers

    # ------------------------------------------------------------------------------------------------------------- changes

    def _add_edges(self, edges: Any) -> None:
        given = edges_of(edges, self._columns, self._named.type)
        if isinstance(given, SourceGraph):
            self._named.add([*values_of(given.src), *values_of(given.dst)])
            self._edges.add(self._named.places(given.src, "src"), self._named.places(given.dst, "dst"), given.edge_attributes)
            return
        with releasing(given):
            self._named.add_many(given.selectExpr("explode(array(src, dst)) as id"))
            self._edges.add_many(self._named.in_numbers(given), given)

    def _remove_edges(self, edges: Any) -> None:
        given = edges_of(edges, self._columns, self._named.type)
        if isinstance(given, SourceGraph):
            self._edges.remove(self._named.places(given.src, "src"), self._named.places(given.dst, "dst"))
            return
        with releasing(given):
            self._edges.remove_many(self._named.in_numbers(given, ("src", "dst")), given)

    def _add_vertices(self, ids: Any) -> None:
        given = ids_of(ids, self._columns, self._named.type)
        if not hasattr(given, "mapInArrow"):
            self._named.add(given)
            return
        try:
            self._named.add_many(given)
        finally:
            given.unpersist()

    def _commit(self) -> int:
        edited = self._edges.edited()
        prepared: list[Any] = [result.follower.prepared(edited) for result in self._results]
        spent = self._edges.settle(edited)
        before, self._later = self._later, self._named.mark
        self._numbers = None
        new = self._named.between(self._later, before)
        pairs = zip(self._results, prepared, strict=True)
        try:
            self._to_next_round([(result, partial(result.advance, changes, new)) for result, changes in pairs])
        finally:
            for frame in spent:
                frame.unpersist()
        return self.round

    # ------------------------------------------------------------------------------------------------------------- answers

    def _answer(self, question: Question) -> SparkLiveResult:
        self._need_open()
        match question:
            case Rules(on_spark=None):
                follower: SparkMaintained | SparkRecomputed = SparkMaintained(question, partial(self._session, question))
            case Rules(on_spark=compute) | Computation(on_spark=compute):
                assert compute is not None
                follower = SparkRecomputed(compute, self.numbers, self._running)
            case _:
                assert_never(question)
        result = SparkLiveResult(self, question.shape, follower)
        self._results.append(result)
        return result

    def _session(self, rules: Rules) -> Any:
        """Rules on the graph as of the last commit, with other workers where Spark has lost those that there were."""
        if self._workers.has_lost_workers:
            self._origin.check()
        facts: dict[str, Any] = {"edge": self.numbers.edge(rules.form, rules.weight, rules.floats), **as_facts(rules.facts)}
        if rules.vertices:
            facts["vertex"] = self.numbers.vertex()
        return self._running.session(rules.program, facts)

    def _codes(self, ids: Any, where: str) -> Codes:
        return self._named.numbers(self._named.places(one_or_many(ids), where))

    def _float_weights(self, column: str) -> bool:
        floats = self.numbers.float_weights(column)
        later = self._edges.later()
        return floats or (len(later.src) > 0 and weights(later.attributes, column).dtype.kind == "f")

    def close(self) -> None:
        """Ends all answers, and sends their workers home; what was read of them stays."""
        super().close()
        self._workers.end()
        self._edges.release()

    def __len__(self) -> int:
        return self._beginning.vertex_ids.count + self._named.between(self._later).count

    def __repr__(self) -> str:
        if self._closed:
            return "<dlog.graph.SparkLive, closed>"
        return f"<dlog.graph.SparkLive at round {self.round}, {len(self)} vertices>"


class SparkLiveResult(Tabular):
    """An answer that follows a graph in Spark. `len` counts its rows. Iterating gives them as tuples of Python values, and
    `table` as an Arrow table: that brings them to the driver."""

    def __init__(self, live: SparkLive, shape: Shape, follower: SparkMaintained | SparkRecomputed) -> None:
        self._live = live
        self._shape = shape
        self.follower = follower

    @property
    def maintained(self) -> bool:
        """Whether a commit costs about as much as it changes, and not a new run."""
        return isinstance(self.follower, Maintained)

    @property
    def df(self) -> DataFrame:
        """The rows as of the last commit as a DataFrame, which later ones do not change while the answer is open."""
        return self._decoded(self.follower.frame())

    @property
    def table(self) -> pa.Table:
        """The rows as of the last commit, brought to the driver, in the order of their ids."""
        return self._table

    @cached_property
    def _table(self) -> pa.Table:
        return self._here(self.follower.rows_here())

    @property
    def changes(self) -> pa.Table:
        """The changes of the last commit: the columns of `table`, and `diff`, 1 for rows that came and -1 for those that
        went."""
        return self._changes

    @cached_property
    def _changes(self) -> pa.Table:
        return self._here(self.follower.changed_here())

    def _here(self, rows: pa.Table | DataFrame) -> pa.Table:
        """Rows of numbers as rows of ids, brought to the driver; numbers that are ids need no Spark."""
        if isinstance(rows, pa.Table):
            if self._live.numbers.integers:
                return _sorted(rows.rename_columns(self._names(rows.column_names)))
            rows = self._live.numbers.spark.createDataFrame(rows)
        return _sorted(self._decoded(rows).toArrow())

    def _decoded(self, rows: DataFrame) -> DataFrame:
        held = [name for name, holds in self._shape.columns if holds == "vertex"]
        return self._live.numbers.decoded(rows.toDF(*self._names(rows.columns)), held)

    def _names(self, columns: Sequence[str]) -> list[str]:
        """The names of the columns; one that the shape does not have says whether a row came or went."""
        return [name for name, _ in self._shape.columns] + ["diff"] * (len(columns) - len(self._shape.columns))

    def to_arrow(self) -> pa.Table:
        """The rows as of the last commit as an Arrow table."""
        return self.table

    def advance(self, changes: Any, vertices: AddedVertices) -> None:
        """Goes on to the next round, with the vertices that are new."""
        self._forget()
        self.follower.advance(changes, vertices, self._live)

    def end(self, follower: Any) -> None:
        """Ends the answer with this follower."""
        self._forget()
        was, self.follower = self.follower, follower
        with suppress(Exception):
            was.close()

    def _forget(self) -> None:
        """Drops what was read of former rows."""
        for name in ("_table", "_changes"):
            self.__dict__.pop(name, None)

    def close(self) -> None:
        """Stops following, and answers no more."""
        self._live.stop(self)
        was, self.follower = self.follower, CLOSED  # type: ignore[assignment]
        was.close()

    def __len__(self) -> int:
        return self.follower.count()

    def _title(self) -> str:
        return title("SparkLiveResult", [name for name, _ in self._shape.columns], len(self))

    def _first(self, rows: int) -> pa.Table | None:
        return self.table.slice(0, rows) if "_table" in self.__dict__ else first_of(self.df, rows)

    def _preview(self) -> Preview:
        return (
            Preview("dlog.graph.SparkLiveResult, at its end") if isinstance(self.follower, FailedAnswer) else super()._preview()
        )


@contextmanager
def releasing(kept: DataFrame) -> Iterator[None]:
    """A block in which someone takes over what Spark keeps, unless it fails."""
    try:
        yield
    except BaseException:
        kept.unpersist()
        raise


def _sorted(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names])
