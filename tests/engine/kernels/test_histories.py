"""Histories of rows, lists and pools against Python's lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.loop import settling
from dlog.engine.kernels.incremental.store import bits, collections, histories, history_items, lists
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role, new_list
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, view
from tests.engine.kernels.workbench import EXAMPLES
from tests.examples import examples

ROWS = 64
TIMES = st.tuples(st.integers(0, 3), st.integers(0, 5)).map(lambda t: t[0] * L.ROUND + t[1])
OPS = st.one_of(
    st.tuples(st.just("add"), st.integers(0, ROWS - 1), TIMES, st.sampled_from([1, -1])),
    st.tuples(st.just("add"), st.integers(0, 3), TIMES, st.sampled_from([1, -1])),
    st.tuples(st.just("settle"), st.integers(0, ROWS - 1)),
    st.tuples(st.just("close"), st.integers(0, ROWS - 1)),
)


class History:
    """A history of a recursive scope's collection, the inner or the outer one, and the entries that each row is to have."""

    def __init__(self, rows: int = ROWS, field: int = L.collection.inner) -> None:
        self.memory = Memory(None)
        self.worker = Worker(self.memory)
        self.control = self.worker.control.address
        self.collection = Collection("c", (Kind.NUMBER,), Role.LATTICE, self.memory)
        found = self.collection.struct.keep[field]
        assert isinstance(found, Struct)
        self.struct = found
        assert collections.reserve_rows(self.control, self.collection.address, rows)
        self.entries: list[list[tuple[int, int]]] = [[(0, 1)] for _ in range(rows)]

    def has_item(self, row: int) -> bool:
        return bool(bits.get_bit(self.struct[L.history.bits], row))

    def item(self, row: int) -> int:
        return int(history_items.item_of(self.struct.address, np.int64(row)))

    def add(self, row: int, time: int, diff: int) -> None:
        assert histories.add_entry(self.control, self.struct.address, np.int64(row), time, diff)
        self.entries[row].append((time, diff))

    def settle(self, row: int) -> None:
        """In a history with iterations: items of others are dropped when a batch settles."""
        if not self.has_item(row) or not self.struct[L.history.iters]:
            return
        kept = histories.settle_entries(self.struct.address, self.item(row))
        totals: Counter[int] = Counter()
        for time, diff in self.entries[row]:
            totals[time % L.ROUND] += diff
        self.entries[row] = [(time, diff) for time, diff in totals.items() if diff]
        assert kept == len(self.entries[row])

    def close(self, row: int) -> None:
        """The row is there from its iteration (0) on again."""
        if self.has_item(row):
            histories.drop_entries(self.struct.address, self.item(row))
            if self.struct[L.history.iters]:
                settling.settle_inner(self.struct.address, np.int64(row), np.int64(0))
            else:
                history_items.close_item(self.struct.address, np.int64(row))
        self.entries[row] = [(0, 1)]

    def check(self, rows: Sequence[int] = range(ROWS)) -> None:
        limits = [0, 1, 3, L.ROUND, L.ROUND + 2, 2 * L.ROUND, 3 * L.ROUND + 1, 2**62]
        for row in rows:
            for limit in limits:
                expected = sum(diff for time, diff in self.entries[row] if time < limit)
                assert histories.presence(self.struct.address, np.int64(row), limit) == expected


BOTH = pytest.mark.parametrize("field", [L.collection.inner, L.collection.outer], ids=["inner", "outer"])


@BOTH
@examples(EXAMPLES)
@given(ops=st.lists(OPS, max_size=60))
def test_presence_at_any_view_is_the_sum_of_the_entries_before_it(field: int, ops: list[tuple]) -> None:
    history = History(field=field)
    for name, *args in ops:
        getattr(history, name)(*args)
    history.check()
    history.collection.free()
    assert history.memory.used == 0


@BOTH
def test_items_are_found_whatever_others_are_dropped(field: int) -> None:
    history = History(field=field)
    for row in range(ROWS):
        history.add(row, L.ROUND, -1)
        history.add(row, 2 * L.ROUND + row % 5, 1)
    for row in [*range(0, ROWS, 3), *range(ROWS - 1, 0, -4)]:
        history.close(row)
        history.check()
    for row in range(ROWS):
        history.add(row, L.ROUND + 1, -1)
        history.settle(row)
    history.check()


def test_items_whose_slots_collide_are_found_whatever_others_are_dropped() -> None:
    """All of them want one of two neighbouring slots of the table, which has 64."""
    history = History(4096, L.collection.outer)
    rows = [row for row in range(4096) if history_items.item_slot(np.int64(row), np.int64(63)) in (62, 63)][:24]
    for row in rows:
        history.add(row, L.ROUND + row, -1)
    assert len(rows) == 24 and history.struct[L.history.table_count] == 64
    for row in Random(3).sample(rows, 24):
        history.close(row)
        history.check(rows)


def test_forgetting_leaves_no_item_behind() -> None:
    history = History(field=L.collection.outer)
    for row in range(0, ROWS, 2):
        history.add(row, L.ROUND, -1)
        bits.clear_bit(history.struct[L.history.bits], np.int64(row))
        history.entries[row] = [(0, 1)]
    histories.forget_items(history.control, history.struct.address)
    history.check()
    for row in range(ROWS):
        history.add(row, L.ROUND + row % 3, -1)
    history.check()


# -------------------------------------------------------------------------------------------------------- lists and pools


@examples(EXAMPLES)
@given(times=st.lists(st.one_of(TIMES, st.integers(0, 2**62)), max_size=300))
def test_changes_are_sorted_by_time_and_equal_times_keep_their_order(times: list[int]) -> None:
    memory = Memory(None)
    worker = Worker(memory)
    control = worker.control.address
    changes, spare, counts = new_list(L.change.size), new_list(L.change.size), Struct(256)
    for number, time in enumerate(times):
        assert lists.push_change(control, changes.address, number, time, -number, number * 3)
    assert lists.sort_changes(control, changes.address, spare.address, counts.address)
    found = view(changes[L.items.data], len(times) * L.change.size, np.int64).reshape(-1, L.change.size).tolist()
    expected = sorted(([number, time, -number, number * 3] for number, time in enumerate(times)), key=lambda c: c[1])
    assert found == expected
    for made in (changes, spare):
        lists.list_free(control, made.address)
    assert memory.used == 0


@examples(EXAMPLES)
@given(ops=st.lists(st.one_of(st.none(), st.integers(0, 40)), max_size=200))
def test_a_pool_never_hands_out_an_item_in_use(ops: list[int | None]) -> None:
    """None takes an item, a number gives back one of those in use."""
    memory = Memory(None)
    worker = Worker(memory)
    control = worker.control.address
    pool = new_list(3)
    used: dict[int, int] = {}
    for stamp, op in enumerate(ops):
        if op is None:
            number = int(lists.pool_take(control, pool.address))
            assert number not in used
            used[number] = stamp
            view(pool[L.items.data], pool[L.items.count] * 3, np.int64)[number * 3 : number * 3 + 3] = stamp
        elif used:
            number = sorted(used)[op % len(used)]
            del used[number]
            lists.pool_give(pool.address, number)
    data = view(pool[L.items.data], pool[L.items.count] * 3, np.int64)
    assert all(data[number * 3 : number * 3 + 3].tolist() == [stamp] * 3 for number, stamp in used.items())
    assert pool[L.items.count] <= ops.count(None)
    lists.list_free(control, pool.address)
    assert memory.used == 0
