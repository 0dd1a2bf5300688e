"""Readers of arrangements from outside: what they hold back, what they read, and what they refuse."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import AltNeu, Batch, Cursor, Dataflow, Input, TraceReader, col
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

change = st.tuples(st.sampled_from(["ann", "bob", "cid"]), st.integers(0, 9), st.sampled_from([1, 1, -1]))
changes = st.lists(change, max_size=20)


def _put(rows: Input, changed: list) -> None:
    for name, round, diff in changed:
        rows.update([name], diff, at=round)


@examples(40)
@given(changes, st.lists(st.integers(1, 4), min_size=1))
def test_3_4_count_total_by_a_trace_and_its_batches(changed: list, steps: list[int]) -> None:
    """The operator as it was published, of a cursor through what was before each batch."""
    flow = Dataflow()
    names = flow.input(name=str)
    arranged = names.arrange_by_self()
    trace = arranged.trace()
    made: list[tuple] = []

    def count_total(batch: Batch) -> None:
        before = trace.cursor_through(batch.lower)
        for key, updates in batch.cursor():
            count = sum(diff for _, _, diff in before.seek_key(key))
            for _, time, diff in updates:
                if count:
                    made.append(((*key, count), time, -1))
                count += diff
                if count:
                    made.append(((*key, count), time, 1))
        trace.set_logical_compaction(batch.upper)
        trace.set_physical_compaction(batch.upper)

    arranged.inspect_batches(count_total)
    counted = names.count().capture(history=True)
    _put(names, changed)
    for step in [*steps, 10]:
        flow.advance_to(flow.round + step)
    assert sorted(made) == sorted(counted.updates())


@examples(40)
@given(changes, st.lists(st.integers(1, 3), min_size=1, max_size=5), st.integers(0, 9), st.data())
def test_a_reader_that_stays_has_all_times_and_batches(changed: list, steps: list[int], hold: int, data: Any) -> None:
    flow = Dataflow()
    names = flow.input(name=str)
    arranged = names.arrange_by_key("name")
    trace, other = arranged.trace(), arranged.trace()
    _put(names, changed)
    ends = [0]
    for step in [*steps, 10]:
        flow.advance_to(flow.round + step)
        ends.append(flow.round)
        other.set_logical_compaction(flow.round)
        other.set_physical_compaction(flow.round)
        trace.exert()
    for end in ends:
        cursor = trace.cursor_through(end)
        assert cursor.counts() == _counts(changed, end - 1)
        if end:
            assert cursor.counts(end - 1) == cursor.counts()
    assert trace.cursor().counts(hold) == _counts(changed, hold)
    trace.set_logical_compaction(hold)
    trace.set_physical_compaction(flow.round)
    while trace.exert():
        pass
    assert trace.cursor().counts(hold) == _counts(changed, hold)
    earlier = data.draw(st.integers(0, hold))
    if earlier < hold:
        with pytest.raises(DlogError, match="can no longer be read"):
            trace.cursor().counts(earlier)
    trace.drop()
    while other.exert():
        pass
    assert arranged.updates <= len(_counts(changed, 9))


def _counts(changed: list, round: int) -> dict:
    found: Counter = Counter()
    for name, at, diff in changed:
        if at <= round:
            found[name,] += diff
    return {row: diff for row, diff in found.items() if diff}


def test_cursors_stay_as_they_are() -> None:
    flow = Dataflow()
    edges = flow.input(dst=int, src=str)
    arranged = edges.arrange_by_key("src")
    trace = arranged.trace()
    edges.insert([(1, "a"), (2, "a"), (1, "b")])
    flow.commit()
    cursor = trace.cursor()
    edges.remove([(1, "a")])
    flow.advance_to(7)
    assert cursor.updates() == [(("a", 1), 0, 1), (("a", 2), 0, 1), (("b", 1), 0, 1)]
    assert cursor.seek_key("a") == cursor.seek_key(("a",)) == [(("a", 1), 0, 1), (("a", 2), 0, 1)]
    assert trace.cursor().seek_key("a") == [(("a", 1), 0, 1), (("a", 1), 1, -1), (("a", 2), 0, 1)]
    assert cursor.seek_key("c") == []
    assert [key for key, _ in cursor] == [("a",), ("b",)]
    assert trace.upper.elements == ((7,),)
    trace.drop()
    assert cursor.counts() == {("a", 1): 1, ("a", 2): 1, ("b", 1): 1}


def test_a_reader_that_is_gone_holds_nothing_back() -> None:
    flow = Dataflow()
    names = flow.input(name=str)
    arranged = names.arrange_by_self()
    held, gone = arranged.trace(), arranged.trace()
    for _ in range(3):
        for diff in (1, -1):
            names.update(["frank"], diff)
            flow.commit()
        held.set_logical_compaction(flow.round)
        held.set_physical_compaction(flow.round)
        while held.exert():
            pass
    assert arranged.updates == 6
    del gone
    gc.collect()
    names.insert(["david"])
    flow.commit()
    held.set_physical_compaction(flow.round)
    while held.exert():
        pass
    assert arranged.updates == 1


def test_what_a_trace_has_given_up_is_refused() -> None:
    flow = Dataflow()
    names = flow.input(name=str)
    trace = names.arrange_by_self().trace()
    for round in range(6):
        names.insert(["frank"], at=round)
        flow.commit()
    trace.set_logical_compaction(3)
    trace.set_physical_compaction(4)
    assert trace.cursor_through(4).updates()[-1] == (("frank",), 3, 1)
    for action, message in [
        (lambda: trace.cursor_through(2), r"batches that end at \{\(2\)\} are no longer kept apart"),
        (lambda: trace.set_physical_compaction(2), r"batches that end at \{\(2\)\} are no longer kept apart"),
        (lambda: trace.set_logical_compaction(2), r"times from \{\(2\)\} on are no longer kept apart"),
        (lambda: trace.cursor_through(7), r"times before \{\(7\)\} are not complete yet"),
        (lambda: trace.cursor().counts(6), r"time \(6\) is not complete yet"),
        (lambda: trace.cursor_through("now"), "is no time of 1 coordinates here"),
        (lambda: trace.exert(0), "`fuel` must be a whole number, 1 or more"),
    ]:
        while trace.exert():
            pass
        with pytest.raises(DlogError, match=message):
            action()
    with trace:
        pass
    for action in (trace.cursor, lambda: trace.set_logical_compaction(9), lambda: trace.physical_compaction):
        with pytest.raises(DlogError, match="the trace has been dropped"):
            action()
    assert "dropped" in repr(trace)


def test_readers_of_loops_and_scopes_have_their_times() -> None:
    flow = Dataflow()
    nodes, edges = flow.input(node=int), flow.input(src=int, dst=int)
    traces: list[TraceReader] = []
    batches: list[str] = []

    def step(inner: Any) -> Any:
        by_node = inner.arrange_by_key("node").inspect_batches(lambda batch: batches.append(repr(batch)))
        by_source = edges.enter(inner.scope).arrange_by_key("src")
        traces.extend([by_node.trace(), by_source.trace()])
        return inner.join_map(by_source.collection, on={"node": "src"}, node="dst").concat(inner).distinct()

    reached = nodes.iterate(step).capture()
    changes = nodes.differentiate(flow.scope.altneu()).arrange_by_self().trace()
    nodes.insert([1])
    edges.insert([(1, 2), (2, 3)])
    flow.commit()
    assert reached.counts() == {(1,): 1, (2,): 1, (3,): 1}
    assert traces[0].cursor().updates() == [((1,), (0, 0), 1), ((2,), (0, 1), 1), ((3,), (0, 2), 1)]
    assert traces[0].cursor().counts((0, 1)) == {(1,): 1, (2,): 1}
    assert traces[1].cursor().updates() == [((1, 2), 0, 1), ((2, 3), 0, 1)]
    assert batches[0] == "dlog.dataflow.Batch [{(0, 0)}, {(0, 1), (1, 0)}), 1 updates"
    assert changes.cursor().updates() == [((1,), AltNeu((0,)), 1), ((1,), AltNeu((0,), True), -1)]
    assert changes.cursor_through(AltNeu((1,))).counts() == {}


def test_a_trace_of_an_import_is_that_of_the_other_dataflow() -> None:
    flow = Dataflow()
    names = flow.input(name=str)
    by_self = names.arrange_by_self()
    names.insert(["frank"])
    flow.advance_to(3)
    other = Dataflow(beside=flow)
    imported = other.import_(by_self)
    trace = imported.trace()
    other.advance_to(3)
    assert trace.cursor().counts() == {("frank",): 1}
    assert isinstance(trace.cursor(), Cursor)


def test_diffs_of_several_components_are_tuples() -> None:
    flow = Dataflow()
    lines = flow.input(flag=str, quantity=int)
    arranged = lines.explode("flag", diff=(1, col("quantity"))).arrange_by_self()
    trace = arranged.trace()
    lines.insert([("A", 2), ("A", 5)])
    flow.commit()
    assert trace.cursor().updates() == [(("A",), 0, (2, 7))]
    with pytest.raises(DlogError, match="`counts` needs diffs that are integers"):
        trace.cursor().counts()


def test_batches_are_inspected_from_the_beginning() -> None:
    flow = Dataflow()
    arranged = flow.input(x=int).arrange_by_self()
    flow.commit()
    with pytest.raises(DlogError, match="rounds have been done"):
        arranged.inspect_batches(print)


@pytest.mark.parametrize("parts", [1, 7, 300])
def test_a_load_that_has_gone_leaves_no_history(parts: int) -> None:
    """However it goes: in one round or in many; a few rounds later there is about what there would be without it."""
    flow = Dataflow()
    numbers = flow.input(x=int)
    index = numbers.arrange_by_self()
    loaded = np.arange(100_000)
    numbers.insert({"x": loaded})
    flow.commit()
    for part in np.array_split(loaded, parts):
        numbers.remove({"x": part})
        flow.commit()
    for x in range(20):
        numbers.insert([x])
        flow.commit()
    assert index.updates < 10_000
