"""Event atoms and `now()` in the rules of sessions, against what they mean, round by round: through restarts, kills, rules that
come and go, and many rounds in one commit."""

from __future__ import annotations

import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.runtime.incremental.engines import kept, timed
from dlog.engine.runtime.incremental.engines.layered import Layered
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.incremental.engines.timed import MIN_CROWD, Shown
from dlog.sessions.persistence import checkpoints, recovery, running_images
from dlog.sessions.persistence.inspection import dump_state
from tests.examples import examples

Rows = dict[str, set[tuple[Any, ...]]]
Change = tuple[str, int, tuple[Any, ...]]

DECLARED = """
.decl order(o: number, item: symbol)
.decl lent(o: number, item: symbol) retract(original)
.decl price(item: symbol, p: number)
.decl spell(s: symbol, from: number, to: number)
.decl road(x: number, y: number, from: number, to: number)
.decl big(o: number, item: symbol)
big(o, item) :- order(o, item), o > 1.
.decl fault(n: number)
.decl ever(o: number)
.decl failed(n: number)
ever(o) :- @order(o, _).
failed(1 / n) :- fault(n), ever(_).
"""
EVENTS = {
    "pay": ".decl pay(o: number, p: number)\npay(o, 2 * p) :- @order(o, item), price(item, p).\n",
    "few": ".decl few(o: number, n: number)\n"
    "few(o, n) :- @order(o, item), n = count : { price(item, _) }, !spell(item, 0, 0).\n",
    "owe": ".decl owe(o: number, p: number)\nowe(o, p) :- @lent(o, item), price(item, p).\n",
    "tea": '.decl tea(p: number)\ntea(p) :- @big(_, "tea"), price("tea", p).\n',
    "bill": ".decl bill(o: number, p: number)\n.decl paid(o: number, p: number)\n"
    "paid(o, p) :- @order(o, item), price(item, p).\nbill(o, q) :- @paid(o, p), price(_, q), q >= p.\n",
    "offer": ".decl offer(o: number, s: symbol)\noffer(o, s) :- @order(o, _), spell(s, from, to), from <= now(), now() < to.\n",
}
CLOCKS = {
    "on": ".decl on(s: symbol)\non(s) :- spell(s, from, to), from <= now(), now() < to.\n",
    "late": ".decl late(s: symbol, d: number)\nlate(s, to - from) :- spell(s, from, to), now() > to + 1.\n",
    "exact": ".decl exact(s: symbol)\nexact(s) :- spell(s, from, _), from = now().\n"
    "exact(s) :- spell(s, _, to), to = now(), now() > 2.\n",
    "reach": ".decl reach(x: number)\nreach(1).\n"
    "reach(y) :- reach(x), road(x, y, from, to), from <= now(), now() <= to.\n",
    "both": ".decl both(s: symbol, t: symbol)\nboth(s, t) :- spell(s, a, b), spell(t, c, d), a <= now(), c < now(),\n"
    " now() < b, now() <= d, s != t.\n",
    "around": ".decl around(s: symbol, n: number)\n"
    "around(s, n) :- spell(s, a, b), price(s, p), n = a + p, n < now(), now() < b + p.\n",
    "began": ".decl shows(s: symbol)\nshows(s) :- spell(s, from, to), from <= now(), now() < to.\n"
    ".decl began(s: symbol, p: number)\nbegan(s, p) :- @shows(s), price(s, p).\n",
}


class Kept:
    """What events of a relation have met: a count for each event and answer, and the answers of each event when it came."""

    def __init__(self, original: bool, answers: Callable[[tuple[Any, ...], Rows, int], Iterable[tuple[Any, ...]]]) -> None:
        self.original, self.answers = original, answers
        self.there: set[tuple[Any, ...]] = set()
        self.counts: Counter[tuple[tuple[Any, ...], tuple[Any, ...]]] = Counter()

    def round(self, events: set[tuple[Any, ...]], rows: Rows, now: int) -> set[tuple[Any, ...]]:
        for event in self.there - events:
            if self.original:
                for key in [key for key in self.counts if key[0] == event]:
                    del self.counts[key]
            else:
                self.counts.subtract((event, answer) for answer in set(self.answers(event, rows, now)))
        for event in events - self.there:
            self.counts.update((event, answer) for answer in set(self.answers(event, rows, now)))
        self.there = set(events)
        return {answer for (_, answer), count in self.counts.items() if count > 0}


class Twin:
    """The rules' relations, from their definitions."""

    def __init__(self) -> None:
        self.kept = {
            "pay": Kept(False, lambda e, rows, now: ((e[0], 2 * p) for i, p in rows["price"] if i == e[1])),
            "few": Kept(False, few),
            "owe": Kept(True, lambda e, rows, now: ((e[0], p) for i, p in rows["price"] if i == e[1])),
            "tea": Kept(False, lambda e, rows, now: ((p,) for i, p in rows["price"] if e[1] == i == "tea")),
            "paid": Kept(False, lambda e, rows, now: ((e[0], p) for i, p in rows["price"] if i == e[1])),
            "bill": Kept(False, lambda e, rows, now: ((e[0], q) for _, q in rows["price"] if q >= e[1])),
            "offer": Kept(False, lambda e, rows, now: ((e[0], s) for s, a, b in rows["spell"] if a <= now < b)),
            "began": Kept(False, lambda e, rows, now: ((e[0], p) for i, p in rows["price"] if i == e[0])),
        }

    def round(self, rows: Rows, now: int, rules: Iterable[str]) -> Rows:
        spells, found = rows["spell"], Rows()
        found["on"] = found["shows"] = {(s,) for s, a, b in spells if a <= now < b}
        found["late"] = {(s, b - a) for s, a, b in spells if now > b + 1}
        found["exact"] = {(s,) for s, a, b in spells if a == now or (b == now > 2)}
        found["both"] = {(s, t) for s, a, b in spells for t, c, d in spells if a <= now < b and c < now <= d and s != t}
        found["around"] = {(s, a + p) for s, a, b in spells for i, p in rows["price"] if i == s and a + p < now < b + p}
        found["reach"] = {(1,)}
        for _ in rows["road"]:
            found["reach"] |= {(y,) for x, y, a, b in rows["road"] if (x,) in found["reach"] and a <= now <= b}
        events = {"pay": "order", "few": "order", "owe": "lent", "tea": "big", "paid": "order", "offer": "order"}
        rows = rows | {"big": {e for e in rows["order"] if e[0] > 1}, "shows": found["shows"]}
        for name in ("paid", *rules):
            if name == "paid" and "bill" in rules:
                rows["paid"] = found["paid"] = self.kept["paid"].round(rows["order"], rows, now)
            elif name in self.kept and name != "paid":
                source = {"bill": "paid", "began": "shows"}.get(name) or events[name]
                found[name] = self.kept[name].round(rows[source], rows, now)
        return found


def few(event: tuple[Any, ...], rows: Rows, now: int) -> Iterable[tuple[Any, ...]]:
    if (event[1], 0, 0) not in rows["spell"]:
        yield event[0], sum(i == event[1] for i, _ in rows["price"])


items = st.sampled_from(["tea", "rum"])
small = st.integers(0, 3)
rows_of = {
    "order": st.tuples(small, items),
    "lent": st.tuples(small, items),
    "price": st.tuples(items, small),
    "spell": st.tuples(items, st.integers(0, 9), st.integers(0, 12)),
    "road": st.tuples(small, small, st.integers(0, 9), st.integers(0, 12)),
}
changes = st.sampled_from(sorted(rows_of)).flatmap(lambda n: st.tuples(st.just(n), st.sampled_from([1, 1, -1]), rows_of[n]))
rounds = st.lists(changes, max_size=6)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), rounds),
        st.tuples(st.just("batch"), st.lists(st.tuples(st.integers(1, 3), rounds), min_size=1, max_size=4)),
        st.tuples(st.just("fail"), rounds),
        st.tuples(st.just("restart"), st.none()),
        st.tuples(st.just("kill"), st.none()),
        st.tuples(st.just("add"), st.sampled_from([*EVENTS, *CLOCKS])),
        st.tuples(st.just("drop"), st.sampled_from([*EVENTS, *CLOCKS])),
        st.tuples(st.just("reopen"), st.sampled_from([*EVENTS, *CLOCKS])),
    ),
    min_size=3,
    max_size=14,
)


class Driven:
    """A session and its twin."""

    def __init__(self, state: Path | None, rules: Iterable[str]) -> None:
        self.state, self.rules, self.twin = state, list(rules), Twin()
        self.now, self.rows = 0, Rows({name: set() for name in rows_of})
        self.expected: Rows = {}
        self.session = self.open()
        self.pass_round((), self.session.round)

    @property
    def text(self) -> str:
        return DECLARED + "".join((EVENTS | CLOCKS)[name] for name in self.rules)

    def open(self, anew: bool = False) -> dlog.Session:
        """A session of the program, or of that which a state has had a round of."""
        return dlog.session(self.text if anew or not self.now else None, state=self.state, sync="never", history=50)

    def pass_round(self, changed: Iterable[Change], now: int) -> None:
        """What a round does to the twin; rounds in which nothing comes pass, too."""
        while self.now < now:
            self.now += 1
            for name, diff, row in changed if self.now == now else ():
                (self.rows[name].add if diff > 0 else self.rows[name].discard)(row)
            self.expected = self.twin.round(self.rows, self.now, self.rules)

    def commit(self, changed: list[Change]) -> None:
        for name, diff, row in changed:
            (self.session.insert if diff > 0 else self.session.remove)(name, row)
        self.session.commit()
        self.pass_round(changed, self.session.round)

    def fail(self, changed: list[Change]) -> None:
        """A commit whose last part fails, which changes nothing."""
        for name, diff, row in [*changed, ("order", 1, (9, "tea")), ("fault", 1, (0,))]:
            (self.session.insert if diff > 0 else self.session.remove)(name, row)
        with pytest.raises(dlog.DlogError, match="division by zero"):
            self.session.commit()
        self.session.rollback()

    def batch(self, listed: list[tuple[int, list[Change]]]) -> None:
        told, now = [], self.now
        for step, changed in listed:
            now += step
            last = {(name, row): diff for name, diff, row in changed}
            told += [(now, name, diff, row) for (name, row), diff in last.items()]
        if told:
            followed = {n: self.session.subscribe(n, snapshot=False) for n in self.session if n in self.expected}
            before = {n: set(self.session[n]) for n in followed}
            self.session.apply(told)
            exact: dict[int, Rows] = {}
            for now in range(self.now + 1, told[-1][0] + 1):
                self.pass_round([(name, diff, row) for round, name, diff, row in told if round == now], now)
                exact[now] = {name: set(self.expected[name]) for name in followed}
            for name, following in followed.items():
                got = {round: list(found) for round, found in following.fetch()}
                for round, rows in exact.items():
                    for row, diff in got.get(round, ()):
                        (before[name].add if diff > 0 else before[name].remove)(row)
                    assert before[name] == rows[name], (name, round)
                following.close()

    def add(self, name: str) -> None:
        if name not in self.rules:
            self.session.add_rules((EVENTS | CLOCKS)[name])
            self.new(name)
            self.pass_round((), self.session.round)

    def new(self, name: str) -> None:
        """A rule for which all that is there is yet to come."""
        self.rules.append(name)
        for own in (name, "paid") if name == "bill" else (name,):
            if own in self.twin.kept:
                self.twin.kept[own] = Kept(self.twin.kept[own].original, self.twin.kept[own].answers)

    def reopen(self, name: str) -> None:
        """Another program on the same state: with a rule more, or less."""
        if self.state is not None:
            self.session.close()
            self.rules.remove(name) if name in self.rules else self.new(name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                self.session = self.open(anew=True)
            self.pass_round((), self.session.round)

    def drop(self, name: str) -> None:
        if name in self.rules:
            names = {"bill": ("bill", "paid"), "began": ("began", "shows")}.get(name, (name,))
            self.session.drop_relation(*names)
            self.rules.remove(name)
            self.pass_round((), self.session.round)

    def restart(self, how: str) -> None:
        if self.state is not None:
            if how == "kill":
                self.session._engine.abandon()  # type: ignore[attr-defined]
            else:
                self.session.close()
            self.session = self.open()

    def step(self, what: str, argument: Any) -> None:
        if what in ("restart", "kill"):
            self.restart(what)
        else:
            getattr(self, what)(argument)
        assert self.session.round == self.now
        for name in self.session:
            if name in self.expected and self.now:
                assert set(self.session[name]) == self.expected[name], (name, self.now)


def drive(state: Path | None, rules: Iterable[str], done: Iterable[tuple[str, Any]]) -> None:
    driven = Driven(state, rules)
    try:
        for what, argument in done:
            driven.step(what, argument)
    finally:
        driven.session.close()


few_rows = st.tuples(st.sampled_from([-1, 3, timed.FEW]), st.sampled_from([0, 2, kept.MAX_WAITING]))


@contextmanager
def taken_as_few(sizes: tuple[int, int]) -> Iterator[None]:
    """Changes that are taken as rows up to so many, of which so many wait to be kept."""
    with patch.object(timed, "FEW", sizes[0]), patch.object(kept, "MAX_WAITING", sizes[1]):
        yield


@examples(60)
@given(st.sets(st.sampled_from([*EVENTS, *CLOCKS]), max_size=4), steps, st.booleans(), few_rows)
def test_rules_in_time_are_what_they_mean_at_every_round(
    rules: set[str], done: list[tuple[str, Any]], crowded: bool, few: tuple[int, int]
) -> None:
    """With `crowded`, all that waits is scheduled again with every commit."""
    with patch.object(timed, "MIN_CROWD", -1000 if crowded else MIN_CROWD), taken_as_few(few):
        drive(None, sorted(rules), done)


@examples(40)
@given(st.sets(st.sampled_from([*EVENTS, *CLOCKS]), max_size=4), steps, st.booleans(), few_rows)
def test_rules_in_time_survive_restarts_and_kills(
    rules: set[str], done: list[tuple[str, Any]], imaged: bool, few: tuple[int, int]
) -> None:
    """With `imaged`, engines go on from images, however much has changed since."""
    folder, ends = Path(mkdtemp()), [("restart", None), ("commit", []), ("kill", None), ("commit", [])]
    least = 0 if imaged else recovery.MIN_ROWS_PER_CHANGE
    try:
        with patch.object(recovery, "MIN_ROWS_PER_CHANGE", least), taken_as_few(few):
            drive(folder / "state", sorted(rules), [*done, *ends])
    finally:
        shutil.rmtree(folder)


def test_a_state_is_gone_on_from_by_an_image(tmp_path: Path) -> None:
    def opened(program: str | None = None) -> dlog.Session:
        return dlog.session(program, state=tmp_path / "s", sync="never")

    with opened(DECLARED + EVENTS["pay"] + EVENTS["owe"] + CLOCKS["on"]) as s:
        s.insert("price", [("tea", 3), *(("rum", n) for n in range(500))])
        s.insert("spell", [("a", 2, 4), ("b", 3, 5), ("c", 0, 2)])
        s.insert("order", (1, "tea"))
        s.insert("lent", (1, "tea"))
        s.commit()
    resumed: list[int] = []
    resume = Layered.resume

    def noted(self: Layered, image: Any) -> None:
        resumed.append(image.round)
        resume(self, image)

    with patch.object(Layered, "resume", noted):
        s = opened()
        s.upsert("price", ("tea", 4), key=("item", "p"))
        s.remove("price", ("tea", 3))
        s.insert("order", (2, "tea"))
        s.commit()
        assert (resumed, sorted(s["pay"]), sorted(s["on"])) == ([1], [(1, 6), (2, 8)], [("a",)])
        s._engine.abandon()  # type: ignore[attr-defined]
        s = opened()
        s.remove("lent", (1, "tea"))
        s.remove("order", (1, "tea"))
        s.commit()
        assert (resumed, sorted(s["pay"]), sorted(s["owe"])) == ([1, 1], [(1, 6), (2, 8)], [])
        assert sorted(s["on"]) == [("a",), ("b",)]
        s.close()


def test_a_session_that_pauses_has_an_image_to_go_on_from(tmp_path: Path) -> None:
    """It is copied part by part; a commit in between gives it up, and the next pause makes it."""
    resumed: list[int] = []
    resume, copied = Layered.resume, Maintained.copied_image
    orders = iter([11, 12])

    def noted(self: Layered, image: Any) -> None:
        resumed.append(image.round)
        resume(self, image)

    def disturbed(self: Maintained, most: int) -> Any:
        found = copied(self, most)
        for order in islice(orders, 1):
            s.insert("order", (order, "tea"))
            s.commit()
        return found

    with ExitStack() as patches:
        for owner, name, value in (
            (checkpoints, "FIRST_IMAGE_BYTES", 0),
            (checkpoints, "MAX_UNPAUSED_IMAGE_BYTES", 0),
            (running_images, "PAUSE_SECONDS", 0.001),
            (Layered, "resume", noted),
            (Maintained, "copied_image", disturbed),
        ):
            patches.enter_context(patch.object(owner, name, value))
        s = dlog.session(DECLARED + EVENTS["pay"] + CLOCKS["on"], state=tmp_path / "s", sync="never")
        s.insert("price", [("tea", 3), *(("rum", n) for n in range(500))])
        s.insert("spell", [("a", 2, 4), ("b", 6, 9)])
        s.commit()
        s._engine._state.checkpoints._copying.thread.join()  # type: ignore[attr-defined]
        s.insert("order", (2, "tea"))
        s.upsert("price", ("tea", 4), key="item")
        s.commit()
        s._engine.abandon()  # type: ignore[attr-defined]
        s = dlog.session(None, state=tmp_path / "s", sync="never")
        s.insert("order", (3, "tea"))
        s.commit()
        assert resumed == [3] and s.round == 5
        assert sorted(s["pay"]) == [(2, 8), (3, 8), (11, 6), (12, 6)] and sorted(s["on"]) == []
        s.close()


@pytest.mark.parametrize("name", [*EVENTS, *CLOCKS])
def test_each_rule_in_time_alone(name: str) -> None:
    done: list[tuple[str, Any]] = [
        ("commit", [("price", 1, ("tea", 3)), ("order", 1, (2, "tea")), ("spell", 1, ("tea", 1, 3)), ("lent", 1, (1, "tea"))]),
        ("commit", [("price", -1, ("tea", 3)), ("price", 1, ("tea", 1)), ("road", 1, (1, 2, 3, 4))]),
        ("batch", [(1, [("order", 1, (3, "tea")), ("road", 1, (2, 3, 4, 6))]), (2, [("order", -1, (2, "tea"))])]),
        ("commit", [("lent", -1, (1, "tea")), ("order", 1, (2, "tea")), ("spell", 1, ("rum", 0, 8))]),
        ("batch", [(1, [("order", -1, (2, "tea"))]), (1, [("order", 1, (2, "tea"))]), (1, [("order", -1, (2, "tea"))])]),
        ("commit", []),
    ]
    drive(None, [name], done)
    drive(None, [], [*done[:3], ("add", name), *done[3:]])


# ------------------------------------------------------------------------------------------------------------- one by one


def fed(session: dlog.Session, kind: type[Any]) -> list[Any]:
    """The engines of what rounds feed."""
    engine: Any = session._engine
    while not hasattr(engine, "_layers"):
        engine = engine.inner
    return [layer.engine for layer in engine._layers if isinstance(layer.engine, kind)]


def test_proofs_are_there_when_a_state_is_opened(tmp_path: Path) -> None:
    with dlog.session(DECLARED + EVENTS["pay"] + CLOCKS["on"], state=tmp_path / "s") as s:
        s.insert("price", ("tea", 3))
        s.insert("order", (1, "tea"))
        s.insert("spell", [("a", 0, 3), ("b", 2, 3)])
        s.commit()
    with dlog.session(None, state=tmp_path / "s") as s:
        assert str(s.why("on", ("a",))).splitlines()[1:] == ['|-- spell("a", 0, 3)  fact', "`-- now() < 3"]
        assert "no such row is there in this round" in str(s.why_not("on", ("b",)))
    with dlog.session(None, state=tmp_path / "s") as s:
        assert str(s.why("pay", (1, 6))).splitlines()[1:] == ['`-- @order(1, "tea")  came in round 1, with p = 3']


def test_0_10_later_prices_change_no_bill_of_a_rule() -> None:
    s = dlog.session(DECLARED + EVENTS["pay"], history=9)
    s.insert("price", [("tea", 3), ("rum", 8)])
    s.insert("order", (1, "tea"))
    s.commit()
    s.remove("price", ("tea", 3))
    s.insert("price", ("tea", 4))
    s.insert("order", (2, "tea"))
    assert list(s.commit().changes("pay")) == [((2, 8), 1)]
    s.remove("price", ("tea", 4))
    s.commit()
    assert (list(s.touched), sorted(s["pay"]), sorted(s.at(1)["pay"])) == (["price"], [(1, 6), (2, 8)], [(1, 6)])
    assert str(s.why("pay", (1, 6))).endswith('@order(1, "tea")  came in round 1, with p = 3')
    assert "no event has met that" in str(s.why_not("pay", (9, 9)))


def test_0_11_what_a_rule_takes_back_is_of_now_or_what_was_met() -> None:
    s = dlog.session(DECLARED + EVENTS["pay"] + EVENTS["owe"])
    s.insert("price", ("tea", 3))
    for relation in ("order", "lent"):
        s.insert(relation, [(1, "tea"), (2, "tea")])
    s.commit()
    s.upsert("price", ("tea", 4))
    s.commit()
    for relation in ("order", "lent"):
        s.remove(relation, (1, "tea"))
    s.commit()
    assert (sorted(s["pay"]), sorted(s["owe"])) == ([(1, 6), (2, 6)], [(2, 3)])
    s.upsert("price", ("tea", 3))
    s.insert("order", (1, "tea"))
    s.commit()
    s.remove("order", (1, "tea"))
    s.commit()
    assert sorted(s["pay"]) == [(1, 6), (2, 6)]  # 3 has come twice and gone once, 4 has gone once


def test_1_3_advancing_the_clock_of_rules_costs_what_is_due() -> None:
    s = dlog.session(DECLARED + CLOCKS["on"])
    s.insert("spell", [(f"s{n}", 1 + n % 1000, 1001 + n % 1000) for n in range(20_000)])
    s.commit()
    (shown,) = fed(s, Shown)
    assert (shown.visited, s.rows("on")) == (20, 20)
    for _ in range(50):
        s.commit()
    assert (shown.visited, s.rows("on")) == (20 * 51, 20 * 51)
    s.commit()
    assert sorted(s.touched) == ["on"]
    s.apply([(900, "price", 1, ("tea", 1))])
    assert (shown.visited, s.rows("on")) == (20 * 900, 20 * 900)
    s.remove("spell", [(f"s{n}", 1 + n % 1000, 1001 + n % 1000) for n in range(20_000) if n != 999])
    s.commit()
    assert (s.rows("on"), shown.visited <= 20 * 901 + 20_000) == (0, True)
    for _ in range(120):
        s.commit()
    assert (list(s["on"]), shown.visited <= 20 * 901 + 60_000) == ([("s999",)], True)


def test_a_rule_that_is_added_has_events_of_its_own() -> None:
    s = dlog.session(DECLARED + EVENTS["pay"], {"price": [("tea", 3)], "order": [(1, "tea")]})
    s.upsert("price", ("tea", 4))
    s.commit()
    s.add_rules(".decl same(o: number, p: number)\nsame(o, 2 * p) :- @order(o, item), price(item, p).\n")
    s.add_rules("pay(o, p) :- @order(o, item), price(item, p).")
    assert (sorted(s["pay"]), sorted(s["same"])) == ([(1, 4), (1, 6)], [(1, 8)])


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("?- price(X, N), N < now().", "`now()` in a question"),
        ("?- @order(X, Y).", "the event `@order` in a question"),
        (".decl q(x: number) q(x) :- @order(x, _). ?- q(X).", "the event `@order` in a question"),
        ("?- price(X, N), soon(N).", "the question reads an inline relation whose rules have `now()`"),
    ],
)
def test_questions_know_no_time(question: str, expected: str) -> None:
    s = dlog.session(DECLARED + EVENTS["pay"] + ".decl soon(n: number) inline\nsoon(n) :- n <= now(), now() < n + 2.\n")
    s.insert("price", ("tea", 1))
    s.commit()
    with pytest.raises(dlog.DlogError) as raised:
        s.query(question)
    assert expected in str(raised.value)
    assert sorted(s.query("?- price(X, N).")) == [("tea", 1)]


def test_events_and_clocks_of_components_and_alternatives() -> None:
    s = dlog.session("""
    .comp C { .decl e(x: symbol) .decl p(x: symbol, n: number) .decl a(x: symbol, n: number)
    a(x, n) :- @e(x), p(x, n). }
    .init c = C
    .decl out(x: symbol, n: number) .decl one(x: symbol) .decl two(n: number)
    out(x, n) :- @c.e(x), c.p(x, n), n <= now() ; c.p(x, n), n > 8.
    one(x), two(n) :- @c.a(x, n).
    """)
    s.insert("c.p", [("a", 1), ("a", 3), ("b", 9)])
    s.insert("c.e", ("a",))
    s.commit()
    assert (sorted(s["c.a"]), sorted(s["out"])) == ([("a", 1), ("a", 3)], [("a", 1), ("b", 9)])
    s.remove("c.p", ("a", 3))
    s.commit()
    s.apply([(10**12, "c.e", -1, ("a",))])
    assert (sorted(s["c.a"]), sorted(s["one"]), sorted(s["two"])) == ([("a", 3)], [("a",)], [(3,)])


def test_events_of_relations_that_do_not_keep_every_row() -> None:
    s = dlog.session("""
    .decl link(x: symbol, y: symbol) .decl same(x: symbol, y: symbol) eqrel .decl price(x: symbol, p: number)
    .decl got(x: symbol, y: symbol, p: number) .decl given(k: number, v: number)
    .decl first(k: number, v: number) choice-domain k .decl chosen(v: number, p: number)
    same(x, y) :- link(x, y).
    got(x, y, p) :- @same(x, y), price(x, p), x < y.
    first(k, v) :- given(k, v).
    chosen(v, p) :- @first(_, v), price("a", p).
    """)
    s.insert("price", [("a", 1), ("b", 2)])
    s.insert("link", ("a", "b"))
    s.insert("given", [(1, 5), (1, 4)])
    s.commit()
    s.upsert("price", ("a", 9))
    s.insert("link", ("b", "c"))
    s.insert("given", (1, 3))
    s.commit()
    assert sorted(s["got"]) == [("a", "b", 1), ("a", "c", 9), ("b", "c", 2)]
    assert sorted(s["chosen"]) == [(3, 9), (4, 1)]
    assert str(s.why("got", ("a", "c", 9))).endswith('@same("a", "c")  came in round 2, with p = 9')


def test_a_clock_that_stands_between_bounds_visits_no_rule() -> None:
    s = dlog.session(DECLARED + CLOCKS["reach"] + CLOCKS["late"], {"road": [(1, 2, 3, 9)], "spell": [("a", 0, 40)]})
    assert [sorted(s.touched) for _ in range(4) if s.commit()] == [[], ["reach"], [], []]


def test_what_goes_before_its_end_does_not_wait_for_it() -> None:
    s = dlog.session(DECLARED + CLOCKS["on"])
    (shown,) = fed(s, Shown)
    s.insert("spell", [("a", 9, 3002), ("b", 0, 3001)])
    for n in range(3000):
        s.insert("spell", [(f"s{n}", 0, 10**9), (f"t{n}", 10**8, 10**9)])
        s.remove("spell", [(f"s{n - 1}", 0, 10**9), (f"t{n - 1}", 10**8, 10**9)])
        s.commit()
        assert len(shown._calendar) <= MIN_CROWD + 4 * 4
    assert sorted(s["on"]) == [("a",), ("b",), ("s2999",)]
    assert [sorted(s["on"]) for _ in range(2) if s.commit()] == [[("a",), ("s2999",)], [("s2999",)]]


def test_a_limit_of_iterations_holds_in_all_parts_of_a_state_that_is_opened_again(tmp_path: Path) -> None:
    """In those, too, that nothing had come to when it was opened."""
    deep = ".decl start(n: number)\n.decl deep(n: number)\ndeep(n) :- start(n).\ndeep(n + 1) :- deep(n), n < 90.\n"
    text = DECLARED + EVENTS["pay"] + deep
    with dlog.session(text, state=tmp_path, max_iterations=50) as s:
        s.insert("order", (1, "tea"))
        s.commit()
    with dlog.session(text, state=tmp_path, max_iterations=50) as s:
        s.insert("start", (1,))
        with pytest.raises(dlog.DlogError, match="a stratum needs more than 50 iterations"):
            s.commit()
        s.rollback()
        s.insert("start", (80,))
        s.commit()
        assert len(s["deep"]) == 11


def test_a_dump_has_what_events_have_found(tmp_path: Path) -> None:
    """A file for each rule, by its variables; the program of the dump has all events come at once."""
    again = 'pay(o, p) :- @order(o, _), price("rum", p).\n'
    with dlog.session(DECLARED + EVENTS["pay"] + again + EVENTS["owe"], state=tmp_path / "s") as s:
        for order, price in ((1, 3), (2, 4)):
            s.upsert("price", ("tea", price), key="item")
            s.insert("order", (order, "tea"))
            s.insert("lent", (order, "tea"))
            s.commit()
        s.remove("lent", (1, "tea"))
        s.insert("price", ("rum", 9))
        s.insert("order", (3, "gin"))
        s.commit()
    said = dump_state(tmp_path / "s", tmp_path / "out")
    files = {path.name: path.read_text() for path in (tmp_path / "out").glob("*@*.csv")}
    assert files == {
        "ever@order.csv": '1,"tea",1,1\n2,"tea",1,2\n3,"gin",1,3\n',
        "pay@order.csv": '1,"tea",3,1,1\n2,"tea",4,1,2\n',
        "owe@lent.csv": '2,"tea",4,1,2\n',
        "pay@order-2.csv": '3,"gin",9,1,3\n',
    }
    assert f"{tmp_path / 'out' / 'owe@lent.csv'}: 1 row, what events found: o, item, p, how often, the round" in said
    with dlog.session(tmp_path / "out" / "program.dl", tmp_path / "out") as s:
        assert sorted(s["pay"]) == [(1, 8), (1, 9), (2, 8), (2, 9), (3, 9)]
