"""A graph that changes, and answers that follow it.

Edges are staged and take effect together at `commit`, as a round. An answer that is a relation of rules is maintained by a
session, which those share that read edges alike (`shared`); one that takes several runs of programs is computed again, and
compared with what it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, assert_never

import numpy as np
import pyarrow as pa

from dlog.display.preview import Preview
from dlog.engine import interruption
from dlog.engine.interruption import Delayed
from dlog.grammar.diagnostics import DlogError
from dlog.graphs.analyses import ArrayAnalyses
from dlog.graphs.changing import ChangingEdges, Edited
from dlog.graphs.mistakes import mistake
from dlog.graphs.names import Codes, GrowingNames, Names
from dlog.graphs.numbered import Numbered
from dlog.graphs.questions import Computation, Question, Rules, Shape
from dlog.graphs.results import decoded, ordered, python_rows, title
from dlog.graphs.running import Columns, Running, as_table
from dlog.graphs.shared import Sharing, changed
from dlog.graphs.sources import read
from dlog.tabular import Tabular

if TYPE_CHECKING:
    from typing import Self

    from dlog.graphs.protocols import ArrayGraph


Followed = TypeVar("Followed", bound="Followable")


class Followable(Protocol):
    """An answer that follows."""

    def close(self) -> None: ...

    def end(self, follower: Any) -> None: ...


class FailedAnswer:
    """The follower of an answer that is closed or could not follow a round: raises its error for each reader."""

    def __init__(self, mistake: DlogError) -> None:
        self._mistake = mistake

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # what Python and its tools ask any object for
        raise self._mistake

    def close(self) -> None:
        """Nothing is left to close."""


CLOSED = FailedAnswer(mistake("closed-answer", "this answer is closed"))


def not_followed(round: int, why: BaseException) -> FailedAnswer:
    """The end of an answer that a round failed for."""
    text = why.diagnostics[0].message if isinstance(why, DlogError) else str(why)
    reason = text.split("\n", 1)[0] or type(why).__name__
    return FailedAnswer(
        mistake("answer-ended", f"this answer could not follow after round {round}: {reason}", "ask for it again")
    )


class _Edges(Protocol):
    """Edges that come and go."""

    def rollback(self) -> None: ...


class Following(ABC, Generic[Followed]):
    """The common part of live graphs: staged changes, and the answers that follow them until they are closed."""

    _edges: _Edges

    def __init__(self) -> None:
        self._results: list[Followed] = []
        self._closed = False
        self.round = 0

    def add_edges(self, edges: Any) -> None:
        """Stages edges to be added, in any form that `dlog.graph` takes edges in; ends that are new become vertices."""
        self._need_open()
        self._add_edges(edges)

    def remove_edges(self, edges: Any) -> None:
        """Stages edges to be removed, by their ends: all parallel ones go, and those that are not there do not matter. In an
        undirected graph an edge goes whichever way round it is named.

        Raises
        ------
        DlogError
            An end is no vertex."""
        self._need_open()
        self._remove_edges(edges)

    def add_vertices(self, ids: Any) -> None:
        """Stages vertices to be added; those that are there do not matter. Of a DataFrame of Spark the column of ids counts."""
        self._need_open()
        self._add_vertices(ids)

    def rollback(self) -> None:
        """Forgets the edges that are staged. Vertices that came with them stay."""
        self._need_open()
        self._edges.rollback()

    def commit(self) -> int:
        """Makes what is staged the next round, and all answers those of that round. Returns its number.

        Raises
        ------
        DlogError
            The new edges lack a weight that an answer needs, or have a negative one; they stay staged, and nothing changes.
            Or an answer could not be brought up to date: it is at its end, all others are those of the new round.
            Or the graph is closed, which all other methods refuse, too.
        """
        self._need_open()
        return self._commit()

    @abstractmethod
    def _add_edges(self, edges: Any) -> None: ...

    @abstractmethod
    def _remove_edges(self, edges: Any) -> None: ...

    @abstractmethod
    def _add_vertices(self, ids: Any) -> None: ...

    @abstractmethod
    def _commit(self) -> int: ...

    def _need_open(self) -> None:
        if self._closed:
            raise mistake("closed-graph", "the graph is closed")

    def stop(self, result: Followed) -> None:
        """An answer does not follow any more."""
        if result in self._results:
            self._results.remove(result)

    def _to_next_round(self, ways: Sequence[tuple[Followed, Callable[[], None]]]) -> None:
        """Has all answers go on to a round, each on its way. One that fails is at its end, and the others go on; but when all
        are interrupted those that have not gone yet are at their end, too. Raises what the first one failed with."""
        failed: BaseException | None = None
        before, self.round = self.round, self.round + 1
        for result, advance in ways:
            try:
                if failed is None or isinstance(failed, Exception):
                    interruption.check()
                    advance()
                    continue
            except BaseException as error:
                failed = failed or error
            self.stop(result)
            result.end(not_followed(before, failed))
        if failed is not None:
            raise failed

    def close(self) -> None:
        """Ends all answers; what was read of them stays. Nothing changes after that, and nothing is answered."""
        self._closed = True
        for result in list(self._results):
            result.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Live(Following["LiveResult"], ArrayAnalyses["LiveResult"]):
    """A graph whose edges come and go. Made by `Graph.live`; a context manager that closes it.

    The methods of `Graph` give answers that stay up to date. Vertices that come later have later places than all ids, where a
    method speaks of the least id, and never go.

    >>> import dlog
    >>> with dlog.graph([(1, 2), (3, 4)]).live() as g:
    ...     components = g.connected_components()
    ...     g.add_edges([(2, 3)])
    ...     _ = g.commit()
    ...     list(components), components.changes.num_rows
    ([(1, 1), (2, 1), (3, 1), (4, 1)], 4)
    """

    _edges: ChangingEdges

    def __init__(self, graph: ArrayGraph) -> None:
        super().__init__()
        self._names = GrowingNames(graph.names)
        self._edges = ChangingEdges(graph.numbered)
        self._vertices = len(graph.names)
        self._columns = graph.columns
        self._running = graph.running
        self._sharing = Sharing(graph.running)
        self._directed = graph.directed
        self._numbered: Numbered | None = graph.numbered

    @property
    def names(self) -> Names:
        return self._names

    @property
    def numbered(self) -> Numbered:
        if self._numbered is None:
            self._numbered = self._edges.numbered(self._vertices)
        return self._numbered

    @property
    def directed(self) -> bool:
        return self._directed

    # ------------------------------------------------------------------------------------------------------------- changes

    def _add_edges(self, edges: Any) -> None:
        given = read(edges, None, self._columns)
        attributes = self._edges.with_attributes(given.edge_attributes)
        self._names.add(given.src, given.dst)
        self._edges.add(self._names.encode(given.src, "src"), self._names.encode(given.dst, "dst"), attributes)

    def _remove_edges(self, edges: Any) -> None:
        given = read(edges, None, self._columns)
        self._edges.remove(self._names.encode(given.src, "src"), self._names.encode(given.dst, "dst"))

    def _add_vertices(self, ids: Any) -> None:
        self._names.add(ids)

    def _commit(self) -> int:
        edited = self._edges.edited()
        prepared = [result.prepared(edited) for result in self._results]
        # Between the edges' taking the change and the answers' no interruption finds a place.
        with Delayed():
            old, self._vertices = self._vertices, len(self._names)
            self._edges.settle()
            self._numbered = None
            new = np.arange(old, self._vertices)
            pairs = zip(self._results, prepared, strict=True)
            self._to_next_round([(result, partial(result.advance, changes, new, self)) for result, changes in pairs])
            return self.round

    # ------------------------------------------------------------------------------------------------------------- answers

    def _answer(self, question: Question) -> LiveResult:
        self._need_open()
        match question:
            case Rules():
                follower: _Follower = self._maintained(question)
            case Computation(follow=follow) if follow is not None:
                follower = follow(self.numbered, self._running)
            case Computation():
                follower = _Recomputed(question, self.numbered, self._running)
            case _:
                assert_never(question)
        result = LiveResult(self._names, question.shape, follower, self.stop)
        self._results.append(result)
        return result

    def _maintained(self, rules: Rules) -> _Follower:
        """Rules in a session that other answers share, if they can."""
        shared = self._sharing.ask(rules, self.numbered)
        return shared or Maintained(rules, self._running.session(rules.program, rules.relations(self.numbered)))

    def close(self) -> None:
        self._sharing.close()
        super().close()

    def __len__(self) -> int:
        return self._vertices

    def __repr__(self) -> str:
        if self._closed:
            return "<dlog.graph.Live, closed>"
        return f"<dlog.graph.Live at round {self.round}, {len(self)} vertices, {len(self.numbered.src)} edges>"


class LiveResult(Tabular):
    """An answer that follows a graph. `len` counts its rows, and iterating gives them as tuples of Python values."""

    def __init__(self, names: Names, shape: Shape, follower: _Follower, forget: Any) -> None:
        self._names = names
        self._shape = shape
        self._follower = follower
        self._forget = forget

    @property
    def maintained(self) -> bool:
        """Whether a commit costs about as much as it changes, and not a new run."""
        return self._follower.maintained

    @property
    def table(self) -> pa.Table:
        """The rows as of the last commit, as an Arrow table."""
        return decoded(self._names, self._shape, ordered(self._follower.rows()))

    @property
    def changes(self) -> pa.Table:
        """The changes of the last commit: the columns of `table`, and `diff`, 1 for rows that came and -1 for those that
        went."""
        *columns, diffs = self._follower.changes()
        rows = ordered((*columns, np.asarray(diffs)))
        return decoded(self._names, self._shape, rows[:-1]).append_column("diff", pa.array(rows[-1]))

    def to_arrow(self) -> pa.Table:
        """The rows as of the last commit as an Arrow table."""
        return self.table

    def close(self) -> None:
        """Stops following, and answers no more."""
        self._forget(self)
        was, self._follower = self._follower, CLOSED
        was.close()

    def end(self, follower: Any) -> None:
        """Ends the answer with this follower."""
        was, self._follower = self._follower, follower
        with suppress(Exception):
            was.close()

    def prepared(self, edited: Edited) -> Any:
        """The part of a change that `advance` needs; DlogError if the change does not do."""
        return self._follower.prepared(edited)

    def advance(self, changes: Any, vertices: Codes, live: Live) -> None:
        """Goes on to the next round, with the vertices that are new."""
        self._follower.advance(changes, vertices, live)

    def __len__(self) -> int:
        return len(self._follower.rows()[0])

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return python_rows(self._names, self._shape, ordered(self._follower.rows()))

    def _title(self) -> str:
        return title("LiveResult", [name for name, _ in self._shape.columns], len(self))

    def _first(self, rows: int) -> pa.Table | None:
        columns = ordered(self._follower.rows())
        return decoded(self._names, self._shape, tuple(column[:rows] for column in columns))

    def _preview(self) -> Preview:
        return Preview("dlog.graph.LiveResult, at its end") if isinstance(self._follower, FailedAnswer) else super()._preview()


class _Follower(Protocol):
    """Keeps one answer up to date."""

    @property
    def maintained(self) -> bool: ...

    def rows(self) -> Columns: ...

    def changes(self) -> Columns:
        """Columns, then diffs."""

    def prepared(self, edited: Edited) -> Any: ...

    def advance(self, changes: Any, vertices: Codes, live: Any) -> None: ...

    def close(self) -> None: ...


class Maintained:
    """Rules in a session, which has all of the graph."""

    maintained = True

    def __init__(self, rules: Rules, session: Any) -> None:
        self._rules = rules
        self._session = session

    def rows(self) -> Columns:
        return tuple(self._session[self._rules.answer_relation].to_numpy().values())

    def changes(self) -> Columns:
        return tuple(list(self._session.changes(self._rules.answer_relation).to_numpy().values())[:-1])

    def prepared(self, edited: Edited) -> tuple[Columns, Columns]:
        return self._rules.edge(edited.removed), self._rules.edge(edited.added)

    def advance(self, changes: tuple[Columns, Columns], vertices: Codes, live: Any) -> None:
        removed, added = changes
        if len(removed[0]):
            self._session.remove("edge", as_table(removed))
        if len(added[0]):
            self._session.insert("edge", as_table(added))
        if self._rules.vertices and len(vertices):
            self._session.insert("vertex", as_table((vertices,)))
        self._session.commit()

    def close(self) -> None:
        self._session.close()


class _Recomputed:
    """A computation that is done again."""

    maintained = False

    def __init__(self, computation: Computation, graph: Numbered, running: Running) -> None:
        self._computation = computation
        self._running = running
        self._rows = computation.answer(graph, running)
        self._before = self._rows

    def rows(self) -> Columns:
        return self._rows

    def changes(self) -> Columns:
        return changed(self._before, self._rows)

    def prepared(self, edited: Edited) -> None:
        return None

    def advance(self, changes: None, vertices: Codes, live: Live) -> None:
        self._before = self._rows
        self._rows = self._computation.answer(live.numbered, self._running)

    def close(self) -> None:
        return None
