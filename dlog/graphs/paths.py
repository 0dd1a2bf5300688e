"""Questions about paths: what can be reached, and how far it is."""

from __future__ import annotations

import numpy as np

from dlog.graphs.library import Program
from dlog.graphs.names import Codes
from dlog.graphs.questions import Rules, Shape

SOURCES = (("source", "sources"),)


def reachable(sources: Codes, directed: bool) -> Rules:
    """The vertices that paths from the sources lead to."""
    shape = Shape("vertex", (("id", "vertex"),))
    program = Program("reachability", _walked(directed))
    return Rules(shape, program, "reachable", vertices=False, facts={"source": (sources,)}, named=SOURCES)


def bfs(sources: Codes, directed: bool) -> Rules:
    """How many edges each vertex is away from the nearest source."""
    shape = Shape("vertex", (("id", "vertex"), ("distance", "value")))
    return Rules(shape, Program("bfs", _walked(directed)), "distance", facts={"source": (sources,)}, named=SOURCES)


def shortest_paths(landmarks: Codes, directed: bool, weight: str | None, floats: bool, name: str) -> Rules:
    """The least length of a path between each vertex and each landmark; `name` is what the landmarks are called: `source` for
    paths from them."""
    shape = Shape("pair", ((name, "vertex"), ("id", "vertex"), ("distance", "value")))
    macros = [*_walked(directed), *(("FROM_LANDMARKS=1",) if name == "source" else ())]
    macros += ["UNWEIGHTED=1"] if weight is None else []
    macros += ["WEIGHT=float", "ZERO=0.0"] if floats else ["WEIGHT=number", "ZERO=0"]

    program = Program("shortest_paths", tuple(macros))
    facts = {"landmark": (np.unique(landmarks),)}
    return Rules(shape, program, "distance", weight=weight, floats=floats, facts=facts, named=(("landmark", f"{name}s"),))


def _walked(directed: bool) -> tuple[str, ...]:
    return () if directed else ("UNDIRECTED=1",)
