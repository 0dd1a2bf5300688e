"""Rows of the list in docs/dataflow.md that no other test holds; and the page itself: its examples print what they say, its
links lead to tests."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog.dataflow
from dlog.dataflow import Collection, Dataflow, Input
from dlog.engine.operators.calendar import Calendar
from dlog.engine.operators.delta import Delta
from dlog.engine.operators.reduce import Reduce, ReduceTotal
from tests.conftest import ROOT
from tests.dlog.dataflow.built import Built
from tests.dlog.dataflow.terms import BINARY, LOOPED, UNARY, Term, row
from tests.dlog.dataflow.test_calculus import half_joined
from tests.examples import examples

PAGE = (ROOT / "docs" / "dataflow.md").read_text(encoding="utf-8")
LINEAR = (
    "map", "swap", "filter", "flat_map", "explode", "negate", "consolidate", "join_function", "temporal", "series", "repeat",
)  # fmt: skip
changes = st.lists(st.tuples(row, st.integers(0, 3), st.sampled_from([1, 1, -1])), max_size=8)


@pytest.mark.parametrize(
    "program", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL), ids=lambda text: text.split("\n")[0][:40]
)
def test_the_examples_print_what_their_comments_say(program: str) -> None:
    names: dict = {}
    exec("from dlog.dataflow import Dataflow, col, lit, linear", names)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(program, "docs/dataflow.md", "exec"), names)
    assert printed.getvalue().splitlines() == re.findall(r"^ *print\(.*\)  # (.*)", program, re.MULTILINE)


def test_every_row_of_the_list_links_to_tests_of_which_the_first_has_its_number() -> None:
    rows = re.findall(r"^\| (\d\.\w+) \|.*\| (.*) \| (.*) \|$", PAGE, re.MULTILINE)
    numbers = [number for number, _, _ in rows if number != "1.S"]
    expected = [f"{seed}.{k}" for seed, last in enumerate((18, 13, 20, 8, 5)) for k in range(1, last + 1)]
    assert numbers == expected and len(rows) > len(numbers)
    first: list[str] = []
    for number, here, tests in rows:
        links = re.findall(r"\[`(\w+)`\]\(\.\./([\w/.]+)\)", tests)
        if number == "1.S" and here.startswith("not there"):
            assert tests == "none", here
            continue
        assert links and links[0][0].startswith(f"test_{number.replace('.', '_').lower()}_"), number
        first.append(links[0][0])
        for name, path in links:
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), (number, name)
    assert len(set(first)) == len(first)


OTHERWISE = {
    "count_u", "count_total", "count_total_u", "count_total_core", "group", "group_arranged", "arrange", "DefaultKeyTrace",
    "UnsignedWrapper", "Arranged", "stream", "trace", "TraceReader", "advance_by", "distinguish_since", "do_work",
    "advance", "frontier", "since", "Layer", "LayerMerge", "Merge", "Description", "Cache", "BatchReader", "cursor",
    "cursor_through", "seek_key", "key_valid", "key", "step_key", "map_times", "new_collection_from", "scope", "scoped",
    "Child", "AltNeu::alt", "AltNeu::neu", "less_equal", "join", "meet", "delay", "neu", "Differentiate", "Integrate",
    "dogsdogsdogs", "neg", "Abelian", "Diff", "Semigroup", "Multiply", "inner", "as_collection", "flat_map", "unary_stream",
    "Map", "Filter", "Project", "TAIL", "SUBSCRIBE",
}  # fmt: skip
"""Names of the documents that are no methods of collections here, or others."""


def test_all_names_of_the_documents_are_told_and_lead_to_names_of_the_api() -> None:
    page = (ROOT / "docs" / "coming-from" / "differential-dataflow.md").read_text(encoding="utf-8")
    table = page[page.index("## Names") :]
    told = re.findall(r"^\| (.*) \| (.*) \|$", table, re.MULTILINE)[1:]
    there = {name for row, _ in told for name in re.findall(r"`([\w:]+)", row)}
    assert there >= OTHERWISE
    rows = Dataflow().input(x=int)
    public = {name for each in dlog.dataflow.__all__ for name in (each, *dir(getattr(dlog.dataflow, each)))}
    public |= {*dir(rows), *dir(rows.propose()), "lower", "upper"}
    here = {name for _, row in told for name in re.findall(r"`([A-Za-z_.]+)(?:\(.*?\))?`", row)}
    assert {part for name in here for part in name.split(".")} <= public


def test_0_2_operators_without_state_hold_nothing() -> None:
    flow = Dataflow()
    rows = flow.input(a=int, b=int)
    built = Built(flow, [rows, rows])
    leaf = Term("input", 0)
    for name in LINEAR:
        built.of(Term(name, 0, (leaf,), 1), flow.scope).inspect(lambda *update: None)
    rows.insert([(a, b) for a in range(4) for b in range(4)])
    flow.commit()
    assert flow.updates == 0


def test_0_15_a_delta_query_holds_no_more_for_changes_that_pass() -> None:
    flow = Dataflow()
    edges = flow.input(src=int, dst=int)
    half_joined(edges).inspect(lambda *update: None)
    edges.insert([(0, x) for x in range(1, 50)])
    flow.commit()
    before = flow.updates
    for x in range(1, 49):
        edges.insert([(x, x + 1)])
        edges.remove([(x, x + 1)], at=flow.round + 1)
        flow.advance_to(flow.round + 2)
    assert flow.updates < before + 100  # 480 have come; some small batches wait to be merged


@pytest.mark.parametrize("name", LINEAR)
@examples(20)
@given(changes, changes)
def test_1_1_what_a_linear_operator_makes_of_a_sum_is_the_sum_of_what_it_makes(name: str, left: list, right: list) -> None:
    flow = Dataflow()
    x, y = flow.input(a=int, b=int), flow.input(a=int, b=int)
    built, term = Built(flow, []), Term(name, 0, (), 2)

    def made(rows: Collection) -> Collection:
        found = getattr(built, f"_{name}")(term, rows)
        assert isinstance(found, Collection)
        return found

    made(x.concat(y)).assert_eq(made(x).concat(made(y)))
    _put(x, left)
    _put(y, right)
    flow.advance_to(5)


def _put(rows: Input, changed: list) -> None:
    for each, round, diff in changed:
        rows.update([each], diff, at=round)


@examples(20)
@given(changes)
def test_1_4_join_function_is_a_join_with_all_that_its_function_gives(changed: list) -> None:
    def function(a: int, b: int) -> list:
        return [((a + b,), b, 2), ((a,), a + b, -a)]

    flow = Dataflow()
    rows, large = flow.input(a=int, b=int), flow.input(a=int, b=int, value=int)
    rows.join_function(function, value=int).assert_eq(rows.join(large).map("value"))
    for a in range(4):
        for b in range(4):
            for (value,), time, diff in function(a, b):
                large.update([(a, b, value)], diff, at=time)
    _put(rows, changed)
    flow.advance_to(8)


def test_1_3_advancing_the_clock_costs_what_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand intervals wait; a round touches those that begin or end in it."""
    flow = Dataflow()
    intervals = flow.input(start=int, end=int)
    shown: list[int] = []
    intervals.temporal("start", "end").inspect(lambda row, time, diff: shown.append(diff))
    starts = list(range(1, 100_001))
    intervals.insert({"start": starts, "end": [start + 10 for start in starts]})
    flow.commit()
    touched: list[int] = []
    taken = Calendar.take

    def tally(calendar: Calendar, high: int) -> list[tuple[int, Delta]]:
        found = taken(calendar, high)
        touched.append(sum(delta.rows for _, delta in found))
        return found

    flow.commit()
    before = flow.statistics()
    monkeypatch.setattr(Calendar, "take", tally)
    for moves in ("only", "in_order_of_rounds"):  # nothing that waits is looked at, or put in order, again
        monkeypatch.setattr(Delta, moves, lambda *_: pytest.fail("what waits is looked at"))
    for _ in range(20):
        flow.commit()
    monkeypatch.undo()
    assert (shown.count(1), shown.count(-1)) == (21, 11)
    assert [new.received - old.received for old, new in zip(before, flow.statistics(), strict=True)] == [0, 20 + 11]
    assert sum(touched) == 20 + 11
    assert len(intervals.terms[0].source.edges) == 1


@examples(20)
@given(changes, st.integers(1, 4))
def test_2_17_updates_do_not_depend_on_batches(changed: list, step: int) -> None:
    found = []
    for length in (1, step, 4):
        flow = Dataflow()
        rows = flow.input(a=int, b=int)
        made = rows.join(rows, on="a").max("b_right", by="b").capture(history=True)
        _put(rows, changed)
        while flow.round < 4:
            flow.advance_to(min(4, flow.round + length))
        found.append(made.updates())
    assert found[0] == found[1] == found[2]


@examples(30)
@given(changes)
def test_3_3_the_operator_for_total_orders_gives_what_the_general_one_gives(changed: list) -> None:
    flow = Dataflow()
    rows = flow.input(a=int, b=int)
    total = rows.count(by="a")
    general = rows.enter(flow.scope.loop()).count(by="a").leave()
    total.assert_eq(general)
    assert {type(o) for o in flow.operators} >= {Reduce, ReduceTotal}
    _put(rows, changed)
    flow.advance_to(2)
    flow.advance_to(5)


def test_the_laws_draw_from_all_operators() -> None:
    public = {name for name in dir(Built) if name.startswith("_") and not name.startswith("__")}
    assert {f"_{name}" for name in (*UNARY, *BINARY)} <= public
    assert LOOPED == ("enter_at", "delay_iteration")
    assert Path(__file__).with_name("naive.py").exists()
