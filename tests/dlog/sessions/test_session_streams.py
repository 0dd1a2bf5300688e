"""Many rounds at once, subscriptions, history and views; and all of it from several threads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from tests.dlog.sessions.test_sessions import CLOSURE, code, notes
from tests.examples import examples

DEGREES = """.decl edge(x: number, y: number)
.decl degree(x: number, n: number)
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
"""
STREAM = [(2, (1, 2), 1), (3, (1, 3), 1), (3, (7, 7), 1), (5, (1, 2), -1)]
BY_ROUND = {2: [((1, 1), 1)], 3: [((1, 1), -1), ((1, 2), 1), ((7, 1), 1)], 5: [((1, 1), 1), ((1, 2), -1)]}


def by_round(changes: dlog.Changes) -> dict[int, list[Any]]:
    return {round: sorted(part) for round, part in changes.by_round()}


def summed(items: Iterable[tuple[int, dlog.Changes]], up_to: int | None = None) -> set[Any]:
    """What the changes of these rounds add up to, which must be a set."""
    rows: Counter[Any] = Counter()
    for round, changes in items:
        if up_to is None or round <= up_to:
            for row, diff in changes:
                rows[row] += diff
    assert set(rows.values()) <= {0, 1}
    return {row for row, count in rows.items() if count}


# ----------------------------------------------------------------------------------------------------------- many rounds


@pytest.mark.parametrize(
    "changes",
    [
        STREAM,
        STREAM[::-1],
        {"x": [1, 1, 7, 1], "y": [2, 3, 7, 2], "round": [2, 3, 3, 5], "diff": [1, 1, 1, -1]},
        pa.table({"round": [2, 3, 3, 5], "y": [2, 3, 7, 2], "x": [1, 1, 7, 1], "diff": [1, 1, 1, -1]}),
        {"x": np.array([1, 1, 7, 1]), "y": np.array([2, 3, 7, 2]), "round": np.array([2, 3, 3, 5]), "diff": [1, 1, 1, -1]},
        [(2, (1, 2), -1), *STREAM],
        [*STREAM, (3, (9, 9), 1), (3, (9, 9), -1)],
    ],
    ids=["tuples", "in any order", "columns", "arrow", "numpy", "the last of a round counts", "or cancels"],
)
def test_rounds_committed_at_once_have_their_own_changes(changes: Any) -> None:
    s = dlog.session(DEGREES)
    round = s.commit_rounds({"edge": changes})
    assert (round.first, round.number, s.round) == (1, 5, 5)
    assert by_round(round.changes("degree")) == BY_ROUND
    assert sorted(s["degree"]) == [(1, 1), (7, 1)]


def test_a_stream_of_changes_of_several_relations_is_applied() -> None:
    s = dlog.session(DEGREES + ".decl seen(x: symbol)\n")
    stream = [(1, "edge", 1, (1, 2)), (1, "seen", 1, ("a",)), (2, "seen", -1, ("a",)), (2, "edge", 1, (1, 3))]
    round = s.apply(stream)
    assert by_round(round.changes("seen")) == {1: [(("a",), 1)], 2: [(("a",), -1)]}
    assert by_round(round.changes("degree")) == {1: [((1, 1), 1)], 2: [((1, 1), -1), ((1, 2), 1)]}


def test_the_changes_of_one_session_feed_another() -> None:
    text = ".decl name(x: symbol, p: P)\n.type P = [n: number]\n.decl twice(x: symbol)\ntwice(cat(x, x)) :- name(x, _).\n"
    first, second = dlog.session(text), dlog.session(text)
    second.insert("name", ("zzz", (0,)))
    second.commit()
    round = first.apply([(2, "name", 1, ("a", (1,))), (3, "name", 1, ("b", None)), (4, "name", -1, ("a", (1,)))])
    fed = second.commit_rounds({"name": round.changes("name")})
    assert by_round(fed.changes("twice")) == {2: [(("aa",), 1)], 3: [(("bb",), 1)], 4: [(("aa",), -1)]}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(1, (1, 2), 1)], "past-round"),
        ([(3, (1, 2), 2)], "bad-diff"),
        ([(3, (1, 2))], "bad-rows"),
        ([(2.5, (1, 2), 1)], "bad-columns"),
        ({"x": [1], "y": [2]}, "bad-columns"),
        ({"x": [1], "y": [2], "round": [2, 3]}, "bad-columns"),
    ],
)
def test_wrong_streams_are_refused(changes: Any, expected: str) -> None:
    s = dlog.session(DEGREES, {"edge": [(1, 1)]})
    with pytest.raises(dlog.DlogError) as raised:
        s.commit_rounds({"edge": changes})
    assert (code(raised), s.round) == (expected, 1)


def test_rounds_are_not_committed_over_staged_changes() -> None:
    s = dlog.session(DEGREES)
    s.insert("edge", (1, 1))
    with pytest.raises(dlog.DlogError) as raised:
        s.commit_rounds({"edge": STREAM})
    assert code(raised) == "staged-changes"


def test_a_failing_round_fails_the_whole_commit() -> None:
    s = dlog.session(".decl n(x: number)\n.decl q(y: number)\nq(100 / x) :- n(x).\n", {"n": [(5,)]})
    with pytest.raises(dlog.DlogError):
        s.commit_rounds({"n": [(2, (4,), 1), (3, (0,), 1)]})
    assert (s.round, list(s["q"]), list(s["n"])) == (1, [(20,)], [(5,)])


# --------------------------------------------------------------------------------------------------------- subscriptions


def fetched(subscription: dlog.Subscription) -> list[tuple[int, list[Any]]]:
    return [(round, sorted(changes)) for round, changes in subscription.fetch()]


def test_a_subscriber_gets_a_snapshot_and_then_each_round() -> None:
    s = dlog.session(DEGREES, {"edge": [(1, 1)]})
    subscription = s.subscribe("degree")
    s.apply([(2, "edge", 1, (1, 2)), (4, "edge", 1, (2, 2))])
    s.insert("edge", (2, 3))
    s.commit()
    assert fetched(subscription) == [
        (1, [((1, 1), 1)]),
        (2, [((1, 1), -1), ((1, 2), 1)]),
        (4, [((2, 1), 1)]),
        (5, [((2, 1), -1), ((2, 2), 1)]),
    ]
    assert fetched(subscription) == []


def test_without_a_snapshot_only_later_changes_come() -> None:
    s = dlog.session(DEGREES, {"edge": [(1, 1)]})
    subscription = s.subscribe("degree", snapshot=False)
    s.insert("edge", (2, 2))
    s.commit()
    assert fetched(subscription) == [(2, [((2, 1), 1)])]


def test_rounds_that_change_nothing_come_only_as_progress() -> None:
    s = dlog.session(DEGREES, {"edge": [(1, 1)]})
    plain, progress = s.subscribe("degree"), s.subscribe("degree", progress=True)
    s.commit()
    s.apply([(3, "edge", 1, (2, 2)), (6, "edge", 1, (1, 1))])
    assert [round for round, _ in plain.fetch()] == [1, 3]
    assert [(round, len(changes)) for round, changes in progress.fetch()] == [(1, 1), (2, 0), (3, 1), (6, 0)]


def test_1_s_a_subscription_starts_in_the_past_or_the_future_and_ends() -> None:
    s = dlog.session(DEGREES, history=10)
    late = s.subscribe("edge", as_of=3, up_to=5)
    for i in range(1, 7):
        s.insert("edge", (i, i))
        s.commit()
    early = s.subscribe("edge", as_of=2, up_to=4)
    assert fetched(early) == [(2, [((1, 1), 1), ((2, 2), 1)]), (3, [((3, 3), 1)])]
    assert fetched(late) == [(3, [((i, i), 1) for i in (1, 2, 3)]), (4, [((4, 4), 1)])]
    assert early.closed
    assert late.closed


def test_a_future_start_inside_a_commit_of_many_rounds() -> None:
    s = dlog.session(DEGREES)
    with_rows, without = s.subscribe("edge", as_of=3), s.subscribe("edge", as_of=3, snapshot=False)
    s.apply([(2, "edge", 1, (1, 1)), (3, "edge", 1, (2, 2)), (4, "edge", -1, (1, 1))])
    assert fetched(with_rows) == [(3, [((1, 1), 1), ((2, 2), 1)]), (4, [((1, 1), -1)])]
    assert fetched(without) == [(4, [((1, 1), -1)])]


def test_a_past_that_is_not_kept_cannot_be_subscribed_to() -> None:
    s = dlog.session(DEGREES, {"edge": [(1, 1)]})
    s.commit()
    with pytest.raises(dlog.DlogError) as raised:
        s.subscribe("edge", as_of=1)
    assert code(raised) == "unknown-round"


def test_a_callback_is_called_with_every_round() -> None:
    s = dlog.session(DEGREES, {"edge": [(1, 1)]})
    seen: list[tuple[int, list[Any]]] = []
    with s.subscribe("degree", lambda round, changes: seen.append((round, sorted(changes)))):
        s.apply([(2, "edge", 1, (2, 2)), (3, "edge", -1, (2, 2))])
    s.insert("edge", (5, 5))
    s.commit()
    assert seen == [(1, [((1, 1), 1)]), (2, [((2, 1), 1)]), (3, [((2, 1), -1)])]


def test_a_callback_may_stage_but_not_commit() -> None:
    s = dlog.session(DEGREES)
    refused: list[str] = []

    def react(round: int, changes: dlog.Changes) -> None:
        s.insert("edge", (round + 1, 0))
        try:
            s.commit()
        except dlog.DlogError as error:
            refused.append(error.diagnostics[0].code)

    s.subscribe("edge", react)
    s.insert("edge", (1, 0))
    s.commit()
    assert (refused, s.staged) == (["commit-inside-commit"], {"edge": 1})
    s.commit()
    assert sorted(s["edge"]) == [(1, 0), (2, 0)]


def test_what_a_callback_raises_comes_out_of_the_commit_when_all_have_been_called() -> None:
    s = dlog.session(DEGREES)
    seen: list[int] = []

    def fail(round: int, changes: dlog.Changes) -> None:
        raise KeyError("mine")

    s.subscribe("edge", fail)
    s.subscribe("edge", lambda round, changes: seen.append(round))
    s.insert("edge", (1, 1))
    with pytest.raises(KeyError, match="mine"):
        s.commit()
    assert (seen, s.round, s.staged, s.rows("edge")) == ([1], 1, {}, 1)


def test_a_subscription_whose_first_callback_raises_does_not_begin() -> None:
    s = dlog.session(DEGREES, {"edge": [(1, 1)]})

    def fail(round: int, changes: dlog.Changes) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        s.subscribe("edge", fail)
    s.insert("edge", (2, 2))
    assert int(s.commit()) == 2


def test_iterating_waits_for_rounds_until_the_session_is_closed() -> None:
    s = dlog.session(DEGREES)
    subscription, got = s.subscribe("degree"), []
    reader = threading.Thread(target=lambda: got.extend((round, sorted(changes)) for round, changes in subscription))
    reader.start()
    for i in (1, 2):
        s.insert("edge", (i, i))
        s.commit()
    s.close()
    reader.join(20)
    assert got == [(1, [((1, 1), 1)]), (2, [((2, 1), 1)])]


@examples(30)
@given(
    story=st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=4), max_size=8),
    start=st.integers(1, 8),
)
def test_snapshot_and_changes_add_up_to_the_relation_at_every_round(story: list[Any], start: int) -> None:
    s = dlog.session(DEGREES, {"edge": [(0, 0)]}, history=100)
    whole, later = s.subscribe("degree", progress=True), None
    states = {1: set(s["degree"])}
    for round in story:
        for x, y, comes in round:
            (s.insert if comes else s.remove)("edge", (x, y))
        if s.round == start:
            later = s.subscribe("degree")
        number = s.commit().number
        states[number] = set(s["degree"])
    items = whole.fetch()
    past = s.subscribe("degree", as_of=min(start, s.round)).fetch()
    for round, state in states.items():
        assert summed(items, round) == state
        if round >= start:
            assert summed(past, round) == state
    if later is not None:
        assert summed(later.fetch()) == states[s.round]


# ----------------------------------------------------------------------------------------------------- history and views


def test_past_rounds_are_readable_as_far_as_history_goes() -> None:
    s = dlog.session(CLOSURE, history=2)
    for i in range(1, 6):
        s.insert("edge", (i, i + 1))
        s.commit()
    assert [len(s.at(round)["path"]) for round in (3, 4, 5)] == [6, 10, 15]
    assert sorted(s.at(3).query("path(X, 4)")) == [(1,), (2,), (3,)]
    for round in (2, 6):
        with pytest.raises(dlog.DlogError) as raised:
            s.at(round)
        assert code(raised) == "unknown-round"


def test_rounds_inside_a_commit_of_many_are_readable() -> None:
    s = dlog.session(CLOSURE, history=10)
    s.apply([(i, "edge", 1, (i, i + 1)) for i in range(1, 5)] + [(4, "edge", -1, (1, 2)), (6, "edge", 1, (1, 2))])
    assert [sorted(s.at(round)["edge"]) for round in (0, 1, 4, 5)] == [
        [],
        [(1, 2)],
        [(2, 3), (3, 4), (4, 5)],
        [(2, 3), (3, 4), (4, 5)],
    ]


def test_history_can_begin_later_and_end() -> None:
    s = dlog.session(CLOSURE, {"edge": [(1, 2)]})
    s.history(5)
    s.insert("edge", (2, 3))
    s.commit()
    assert s.rows("path") == 3
    assert list(s.at(1)["path"]) == [(1, 2)]
    s.history(0)
    with pytest.raises(dlog.DlogError):
        s.at(1)


@pytest.mark.parametrize("rounds", [-1, 1.5])
def test_a_history_is_a_number_of_rounds(rounds: Any) -> None:
    with pytest.raises(dlog.DlogError) as raised:
        dlog.session(CLOSURE, history=rounds)
    assert code(raised) == "bad-history"


def test_an_open_view_keeps_its_round_without_history() -> None:
    s = dlog.session(CLOSURE, {"edge": [(1, 2)]})
    with s.at(1) as view:
        for i in (2, 3):
            s.insert("edge", (i, i + 1))
            s.remove("edge", (1, 2))
            s.commit()
        assert list(view["path"]) == [(1, 2)]
        assert list(view.query("path(1, X)")) == [(2,)]
        assert (list(view), "path" in view, len(view)) == (["edge", "path"], True, 2)
    with pytest.raises(dlog.DlogError) as raised:
        view["edge"]
    assert code(raised) == "closed-view"
    with pytest.raises(dlog.DlogError) as raised:
        s.at(1)
    assert code(raised) == "unknown-round"
    assert "history" in notes(raised)


# --------------------------------------------------------------------------------------------------------------- threads


def test_readers_see_whole_rounds_while_others_commit() -> None:
    """Every round moves one token from one node to the next; a reader must see exactly one, in both relations alike."""
    text = ".decl at(x: number)\n.decl twice(x: number)\ntwice(2 * x) :- at(x).\n"
    s = dlog.session(text, {"at": [(0,)]})
    done, wrong = threading.Event(), []

    def read() -> None:
        last = 0
        while not done.is_set():
            with s.at() as view:
                rows, doubled = list(view["at"]), list(view["twice"])
            if len(rows) != 1 or doubled != [(2 * rows[0][0],)] or rows[0][0] < last:
                wrong.append((rows, doubled, last))
            last = rows[0][0]
            if len(list(s["twice"])) != 1:
                wrong.append("twice")

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for i in range(150):
        with s.transaction():
            s.remove("at", (i,))
            s.insert("at", (i + 1,))
    done.set()
    for reader in readers:
        reader.join(20)
    assert wrong == []


def test_threads_that_commit_take_turns() -> None:
    s = dlog.session(".decl account(name: number, cents: number)\n", {"account": [(1, 0)]})

    def deposit() -> None:
        for _ in range(25):
            with s.transaction():
                [(name, cents)] = s["account"]
                s.upsert("account", (name, cents + 1))

    threads = [threading.Thread(target=deposit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert list(s["account"]) == [(1, 100)]
    assert s.round == 101


def test_changes_that_were_read_stay_when_the_next_commit_comes() -> None:
    """Ten of an input in one round, so that it is looked whether a row repeats; none does."""
    s = dlog.session(".decl e(x: number, y: number)\n.decl back(x: number, y: number)\nback(y, x) :- e(x, y).\n", history=9)
    s.insert("e", [(0, 0)])
    s.commit()
    s.insert("e", [(1, y) for y in range(10)])
    came = s.commit().changes("e")
    s.remove("e", [(1, y) for y in range(10)])
    s.commit()
    assert came.diffs.tolist() == [1] * 10
    assert sorted(s.at(1)["e"]) == [(0, 0)]
    assert sorted(s.at(2)["e"]) == [(0, 0), *((1, y) for y in range(10))]


CHANGE = st.tuples(st.integers(1, 6), st.tuples(st.integers(0, 2), st.integers(0, 1)), st.sampled_from([1, -1]))


@examples(60)
@given(st.lists(CHANGE, max_size=40))
def test_the_last_change_of_a_row_in_a_round_counts_whatever_their_number(changes: list[Any]) -> None:
    s = dlog.session(DEGREES)
    s.commit_rounds({"edge": changes})
    ordered = sorted(enumerate(changes), key=lambda item: (item[1][0], item[0]))
    last = {row: diff for _, (_, row, diff) in ordered}
    assert set(s["edge"]) == {row for row, diff in last.items() if diff > 0}


@pytest.mark.parametrize("size", [1, 7, 8, 9, 20])
def test_repeated_rows_are_found_in_rounds_of_any_size(size: int) -> None:
    """The first and the last change of a round are about the same row."""
    rows = [(n, n) for n in range(size)] + [(0, 0)]
    s = dlog.session(DEGREES)
    s.commit_rounds({"edge": [(1, row, 1) for row in rows[:-1]] + [(1, rows[-1], -1), (2, (50, 50), 1)]})
    assert set(s["edge"]) == {*rows[1:-1], (50, 50)}


def test_arrays_that_change_between_insert_and_commit_are_rows_as_they_were() -> None:
    s = dlog.session(DEGREES)
    rows, column = np.array([[1, 2], [3, 4]]), np.array([5, 6])
    s.insert("edge", rows)
    s.insert("edge", {"x": column, "y": column})
    rows[:] = 0
    column[:] = 0
    s.commit()
    assert set(s["edge"]) == {(1, 2), (3, 4), (5, 5), (6, 6)}
