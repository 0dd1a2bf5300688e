"""Arrangements: shared within a dataflow, by its loops, and by other dataflows."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import Dataflow, col, lit
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples


def test_0_5_readers_by_the_same_key_share_one_index() -> None:
    flow = Dataflow()
    edges, nodes = flow.input(src=int, dst=int), flow.input(node=int)
    by_source = edges.arrange_by_key("src")
    edges.join(edges, on="src").capture()
    edges.min("dst", by="src").capture()
    nodes.map("node", at=lit(0)).iterate(
        lambda inner: (
            inner.join_map(edges.enter(inner.scope), on={"node": "src"}, node="dst", at=col("at"))
            .concat(nodes.map("node", at=lit(0)).enter(inner.scope))
            .distinct()
        )
    ).capture()
    assert by_source.readers == 3
    edges.insert([(1, 2), (2, 3)])
    nodes.insert([1])
    flow.commit()
    assert (by_source.updates, by_source.nbytes) == (2, 2 * 8)


def test_history_that_nobody_tells_apart_is_gone() -> None:
    flow = Dataflow()
    names = flow.input(name=str)
    arranged = names.arrange_by_self()
    names.distinct().capture()
    for round in range(200):
        names.update(["frank"], 1 if round % 2 == 0 else -1, at=round)
        flow.commit()
    assert arranged.updates <= 4


def test_an_import_begins_where_history_has_not_been_compacted() -> None:
    flow = Dataflow()
    names = flow.input(name=int)
    names.join(names, on="name").capture()
    by_name = names.arrange_by_key("name")
    for round in range(200):
        names.insert([round])
        names.remove([round - 1] if round else [])
        flow.commit()
    for rounds in (1, 100, 199):
        other = Dataflow(beside=flow)
        other.import_(by_name).collection.capture()
        with pytest.raises(DlogError, match=f"compacted to round 199: how it was at round {rounds - 1} is lost"):
            other.advance_to(rounds)
    other = Dataflow(beside=flow)
    imported = other.import_(by_name).collection.capture()
    other.advance_to(200)
    assert imported.counts() == {(199,): 1}


def test_an_import_of_what_has_failed_is_refused() -> None:
    flow = Dataflow()
    names = flow.input(name=int)
    by_name = names.arrange_by_key("name")
    names.filter(col("name") == 3).assert_empty()
    other = Dataflow(beside=flow)
    imported = other.import_(by_name).collection.capture()
    names.insert([1])
    flow.commit()
    names.insert([3])
    with pytest.raises(DlogError, match="is there 1 times"):
        flow.commit()
    other.commit()
    assert imported.counts() == {(1,): 1}
    with pytest.raises(DlogError) as error:
        other.commit()
    assert error.value.diagnostics[0].code == "dataflow-failed"


def test_a_dataflow_that_is_gone_does_not_hold_history_back() -> None:
    flow = Dataflow()
    names = flow.input(name=int)
    names.join(names, on="name").capture()
    by_name = names.arrange_by_key("name")
    other = Dataflow(beside=flow)
    other.import_(by_name).collection.capture()
    del other
    gc.collect()
    for round in range(200):
        names.insert([round])
        names.remove([round - 1] if round else [])
        flow.commit()
    assert by_name.updates <= 4


def test_1_8_operators_without_state_are_no_operators() -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    made = rows.map(y=col("x") + 1).filter(col("y") > 2).negate().concat(rows.map(y="x")).generate_series(1, "y")
    made.capture()
    assert len(flow.operators) == 2
    assert flow.explain() == (
        "1 Source -> (map, filter, negate, generate_series) 2, (map, generate_series) 2\n"
        "2 Capture\n"
    )  # fmt: skip


changes = st.lists(st.tuples(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(0, 9), st.sampled_from([1, 1, -1])))


@examples(40)
@given(changes, st.integers(1, 5), st.integers(1, 4))
def test_2_5_another_dataflow_imports_an_index_and_follows_behind(changed: list, step: int, other_step: int) -> None:
    flow = Dataflow()
    edges = flow.input(src=int, dst=int)
    by_source = edges.arrange_by_key("src")
    truth = edges.count(by="src").capture(history=True)
    pairs = edges.join(edges, on="src").capture(history=True)
    for each, round, diff in changed:
        edges.update([each], diff, at=round)
    other = Dataflow(beside=flow)
    imported = other.import_(by_source)
    counted = imported.collection.map("src").count().capture(history=True)
    joined = imported.collection.join(imported.collection, on="src").capture(history=True)
    while flow.round < 10:
        flow.advance_to(min(flow.round + step, 10))
        while other.round + other_step <= flow.round:
            other.advance_to(other.round + other_step)
    for round in range(other.round):
        assert counted.counts(round) == truth.counts(round)
        assert joined.counts(round) == pairs.counts(round)
    assert imported.arranged.source.trace is by_source.arranged.source.trace


def test_an_imported_index_begins_with_all_there_is() -> None:
    flow = Dataflow()
    names = flow.input(name=str)
    by_self = names.arrange_by_self()
    for round, name in enumerate(["frank", "david", "frank"]):
        names.insert([name], at=round)
    flow.advance_to(5)
    other = Dataflow(beside=flow)
    counts = other.import_(by_self).collection.count().capture()
    with pytest.raises(DlogError, match="has come to round 5"):
        other.advance_to(6)
    late = Dataflow(beside=flow)
    counts = late.import_(by_self).collection.count().capture()
    late.advance_to(5)
    assert counts.counts() == {("frank", 2): 1, ("david", 1): 1}
    with pytest.raises(DlogError, match="cannot be imported here"):
        Dataflow().import_(by_self)
