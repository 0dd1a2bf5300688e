"""The workloads of the Spark benchmark: program, data, and what tells one answer from another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.bench import inputs
from tests.bench.inputs import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROGRAMS = Path(__file__).parent / "programs" / "spark"
ITERATIONS = 20
"""Of PageRank."""
COLUMNS = {"edge": ("src", "dst", "weight"), "parent": ("child", "parent"), "source": ("id",), "vertex": ("id",)}
"""The attributes of the inputs, as far as they have them."""

Fingerprint = Callable[["DataFrame"], dict[str, float]]


@dataclass(frozen=True, slots=True)
class Workload:
    """`output` is the relation that is the answer; `fingerprint` a few figures of it that are the same for every right one."""

    name: str
    title: str
    data: str
    recipe: inputs.Recipe
    output: str
    fingerprint: Fingerprint

    def facts(self) -> Path:
        return inputs.prepare(f"spark-{self.data}", self.recipe)

    def program(self) -> str:
        text = (PROGRAMS / f"{self.name}.dl").read_text(encoding="ascii")
        steps = "\n".join(f"STEP({n}, {n + 1})" for n in range(ITERATIONS))
        return text.replace("\nITERATIONS\n", f"\n{steps}\n").replace("LAST(", f"rank_{ITERATIONS}(")

    def inputs(self, given: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """Those of the data that the program reads."""
        text = self.program()
        return {name: frame for name, frame in given.items() if f".input {name}\n" in text}


# --------------------------------------------------------------------------------------------------------------- data


def rmat(rng: np.random.Generator, scale: int, edges: int) -> Rows:
    """An R-MAT graph (Chakrabarti et al., SDM 2004) with the probabilities of Graph500: 2**scale vertices under random names,
    exactly `edges` different directed edges without loops."""
    name = rng.permutation(1 << scale)
    keys = np.empty(0, np.int64)
    while len(keys) < edges:
        ends = np.zeros((2, edges // 4 * 5 - len(keys)), np.int64)
        for _ in range(scale):
            drawn = rng.random(ends.shape[1])
            ends = 2 * ends + np.stack([drawn >= 0.76, (drawn >= 0.57) & (drawn < 0.76) | (drawn >= 0.95)])
        source, target = name[ends]
        keys = np.unique(np.concatenate([keys, (source << scale | target)[source != target]]))
    keys = rng.permutation(keys)[:edges]
    return np.stack([keys >> scale, keys & ((1 << scale) - 1)], 1)


def rmat_graph(scale: int = 17, edges: int = 1_047_185) -> dict[str, Rows]:
    """The graph, all its vertices, and as source the one with most edges out."""
    edge = rmat(np.random.default_rng(10), scale, edges)
    return {"edge": edge, "vertex": np.arange(1 << scale), "source": np.bincount(edge[:, 0]).argmax(keepdims=True)}


def weighted_graph() -> dict[str, Rows]:
    graph = rmat_graph()
    weight = np.random.default_rng(11).integers(1, 101, len(graph["edge"]))
    return {**graph, "edge": np.column_stack([graph["edge"], weight])}


def triangle_graph() -> dict[str, Rows]:
    return {**inputs.triangles(), "vertex": np.arange(100_000)}


# ------------------------------------------------------------------------------------------------------- fingerprints


def _figures(answer: DataFrame, **figures: Any) -> dict[str, float]:
    row = answer.agg(*(column.alias(name) for name, column in figures.items())).first()
    assert row is not None
    return {name: float(row[name] or 0) for name in figures}


def of_rows(answer: DataFrame) -> dict[str, float]:
    """For integer columns: the number of rows, and a sum over a hash of each."""
    from pyspark.sql import functions as F

    columns = [F.col(c).cast("bigint") for c in answer.columns]
    return _figures(answer, rows=F.count("*"), hashes=F.sum(F.hash(*columns).cast("bigint")))


def of_groups(answer: DataFrame) -> dict[str, float]:
    """For (vertex, component): which label a component has does not matter."""
    from pyspark.sql import functions as F

    sizes = answer.groupBy(answer.columns[1]).agg(F.count("*").alias("n"), F.min(answer.columns[0]).alias("least"))
    return _figures(sizes, components=F.count("*"), squares=F.sum(F.col("n") * F.col("n")), least=F.sum("least"))


def of_ranks(answer: DataFrame) -> dict[str, float]:
    """For (vertex, rank): sums that rounding changes in the tenth digit only."""
    from pyspark.sql import functions as F

    vertex, rank = (F.col(c) for c in answer.columns)
    parts = rank * (vertex % 101)
    return _figures(answer, rows=F.count("*"), ranks=F.sum(rank), parts=F.sum(parts), squares=F.sum(rank * rank))


WORKLOADS = {
    w.name: w
    for w in (
        Workload("closure", "closure, 2,000 vertices, 6,000 edges", "closure", inputs.closure, "path", of_rows),
        Workload("same_generation", "same generation, tree of depth 9", "tree", inputs.same_generation, "sg", of_rows),
        Workload("reachability", "reachability, R-MAT", "rmat", rmat_graph, "reach", of_rows),
        Workload("bfs", "hops, R-MAT", "rmat", rmat_graph, "distance", of_rows),
        Workload("shortest_paths", "weighted paths, R-MAT", "weighted", weighted_graph, "distance", of_rows),
        Workload("components", "components, R-MAT", "rmat", rmat_graph, "component", of_groups),
        Workload("pagerank", f"PageRank, {ITERATIONS} iterations, R-MAT", "rmat", rmat_graph, "pagerank", of_ranks),
        Workload("triangles", "triangles per vertex, power law", "triangles", triangle_graph, "triangles", of_rows),
    )
}
