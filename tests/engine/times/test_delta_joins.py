"""Which delta joins are right on which times: the facts that decide how joins are planned, each with its counterexample."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.times.altneu import AltNeu
from dlog.engine.times.lattice import Time, join


@dataclass(frozen=True)
class Update:
    """A change of a row; `live` where it belongs to the round at work, and so drives the join itself."""

    row: str
    time: Time
    diff: int
    live: bool = True


Pairs = dict[tuple[str, str, Time], int]
ROUND = 3


def updates(row: str, rounds: int, iterations: int) -> st.SearchStrategy[list[Update]]:
    made = st.builds(
        Update,
        st.sampled_from([row, row.upper()]),
        st.tuples(st.integers(0, rounds - 1), st.integers(0, iterations - 1)),
        st.sampled_from([1, 1, -1]),
    )
    return st.lists(made, min_size=1, max_size=4)


totally_ordered = st.tuples(updates("a", 4, 1), updates("b", 4, 1))
partially_ordered = st.tuples(updates("a", 3, 3), updates("b", 3, 3))
Sides = tuple[list[Update], list[Update]]


def summed(found: Iterable[tuple[str, str, Time, int]]) -> Pairs:
    counts: Counter[tuple[str, str, Time]] = Counter()
    for x, y, time, diff in found:
        counts[x, y, time] += diff
    return {key: diff for key, diff in counts.items() if diff}


def true_pairs(left: list[Update], right: list[Update]) -> Pairs:
    """Every pair with a live update, at the join of its times."""
    pairs = itertools.product(left, right)
    return summed((a.row, b.row, join(a.time, b.time), a.diff * b.diff) for a, b in pairs if a.live or b.live)


def by_calculus(left: list[Update], right: list[Update]) -> Pairs:
    """Differentiates one side, joins it with the other and integrates; the left side's changes see the right one at neu."""

    def changes(side: list[Update]) -> list[tuple[str, AltNeu, int]]:
        return [(u.row, AltNeu(u.time, neu), -u.diff if neu else u.diff) for u in side for neu in (False, True)]

    def met(side: list[Update], other: list[Update], nudge: bool) -> Iterable[tuple[str, str, Time, int]]:
        for (row, time, diff), u in itertools.product(changes(side), other):
            at = time.join(AltNeu(u.time, nudge))
            if not at.neu:
                yield row, u.row, at.time, diff * u.diff

    mirrored = ((y, x, time, diff) for x, y, time, diff in met(right, left, False))
    return summed(itertools.chain(met(left, right, True), mirrored))


def by_half_joins(left: list[Update], right: list[Update]) -> Pairs:
    """Each live change meets what the other side holds before it in the lexicographic order; ties go to the left."""
    forth = ((a, b) for a in left if a.live for b in right if b.time <= a.time)
    back = ((a, b) for b in right if b.live for a in left if a.time < b.time)
    return summed((a.row, b.row, join(a.time, b.time), a.diff * b.diff) for a, b in itertools.chain(forth, back))


def compacted(side: list[Update], since: Time) -> list[Update]:
    """Marks rounds before the one at work as history and advances them to `since`."""
    old = [replace(u, time=join(u.time, since), live=False) for u in side if u.time[0] < ROUND]
    return old + [u for u in side if u.time[0] >= ROUND]


def settled(side: list[Update]) -> list[Update]:
    """As `true_pairs` sees it: history of earlier rounds, with the times it had."""
    return [replace(u, live=u.time[0] >= ROUND) for u in side]


@given(totally_ordered)
def test_the_calculus_is_exact_on_totally_ordered_times(sides: Sides) -> None:
    assert by_calculus(*sides) == true_pairs(*sides)


def test_the_calculus_misses_matches_of_incomparable_times() -> None:
    left, right = [Update("a", (0, 1), 1)], [Update("b", (1, 0), 1)]
    assert true_pairs(left, right) == {("a", "b", (1, 1)): 1}
    assert by_calculus(left, right) == {}


def test_without_the_nudge_simultaneous_changes_count_twice() -> None:
    left, right = [Update("a", (1, 0), 1)], [Update("b", (1, 0), 1)]
    at_neu = ((a, b) for a in left for b in right)  # both sides' changes see the other side with its changes
    assert summed((a.row, b.row, a.time, 2 * a.diff * b.diff) for a, b in at_neu) == {("a", "b", (1, 0)): 2}
    assert by_calculus(left, right) == by_half_joins(left, right) == {("a", "b", (1, 0)): 1}


@given(partially_ordered)
def test_half_joins_are_exact_on_partially_ordered_times(sides: Sides) -> None:
    assert by_half_joins(*sides) == true_pairs(*sides)


@given(st.tuples(updates("a", ROUND + 1, 3), updates("b", ROUND + 1, 3)))
def test_half_joins_may_read_history_compacted_to_the_round_before(sides: Sides) -> None:
    left, right = (compacted(side, (ROUND - 1, 0)) for side in sides)
    assert by_half_joins(left, right) == true_pairs(settled(sides[0]), settled(sides[1]))


def test_half_joins_go_wrong_on_history_compacted_to_the_round_at_work() -> None:
    # The old `a` of iteration 2 moves behind the change of `b` at iteration 0, which then does not meet it.
    left, right = [Update("a", (1, 2), 1)], [Update("b", (ROUND, 0), 1)]
    truth = true_pairs(settled(left), settled(right))
    assert truth == {("a", "b", (ROUND, 2)): 1}
    assert by_half_joins(compacted(left, (ROUND - 1, 0)), compacted(right, (ROUND - 1, 0))) == truth
    assert by_half_joins(compacted(left, (ROUND, 0)), compacted(right, (ROUND, 0))) == {}
