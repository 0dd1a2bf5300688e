"""Collections: rows that change over time, and what is made of them.

A collection is what some operators emit, each by way of a linear function. So linear operators make no operator of the
dataflow, and the sum of collections none either."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dlog.arguments import bad_argument, check_function, truth
from dlog.dataflow.base import Base, Definition, Term, check_collection
from dlog.dataflow.calculus import Calculus
from dlog.dataflow.given import check_calls
from dlog.dataflow.names import NAMES_HERE, TABLES_HERE, no_attribute
from dlog.dataflow.outputs import Captured, Probe, Show, updates_of
from dlog.dataflow.schema import Schema, column_names, plain
from dlog.dataflow.scopes import Scope, check_scope
from dlog.dataflow.traces import Batch, InspectBatches, Layout, TraceReader
from dlog.dataflow.watermarks import Watermarked, watermarked
from dlog.engine.operators import feedback
from dlog.engine.operators.arrange import Arranged, Indexed
from dlog.engine.operators.delta import Delta
from dlog.engine.operators.sinks import Capture, Inspect
from dlog.grammar.diagnostics import Diagnostic, DlogError


class Collection(Calculus):
    """Rows of named columns, each any number of times, which change over time."""

    def _collection(
        self, scope: Scope, schema: Schema, terms: tuple[Term, ...], definition: Definition, outer: Base | None = None
    ) -> Collection:
        return Collection(scope, schema, terms, definition, outer)

    def __repr__(self) -> str:
        return f"dlog.dataflow.Collection ({self.schema})"

    if not TYPE_CHECKING:  # to which any name would be one of a collection

        def __getattr__(self, name: str) -> Any:
            message = f"a collection has no attribute `{name}`"
            here = NAMES_HERE.get(name) or TABLES_HERE.get(name)
            if here is not None:
                raise AttributeError(f"{message}: write `{here}`")  # no name that is like it, but another one
            raise AttributeError(message, name=name, obj=self)

    # ---------------------------------------------------------------------------------------------------------- iteration

    def iterate(self, step: Callable[[Collection], Collection]) -> Collection:
        """What becomes of the collection when a function is applied to it again and again, until nothing changes. The function
        gets a collection in a loop, whose scope others `enter`."""
        check_function("step", step, "a function of a collection")
        check_calls("iterate", step, 1, "a collection")
        loop = self.scope.loop()
        variable = Variable(loop, self.enter(loop))
        try:
            note = "`step` gives a collection of the columns that it gets, of the same kinds"
            return variable._define(_made_by(step, variable), "iterate", note).leave()
        finally:
            self.graph.undefined.discard(variable)  # what a function that fails has left reaches nothing

    # ------------------------------------------------------------------------------------------------------------ event time

    def watermark(
        self, time: Any, lateness: Any = None, *, marks: Collection | None = None
    ) -> Watermarked[Collection]:
        """It by the time of its events, a column or expression: which of them are beyond all that are still awaited, which came
        too late for that, which wait. The watermark is `lateness` behind the latest event; `marks` of one column, which come
        from elsewhere, move it as well. It never goes back."""
        return watermarked(self, time, lateness, marks)

    # --------------------------------------------------------------------------------------------------------- arrangements

    def arrange_by_key(self, *keys: str) -> Arrangement:
        """It, indexed by some columns. All that joins or reduces it by these shares the index anyway."""
        return Arrangement(self, keys, self._arranged(keys))

    def arranged_as(self, keys: tuple[str, ...], source: Indexed) -> Arrangement:
        """It, with an index that is there already."""
        self._arrangements[keys] = Arranged(source)
        return Arrangement(self, keys, self._arrangements[keys])

    def arrange_by_self(self) -> Arrangement:
        """It, indexed by all columns."""
        return self.arrange_by_key(*self.schema.names)

    # -------------------------------------------------------------------------------------------------------------- outputs

    def capture(self, history: bool = False) -> Captured:
        """It, to be read from outside after each batch; with `history`, at any time."""
        plain(self.schema, "`capture`")
        truth("history", history)
        operator = self._operator(Capture, self.schema.arity, history)
        return Captured(self.scope, self.schema, operator)

    def inspect(self, show: Show) -> Collection:
        """Shows each update to a function of row, time and diff: a number, or a tuple of the components that `explode` gave."""
        check_function("show", show, "a function of a row, a time and a diff")
        check_calls("inspect", show, 3, "a row, a time and a diff")

        def show_all(delta: Delta) -> None:
            for update in updates_of(self.scope, self.schema, delta):
                show(*update)

        self._operator(Inspect, show_all)
        return self

    def probe(self) -> Probe:
        """How far it has come."""
        return Probe(self.scope)

    def assert_empty(self) -> None:
        """Raises DlogError in the round in which it has any row."""

        def refuse(delta: Delta) -> None:
            row, time, diff = updates_of(self.scope, self.schema, delta)[0]
            raise DlogError(Diagnostic("not-empty", f"row {row} is there {diff} times at {time}"))

        self._operator(Inspect, refuse)

    def assert_eq(self, other: Collection) -> None:
        """Raises DlogError in the round in which it differs from another collection."""
        difference = self._minus(self._like(other, "assert_eq"))

        def refuse(delta: Delta) -> None:
            row, time, diff = updates_of(difference.scope, difference.schema, delta)[0]
            more = f"its diffs in the first one less those in the second are {diff}"
            if isinstance(diff, int):
                more = f"it is there {abs(diff)} times more in the {'first' if diff > 0 else 'second'} one"
            message = f"two collections that are to be equal differ in row {row} at {time}: {more}"
            raise DlogError(Diagnostic("not-equal", message, notes=("the first one is that of which `assert_eq` is called",)))

        difference._operator(Inspect, refuse)


def _made_by(step: Callable[[Collection], Collection], variable: Variable) -> Collection:
    made = step(variable)
    if not isinstance(made, Collection):
        notes = ("is a `return` missing?",) if made is None else ()
        raise bad_argument("step", "a function that returns a collection", made, *notes)
    return made


class Variable(Collection):
    """A collection of a loop whose definition, its `meaning`, is given later: at the first iteration it is what it starts from,
    then what its definition was at the iteration before. A dataflow with a variable that has none does not run."""

    start: Collection | None
    meaning: Collection | None

    def __init__(self, scope: Scope, start: Collection | None = None, **kinds: Any) -> None:
        check_scope("scope", scope, "a loop: `scope.loop()`")
        if start is not None:
            check_collection("start", start)
        if not scope.is_loop:
            raise DlogError(Diagnostic("no-loop", "a variable has to be in a loop: `scope.loop()`"))
        scope.graph.check_open()
        schema = Schema.of(kinds) if start is None else start.schema
        self._operator_ = feedback.Variable(scope.graph.scheduler, scope.inner)
        super().__init__(scope, schema, (Term(self._operator_),), Definition("variable"))
        self.start, self.meaning = start, None
        if start is not None:
            self._check_together(start, "start")
            start._connect_terms(self._operator_)
            start._changed("later", feedback.next_iteration).negate()._connect_terms(self._operator_)
        self.graph.undefined.add(self)

    def set(self, definition: Collection) -> Collection:
        """Defines it; returns the definition, in the order of its columns."""
        return self._define(definition, "set")

    def _define(self, definition: Collection, what: str, *notes: str) -> Collection:
        if self.meaning is not None:
            raise DlogError(Diagnostic("defined-twice", "the variable has a definition already"))
        found = self._like(definition, what, "definition", *notes)
        assert isinstance(found, Collection)
        found._changed("later", feedback.next_iteration)._connect_terms(self._operator_, feedback=True)
        self.meaning = found
        self.graph.undefined.discard(self)
        return found


class Arrangement:
    """A collection indexed by some columns, as far as it has come. What joins or reduces its `collection` by them reads the
    index."""

    def __init__(self, collection: Collection, keys: tuple[str, ...], arranged: Arranged) -> None:
        self.collection, self.keys, self.arranged = collection, column_names("keys", keys), arranged
        arranged.source.hold()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute("an arrangement has", name, "arrangement.collection", Collection)

    def enter(self, scope: Scope) -> Arrangement:
        """The same index, in a scope within."""
        return self.collection.enter(scope).arrange_by_key(*self.keys)

    def trace(self) -> TraceReader:
        """A reader of its history, from where that has been compacted to: it holds it back until it moves on, or is dropped."""
        return TraceReader(self._layout, self.arranged)

    def inspect_batches(self, show: Callable[[Batch], object]) -> Arrangement:
        """Shows each batch of updates to a function, as soon as the index has it."""
        check_function("show", show, "a function of a batch")
        check_calls("inspect_batches", show, 1, "a batch")
        self.collection.graph.check_open()
        InspectBatches(self.collection.graph.scheduler, self._layout.inner, self.arranged, self._layout, show)
        return self

    @property
    def _layout(self) -> Layout:
        schema = self.collection.schema
        ordered = schema.select((*self.keys, *schema.others(self.keys)))
        return Layout(self.collection.scope, self.arranged.source.scope, ordered, len(self.keys))

    @property
    def readers(self) -> int:
        """How many operators read it."""
        return len({id(edge.target) for _, edges in self.arranged.source.edges.values() for edge in edges})

    @property
    def updates(self) -> int:
        """How many updates it holds."""
        return self.arranged.source.trace.spine.rows

    @property
    def nbytes(self) -> int:
        """Bytes of its layers."""
        return self.arranged.source.trace.spine.nbytes

    def __repr__(self) -> str:
        return f"dlog.dataflow.Arrangement by ({', '.join(self.keys)}), {self.updates:,} updates"
