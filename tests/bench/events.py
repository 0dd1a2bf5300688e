"""Events in rules (`@order(...)`): what commits of one, of many and of many rounds cost, beside the same join without time.

Ten thousand orders are there of a thousand items. Then single orders come, one a commit; a thousand a commit; twenty thousand
rounds of one in a call. Prices change, one a commit, which looks at no order that has been; and orders go, one a commit. At the
end the bills are what the prices were when the orders came. Times are the committing thread's own processor time; Python's
collector of cycles does not run.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

import dlog
from tests.bench.process import Options
from tests.bench.report import as_ratio, save, seconds, show

PROGRAM = """
.decl order(id: number, item: number, pieces: number){how}
.decl price(item: number, euros: number)
.decl pay(id: number, euros: number)
pay(o, q * p) :- {event}order(o, item, q), price(item, p).
"""
WAYS = {"join": ("", ""), "event": ("@", ""), "retract(original)": ("@", " retract(original)")}
ITEMS, ORDERS = 1_000, 10_000
COMMITS = 1_000
"""Of one order, and of one price;"""
LARGE, MANY = 20, 1_000
"""commits of many orders, and how many;"""
ROUNDS = 20_000
"""rounds of one order in a call."""
REACH = {"one": 125e-6, "many": 1e-6, "rounds": 1e-6, "price": 100e-6, "gone": 150e-6}
"""Seconds that each takes at most: a commit, or an event of many."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of a commit of one order, of one order among many in a commit and in a call of many rounds, of a commit of a
    price and of one in which an order goes; and whether all bills are right."""

    one: float
    many: float
    rounds: float
    price: float
    gone: float
    right: bool

    @property
    def held(self) -> bool:
        return self.right and all(getattr(self, name) <= most for name, most in REACH.items())


def run(options: Options) -> bool:
    """Measures, prints and saves; false where bills are wrong or a bound is missed."""
    found = {name: measure(*how) for name, how in WAYS.items()}
    header = ["", "one order", f"each of {MANY:,}", f"each of {ROUNDS:,} rounds", "a price", "an order goes", "right", "held"]
    show("commits with events", header, [_line(name, figures, found["join"]) for name, figures in found.items()])
    save("events", {name: asdict(figures) for name, figures in found.items()}, options.json)
    return all(figures.held for figures in found.values())


def _line(name: str, figures: Figures, join: Figures) -> list[str]:
    told = [(getattr(figures, each), getattr(join, each)) for each in REACH]
    cells = [seconds(taken) + ("" if figures is join else f" ({as_ratio(taken / plain)})") for taken, plain in told]
    return [name, *cells, str(figures.right), str(figures.held)]


def measure(event: str, how: str) -> Figures:
    driven = _Driven(event, how)
    gc.collect()
    gc.disable()
    try:
        driven.orders(ORDERS)
        for _ in range(COMMITS):  # plans, and what is made for the first commits
            driven.orders(1)
        one = [driven.orders(1) for _ in range(COMMITS)]
        price = [driven.price(k % ITEMS) for k in range(COMMITS)]
        many = [driven.orders(MANY) / MANY for _ in range(LARGE)]
        rounds = driven.rounds(ROUNDS) / ROUNDS
        gone = [driven.gone(k) for k in range(COMMITS)]
    finally:
        gc.enable()
    return Figures(_median(one), _median(many), rounds, _median(price), _median(gone), driven.right)


def _median(taken: list[float]) -> float:
    return float(np.median(taken))


class _Driven:
    """A session of orders, and the price that each of them has met."""

    def __init__(self, event: str, how: str) -> None:
        self.by_event, self.original, self.next = bool(event), bool(how), 0
        self.prices, self.met = np.arange(ITEMS) % 97 + 1, np.empty(0, np.int64)
        prices = {"price": {"item": np.arange(ITEMS), "euros": self.prices}}
        self.session = dlog.session(PROGRAM.format(event=event, how=how), prices, threads=1)

    def _coming(self, count: int) -> dict[str, np.ndarray]:
        ids = np.arange(self.next, self.next + count)
        self.next += count
        self.met = np.concatenate([self.met, self.prices[ids % ITEMS]])
        return {"id": ids, "item": ids % ITEMS, "pieces": ids % 7 + 1}

    def orders(self, count: int) -> float:
        coming = self._coming(count)
        rows = coming if count > 1 else tuple(int(column[0]) for column in coming.values())
        self.session.insert("order", rows)
        return _taken(self.session.commit)

    def rounds(self, count: int) -> float:
        coming = self._coming(count)
        times = {"round": self.session.round + 1 + np.arange(count), "diff": np.ones(count, np.int64)}
        return _taken(lambda: self.session.commit_rounds({"order": coming | times}))

    def price(self, item: int) -> float:
        self.session.remove("price", (item, int(self.prices[item])))
        self.prices[item] += 1
        self.session.insert("price", (item, int(self.prices[item])))
        return _taken(self.session.commit)

    def gone(self, order: int) -> float:
        self.session.remove("order", (order, order % ITEMS, order % 7 + 1))
        return _taken(self.session.commit)

    @property
    def right(self) -> bool:
        """Whether bills are of the prices that orders have met. Of orders that go they stay where the price has changed since,
        unless what an order had met is taken back with it."""
        ids = np.arange(self.next)
        now = self.prices[ids % ITEMS]
        euros = self.met if self.by_event else now
        stays = (ids >= COMMITS) | (self.by_event and not self.original) & (euros != now)
        bills = self.session["pay"].to_numpy()
        order = np.argsort(bills["id"])
        expected = ids[stays], (euros * (ids % 7 + 1))[stays]
        return all(np.array_equal(bills[name][order], each) for name, each in zip(("id", "euros"), expected, strict=True))


def _taken(commit: Callable[[], object]) -> float:
    started = time.thread_time()
    commit()
    return time.thread_time() - started
