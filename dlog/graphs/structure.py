"""Questions about the structure of a graph: components, triangles, degrees, cores and trusses."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dlog.graphs.library import Program
from dlog.graphs.names import Codes
from dlog.graphs.numbered import Numbered, mixed
from dlog.graphs.questions import Computation, Rules, Shape, elsewhere
from dlog.graphs.running import Columns, Running
from dlog.graphs.strong import LiveComponents

COMPONENT = Shape("vertex", (("id", "vertex"), ("component", "vertex")))


def connected_components() -> Rules:
    """The least vertex of each vertex's component."""
    return Rules(COMPONENT, Program("connected_components"), "component")


def triangle_count() -> Rules:
    """How many triangles each vertex is in."""
    shape = Shape("vertex", (("id", "vertex"), ("count", "value")))
    return Rules(shape, Program("triangle_count"), "triangles")


def clustering() -> Rules:
    """The share of the pairs of a vertex's neighbours that are joined."""
    shape = Shape("vertex", (("id", "vertex"), ("clustering", "value")))
    return Rules(shape, Program("clustering"), "clustering")


def degrees() -> Rules:
    """Edges in, out and both of each vertex."""
    shape = Shape("vertex", (("id", "vertex"), ("in_degree", "value"), ("out_degree", "value"), ("degree", "value")))
    return Rules(shape, Program("degrees"), "degrees", "numbered")


def degree_distribution() -> Rules:
    """How many vertices have each degree."""
    shape = Shape("none", (("degree", "value"), ("vertices", "value")))
    return Rules(shape, Program("degrees"), "distribution", "numbered")


# ------------------------------------------------------------------------------------------------ strongly connected components


def strongly_connected_components() -> Computation:
    """The least vertex of each vertex's strongly connected component."""
    return Computation(COMPONENT, _strong, elsewhere("strong"), _strong_live)


def _strong(graph: Numbered, running: Running) -> Columns:
    return np.arange(graph.vertices), _strong_components(running, graph.vertices, graph.src, graph.dst)


def _strong_live(graph: Numbered, running: Running) -> LiveComponents:
    return LiveComponents(graph, partial(_strong_components, running))


def _strong_components(running: Running, vertices: int, src: Codes, dst: Codes) -> Codes:
    """The least vertex of each vertex's component: passes of `strongly_connected_components` until every vertex is in one.
    Vertices have random numbers meanwhile, as the pivots are the least ones."""
    order = np.argsort(mixed(np.arange(vertices), 0))
    number = np.empty_like(order)
    number[order] = np.arange(vertices)
    edge: Columns = (number[src], number[dst])
    part: Columns = (np.arange(vertices), np.zeros(vertices, np.int64))
    component = np.arange(vertices)
    program = Program("strongly_connected_components")
    while len(part[0]):
        done = running.run(program, {"part": part, "edge": edge}, ("component", "rest", "within"))
        found, names = done["component"]
        component[found] = names
        part, edge = done["rest"], done["within"]
    return _least_of_groups(component[number])


def _least_of_groups(group: Codes) -> Codes:
    """For each place the least place with the same group."""
    _, first, places = np.unique(group, return_index=True, return_inverse=True)
    return np.asarray(first[places], np.int64)


# --------------------------------------------------------------------------------------------------------------------- cores


def core_numbers() -> Computation:
    """The greatest k for which each vertex is in the k-core."""
    return Computation(Shape("vertex", (("id", "vertex"), ("kcore", "value"))), _core_numbers, elsewhere("core_numbers"))


def _core_numbers(graph: Numbered, running: Running) -> Columns:
    """Peels a session's graph with k = 1, 2, ..."""
    core = np.zeros(graph.vertices, np.int64)
    facts = {"edge": _simple(graph), "bound": (np.ones(1, np.int64),)}
    with running.session(Program("k_core"), facts) as session:
        k = 1
        while session.rows("degree"):
            if low := session.rows("low"):
                session.insert("removed", session["low"].to_numpy())
                core[session["low"].to_numpy()["x"]] = k - 1
            else:
                session.remove("bound", (k,))
                k = int(session["degree"].to_numpy()["neighbours"].min()) + 1
                session.insert("bound", (k,))
            del low
            session.commit()
    return np.arange(graph.vertices), core


def k_core(k: int) -> Rules:
    """The vertices that are left when those with fewer than k neighbours go until there are none."""
    shape = Shape("vertex", (("id", "vertex"),))
    on_spark = elsewhere("k_core", k)
    return Rules(shape, Program("core"), "core", vertices=False, facts=_bound(k), on_spark=on_spark)


def k_truss(k: int) -> Rules:
    """The edges that are left when those in fewer than k - 2 triangles go until there are none."""
    shape = Shape("edge", (("src", "vertex"), ("dst", "vertex")))
    on_spark = elsewhere("k_truss", k)
    return Rules(shape, Program("truss"), "truss", vertices=False, facts=_bound(k), on_spark=on_spark)


def _bound(k: int) -> dict[str, Columns]:
    return {"bound": (np.array([k]),)}


def _simple(graph: Numbered) -> Columns:
    """Each pair of joined vertices once, the lesser first."""
    low, high = np.minimum(graph.src, graph.dst), np.maximum(graph.src, graph.dst)
    keys: NDArray[np.int64] = np.unique((low * graph.vertices + high)[low != high])
    return keys // max(graph.vertices, 1), keys % max(graph.vertices, 1)
