"""What operators refuse where they are made: flags, names, and functions that cannot be called with what they would get."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dlog
from dlog.dataflow import Collection, Dataflow, apply, col, linear, lit, moving, now, semigroup
from dlog.dataflow.names import NAMES_HERE, TABLES_HERE
from dlog.grammar.diagnostics import DlogError

ROOT = Path(__file__).parents[3]
Wrong = Callable[[Collection], object]
NO_FLAG = "`{}` must be True or False, not {}"


@pytest.fixture
def rows() -> Collection:
    return Dataflow().input("rows", x=int, y=str)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.top_k(1, "x", descending="no"), "`descending` must be True or False, or a list of these .* not 'no'"),
        (lambda c: c.top_k(1, "x", descending=1), "`descending` must be True or False, .* not 1"),
        (lambda c: c.top_k(1, "x", descending=["x"]), "`descending` must be True or False, .* not \\['x'\\]"),
        (lambda c: c.top_k(1, ["x", "y"], descending=[True]), "for each of the 2 columns of the order, not \\[True\\]"),
        (lambda c: c.top_k(1, "x", insert_only="yes"), NO_FLAG.format("insert_only", "'yes'")),
        (lambda c: c.min("x", insert_only=1), NO_FLAG.format("insert_only", "1")),
        (lambda c: c.max("x", insert_only="yes"), NO_FLAG.format("insert_only", "'yes'")),
        (lambda c: c.capture("yes"), NO_FLAG.format("history", "'yes'")),
        (lambda c: c.propose().half_join(c.rename(z="y"), "x", ties="x"), NO_FLAG.format("ties", "'x'")),
        (lambda c: c.propose().extend("z", (c.rename(z="y"), "x", "no")), NO_FLAG.format("ties", "'no'")),
    ],
)
def test_flags_are_true_or_false(rows: Collection, wrong: Wrong, message: str) -> None:
    with pytest.raises(DlogError, match=message):
        wrong(rows)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.sum("y"), "`sum` is given no column to sum(.|\n)*`sum\\(total=\"x\"\\)`"),
        (lambda c: c.sum("x", by="y"), "`sum` is given columns whose sums have no names(.|\n)*`sum\\(total=\"x\"\\)`.* `by=`"),
        (lambda c: c.sum("x", "y"), "`sum` is given columns whose sums have no names"),
        (lambda c: c.sum(), "`sum` is given no column to sum(.|\n)*`count` says how many"),
        (lambda c: c.map("x").explode(diff=1).sum(), "`sum` is given no column to sum"),
        (lambda c: c.explode("x", diff=()), "`diff` must be a number, or a tuple of one or more .*, not \\(\\)"),
        (lambda c: c.count("x", "y"), "`count` takes one name, of the column of numbers: `by=` names the columns of the key"),
        (lambda c: c.top_k(1, []), "`order` must be the name of a column, or a list of them, not \\[\\]"),
        (lambda c: c.min(col("x") + 1), "`column` must be the name of a column, not col.*(.|\n)*`map` makes a column of an"),
        (lambda c: c.tumbling_window("x", timedelta(days=1)), "`size` must be .*(.|\n)*of microseconds: an hour is"),
        (lambda c: c.count(3), "a column has a text as its name, not 3"),
        (lambda c: c.count(["n"]), "a column has a text as its name, not \\['n'\\]"),
        (lambda c: c.map(col("x").alias(3)), "a column has a text as its name, not 3"),
        (lambda c: c.generate_series(1, "x", 3), "a column has a text as its name, not 3"),
        (lambda c: c.join(c, on="x", suffix=3), "`suffix` must be a text that is put behind names, not 3"),
        (lambda c: c.propose().extend("z", c), "`relations` must be tuples of a coll.* key .*ties, not dlog(.|\n)*`extend"),
        (lambda c: c.propose().extend("z", (c, "x")), "`relations` must be tuples of a collection, its key and"),
        (lambda c: c.propose().extend(3, (c, "x", True)), "`name` must be the name of the new column, not 3"),
    ],
)
def test_arguments_that_say_nothing_are_refused(rows: Collection, wrong: Wrong, message: str) -> None:
    with pytest.raises(DlogError, match=message):
        wrong(rows)


INTEGERS = "must be a column or expression of integers"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.temporal("y"), f"`lower` {INTEGERS}, which are rounds, not 'str'"),
        (lambda c: c.temporal(1, col("y")), f"`upper` {INTEGERS}, which are rounds, not 'str'"),
        (lambda c: c.generate_series("y", "x"), f"`start` {INTEGERS}, not 'str'"),
        (lambda c: c.generate_series("x", 1.5), f"`stop` {INTEGERS}, not 'float'"),
        (lambda c: c.repeat_row("y"), f"`times` {INTEGERS}, not 'str'"),
        (lambda c: c.filter(col("y") <= now()), "`now\\(\\)` must be compared with integers, which are rounds, not 'str'"),
        (lambda c: c.iterate(lambda i: i.map("x")), "iterate: \\(x: int, y: str\\) and \\(x: int\\)(.|\n)*`step` gives"),
        (
            lambda c: c.unpack_changes({"x": "x"}, {"z": "x"}, ("x", "x")),
            "unpack_changes: \\(x: int\\) and \\(z: int\\)(.|\n)*`before` and `after` make the same",
        ),
        (lambda c: c.differentiate(c.scope.loop()), "`flow.scope.altneu\\(\\)`, not dlog.dataflow.Scope, a loop"),
        (lambda c: c.filter(col("y") < date(2026, 1, 1)), "there is no `<` of str and object"),
    ],
)
def test_messages_name_what_has_been_written(rows: Collection, wrong: Wrong, message: str) -> None:
    with pytest.raises(DlogError, match=message):
        wrong(rows)


@pytest.mark.parametrize("more", ["first", "second"])
def test_of_collections_that_differ_the_one_with_the_row_is_named(rows: Collection, more: str) -> None:
    flow = Dataflow()
    given = {"first": flow.input(x=int), "second": flow.input(x=int)}
    given["first"].assert_eq(given["second"])
    given[more].insert([7, 7])
    with pytest.raises(DlogError, match=rf"row \(7,\) at 0: it is there 2 times more in the {more} one") as caught:
        flow.commit()
    assert caught.value.diagnostics[0].code == "not-equal"


def test_diffs_of_other_groups_that_differ_are_told() -> None:
    flow = Dataflow()
    one, other = (flow.input(x=int).explode("x", diff=(1, 2.5)) for _ in range(2))
    one.assert_eq(other)
    flow.commit()
    flow = Dataflow()
    numbers = flow.input(x=int)
    numbers.explode("x", diff=(1, 2.5)).assert_eq(numbers.explode("x", diff=(1, 2.0)))
    numbers.insert([1])
    with pytest.raises(DlogError, match=r"its diffs in the first one less those in the second are \(0, 0.5\)"):
        flow.commit()


@pytest.mark.parametrize(("name", "here"), NAMES_HERE.items())
def test_names_of_differential_dataflow_lead_to_those_here(rows: Collection, name: str, here: str) -> None:
    with pytest.raises(AttributeError, match=f"a collection has no attribute `{name}`: write `{here}`"):
        getattr(rows, name)
    attribute: Any = rows
    for part in here.split("."):
        attribute = getattr(attribute, part)
    page = (ROOT / "docs/coming-from/differential-dataflow.md").read_text("utf-8").partition("## Names\n")[2]
    columns = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("|")]
    (told,) = [answer for there, answer in columns if f"`{name}`" in there]
    assert all(f"`{part}`" in told for part in here.split("."))


@pytest.mark.parametrize(("name", "here"), TABLES_HERE.items())
def test_names_of_tables_lead_to_those_here(rows: Collection, name: str, here: str) -> None:
    with pytest.raises(AttributeError, match=f"a collection has no attribute `{name}`: write `{here}`"):
        getattr(rows, name)
    assert hasattr(rows, here)


def test_other_names_are_no_attributes(rows: Collection) -> None:
    with pytest.raises(AttributeError, match="a collection has no attribute `cont`"):
        rows.cont  # noqa: B018
    assert not hasattr(rows, "__arrow_c_stream__")
    assert getattr(rows, "neg", None) is None


def test_what_makes_a_collection_says_how(rows: Collection) -> None:
    arranged, proposals = rows.arrange_by_key("x"), rows.propose()
    with pytest.raises(AttributeError, match=r"an arrangement has no attribute `join`: write `arrangement\.collection\.join`"):
        arranged.join  # noqa: B018
    with pytest.raises(AttributeError, match=r"proposals have no attribute `map`: write `proposals\.collect\(\)\.map`"):
        proposals.map  # noqa: B018
    for each in (arranged, proposals):
        with pytest.raises(AttributeError, match=r"no attribute `cont`$"):
            each.cont  # noqa: B018
        assert not hasattr(each, "_changed")


def _twice(x: int) -> int:
    return 2 * x


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (col("x") + 1, "col('x') + 1"),
        (~(col("x") * (col("y") - 2) >= lit("a")), "((col('x') * (col('y') - 2)) >= 'a') != True"),
        ((col("x") + 1).alias("z"), "(col('x') + 1).alias('z')"),
        (lit(3), "lit(3)"),
        (apply(_twice, "x"), "apply(_twice, col('x'))"),
        (col("x") < now(), "col('x') < now()"),
        (moving.sum("x"), "moving.sum(col('x'))"),
        (semigroup.max("x"), "semigroup.max(col('x'))"),
        (linear.map("x").filter(col("x") > 1), "linear.map(...).filter(...)"),
        (linear, "linear"),
    ],
)
def test_expressions_are_shown_as_they_are_written(shown: object, text: str) -> None:
    assert repr(shown) == text


def test_parts_of_a_dataflow_are_shown_in_a_line() -> None:
    flow = Dataflow()
    numbers = flow.input(x=int)
    probe = numbers.probe()
    assert repr(flow) == "dlog.dataflow.Dataflow, round 0, 1 operators"
    assert repr(flow.scope) == "dlog.dataflow.Scope, the root"
    assert repr(flow.scope.loop()) == "dlog.dataflow.Scope, a loop"
    assert repr(flow.scope.altneu()) == "dlog.dataflow.Scope, alt/neu"
    assert repr(numbers.propose()) == "dlog.dataflow.Proposals (x: int)"
    flow.commit()
    assert repr(probe) == "dlog.dataflow.Probe, frontier {(1)}"
    assert repr(flow).startswith("dlog.dataflow.Dataflow, round 1, ")


GETS = "the function of `{}` gets {}, but it takes {}"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.flat_map(lambda x: [], z=int), GETS.format("flat_map", "the columns x, y", "\\(x\\)")),
        (lambda c: c.map("x").flat_map(lambda: iter(()), z=int), GETS.format("flat_map", "the column x", "\\(\\)")),
        (lambda c: c.flat_map(partial(lambda a, b: [], 1), z=int), GETS.format("flat_map", "the columns x, y", "\\(b\\)")),
        (lambda c: c.flat_map(lambda x, y, *, z: [], z=int), GETS.format("flat_map", "the columns x, y", "\\(x, y, \\*, z\\)")),
        (lambda c: c.join_function(lambda x: [], z=int), GETS.format("join_function", "the columns x, y", "\\(x\\)")),
        (lambda c: c.map_batches(lambda x, y: {}, z=int), GETS.format("map_batches", "a dict of columns", "\\(x, y\\)")),
        (lambda c: c.flat_map_batches(lambda x, y: {}, z=int), GETS.format("flat_map_batches", "a dict of .*", "\\(x, y\\)")),
        (lambda c: c.delay(lambda: 1), GETS.format("delay", "a time", "\\(\\)")),
        (lambda c: c.scan("x", lambda s: s, "y", z=0), GETS.format("scan", "the state and the arguments, z, y", "\\(s\\)")),
        (lambda c: c.inspect(lambda row: None), GETS.format("inspect", "a row, a time and a diff", "\\(row\\)")),
        (lambda c: c.arrange_by_self().inspect_batches(lambda: None), GETS.format("inspect_batches", "a batch", "\\(\\)")),
        (lambda c: c.threshold(lambda: 1), GETS.format("threshold", "an array of counts", "\\(\\)")),
        (lambda c: c.reduce("x", lambda rows: [], z=int), GETS.format("reduce", "the key, the list of .*", "\\(rows\\)")),
        (lambda c: c.reduce_batches("x", lambda a, b: [], z=int), GETS.format("reduce_batches", "the col.*", "\\(a, b\\)")),
        (lambda c: c.iterate(lambda: c), GETS.format("iterate", "a collection", "\\(\\)")),
    ],
)
def test_functions_of_other_arguments_are_told_when_they_are_given(rows: Collection, wrong: Wrong, message: str) -> None:
    with pytest.raises(DlogError, match=message):
        wrong(rows)


def test_functions_that_can_be_called_are_taken() -> None:
    @lru_cache
    def twice(x: int, more: int = 1) -> list[tuple[int]]:
        return [(x,), (x + more,)]

    class Shown:
        def __init__(self) -> None:
            self.rows: list[Any] = []

        def show(self, *update: Any) -> None:
            self.rows.append(update[0])

    flow, shown = Dataflow(), Shown()
    numbers = flow.input(x=int)
    numbers.flat_map(twice, x=int).threshold(np.sign).inspect(shown.show)
    numbers.flat_map(range, x=int).capture()
    numbers.insert([1])
    flow.commit()
    assert sorted(shown.rows) == [(1,), (2,)]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("function", [lambda n: 1 if n > 0 else 0, lambda n: len(range(n))])
def test_a_threshold_of_one_count_is_told_that_it_gets_an_array(count: int, function: Any) -> None:
    flow = Dataflow()
    numbers = flow.input(x=int)
    numbers.threshold(function).capture()
    numbers.insert(range(count))
    with pytest.raises(DlogError, match=r'gets an array of counts: write `threshold\(col\("count"\) > 0\)`, or `np.where'):
        flow.commit()


@pytest.mark.parametrize("error", [ValueError, TypeError, KeyError])
def test_what_a_threshold_of_arrays_raises_is_its_own(error: type[Exception]) -> None:
    def fail(counts: np.ndarray) -> None:
        raise error("mine")

    flow = Dataflow()
    numbers = flow.input(x=int)
    numbers.threshold(fail).capture()
    numbers.insert([1, 2])
    with pytest.raises(error, match="mine"):
        flow.commit()


def _first(rows: list[tuple[int, int, float]], order: tuple[str, ...], flags: list[bool], count: int) -> dict[Any, int]:
    """The first rows, sorted by the last column of the order first: sorting keeps the order of equal rows."""
    found = sorted(rows)
    for name, descending in zip(order[::-1], flags[::-1], strict=True):
        found.sort(key=lambda row, name=name: row["xyz".index(name)], reverse=descending)  # type: ignore[misc]
    kept = found[:count]
    return {row: kept.count(row) for row in kept}


ROWS = st.tuples(st.integers(-2, 2), st.integers(0, 2), st.sampled_from([-1.5, 0.0, 2.0]))
ORDERS = st.permutations("xyz").flatmap(lambda names: st.integers(1, 3).map(lambda size: tuple(names[:size])))


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, max_size=12), st.data(), ORDERS, st.lists(st.booleans(), min_size=3, max_size=3), st.integers(1, 4))
def test_each_column_of_an_order_has_a_direction_of_its_own(
    rows: list[tuple[int, int, float]], data: st.DataObject, order: tuple[str, ...], flags: list[bool], count: int
) -> None:
    flow, flags = Dataflow(), flags[: len(order)]
    numbers = flow.input("rows", x=int, y=int, z=float)
    top = numbers.top_k(count, order, descending=flags).capture()
    kept = numbers.top_k(count, order, descending=tuple(flags), insert_only=True).capture()
    numbers.insert(rows)
    flow.commit()
    assert top.counts() == kept.counts() == _first(rows, order, flags, count)


@settings(max_examples=20, deadline=None)
@given(st.lists(ROWS, max_size=12), st.lists(st.integers(0, 11), max_size=6), st.lists(st.booleans(), min_size=2, max_size=2))
def test_directions_stay_when_rows_go(rows: list[tuple[int, int, float]], places: list[int], flags: list[bool]) -> None:
    flow = Dataflow()
    numbers = flow.input(x=int, y=int, z=float)
    top = numbers.top_k(2, ["x", "z"], descending=flags).capture()
    numbers.insert(rows)
    flow.commit()
    gone = {place for place in places if place < len(rows)}
    numbers.remove([rows[place] for place in gone])
    flow.commit()
    left = [row for place, row in enumerate(rows) if place not in gone]
    assert top.counts() == _first(left, ("x", "z"), flags, 2)


def test_rules_have_the_directions_of_an_order() -> None:
    flow = Dataflow()
    numbers = flow.input("rows", x=int, y=int)
    session = dlog.rules(first=numbers.top_k(2, ["x", "y"], descending=[True, False]), sets=["rows"]).session()
    session.insert("rows", [(1, 1), (2, 5), (2, 3), (2, 4)])
    session.commit()
    assert sorted(session["first"]) == [(2, 3), (2, 4)]
