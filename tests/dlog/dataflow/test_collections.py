"""Counts, joins, loops and inputs on written-out rows; what is handed out and taken in stays as it was."""

from __future__ import annotations

import math
from collections import Counter
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given as examples_of
from hypothesis import strategies as st

import dlog
from dlog.dataflow import Dataflow, Variable, apply, col, lit
from dlog.dataflow.expressions import Expression
from dlog.dataflow.kinds import Objects
from dlog.dataflow.schema import Schema
from dlog.engine.operators import sinks
from dlog.engine.values.array_pool import MIN_POOLED_WORDS
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples


def test_3_1_diffs_may_be_tuples_of_sums() -> None:
    """One count has a total of each: the first query of TPC-H is such a one."""
    flow = Dataflow()
    lines = flow.input(flag=str, quantity=int, price=float)
    weighted = lines.explode("flag", diff=(1, col("quantity"), col("price") * 0.5))
    totals = weighted.count("orders", "quantity", "revenue").capture()
    lines.insert([("A", 2, 10.0), ("A", 3, 0.25), ("B", 1, 1.0)])
    flow.commit()
    assert totals.counts() == {("A", 2, 5, 5.125): 1, ("B", 1, 1, 0.5): 1}
    lines.remove([("A", 2, 10.0), ("B", 1, 1.0)])
    flow.commit()
    assert totals.counts() == {("A", 1, 3, 0.125): 1}


def test_floats_that_go_leave_nothing_behind() -> None:
    flow = Dataflow()
    amounts = flow.input(amount=float)
    total = amounts.sum(total="amount").capture()
    amounts.insert([0.1, 0.2, 0.3, 1e300])
    flow.commit()
    amounts.remove([1e300, 0.2])
    flow.commit()
    assert total.counts() == {(0.1 + 0.3,): 1}


def test_sums_of_zero_are_there_as_long_as_rows_are() -> None:
    flow = Dataflow()
    rows = flow.input(key=int, value=int)
    sums = rows.sum(by="key", total="value").capture()
    rows.insert([(1, 5), (1, -5), (2, 0)])
    flow.commit()
    assert sums.counts() == {(1, 0): 1, (2, 0): 1}
    rows.remove([(2, 0)])
    flow.commit()
    assert sums.counts() == {(1, 0): 1}


def test_strings_are_compared_as_strings() -> None:
    flow = Dataflow()
    rows = flow.input(key=int, name=str)
    least, last = rows.min("name", by="key").capture(), rows.top_k(2, "name", descending=True).capture()
    rows.insert([(1, "zoe"), (1, "ada"), (1, "mia")])
    flow.commit()
    assert least.counts() == {(1, "ada"): 1}
    assert last.counts() == {(1, "mia"): 1, (1, "zoe"): 1}


@pytest.mark.parametrize("names", [["b", "a", "c"], ["c", "b", "a"]])
def test_texts_decide_among_equal_rows_whichever_came_first(names: list[str]) -> None:
    flow = Dataflow()
    rows = flow.input(x=int, name=str, y=int)
    first, last = rows.top_k(2, "x").capture(), rows.top_k(1, "x", by="y", descending=True).capture()
    rows.insert([(1, name, 0) for name in names])
    flow.commit()
    assert first.counts() == {(1, "a", 0): 1, (1, "b", 0): 1}
    assert last.counts() == {(1, "a", 0): 1}


def test_without_a_key_all_rows_are_one_group() -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    count, greatest = rows.count(by=[]).capture(), rows.max("x").capture()
    rows.insert([4, 7])
    flow.commit()
    assert (count.counts(), greatest.counts()) == ({(2,): 1}, {(7,): 1})


def test_logic_is_expressions_compiled_functions_or_python_on_batches() -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    made = rows.map("x", half=col("x") / 2, odd=col("x") % 2 == 1, square=apply(lambda x: x * x, "x"), one=lit("x"))
    batches = rows.map_batches(lambda batch: {"y": batch["x"][::-1].copy() * 0 + batch["x"] + 10}, y=int)
    flat = rows.flat_map_batches(lambda b: ({"y": np.repeat(b["x"], 2)}, np.repeat(np.arange(len(b["x"])), 2)), y=int)
    sizes = rows.reduce_batches([], lambda keys, values, counts, starts: ({"n": np.diff(starts)}, [0]), n=int)
    captured = [each.capture() for each in (made, batches, flat, sizes)]
    rows.insert([2, 3])
    flow.commit()
    assert captured[0].counts() == {(2, 1.0, False, 4, "x"): 1, (3, 1.5, True, 9, "x"): 1}
    assert captured[1].counts() == {(12,): 1, (13,): 1}
    assert captured[2].counts() == {(2,): 2, (3,): 2}
    assert captured[3].counts() == {(2,): 1}


@pytest.mark.parametrize(
    "rows",
    [
        [(1, "a"), (2, "b")],
        {"x": [1, 2], "y": ["a", "b"]},
        {"x": pa.array([1, 2]), "y": pa.array(["a", "b"])},
        pa.table({"y": ["a", "b"], "x": [1, 2]}),
        pl.DataFrame({"x": [1, 2], "y": ["a", "b"]}),
        dlog.run_text('.decl r(x: number, y: symbol) .output r r(1, "a"). r(2, "b").', {})["r"],
    ],
    ids=["tuples", "columns", "arrow columns", "arrow", "polars", "relation"],
)
def test_rows_come_in_many_forms(rows: object) -> None:
    flow = Dataflow()
    given = flow.input(x=int, y=str)
    captured = given.capture()
    given.insert(rows)
    flow.commit()
    assert captured.counts() == {(1, "a"): 1, (2, "b"): 1}
    assert sorted(captured.to_polars().iter_rows()) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())], ids=str)
def test_each_text_of_a_column_is_made_once(type: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    encode = Objects.encode
    monkeypatch.setattr(Objects, "encode", lambda self, values: sizes.append(len(values)) or encode(self, values))
    flow = Dataflow()
    given = flow.input(x=int, y=str)
    captured = given.capture()
    chunks = [pa.array(texts, type) for texts in (["a", "b"] * 50, ["b", "c"] * 50)]
    given.insert(pa.table({"x": pa.array([1] * 200), "y": pa.chunked_array(chunks)}))
    flow.commit()
    assert captured.counts() == {(1, "a"): 50, (1, "b"): 100, (1, "c"): 50}
    assert sizes == [3]


def test_joins_name_their_columns() -> None:
    flow = Dataflow()
    left, right = flow.input(k=int, x=int), flow.input(j=int, x=int)
    joined = left.join(right, on={"k": "j"})
    assert joined.columns == ("k", "x", "x_right")
    weighted = right.explode("j", diff=(1, col("x")))
    totals = left.join(weighted, on={"k": "j"}).count("n", "sum").capture()
    left.insert([(1, 10), (1, 11)])
    right.insert([(1, 5), (1, 6), (2, 7)])
    flow.commit()
    assert totals.counts() == {(1, 10, 2, 11): 1, (1, 11, 2, 11): 1}


def test_collections_that_differ_are_told() -> None:
    flow = Dataflow()
    left, right = flow.input(x=int), flow.input(x=int)
    left.assert_eq(right)
    left.insert([1])
    right.insert([1])
    flow.commit()
    left.insert([2])
    with pytest.raises(DlogError, match=r"differ in row \(2,\) at 1: it is there 1 times more in the first one"):
        flow.commit()
    with pytest.raises(DlogError, match="can go on no longer"):
        flow.commit()


def test_a_loop_that_never_ends_is_ended() -> None:
    flow = Dataflow(max_iterations=50)
    numbers = flow.input(x=int)
    numbers.iterate(lambda inner: inner.map(x=col("x") + 1)).capture()
    numbers.insert([0])
    with pytest.raises(DlogError, match="after 50 iterations"):
        flow.commit()


def test_a_variable_may_start_empty() -> None:
    flow = Dataflow()
    start = flow.input(x=int)
    loop = flow.scope.loop()
    variable = Variable(loop, x=int)
    below = variable.map(x=col("x") + 1).filter(col("x") < 4).concat(start.enter(loop)).distinct()
    reached = variable.set(below).leave().capture()
    start.insert([1])
    flow.commit()
    assert reached.counts() == {(1,): 1, (2,): 1, (3,): 1}


def test_a_variable_without_a_definition_does_not_run() -> None:
    flow = Dataflow()
    start, loop = flow.input(x=int), flow.scope.loop()
    variable = Variable(loop, start.enter(loop))
    left = variable.leave().capture()
    start.insert([1])
    with pytest.raises(DlogError, match="a variable of a loop has no definition: \\(x: int\\)"):
        flow.commit()
    variable.set(variable.distinct())
    flow.commit()
    assert left.counts() == {(1,): 1}


def test_a_loop_that_could_not_be_made_is_forgotten() -> None:
    flow = Dataflow()
    start = flow.input(x=int)
    with pytest.raises(DlogError, match="unknown column"):
        start.iterate(lambda inner: inner.map("y"))
    flow.commit()


def test_arrays_that_are_given_may_be_changed_afterwards() -> None:
    flow = Dataflow()
    rows = flow.input(x=int, y=int)
    held = rows.capture()
    x, y = np.array([1, 2]), np.array([3, 4])
    rows.insert({"x": x, "y": pa.array(y)})
    x[:], y[:] = 0, 0
    flow.commit()
    assert held.counts() == {(1, 3): 1, (2, 4): 1}


def test_functions_may_write_to_the_arrays_that_they_get() -> None:
    def doubled(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        batch["x"] *= 2
        batch["text"][:] = "changed"
        return batch

    flow = Dataflow()
    rows = flow.input(x=int, text=str)
    twice, kept = rows.map_batches(doubled, x=int, text=str).capture(), rows.capture()
    alone = flow.input(x=int, text=str)
    once = [alone.map_batches(doubled, x=int, text=str).capture() for _ in range(2)]
    for given in (rows, alone):
        given.insert([(1, "a"), (2, "b")])
    flow.commit()
    assert kept.counts() == {(1, "a"): 1, (2, "b"): 1}
    assert twice.counts() == once[0].counts() == once[1].counts() == {(2, "changed"): 1, (4, "changed"): 1}


def test_large_sums_stay_as_they_are_when_layers_merge() -> None:
    flow = Dataflow()
    rows = flow.input(k=int, x=int)
    totals, held = rows.sum("k", total="x").capture(), rows.capture()
    for k in range(40):
        rows.insert([(k, 2**62 - k), (k, 1)])
        rows.update([(100 + k, 0)], 2**62 + k)
        flow.commit()
    rows.insert([(k, 0) for k in range(40)])
    flow.commit()
    assert {k: total for k, total in totals if k < 100} == {k: 2**62 - k + 1 for k in range(40)}
    assert {k: n for (k, _), n in held.counts().items() if k >= 100} == {100 + k: 2**62 + k for k in range(40)}


def test_sums_with_nan_among_the_floats_are_nan_until_it_goes() -> None:
    flow = Dataflow()
    rows = flow.input(k=int, x=float)
    totals = rows.sum("k", total="x").capture()
    rows.insert([(1, 1.5), (2, 2.5), (2, -1.0), (3, math.inf)])
    rows.update([(1, math.nan), (2, -math.nan)], [1, 2])
    flow.commit()
    assert {k: str(total) for k, total in totals} == {1: "nan", 2: "nan", 3: "inf"}
    rows.update([(1, math.nan), (2, math.nan)], [-1, -2])
    flow.commit()
    assert sorted(totals) == [(1, 1.5), (2, 1.5), (3, math.inf)]


def test_texts_that_only_functions_read_get_no_numbers() -> None:
    flow = Dataflow()
    rows = flow.input(x=int, text=str)
    lengths = rows.filter(col("text") != "no").map_batches(lambda b: {"n": np.array([len(t) for t in b["text"]])}, n=int)
    upper = rows.flat_map(lambda x, text: [(text.upper(),)] * x, text=str)
    counts, texts = lengths.capture(), upper.capture()
    rows.insert([(1, "one"), (1, "no")])
    rows.insert(pa.table({"x": [2, 1], "text": ["four", "one"]}), at=1)
    flow.advance_to(2)
    assert set(flow._graph.objects._numbers) == {"ONE", "NO", "FOUR"}
    assert counts.counts() == {(3,): 2, (4,): 1}
    assert texts.counts() == {("ONE",): 2, ("NO",): 1, ("FOUR",): 2}
    with pytest.raises(DlogError, match="3 is no str"):
        rows.insert([(1, 3)])


def test_texts_get_numbers_for_who_reads_them_later() -> None:
    flow = Dataflow()
    rows = flow.input(text=str)
    lengths = rows.map_batches(lambda b: {"n": np.array([len(t) for t in b["text"]])}, n=int).capture()
    rows.insert([("one",), ("two",)])
    every = rows.count().capture()
    rows.insert([("one",)])
    flow.commit()
    assert lengths.counts() == {(3,): 3}
    assert every.counts() == {("one", 2): 1, ("two", 1): 1}


def test_what_waits_of_large_tables_stays_as_it_was() -> None:
    flow = Dataflow()
    numbers = flow.input(x=int)
    last = numbers.max("x").capture(history=True)
    many = np.arange(MIN_POOLED_WORDS)
    for round in range(5):
        numbers.insert({"x": many + round}, at=round + (5 if round % 2 else 0))
    numbers.insert([0])
    for _ in range(10):
        flow.commit()
        numbers.insert({"x": many}, at=10)
    expected = np.maximum.accumulate([0, -1, 2, -1, 4, -1, 1, -1, 3, -1]) + len(many) - 1
    assert [list(last.counts(round)) for round in range(10)] == [[(most,)] for most in expected.tolist()]


def test_functions_that_cannot_fail_wait_until_a_capture_is_read() -> None:
    flow = Dataflow()
    rows = flow.input(a=int, b=object)
    some = rows.map("a", half=col("a") / 2).filter((col("half") > 1) & (col("a") != lit(9))).rename(whole="a")
    both = some.concat(rows.map(whole="a", half=col("a") * 1.0)).capture(history=True)
    shared, less = some.negate(), rows.filter(col("b") < lit((5,))).capture()
    negated, counted = shared.capture(), shared.map("whole").count().capture()
    rows.insert([(1, (2,)), (9, (7,))])
    rows.insert([(3, (4,))], at=1)
    flow.advance_to(2)
    assert next(each.received for each in flow.statistics() if each.operator == "Capture") == 2 * 3
    assert both.counts(0) == {(1, 1.0): 1, (9, 9.0): 1}
    assert both.counts() == {(1, 1.0): 1, (9, 9.0): 1, (3, 3.0): 1, (3, 1.5): 1}
    assert (negated.counts(), counted.counts()) == ({(3, 1.5): -1}, {(3, -1): 1})
    assert less.counts() == {(1, (2,)): 1, (3, (4,)): 1}
    rows.insert([(1, "x")])
    with pytest.raises(TypeError):
        flow.commit()


@pytest.mark.parametrize(
    ("expression", "total"),
    [
        (col("x") / 0, True), (-col("y") % 2 > col("x"), True), (lit(1).alias("z"), True), ((col("x") + 1).alias("z"), True),
        (col("s"), True), (col("s") + col("s"), False), (col("s") < col("s"), False), (lit([]), False), (lit("s"), False),
        (apply(lambda x: x, "x"), False), (apply(lambda x: x, "x") + 1, False), ((col("s") == "s") & True, False),
    ],
)  # fmt: skip
def test_an_expression_is_total_where_nothing_can_be_raised(expression: Expression, total: bool) -> None:
    schema = Schema(("x", "y", "s"), (int, float, str))
    assert expression.total(schema) == total


@examples(100)
@examples_of(
    st.lists(st.tuples(st.lists(st.tuples(st.integers(0, 6), st.integers(-2, 2)), max_size=6), st.booleans()), max_size=12),
    st.sampled_from([1, 3, sinks.MAX_KEPT_ROWS]),
    st.sampled_from([1, 2, sinks.MAX_WAITING]),
    st.booleans(),
)
def test_what_is_read_between_rounds_is_all_that_has_come(
    rounds: list[tuple[list[tuple[int, int]], bool]], kept: int, waiting: int, history: bool
) -> None:
    with patch.object(sinks, "MAX_KEPT_ROWS", kept), patch.object(sinks, "MAX_WAITING", waiting):
        flow = Dataflow()
        rows, more = flow.input(x=int), flow.input(x=int)
        captured = rows.concat(more.map(x=col("x") + 1)).capture(history=history)
        there: Counter[tuple[int]] = Counter()
        for updates, read in rounds:
            for x, diff in updates:
                (rows if x % 2 else more).update([(x,)], diff)
                there[x + (x + 1) % 2,] += diff
            flow.commit()
            for _ in range(2 * read):
                assert captured.counts() == {row: count for row, count in there.items() if count}
                assert len(captured) == sum(max(count, 0) for count in there.values())
        if history and rounds:
            assert captured.counts(flow.round - 1) == captured.counts()
        assert sum(diff for _, _, diff in captured.updates()) == sum(there.values())
        assert captured.counts() == {row: count for row, count in there.items() if count}
