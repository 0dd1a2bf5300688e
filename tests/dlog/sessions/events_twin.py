"""Event atoms and `now()` in rules: programs of them, what they mean, and sessions driven through stories beside that."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import dlog

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

LENT = "big(o, item) :- lent(o, item).\n"
"""Has what is lent be big, too."""
ZERO = ".decl zero(n: number)\nzero(0).\nfailed(1 / n) :- zero(n).\n"
"""Rules with which no round goes well."""


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
        big = {e for e in rows["order"] if e[0] > 1} | (rows["lent"] if LENT in rules else set())
        rows = rows | {"big": big, "shows": found["shows"]}
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
        st.tuples(st.just("fail_to_add"), st.sampled_from([*EVENTS, *CLOCKS])),
        st.tuples(st.just("turn"), st.just(LENT)),
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
        return DECLARED + "".join((EVENTS | CLOCKS | {LENT: LENT})[name] for name in self.rules)

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

    def fail_to_add(self, name: str) -> None:
        """Rules that are refused, for what they come to, change nothing."""
        rule = "" if name in self.rules else (EVENTS | CLOCKS)[name]
        with pytest.raises(dlog.DlogError, match="division by zero"):
            self.session.add_rules(rule + ZERO)

    def turn(self, rule: str) -> None:
        """A rule that comes if it is not there, else goes."""
        if rule in self.rules:
            self.session.drop_rules(rule)
            self.rules.remove(rule)
        else:
            self.session.add_rules(rule)
            self.rules.append(rule)
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
