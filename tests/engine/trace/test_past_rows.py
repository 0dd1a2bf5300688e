"""Tables of past rounds: which are kept, and that others are found from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.trace import changes, past_rows
from dlog.engine.trace.changes import ChangeTrace
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from tests.engine.trace.changing_rows import ROUNDS, VALUES, Row, set_of, states_of, stories, table_of, updates_of
from tests.examples import examples


@examples(200)
@given(
    rounds=ROUNDS,
    window=st.integers(0, 12),
    waiting=st.sampled_from([1, 3, 128]),
    per_change=st.sampled_from([1, 16, 1000]),
    late=st.sampled_from([1, 4, 128]),
    kept=st.sampled_from([0, 1, 8]),
    few=st.sampled_from([0, 100]),
    data=st.data(),
)
def test_rounds_are_read_in_any_order_whatever_is_kept(
    rounds: list[list[Row]], window: int, waiting: int, per_change: int, late: int, kept: int, few: int, data: Any
) -> None:
    """Commits of one round or more, after which rows are kept or not. All rows are read, or those with some values, for
    which changes are sought, or not where there are few rows."""
    held: set[Row] = set()
    story = [{}, *stories(rounds, held)]
    states = states_of(story)
    patches = {"MANY_CHANGES": 1, "ROWS_PER_CHANGE": per_change, "READ_OF_LATE": late, "KEPT_ROWS_PER_CHANGE": kept}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**patches, "ROWS_OF_A_TABLE": 0, "ROWS_OF_A_COPY": 0}.items():
            patch.setattr(past_rows, name, value)
        patch.setattr(changes, "MAX_WAITING", waiting)
        patch.setattr(changes, "MIN_STEP", 1)
        patch.setattr(changes, "SMALL_ROWS", few)
        trace, last = ChangeTrace(2, 0), 0
        while last < len(rounds):
            first, last = last + 1, min(last + data.draw(st.integers(1, 3)), len(rounds))
            oldest = max(0, last - window)
            parts = [updates_of(story[round], round) for round in range(first, last + 1) if story[round]]
            for part in parts:
                trace.note(part, oldest)
            now = partial(table_of, sorted(states[last]))
            if trace.is_read(last) and data.draw(st.booleans()):
                trace.keep_rows(last, sum(part.rows for part in parts), now)
            for round in data.draw(st.lists(st.integers(oldest, last), max_size=6)):
                values = data.draw(st.dictionaries(st.sampled_from([0, 1]), VALUES, max_size=2))
                table = trace.selected(values, round, now, last) if values else trace.table(round, now, last)
                assert having(values, set_of(table)) == having(values, states[round])


def having(values: dict[int, int], rows: set[Row]) -> set[Row]:
    """The rows with these values in some columns."""
    return {row for row in rows if all(row[column] == value for column, value in values.items())}


class Halves:
    """A relation of so many rows, of which each round replaces half; its changes are noted, and rows kept, after each."""

    def __init__(self, rows: int) -> None:
        self.rows, self.last, self.copies = rows, 0, 0
        self.trace = ChangeTrace(1, 0)
        self.commit(np.arange(rows), np.empty(0, np.int64))

    def commit(self, came: np.ndarray, gone: np.ndarray) -> None:
        self.last += 1
        diffs, rows = np.repeat([1, -1], [len(came), len(gone)]), len(came) + len(gone)
        self.trace.note(Updates((np.concatenate([came, gone]),), diffs, np.full(rows, self.last)), 0)
        if self.trace.is_read(self.last):
            self.trace.keep_rows(self.last, self.trace.noted(self.last), self._copied)

    def replace(self, rounds: int = 1, read: Callable[[], object] = lambda: None) -> None:
        for _ in range(rounds):
            gone = np.arange(self.rows // 2) + (self.last - 1) * self.rows // 2
            self.commit(gone + self.rows, gone)
            read()

    def now(self) -> Table:
        return Table((Kind.NUMBER,), (np.arange(self.rows) + (self.last - 1) * self.rows // 2,))

    def _copied(self) -> Table:
        self.copies += 1
        return self.now()

    def check(self, back: int, now: Callable[[], Table] | None = None) -> None:
        """Reads a past round."""
        table = self.trace.table(self.last - back, now or self.now, self.last)
        first = (self.last - back - 1) * self.rows // 2
        assert np.array_equal(np.sort(table.columns[0]), np.arange(self.rows) + first)

    @property
    def known(self) -> list[int]:
        return sorted(self.last - round for round in self.trace._known._tables)


def _refuse() -> NoReturn:
    raise AssertionError("the rows are known")


@pytest.mark.parametrize("back", [1, 10, 50])
def test_rows_are_kept_after_commits_that_change_much_while_past_rounds_are_read(back: int) -> None:
    """No changes are needed then, nor the present rows; and no more is kept than what is read."""
    halves = Halves(1_000)
    halves.replace(60)
    assert halves.known == [] and halves.copies == 0  # nobody reads
    halves.check(back)
    halves.replace(back + 1, lambda: halves.check(back))
    for _ in range(20):
        halves.replace()
        assert halves.trace.last_needed(halves.last - back, halves.last) == 0
        halves.check(back, _refuse)
        assert max(halves.known) <= back + 1
    assert halves.copies == back + 21


def test_commits_keep_no_more_rows_than_it_takes_to_undo_them() -> None:
    for rows, share in ((20_000, 0), (40_000, 1), (2_000, 0), (500, 0)):
        halves = Halves(rows)
        halves.replace(20)
        halves.check(3)
        halves.replace(100) if not share else [halves.commit(*_few(halves, k)) for k in range(100)]
        room = past_rows.ROWS_PER_CHANGE * rows
        worth = 0 if share or rows < past_rows.MANY_CHANGES else 1 + (room - rows) // (rows + past_rows.ROWS_OF_A_COPY)
        assert halves.copies == worth
        if not share:
            halves.check(1)
            halves.check(7)


def _few(halves: Halves, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Changes of a small part of the rows."""
    size = halves.rows // 100
    return np.arange(size) - (k + 1) * size, np.empty(0, np.int64)


def test_rows_are_given_up_when_nobody_reads_past_rounds_any_more() -> None:
    halves = Halves(5_000)
    halves.replace(20)
    halves.check(10)
    halves.replace(past_rows.READ_OF_LATE, lambda: halves.check(2))
    assert len(halves.known) >= 2 and halves.trace.is_read(halves.last)
    copies = halves.copies
    halves.replace(2 * past_rows.READ_OF_LATE)
    assert halves.known == [] and not halves.trace.is_read(halves.last)
    assert halves.copies - copies <= past_rows.ROWS_PER_CHANGE
    halves.check(2)


def test_rows_of_past_rounds_are_kept_while_they_are_read_and_small() -> None:
    trace = ChangeTrace(2, 0)
    story = stories([[(n, 0)] for n in range(1, 301)] + [[(n, 0)] for n in range(1, 291)], set())
    for round, diffs in enumerate(story, 1):
        trace.note(updates_of(diffs, round), 0)
    now = table_of([(n, 0) for n in range(291, 301)])

    def read(round: int, now: Table = now) -> Table:
        return trace.table(round, lambda: now, 590)

    first = read(590 - 10)
    assert read(590 - 10) is first and not first.fresh  # 20 rows, of which nobody's are written to
    assert set_of(read(590 - 11)) == {(n, 0) for n in range(280, 301)}
    assert set_of(first) == {(n, 0) for n in range(281, 301)}
    bytes, late = trace.nbytes, past_rows.READ_OF_LATE
    for k in range(1, 3):
        trace._known.age(590 + k * late)
    assert trace.nbytes < bytes and read(590 - 10) is not first
    large = table_of([(n, 0) for n in range(291, 301)] + [(n, 1) for n in range(20_000)])
    for k in range(3, 5):
        trace._known.age(590 + k * late)
    assert read(500, large) is not read(500, large)


def test_tables_on_the_way_are_kept_where_there_are_many_changes() -> None:
    """Each is some changes from the next, so that no later read adds up more than half of these."""
    trace, rounds, ones = ChangeTrace(1, 0), 20, np.ones(1_000, np.int64)
    for round in range(1, rounds + 1):
        gone, came = (np.arange(1_000) + 1_000 * (round - n) for n in (1, 0))
        trace.note(Updates((np.concatenate([gone, came]),), np.repeat([-1, 1], 1_000), np.tile(ones * round, 2)), 0)
    now = Table((Kind.NUMBER,), (np.arange(1_000) + 1_000 * rounds,))
    for round in range(1, rounds):
        assert np.array_equal(np.sort(trace.table(round, lambda: now, rounds).columns[0]), np.arange(1_000) + 1_000 * round)
        known = sorted(trace._known._tables)
        assert known[0] == 1 and max(np.diff(known)) <= 2
    weight = sum(1_000 + past_rows.ROWS_OF_A_TABLE for _ in trace._known._tables)
    assert weight <= past_rows.KEPT_ROWS_PER_CHANGE * trace.rows and weight == trace._known._rows


@pytest.mark.parametrize("back", [1, 7])
def test_a_round_that_is_read_after_every_commit_is_made_of_the_last_one(back: int) -> None:
    """The relation as of now, and the changes that are still with the engine, are left alone."""
    trace, held, reads = ChangeTrace(2, 0), set[Row](), 0
    story = [{}, *stories([[(n, 0), (n - 5, 0)] for n in range(6, 300)], held)]
    states = states_of(story)

    def now() -> Table:
        nonlocal reads
        reads += 1
        return table_of(sorted(states[last]))

    for last in range(1, 295):
        trace.note(updates_of(story[last], last), 0)
        if last >= 20:
            assert trace.last_needed(last - back, last) == (last if last == 20 else last - back)
            assert set_of(trace.table(last - back, now, last)) == states[last - back]
    assert reads == 1
    last = 2_000
    trace.note(updates_of({(-1, -1): 1}, last), 0)
    assert set_of(trace.table(last - 1, now, last)) == states[294] and reads == 1  # few changes lie in between, if many rounds
