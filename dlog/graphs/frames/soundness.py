"""Whether rows make a graph, and have the vertices that a question names: found out by the run that answers the question.

Spark's own look at all ids takes longer than most questions. So what the rows are asked first brings rules along that find what
is wrong with them; only where these find something, or the run fails, Spark looks for the first mistake, to tell it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlog.engine.spark.application import refuses_barriers
from dlog.grammar.diagnostics import DlogError
from dlog.graphs.frames.numbers import Numbers
from dlog.graphs.frames.running import Answer, SparkRunning
from dlog.graphs.questions import Rules
from dlog.graphs.running import as_facts

if TYPE_CHECKING:
    from dlog.spark import SparkResult

STRAY, UNKNOWN = "stray", "unknown"
"""Ends of edges, and vertices that the question names, that are not in the table of vertices."""


def ruled(rules: Rules, numbers: Numbers, running: SparkRunning) -> Answer:
    """The answer to a question; DlogError where the rows make no graph, or lack a vertex that it names."""
    if not numbers.integers or refuses_barriers(numbers.spark):
        numbers.look()
    try:
        return _Asked(rules, numbers).answer(running)
    except DlogError:
        numbers.look()
        raise


class _Asked:
    """A question, and what is found out beside it."""

    def __init__(self, rules: Rules, numbers: Numbers) -> None:
        self.rules = rules
        self.numbers = numbers
        self.named = dict(rules.named) if numbers.integers else {}
        if numbers.sound and not rules.vertices:
            self._name_them()  # the question itself has no need of all vertices
        self.table = not numbers.sound and numbers.given.vertices is not None
        """Whether the table of vertices is looked at."""
        self.vertices = rules.vertices or self.table or bool(self.named)
        self.derived = numbers.integers and numbers.given.vertices is None and not numbers.counted
        """Whether the vertices are told by the edges, in the run itself."""

    def answer(self, running: SparkRunning) -> Answer:
        rules, beside = self.rules, self._beside()
        wanted = (rules.wanted, *([STRAY] if self.table else ()), *([UNKNOWN] if self.named else ()))
        done = running.run_beside(rules.program, beside, self._facts(), wanted)
        try:
            self._check(done)
        except BaseException:
            done.release()
            raise
        self.numbers.sound = True
        return Answer(done[rules.wanted].df, (done,), done[rules.wanted].rows)

    def _facts(self) -> dict[str, Any]:
        rules, numbers = self.rules, self.numbers
        facts: dict[str, Any] = {"edge": numbers.edge(rules.form, rules.weight, rules.floats), **as_facts(rules.facts)}
        if self.vertices and not self.derived:
            facts["vertex"] = numbers.vertex()
        return facts

    def _beside(self) -> str:
        """The rules that find out, and what they read."""
        lines = [] if self.rules.vertices or not self.vertices else [".decl vertex(x: number)", ".input vertex"]
        ends = self._edge("x", "_"), self._edge("_", "x")
        if self.vertices and self.derived:
            lines += [f"vertex(x) :- {edge}." for edge in ends]
        if self.table:
            lines += [f".decl {STRAY}(x: number)", *(f"{STRAY}(x) :- {edge}, !vertex(x)." for edge in ends)]
        if self.named:
            lines += [f".decl {UNKNOWN}(x: number)", *(f"{UNKNOWN}(x) :- {name}(x), !vertex(x)." for name in self.named)]
        return "\n".join([*lines, ""]) if lines else ""

    def _edge(self, src: str, dst: str) -> str:
        number = ["_"] if self.rules.form == "numbered" else []
        weight = ["_"] if self.rules.weight is not None else []
        return f"edge({', '.join([*number, src, dst, *weight])})"

    def _check(self, done: SparkResult) -> None:
        """Raises DlogError for the first mistake."""
        if self.table and (done[STRAY].rows or done.repeated("vertex")):
            self.numbers.look()
        if self.named and done[UNKNOWN].rows:
            self._name_them()

    def _name_them(self) -> None:
        for name, where in self.named.items():
            self.numbers.encode(self.rules.facts[name][0], where)
        self.named = {}
