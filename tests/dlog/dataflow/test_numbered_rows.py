"""Further rows of the list in docs/dataflow.md, each test by the number of its row: what is counted, not what is timed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.dataflow import Collection, Dataflow, col, linear
from dlog.engine.operators.arrange import Arrange
from dlog.engine.operators.reduce import Reduce, ReduceTotal
from tests.dlog.dataflow.algorithms import distances
from tests.dlog.dataflow.test_calculus import extended, half_joined
from tests.examples import examples

iteration, round_ = st.integers(0, 2), st.integers(0, 3)
row = st.tuples(st.integers(0, 2), st.integers(0, 2))
timed = st.lists(st.tuples(row, round_, iteration, st.sampled_from([1, 1, 2, -1])), max_size=8)
TIMES = list(itertools.product(range(4), range(3)))


def bytes_held(flow: Dataflow) -> int:
    return sum(trace.spine.nbytes for operator in flow.operators for trace in operator.traces)


def random_edges(nodes: int, edges: int) -> np.ndarray:
    return np.unique(np.random.default_rng(nodes).integers(0, nodes, (edges, 2)), axis=0)


def test_0_5_more_readers_of_an_index_take_no_more_bytes() -> None:
    held = []
    for readers in (1, 2, 8):
        flow = Dataflow()
        edges = flow.input(src=int, dst=int)
        by_source = edges.arrange_by_key("src")
        for _ in range(readers):
            edges.join(edges, on="src").inspect(lambda *update: None)
        edges.insert(random_edges(100, 1000))
        flow.commit()
        assert by_source.readers == readers
        assert bytes_held(flow) == by_source.nbytes
        held.append(by_source.nbytes)
    assert held[0] == held[1] == held[2] > 0


@examples(30)
@given(timed)
def test_0_6_entering_and_leaving_is_the_identity(changed: list) -> None:
    """And who leaves a loop has the sums over its iterations."""
    flow = Dataflow()
    rows = flow.input(a=int, b=int, i=int)
    plain = rows.map("a", "b")
    kept, back = plain.capture(history=True), plain.enter(flow.scope.loop()).leave().capture(history=True)
    spread = rows.enter_at(flow.scope.loop(), "i").map("a", "b").leave().capture(history=True)
    for (a, b), round, i, diff in changed:
        rows.update([(a, b, i)], diff, at=round)
    flow.advance_to(4)
    assert kept.updates() == back.updates() == spread.updates()


@pytest.mark.parametrize("query", [half_joined, extended])
def test_0_15_no_more_passes_than_a_few_times_what_changes(query: Callable[[Collection], Collection]) -> None:
    flow = Dataflow()
    edges = flow.input(src=int, dst=int)
    query(edges).inspect(lambda *update: None)
    edges.insert([(0, x) for x in range(1, 500)])
    flow.commit()
    passed = [sum(each.received + each.emitted for each in flow.statistics())]
    for x in range(1, 100):
        edges.insert([(x, x + 1)])
        edges.remove([(x, x + 1)], at=flow.round + 1)
        flow.advance_to(flow.round + 2)
        passed.append(sum(each.received + each.emitted for each in flow.statistics()))
    assert np.diff(passed).max() <= 40 * 2  # an edge comes and goes


def test_1_3_a_row_that_goes_early_takes_its_end_along() -> None:
    flow = Dataflow()
    rows = flow.input(start=int, end=int)
    shown = rows.temporal("start", "end").capture(history=True)
    rows.insert([(1, 5), (3, 6), (2, 4), (4, 4), (5, 2)], at=0)
    rows.remove([(3, 6)], at=2)  # before it begins
    rows.remove([(1, 5)], at=3)  # before it ends
    flow.advance_to(8)
    assert shown.updates() == [((1, 5), 1, 1), ((1, 5), 3, -1), ((2, 4), 2, 1), ((2, 4), 4, -1)]


STEPS = {
    "map": linear.map("b", a=(col("a") + col("b")) % 3),
    "filter": linear.filter(col("a") != 1),
    "negate": linear.negate(),
    "series": linear.generate_series("a", "b", "k").map("b", a="k"),
    "repeat": linear.repeat_row(col("a") - 1),
    "explode": linear.explode("a", b=(col("b") + 1) % 3, diff=col("b") - col("a")),
    "function": linear.join_function(lambda a, b: [((b, a), a, 2), ((a, a), b, -1)], a=int, b=int),
    "temporal": linear.temporal("a", col("b") + 1),
}


@examples(60)
@given(st.lists(st.sampled_from(list(STEPS)), min_size=2, max_size=4), timed)
def test_1_7_following_is_one_after_the_other(steps: list[str], changed: list) -> None:
    flow = Dataflow()
    rows = flow.input(a=int, b=int)
    one_by_one, together = rows.map("a", "b"), STEPS[steps[0]]
    for step in steps:
        one_by_one = one_by_one.join_function(STEPS[step]).map("a", "b")
    for step in steps[1:]:
        together = together.map("a", "b").followed_by(STEPS[step])
    one_by_one.assert_eq(rows.join_function(together))
    for each, round, _, diff in changed:
        rows.update([each], diff, at=round)
    flow.advance_to(4)
    flow.advance_to(16)


def test_1_8_nothing_without_state_is_left_between_joins() -> None:
    flow = Dataflow()
    one, two, three = (flow.input(k=int, x=int) for _ in range(3))
    pairs = one.filter(col("x") > 0).join(two.map("x", k=col("k") + 1), on="k")
    linked = pairs.map(k="x_right", y=col("x") * 10).filter(col("y") < 30).negate().negate()
    found = linked.join_map(three.rename(z="x"), "y", z=col("z") + 1, on="k").filter(col("z") > 5).capture()
    assert Counter(type(o).__name__ for o in flow.operators) == {"Source": 3, "Arrange": 4, "Join": 2, "Capture": 1}
    assert "Join -> (map, filter, negate, negate) 7\n7 Arrange -> " in flow.explain()
    one.insert([(1, 1), (1, 0), (1, 2), (1, 3)])
    two.insert([(0, 7), (0, 8)])
    three.insert([(7, 5), (8, 4), (7, 9)])
    flow.commit()
    assert found.counts() == {(10, 6): 1, (10, 10): 1, (20, 6): 1, (20, 10): 1}


@examples(50)
@given(timed, timed)
def test_1_5_a_pair_is_there_from_the_join_of_its_times_as_often_as_both(left: list, right: list) -> None:
    flow = Dataflow()
    inputs = [flow.input(k=int, x=int, i=int) for _ in range(2)]
    loop = flow.scope.loop()
    one, other = (each.enter_at(loop, "i").map("k", "x") for each in inputs)
    joined = one.join(other, on="k").capture(history=True)
    for given_rows, changed in zip(inputs, (left, right), strict=True):
        for each, round, i, diff in changed:
            given_rows.update([(*each, i)], diff, at=round)
    flow.advance_to(4)
    expected: Counter = Counter()
    for ((k, x), r, i, d), ((k2, y), r2, i2, d2) in itertools.product(left, right):
        if k == k2:
            expected[(k, x, y), (max(r, r2), max(i, i2))] += d * d2
    found = {(each, time): diff for each, time, diff in joined.updates()}
    assert found == {update: diff for update, diff in expected.items() if diff}


def test_1_9_repeated_and_counted_rows_are_multisets() -> None:
    """What comes of a row is there as often as the row, or as much less than never; a start beyond the end gives nothing."""
    flow = Dataflow()
    rows = flow.input(name=str, start=int, n=int)
    series, repeated, less = (
        rows.generate_series("start", "n", "k").map("name", "k").capture(),
        rows.repeat_row("n").map("name").capture(),
        rows.repeat_row(-2).map("name").capture(),
    )
    rows.update([("a", 1, 2), ("b", 2, 1), ("c", -2, -1), ("d", 2, 2)], [2, 1, -1, 3])
    flow.commit()
    assert series.counts() == {("a", 1): 2, ("a", 2): 2, ("c", -2): -1, ("c", -1): -1, ("d", 2): 3}
    assert repeated.counts() == {("a",): 4, ("b",): 1, ("c",): 1, ("d",): 6}
    assert less.counts() == {("a",): -4, ("b",): -2, ("c",): 2, ("d",): -6}
    rows.insert([("c", -2, -1)])
    rows.insert([("d", 2, -6)])
    flow.commit()
    assert repeated.counts() == {("a",): 4, ("b",): 1}


def test_2_2_a_round_costs_after_many_what_it_cost_at_first() -> None:
    """Breadth-first search while edges go and come back, over and over: how many updates operators take in a round, how many
    layers they look through, and how many updates they hold, are distributed at last as at first."""
    flow, rows, toggled = Dataflow(), random_edges(20, 60), 20
    roots, edges = flow.input(node=int), flow.input(src=int, dst=int)
    distances(roots, edges).inspect(lambda *update: None)
    roots.insert([0])
    edges.insert(rows)
    flow.commit()
    figures, before = [], 0
    for _ in range(9):
        for at, diff in itertools.product(range(toggled), (-1, 1)):
            edges.update(rows[at : at + 1], diff)
            flow.commit()
            received = sum(each.received for each in flow.statistics())
            batches = [b for operator in flow.operators for trace in operator.traces for b in trace.spine.batches]
            figures.append((received - before, sum(len(batch.layers) for batch in batches), flow.updates))
            before = received
    window = 4 * 2 * toggled
    first, last = (np.percentile(figures[at : at + window], (50, 90, 99), axis=0) for at in (2 * toggled, 2 * toggled + window))
    assert (last <= 1.2 * first).all(), (first, last)


@pytest.mark.parametrize(("nodes", "edges"), [(1000, 10_000), (10_000, 40_000)])
def test_2_4_bytes_of_a_base_that_stays(nodes: int, edges: int) -> None:
    """An index of a dataflow takes 8 bytes an edge, 4 for each end, and 4 a node; a relation of rules that is looked up by its
    first column takes from 4 to 5 an edge, and no more than 20 a node, once it is loaded."""
    rows = random_edges(nodes, edges)
    flow = Dataflow()
    given_edges = flow.input(src=int, dst=int)
    by_source = given_edges.arrange_by_key("src")
    given_edges.insert(rows)
    flow.commit()
    assert by_source.nbytes == 8 * len(rows) + 4 * (int(rows[:, 0].max()) - int(rows[:, 0].min()) + 2)
    text = ".decl edge(x: number, y: number)\n.decl root(x: number)\n.decl next(y: number)\nnext(y) :- root(x), edge(x, y).\n"
    used = []
    for some in (rows[:1], rows):
        facts = {"edge": {"x": some[:, 0].copy(), "y": some[:, 1].copy()}, "root": [(-1,)]}
        with dlog.session(text, facts, threads=1) as s:
            used.append(s._engine.memory.used)  # type: ignore[attr-defined]
    assert 4 * len(rows) <= used[1] - used[0] <= 5 * len(rows) + 20 * nodes


def test_2_19_distances_in_a_random_graph_are_those_of_a_search() -> None:
    """The experiment at a ten-thousandth of its size, which the bench `latency` does at the whole."""
    flow, nodes = Dataflow(), 1000
    roots, edges = flow.input(node=int), flow.input(src=int, dst=int)
    found = distances(roots, edges).capture()
    rows = random_edges(nodes, 10 * nodes)
    roots.insert([0])
    edges.insert(rows)
    flow.commit()
    for gone in (rows[:0], rows[:5000]):
        edges.remove(gone)
        flow.commit()
        graph = nx.DiGraph(rows[len(gone) :].tolist())
        graph.add_node(0)
        assert dict(found) == nx.single_source_shortest_path_length(graph, 0)


def test_2_20_groups_and_joins_of_many_rounds_in_a_batch() -> None:
    """As they are round by round, which looks at each round's groups and pairs alone."""
    rng, rounds = np.random.default_rng(7), 500
    rows, diffs = rng.integers(0, 6, (4 * rounds, 2)), rng.choice([1, -1], 4 * rounds)
    found = []
    for batch in (1, rounds):
        flow = Dataflow()
        left, right = flow.input(k=int, x=int), flow.input(k=int, y=int)
        least, pairs = left.distinct().min("x", by="k"), left.join(right, on="k").count(by="k")
        captured = [each.capture(history=True) for each in (least, pairs)]
        for part, changed in ((0, left), (1, right)):
            changed.update(rows[part::2], diffs[part::2], at=np.arange(2 * rounds) // 2)
        while flow.round < rounds:
            flow.advance_to(flow.round + batch)
        found.append([each.updates() for each in captured])
    assert found[0] == found[1]
    assert min(len(updates) for updates in found[0]) > rounds // 10


@examples(50)
@given(timed)
def test_3_2_a_count_changes_at_the_joins_of_its_times(changed: list) -> None:
    """Two changes at incomparable times make a third count where they meet; a count of zero is none."""
    flow = Dataflow()
    rows = flow.input(a=int, b=int, i=int)
    counted = rows.enter_at(flow.scope.loop(), "i").map("a", "b").count(by="a").capture(history=True)
    for each, round, i, diff in changed:
        rows.update([(*each, i)], diff, at=round)
    flow.advance_to(4)
    for time in TIMES:
        sums: Counter = Counter()
        for (a, _), round, i, diff in changed:
            sums[a] += diff if round <= time[0] and i <= time[1] else 0
        assert counted.counts(time) == {(a, n): 1 for a, n in sums.items() if n}


@pytest.mark.parametrize("general", [False, True])
def test_3_5_degrees_and_how_many_nodes_have_them(general: bool) -> None:
    """In batches of thousands of changes, by the operator for total orders and by the general one, whose times the bench
    `collections` compares."""
    flow, nodes = Dataflow(), 200
    edges = flow.input(src=int, dst=int)
    counted = edges.enter(flow.scope.loop()) if general else edges
    found = counted.map("src").count("degree").map("degree").count("nodes")
    captured = (found.leave() if general else found).capture()
    assert {type(o) for o in flow.operators} & {Reduce, ReduceTotal} == {Reduce if general else ReduceTotal}
    rng, there = np.random.default_rng(1), np.zeros((0, 2), np.int64)
    for _ in range(4):
        gone, came = rng.permutation(len(there))[: len(there) // 3], rng.integers(0, nodes, (3000, 2))
        edges.remove(there[gone])
        edges.insert(came)
        flow.commit()
        there = np.concatenate([np.delete(there, gone, axis=0), came])
        degrees = np.bincount(there[:, 0])
        assert captured.counts() == dict.fromkeys(Counter(degrees[degrees > 0].tolist()).items(), 1)


def test_3_6_a_batch_of_many_updates_counts_as_counting_anew() -> None:
    """At many rounds, compared at some of them; the bench `collections` measures how long it takes."""
    flow, rows, rounds = Dataflow(), 100_000, 1000
    words = flow.input(word=int)
    counted = words.count().capture(history=True)
    rng = np.random.default_rng(0)
    values, diffs, at = rng.integers(0, 5000, rows), rng.choice([1, 1, -1], rows), np.sort(rng.integers(0, rounds, rows))
    words.update(values, diffs, at=at)
    flow.advance_to(rounds)
    for round in (0, 17, 500, rounds - 1):
        upto = at <= round
        sums = np.bincount(values[upto], diffs[upto], 5000).astype(int)
        assert counted.counts(round) == {(word, n): 1 for word, n in enumerate(sums.tolist()) if n}


def test_3_8_there_is_an_index_where_somebody_looks_rows_up() -> None:
    """What a count makes is passed on as it is, unless a join reads it; joins by the same key read one index of it; and of what
    a count reads only the sums are kept, unless a join reads that, too."""

    def indexes(joins: int, of_input: bool) -> tuple[int, bool, int]:
        flow = Dataflow()
        edges, names = flow.input(node=int), flow.input(node=int, name=int)
        degrees = edges.count()
        degrees.filter(col("count") > 1).inspect(lambda *update: None)
        for _ in range(joins):
            degrees.join(names, on="node").inspect(lambda *update: None)
        if of_input:
            edges.join(names, on="node").inspect(lambda *update: None)
        edges.insert([1, 1, 2])
        names.insert([(1, 10), (2, 20)])
        flow.commit()
        arranged = [o for o in flow.operators if isinstance(o, Arrange)]
        return len(arranged), arranged[0].table is None, sum(trace.spine.rows for trace in arranged[0].traces)

    assert indexes(joins=0, of_input=False) == (1, False, 0)
    assert indexes(joins=1, of_input=False) == indexes(joins=3, of_input=False) == (3, False, 0)
    assert indexes(joins=0, of_input=True) == (2, True, 2)


@pytest.mark.parametrize("steps", [1, 12])
def test_4_4_fused_parts_are_static_and_their_junctions_dynamic(steps: int) -> None:
    """Branches of linear operators and a junction each: a round runs the junctions of the branches that it changes, once each,
    however many linear operators are between; those of the others never."""
    flow, branches = Dataflow(), 20
    inputs = [flow.input(x=int) for _ in range(branches)]
    for each in inputs:
        made = each.rename(y="x")
        for _ in range(steps):
            made = made.map(y=col("y") + 1).filter(col("y") > 0)
        made.distinct().inspect(lambda *update: None)
    assert len(flow.operators) == 4 * branches  # source, index, reduction, output
    for changed in ([3], [3, 7], range(branches), []):
        before = flow.statistics()
        for k in changed:
            inputs[k].insert([flow.round])
        flow.commit()
        ran = [new.activations - old.activations for old, new in zip(before, flow.statistics(), strict=True)]
        got = [new.received - old.received for old, new in zip(before, flow.statistics(), strict=True)]
        assert max(ran) <= 1
        assert sum(ran) == sum(got) == 4 * len(changed)
