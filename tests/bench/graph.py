"""Bench of the graph library on an R-MAT graph with 131,072 vertices and 1,047,185 edges, beside NetworkX and igraph where they
are installed: from a graph to a table of answers. What making the graph of arrays costs is told by itself.

Answers are compared. A question that takes longer than the time-out is given up.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.bench.inputs import rmat_graph
from tests.bench.process import Options
from tests.bench.report import as_ratio, console, quotient, save, seconds_or_reason, show

VERTICES, EDGES = 1 << 17, 1_047_185
SOURCE = 11_922
"""The vertex with the most edges out."""
Answer = Callable[[Any], float]
"""A run on a graph, told as one number that all libraries must agree on."""


def column(result: Any, name: str) -> NDArray[Any]:
    return np.asarray(result.table[name])


DLOG: dict[str, Answer] = {
    "reachable": lambda g: len(g.reachable(SOURCE).table),
    "bfs": lambda g: int(column(g.bfs(SOURCE), "distance").sum()),
    "weighted paths": lambda g: int(column(g.shortest_paths(sources=SOURCE, weight="weight"), "distance").sum()),
    "components": lambda g: len(np.unique(column(g.connected_components(), "component"))),
    "strong components": lambda g: len(np.unique(column(g.strongly_connected_components(), "component"))),
    "degrees": lambda g: int(column(g.degrees(), "degree").max()),
    "pagerank": lambda g: round(float(column(g.pagerank(tolerance=1e-6), "pagerank").max()), 6),
    "independent set": lambda g: len(g.maximal_independent_set().table),
    "labels, 5": lambda g: len(np.unique(column(g.label_propagation(5), "label"))),
    "triangles": lambda g: int(column(g.triangle_count(), "count").sum()) // 3,
    "clustering": lambda g: round(float(column(g.clustering(), "clustering").mean()), 6),
    "10-core": lambda g: len(g.k_core(10).table),
    "core numbers": lambda g: int(column(g.core_numbers(), "kcore").max()),
    "5-truss": lambda g: len(g.k_truss(5).table),
    "directed triangles": lambda g: len(g.find("(a)-[]->(b); (b)-[]->(c); (c)-[]->(a)").table),
    "one-way edges": lambda g: len(g.find("(a)-[e]->(b); !(b)-[]->(a)").table),
}


def networkx_answers() -> dict[str, Answer]:
    import networkx as nx

    return {
        "reachable": lambda g: len(nx.descendants(g, SOURCE)) + 1,
        "bfs": lambda g: sum(nx.single_source_shortest_path_length(g, SOURCE).values()),
        "weighted paths": lambda g: sum(nx.single_source_dijkstra_path_length(g, SOURCE).values()),
        "components": nx.number_weakly_connected_components,
        "strong components": nx.number_strongly_connected_components,
        "degrees": lambda g: max(d for _, d in g.degree()),
        "pagerank": lambda g: round(max(nx.pagerank(g, weight=None).values()), 6),
        "triangles": lambda g: sum(nx.triangles(_simple(g)).values()) // 3,
        "clustering": lambda g: round(nx.average_clustering(_simple(g)), 6),
        "10-core": lambda g: len(nx.k_core(_simple(g), 10)),
        "core numbers": lambda g: max(nx.core_number(_simple(g)).values()),
        "5-truss": lambda g: nx.k_truss(_simple(g), 5).number_of_edges(),
    }


def igraph_answers() -> dict[str, Answer]:
    return {
        "reachable": lambda g: len(g.subcomponent(SOURCE, mode="out")),
        "bfs": lambda g: sum(int(d) for d in g.distances(SOURCE)[0] if d < float("inf")),
        "weighted paths": lambda g: sum(int(d) for d in g.distances(SOURCE, weights="weight")[0] if d < float("inf")),
        "components": lambda g: len(g.connected_components(mode="weak")),
        "strong components": lambda g: len(g.connected_components(mode="strong")),
        "degrees": lambda g: max(g.degree()),
        "triangles": lambda g: len(g.as_undirected().list_triangles()),
        "10-core": lambda g: sum(k >= 10 for k in g.as_undirected().coreness()),
        "core numbers": lambda g: max(g.as_undirected().coreness()),
    }


def _simple(graph: Any) -> Any:
    import networkx as nx

    return nx.Graph(graph)


def make_dlog(edges: NDArray[np.int64], weight: NDArray[np.int64]) -> Any:
    import dlog

    return dlog.graph(np.arange(VERTICES), {"src": edges[:, 0], "dst": edges[:, 1], "weight": weight})


def make_networkx(edges: NDArray[np.int64], weight: NDArray[np.int64]) -> Any:
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(VERTICES))
    graph.add_weighted_edges_from(zip(edges[:, 0].tolist(), edges[:, 1].tolist(), weight.tolist(), strict=True))
    return graph


def make_igraph(edges: NDArray[np.int64], weight: NDArray[np.int64]) -> Any:
    import igraph

    return igraph.Graph(n=VERTICES, edges=edges, directed=True, edge_attrs={"weight": weight})


LIBRARIES: dict[str, tuple[Callable[..., Any], Callable[[], dict[str, Answer]]]] = {
    "dlog": (make_dlog, lambda: DLOG),
    "networkx": (make_networkx, networkx_answers),
    "igraph": (make_igraph, igraph_answers),
}
MAKING = "making the graph"


def run(options: Options) -> bool:
    """Measures, prints and saves; false when answers differ."""
    figures: dict[str, dict[str, float | str]] = {}
    answers: dict[str, dict[str, float]] = {}
    for library in LIBRARIES:
        figures[library], answers[library] = measured(library, options)
    rows = []
    for name in (MAKING, *DLOG):
        times = [figures[library].get(name, "-") for library in LIBRARIES]
        ratios = [as_ratio(quotient(times[0], other)) for other in times[1:]]
        rows.append([name, *map(seconds_or_reason, times), *ratios])
    title = f"graphs: {VERTICES:,} vertices, {EDGES:,} edges; load {os.getloadavg()[0]:.1f}"
    show(title, ["", *LIBRARIES, *(f"dlog / {library}" for library in list(LIBRARIES)[1:])], rows)
    wrong = [
        f"{name}: {library} {found[name]}, dlog {answers['dlog'].get(name)}"
        for library, found in answers.items()
        for name in found
        if found[name] != answers["dlog"].get(name)
    ]
    for line in wrong:
        console.print(f"[bold red]{line}")
    save("graph", {"seconds": figures, "answers": answers}, options.json)
    return not wrong


def measured(library: str, options: Options) -> tuple[dict[str, float | str], dict[str, float]]:
    """Times and answers of one library, each question within the time-out: in a process of its own that is killed if it takes
    longer, and goes on with the next one."""
    times: dict[str, float | str] = {}
    answers: dict[str, float] = {}
    left = list(DLOG)
    while left:
        receiving, sending = multiprocessing.Pipe(duplex=False)
        arguments = (library, left, options.repeats, sending)
        process = multiprocessing.get_context("spawn").Process(target=answer_all, args=arguments)
        process.start()
        sending.close()
        try:
            times.update(listen(receiving, left, answers, options.timeout))
        finally:
            process.kill()
            process.join()
    return times, answers


def listen(receiving: Any, left: list[str], answers: dict[str, float], timeout: float) -> dict[str, float | str]:
    """What a process tells until it is done or too slow; `left` loses what is settled."""
    times: dict[str, float | str] = {}
    while left:
        if not receiving.poll(timeout):
            times[left.pop(0)] = f"> {timeout:.0f} s"
            return times
        try:
            name, best, answer = receiving.recv()
        except EOFError:
            left.clear()
            return times
        console.print(f"[dim]{name}: {seconds_or_reason(best)}")
        times[name] = best
        if name in left:
            left.remove(name)
            if answer is not None:
                answers[name] = answer
    return times


def answer_all(library: str, names: list[str], repeats: int, sending: Any) -> None:
    """Runs the questions of one library and sends the best time and the answer of each."""
    make, questions = LIBRARIES[library]
    edges, weight = rmat_graph(VERTICES, EDGES)
    start = time.perf_counter()
    try:
        graph = make(edges, weight)
    except ImportError:
        questions = dict
    else:
        sending.send((MAKING, time.perf_counter() - start, None))
    for name in names:
        ask = questions().get(name)
        try:
            sending.send((name, "-", None) if ask is None else (name, *best(ask, graph, repeats)))
        except ImportError as reason:
            sending.send((name, f"no {reason.name}", None))


def best(ask: Answer, graph: Any, repeats: int) -> tuple[float, float]:
    """The least time of some runs, and the answer. Runs of many seconds are not repeated."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < 10:
        start = time.perf_counter()
        answer = ask(graph)
        times.append(time.perf_counter() - start)
    return min(times), answer
