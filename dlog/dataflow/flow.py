"""A dataflow: built of collections, then run round by round."""

from __future__ import annotations

from functools import partial
from typing import Any

from dlog.arguments import bad_argument, text, whole, whole_or_none
from dlog.dataclass import dataclass
from dlog.dataflow.base import Definition, Term
from dlog.dataflow.collection import Arrangement, Collection
from dlog.dataflow.kinds import Objects
from dlog.dataflow.rows import RowReader, number_or_numbers
from dlog.dataflow.schema import Schema
from dlog.dataflow.scopes import DataflowGraph, Scope
from dlog.dataflow.unkept import InputTexts, numbered
from dlog.engine.operators import scope as engine
from dlog.engine.operators.delta import Delta
from dlog.engine.operators.imports import Import
from dlog.engine.operators.inputs import HeldColumns, Source
from dlog.engine.operators.operator import Function, Operator
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.trace.overflow import diff_overflow
from dlog.grammar.diagnostics import Diagnostic, DlogError


@dataclass(frozen=True, slots=True)
class OperatorStatistics:
    """How often an operator has run, and how many updates it has received for that, and emitted."""

    operator: str
    activations: int
    received: int
    emitted: int


class Dataflow:
    """Collections, from inputs to outputs. Rows go in at the present round or a later one; `commit` and `advance_to` do rounds.

    >>> from dlog.dataflow import Dataflow, col
    >>> flow = Dataflow()
    >>> edges = flow.input(src=int, dst=int)
    >>> degrees = edges.count(by="src").capture()
    >>> edges.insert([(1, 2), (1, 3), (2, 3)])
    >>> flow.commit()
    >>> degrees.counts()
    {(1, 2): 1, (2, 1): 1}
    """

    def __init__(self, *, max_iterations: int | None = None, beside: Dataflow | None = None) -> None:
        """`max_iterations` ends loops that do not end. `beside` is a dataflow from which this one may import arrangements."""
        limit = whole_or_none("max_iterations", max_iterations, 1, "a whole number, 1 or more")
        if beside is not None and not isinstance(beside, Dataflow):
            raise bad_argument("beside", "another dataflow", beside)
        self._graph: DataflowGraph = DataflowGraph(Scheduler(limit), Objects() if beside is None else beside._graph.objects)
        self.scope = Scope(self._graph, engine.Scope())
        """The root: where inputs are."""

    def __repr__(self) -> str:
        return f"dlog.dataflow.Dataflow, round {self.round}, {len(self.operators)} operators"

    @property
    def round(self) -> int:
        """The present round: the first one that is not done."""
        return self._graph.scheduler.rounds.high

    def input(self, name: str | None = None, /, **kinds: Any) -> Input:
        """A collection that is changed from outside, with columns of these kinds: int, float, bool, str, or object. Where it
        becomes a relation (`dlog.rules`) this has its name."""
        self._graph.check_open()
        if name is not None:
            text("name", name, "the name of an input")
        schema, objects = Schema.of(kinds), self._graph.objects
        texts = HeldColumns(InputTexts.of(schema).kept, _kept, partial(numbered, objects), objects.held.release)
        source = Source(self._graph.scheduler, self.scope.inner, texts)
        return Input(self.scope, schema, source, name)

    def import_(self, arrangement: Arrangement) -> Arrangement:
        """An arrangement of another dataflow, which this one was made `beside`: read, not copied. This dataflow can do the
        rounds that the other one has done, also long after it."""
        self._graph.check_open()
        if not isinstance(arrangement, Arrangement):
            raise bad_argument("arrangement", "one of another dataflow: `collection.arrange_by_key(...)`", arrangement)
        given = arrangement.collection
        if given.graph.objects is not self._graph.objects or given.graph is self._graph or given.scope.parent is not None:
            note = "make the dataflow `Dataflow(beside=other)`, and import what is in the other's root scope"
            raise DlogError(Diagnostic("bad-import", "the arrangement cannot be imported here", notes=(note,)))
        source = Import(self._graph.scheduler, self.scope.inner, arrangement.arranged.source)
        ordered = given.schema.select((*arrangement.keys, *given.schema.others(arrangement.keys)))
        collection = Collection(self.scope, ordered, (Term(source),), Definition("import_"))
        return collection.arranged_as(arrangement.keys, source)

    def commit(self) -> None:
        """Does the present round."""
        self.advance_to(self.round + 1)

    def advance_to(self, round: int) -> None:
        """Does all rounds before this one, in one batch: what comes out is exact at each of them."""
        high = whole("round", round, self.round + 1, f"a round after the present one, {self.round}, up to 2^62")
        self._graph.check_defined()
        scheduler = self._graph.scheduler
        scheduler.begin(high)
        scheduler.run()

    @property
    def operators(self) -> list[Operator]:
        """What it consists of, in the order in which it was built."""
        return self._graph.operators

    @property
    def activations(self) -> int:
        """How often operators have run."""
        return sum(operator.activations for operator in self.operators)

    def statistics(self) -> list[OperatorStatistics]:
        """What each operator has done so far, in the order of `explain`."""
        return [OperatorStatistics(str(o), o.activations, o.received, o.emitted) for o in self.operators]

    @property
    def updates(self) -> int:
        """How many updates all operators hold."""
        return sum(operator.held for operator in self.operators)

    def explain(self) -> str:
        """Its operators, a line each, and what they feed by way of which functions."""
        numbers = {id(operator): number for number, operator in enumerate(self.operators, 1)}
        return "".join(f"{numbers[id(o)]} {o}{_targets(o, numbers)}\n" for o in self.operators)


def _targets(operator: Operator, numbers: dict[int, int]) -> str:
    """What an operator feeds: by which functions, and which operators."""
    listed = []
    for function, edges in operator.edges.values():
        names = ", ".join(name for name, _ in function.steps) if isinstance(function, Term) else ""
        listed += [f"({names}) {numbers[id(edge.target)]}" if names else f"{numbers[id(edge.target)]}" for edge in edges]
    return f" -> {', '.join(listed)}" if listed else ""


class Input(Collection):
    """A collection that is changed from outside."""

    def __init__(self, scope: Scope, schema: Schema, source: Source, name: str | None = None) -> None:
        super().__init__(scope, schema, (Term(source, texts=InputTexts.of(schema)),), Definition("input"))
        self.name, self.source = name, source
        self._reader: RowReader | None = None
        """How rows are read: texts have numbers when they go in, or are held, as when the first ones did."""

    def insert(self, rows: Any, at: int | None = None) -> None:
        """Adds rows, once each, at the present round or a later one."""
        self.update(rows, 1, at)

    def remove(self, rows: Any, at: int | None = None) -> None:
        """Takes rows away, once each."""
        self.update(rows, -1, at)

    def update(self, rows: Any, diffs: Any, at: Any = None) -> None:
        """Changes how often rows are there, by one number or one for each row; at a round, or one for each row."""
        if self._reader is None:
            self._reader = RowReader(self.schema, self.graph.objects, self.source.held_columns.columns - self.source.kept)
        holds: list[int] = []
        try:
            if self._put(self._reader.updates(rows, holds), diffs, at, holds):
                return
        except BaseException:
            self.graph.objects.held.release(holds)
            raise
        self.graph.objects.held.release(holds)

    def _put(self, found: Delta, diffs: Any, at: Any, holds: list[int]) -> bool:
        """Puts updates in, without those of no diff, if there are others."""
        count, present = found.rows, self.graph.scheduler.rounds.high
        rounds = present if at is None else number_or_numbers("at", at, count)
        numbers = number_or_numbers("diffs", diffs, count)
        found.stamp(rounds, numbers)
        first = present if at is None or not count else int(found.rounds.min())
        if first < present:
            raise DlogError(Diagnostic("round-done", f"round {first} is done: the present one is {present}"))
        if numbers == -(2**63) if isinstance(numbers, int) else (numbers == -(2**63)).any():
            raise diff_overflow("an update takes rows away")
        if not isinstance(diffs, int) or not diffs:
            found = found.only(found.diffs != 0)
            first = first if at is None or not found.rows else int(found.rounds.min())
        if found.rows:
            self.source.put(found, first, present if at is None else int(found.rounds.max()), holds)
        return found.rows > 0


def _kept(function: Function) -> frozenset[int] | None:
    """The columns of texts whose words are read behind a function of deltas (None: any)."""
    return function.texts.kept if isinstance(function, Term) and function.texts is not None else None
