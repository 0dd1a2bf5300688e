"""The seeds' examples. Each test has the number of its row in the list of docs/dataflow.md."""

from __future__ import annotations

import random
from collections import Counter

import networkx as nx
import numpy as np
import pytest

from dlog.dataflow import Collection, Dataflow, Input, col
from tests.dlog.dataflow.algorithms import component_edges, distances, generations, page_ranks, truss


def changing_edges(edges: Input, nodes: int, size: int, rounds: int, seed: int, ordered: bool = False) -> list[set]:
    """Puts edges in, and changes one or two a round; returns those of each round."""
    rng = random.Random(seed)

    def draw() -> tuple[int, int]:
        a, b = rng.sample(range(nodes), 2)
        return (min(a, b), max(a, b)) if ordered else (a, b)

    there = {draw() for _ in range(size)}
    edges.insert(sorted(there), at=0)
    found = [set(there)]
    for round in range(1, rounds):
        gone, came = rng.choice(sorted(there)), draw()
        edges.remove([gone], at=round)
        there.remove(gone)
        if came not in there:
            edges.insert([came], at=round)
            there.add(came)
        found.append(set(there))
    return found


def in_batches(flow: Dataflow, rounds: int, seed: int = 1) -> None:
    """Does rounds in batches of several lengths."""
    rng = random.Random(seed)
    while flow.round < rounds:
        flow.advance_to(min(rounds, flow.round + rng.choice([1, 1, 2, 7])))


def check_distances(nodes: int, size: int, rounds: int) -> None:
    flow = Dataflow()
    roots, edges = flow.input(node=int), flow.input(src=int, dst=int)
    found = distances(roots, edges).capture(history=True)
    roots.insert([0])
    history = changing_edges(edges, nodes, size, rounds, seed=nodes)
    in_batches(flow, rounds)
    for round, there in enumerate(history):
        graph = nx.DiGraph(sorted(there))
        graph.add_node(0)
        expected = nx.single_source_shortest_path_length(graph, 0)
        assert found.counts(round) == dict.fromkeys(expected.items(), 1), round


def test_2_1_breadth_first_search_is_right_after_each_round() -> None:
    check_distances(20, 40, 60)


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "size", "rounds"), [(10, 20, 1000), (100, 200, 100), (100, 2000, 10)])
def test_2_1_breadth_first_search_is_right_after_many_rounds(nodes: int, size: int, rounds: int) -> None:
    check_distances(nodes, size, rounds)


@pytest.mark.parametrize(("nodes", "size", "rounds"), [(8, 14, 25), (20, 40, 10)])
def test_0_6_strongly_connected_components_by_nested_loops(nodes: int, size: int, rounds: int) -> None:
    flow = Dataflow()
    edges = flow.input(src=int, dst=int)
    found = component_edges(edges).capture(history=True)
    history = changing_edges(edges, nodes, size, rounds, seed=size)
    in_batches(flow, rounds)
    for round, there in enumerate(history):
        parts = list(nx.strongly_connected_components(nx.DiGraph(sorted(there))))
        assert set(found.counts(round)) == {(a, b) for a, b in there if any({a, b} <= part for part in parts)}, round


def test_0_18_the_truss_of_a_changing_graph() -> None:
    flow = Dataflow()
    edges = flow.input(a=int, b=int)
    found = truss(edges, 4).capture(history=True)
    history = changing_edges(edges, 12, 40, 20, seed=4, ordered=True)
    in_batches(flow, 20)
    for round, there in enumerate(history):
        expected = nx.k_truss(nx.Graph(sorted(there)), 4).edges
        assert set(found.counts(round)) == {(min(e), max(e)) for e in expected}, round


def test_page_rank_follows_its_graph() -> None:
    flow = Dataflow()
    edges = flow.input(src=int, dst=int)
    found = page_ranks(edges, 1000).capture(history=True)
    history = changing_edges(edges, 10, 25, 12, seed=6)
    in_batches(flow, 12)
    for round, there in enumerate(history):
        assert found.counts(round) == dict.fromkeys(ranks_of(there, 1000).items(), 1), round


def ranks_of(edges: set, mass: int) -> dict[int, int]:
    degrees = Counter(a for a, _ in edges)
    nodes = {node for edge in edges for node in edge}
    has, before = dict.fromkeys(nodes, mass), None
    while has != before:
        before, has = has, dict.fromkeys(nodes, mass)
        for a, b in edges:
            has[b] += before[a] * 5 // (degrees[a] * 6)
    return has


def test_1_13_the_game_of_life_follows_its_first_generation() -> None:
    flow = Dataflow()
    cells = flow.input(generation=int, x=int, y=int)
    found = generations(cells, 6).capture()
    rng, there = random.Random(3), set()
    for _ in range(8):
        flipped = {(rng.randrange(6), rng.randrange(6)) for _ in range(5)}
        cells.remove([(0, *cell) for cell in flipped & there])
        cells.insert([(0, *cell) for cell in flipped - there])
        there ^= flipped
        flow.commit()
        assert set(found.counts()) == {(g, x, y) for g, board in enumerate(boards(there, 6)) for x, y in board}


def boards(cells: set, last: int) -> list[set]:
    """The generations, by NumPy on a board that is large enough."""
    board = np.zeros((30, 30), int)
    for x, y in cells:
        board[x + 12, y + 12] = 1
    found = []
    for _ in range(last + 1):
        found.append({(int(x) - 12, int(y) - 12) for x, y in np.argwhere(board)})
        around = sum(np.roll(board, (dx, dy), (0, 1)) for dx in (-1, 0, 1) for dy in (-1, 0, 1)) - board
        board = ((around == 3) | ((around == 2) & (board == 1))).astype(int)
    return found


# --------------------------------------------------------------------------------------------------------------- reactions


def quotient(cells: Collection) -> Collection:
    """(A + 1) / (A + 2), by way of two collections."""
    b, c = cells.map("at", b=col("a") + 1), cells.map("at", c=col("a") + 2)
    return b.join_map(c, "at", d=col("b") / col("c"), on="at")


def test_4_1_a_stream_and_a_cell_by_the_same_expression() -> None:
    """The stream {0, 1} gives exactly {1/2, 2/3}; the cell that is 0 and then 1 gives 1/2, which then becomes 2/3."""
    flow = Dataflow()
    stream, cell = flow.input(at=int, a=int), flow.input(at=int, a=int)
    seen: dict[str, list] = {"stream": [], "cell": []}
    for name, given in (("stream", stream), ("cell", cell)):
        quotient(given).inspect(lambda row, time, diff, name=name: seen[name].append((row[1], time, diff)))
    for round in (0, 1):
        stream.insert([(round, round)])
        cell.insert([(0, round)])
        cell.remove([(0, 0)] if round else [])
        flow.commit()
    assert seen["stream"] == [(1 / 2, 0, 1), (2 / 3, 1, 1)]
    assert sorted(seen["cell"]) == [(1 / 2, 0, 1), (1 / 2, 1, -1), (2 / 3, 1, 1)]


def test_4_2_nothing_is_seen_of_which_only_a_part_is_up_to_date() -> None:
    """Were D worked out as soon as B has changed, there would be a 1 between 1/2 and 2/3."""
    flow = Dataflow()
    cell = flow.input(at=int, a=int)
    seen: list[float] = []
    quotient(cell).inspect(lambda row, time, diff: seen.append(row[1]))
    quotient(cell).filter(col("d") == 1).assert_empty()
    for value in range(1, 50):
        cell.insert([(0, value)])
        cell.remove([(0, value - 1)] if value > 1 else [])
        flow.commit()
    assert 1.0 not in seen


def test_4_3_operators_run_once_a_change_and_only_where_it_leads() -> None:
    flow = Dataflow()
    left, right = flow.input(k=int, x=int), flow.input(k=int, y=int)
    diamond = left.count().join(left.distinct(), on=("k", "x")).distinct()
    other = right.min("y", by="k").distinct()
    diamond.capture()
    other.capture()
    flow.commit()
    assert flow.activations == 0
    left.insert([(1, 2)])
    flow.commit()
    ran = [operator.activations for operator in flow.operators]
    assert max(ran) == 1
    reached = sum(ran)
    right.insert([(1, 5)])
    flow.commit()
    assert sum(operator.activations for operator in flow.operators) > reached
    before = flow.activations
    right.insert([(1, 9)])  # the least stays the same: nothing is emitted, and nothing behind runs
    flow.commit()
    assert flow.activations == before + 3


def test_4_3_in_a_cycle_an_operator_runs_once_an_iteration() -> None:
    """A diamond inside a loop: each operator of it runs once for each iteration that something reaches, those of the other loop
    never; what arrives by two ways at an iteration is worked off at once."""
    flow = Dataflow()
    roots, edges = flow.input(node=int), flow.input(src=int, dst=int)
    inspected: Counter = Counter()

    def step(inner: Collection) -> Collection:
        proposed = inner.join_map(edges.enter(inner.scope), on={"node": "src"}, node="dst")
        proposed.concat(proposed.count(by="node").map("node")).inspect(lambda row, time, diff: inspected.update([(row, time)]))
        return inner.concat(proposed, proposed.filter(col("node") > 0)).distinct()

    roots.iterate(step).capture()
    begun = len(flow.operators)
    others, links = flow.input(node=int), flow.input(src=int, dst=int)
    others.iterate(lambda inner: inner.join_map(links.enter(inner.scope), on={"node": "src"}, node="dst").distinct()).capture()
    roots.insert([0])
    edges.insert([(k, k + 1) for k in range(5)])
    flow.commit()
    before = flow.statistics()
    assert all(each.activations == 0 == each.received for each in before[begun:])
    in_loop = [each for each in before if each.operator.endswith("in 1 loop")]
    assert max(each.activations for each in in_loop) <= 7  # five iterations, what follows from the last, and rest
    edges.insert([(5, 6)])
    flow.commit()
    for old, new in zip(before, flow.statistics(), strict=True):
        assert new.activations - old.activations <= 2  # the new node, and what follows from it
    assert set(inspected.values()) == {1}
    before = flow.statistics()
    links.insert([(1, 2)])
    flow.commit()
    touched = [new.activations - old.activations for old, new in zip(before, flow.statistics(), strict=True)]
    assert sum(touched[:begun]) == 0
    assert 1 <= max(touched[begun:]) == 1


def test_4_5_a_moving_average_and_its_volatility() -> None:
    """Order matters: a value is in the windows that end with it and with the two after it."""
    flow = Dataflow()
    ticks = flow.input(at=int, price=float)
    windows = ticks.generate_series("at", col("at") + 2, "end")
    sums = windows.explode("end", diff=(1, "price", col("price") * col("price"))).count("n", "sum", "squares")
    whole = sums.semijoin(ticks.map(end="at")).filter(col("n") == 3)
    mean = col("sum") / col("n")
    moving = whole.map("end", mean=mean, variance=col("squares") / col("n") - mean * mean).capture()
    ticks.insert(list(enumerate([1.0, 2.0, 3.0, 6.0])))
    flow.commit()
    assert moving.counts() == {(2, 2.0, 14 / 3 - 4.0): 1, (3, 11 / 3, 49 / 3 - (11 / 3) * (11 / 3)): 1}
    ticks.remove([(1, 2.0)])  # late, and out of order
    ticks.insert([(1, 5.0)])
    flow.commit()
    assert {row[:2] for row in moving.counts()} == {(2, 3.0), (3, 14 / 3)}


# ------------------------------------------------------------------------------------------------------------- many rounds


def test_2_3_many_rounds_in_a_batch_are_exact_each() -> None:
    flow, rounds = Dataflow(), 20_000
    edges = flow.input(src=int, dst=int)
    degrees = edges.map("src").count("degree").map("degree").count("nodes").capture(history=True)
    rng = np.random.default_rng(5)
    rows, diffs = rng.integers(0, 30, (rounds, 2)), rng.choice([1, 1, 2], rounds)
    edges.update(rows, diffs, at=np.arange(rounds))
    flow.advance_to(rounds)
    assert sorted(degrees.updates()) == sorted(changes_of_degrees(rows[:, 0].tolist(), diffs.tolist()))


def changes_of_degrees(nodes: list[int], diffs: list[int]) -> list[tuple[tuple[int, int], int, int]]:
    """What each round changes in how many nodes have which degree: one node goes from a degree to another."""
    degrees: Counter = Counter()
    counts: Counter = Counter()
    found = []
    for round, (node, diff) in enumerate(zip(nodes, diffs, strict=True)):
        before = degrees[node]
        degrees[node] += diff
        for degree, change in ((before, -1), (before + diff, 1)):
            if degree:
                was = counts[degree]
                counts[degree] += change
                found += [((degree, n), round, d) for n, d in ((was, -1), (was + change, 1)) if n]
    return found


def test_0_4_a_delta_query_keeps_only_the_edges() -> None:
    """A node of degree 100 has ten thousand pairs of neighbours, which the join keeps and the delta query does not."""
    from tests.dlog.dataflow.test_calculus import half_joined

    held = {}
    for name in ("join", "delta"):
        flow = Dataflow()
        edges = flow.input(src=int, dst=int)
        if name == "join":
            pairs = edges.join(edges, on="src").rename(a="src", b="dst", c="dst_right")
            found = pairs.semijoin(edges, on={"b": "src", "c": "dst"}).capture()
        else:
            found = half_joined(edges).capture()
        edges.insert([(0, x) for x in range(1, 101)] + [(1, 2)])
        flow.commit()
        assert found.counts() == {(0, 1, 2): 1}
        held[name] = flow.updates
    assert held["join"] > 10_000
    assert held["delta"] < 600
