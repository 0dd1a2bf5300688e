"""A graph that changes, and answers that follow it.

Edges are staged and take effect together at `commit`, as a round. An answer that is a relation of rules is maintained by a
session of its own; one that takes several runs of programs is computed again, and compared with what it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from dlog.engine.values.differences import difference, words
from dlog.graphs.analyses import ArrayAnalyses
from dlog.graphs.changing import ChangingEdges, Edited
from dlog.graphs.mistakes import mistake
from dlog.graphs.names import Codes, GrowingNames, Names
from dlog.graphs.numbered import Numbered
from dlog.graphs.questions import Computation, Question, Rules, Shape
from dlog.graphs.results import decoded, ordered, rows_of
from dlog.graphs.running import Columns, Running, as_table
from dlog.graphs.sources import read

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd
    import polars as pl

    from dlog.graphs.core import Graph


Followed = TypeVar("Followed", bound="Followable")


class Followable(Protocol):
    """An answer that follows."""

    def close(self) -> None: ...

    def end(self, follower: Any) -> None: ...


class Ended:
    """What an answer has when it could not go on from a round: nothing but a mistake for whoever reads it."""

    def __init__(self, round: int, why: BaseException) -> None:
        reason = str(why).split("\n", 1)[0] or type(why).__name__
        message = f"this answer could not follow after round {round}: {reason}"
        self._mistake = mistake("answer-ended", message, "ask for it again")

    def __getattr__(self, name: str) -> Any:
        raise self._mistake

    def close(self) -> None:
        """There is nothing left."""


class _Edges(Protocol):
    """Edges that come and go."""

    def rollback(self) -> None: ...


class Following(ABC, Generic[Followed]):
    """What live graphs have in common: changes, which are staged, and their answers, until they are closed."""

    _edges: _Edges

    def __init__(self) -> None:
        self._results: list[Followed] = []
        self.round = 0

    @abstractmethod
    def add_edges(self, edges: Any) -> None:
        """Stages edges to be added, in any form that `dlog.graph` takes edges in; ends that are new become vertices."""

    @abstractmethod
    def remove_edges(self, edges: Any) -> None:
        """Stages edges to be removed, by their ends: all parallel ones go, and those that are not there do not matter. In an
        undirected graph an edge goes whichever way round it is named.

        Raises
        ------
        DlogError
            An end is no vertex."""

    @abstractmethod
    def add_vertices(self, ids: Any) -> None:
        """Stages vertices to be added; those that are there do not matter."""

    def rollback(self) -> None:
        """Forgets the edges that are staged. Vertices that came with them stay."""
        self._edges.rollback()

    @abstractmethod
    def commit(self) -> int:
        """Makes what is staged the next round, and all answers those of that round. Returns its number.

        Raises
        ------
        DlogError
            The new edges lack a weight that an answer needs, or have a negative one; they stay staged, and nothing changes.
            Or an answer could not be brought up to date: it is at its end, all others are those of the new round.
        """

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
                    advance()
                    continue
            except BaseException as error:
                failed = failed or error
            self.stop(result)
            result.end(Ended(before, failed))
        if failed is not None:
            raise failed

    def close(self) -> None:
        """Ends all answers; what was read of them stays."""
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

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self._names = GrowingNames(graph.names)
        self._edges = ChangingEdges(graph.numbered)
        self._vertices = len(graph.names)
        self._columns = graph.columns
        self._running = graph.running
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

    def add_edges(self, edges: Any) -> None:
        given = read(edges, None, self._columns)
        self._names.add(given.src)
        self._names.add(given.dst)
        self._edges.add(self._names.encode(given.src, "src"), self._names.encode(given.dst, "dst"), given.edge_attributes)

    def remove_edges(self, edges: Any) -> None:
        given = read(edges, None, self._columns)
        self._edges.remove(self._names.encode(given.src, "src"), self._names.encode(given.dst, "dst"))

    def add_vertices(self, ids: Any) -> None:
        self._names.add(ids)

    def commit(self) -> int:
        edited = self._edges.edited()
        prepared = [result.prepared(edited) for result in self._results]
        old, self._vertices = self._vertices, len(self._names)
        self._edges.settle()
        self._numbered = None
        new = np.arange(old, self._vertices)
        pairs = zip(self._results, prepared, strict=True)
        self._to_next_round([(result, partial(result.advance, changes, new, self)) for result, changes in pairs])
        return self.round

    # ------------------------------------------------------------------------------------------------------------- answers

    def _answer(self, question: Question) -> LiveResult:
        match question:
            case Rules():
                session = self._running.session(question.program, question.relations(self.numbered))
                follower: _Follower = Maintained(question, session)
            case Computation():
                follower = _Recomputed(question, self.numbered, self._running)
        result = LiveResult(self._names, question.shape, follower, self.stop)
        self._results.append(result)
        return result

    def __len__(self) -> int:
        return self._vertices

    def __repr__(self) -> str:
        return f"<dlog.graph.Live at round {self.round}, {len(self)} vertices, {len(self.numbered.src)} edges>"


class LiveResult:
    """An answer that follows a graph. `len` counts its rows, and iterating gives them as tuples of Python values."""

    def __init__(self, names: Names, shape: Shape, follower: _Follower, forget: Any) -> None:
        self._names = names
        self._shape = shape
        self._follower = follower
        self._forget = forget

    @property
    def maintained(self) -> bool:
        """Whether a commit costs about as much as it changes, and not a new run."""
        return isinstance(self._follower, Maintained)

    @property
    def table(self) -> pa.Table:
        """The rows as of the last commit, as an Arrow table."""
        return decoded(self._names, self._shape, ordered(self._follower.rows()))

    @property
    def changes(self) -> pa.Table:
        """What the last commit changed: the columns of `table`, and `diff`, 1 for rows that came and -1 for those that went."""
        *columns, diffs = self._follower.changes()
        rows = ordered((*columns, np.asarray(diffs)))
        return decoded(self._names, self._shape, rows[:-1]).append_column("diff", pa.array(rows[-1]))

    def to_pandas(self) -> pd.DataFrame:
        """The rows as of the last commit as a pandas DataFrame (pandas must be installed)."""
        return self.table.to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The rows as of the last commit as a polars DataFrame (polars must be installed)."""
        import polars as pl

        return pl.DataFrame(self.table)

    def close(self) -> None:
        """Stops following."""
        self._forget(self)
        self._follower.close()

    def end(self, follower: Any) -> None:
        """It has nothing more to say than this."""
        was, self._follower = self._follower, follower
        with suppress(Exception):
            was.close()

    def prepared(self, edited: Edited) -> Any:
        """What `advance` needs of a change; DlogError if the change does not do."""
        return self._follower.prepared(edited)

    def advance(self, changes: Any, vertices: Codes, live: Live) -> None:
        """Goes on to the next round, with the vertices that are new."""
        self._follower.advance(changes, vertices, live)

    def __len__(self) -> int:
        return len(self._follower.rows()[0])

    def __iter__(self) -> Any:
        return rows_of(self.table)

    def __repr__(self) -> str:
        return f"<dlog.graph.LiveResult ({', '.join(name for name, _ in self._shape.columns)}), {len(self)} rows>"


class _Follower(Protocol):
    """What keeps one answer up to date."""

    def rows(self) -> Columns: ...

    def changes(self) -> Columns:
        """Columns, then diffs."""

    def prepared(self, edited: Edited) -> Any: ...

    def advance(self, changes: Any, vertices: Codes, live: Any) -> None: ...

    def close(self) -> None: ...


class Maintained:
    """Rules in a session, which has all of the graph."""

    def __init__(self, rules: Rules, session: Any) -> None:
        self._rules = rules
        self._session = session

    def rows(self) -> Columns:
        return tuple(self._session[self._rules.wanted].to_numpy().values())

    def changes(self) -> Columns:
        return tuple(list(self._session.changes(self._rules.wanted).to_numpy().values())[:-1])

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

    def __init__(self, computation: Computation, graph: Numbered, running: Running) -> None:
        self._computation = computation
        self._running = running
        self._rows = computation.answer(graph, running)
        self._before = self._rows

    def rows(self) -> Columns:
        return self._rows

    def changes(self) -> Columns:
        old, new = (tuple(words(column) for column in rows) for rows in (self._before, self._rows))
        columns, diffs = difference(old, len(self._before[0]), new, len(self._rows[0]))
        typed = (column.view(like.dtype) for column, like in zip(columns, self._rows, strict=True))
        return (*typed, np.asarray(diffs))

    def prepared(self, edited: Edited) -> None:
        return None

    def advance(self, changes: None, vertices: Codes, live: Live) -> None:
        self._before = self._rows
        self._rows = self._computation.answer(live.numbered, self._running)

    def close(self) -> None:
        return None
