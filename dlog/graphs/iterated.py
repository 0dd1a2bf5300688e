"""Questions that take steps, each of which reads all of the one before: PageRank, label propagation, independent sets."""

from __future__ import annotations

import numpy as np

from dlog.graphs.library import Program
from dlog.graphs.mistakes import not_converged
from dlog.graphs.numbered import Numbered
from dlog.graphs.questions import Computation, Question, Rules, Shape, elsewhere
from dlog.graphs.running import Columns, Running

BLOCK = 10
"""Steps that are run at once where it is not known how many it takes."""
LIMIT = 1000
"""Iterations after which PageRank is given up, unless a number is given."""
PAGERANK = Shape("vertex", (("id", "vertex"), ("pagerank", "value")))
MEMBERS = Shape("vertex", (("id", "vertex"),))


def label_propagation(iterations: int) -> Rules:
    """The label of each vertex after so many steps."""
    shape = Shape("vertex", (("id", "vertex"), ("label", "vertex")))
    return Rules(shape, Program("label_propagation", steps=iterations), f"label_{iterations}", "numbered")


# ------------------------------------------------------------------------------------------------------------------ PageRank


def pagerank(damping: float, iterations: int | None, tolerance: float | None, weight: str | None, directed: bool) -> Question:
    """Ranks after so many iterations, or after the first that changes less than the tolerance for each vertex."""
    macros = (*(() if directed else ("UNDIRECTED=1",)), *(() if weight is None else ("WEIGHTED=1",)))
    facts = {"damping": (np.array([damping]),)}
    if tolerance is None and iterations is not None:
        program = Program("pagerank", macros, iterations)
        return Rules(PAGERANK, program, f"rank_{iterations}", "numbered", weight, floats=True, facts=facts)
    rules = Rules(PAGERANK, Program("pagerank", macros), "", "numbered", weight, floats=True, facts=facts)
    on_spark = elsewhere("pagerank", rules, tolerance or 0.0, iterations, LIMIT, BLOCK)
    return Computation(PAGERANK, lambda graph, running: _until(rules, tolerance or 0.0, iterations, graph, running), on_spark)


def _until(rules: Rules, tolerance: float, iterations: int | None, graph: Numbered, running: Running) -> Columns:
    """Blocks of steps until one changes little enough, or there were as many as are allowed."""
    if not graph.vertices:
        return np.empty(0, np.int64), np.empty(0)
    facts = rules.relations(graph)
    ranks: Columns = (np.arange(graph.vertices), np.full(graph.vertices, 1 / graph.vertices))
    macros = (*rules.program.macros, "RANKS_GIVEN=1", "CHANGES=1")
    left = LIMIT if iterations is None else iterations
    while left:
        steps = min(left, BLOCK)
        left -= steps
        wanted = [f"{what}_{n}" for n in range(1, steps + 1) for what in ("change", "rank")]
        done = running.run(Program("pagerank", macros, steps), {**facts, "rank_0": ranks}, wanted)
        for n in range(1, steps + 1):
            if done[f"change_{n}"][0][0] < tolerance * graph.vertices:
                return done[f"rank_{n}"]
        ranks = done[f"rank_{steps}"]
    if iterations is None:
        raise not_converged(tolerance, LIMIT)
    return ranks


# ------------------------------------------------------------------------------------------------------------ independent set


def maximal_independent_set(seed: int) -> Computation:
    """The set that a walk through the vertices in random order finds."""

    def compute(graph: Numbered, running: Running) -> Columns:
        vertex = (*graph.vertex(), graph.random_order(seed))
        facts = {"vertex": vertex, "edge": graph.edge("plain"), "out_0": (np.empty(0, np.int64),)}
        steps = BLOCK
        while True:
            wanted = (f"member_{steps}", f"out_{steps}", f"left_{steps}")
            members, out, left = running.run(Program("maximal_independent_set", steps=steps), facts, wanted).values()
            if not left[0][0]:
                return (np.sort(members[0]),)
            facts["out_0"] = out

    return Computation(MEMBERS, compute, elsewhere("independent_set", seed, BLOCK))
