"""The analyses of a graph: the same methods on one that stays as it is and on one that changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from dlog.graphs import iterated, paths, structure
from dlog.graphs.mistakes import check_count, check_share, exactly_one, mistake, out_of_range
from dlog.graphs.names import Codes, Names, one_or_many
from dlog.graphs.numbered import Numbered, weights
from dlog.graphs.questions import Question

_Answer = TypeVar("_Answer")


class Analyses(ABC, Generic[_Answer]):
    """The questions. Each answer has one row for each vertex, in the order of their ids, unless its method says otherwise."""

    @abstractmethod
    def _answer(self, question: Question) -> _Answer:
        """The answer to a question."""

    @property
    @abstractmethod
    def directed(self) -> bool:
        """Whether paths follow the direction of edges."""

    @abstractmethod
    def _codes(self, ids: Any, where: str) -> Codes:
        """The numbers of vertices that a method was given, at `where`; DlogError for one that is not there."""

    @abstractmethod
    def _float_weights(self, column: str) -> bool:
        """Whether a column of weights has floats; DlogError if it is no column of weights."""

    # --------------------------------------------------------------------------------------------------------------- paths

    def reachable(self, sources: Any) -> _Answer:
        """The vertices that paths lead to from a source, or from any of several: `id`, one row each.

        Sources reach themselves, by a path without edges. Without them it is NetworkX's `descendants`. Undirected graphs are
        walked both ways.

        >>> import dlog
        >>> sorted(dlog.graph([("a", "b"), ("b", "c"), ("d", "a")]).reachable("a"))
        [('a',), ('b',), ('c',)]
        """
        return self._answer(paths.reachable(self._codes(sources, "sources"), self.directed))

    def bfs(self, sources: Any) -> _Answer:
        """How many edges away from the nearest source each vertex is that can be reached: `id`, `distance`.

        NetworkX's `single_source_shortest_path_length` for one source. (GraphFrames' `bfs` lists paths: `find` does that.)
        Undirected graphs are walked both ways.

        >>> import dlog
        >>> list(dlog.graph([("a", "b"), ("b", "c"), ("a", "c")]).bfs("a"))
        [('a', 0), ('b', 1), ('c', 1)]
        """
        return self._answer(paths.bfs(self._codes(sources, "sources"), self.directed))

    def shortest_paths(self, landmarks: Any = None, *, sources: Any = None, weight: str | None = None) -> _Answer:
        """The least length of a path for each pair that has one.

        Parameters
        ----------
        landmarks
            One vertex or several: paths from each vertex to a landmark, as GraphFrames' `shortestPaths` has them: `landmark`,
            `id`, `distance`.
        sources
            Instead of landmarks: paths from a source to each vertex, as NetworkX's `single_source_dijkstra_path_length` has
            them: `source`, `id`, `distance`.
        weight
            The column of the edges' lengths, which must not be negative; of parallel edges the shortest counts. Distances are
            integers if weights are. Without it paths are as long as they have edges.

        >>> import dlog
        >>> g = dlog.graph([("a", "b", 1.5), ("b", "c", 1.0), ("a", "c", 9.0)])
        >>> list(g.shortest_paths("c", weight="weight"))
        [('c', 'a', 2.5), ('c', 'b', 1.0), ('c', 'c', 0.0)]
        >>> list(g.shortest_paths(sources="a"))
        [('a', 'a', 0), ('a', 'b', 1), ('a', 'c', 1)]
        """
        if (landmarks is None) == (sources is None):
            raise exactly_one(["landmarks", "sources"])
        name = "landmark" if sources is None else "source"
        ends = self._codes(landmarks if sources is None else sources, f"{name}s")
        floats = weight is not None and self._float_weights(weight)
        return self._answer(paths.shortest_paths(ends, self.directed, weight, floats, name))

    # ---------------------------------------------------------------------------------------------------------- components

    def connected_components(self) -> _Answer:
        """The component of each vertex: `id`, `component`, the least id in it.

        Directions do not count: NetworkX's `connected_components` and `weakly_connected_components`, GraphFrames'
        `connectedComponents` (whose names of components are other ones).

        >>> import dlog
        >>> list(dlog.graph([(1, 2), (3, 2), (7, 5)]).connected_components())
        [(1, 1), (2, 1), (3, 1), (5, 5), (7, 5)]
        """
        return self._answer(structure.connected_components())

    def strongly_connected_components(self) -> _Answer:
        """The strongly connected component of each vertex: `id`, `component`, the least id in it.

        Two vertices are in one if each is reached from the other: NetworkX's and GraphFrames' namesakes. Of an undirected graph
        these are its components.

        >>> import dlog
        >>> list(dlog.graph([(1, 2), (2, 1), (2, 3)]).strongly_connected_components())
        [(1, 1), (2, 1), (3, 3)]
        """
        if not self.directed:
            return self.connected_components()
        return self._answer(structure.strongly_connected_components())

    # ------------------------------------------------------------------------------------------------------------- density

    def triangle_count(self) -> _Answer:
        """How many triangles each vertex is in: `id`, `count`.

        Directions, loops and parallel edges do not count: NetworkX's `triangles` and GraphFrames' `triangleCount`.

        >>> import dlog
        >>> list(dlog.graph([(1, 2), (2, 3), (3, 1), (3, 4)]).triangle_count())
        [(1, 1), (2, 1), (3, 1), (4, 0)]
        """
        return self._answer(structure.triangle_count())

    def clustering(self) -> _Answer:
        """The clustering coefficient of each vertex: `id`, `clustering`, the share of the pairs of its neighbours that are
        joined, 0 for less than two neighbours.

        Directions, loops and parallel edges do not count: NetworkX's `clustering` of an undirected graph.

        >>> import dlog
        >>> list(dlog.graph([(1, 2), (2, 3), (3, 1), (3, 4), (4, 5)]).clustering())[2]
        (3, 0.3333333333333333)
        """
        return self._answer(structure.clustering())

    def core_numbers(self) -> _Answer:
        """The core number of each vertex: `id`, `kcore`, the greatest k for which it is in the k-core.

        Directions, loops and parallel edges do not count: NetworkX's `core_number`, and GraphFrames' `k_core` of graphs with
        each edge once.

        >>> import dlog
        >>> list(dlog.graph([(1, 2), (2, 3), (3, 1), (3, 4)]).core_numbers())
        [(1, 2), (2, 2), (3, 2), (4, 1)]
        """
        return self._answer(structure.core_numbers())

    def k_core(self, k: int) -> _Answer:
        """The vertices of the k-core, the greatest part of the graph in which each has k neighbours or more: `id`.

        Directions, loops and parallel edges do not count: the vertices of NetworkX's `k_core`. `k` is at least 1.

        >>> import dlog
        >>> list(dlog.graph([(1, 2), (2, 3), (3, 1), (3, 4)]).k_core(2))
        [(1,), (2,), (3,)]
        """
        return self._answer(structure.k_core(check_count("k", k, 1)))

    def k_truss(self, k: int) -> _Answer:
        """The edges of the k-truss, the greatest part of the graph in which each is in k - 2 triangles or more: `src`, `dst`,
        one row each, the lesser end first.

        Directions, loops and parallel edges do not count: the edges of NetworkX's `k_truss`. `k` is at least 2.

        >>> import dlog
        >>> list(dlog.graph([(1, 2), (2, 3), (3, 1), (3, 4)]).k_truss(3))
        [(1, 2), (1, 3), (2, 3)]
        """
        return self._answer(structure.k_truss(check_count("k", k, 2)))

    def degrees(self) -> _Answer:
        """How many edges each vertex has: `id`, `in_degree`, `out_degree`, `degree`.

        Parallel edges count each, and a loop is an edge in and an edge out: NetworkX's and GraphFrames' degrees. (In an
        undirected graph edges go out of the end that they name first, so that only `degree` means anything.)

        >>> import dlog
        >>> list(dlog.graph([(1, 2), (1, 3), (3, 3)]).degrees())
        [(1, 0, 2, 2), (2, 1, 0, 1), (3, 2, 1, 3)]
        """
        return self._answer(structure.degrees())

    def degree_distribution(self) -> _Answer:
        """How many vertices have each degree: `degree`, `vertices`, one row for each degree there is.

        >>> import dlog
        >>> list(dlog.graph([(1, 2), (1, 3), (3, 4)]).degree_distribution())
        [(1, 2), (2, 2)]
        """
        return self._answer(structure.degree_distribution())

    # -------------------------------------------------------------------------------------------------------- by iteration

    def label_propagation(self, max_iterations: int) -> _Answer:
        """Communities: `id`, `label`, the id whose label has spread to the vertex.

        In each of exactly `max_iterations` steps all vertices at once take the label that most of their neighbours have, the
        least of several. Directions do not count, parallel edges count each: GraphFrames' `labelPropagation` with the algorithm
        `graphx`. (NetworkX's algorithms change labels one after the other.)

        >>> import dlog
        >>> list(dlog.graph([(1, 2), (2, 3), (3, 1), (7, 8), (8, 9), (9, 7)]).label_propagation(5))
        [(1, 1), (2, 1), (3, 1), (7, 7), (8, 7), (9, 7)]
        """
        return self._answer(iterated.label_propagation(check_count("max_iterations", max_iterations, 1)))

    def pagerank(
        self,
        max_iterations: int | None = None,
        *,
        tolerance: float | None = None,
        damping: float = 0.85,
        weight: str | None = None,
    ) -> _Answer:
        """Ranks of the vertices that sum up to 1: `id`, `pagerank`.

        Power iteration from equal ranks, as NetworkX's `pagerank` does it: a vertex without edges out spreads its rank evenly.
        GraphFrames' `pageRank` has the same ranks times the number of vertices, once they have settled.

        Parameters
        ----------
        max_iterations
            Do so many iterations; with a tolerance, at most so many.
        tolerance
            Stop after the iteration whose changes sum up to less than `tolerance` times the number of vertices. The default is
            1e-6 if there is no `max_iterations` either.
        damping
            The share of its rank that a vertex passes on; GraphFrames' `resetProbability` is 1 less this.
        weight
            The column of weights by which a vertex divides its rank; parallel edges add up. Without it they count each.

        Raises
        ------
        DlogError
            A weight is negative; ranks do not settle within 1,000 iterations and no `max_iterations` is given.

        >>> import dlog
        >>> ranks = dict(dlog.graph([("a", "b"), ("c", "b")]).pagerank())
        >>> round(ranks["b"], 3), round(sum(ranks.values()), 9)
        (0.574, 1.0)
        """
        iterations = None if max_iterations is None else check_count("max_iterations", max_iterations, 1)
        if tolerance is not None and not (isinstance(tolerance, float | int) and tolerance > 0):
            raise out_of_range("tolerance", tolerance, "a number above 0")
        if iterations is None and tolerance is None:
            tolerance = 1e-6
        if weight is not None:
            self._float_weights(weight)
        return self._answer(iterated.pagerank(check_share("damping", damping), iterations, tolerance, weight, self.directed))

    def maximal_independent_set(self, seed: int = 0) -> _Answer:
        """Vertices of which no two are joined and to which none can be added: `id`, one row each.

        The set depends on `seed` and on nothing else. Directions and loops do not count. NetworkX's and GraphFrames' namesakes
        find other sets.

        >>> import dlog
        >>> len(dlog.graph([(1, 2), (2, 3), (3, 1)]).maximal_independent_set())
        1
        """
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise mistake("bad-argument", f"`seed` must be a whole number, not {seed!r}")
        return self._answer(iterated.maximal_independent_set(seed))


class ArrayAnalyses(Analyses[_Answer]):
    """The analyses of a graph of arrays."""

    @property
    @abstractmethod
    def names(self) -> Names:
        """The vertices."""

    @property
    @abstractmethod
    def numbered(self) -> Numbered:
        """The graph in numbers."""

    @property
    def directed(self) -> bool:
        return self.numbered.directed

    def _codes(self, ids: Any, where: str) -> Codes:
        return self.names.encode(one_or_many(ids, self.names), where)

    def _float_weights(self, column: str) -> bool:
        return bool(weights(self.numbered.attributes, column).dtype.kind == "f")
