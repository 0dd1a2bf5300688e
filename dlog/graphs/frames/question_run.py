"""A question to a graph in Spark as one run: its rules, and rules beside them that look at what they are given.

Spark's own look at all ids takes longer than most questions. So the first question brings rules along that find out whether
rows make a graph, and each one those that find out whether the vertices it names are there; only where these find something,
or the run fails, Spark looks for the first mistake, to tell it. And vertices whose ids are strings have their numbers, in the
order of the ids, from the workers (`dlog.engine.cluster.ranking`): nothing is joined before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dlog.engine.spark.application import refuses_barriers
from dlog.grammar.diagnostics import DlogError
from dlog.graphs.frames.numbers import Numbers, edge_columns
from dlog.graphs.frames.running import Answer, SparkRunning, attributes
from dlog.graphs.mistakes import mistake
from dlog.graphs.questions import Rules
from dlog.graphs.running import as_facts

if TYPE_CHECKING:
    from dlog.spark import SparkResult

STRAY, UNKNOWN = "stray", "unknown"
"""Ends of edges, and vertices that the question names, that are not in the table of vertices."""
RANK, ANSWER = "rank", "answer"
"""The number of each id; the answer with ids for numbers."""


def is_named_beside(numbers: Numbers) -> bool:
    """Whether the vertices that a question names are looked up in the run itself."""
    return numbers.integers or _ranks(numbers)


def _ranks(numbers: Numbers) -> bool:
    return numbers.source.type == "string" and not refuses_barriers(numbers.spark)


def ruled(rules: Rules, numbers: Numbers, running: SparkRunning) -> Answer:
    """The answer to a question; DlogError where the rows make no graph, or lack a vertex that it names."""
    if refuses_barriers(numbers.spark):
        numbers.look()  # nobody would see that a vertex is there twice
    try:
        return (_StringQuestionRun if _ranks(numbers) else _QuestionRun)(rules, numbers).answer(running)
    except DlogError:
        numbers.look()
        raise


class _QuestionRun:
    """A question, and what is found out beside it. Vertices are `vertex`, edges `edge`, to the rules that look at them."""

    vertex, edge, type = "vertex", "edge", "number"

    def __init__(self, rules: Rules, numbers: Numbers) -> None:
        self.rules = rules
        self.numbers = numbers
        self.named = dict(rules.named) if is_named_beside(numbers) else {}
        if numbers.integers and numbers.sound and not rules.vertices:
            self._name_them()  # the question itself has no need of all vertices
        looked_at = is_named_beside(numbers) and not numbers.sound
        self.table = looked_at and numbers.source.vertices is not None
        """Whether the table of vertices is looked at."""
        self.vertices = rules.vertices or self.table or bool(self.named)
        self.derived = numbers.source.vertices is None and not numbers.counted and is_named_beside(numbers)
        """Whether the vertices are told by the edges, in the run itself."""
        self.answer_relation = rules.answer_relation

    def answer(self, running: SparkRunning) -> Answer:
        wanted = (self.answer_relation, *([STRAY] if self.table else ()), *([UNKNOWN] if self.named else ()))
        beside = "".join(f"{line}\n" for line in [*self._lines(), *self._looks()])
        done = running.run_beside(self.rules.program, beside, self._facts(), wanted, **self._options())
        try:
            self._check(done)
        except BaseException:
            done.release()
            raise
        self.numbers.sound = True
        return self._answer(done)

    def _answer(self, done: SparkResult) -> Answer:
        return Answer(done[self.answer_relation].df, (done,), done[self.answer_relation].rows)

    def _options(self) -> dict[str, Any]:
        return {}

    # --------------------------------------------------------------------------------------------------------------- facts

    def _facts(self) -> dict[str, Any]:
        rules, numbers = self.rules, self.numbers
        facts: dict[str, Any] = {"edge": numbers.edge(rules.form, rules.weight, rules.floats), **as_facts(rules.facts)}
        if self.vertices and not self.derived:
            facts["vertex"] = numbers.vertex()
        return facts

    # --------------------------------------------------------------------------------------------------------------- rules

    def _lines(self) -> Sequence[str]:
        """The lines by which the program gets its relations."""
        return [] if self.rules.vertices or not self.vertices else [".decl vertex(x: number)", ".input vertex"]

    def _looks(self) -> Sequence[str]:
        """The rules that find out."""
        ends = [f"{self.edge}({self._columns(*ends)})" for ends in (("x", "_"), ("_", "x"))]
        lines = [f"{self.vertex}(x) :- {edge}." for edge in ends] if self.vertices and self.derived else []
        if self.table:
            lines += [f".decl {STRAY}(x: {self.type})", *(f"{STRAY}(x) :- {edge}, !{self.vertex}(x)." for edge in ends)]
        if self.named:
            lines += [f".decl {UNKNOWN}(x: {self.type})"]
            lines += [f"{UNKNOWN}(x) :- {self._fact(name)}(x), !{self.vertex}(x)." for name in self.named]
        return lines

    def _columns(self, src: str, dst: str, number: str = "_", weight: str = "_") -> str:
        """The arguments of an edge's atom."""
        numbers = [number] if self.rules.form == "numbered" else []
        weights = [weight] if self.rules.weight is not None else []
        return ", ".join([*numbers, src, dst, *weights])

    def _fact(self, name: str) -> str:
        """The relation of vertices that the question names."""
        return name

    # -------------------------------------------------------------------------------------------------------------- checks

    def _check(self, done: SparkResult) -> None:
        """Raises DlogError for the first mistake."""
        if self.table and (done[STRAY].rows or done.repeated(self.vertex)):
            self.numbers.look()
        if self.table and done[STRAY].rows:
            message = "edges have ends that are not in the vertex table, and when Spark read both again they had none"
            raise mistake("unsteady-rows", message, "the rows differ from one reading to the next: keep them, by `persist()`")
        if self.named and done[UNKNOWN].rows:
            self._name_them()

    def _name_them(self) -> None:
        """DlogError for the first vertex that is named and not there."""
        for name, where in self.named.items():
            self.numbers.encode(self.rules.facts[name][0], where)
        self.named = {}


class _StringQuestionRun(_QuestionRun):
    """A question to a graph whose ids are strings."""

    vertex, edge, type = "vertex_id", "edge_ids", "symbol"

    def __init__(self, rules: Rules, numbers: Numbers) -> None:
        super().__init__(rules, numbers)
        self.answer_relation = ANSWER
        self.derived = numbers.source.vertices is None
        self._types = [type.name for _, type in attributes(rules.program, rules.answer_relation)]

    def _answer(self, done: SparkResult) -> Answer:
        return Answer(done[ANSWER].df, (done,), done[ANSWER].rows, named=True)

    def _options(self) -> dict[str, Any]:
        from dlog.engine.cluster.ranking import Ranking

        first = int(self.rules.form == "numbered")
        ends = ((self.edge, first), (self.edge, first + 1))
        return {"ranking": Ranking(RANK, ends if self.derived else ((self.vertex, 0),))}

    def _facts(self) -> dict[str, Any]:
        rules, given = self.rules, self.numbers.source
        facts: dict[str, Any] = {self.edge: edge_columns(given.edges, rules.form, rules.weight, rules.floats)}
        for name, columns in as_facts(rules.facts).items():
            facts[self._fact(name)] = columns
        if given.vertices is not None:
            facts[self.vertex] = given.vertices.select("id")
        return facts

    def _lines(self) -> Sequence[str]:
        rules = self.rules
        weight = "float" if rules.floats else "number"
        names = [name for name, _ in rules.named]
        lines = [
            f".decl {self.edge}({self._columns('src: symbol', 'dst: symbol', 'number: number', f'weight: {weight}')})",
            f".decl {self.vertex}(id: symbol)",
            f".decl {RANK}(id: symbol, number: number)",
            *(f".decl {self._fact(name)}(id: symbol)" for name in names),
            *(f".input {name}" for name in (self.edge, RANK, *map(self._fact, names))),
            *(() if self.derived else (f".input {self.vertex}",)),
            f"edge({self._columns('x', 'y', 'n', 'w')}) :- {self.edge}({self._columns('s', 't', 'n', 'w')}), "
            f"{RANK}(s, x), {RANK}(t, y).",
            *(f"{name}(x) :- {self._fact(name)}(s), {RANK}(s, x)." for name in names),
        ]
        return [*lines, *(["vertex(x) :- rank(_, x)."] if rules.vertices else ()), *self._in_ids()]

    def _fact(self, name: str) -> str:
        return f"{name}_id" if name in dict(self.rules.named) else name

    def _in_ids(self) -> Sequence[str]:
        """The answer with ids for numbers."""
        columns = self.rules.shape.columns
        held = [holds == "vertex" for _, holds in columns]
        types = ["symbol" if h else type for h, type in zip(held, self._types, strict=True)]
        declared = ", ".join(f"c{i}: {type}" for i, type in enumerate(types))
        head = ", ".join(f"s{i}" if h else f"x{i}" for i, h in enumerate(held))
        body = ", ".join(f"x{i}" for i in range(len(columns)))
        ranks = "".join(f", {RANK}(s{i}, x{i})" for i, h in enumerate(held) if h)
        return [f".decl {ANSWER}({declared})", f"{ANSWER}({head}) :- {self.rules.answer_relation}({body}){ranks}."]
