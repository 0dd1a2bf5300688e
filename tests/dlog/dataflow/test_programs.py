"""Linear operators as programs against the same one by one: what comes out, of updates in any form, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import Dataflow, col, linear, lit, when
from dlog.dataflow.expressions import Expression
from dlog.dataflow.kinds import Objects
from dlog.dataflow.linear import Composed
from dlog.dataflow.schema import Schema
from dlog.dataflow.site import Site
from dlog.engine.kernels.trace.column_programs import CHUNK
from dlog.engine.operators.column_programs import MOST_COPIED, SUMMED, Chain
from dlog.engine.operators.delta import Delta
from dlog.engine.operators.operator import Function
from dlog.engine.operators.scope import Scope
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

SCHEMA = Schema(("a", "b", "holds", "name"), (int, int, bool, str))
WORDS = st.one_of(st.integers(-3, 3), st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)]))
UPDATES = st.lists(
    st.tuples(WORDS, WORDS, st.integers(0, 1), st.integers(0, 2), st.integers(0, 2), st.integers(-2, 2).filter(bool)),
    min_size=1,
    max_size=12,
)
FORMS = ["block", "fields", "layer"]
SIGNS: list[Callable[[Expression, Expression], Expression]] = [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x // y, lambda x, y: x % y,
]  # fmt: skip
COMPARISONS: list[Callable[[Expression, Expression], Expression]] = [
    lambda x, y: x < y, lambda x, y: x <= y, lambda x, y: x > y, lambda x, y: x >= y, lambda x, y: x == y, lambda x, y: x != y,
]  # fmt: skip
TEXTS = st.sampled_from([
    col("name").str.contains("x"), col("name").str.like("_"), col("name") < "y", col("name").is_in(["x", "z"]),
    when(col("a") / 2 > 0.25).then(col("holds")).otherwise(col("b") > 0),
    (col("name") + col("name")).str.starts_with("yy"), when(col("name") == "x").then(col("b") > 0).otherwise(col("holds")),
])  # fmt: skip
NUMBERS = st.recursive(
    st.one_of(st.sampled_from([col("a"), col("b"), col("name").str.len_chars(), col("holds").cast(int)]), WORDS.map(lit)),
    lambda inner: st.one_of(
        st.builds(lambda sign, x, y: sign(x, y), st.sampled_from(SIGNS), inner, inner),
        st.builds(lambda x, y, z: when(x < y).then(y).otherwise(z), inner, inner, inner),
        inner.map(lambda x: x.abs()),
    ),
    max_leaves=5,
)
CONDITIONS = st.recursive(
    st.one_of(
        st.just(col("holds")),
        TEXTS,
        st.builds(lambda sign, x, y: sign(x, y), st.sampled_from(COMPARISONS), NUMBERS, NUMBERS),
        st.builds(lambda x, values: x.is_in(values), NUMBERS, st.lists(WORDS, max_size=10)),
        NUMBERS.map(lambda x: x.cast(bool)),
    ),
    lambda inner: st.one_of(
        st.builds(lambda x, y: x & y, inner, inner), st.builds(lambda x, y: x | y, inner, inner), inner.map(lambda x: ~x)
    ),
    max_leaves=3,
)
STEPS = st.one_of(
    CONDITIONS.map(lambda condition: lambda before: before.filter(condition)),
    st.builds(lambda a, b, c: lambda before: before.map("name", a=a, b=b, holds=c).map(
        "a", "b", "holds", "name"), NUMBERS, NUMBERS, CONDITIONS),
    st.builds(lambda a: lambda before: before.with_columns(a=a), NUMBERS),
    st.just(lambda before: before.rename(a="b", b="a").map("a", "b", "holds", "name")),
    st.just(lambda before: before.negate()),
    NUMBERS.map(lambda times: lambda before: before.repeat_row(times)),
    st.builds(lambda a, by: lambda before: before.explode("b", "holds", "name", a=a, diff=by).map(
        "a", "b", "holds", "name"), NUMBERS, NUMBERS),
    st.just(lambda before: before.filter(col("name") != "x")),
)  # fmt: skip
LAST = st.one_of(
    st.just(lambda before: before),
    st.builds(lambda x, y, z: lambda before: before.explode("b", "name", diff=(x, y, z)), NUMBERS, NUMBERS, CONDITIONS),
)


def bound(steps: Composed) -> tuple[list[Function], Objects]:
    """The functions of steps on updates of the schema."""
    objects, schema, found = Objects(), SCHEMA, []
    objects.encode(["x", "y", "z"])
    for step in steps.steps:
        schema, function = step.bind(Site(schema, Scope(), objects))
        found.append(function)
    return found, objects


def delta_of(updates: list[tuple[int, ...]], form: str) -> Delta:
    block = np.array(updates, np.int64).T.copy()
    if form == "fields":
        return Delta(tuple(block[:4]), block[4:5], block[5])
    return Delta.of_block(block, 4).consolidated() if form == "layer" else Delta.of_block(block, 4)


def summed(delta: Delta) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for *row, diff in zip(*(c.tolist() for c in (*delta.columns, *delta.times, delta.diffs)), strict=True):
        found[tuple(row)] += diff
    return Counter({row: diff for row, diff in found.items() if diff})


def outcome(function: Callable[[Delta], Delta], delta: Delta) -> Counter[tuple[int, ...]] | str:
    try:
        return summed(function(delta))
    except DlogError as error:
        return str(error)


def one_by_one(functions: list[Function]) -> Callable[[Delta], Delta]:
    def run(delta: Delta) -> Delta:
        for function in functions:
            if not delta.rows:
                break
            delta = getattr(function, "function", function)(delta)
        return delta

    return run


@examples(300)
@given(st.lists(STEPS, max_size=4), LAST, st.lists(UPDATES, min_size=1, max_size=3), st.sampled_from(FORMS))
def test_programs_do_what_functions_do_one_by_one(
    steps: list[Callable[[Composed], Composed]],
    last: Callable[[Composed], Composed],
    batches: list[list[tuple[int, ...]]],
    form: str,
) -> None:
    composed = linear
    for step in (*steps, last):
        composed = step(composed)
    functions, _ = bound(composed)
    chain = Chain(functions)
    for updates in batches:
        delta = delta_of(updates, form)
        if delta.rows:
            assert outcome(chain, delta) == outcome(one_by_one(functions), delta_of(updates, form))


STEPS_OF_MANY = linear.filter(col("a") % 3 != 0).with_columns(a=col("a") * 2 + 1).filter(col("b") > 2)
SUMS_OF_MANY = STEPS_OF_MANY.explode("b", "name", diff=(1, col("a"), col("a") * col("b")))


@pytest.mark.parametrize("steps", [STEPS_OF_MANY, STEPS_OF_MANY.repeat_row("b"), SUMS_OF_MANY, linear.map(a=col("a") + 1)])
@pytest.mark.parametrize("rows", [1, CHUNK - 1, CHUNK + 1, SUMMED + 1, 3 * SUMMED, MOST_COPIED + 1])
@pytest.mark.parametrize("different", [5, 3000])
def test_programs_take_many_updates(steps: Composed, rows: int, different: int) -> None:
    rng = np.random.default_rng(rows)
    block = rng.integers(0, different, (6, rows))
    functions, _ = bound(steps)
    chain = Chain(functions)
    for _ in range(2):
        assert summed(chain(Delta.of_block(block, 4))) == summed(one_by_one(functions)(Delta.of_block(block, 4)))
    assert chain._parts is not None and len(chain._parts) == 1 < len(functions) + 1


def test_few_updates_that_are_left_do_not_hold_the_memory_of_all() -> None:
    functions, _ = bound(linear.filter(col("a") == 7))
    block = np.zeros((6, 5000), np.int64)
    block[0] = np.arange(5000)
    block[-1] = 1
    found = Chain(functions)(Delta.of_block(block, 4)).block()
    assert found is not None and found.tolist() == [[7], [0], [0], [0], [0], [1]] and found.base is None


def test_functions_that_are_no_programs_stand_between_them() -> None:
    halves = linear.filter(col("a") > 0).map("a").map_batches(lambda rows: {"a": rows["a"] * 2}, a=int)
    functions, _ = bound(halves.filter(col("a") > 4).map(a=col("a") - 1))
    chain = Chain(functions)
    assert chain(delta_of([(0, 0, 0, 0, 0, 1)], "block")).rows == 0
    for _ in range(2):
        assert summed(chain(delta_of([(a, 0, 0, 0, 0, 1) for a in range(5)], "block"))) == {(5, 0): 1, (7, 0): 1}
    assert chain._parts is not None and [type(part).__name__ for part in chain._parts] == ["_Fused", "function", "_Fused"]


def test_columns_of_values_are_left_to_functions() -> None:
    flow = Dataflow()
    rows = flow.input(name=str, number=int)
    kept = rows.filter(col("number") > 1).map_batches(lambda given: {"first": [n[0] for n in given["name"]]}, first=str)
    found = kept.capture()
    for number in range(4):
        rows.insert([(f"{number}", number)])
        flow.commit()
    assert found.counts() == {("2",): 1, ("3",): 1}
