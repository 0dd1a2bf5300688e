"""Subscriptions: whoever joins when and however gets the relation, round by round, and nothing else."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from tests.dlog.persistence.state_sessions import PATHS, Open, code, put
from tests.dlog.sessions.test_history import commit, states_by_round
from tests.examples import examples
from tests.rounds import Story, grouped, stories
from tests.strategies import random_programs

PRICES = ".decl price(item: symbol, euros: number)\n"


@examples(50)
@given(story=stories(random_programs(), most=8), data=st.data())
def test_1_s_subscribers_that_join_at_any_round_get_the_relation_exactly(story: Story, data: st.DataObject) -> None:
    with dlog.session(story.case.text, history=4, threads=1) as s:
        states, done, joined = states_by_round(story, s.round), 0, []
        every = s.round + len(story.rounds)
        for size in grouped(len(story.rounds), story.groups):
            if data.draw(st.booleans(), "somebody joins"):
                name = data.draw(st.sampled_from(list(s)))
                question = f"?- {name}({', '.join(f'V{k}' for k in range(s.program.relations[name].arity))})."
                about = data.draw(st.sampled_from([name, question]))
                terms = {
                    "as_of": data.draw(st.one_of(st.none(), st.integers(max(0, s.round - 4), every))),
                    "up_to": data.draw(st.one_of(st.none(), st.integers(0, every + 2))),
                    "snapshot": data.draw(st.booleans()),
                    "progress": data.draw(st.booleans()),
                }
                joined.append((name, s.round, terms, s.subscribe(about, **terms)))
            commit(s, story.rounds[done : done + size])
            done += size
        for name, round, terms, subscription in joined:
            check(subscription.fetch(), round if terms["as_of"] is None else terms["as_of"], terms, name, states)


def check(items: list[Any], start: int, terms: dict[str, Any], name: str, states: dict[int, Any]) -> None:
    last = max(states)
    end = last + 1 if terms["up_to"] is None else min(terms["up_to"], last + 1)
    rounds = [round for round, _ in items]
    assert rounds == sorted(set(rounds)) and all(start <= round < end for round in rounds)
    if terms["progress"] and start < end:
        assert rounds[:1] == [start] and rounds[-1] == end - 1
    if not terms["progress"]:
        assert all(len(changes) for _, changes in items)
    before = states[start][name].keys() if start < end and not terms["snapshot"] else set()
    for round in range(start, end):
        changed = summed_from(before, items, round)
        assert changed == states[round][name].keys(), f"{name} as of round {round}"


def summed_from(before: Any, items: list[Any], upto: int) -> set[str]:
    count = dict.fromkeys(before, 1)
    for round, changes in items:
        for row, diff in changes if round <= upto else ():
            count[repr(row)] = count.get(repr(row), 0) + diff
    assert set(count.values()) <= {0, 1}
    return {row for row, times in count.items() if times}


def test_1_s_progress_goes_up_to_the_end_inside_a_commit_of_many_rounds() -> None:
    s = dlog.session(".decl n(x: number)\n")
    found = s.subscribe("n", up_to=4, progress=True)
    s.apply([(1, "n", 1, (1,)), (5, "n", 1, (2,))])
    assert [(n, len(c)) for n, c in found.fetch()] == [(0, 0), (1, 1), (3, 0)]


def test_1_s_a_subscription_that_ends_before_it_begins_gets_nothing() -> None:
    s = dlog.session(".decl n(x: number)\n", {"n": [(1,)]})
    found = [s.subscribe("n", as_of=as_of, up_to=1, progress=True) for as_of in (None, 3)]
    s.apply([(2, "n", 1, (2,)), (4, "n", 1, (3,))])
    assert [(each.closed, each.fetch()) for each in found] == [(True, []), (True, [])]


# -------------------------------------------------------------------------------------------------------------- questions


def test_the_answers_to_a_question_are_followed() -> None:
    s = dlog.session(PATHS, {"edge": [(1, 2)]}, history=10)
    far = s.subscribe("?- path(1, X), !edge(1, X).")
    near = s.subscribe(".decl near(x: number) near(x) :- edge(1, x).\n?- near(X).", snapshot=False)
    s.insert("edge", [(2, 3), (3, 4)])
    s.commit()
    s.apply([(3, "edge", 1, (1, 3)), (4, "edge", -1, (1, 2)), (6, "edge", 1, (7, 7))])
    assert [(n, sorted(c)) for n, c in far.fetch()] == [(2, [((3,), 1), ((4,), 1)]), (3, [((3,), -1)])]
    assert [(n, sorted(c)) for n, c in near.fetch()] == [(3, [((3,), 1)]), (4, [((2,), -1)])]
    late = s.subscribe("?- path(1, X), !edge(1, X).", as_of=2)
    assert [(n, sorted(c)) for n, c in late.fetch()] == [(2, [((3,), 1), ((4,), 1)]), (3, [((3,), -1)])]


def test_a_question_is_followed_when_rules_change_until_it_means_nothing() -> None:
    s = dlog.session(PATHS, {"edge": [(1, 2), (2, 3)]})
    found = s.subscribe("?- path(3, X).", snapshot=False)
    s.add_rules("path(y, x) :- path(x, y).")
    assert [(n, sorted(c)) for n, c in found.fetch()] == [(2, [((1,), 1), ((2,), 1), ((3,), 1)])]
    s.drop_relation("path")
    assert found.closed
    assert code(lambda: found.fetch()) == "unknown-relation"


def test_a_question_that_fails_ends_its_subscription_and_no_commit() -> None:
    s = dlog.session(".decl n(x: number)\n", {"n": [(5,)]})
    found = s.subscribe("?- n(X), Y = 100 / X.")
    s.insert("n", (0,))
    assert int(s.commit()) == 2
    assert found.closed and len(found.fetch()) == 1
    assert code(lambda: found.fetch()) == "division-by-zero"
    assert found.fetch() == []


def test_a_question_about_the_past_derives_what_a_crash_left_behind(reopen: Open) -> None:
    s = reopen(history=9)
    for x in (1, 2, 3):
        s.insert("edge", (x, x + 1))
        s.commit()
    s = reopen(history=9)
    assert sorted(s.at(2).query("?- path(1, X).")) == [(2,), (3,)]
    s = reopen(history=9)
    assert [(n, sorted(c)) for n, c in s.subscribe("?- path(1, X).", as_of=2).fetch()] == [
        (2, [((2,), 1), ((3,), 1)]),
        (3, [((4,), 1)]),
    ]


@pytest.mark.parametrize("ends", ["closes", "crashes"])
def test_who_subscribes_after_a_restart_misses_nothing(reopen: Open, ends: str) -> None:
    s = reopen(history=9)
    for x in (1, 2, 3):
        s.insert("edge", (x, x + 1))
        s.commit()
    if ends == "closes":
        s.close()
    s = reopen(history=9)
    for about in ("edge", "?- edge(X, Y)."):
        found = s.subscribe(about, as_of=1)
        s.remove("edge", (1, 2))
        last = s.commit().number
        assert [(n, sorted(c)) for n, c in found.fetch()][:3] == [
            (1, [((1, 2), 1)]),
            (2, [((2, 3), 1)]),
            (3, [((3, 4), 1)]),
        ]
        s.insert("edge", (1, 2))
        s.commit()
        assert [(n, sorted(c)) for n, c in found.fetch()][-1] == (last + 1, [((1, 2), 1)])


# -------------------------------------------------------------------------------------------------------------- envelopes


def test_1_s_upserts_say_what_becomes_of_each_key() -> None:
    s = dlog.session(PRICES, {"price": [("tea", 3), ("rum", 9)]}, history=5)
    prices = s.subscribe("price", key="item")
    later = s.subscribe("price", key=["item"], snapshot=False)
    s.upsert("price", ("tea", 4))
    s.insert("price", ("ale", 2))
    s.commit()
    s.remove("price", ("rum", 9))
    s.commit()
    (first, all), *rest = prices.fetch()
    assert (first, sorted(all)) == (1, [(("rum",), ("rum", 9)), (("tea",), ("tea", 3))])
    assert [(n, sorted(u)) for n, u in rest] == [
        (2, [(("ale",), ("ale", 2)), (("tea",), ("tea", 4))]),
        (3, [(("rum",), None)]),
    ]
    assert [(n, sorted(u)) for n, u in later.fetch()] == [(n, sorted(u)) for n, u in rest]
    last = rest[-1][1]
    assert (last.name, last.key, last.deleted(), last.upserted()) == ("price", ("item",), [("rum",)], [])
    assert last.to_arrow().to_pylist() == [{"item": "rum", "euros": None, "state": "delete"}]
    assert str(last).startswith("<dlog.Upserts of price(item, euros): 0 upserts, 1 deletes")


@examples(40)
@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 3))), max_size=4), max_size=8))
def test_upserts_add_up_to_the_rows_by_key(rounds: list[list[tuple[int, int | None]]]) -> None:
    s = dlog.session(".decl at(x: number, y: number)\n")
    found, held = s.subscribe("at", key="x"), dict[int, int]()
    shown: dict[int, int] = {}
    for round in rounds:
        for x, y in round:
            if y is None:
                s.remove("at", [(x, y) for y in range(4)])
                held.pop(x, None)
            else:
                s.upsert("at", (x, y))
                held[x] = y
        s.commit()
        for _, upserts in found.fetch():
            for (x,), row in upserts:
                assert shown.get(x) != (None if row is None else row[1])
                if row is None:
                    del shown[x]
                else:
                    shown[x] = row[1]
        assert shown == held


def test_1_s_events_have_the_row_before_and_the_one_after() -> None:
    s = dlog.session(PRICES, {"price": [("tea", 3), ("rum", 9)]}, history=5)
    events = s.subscribe("price", key="item", envelope="debezium")
    later = s.subscribe("price", key="item", envelope="debezium", snapshot=False)
    s.upsert("price", ("tea", 4))
    s.insert("price", ("ale", 2))
    s.remove("price", ("rum", 9))
    s.commit()
    (first, all), (second, changed) = events.fetch()
    assert (first, {key: pair for key, *pair in all}) == (1, {("rum",): [None, ("rum", 9)], ("tea",): [None, ("tea", 3)]})
    assert (second, {key: pair for key, *pair in changed}) == (
        2,
        {("ale",): [None, ("ale", 2)], ("rum",): [("rum", 9), None], ("tea",): [("tea", 3), ("tea", 4)]},
    )
    assert [(n, sorted(e, key=str)) for n, e in later.fetch()] == [(2, sorted(changed, key=str))]
    assert (changed.name, changed.key, changed.columns) == ("price", ("item",), ("item", "euros"))
    assert {key: each for (key, *_), each in zip(changed, changed.operations, strict=True)} == {
        ("ale",): "c", ("rum",): "d", ("tea",): "u",
    }  # fmt: skip
    assert sorted(changed.to_arrow().to_pylist(), key=str) == [
        {"item": "ale", "before_euros": None, "after_euros": 2, "op": "c"},
        {"item": "rum", "before_euros": 9, "after_euros": None, "op": "d"},
        {"item": "tea", "before_euros": 3, "after_euros": 4, "op": "u"},
    ]
    assert str(changed).startswith("<dlog.ChangeEvents of price(item, euros): 1 created, 1 updated, 1 deleted")
    none: list[dict[str, Any]] = [{}, {"order": "item"}]
    for keyless in none:
        assert code(lambda keyless=keyless: s.subscribe("price", envelope="debezium", **keyless)) == "bad-key"
    with pytest.raises(dlog.DlogError, match="`envelope` must be one of upsert, debezium, not 'avro'"):
        s.subscribe("price", key="item", envelope="avro")  # type: ignore[arg-type]


KINDS = """.type Pair = [left: number, right: symbol]
.decl at(s: symbol, f: float, n: number, u: unsigned, p: Pair)
"""
values = st.tuples(
    st.sampled_from([0.0, -1.5, float("inf")]),
    st.sampled_from([0, 2**64 - 1]),
    st.sampled_from([None, (1, "x"), (2, "y")]),
)
keyed = st.tuples(st.integers(0, 1), st.sampled_from("ab"), st.one_of(st.none(), values))


@examples(40)
@given(st.lists(st.lists(keyed, max_size=5), max_size=8), st.integers(1, 3))
def test_events_lead_from_row_to_row_of_a_key(rounds: list, together: int) -> None:
    """A key of two columns, which are neither first nor side by side; several rounds in a commit."""
    held: dict[tuple, tuple] = {}
    changes, expected = [], []
    for number, round in enumerate(rounds, 1):
        before = dict(held)
        for n, s, others in round:
            held.pop((n, s), None)
            if others is not None:
                f, u, p = others
                held[n, s] = (s, f, n, u, p)
        changes += [(number, "at", -1, row) for key, row in before.items() if held.get(key) != row]
        changes += [(number, "at", 1, row) for key, row in held.items() if before.get(key) != row]
        keys = [key for key in before | held if before.get(key) != held.get(key)]
        expected += [(number, key, before.get(key), held.get(key)) for key in keys]
    session = dlog.session(KINDS)
    events = session.subscribe("at", key=["n", "s"], envelope="debezium")
    for begin in range(0, len(rounds), together):
        numbers = range(begin + 1, begin + 1 + together)
        session.apply([change for change in changes if change[0] in numbers])
    found = [(round, *event) for round, each in events.fetch() for event in each]
    assert sorted(found, key=str) == sorted(expected, key=str)


@examples(40)
@given(st.lists(st.integers(0, 4), max_size=8), st.integers(1, 9))
def test_1_s_fetching_so_many_changes_parts_no_round(sizes: list[int], most: int) -> None:
    s = dlog.session(".decl n(x: number)\n")
    found = s.subscribe("n", progress=True, snapshot=False)
    for round, size in enumerate(sizes, 1):
        s.insert("n", [(10 * round + k,) for k in range(size)])
        s.commit()
    taken: list[list] = []
    while items := found.fetch(0.0, most):
        taken.append([(round, len(changes)) for round, changes in items])
    assert [item for items in taken for item in items] == [(0, 0), *enumerate(sizes, 1)]
    for items, following in zip(taken, [*taken[1:], None], strict=True):
        assert len(items) == 1 or sum(size for _, size in items) <= most
        if following is not None:
            assert sum(size for _, size in items) + following[0][1] > most
    with pytest.raises(dlog.DlogError, match="`most` must be a number of changes, 1 or more, not 0"):
        found.fetch(0.0, 0)


def test_a_key_that_is_none_ends_the_subscription() -> None:
    s = dlog.session(PRICES, {"price": [("tea", 3)]})
    prices = s.subscribe("price", key="item")
    s.insert("price", ("tea", 4))
    s.commit()
    assert len(prices.fetch()) == 1
    with pytest.raises(dlog.DlogError, match="item is no key of `price`: several rows have 'tea'"):
        prices.fetch()
    assert prices.closed


def test_1_s_the_changes_of_a_round_come_in_order() -> None:
    s = dlog.session(PRICES)
    up, down = s.subscribe("price", order="euros"), s.subscribe("price", order=["-item", "euros"])
    s.insert("price", [("tea", 30), ("rum", -9), ("ale", 4), ("tea", 5)])
    s.commit()
    assert [row for row, _ in up.fetch()[0][1]] == [("rum", -9), ("ale", 4), ("tea", 5), ("tea", 30)]
    assert [row for row, _ in down.fetch()[0][1]] == [("tea", 5), ("tea", 30), ("rum", -9), ("ale", 4)]


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ({"key": "euro"}, "`price` has no column `euro`: it has item, euros"),
        ({"order": "-prize"}, "`price` has no column `prize`: it has item, euros"),
        ({"order": "item", "key": "item"}, "`order` is for changes with diffs, not for those by `key`"),
        ({"order": 3}, "`order` must be the names of columns, not 3"),
        ({"limit": -1}, "`limit` must be a number of changes, 0 or more, not -1"),
        ({"slow": "never"}, "`slow` must be one of end, wait, not 'never'"),
    ],
)
def test_terms_that_mean_nothing_are_refused(terms: dict[str, Any], expected: str) -> None:
    s = dlog.session(PRICES, {"price": [("tea", 3)]})
    with pytest.raises(dlog.DlogError) as raised:
        s.subscribe("price", **terms)
    assert expected in str(raised.value)
    s.insert("price", ("rum", 9))
    s.commit()


def test_records_have_no_order_to_be_sorted_by() -> None:
    s = dlog.session(".type P = [x: number]\n.decl p(p: P)\n")
    with pytest.raises(dlog.DlogError, match="rows cannot be in order of `p`: it has records"):
        s.subscribe("p", order="p")


# ------------------------------------------------------------------------------------------------------------------- pace


def test_a_slow_subscriber_is_told_and_holds_no_more_than_its_limit() -> None:
    s = dlog.session(".decl n(x: number)\n")
    slow, other = s.subscribe("n", limit=10), s.subscribe("n")
    for x in range(50):
        s.insert("n", (x,))
        s.commit()
        assert slow.waiting <= 10
    assert slow.closed and not other.closed
    with pytest.raises(dlog.DlogError, match="the subscription to `n` has ended: 10 changes waited to be taken"):
        slow.fetch()
    assert slow.fetch() == []
    assert len(other.fetch()) == 50


def test_as_many_changes_wait_as_are_told() -> None:
    s = dlog.session(".decl n(x: number)\n")
    found, waiting = s.subscribe("n", limit=5), []
    while not found.closed:
        s.insert("n", (s.round,))
        s.commit()
        waiting.append(found.waiting)
    assert waiting == [1, 2, 3, 4, 5, 0]
    with pytest.raises(dlog.DlogError, match="5 changes waited to be taken when round 6 came"):
        found.fetch()


def test_commits_without_changes_that_wait_are_not_without_end() -> None:
    s = dlog.session(".decl n(x: number)\n")
    found = s.subscribe("n", progress=True, limit=5)
    for _ in range(9):
        s.commit()
    with pytest.raises(dlog.DlogError, match="5 changes waited"):
        found.fetch()


def test_one_commit_may_be_larger_than_the_limit() -> None:
    s = dlog.session(".decl n(x: number)\n", {"n": [(x,) for x in range(100)]})
    found = s.subscribe("n", limit=10)
    assert sum(len(changes) for _, changes in found.fetch()) == 100
    s.insert("n", [(-x - 1,) for x in range(100)])
    s.commit()
    assert sum(len(changes) for _, changes in found.fetch()) == 100


def test_commits_wait_for_a_slow_subscriber_who_asks_for_it() -> None:
    s = dlog.session(".decl n(x: number)\n")
    found, most, got = s.subscribe("n", limit=20, slow="wait"), 0, list[int]()

    def read() -> None:
        for _, changes in found:
            time.sleep(0.001)
            got.extend(x for (x,), _ in changes)
            assert s.rows("n") > 0 and len(s.query("?- n(X), X < 1.")) == 1  # what a reader asks waits for nobody

    reader = threading.Thread(target=read)
    reader.start()
    for x in range(100):
        s.insert("n", (x,))
        s.commit()
        most = max(most, found.waiting)
    found.close()
    reader.join(20)
    assert got == list(range(100)) and most <= 22


def test_who_reads_in_the_thread_that_commits_is_not_waited_for() -> None:
    s = dlog.session(".decl n(x: number)\n")
    found = s.subscribe("n", limit=5, slow="wait")
    found.fetch()
    for x in range(10):
        s.insert("n", (x,))
        s.commit()
    assert code(lambda: found.fetch()) == "slow-subscriber"


def test_rounds_can_be_awaited() -> None:
    s = dlog.session(PATHS)

    async def follow() -> list[Any]:
        found = s.subscribe("path")
        loop = asyncio.get_running_loop()

        def commits() -> None:
            for x in (1, 2, 3):
                s.insert("edge", (x, x + 1))
                s.commit()
                time.sleep(0.002)
            found.close()

        beside = loop.run_in_executor(None, commits)
        items = [(round, len(changes)) async for round, changes in found]
        await beside
        return items

    assert asyncio.run(follow()) == [(1, 1), (2, 2), (3, 3)]


def test_who_gives_up_awaiting_disturbs_no_commit() -> None:
    s = dlog.session(".decl n(x: number)\n", {"n": [(1,)]})
    found = s.subscribe("n")

    async def follow() -> int:
        taken = 0
        try:
            async with asyncio.timeout(0.05):
                async for _ in found:
                    taken += 1
        except TimeoutError:
            return taken
        return -1

    assert asyncio.run(follow()) == 1
    s.insert("n", (2,))
    s.commit()
    assert [(n, list(c)) for n, c in found.fetch()] == [(2, [((2,), 1)])]


def test_a_loop_that_was_closed_under_a_subscriber_disturbs_no_commit(reopen: Open) -> None:
    """As when a server's thread is stopped, and its tasks are not cancelled."""
    s = reopen()
    found, tasks = s.subscribe("path"), []

    async def follow() -> None:
        async for _ in found:
            pass

    def await_once() -> None:
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)  # which tells of tasks that nobody cancels
        tasks.append(loop.create_task(follow()))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    await_once()
    assert [put(s, (1, 2)), put(s, (2, 3))] == [1, 2]
    assert [(round, len(changes)) for round, changes in found.fetch()] == [(1, 1), (2, 2)]
    await_once()
    s.close()
    assert reopen().round == 2


def test_awaiting_ends_with_the_error_of_the_subscription() -> None:
    s = dlog.session(".decl n(x: number)\n")

    async def follow() -> None:
        found = s.subscribe("n", limit=0)
        for x in range(3):
            s.insert("n", (x,))
            s.commit()
        async for _ in found:
            pass

    with pytest.raises(dlog.DlogError, match="has ended"):
        asyncio.run(follow())
