"""Mistakes of graphs: what they are made of, and what is asked of them."""

from __future__ import annotations

from typing import Final

from tests.run_mistakes.example import Example, python, untold


def _graph(meaning: str, lines: str, varies: bool = False, slow: bool = False) -> Example:
    return python(meaning, f"import dlog\n\n{lines}", varies, slow=slow)


GRAPHS: Final[dict[str, Example]] = {
    "answer-ended": _graph(
        "An answer that follows a graph could not follow after a round: ask for it again.",
        """graph = dlog.graph([(1, 2), (2, 1)]).live()
ranks = graph.pagerank(damping=0.999)
graph.add_edges([(3, 2), (2, 3)])
try:
    graph.commit()
except dlog.DlogError:  # `not-converged`
    ranks.table""",
        slow=True,
    ),
    "bad-attributes": _graph(
        "Edges that are added have attributes that do not go with those of the others: give them the same types.",
        """graph = dlog.graph({"src": [1], "dst": [2], "km": [5]}).live()
graph.add_edges({"src": [2], "dst": [3], "km": ["far"]})
graph.commit()""",
        varies=True,
    ),
    "bad-edges": _graph(
        "What is given for edges is none: the ends are two arrays of the same length, or tuples `(src, dst)`.",
        """import numpy as np

dlog.graph((np.array([1, 2, 3]), np.array([2, 3])))""",
    ),
    "bad-motif": _graph(
        "A motif is wrong: `find` says what one may be.",
        'dlog.graph([("a", "b")]).find("(x)-[]->(y); (y)-[]->")',
    ),
    "bad-vertex": _graph(
        "An id cannot be one of a vertex: it is None, or is not of the type of the others. Give ids of one type.",
        'dlog.graph([("a", "b"), ("b", None)])',
    ),
    "bad-weight": _graph(
        "The column of weights has no numbers, or some are missing: name another one, or fill the gaps.",
        'dlog.graph({"src": [1, 2], "dst": [2, 3], "km": [5, None]}).shortest_paths(1, weight="km")',
    ),
    "closed-answer": _graph(
        "The answer is closed, and follows its graph no longer: ask for it again.",
        """graph = dlog.graph([(1, 2)]).live()
components = graph.connected_components()
components.close()
components.table""",
    ),
    "closed-graph": _graph(
        "The graph is closed, and can be asked nothing more: `live()` makes another one.",
        """graph = dlog.graph([(1, 2)]).live()
graph.close()
graph.add_edges([(2, 3)])""",
    ),
    "missing-column": _graph(
        "A table has no column of that name: `src=`, `dst=` and `id=` say what the columns of a graph are called.",
        'dlog.graph({"source": [1], "target": [2]})',
    ),
    "no-graphframes": untold(
        "`graphframe` needs the package `graphframes-py`.",
        "the example would have to take the package away",
    ),
    "not-a-graph": _graph(
        "A graph cannot be made of what is given: the message lists what it can be made of.",
        "dlog.graph(7)",
    ),
    "not-converged": _graph(
        "Ranks still change by more than the tolerance after 1,000 iterations: give a greater one, or a number of iterations.",
        "dlog.graph([(1, 2), (2, 1), (3, 2), (2, 3)]).pagerank(damping=0.999)",
        slow=True,
    ),
    "not-of-vertices": _graph(
        "A result that does not have one row for each vertex is asked for as the table of vertices: `table` has its rows.",
        "dlog.graph([(1, 2)]).degree_distribution().vertices()",
    ),
    "null-vertex": _graph(
        "A column of ids has nulls: leave these rows out, for every vertex needs an id.",
        'dlog.graph({"src": [1, 2], "dst": [2, None]})',
    ),
    "repeated-vertex": _graph(
        "The table of vertices has an id twice: each vertex is one row.",
        'dlog.graph(["a", "b", "a"], [("a", "b")])',
    ),
    "unknown-engine": _graph(
        "There is no such engine for graphs: there are `embedded` and `spark`.",
        'dlog.graph([(1, 2)], engine="gpu")',
    ),
    "unknown-vertex": _graph(
        "There is no vertex with that id: vertices are those of the table, or the ends of edges.",
        'dlog.graph([("a", "b")]).bfs("c")',
    ),
}
