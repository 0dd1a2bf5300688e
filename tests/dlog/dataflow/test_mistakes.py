"""What dataflows refuse, and what they say."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest

import dlog
from dlog.dataflow import AltNeu, Collection, Dataflow, Variable, apply, col, linear, lit, now, series
from dlog.grammar.diagnostics import DlogError

MASKED = np.ma.array([1, 2], mask=[False, True])


@pytest.mark.parametrize("given", [float("nan"), float("inf"), 0.5, 1j, "one"])
def test_a_threshold_gives_whole_numbers(given: Any) -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    rows.threshold(lambda counts: np.full(counts.shape, given)).capture()
    rows.insert([1])
    with pytest.raises(DlogError, match="the function of `threshold` must give a whole number for each it gets"):
        flow.commit()


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_numbers_beyond_64_bits_are_refused_where_they_are_written(number: int) -> None:
    with pytest.raises(DlogError, match=f"{number} is beyond 64 bits"):
        _ = col("x") + number
    with pytest.raises(DlogError, match=f"{number} is beyond 64 bits"):
        lit(number)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda f, c: c.map("z"), "unknown column `z`"),
        (lambda f, c: c.map(col("x") + 1), "must be names, or expressions with a name"),
        (lambda f, c: c.filter(col("x") + 1), "an expression that is true or false"),
        (lambda f, c: c.map(z=col("x") + col("y")), "no `\\+` of int and str"),
        (lambda f, c: bool(col("x") == 1), "neither true nor false"),
        (lambda f, c: c.join(f.input(z=int)), "no column is in both"),
        (lambda f, c: c.join(f.input(z=int), on={"y": "z"}), "`y` is str, `z` is int"),
        (lambda f, c: c.concat(f.input(x=int)), "concat: \\(x: int, y: str\\) and \\(x: int\\)"),
        (
            lambda f, c: c.concat(c.explode("x", "y", diff=(1, 0.5))),
            "concat: the diffs of one are integers, those of the other tuples \\(int, float\\)",
        ),
        (lambda f, c: c.filter(lambda x, y: x > 1), "over columns, or a value, not <function(.|\n)*`apply(.|\n)*`flat_map`"),
        (lambda f, c: c.map(lambda x, y: x), "`map_batches` one of columns"),
        (lambda f, c: c.map(z=lambda x, y: x), "`map_batches` one of columns"),
        (lambda f, c: c.join_map(c, z=lambda x, y: x, on="x"), "`map_batches` one of columns"),
        (lambda f, c: c.concat(c.enter(f.scope.loop())), "in two scopes"),
        (lambda f, c: c.concat(Dataflow().input(x=int, y=str)), "of two dataflows"),
        (lambda f, c: c.asof_join(Dataflow().input(x=int, y=str)), "of two dataflows"),
        (lambda f, c: c.asof_join(Dataflow().input(x=int, y=str), retract="original"), "of two dataflows"),
        (lambda f, c: c.leave(), "no scope that could be left"),
        (lambda f, c: c.integrate(), "alt/neu scope"),
        (lambda f, c: c.enter(f.scope.loop()).scope.altneu(), "no alt/neu scope within a loop"),
        (lambda f, c: Variable(f.scope, c), "has to be in a loop"),
        (lambda f, c: c.explode("x", diff=(1, 2)).distinct(), "needs diffs that are integers"),
        (lambda f, c: c.explode("x", diff=(1, 2)).count("one"), "needs 2 names"),
        (lambda f, c: c.insert([(1,)]), "is no row of"),
        (lambda f, c: c.insert((1, "a")), r"1 is no row of (.|\n)*a list of tuples, also where there is one"),
        (lambda f, c: c.insert([{"x": 1, "y": "a"}]), "is no row of (.|\n)*columns go into one dict"),
        (lambda f, c: c.insert({"x": 1, "y": "a"}), "`x` has a value for each row, and 1 is no list(.|\n)*also of one row"),
        (lambda f, c: c.insert({"x": [1], "y": "a"}), "column `y` has a value for each row, and 'a' is no list"),
        (lambda f, c: c.insert({}), "the columns are x, y, not none"),
        (lambda f, c: c.insert(pl.LazyFrame({"x": [1], "y": ["a"]})), "is no rows of (.|\n)*`rows.collect\\(\\)`"),
        (lambda f, c: c.insert(pl.Series([1])), "a series is one column: it is no rows of"),
        (lambda f, c: f.input(x=int).insert(pl.Series(["a"])), "'a' is no int"),
        (lambda f, c: f.input(x=int).insert(np.array([7, 2**63], np.uint64)), "9223372036854775808 is beyond 64 bits"),
        (lambda f, c: c.insert({"x": MASKED, "y": ["a", "b"]}), "column `x` has a masked value in row 2, where int is meant"),
        (lambda f, c: f.input(x=float).insert(MASKED), "column `x` has a masked value in row 2, where float is meant"),
        (lambda f, c: c.update([(1, "a"), (2, "b")], MASKED), "`diffs` must be a whole number for each .* none is masked"),
        (lambda f, c: c.insert([("a", "b")]), "is no int"),
        (lambda f, c: c.insert([(1, "a"), ("z", "b")]), "'z' is no int"),
        (lambda f, c: c.insert([(1, "a"), (2.5, "b")]), "2.5 is no int"),
        (lambda f, c: c.insert([(1, "a"), (None, "b")]), "None is no int"),
        (lambda f, c: f.input(x=float).insert([1, 0.5, "z"]), "'z' is no float"),
        (lambda f, c: f.input(x=float).insert([0.5, True]), "True is no float"),
        (lambda f, c: f.input(x=bool).insert([True, 1]), "1 is no bool"),
        (lambda f, c: c.insert([(1, 2)]), "is no str"),
        (lambda f, c: f.input(x=list), "must be int, float, bool, str or object"),
    ],
)
def test_mistakes_are_told(wrong: object, message: str) -> None:
    flow = Dataflow()
    collection = flow.input(x=int, y=str)
    with pytest.raises(DlogError, match=message):
        wrong(flow, collection)


def _batches(owners: Any) -> Callable[[Collection], Collection]:
    return lambda rows: rows.flat_map_batches(lambda columns: ({"y": [5]}, owners), y=int)


def _grouped(owners: Any) -> Callable[[Collection], Collection]:
    return lambda rows: rows.reduce_batches("x", lambda *groups: ({"y": [5]}, owners), y=int)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.flat_map(lambda x: None, y=int), "function of `flat_map` must give any number of rows, not None"),
        (lambda c: c.join_function(lambda x: 3, y=int), "must give any number of \\(row, time, diff\\), not 3"),
        (lambda c: c.join_function(lambda x: [(x,)], y=int), "of `join_function` must give any number of .* not \\(1,\\)"),
        (lambda c: c.join_function(lambda x: [x], y=int), "of `join_function` must give any number of .* not 1"),
        (lambda c: c.join_function(lambda x: [((x,), 0, 0.5)], y=int), "must give whole numbers as diffs, not 0.5"),
        (lambda c: c.reduce("x", lambda key, rows: None, y=int), "`reduce` must give any number of \\(row, count\\), not None"),
        (lambda c: c.reduce("x", lambda key, rows: [1], y=int), "of `reduce` must give any number of \\(row, count\\), not 1"),
        (lambda c: c.flat_map_batches(lambda columns: columns, y=int), "must give \\(columns, numbers of rows\\), not {"),
        (lambda c: c.reduce_batches("x", lambda *groups: None, y=int), "must give \\(columns, numbers of groups\\), not None"),
        (lambda c: c.scan("x", lambda a, b: a, a=0, b=0), "of `scan` must give the next state, a tuple of 2 values, not 0"),
        (lambda c: c.scan("x", lambda a, b: (a, b, 7), a=0, b=0), "a tuple of 2 values, not \\(0, 0, 7\\)"),
        (lambda c: c.scan("x", lambda a, b: "ab", a="", b=""), "a tuple of 2 values, not 'ab'"),
        (lambda c: c.map_batches(lambda columns: {"y": [5]}, y=int), "`map_batches` must give a row for each of 2, not 1"),
        (_batches([-1]), "`flat_map_batches` must give numbers of rows from 0 to 1, not -1"),
        (_batches([2]), "`flat_map_batches` must give numbers of rows from 0 to 1, not 2"),
        (_batches([0.7]), "`flat_map_batches` must give whole numbers of rows, not \\[0.7\\]"),
        (_batches([True]), "`flat_map_batches` must give whole numbers of rows, not \\[True\\]"),
        (_batches([0, 1]), "`flat_map_batches` must give the number of a row for each of 1 rows, not \\[0, 1\\]"),
        (_batches(0), "`flat_map_batches` must give the number of a row for each of 1 rows, not 0"),
        (_batches([[0]]), "`flat_map_batches` must give the number of a row for each of 1 rows"),
        (_grouped([-1]), "`reduce_batches` must give numbers of groups from 0 to 1, not -1"),
        (_grouped([2]), "`reduce_batches` must give numbers of groups from 0 to 1, not 2"),
        (_grouped([0.0]), "`reduce_batches` must give whole numbers of groups"),
        (_grouped([0, 0]), "`reduce_batches` must give the number of a group for each of 1 rows"),
        (lambda c: c.generate_series(0, 2**50), "`generate_series` gives more than .* rows at once, .* from 0 to"),
        (lambda c: c.generate_series(-(2**63), 2**63 - 1), "from -9223372036854775808 to 9223372036854775807"),
    ],
)
def test_functions_that_give_something_else_are_told(wrong: object, message: str) -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    wrong(rows).capture()
    rows.insert([1, 2])
    with pytest.raises(DlogError, match=message):
        flow.commit()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.sum(t="s"), "`t` must be a sum of numbers, not 'str'"),
        (lambda c: c.sliding_window("x", 10**12, 1), "`size` must be at most 1,073,741,824 times `slide`, which is 1, not 10"),
        (lambda c: c.sliding_window("z", 1e18, 1e-300), "`size` must be at most 1,073,741,824 times `slide`, which is 1e-300"),
        (lambda c: dlog.rules(r=c.filter(now() < col("x"))), "`temporal`, or a filter with `now\\(\\)`, "),
        (lambda c: dlog.rules(r=c.sum(t="z")), "`sum`, or `explode`, cannot be said by rules: of floats it"),
    ],
)
def test_mistakes_have_the_name_of_what_was_written(wrong: object, message: str) -> None:
    with pytest.raises(DlogError, match=message):
        wrong(Dataflow().input("rows", x=int, s=str, z=float))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.sliding_window("x", 2**30, 1), "`sliding_window` gives more than 1,073,741,824 rows at once: each row"),
        (lambda c: c.delay(lambda time: 2**63), "9223372036854775808 is no time: coordinates have 64 bits"),
        (lambda c: c.enter(c.scope.altneu()).delay(lambda time: AltNeu((2**62,))), "is no time: coordinates have 64 bits"),
        (lambda c: c.join_function(lambda x, o: [((x,), 2**64, 1)], x=int), "18446744073709551616 is no time: coordinates"),
        (lambda c: c.min("o"), "values cannot be ordered: '<' not supported between instances of"),
        (lambda c: c.top_k(1, "o"), "values cannot be ordered: '<' not supported between instances of"),
    ],
)
def test_what_values_do_is_told_when_they_come(wrong: object, message: str) -> None:
    flow = Dataflow()
    rows = flow.input(x=int, o=object)
    wrong(rows).capture()
    rows.insert([(1, "a"), (2, 2)])
    with pytest.raises(DlogError, match=message):
        flow.commit()


def test_windows_without_memory_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arrays: np.ndarray) -> None:
        raise MemoryError

    flow = Dataflow()
    rows = flow.input(x=int)
    rows.sliding_window("x", 2**20, 1).capture()
    rows.insert([1])
    monkeypatch.setattr(np, "nonzero", fail)
    with pytest.raises(DlogError, match="gives more rows than there is memory for at once: each row is in 1,048,576"):
        flow.commit()


@pytest.mark.parametrize(
    ("kinds", "row", "message"),
    [
        ({"x": int}, (1, 2, 3), r"\(1, 2, 3\) is no row of \(x: int\)"),
        ({"x": int}, (), r"\(\) is no row of \(x: int\)"),
        ({"x": int}, [1, 2], r"\[1, 2\] is no int"),
        ({"x": int, "y": int}, (1, (2, 3)), r"\(2, 3\) is no int"),
        ({"x": str}, ((2, 3),), r"\(2, 3\) is no str"),
    ],
)
def test_the_row_or_value_that_is_wrong_is_named(kinds: dict[str, type], row: Any, message: str) -> None:
    rows = Dataflow().input(**kinds)
    with pytest.raises(DlogError, match=message):
        rows.insert([row])
    with rows.arrange_by_self().trace() as trace, pytest.raises(DlogError, match=message):
        trace.cursor().seek_key(row)


def test_tuples_are_objects() -> None:
    flow = Dataflow()
    rows = flow.input(x=object)
    seen = rows.capture()
    rows.insert([(1, 2), (), ((3,),), "a"])
    flow.commit()
    assert set(seen.counts()) == {((1, 2),), ((),), ((3,),), ("a",)}


def test_no_round_is_done_within_another_one() -> None:
    flow, shown = Dataflow(), []
    rows = flow.input(x=int)
    seen = rows.capture()

    def show(row: tuple[int], time: int, diff: int) -> None:
        with pytest.raises(DlogError, match="a round is being done, in which no other begins"):
            flow.commit()
        shown.append(row)
        if row[0] < 3:
            rows.insert([row[0] + 1])

    rows.inspect(show)
    rows.insert([1])
    for _ in range(4):
        flow.commit()
    assert shown == [(1,), (2,), (3,)] and seen.counts() == {(1,): 1, (2,): 1, (3,): 1}


def test_rounds_end_somewhere() -> None:
    with pytest.raises(DlogError, match=r"must be a round after the present one, 0, up to 2\^62, not 4611686018427387905"):
        Dataflow().advance_to(2**62 + 1)


def test_series_without_memory_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arrays: np.ndarray) -> None:
        raise MemoryError

    monkeypatch.setattr(series, "repeated", fail)
    flow = Dataflow()
    rows = flow.input(x=int)
    rows.generate_series(0, "x").capture()
    rows.insert([2**29])
    with pytest.raises(DlogError, match="more rows than there is memory for at once, the most of them from 0 to 536870912"):
        flow.commit()


def test_what_functions_raise_is_theirs() -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    rows.flat_map(lambda x: (y + None for y in [x]), y=int).capture()
    rows.insert([1])
    with pytest.raises(TypeError, match="unsupported operand"):
        flow.commit()


def test_rounds_that_are_done_stay_as_they_are() -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    flow.advance_to(3)
    with pytest.raises(DlogError, match="round 2 is done"):
        rows.insert([1], at=2)
    with pytest.raises(DlogError, match="operators can be added no longer"):
        rows.distinct()


NO_COLLECTION = "`{}` must be a collection, not {}"
NO_FUNCTION = "`{}` must be a function of {}, not 5"
NO_SCOPE = "`scope` must be a scope within that of the collection, not"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda f, c: c.join([(1, 2)]), NO_COLLECTION.format("other", r"\[\(1, 2\)\](.|\n)*`flow.input`")),
        (lambda f, c: c.join(c.arrange_by_key("x")), "of an arrangement is its `collection`"),
        (lambda f, c: c.join_map(None, "x"), NO_COLLECTION.format("other", "None")),
        (lambda f, c: c.semijoin(None), NO_COLLECTION.format("other", "None")),
        (lambda f, c: c.antijoin(f), NO_COLLECTION.format("other", "dlog.datafl")),
        (lambda f, c: c.concat(None), NO_COLLECTION.format("other", "None")),
        (lambda f, c: c.assert_eq([]), NO_COLLECTION.format("other", r"\[\]")),
        (lambda f, c: c.asof_join(None), NO_COLLECTION.format("other", "None")),
        (lambda f, c: c.asof_join(None, retract="original"), NO_COLLECTION.format("other", "None")),
        (lambda f, c: c.propose().half_join(None, ties=True), NO_COLLECTION.format("other", "None")),
        (lambda f, c: c.propose().extend("z", (None, "x", True)), NO_COLLECTION.format("other", "None")),
        (lambda f, c: c.watermark("x", marks=5), NO_COLLECTION.format("marks", "5")),
        (lambda f, c: c.watermark("x", lateness=1).release(None, "x"), NO_COLLECTION.format("events", "None")),
        (lambda f, c: c.iterate(lambda inner: None), "`step` must be a function that returns a coll.* None(.|\n)*`return`"),
        (lambda f, c: c.iterate(lambda inner: 5), "`step` must be a function that returns a collection, not 5"),
        (lambda f, c: Variable(f.scope.loop(), 5), NO_COLLECTION.format("start", "5")),
        (lambda f, c: Variable(f.scope.loop(), x=int).set(None), NO_COLLECTION.format("definition", "None")),
        (lambda f, c: Variable(None, c), "`scope` must be a loop: `scope.loop\\(\\)`, not None"),
        (lambda f, c: c.enter(None), NO_SCOPE),
        (lambda f, c: c.enter_at(None, "x"), NO_SCOPE),
        (lambda f, c: c.differentiate(None), "`scope` must be an alt/neu scope"),
        (lambda f, c: Dataflow(beside=f).import_(c), "`arrangement` must be one of another dataflow: `collection.arr"),
        (lambda f, c: Dataflow(beside=c), "`beside` must be another dataflow"),
        (lambda f, c: linear.map("x").followed_by(5), "`other` must be linear operators: .*, not 5"),
        (lambda f, c: AltNeu(3), "`time` must be a tuple of the coordinates of a time, such as \\(3,\\), not 3"),
        (lambda f, c: AltNeu.neu(3), r"`AltNeu.neu\(3\)` makes no time: write `AltNeu\(\(3,\), True\)`"),
        (lambda f, c: AltNeu.alt(3), r"`AltNeu.alt\(3\)` makes no time: write `AltNeu\(\(3,\)\)`"),
        (lambda f, c: AltNeu((3,), 2), "`neu` must be True or False, not 2"),
        (lambda f, c: AltNeu((3,)).less_equal(3), "`other` must be an AltNeu of 1 coordinates, not 3"),
        (lambda f, c: AltNeu((3,)).join(AltNeu((3, 0))), "`other` must be an AltNeu of 1 coordinates, not AltNeu"),
        (lambda f, c: dlog.session(".decl r(x: number)").feed("r", None), NO_COLLECTION.format("collection", "None")),
        (lambda f, c: c.threshold(5), "`function` must be a function of counts, or an expression over `count`, not 5"),
        (lambda f, c: c.inspect(5), NO_FUNCTION.format("show", "a row, a time and a diff")),
        (lambda f, c: c.arrange_by_key("x").inspect_batches(5), NO_FUNCTION.format("show", "a batch")),
        (lambda f, c: c.iterate(5), NO_FUNCTION.format("step", "a collection")),
        (lambda f, c: c.delay(5), NO_FUNCTION.format("function", "a time")),
        (lambda f, c: c.map_batches(5, z=int), NO_FUNCTION.format("function", "columns")),
        (lambda f, c: c.flat_map(5, z=int), NO_FUNCTION.format("function", "a row's values")),
        (lambda f, c: c.flat_map_batches(5, z=int), NO_FUNCTION.format("function", "columns")),
        (lambda f, c: c.join_function(5, z=int), NO_FUNCTION.format("function", "a row's values")),
        (lambda f, c: c.reduce("x", 5, z=int), NO_FUNCTION.format("function", "groups")),
        (lambda f, c: c.reduce_batches("x", 5, z=int), NO_FUNCTION.format("function", "groups")),
        (lambda f, c: c.scan("x", 5, z=0), NO_FUNCTION.format("function", "the state and the arguments")),
        (lambda f, c: c.map(z=apply(5, "x")), "`function` must be a function in Python, not 5"),
    ],
)
def test_what_is_no_collection_scope_or_function_is_told_where_it_is_given(wrong: object, message: str) -> None:
    flow = Dataflow()
    with pytest.raises(DlogError, match=message):
        wrong(flow, flow.input(x=int, y=int))


@pytest.mark.parametrize("diffs", [2**63, 2**64, 1.5, [1, 2**63]])
def test_diffs_that_are_no_whole_numbers_of_64_bits_are_refused(diffs: Any) -> None:
    given = Dataflow().input("given", x=int)
    rows = [(1,), (2,)][: len(diffs) if isinstance(diffs, list) else 1]
    with pytest.raises(DlogError, match="`diffs` must be a whole number of 64 bits"):
        given.update(rows, diffs)


@pytest.mark.parametrize("shape", [(), (2, 1), (2, 2)])
@pytest.mark.parametrize("kind", [int, float, bool, str])
def test_columns_of_several_dimensions_are_refused(kind: type, shape: tuple[int, ...]) -> None:
    flow = Dataflow()
    rows, given = flow.input(x=kind), flow.input(n=int)
    given.map_batches(lambda _: {"x": np.zeros(shape, kind)}, x=kind).capture()
    with pytest.raises(DlogError, match=f"an array of shape {re.escape(str(shape))} is no column"):
        rows.insert({"x": np.zeros(shape, kind)})
    given.insert([0, 1])
    with pytest.raises(DlogError, match="is no column"):
        flow.commit()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.map("x").count().map("count").count(), "columns of one name: count, count(.|\n)*\"nodes\""),
        (lambda c: c.count("x", by="x"), "columns of one name: x, x"),
        (lambda c: c.explode("x", diff=(1, 2)).count("n", "n"), "columns of one name: x, n, n"),
        (lambda c: c.sum(by="x", x="y"), "columns of one name: x, x"),
        (lambda c: c.rename(x="y"), "columns of one name: x, x"),
        (lambda c: c.rename(a="x", b="x"), "`x` would have two names, a and b(.|\n)*`map\\(a='x', b='x'\\)`"),
        (lambda c: c.generate_series(1, "y", "x"), "columns of one name: x, y, x(.|\n)*`name=`"),
        (lambda c: c.reduce("x", lambda key, rows: [], x=int), "columns of one name: x, x"),
        (lambda c: c.reduce_batches("x", lambda *groups: None, x=int), "columns of one name: x, x"),
        (lambda c: c.map("x", x="y"), "columns of one name: x, x"),
        (lambda c: c.explode("x", x="y", diff=1), "columns of one name: x, x"),
        (lambda c: c.join(c, on="x", suffix=""), "columns of one name: x, y, y(.|\n)*`suffix=`"),
        (lambda c: c.tumbling_window("x", 5, names=("a", "a")), "columns of one name: x, y, a, a(.|\n)*`names=`"),
        (lambda c: c.scan("x", lambda *given: given, y=(int, 0)), "columns of one name: x, y, y"),
        (lambda c: c.arrange_by_key("x", "x"), "columns of one name: x, x"),
        (lambda c: c.top_k(1, "y", by=["x", "x"]), "columns of one name: x, x"),
    ],
)
def test_columns_of_one_name_are_refused(wrong: Callable[[Collection], object], message: str) -> None:
    collection = Dataflow().input(x=int, y=int)
    with pytest.raises(DlogError, match=message):
        wrong(collection)


def test_columns_may_change_names() -> None:
    flow = Dataflow()
    rows = flow.input(x=int, y=int)
    swapped, counted = rows.rename(x="y", y="x").capture(), rows.map("x").count().map("count").count("nodes").capture()
    rows.insert([(1, 2), (1, 3), (4, 4)])
    flow.commit()
    assert swapped._schema.names == ("y", "x")
    assert swapped.counts() == {(1, 2): 1, (1, 3): 1, (4, 4): 1}
    assert counted.counts() == {(1, 1): 1, (2, 1): 1}


def test_nothing_is_read_of_a_dataflow_that_has_failed() -> None:
    flow = Dataflow()
    rows = flow.input(x=int, y=int)
    kept, history, probe = rows.capture(), rows.map("y").capture(history=True), rows.probe()
    trace = rows.arrange_by_key("x").trace()
    rows.filter(col("x") == 2).assert_empty()
    rows.insert([(1, 2)])
    flow.commit()
    before = trace.cursor()
    assert probe.frontier
    rows.insert([(2, 3)])
    with pytest.raises(DlogError, match="is there 1 times"):
        flow.commit()
    reads = [
        kept.counts, kept.updates, kept.to_arrow, kept.to_numpy, kept.__len__, kept.__iter__, partial(history.counts, 0),
        history.updates, trace.cursor, partial(trace.cursor_through, 0), lambda: probe.frontier, partial(probe.less_than, 3),
    ]  # fmt: skip
    for read in reads:
        with pytest.raises(DlogError, match="the dataflow can go on no longer") as error:
            read()
        assert error.value.diagnostics[0].code == "dataflow-failed"
    assert repr(kept) == "<dlog.dataflow.Captured, not to be read: the dataflow can go on no longer>"
    assert "since" in repr(trace)
    assert before.counts() == {(1, 2): 1}


def test_outputs_can_be_read_by_what_is_called_in_a_batch() -> None:
    flow = Dataflow()
    rows = flow.input(x=int, y=int)
    kept, seen = rows.capture(), []
    rows.map("x").distinct().inspect(lambda *update: seen.append(kept.updates()))
    rows.insert([(1, 2)])
    flow.commit()
    assert seen
