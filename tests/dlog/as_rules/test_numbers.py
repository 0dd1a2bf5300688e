"""How often rows of inputs are there, beside a counter of Python's: whatever changes it, and whatever the rows are."""

from __future__ import annotations

import math
import random
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dlog
from dlog.as_rules import CollectionsSession
from dlog.as_rules.numbers import MAX_WAITING_ROWS, Numbers, summed
from dlog.dataflow import Dataflow
from dlog.grammar.diagnostics import DlogError
from dlog.sessions import Round, Session

VALUES: dict[type, list[Any]] = {
    int: [*range(-3, 12), 2**63 - 1, -(2**63)],
    float: [0.0, -0.0, math.nan, -math.nan, math.inf, 0.5, -1.5, 1e300],
    bool: [True, False],
    str: ["", "a", "b", "ä", "cc"],
}
KINDS = ["", "int", "float", "str", "bool", "int int", "str int", "float str", "int bool", "float bool str int"]
Row = tuple[Any, ...]


def opened(kinds: str, **options: Any) -> CollectionsSession:
    flow = Dataflow()
    names = {f"c{k}": {"int": int, "float": float, "bool": bool, "str": str}[kind] for k, kind in enumerate(kinds.split())}
    given = flow.input("given", **names)
    return dlog.rules(same=given.map(*names), sets=()).session(threads=1, **options)


def plain(row: Row) -> Row:
    """A row with one NaN and one zero."""
    return tuple((math.nan if v != v else v + 0.0) if isinstance(v, float) else v for v in row)


class Twin:
    """A session and what its input is to have."""

    def __init__(self, kinds: str, seed: int, **options: Any) -> None:
        self.kinds, self.rng, self.options = [eval(kind) for kind in kinds.split()], random.Random(seed), options
        self.session = opened(kinds, **options)
        self.there: Counter[Row] = Counter()
        self.pending: Counter[Row] = Counter()

    def rows(self, number: int) -> list[Row]:
        return [tuple(self.rng.choice(VALUES[kind]) for kind in self.kinds) for _ in range(number)]

    def form(self, rows: list[Row]) -> Any:
        """Rows in one of the forms that are taken."""
        columns = {f"c{k}": [row[k] for row in rows] for k in range(len(self.kinds))}
        forms = [rows, *([rows[0]] if len(rows) == 1 else [])]
        if columns:
            forms += [columns, pa.table(columns)]
        return self.rng.choice(forms)

    def stage(self) -> None:
        rows = self.rows(self.rng.choice([1, 1, 2, 5, 100]))
        diffs: Any = self.rng.choice([1, 1, -1, 3, [self.rng.randrange(-2, 4) for _ in rows]])
        if diffs in (1, -1) and self.rng.random() < 0.7:
            (self.session.insert if diffs > 0 else self.session.remove)("given", self.form(rows))
        else:
            self.session.update("given", self.form(rows), diffs)
        for row, diff in zip(rows, [diffs] * len(rows) if isinstance(diffs, int) else diffs, strict=True):
            self.pending[plain(row)] += diff

    def commit(self) -> None:
        after = Counter(self.there)
        after.update(self.pending)
        if min(after.values(), default=0) < 0:
            with pytest.raises(DlogError, match="would be there -"):
                self.session.commit()
            if self.rng.random() < 0.5:
                self.session.rollback()
            else:  # what is staged stays so
                more = {row: -n for row, n in after.items() if n < 0}
                self.session.update("given", list(more), list(more.values()))
                after.update(more)
                self.session.commit()
                self.there = after
        else:
            self.session.commit()
            self.there = after
        self.pending = Counter()

    def rounds(self) -> None:
        rows = self.rows(self.rng.choice([1, 6, 150]))
        rounds = [self.session.round + 1 + self.rng.randrange(5) for _ in rows]
        diffs = [self.rng.choice([1, 1, 2, -1]) for _ in rows]
        at, wrong = Counter(self.there), False
        for round in sorted(set(rounds)):
            for row, of, diff in zip(rows, rounds, diffs, strict=True):
                at[plain(row)] += diff if of == round else 0
            wrong |= min(at.values()) < 0
        columns = {f"c{k}": [row[k] for row in rows] for k in range(len(self.kinds))}
        marked = {**columns, "round": rounds, "diff": diffs}
        stream = self.rng.choice([list(zip(rounds, rows, diffs, strict=True)), marked, pa.table(marked)])
        if wrong:
            with pytest.raises(DlogError, match="would be there -"):
                self.session.commit_rounds({"given": stream})
        else:
            self.session.commit_rounds({"given": stream})
            self.there = at

    def transaction(self) -> None:
        before = Counter(self.pending)
        with pytest.raises(ZeroDivisionError), self.session.transaction():
            self.stage()
            self.stage()
            1 / 0  # noqa: B018
        self.pending = before

    def reopen(self) -> None:
        if "state" in self.options:
            self.session.close()
            self.session = opened(" ".join(kind.__name__ for kind in self.kinds), **self.options)
            self.pending = Counter()

    def check(self) -> None:
        expected = {repr(row): n for row, n in self.there.items() if n}
        for name in ("given", "same"):
            assert {repr(row): n for row, n in self.session.counts(name).items()} == expected


@pytest.mark.parametrize("kinds", KINDS)
def test_rows_are_there_as_often_as_counted(kinds: str, tmp_path: Path) -> None:
    for seed in range(6):
        twin = Twin(kinds, seed, **({"state": tmp_path / "state"} if seed == 5 else {}))
        steps = [twin.stage, twin.stage, twin.stage, twin.commit, twin.commit, twin.rounds, twin.transaction, twin.reopen]
        for _ in range(60):
            step = twin.rng.choice(steps)
            if step == twin.rounds and twin.pending:
                twin.commit()
            step()
            twin.check()
        assert sum(twin.there.values()) > 0
        twin.session.close()


def test_many_single_rows_are_counted_as_those_in_columns() -> None:
    s, expected = opened("int"), Counter()
    rng = random.Random(1)
    for _ in range(3):
        for _ in range(MAX_WAITING_ROWS + 50):
            row = (rng.randrange(300),)
            s.insert("given", row)
            expected[row] += 1
        s.commit()
        for row in list(expected)[::7]:
            s.remove("given", row)
            expected[row] -= 1
            s.commit()
    assert s.counts("given") == {row: n for row, n in expected.items() if n}


def test_numbers_that_are_too_great_on_the_way_are_added_exactly() -> None:
    s = opened("int")
    for form in ([(1,)], {"c0": np.array([1])}):
        s.update("given", form, 2**62)
        s.update("given", form, 2**62)
        s.update("given", form, 2**62)
        s.update("given", form, 2**62)
        with pytest.raises(DlogError, match=str(2**64)):
            s.commit()
        s.update("given", form, -(2**62))
        s.update("given", form, -(2**62))
        s.update("given", form, 3 - 2**62)
        s.commit()
        assert s.counts("given") == {(1,): 2**62 + 3}
        s.update("given", form, -(2**62) - 3)
        s.commit()
    stream = [(s.round + 1, (1,), 2**62), (s.round + 2, (1,), 2**62), (s.round + 3, (1,), -(2**62))]
    with pytest.raises(DlogError, match=str(2**63)):
        s.commit_rounds({"given": stream})
    s.commit_rounds({"given": [(round, row, diff - (diff > 0)) for round, row, diff in stream]})
    assert s.counts("given") == {(1,): 2**62 - 2}


def test_rounds_of_a_relation_without_columns_may_come_as_columns() -> None:
    s = opened("")
    s.commit_rounds({"given": {"round": [2, 3, 5], "diff": [4, -1, -1]}})
    assert s.counts("same") == {(): 2}


def test_facts_of_added_rules_are_counted_too() -> None:
    s = opened("int int")
    s.insert("given", (1, 2))
    s.commit()
    s.add_rules("given(5, 6, 3).")
    s.remove("given", (5, 6))
    s.commit()
    assert s.counts("given") == {(1, 2): 1, (5, 6): 2}


def test_numbers_are_asked_again_where_a_commit_of_rounds_stops_after_some(monkeypatch: pytest.MonkeyPatch) -> None:
    s = opened("int int")
    s.insert("given", (1, 2))
    s.commit()
    whole = Session.commit_rounds

    def stopping(self: Session, *given: Any) -> Round:
        whole(self, *given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Session, "commit_rounds", stopping)
        with pytest.raises(KeyboardInterrupt):
            s.commit_rounds({"given": [(s.round + 1, (1, 2), 3)]})
    s.update("given", (1, 2), -3)
    s.commit()
    assert s.counts("given") == s.counts("same") == {(1, 2): 1}


def test_what_is_staged_in_columns_has_a_limit() -> None:
    s = opened("int int", memory="64M")
    with pytest.raises(DlogError, match="staged"):
        for _ in range(10):
            s.insert("given", {"c0": np.arange(500_000), "c1": np.arange(500_000)})


def test_what_is_staged_has_one_limit_for_all_inputs() -> None:
    flow = Dataflow()
    inputs = [flow.input(name, c0=int, c1=int) for name in ("a", "b", "c")]
    rows = {"c0": np.arange(500_000), "c1": np.arange(500_000)}
    s = dlog.rules(sets=(), **{f"same_{k}": each.map("c0", "c1") for k, each in enumerate(inputs)}).session(memory="32M")
    with pytest.raises(DlogError, match="staged"):
        for name in ("a", "b", "c"):
            s.insert(name, rows)


def test_rows_kept_take_little_memory() -> None:
    s, n = opened("int int"), 200_000
    s.insert("given", (1, 1))
    s.commit()
    tracemalloc.start()
    try:
        s.insert("given", {"c0": np.arange(n), "c1": np.arange(n) % 1000})
        s.commit()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100 * n
    assert s._numbers["given"].nbytes < 20 * n


def test_the_time_of_a_small_change_does_not_grow_with_the_rows() -> None:
    numbers = Numbers(1)
    for first in range(0, 1 << 17, 1 << 12):
        numbers.add((np.arange(first, first + (1 << 12)),), np.ones(1 << 12, np.int64))
    for k in range(3 * MAX_WAITING_ROWS):
        numbers.add_few([((k,), -1)])
    assert len(numbers._recent) < MAX_WAITING_ROWS
    assert len(numbers._reading.layers) <= 32
    assert numbers.of_few([(1,), (3 * MAX_WAITING_ROWS,)]) == [0, 1]


@pytest.mark.parametrize("room", [None, 8])
def test_rows_of_many_batches_are_found_as_in_one(room: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if room is not None:  # memory for fewer updates than are found
        monkeypatch.setattr(dlog.as_rules.numbers, "_MAX_FOUND_UPDATES", room)
    numbers = Numbers(2)
    for round in range(40):
        numbers.add((np.arange(64), np.full(64, 5)), np.full(64, round % 3, np.int64))
    expected = sum(round % 3 for round in range(40))
    assert numbers.of_few([(x, 5) for x in range(64)]) == [expected] * 64
    assert numbers.of((np.arange(70), np.full(70, 5)), 70).tolist() == [expected] * 64 + [0] * 6


def test_sums_of_rows_are_in_order_and_never_zero() -> None:
    for great in (1, 2**61):
        columns, sums = summed((np.array([3, 1, 3, 2, 1]),), np.array([great, 2, great, 1, -2]))
        assert (columns[0].tolist(), sums.tolist()) == ([2, 3], [1, 2 * great])
