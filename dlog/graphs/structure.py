"""Questions about the structure of a graph: components, triangles, degrees, cores and trusses."""

from __future__ import annotations

from functools import partial

import numpy as np

from dlog.graphs.cores import LiveCores, peeled
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
    shape = Shape("vertex", (("id", "vertex"), ("kcore", "value")))
    return Computation(shape, _core_numbers, elsewhere("core_numbers"), _cores_live)


def _cores_live(graph: Numbered, _: Running) -> LiveCores:
    return LiveCores(graph)


def _core_numbers(graph: Numbered, _: Running) -> Columns:
    return np.arange(graph.vertices), peeled(graph.vertices, graph.src, graph.dst)


def k_core(k: int) -> Rules:
    """The vertices that are left when those with fewer than k neighbours go until there are none."""
    shape = Shape("vertex", (("id", "vertex"),))
    on_spark = elsewhere("k_core", k)
    return Rules(shape, Program("core"), "core", vertices=False, facts=_bound_facts(k), on_spark=on_spark)


def k_truss(k: int) -> Rules:
    """The edges that are left when those in fewer than k - 2 triangles go until there are none."""
    shape = Shape("edge", (("src", "vertex"), ("dst", "vertex")))
    on_spark = elsewhere("k_truss", k)
    return Rules(shape, Program("truss"), "truss", vertices=False, facts=_bound_facts(k), on_spark=on_spark)


def _bound_facts(k: int) -> dict[str, Columns]:
    return {"bound": (np.array([k]),)}
