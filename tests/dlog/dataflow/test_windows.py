"""Windows, moving aggregates and folds over events that come in any order, and go."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import Collection, Dataflow, Input, col, linear, moving
from dlog.engine.operators import some_rounds
from dlog.engine.operators.ordered import Ordered
from dlog.engine.operators.reach import Following, Gap, Range, Reach
from dlog.grammar.diagnostics import DlogError
from tests.dlog.dataflow import windowed
from tests.examples import examples

ROUNDS = 5
events = st.tuples(st.sampled_from("ab"), st.integers(-20, 20), st.integers(0, 3))
changed_events = st.lists(st.tuples(events, st.integers(0, ROUNDS - 1), st.sampled_from([1, 1, 1, 2])), max_size=25)
removals = st.lists(st.tuples(st.integers(0, 24), st.integers(0, ROUNDS - 1)), max_size=12)
ends = st.lists(st.integers(1, ROUNDS - 1), max_size=3, unique=True).map(lambda found: [*sorted(found), ROUNDS])
margins = st.sampled_from([1, 2, 64])

AGGREGATES = {
    "n": moving.count(),
    "total": moving.sum("value"),
    "mean": moving.mean("value"),
    "greatest": moving.max("value"),
    "first": moving.first("value"),
    "variance": moving.variance("value"),
}


def step(state: int, value: int) -> int:
    return (3 * state + value + 1) % 1009


def averages(events: Collection, **window: int) -> Collection:
    return events.moving("at", by="key", **window, **AGGREGATES)


def rounded(counts: dict) -> dict:
    """Without what the variance owes to the order of additions; 0 where there is none."""
    found: Counter = Counter()
    for row, count in counts.items():
        last = row[-1]
        found[row if isinstance(last, int) else (*row[:-1], 0.0 if math.isnan(last) else round(last, 6))] += count
    return dict(found)


CASES: dict[str, tuple[Callable[[Collection], Collection], Callable[[Counter], dict]]] = {
    "tumbling": (lambda rows: rows.tumbling_window("at", 5, origin=2), lambda rows: windowed.sliding(rows, 5, 5, 2)),
    "sliding": (lambda rows: rows.sliding_window("at", 7, 3), lambda rows: windowed.sliding(rows, 7, 3)),
    "sampling": (lambda rows: rows.sliding_window("at", 2, 5), lambda rows: windowed.sliding(rows, 2, 5)),
    "sessions": (lambda rows: rows.session_window("at", 3, by="key"), lambda rows: windowed.sessions(rows, 3)),
    "rows": (lambda rows: averages(rows, rows=3), lambda rows: windowed.moving(rows, windowed.last_rows(3))),
    "one row": (lambda rows: averages(rows, rows=1), lambda rows: windowed.moving(rows, windowed.last_rows(1))),
    "range": (lambda rows: averages(rows, range=4), lambda rows: windowed.moving(rows, windowed.last_range(4))),
    "scan": (
        lambda rows: rows.scan("at", step, "value", by="key", state=7),
        lambda rows: windowed.scan(rows, step, 7),
    ),
}


@contextmanager
def read_at_first(margin: int) -> Iterator[None]:
    """Has operators read so few rows around a change that they have to read again, and work off so few rounds at once."""
    with ExitStack() as stack:
        for reach in (Reach, Following, Gap, Range):
            stack.enter_context(patch.object(reach, "margin", margin))
        stack.enter_context(patch.object(some_rounds, "ROUNDS_AT_ONCE", margin))
        yield


def stream(added: list, removed: list) -> list[tuple[windowed.Event, int, int]]:
    """Changes in which nothing is taken away that is not there."""
    found = [*added]
    for number, later in removed:
        if number < len(added):
            row, round, count = added[number]
            if round + later < ROUNDS:
                found.append((row, round + later, -count))
                added = [*added[:number], (row, ROUNDS, 0), *added[number + 1 :]]
    return found


def put(rows: Input, changes: list) -> None:
    for row, round, diff in changes:
        rows.update([row], diff, at=round)


def there(changes: list, round: int) -> Counter:
    found: Counter = Counter()
    for row, at, diff in changes:
        if at <= round:
            found[row] += diff
    return +found


@pytest.mark.parametrize("name", CASES)
@examples(60)
@given(changed_events, removals, ends, margins)
def test_windows_are_what_they_are_of_all_events(name: str, added: list, removed: list, batches: list, margin: int) -> None:
    build, expected = CASES[name]
    changes = stream(added, removed)
    with read_at_first(margin):
        flow = Dataflow()
        rows = flow.input(key=str, at=int, value=int)
        found = build(rows).capture(history=True)
        put(rows, changes)
        for end in batches:
            flow.advance_to(end)
    for at in range(ROUNDS):
        assert rounded(found.counts(at)) == expected(there(changes, at)), at


@pytest.mark.parametrize("name", ["sessions", "rows", "range", "scan"])
@examples(20)
@given(changed_events, removals, ends, margins)
def test_in_loops_whole_groups_give_the_same(name: str, added: list, removed: list, batches: list, margin: int) -> None:
    build, _ = CASES[name]
    with read_at_first(margin):
        flow = Dataflow()
        rows = flow.input(key=str, at=int, value=int)
        build(rows).assert_eq(build(rows.enter(flow.scope.loop())).leave())
        put(rows, stream(added, removed))
        for end in batches:
            flow.advance_to(end)


@examples(30)
@given(st.lists(st.tuples(st.floats(-30, 30), st.integers(0, ROUNDS - 1)), max_size=15), st.sampled_from([0.1, 0.7, 3.0]))
def test_times_may_be_floats(times: list, length: float) -> None:
    flow = Dataflow()
    rows = flow.input(at=float)
    windows = rows.sliding_window("at", length, length / 3).filter(col("window_start") > col("at")).concat(
        rows.sliding_window("at", length, length / 3).filter(col("window_end") <= col("at"))
    )  # fmt: skip
    windows.assert_empty()
    rows.tumbling_window("at", length).map("at").assert_eq(rows)
    sizes = rows.moving("at", range=length, n=moving.count()).capture(history=True)
    runs = rows.session_window("at", length).capture(history=True)
    for at, round in times:
        rows.insert([at], at=round)
    for end in (2, ROUNDS):
        flow.advance_to(end)
    for round in range(ROUNDS):
        here = sorted(at + 0.0 for at, came in times if came <= round)
        expected = Counter((at, sum(1 for other in here if other <= at < other + length)) for at in here)
        assert sizes.counts(round) == expected
        starts = [at for before, at in zip([None, *here], here, strict=False) if before is None or at >= before + length]
        assert {start for _, start, _ in runs.counts(round)} == set(starts)


def test_events_at_one_time_are_in_the_order_of_their_strings() -> None:
    """Whichever came first."""
    for names in (["b", "a"], ["a", "b"]):
        flow = Dataflow()
        rows = flow.input(at=int, name=str)
        found = rows.scan("at", lambda text, name: text + name, "name", text="").capture()
        for name in names:
            rows.insert([(0, name)])
            flow.commit()
        assert found.counts() == {(0, "a", "a"): 1, (0, "b", "ab"): 1}


def test_more_events_than_memory_holds_are_refused() -> None:
    flow = Dataflow()
    rows = flow.input(at=int)
    rows.moving("at", rows=2, n=moving.count()).capture()
    rows.update([3], 2**40, at=0)
    with pytest.raises(DlogError, match="there are more than 1,073,741,824 events"):
        flow.commit()


def test_a_state_may_have_several_columns() -> None:
    flow = Dataflow()
    rows = flow.input(at=int, x=int)
    found = rows.scan("at", lambda low, high, x: (min(low, x), max(high, x)), "x", low=99, high=0).capture()
    rows.insert([(1, 5), (2, 3), (3, 8)])
    flow.commit()
    assert sorted(found) == [(1, 5, 5, 5), (2, 3, 3, 5), (3, 8, 3, 8)]
    rows.remove([(2, 3)])
    flow.commit()
    assert sorted(found) == [(1, 5, 5, 5), (3, 8, 5, 8)]


@pytest.mark.parametrize("name", ["sessions", "rows", "range", "scan"])
def test_a_change_costs_what_it_can_reach(name: str) -> None:
    """Of a key with many events few are read: for one at the end, and, but for a fold, for two far apart."""
    flow = Dataflow()
    rows = flow.input(key=str, at=int, value=int)
    built = CASES[name][0](rows)
    shown: list = []
    built.inspect(lambda row, time, diff: shown.append(row))
    many = 20_000
    rows.insert({"key": ["a"] * many, "at": [10 * k for k in range(many)], "value": [k % 4 for k in range(many)]})
    flow.commit()
    (operator,) = (each for each in flow.operators if isinstance(each, Ordered))
    before, seen = operator.updates_read, len(shown)
    rows.insert([("a", 10 * many, 1)])
    flow.commit()
    assert operator.updates_read - before < 600
    assert len(shown) - seen == 1
    if name != "scan":
        rows.insert([("a", 10 * many + 10, 1)])
        rows.remove([("a", 0, 0)])
        flow.commit()
        assert operator.updates_read - before < 2000
        assert len(shown) - seen <= 8


LEAST, GREATEST = -(2**63), 2**63 - 1
far = st.integers(-40, 40) | st.integers(LEAST, LEAST + 40) | st.integers(GREATEST - 40, GREATEST)


@examples(200)
@given(far, st.integers(1, 25), st.integers(1, 25), st.integers(-30, 30) | st.sampled_from([LEAST, GREATEST, 10**20]))
def test_bounds_beyond_64_bits_are_refused_and_no_time_is_dropped(at: int, size: int, slide: int, origin: int) -> None:
    expected = [
        (at, start, start + size)
        for start in range(at - size + 1, at + 1)
        if (start - origin) % slide == 0
    ]  # fmt: skip
    flow = Dataflow()
    rows = flow.input(at=int)
    windows = rows.sliding_window("at", size, slide, origin).capture()
    rows.insert([at])
    if all(start >= LEAST and end <= GREATEST for _, start, end in expected):
        flow.commit()
        assert sorted(windows) == expected
    else:
        with pytest.raises(DlogError, match=f"size {size} around {at} has bounds beyond 64 bits: `at`") as refused:
            flow.commit()
        assert refused.value.diagnostics[0].code == "window-overflow"


@examples(100)
@given(st.lists(far, min_size=1, max_size=8), st.integers(1, 50))
def test_sessions_and_moving_windows_at_the_ends_of_64_bits(times: list[int], length: int) -> None:
    events = Counter(("k", at, 1) for at in times)
    flow = Dataflow()
    rows = flow.input(key=str, at=int, value=int)
    moved = rows.moving("at", by="key", range=length, n=moving.count()).capture()
    rows.insert(list(events.elements()))
    flow.commit()
    counts = [sum(at - length < other <= at for other in times) for at in times]
    assert moved.counts() == Counter(("k", at, 1, n) for at, n in zip(times, counts, strict=True))
    other = Dataflow()
    rows = other.input(key=str, at=int, value=int)
    runs = rows.session_window("at", length, by="key").capture()
    rows.insert(list(events.elements()))
    if max(times) + length <= GREATEST:
        other.commit()
        assert runs.counts() == windowed.sessions(events, length)
    else:
        with pytest.raises(DlogError, match=f"the window of gap {length} around .* has bounds beyond 64 bits"):
            other.commit()


def test_floats_have_windows_as_far_as_they_tell_them_apart() -> None:
    flow = Dataflow()
    rows = flow.input(at=float)
    windows = rows.tumbling_window("at", 10.0).capture()
    rows.insert([float("inf"), float("nan"), -float("inf"), 25.0, 1e15])
    flow.commit()
    assert sorted(windows) == [(25.0, 20.0, 30.0), (1e15, 1e15, 1e15 + 10)]
    rows.insert([1e300])
    with pytest.raises(DlogError, match=r"the window of size 10.0 around 1e\+300 has bounds that floats do not tell apart"):
        flow.commit()


def test_windows_are_fused_like_other_linear_operators() -> None:
    flow = Dataflow()
    rows = flow.input(at=int)
    logic = linear.filter(col("at") > 0).followed_by(linear.tumbling_window("at", 10))
    found = rows.join_function(logic).count(by="window_start").capture()
    assert flow.explain().splitlines()[0] == "1 Source -> (filter, tumbling_window, map) 2"
    rows.insert([3, 4, 12, -5])
    flow.commit()
    assert found.counts() == {(0, 2): 1, (10, 1): 1}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda rows: rows.tumbling_window("at", 0), "`size` must be a positive whole number below 2^62, not 0"),
        (lambda rows: rows.sliding_window("at", 5, 1.5), "`slide` must be a positive whole number below 2^62, not 1.5"),
        (lambda rows: rows.tumbling_window("key", 5), "`time` must be a column of integers or floats, not 'key'"),
        (lambda rows: rows.tumbling_window("at", 5, origin=0.5), "`origin` must be a value of kind int, not 0.5"),
        (lambda rows: rows.tumbling_window("at", 5, names=("x",)), "`names` must be two names, not ('x',)"),
        (lambda rows: rows.tumbling_window("at", 5, names=("at", "end")), "columns of one name: key, at, value, at, end"),
        (lambda rows: rows.session_window("at", -1), "`gap` must be a positive whole number below 2^62, not -1"),
        (lambda rows: rows.session_window("at", 1, by="at"), "`at` is of the key: it is the same for all rows of a group"),
        (lambda rows: rows.session_window("al", 1), "unknown column `al`"),
        (lambda rows: rows.moving("at", n=moving.count()), "`moving` needs either `rows` or `range`"),
        (lambda rows: rows.moving("at", rows=2, range=2), "`moving` needs either `rows` or `range`"),
        (lambda rows: rows.moving("at", rows=2, value=moving.count()), "columns of one name: at, key, value, value"),
        (lambda rows: rows.moving("at", rows=2, n="value"), "`n` must be an aggregate of a window, not 'value'"),
        (lambda rows: rows.moving("at", rows=2, n=moving.sum("key")), "`sum` must be an aggregate of numbers, not 'str'"),
        (lambda rows: rows.moving("key", rows=2), "`order` must be a column of integers or floats, not 'key'"),
        (lambda rows: rows.scan("at", step, "value"), "`scan` needs the state to start from: `scan(..., total=0)`"),
        (lambda r: r.explode("at", diff=(1, 0.5)).session_window("at", 3), "`session_window` needs diffs that are integers"),
    ],
)  # fmt: skip
def test_what_makes_no_window_is_refused(build: Callable[[Input], Collection], message: str) -> None:
    flow = Dataflow()
    rows = flow.input(key=str, at=int, value=int)
    with pytest.raises(DlogError) as refused:
        build(rows)
    assert refused.value.diagnostics[0].message == message
