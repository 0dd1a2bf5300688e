"""What the list of docs/dataflow.md says of SUBSCRIBE, as far as no other test has it: snapshots, and waiting for rounds."""

from __future__ import annotations

import threading
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.sessions.follow.subscriptions import Subscription
from tests.dlog.persistence.state_sessions import PATHS
from tests.examples import examples

edge = st.tuples(st.integers(0, 3), st.integers(0, 3))


def test_1_s_a_snapshot_comes_first_unless_it_is_not_wanted() -> None:
    s = dlog.session(PATHS, {"edge": [(1, 2)]})
    s.insert("edge", (2, 3))
    s.commit()
    whole, changes = s.subscribe("path"), s.subscribe("path", snapshot=False)
    s.remove("edge", (1, 2))
    s.commit()
    later = (3, [((1, 2), -1), ((1, 3), -1)])
    found = [[(n, sorted(c)) for n, c in each.fetch()] for each in (whole, changes)]
    assert found == [[(2, [((1, 2), 1), ((1, 3), 1), ((2, 3), 1)]), later], [later]]


@examples(30)
@given(st.lists(st.lists(st.tuples(edge, st.booleans()), max_size=3), min_size=1, max_size=6))
def test_1_s_a_snapshot_and_what_follows_add_up_to_all_changes(rounds: list[list[tuple[tuple[int, int], bool]]]) -> None:
    """A subscriber of each round has at every later progress what one from the start has."""
    s = dlog.session(PATHS, threads=1)
    every = [s.subscribe("path", progress=True)]
    held: list[Counter] = [Counter()]
    for round in rounds:
        for row, comes in round:
            (s.insert if comes else s.remove)("edge", row)
        s.commit()
        for subscription, sums in zip(every, held, strict=True):
            assert _add(subscription, sums) == s.round
            assert +sums == held[0] == Counter(list(s["path"]))
        every.append(s.subscribe("path", progress=True))
        held.append(Counter())


def _add(subscription: Subscription, sums: Counter) -> int:
    """Adds up what has come; the last round of it."""
    last = -1
    for round, changes in subscription.fetch():
        for row, diff in changes:
            sums[row] += diff
            if not sums[row]:
                del sums[row]
        assert round > last
        last = round
    return last


def test_1_s_fetching_waits_for_a_round_or_so_long() -> None:
    s = dlog.session(".decl n(x: number)\n")
    found = s.subscribe("n")
    assert found.fetch() == found.fetch(0.001) == []

    def commit() -> None:
        s.insert("n", (1,))
        s.commit()

    other = threading.Timer(0.01, commit)
    other.start()
    assert [(n, list(c)) for n, c in found.fetch(None)] == [(1, [((1,), 1)])]
    other.join()
    found.close()
    assert found.fetch(None) == []
