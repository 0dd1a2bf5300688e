"""Random dataflows of which every operator can be said by rules, with loops that end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from dlog.dataflow import Collection, Dataflow, Input, Scope, col
from tests.dlog.dataflow.built import Built
from tests.dlog.dataflow.terms import Term, row, terms

UNARY = (
    "map", "swap", "filter", "explode", "negate", "distinct", "threshold", "count", "min", "max", "top_k", "sum", "consolidate",
    "series", "repeat", "window",
)  # fmt: skip
BINARY = ("concat", "join", "semijoin", "antijoin")
MONOTONE = ("map", "swap", "filter", "distinct", "consolidate", "series", "join", "semijoin", "concat", "antijoin")
A, B, COUNT = col("a"), col("b"), col("count")


class BuiltAsRules(Built):
    """As the others, with an expression in the place of the function of `threshold`."""

    def _threshold(self, term: Term, rows: Collection) -> Collection:
        return rows.threshold(COUNT * COUNT % 3 - 1 if term.number else COUNT > 1)


@dataclass(frozen=True)
class Recursion:
    """A loop over a term: the monotone operators of its body with what each joins, and how it ends."""

    start: Term
    steps: tuple[tuple[str, Term, int], ...]
    end: str
    inflated: bool
    nested: bool


flat = terms(loops=0, unary=UNARY, binary=BINARY)
small = terms(size=2, loops=0, unary=UNARY, binary=BINARY)
steps = st.lists(st.tuples(st.sampled_from(MONOTONE), small, st.integers(0, 3)), min_size=1, max_size=3).map(tuple)
recursions = st.builds(Recursion, small, steps, st.sampled_from(["distinct", "distinct", "min"]), st.booleans(), st.booleans())


def built_recursion(built: Built, recursion: Recursion) -> Collection:
    """The collection of a loop."""
    start = built.of(recursion.start, built.flow.scope).distinct().map("a", "b")
    if recursion.end == "min":
        start = start.filter((A >= 0) & (B >= 0))

    def moved(inner: Collection) -> Collection:
        rows = inner
        for name, other, number in recursion.steps:
            rows = _step(built, name, built.of(other, built.flow.scope).distinct().enter(inner.scope), number, rows)
        return rows

    def nested(inner: Collection) -> Collection:
        start = inner.map("a", "b")
        return start.iterate(lambda deeper: moved(deeper).map("a", "b").concat(start.enter(deeper.scope)).distinct())

    def step(inner: Collection) -> Collection:
        if recursion.end == "min":
            rows = _best_step(built, recursion, inner)
        else:
            rows = nested(inner).rename(a="b", b="a") if recursion.nested else moved(inner)
        every = rows.concat(start.enter(inner.scope) if recursion.inflated else inner.map("a", "b"))
        return every.min("b", by="a") if recursion.end == "min" else every.distinct()

    return start.iterate(step)


def _step(built: Built, name: str, other: Collection, number: int, rows: Collection) -> Collection:
    term, other = Term(name, 1, number=number), other.map("a", "b")
    build: Callable[..., Collection] = getattr(built, f"_{name}")
    if name == "antijoin":
        return rows.antijoin(other.map("a").distinct(), on="a")
    return build(term, rows, other) if name in BINARY else build(term, rows)


def _best_step(built: Built, recursion: Recursion, inner: Collection) -> Collection:
    """Values that are the least ones of others, and something, which is never less than nothing."""
    _, other, number = recursion.steps[0]
    edges = built.of(other, built.flow.scope).distinct().enter(inner.scope)
    return inner.join_map(edges.filter(B >= 0), a=col("b_right"), b=B + number, on="a")


@dataclass
class Both:
    """A dataflow with two inputs, the first one a set, and a collection that is made of them."""

    flow: Dataflow
    inputs: list[Input]
    found: Collection


def flow_of(term: Term | Recursion) -> Both:
    flow = Dataflow()
    inputs = [flow.input("one", a=int, b=int), flow.input("two", a=int, b=int)]
    built = BuiltAsRules(flow, list(inputs))
    scope: Scope = flow.scope
    found = built_recursion(built, term) if isinstance(term, Recursion) else built.of(term, scope)
    return Both(flow, inputs, found)


change = st.tuples(st.integers(0, 1), row, st.sampled_from([1, 1, 1, -1, 2]))
rounds = st.lists(st.lists(change, max_size=5), min_size=1, max_size=4)
