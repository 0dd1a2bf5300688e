"""Rows that come in the order of a column, one behind the other, become rows of a base that grows: against Python's sets, and
by what they take."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.kernels.incremental.store.base import KEYS_PER_ROW
from dlog.engine.runtime.storage.memory_map import collection_arrays
from tests.engine.kernels.store import Change, Store
from tests.engine.kernels.workbench import EXAMPLES, Row
from tests.examples import examples


def base_rows(store: Store) -> int:
    return int(store.collection.struct[L.collection.base_rows])


def slots(store: Store) -> int:
    return int(store.collection.struct[L.collection.used_slots])


class Counting:
    """Rows whose column `key` counts up: some have the same value there, and differ in what is behind it."""

    def __init__(self, random: Random, arity: int, key: int, gap: int) -> None:
        self.random, self.arity, self.key, self.gap = random, arity, key, gap
        self.at = random.randrange(-50, 50)

    def next(self, count: int) -> list[Row]:
        """So many rows behind all before."""
        found: set[Row] = set()
        while len(found) < count:
            self.at += self.random.choice([0, 0, 1, 1, self.gap])
            found.add(self.row(self.at))
            if self.random.random() < 0.3:
                self.at += 1
        rows = sorted(found, key=lambda row: (row[self.key], row))
        self.at += 1
        return rows

    def row(self, value: int) -> Row:
        others = [self.random.randrange(4) for _ in range(self.arity - 1)]
        return (*others[: self.key], value, *others[self.key :])


@examples(EXAMPLES)
@given(
    seed=st.integers(0, 2**32),
    arity=st.integers(2, 5),
    gap=st.sampled_from([1, 2, KEYS_PER_ROW, 40]),
    late=st.sampled_from([0.0, 0.0, 0.02, 0.5]),
    going=st.sampled_from([0.0, 0.1, 0.6]),
    indexed=st.sampled_from(["no", "by the key", "by others"]),
    loaded=st.sampled_from([0, 0, 100, 5000]),
    by_columns=st.booleans(),
)
def test_rows_that_count_up_are_those_of_a_set(
    seed: int, arity: int, gap: int, late: float, going: float, indexed: str, loaded: int, by_columns: bool
) -> None:
    random = Random(seed)
    key = random.randrange(arity)
    keys = {"no": [], "by the key": [(key,)], "by others": [((key + 1) % arity,), (key, (key + 1) % arity)]}[indexed]
    store = Store(arity, keys=keys)
    if indexed == "no" and arity > 2:
        store.collection.quieten()
    counting = Counting(random, arity, key, gap)
    if loaded:
        store.load(counting.next(loaded))
    for _ in range(6):
        rounds: list[list[Change]] = []
        for _ in range(random.choice([1, 1, 3])):
            changes: list[Change] = [(row, 1) for row in counting.next(random.choice([1, 5, 70, 200]))]
            present = sorted(store.rows)
            for place in range(len(changes)):
                if random.random() < late:
                    changes[place] = counting.row(random.randrange(-60, counting.at)), 1
                elif present and random.random() < going:
                    changes.insert(random.randrange(len(changes)), (random.choice(present), random.choice([-1, -1, 1])))
            rounds.append(changes)
        store.batch(rounds, by_columns)
        store.check()
    store.batch([[(row, -1) for row in store.rows]], by_columns)
    store.check()
    store.close()


@pytest.mark.parametrize("key", [0, 2])
@pytest.mark.parametrize("first", [64, 1000])
def test_rows_that_count_up_have_no_slots(key: int, first: int) -> None:
    store = Store(3, keys=[])
    counting = Counting(Random(key), 3, key, 2)
    store.batch([[(row, 1) for row in counting.next(first)]])
    for count in (1, 2, 300, 1):
        store.batch([[(row, 1) for row in counting.next(count)]])
    assert base_rows(store) == len(store.rows) == first + 304
    assert slots(store) == 0
    store.check()
    store.close()


def test_a_row_that_is_late_gets_a_slot_as_do_those_behind_it() -> None:
    store = Store(3, keys=[])
    store.batch([[((number, 5, 5), 1) for number in range(100)]])
    store.batch([[((100, 5, 5), 1), ((50, 4, 4), 1), ((101, 5, 5), 1)]])
    assert base_rows(store) == 101
    assert slots(store) > 0
    store.check()
    store.close()


def test_rows_that_return_take_their_old_place_and_the_base_goes_on() -> None:
    store = Store(3, keys=[])
    store.batch([[((number, 5, 5), 1) for number in range(100)]])
    store.batch([[((number, 5, 5), -1) for number in range(40, 60)]])
    store.batch([[((50, 5, 5), 1), ((100, 5, 5), 1), ((99, 5, 5), 1), ((100, 5, 6), 1)]])
    assert base_rows(store) == 102
    assert slots(store) == 0
    store.check()
    store.close()


def test_keys_far_from_each_other_are_no_base() -> None:
    """Offsets would take more than slots do."""
    store = Store(3, keys=[])
    store.batch([[((number * (KEYS_PER_ROW + 1), 5, 5), 1) for number in range(500)]])
    assert base_rows(store) == 0
    store.batch([[((10**6, 5, 5), 1)]])
    store.check()
    store.close()


@pytest.mark.parametrize("keys", [[], [(0,)]])
def test_an_implied_key_stays_implied_while_the_base_grows(keys: list[tuple[int, ...]]) -> None:
    store = Store(3, keys=keys)
    counting = Counting(Random(1), 3, 0, 2)
    store.load(counting.next(5000))
    for count in (1, 63, 64, 65, 700):
        store.batch([[(row, 1) for row in counting.next(count)]])
        assert store.collection.struct[L.collection.base_samples] != 0
        assert base_rows(store) == len(store.rows)
        store.check()
    late = counting.row(0)
    store.batch([[(late, 1), (counting.next(1)[0], 1)]])
    store.check()
    store.close()


def test_a_base_that_grows_takes_less_than_slots() -> None:
    ordered, mixed = Store(3, keys=[]), Store(3, keys=[])
    rows = [(number, number % 7, 5) for number in range(20_000)]
    for first in range(0, len(rows), 500):
        ordered.batch([[(row, 1) for row in rows[first : first + 500]]])
    Random(1).shuffle(rows)
    for first in range(0, len(rows), 500):
        mixed.batch([[(row, 1) for row in rows[first : first + 500]]])
    taken = [
        sum(array.size for array in collection_arrays(store.collection) if array.struct[array.field])
        for store in (ordered, mixed)
    ]
    assert taken[0] < 0.9 * taken[1]
    ordered.close()
    mixed.close()


@pytest.mark.skipif(not JIT, reason="without the JIT so many rows take minutes")
@pytest.mark.parametrize("keys", [[], [(0,)]])
def test_a_window_that_moves_on_is_put_in_order_again(keys: list[tuple[int, ...]]) -> None:
    """Its places do not become ever more."""
    rows, step = 140_000, 20_000
    store = Store(3, keys=keys)
    store.load([(4 * number, number % 5, 1) for number in range(rows)])
    for first in range(0, 3 * rows, step):
        come = [((4 * number, number % 5, 1), 1) for number in range(first + rows, first + rows + step)]
        gone = [((4 * number, number % 5, 1), -1) for number in range(first, first + step)]
        store.batch([come + gone], by_columns=True)
        store.seen = set(store.rows)
    assert len(store.collection.present()) == len(store.rows) == rows
    assert int(store.collection.struct[L.relation.rows]) < 2 * rows
    store.close()
