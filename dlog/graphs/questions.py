"""The questions about a graph: rules whose answer is a relation, or a computation that runs rules until nothing changes.

Rules can be maintained while the graph changes, a computation is done again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from dlog.dataclass import dataclass
from dlog.graphs.library import Program
from dlog.graphs.mistakes import bad_weight
from dlog.graphs.numbered import Form, Numbered, check_not_negative
from dlog.graphs.running import Columns, Relations, Running

if TYPE_CHECKING:
    from dlog.graphs.frames.numbers import Numbers
    from dlog.graphs.frames.running import Answer, SparkRunning

OnSpark: TypeAlias = "Callable[[Numbers, SparkRunning], Answer]"
Holds = Literal["vertex", "value"]
Of = Literal["vertex", "pair", "edge", "none"]


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of an answer, each with what it holds, and what there is one row for: each vertex (`id` comes first), each
    pair of a landmark and a vertex, each edge, or something else."""

    of: Of
    columns: tuple[tuple[str, Holds], ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """The relation `answer_relation` of a program that reads the graph and `facts`. `form`, `weight` and `floats` (weights as
    such, whatever they are in the table) say how it reads edges; without `vertices` it reads none. `named` are the facts that
    are vertices the question names, each with where it does. `on_spark` is what is done in the place of rules that workers
    cannot share, of a graph in Spark."""

    shape: Shape
    program: Program
    answer_relation: str
    form: Form = "plain"
    weight: str | None = None
    floats: bool = False
    vertices: bool = True
    facts: Relations = field(default_factory=dict)
    named: tuple[tuple[str, str], ...] = ()
    on_spark: OnSpark | None = None

    def relations(self, graph: Numbered) -> dict[str, Columns]:
        """All facts of the program."""
        return {**self.graph_relations(graph), **self.facts}

    def graph_relations(self, graph: Numbered) -> dict[str, Columns]:
        """The relations that change with the graph."""
        edge = self.edge(graph)
        return {"edge": edge, "vertex": graph.vertex()} if self.vertices else {"edge": edge}

    def edge(self, graph: Numbered) -> Columns:
        """The relation of edges; DlogError if their weights do not do."""
        edge = graph.edge(self.form, self.weight)
        if self.weight is None:
            return edge
        check_not_negative(self.weight, edge[-1])
        if self.floats:
            return (*edge[:-1], edge[-1].astype(np.float64))
        if edge[-1].dtype.kind == "f":
            raise bad_weight(self.weight, "is of floats, after weights that are integers")
        return edge

    def answer(self, graph: Numbered, running: Running) -> Columns:
        return running.run(self.program, self.relations(graph), (self.answer_relation,))[self.answer_relation]


@dataclass(frozen=True, slots=True)
class Computation:
    """An answer that takes several runs of programs: of a graph of arrays, and of one in Spark. `follow` makes what keeps it up
    to date, where that is not done by computing it again."""

    shape: Shape
    compute: Callable[[Numbered, Running], Columns]
    on_spark: OnSpark
    follow: Callable[[Numbered, Running], Any] | None = None

    def answer(self, graph: Numbered, running: Running) -> Columns:
        return self.compute(graph, running)


def elsewhere(name: str, *args: Any) -> OnSpark:
    """The computation of that name on Spark, with these arguments."""

    def compute(numbers: Numbers, running: SparkRunning) -> Answer:
        from dlog.graphs.frames import computed

        answer: Answer = getattr(computed, name)(numbers, running, *args)
        return answer

    return compute


Question: TypeAlias = Rules | Computation
