"""What a collection is made of."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Self

from dlog.arguments import bad_argument
from dlog.dataclass import dataclass
from dlog.dataflow import programs
from dlog.dataflow.linear import Linear, is_total
from dlog.dataflow.schema import Schema, column_names, mismatch
from dlog.dataflow.scopes import DataflowGraph, Scope
from dlog.dataflow.site import LinearStep, Site
from dlog.dataflow.unkept import InputTexts
from dlog.engine.operators.arrange import Arrange, Arranged
from dlog.engine.operators.column_programs import Chain, Programmed
from dlog.engine.operators.delta import Delta
from dlog.engine.operators.feedback import Consolidate, negated
from dlog.engine.operators.operator import Function, Operator
from dlog.grammar.diagnostics import Diagnostic, DlogError

KEEP_TIMES = frozenset(
    {
        "explode", "filter", "flat_map", "generate_series", "map", "map_batches", "negate", "rename", "repeat_row", "select",
        "sliding_window", "tumbling_window", "unpack_changes",
    }
)  # fmt: skip
"""Functions of which nothing comes out at other times than it went in."""
MAX_TERMS = 8
"""Terms from which on a sum of collections is an operator of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """What an operator emits, changed by some linear functions, one after the other."""

    source: Operator
    steps: tuple[tuple[str, Function], ...] = ()
    total: bool = True
    """Whether all steps are (`linear.is_total`)."""
    texts: InputTexts | None = None
    """The texts of an input that are still there."""
    chain: Chain = field(init=False)
    """The functions of all steps, as one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "chain", Chain([function for _, function in self.steps]))

    def then(self, name: str, function: Function, total: bool = False, arguments: tuple[Any, ...] = ()) -> Term:
        texts = None if self.texts is None else self.texts.after(name, arguments)
        return Term(self.source, (*self.steps, (name, function)), self.total and total, texts)

    @property
    def keeps_times(self) -> bool:
        """Whether what comes out is at times of what went in."""
        return all(name in KEEP_TIMES for name, _ in self.steps)

    def __call__(self, delta: Delta) -> Delta:
        return self.chain(delta)


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """How a collection is made, for whoever reads a dataflow instead of running it: the operator, by name, the collections that
    it takes, and what else it was given."""

    operator: str
    parts: tuple[Base, ...] = ()
    arguments: tuple[Any, ...] = ()


class Base(Linear):
    """The sum of some terms, in a scope. `outer` is the collection that has been brought into the scope to be this one."""

    def __init__(
        self, scope: Scope, schema: Schema, terms: tuple[Term, ...], definition: Definition, outer: Base | None = None
    ) -> None:
        self.scope, self.schema, self.terms, self.definition, self.outer = scope, schema, terms, definition, outer
        self._arrangements: dict[tuple[str, ...], Arranged] = {}

    @abstractmethod
    def _collection(
        self, scope: Scope, schema: Schema, terms: tuple[Term, ...], definition: Definition, outer: Base | None = None
    ) -> Self:
        """Another collection."""

    def _defined(self, operator: str, parts: tuple[Base, ...], *arguments: Any) -> Self:
        """The same as what one operator makes, where it has been composed of several."""
        return self._collection(self.scope, self.schema, self.terms, Definition(operator, parts, arguments), self.outer)

    @property
    def graph(self) -> DataflowGraph:
        return self.scope.graph

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.schema.names

    # -------------------------------------------------------------------------------------------------------------- linear

    def _then(self, step: LinearStep) -> Self:
        schema, function = step.bind(Site(self.schema, self.scope.inner, self.graph.objects))
        return self._changed(step.name, function, schema, None, step.arguments, is_total(step, self.schema))

    def _changed(
        self,
        name: str,
        function: Function,
        schema: Schema | None = None,
        scope: Scope | None = None,
        arguments: tuple[Any, ...] = (),
        total: bool = False,
    ) -> Self:
        """What a function makes of it."""
        terms = tuple(term.then(name, function, total, arguments) for term in self.terms)
        definition = Definition(name, (self,), arguments)
        return self._collection(scope or self.scope, schema or self.schema, terms, definition)

    def concat(self, *others: Base) -> Self:
        """The sum of collections that have the same columns."""
        parts: tuple[Base, ...] = (self, *(self._like(other, "concat") for other in others))
        terms = tuple(term for part in parts for term in part.terms)
        found = self._collection(self.scope, self.schema, terms, Definition("concat", parts))
        return found.consolidate() if len(terms) > MAX_TERMS else found

    def consolidate(self) -> Self:
        """The same with the diffs of equal rows and times added up."""
        return self._emitted(self._operator(Consolidate), self.schema, Definition("consolidate", (self,)))

    def _like(self, other: Base, what: str, name: str = "other", *notes: str) -> Base:
        """The other collection in the order of this one's columns. Raises DlogError where it has others, or is elsewhere."""
        self._check_together(other, name)
        if other.schema == self.schema:
            return other
        if set(other.schema.names) != set(self.schema.names):
            raise mismatch(what, self.schema, other.schema, *notes)
        found = other.map(*self.schema.names)
        if found.schema != self.schema:
            raise mismatch(what, self.schema, other.schema, *notes)
        return found

    def _check_together(self, other: Any, name: str = "other") -> None:
        check_collection(name, other)
        self.graph.check_same(other.graph)
        if self.scope is not other.scope:
            note = "bring one into the scope of the other: `enter(scope)`, `leave()`"
            raise DlogError(Diagnostic("two-scopes", "the collections are in two scopes", notes=(note,)))

    # ----------------------------------------------------------------------------------------------------------- operators

    def _operator(self, kind: Any, *arguments: Any) -> Any:
        """A new operator of a kind, which takes this collection."""
        self.graph.check_open()
        return self._connect_terms(kind(self.graph.scheduler, self.scope.inner, *arguments))

    def _connect_terms(self, operator: Operator, port: int = 0, feedback: bool = False) -> Operator:
        for term in self.terms:
            operator.connect(term.source, term, port, feedback)
        return operator

    def _emitted(self, operator: Operator, schema: Schema, definition: Definition) -> Self:
        """What an operator emits."""
        return self._collection(self.scope, schema, (Term(operator),), definition)

    def _arranged(self, keys: Sequence[str]) -> Arranged:
        """It, indexed by some columns: one for all that want the same, in loops as around them."""
        keys = tuple(keys)
        if keys not in self._arrangements:
            self._arrangements[keys] = self._arrange(keys)
        return self._arrangements[keys]

    def _arrange(self, keys: tuple[str, ...]) -> Arranged:
        if self.outer is not None and self.scope.is_loop:
            around = self.outer._arranged(keys)
            return Arranged(around.source, around.pads + 1)
        ordered = self._ordered((*keys, *self.schema.others(keys)))
        return Arranged(ordered._operator(Arrange, self.schema.arity, len(keys)))

    def _ordered(self, names: Sequence[str]) -> Self:
        """With its columns in another order."""
        if tuple(names) == self.schema.names:
            return self
        places = self.schema.places(names)
        every = (*places, *self._hidden_places)
        select = Programmed(partial(select_columns, every), programs.ordered(every))
        return self._changed("select", select, self.schema.select(names), total=True)

    @property
    def _hidden_places(self) -> range:
        return range(len(self.schema.names), self.schema.arity)

    def _minus(self, other: Base) -> Self:
        terms = (*self.terms, *(t.then("negate", negated) for t in other.terms))
        return self._collection(self.scope, self.schema, terms, Definition("minus", (self, other)))


def check_collection(name: str, given: Any) -> None:
    if not isinstance(given, Base):
        arranged = isinstance(getattr(given, "collection", None), Base)
        note = "that of an arrangement is its `collection`" if arranged else "`flow.input` makes one, `insert` fills it"
        raise bad_argument(name, "a collection", given, note)


def select_columns(places: Sequence[int], delta: Delta) -> Delta:
    return delta.with_columns([delta.columns[place] for place in places])


def key_pairs(left: Schema, right: Schema, on: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that a join compares, of either side: those that both have, unless some are named."""
    if isinstance(on, Mapping):
        pairs = tuple(on), tuple(on.values())
    elif on is None:
        shared = tuple(name for name in left.names if name in right.names)
        if not shared:
            note = 'name them: on="x", or on={"x": "y"} where they differ'
            raise DlogError(Diagnostic("no-shared-columns", f"no column is in both ({left}) and ({right})", notes=(note,)))
        pairs = shared, shared
    else:
        pairs = column_names("on", on), column_names("on", on)
    for a, b in zip(*pairs, strict=True):
        if left.kind(a) is not right.kind(b):
            raise DlogError(
                Diagnostic("unlike-columns", f"`{a}` is {left.kind(a).__name__}, `{b}` is {right.kind(b).__name__}")
            )
    return pairs
