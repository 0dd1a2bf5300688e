"""Parts of the dataflow's engine by themselves: what waits by round, joins in pieces, the order of operators, scopes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import Dataflow, col
from dlog.engine.operators import calendar as calendar_module
from dlog.engine.operators import join
from dlog.engine.operators.calendar import MANY_NEW, Calendar
from dlog.engine.operators.delta import Delta
from dlog.engine.operators.groups import Active, Outcome, Sums, changed_sums, group
from dlog.engine.operators.readings import Matches, Reading
from dlog.engine.operators.reduce import Changes, changes
from dlog.engine.operators.scope import Rounds, Scope
from dlog.engine.trace.layer import Layer, build
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples


def delta(rounds: list[int]) -> Delta:
    return Delta((np.arange(len(rounds)),), np.array([rounds], np.int64), np.ones(len(rounds), np.int64))


NEVER_REACHED = 2**63 - 1
STEPS = st.lists(
    st.one_of(
        st.lists(st.integers(0, 30) | st.just(NEVER_REACHED), min_size=1, max_size=40),
        st.integers(1, 5),
    ),
    max_size=40,
)


@examples(100)
@given(STEPS, st.sampled_from([1, 2, 5]), st.sampled_from([1, 3, 64]))
def test_a_calendar_gives_what_is_due_and_keeps_the_rest(steps: list, chunk: int, many: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calendar_module, "CHUNK", chunk)
        patch.setattr(calendar_module, "MANY_NEW", many)
        calendar, waiting, now, number = Calendar(), [], 0, 0
        for step in steps:
            if isinstance(step, list):
                rounds = [min(now + r, NEVER_REACHED) for r in step]
                numbers = np.arange(number, number := number + len(step))
                times, ones = np.array([rounds], np.int64), np.ones(len(step), np.int64)
                calendar.add(number % 2, Delta((numbers,), times, ones), max(rounds))
                waiting += [(r, number % 2, n) for r, n in zip(rounds, numbers.tolist(), strict=True)]
            else:
                now += step
                taken = [
                    (r, port, n)
                    for port, part in calendar.take(now)
                    for r, n in zip(part.rounds.tolist(), part.columns[0].tolist(), strict=True)
                ]
                assert sorted(taken) == sorted(each for each in waiting if each[0] < now)
                waiting = [each for each in waiting if each[0] >= now]
            assert len(calendar) == len(waiting) and bool(calendar) == bool(waiting)
            assert calendar.next_round() == min((r for r, _, _ in waiting), default=None)


@pytest.mark.parametrize("span", [1, 3, 1 << 40, 1 << 62])
def test_updates_are_put_in_order_of_rounds(span: int) -> None:
    """Places go into the words where there is room; equal rounds stay in order."""
    rounds = np.random.default_rng(7).integers(-span, span, 5_000)
    found = Delta((np.arange(5_000),), rounds[None, :], rounds).in_order_of_rounds()
    expected = sorted(range(5_000), key=lambda place: rounds[place])
    assert found.columns[0].tolist() == expected and found.rounds.tolist() == sorted(rounds.tolist())


@pytest.mark.parametrize("ending", ["spread", "together"])
def test_no_step_of_a_calendar_costs_what_waits(monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """A million updates wait; others come, a few or thousands at a time, while the clock goes on."""
    random, moved = np.random.default_rng(7), [0]
    step = calendar_module._Merge._step

    def tally(merge: Any) -> int:
        moved[0] += (rows := step(merge))
        return rows

    monkeypatch.setattr(calendar_module._Merge, "_step", tally)
    calendar = Calendar()

    def add(count: int, now: int) -> None:
        rounds = now + (random.integers(1, 100_000, count) if ending == "spread" else np.full(count, 100_000 - now % 7))
        calendar.add(0, Delta((rounds,), rounds[None, :], rounds), int(rounds.max()))

    add(1_000_000, 0)
    taken = 0
    for now in range(1, 3_001):
        moved[0], count = 0, int(random.choice([1, 10, 100, 5_000], p=[0.5, 0.3, 0.15, 0.05]))
        add(count, now)
        taken += sum(part.rows for _, part in calendar.take(now))
        levels = calendar._schedules[0].levels if calendar._schedules else []
        allowed = (calendar_module.WORK * max(count, calendar_module.CHUNK) + 2 * calendar_module.CHUNK) * len(levels)
        assert moved[0] <= allowed
        assert len(levels) <= 24
    assert ending == "together" or taken > 20_000


def test_a_calendar_joins_what_comes_in_many_pieces() -> None:
    calendar = Calendar()
    for k in range(3 * MANY_NEW):
        calendar.add(k % 2, delta([k % 3]), k % 3)
    assert len(calendar) == 3 * MANY_NEW and len(calendar._new) < MANY_NEW
    assert calendar.next_round() == 0
    taken = [(port, round) for port, found in calendar.take(2) for round in found.rounds.tolist()]
    assert sorted(taken) == sorted((k % 2, k % 3) for k in range(3 * MANY_NEW) if k % 3 < 2)
    assert len(calendar) == MANY_NEW and calendar.next_round() == 2


def test_joins_with_many_pairs_make_them_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "OUTPUT_ROWS", 10)
    flow = Dataflow()
    left, right = flow.input(k=int, x=int), flow.input(k=int, y=int)
    pairs = left.join(right).count(by=[]).capture()
    left.insert([(0, x) for x in range(20)])
    right.insert([(0, y) for y in range(30)])
    flow.commit()
    assert pairs.counts() == {(600,): 1}


def test_products_beyond_64_bits_are_refused() -> None:
    flow = Dataflow()
    rows = flow.input(k=int)
    rows.explode("k", diff=2**40).join(rows.explode("k", diff=2**40)).capture()
    rows.insert([1])
    with pytest.raises(DlogError, match="beyond 64 bits"):
        flow.commit()


def test_active_rounds_are_sorted_by_key_and_each_once() -> None:
    keys = np.array([7, 3, 7, 7])
    active = Active.of((keys,), np.array([4, 2, 1, 4]))
    assert active.keys[0].tolist() == [3, 7]
    assert (active.owners.tolist(), active.rounds.tolist()) == ([0, 1, 1], [2, 1, 4])
    more = active.also(np.array([0, 1]), np.array([9, 4]))
    assert (more.owners.tolist(), more.rounds.tolist()) == ([0, 0, 1, 1], [2, 9, 1, 4])
    assert more.first.tolist() == [2, 1]
    before = Active.of((keys,), np.array([4, 2, 1, 4]), before=True)
    assert (before.owners.tolist(), before.rounds.tolist()) == ([0, 0, 1, 1, 1], [1, 2, 0, 1, 4])
    assert before.starts.tolist() == [0, 2, 5]


@examples(100)
@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1), st.integers(0, 2), st.booleans())
def test_active_rounds_of_sorted_updates_are_those_of_any(rows: list[tuple], keys: int, one_round: bool) -> None:
    columns = tuple(np.array([row[c] for row in rows], np.int64) for c in range(2))
    rounds = np.array([2 if one_round else row[2] for row in rows], np.int64)
    ordered = Delta(columns, rounds[None, :], np.ones(len(rows), np.int64)).consolidated()
    assert ordered.layer is not None
    found, expected = Active.of_delta(ordered, keys, before=True), Active.of(columns[:keys], rounds, before=True)
    assert [key.tolist() for key in found.keys] == [key.tolist() for key in expected.keys]
    assert (found.owners.tolist(), found.rounds.tolist()) == (expected.owners.tolist(), expected.rounds.tolist())
    assert found.starts.tolist() == expected.starts.tolist()


SUMMED = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 6), st.integers(-2, 2))
"""A key, a component, a round and a diff."""
UPDATES = st.lists(SUMMED, min_size=1, max_size=8)


class Shown(Sums):
    """Of three components: the sums, or nothing but the key as often as the first one says."""

    components = 3

    def __init__(self, shown: int) -> None:
        self.shown = shown

    def diffs(self, sums: np.ndarray) -> np.ndarray:
        return sums.any(axis=0).astype(np.int64) if self.shown else sums[0].copy()


@examples(200)
@given(st.lists(UPDATES, max_size=3), UPDATES, st.sampled_from([0, 3]))
def test_sums_change_by_what_they_are_after_each_round(layers: list[list[tuple]], news: list[tuple], shown: int) -> None:
    changed = _layer(news)
    if changed is None:
        return
    reading = Reading([layer for updates in layers if (layer := _layer(updates)) is not None] + [changed], 2, 1)
    every = [update for updates in (*layers, news) for update in updates]
    found = changed_sums(Delta.of_layer(changed), 1, reading, Shown(shown))
    expected = []
    for key in sorted({key for key, *_ in updates_of(changed)}):
        rounds = sorted({round for k, _, round in updates_of(changed) if k == key})
        before = _row(every, key, rounds[0] - 1, shown)
        for round in rounds:
            after = _row(every, key, round, shown)
            if before != after:
                expected += [(key, *row, round, sign * diff) for (*row, diff), sign in ((before, -1), (after, 1)) if diff]
            before = after
    assert [tuple(update) for update in np.array([*found.columns, *found.times, found.diffs]).T.tolist()] == expected


def updates_of(layer: Layer) -> list[tuple[int, int, int]]:
    return list(zip(layer.values(0).tolist(), layer.values(1).tolist(), layer.times()[0].tolist(), strict=True))


def _row(every: list[tuple], key: int, end: int, shown: int) -> tuple[int, ...]:
    """The sums of a key up to a round, as many as are shown, and how often they are there."""
    sums = [sum(d for k, c, round, d in every if (k, c) == (key, component) and round <= end) for component in range(3)]
    return (*sums, int(any(sums))) if shown else (sums[0],)


@examples(100)
@given(st.lists(SUMMED, max_size=12), st.lists(SUMMED, min_size=1, max_size=8))
def test_groups_have_the_rows_of_their_rounds(updates: list[tuple], looked_at: list[tuple]) -> None:
    active = Active.of((np.array([key for key, *_ in looked_at]),), np.array([round for _, _, round, _ in looked_at]))
    probes = {key: probe for probe, key in enumerate(active.keys[0].tolist())}
    known = [(probes[k], v, max(r, int(active.first[probes[k]])), d) for k, v, r, d in updates if k in probes]
    found, values, rounds, diffs = (np.array([update[c] for update in known], np.int64) for c in range(4))
    groups, numbers = group(active, Matches(found, Delta((values,), rounds[None, :], diffs)))
    told = {}
    for place, number in enumerate(numbers.tolist()):
        rows = slice(groups.starts[place], groups.starts[place + 1])
        told[number] = list(zip(groups.columns[0][rows].tolist(), groups.diffs[rows].tolist(), strict=True))
        assert groups.keys[0][place] == active.keys[0][active.owners[number]]
    expected = {}
    for number, (owner, end) in enumerate(zip(active.owners.tolist(), active.rounds.tolist(), strict=True)):
        sums = Counter[int]()
        for probe, value, round, diff in known:
            sums[value] += diff * (probe == owner and round <= end)
        if any(sums.values()):
            expected[number] = sorted((value, diff) for value, diff in sums.items() if diff)
    assert told == expected


def _layer(updates: list[tuple]) -> Layer | None:
    keys, components, rounds, diffs = (np.array(column, np.int64) for column in zip(*updates, strict=True))
    return build((keys, components), rounds[None, :], diffs)


@examples(100)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2), st.integers(1, 2)), max_size=10),
    st.booleans(),
)
def test_changes_lead_from_each_outcome_to_the_next(
    looked_at: list[tuple[int, int]], rows: list[tuple[int, int, int]], after_first: bool
) -> None:
    active = Active.of((np.array([k for k, _ in looked_at]),), np.array([r for _, r in looked_at]))
    made = sorted((number, value, diff) for number, value, diff in rows if number < len(active.rounds))
    numbers, values, diffs = (np.array([row[c] for row in made], np.int64) for c in range(3))
    found = changes(active, numbers, Outcome(numbers, (values,), diffs), after_first)
    expected: Counter[tuple[int, int, int]] = Counter()
    for number, value, diff in made:
        owner, end = int(active.owners[number]), int(active.starts[active.owners[number] + 1])
        if not (after_first and number == active.starts[owner]):
            expected[owner, value, int(active.rounds[number])] += diff
        if number + 1 < end:
            expected[owner, value, int(active.rounds[number + 1])] -= diff
    told: Counter[tuple[int, int, int]] = Counter()
    for owner, value, round, diff in zip(*map(np.ndarray.tolist, _listed(found)), strict=True):
        told[owner, value, round] += diff
    assert {k: d for k, d in told.items() if d} == {k: d for k, d in expected.items() if d}


def _listed(found: Changes) -> tuple[np.ndarray, ...]:
    return found.probes, found.columns[0], found.rounds, found.diffs


def test_what_is_captured_waits_for_many_rounds_or_a_reader() -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    captured = rows.capture(history=True)
    for x in range(5):
        rows.insert([x])
        flow.commit()
    assert not captured._capture._trace.spine.rows
    assert captured.counts(2) == {(0,): 1, (1,): 1, (2,): 1}
    assert captured._capture._trace.spine.rows == 5


def test_what_may_come_after_a_moment() -> None:
    assert str(Rounds(3, 5).after(())) == "{(5)}"
    assert str(Rounds(3, 5).after((2,))) == "{(3, 3), (5, 0)}"
    assert Rounds(3, 5).scaled(2) == Rounds(6, 10)


def test_scopes_know_where_they_are() -> None:
    root = Scope()
    loop, nudged = root.loop(), root.altneu()
    assert (root.depth, loop.depth, nudged.depth, nudged.scale) == (1, 2, 1, 2)
    assert nudged.loop().scale == 2
    assert loop.loop().region.around(1) is loop.region


def test_a_collection_made_after_a_loop_can_be_read_by_it() -> None:
    """The order of operators is that of the graph, not that in which they were made."""
    flow = Dataflow()
    edges, nodes = flow.input(src=int, dst=int), flow.input(node=int)

    def step(inner):  # type: ignore[no-untyped-def]
        later = edges.distinct().filter(col("dst") > 0)  # outside of the loop, made within
        moved = inner.join_map(later.enter(inner.scope), on={"node": "src"}, node="dst")
        return moved.concat(nodes.enter(inner.scope)).distinct()

    reached = nodes.iterate(step).capture()
    nodes.insert([1])
    edges.insert([(1, 2), (2, 3), (3, 0)])
    flow.commit()
    assert reached.counts() == {(1,): 1, (2,): 1, (3,): 1}
