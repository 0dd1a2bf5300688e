"""Inputs whose rows are words of one table, against Python's sets: alone, and in engines whose rules count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.compiler import compile_source
from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.kernels.incremental.inputs import input_changes, loading
from dlog.engine.kernels.incremental.loop import batches as batch
from dlog.engine.kernels.incremental.store import pairs
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import words
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.source import Source
from tests.engine.kernels.workbench import EXAMPLES, MANY, MAX, MIN
from tests.engine.runtime.maintaining import COUNTS, commit, engine_of, rows
from tests.examples import examples

Pair = tuple[int, int]
Change = tuple[Pair, int]
LEAST, MOST = -(2**31), 2**31 - 1


class Store:
    """An input of two columns that nobody looks into, and the set of rows that it is to hold."""

    def __init__(self) -> None:
        self.memory = Memory(None)
        self.control = Worker(self.memory).control
        self.collection = Collection("c", (Kind.NUMBER,) * 2, Role.INPUT, self.memory)
        self.collection.quieten()
        self.rows: set[Pair] = set()

    @property
    def paired(self) -> bool:
        return self.collection.struct[L.collection.pairs] != 0

    def batch(self, rounds: Sequence[Sequence[Change]]) -> None:
        """One batch, in the store and in the set: meanwhile the rows before it can be read, and its log tells what differs."""
        control, address = self.control.address, self.collection.address
        listed = [(*row, diff, number) for number, round in enumerate(rounds) for row, diff in round]
        staged = np.array(listed, np.int64).reshape(len(listed), 4)
        batch.forget_changes(control, address)
        batch.begin(control, address, len(rounds))
        assert input_changes.apply_input(control, address, int(staged.ctypes.data), len(staged))
        assert self.read(before=True) == self.rows
        assert self.told(len(rounds)) == [self.followed(round) for round in rounds]
        assert batch.settle(control, address)
        assert self.read() == self.rows

    def load(self, rows: Sequence[Pair]) -> None:
        control, address = self.control.address, self.collection.address
        columns = np.array(rows, np.int64).reshape(len(rows), 2).T.copy()
        listed = words(int(column.ctypes.data) for column in columns)
        batch.forget_changes(control, address)
        batch.begin(control, address, 1)
        assert loading.bring_in(control, address, 0, listed.address, len(rows))
        self.rows = set(rows)
        assert self.told(1) == [{(row, 1) for row in self.rows}]
        assert batch.settle(control, address)
        assert self.read() == self.rows

    def followed(self, round: Sequence[Change]) -> set[Change]:
        before = set(self.rows)
        for row, diff in round:
            (self.rows.add if diff > 0 else self.rows.discard)(row)
        return {(row, 1) for row in self.rows - before} | {(row, -1) for row in before - self.rows}

    def told(self, rounds: int) -> list[set[Change]]:
        """What each round changed in all."""
        updates = self.collection.updates(0)
        totals = [Counter[Pair]() for _ in range(rounds)]
        for *row, place, diff in zip(*updates.columns, updates.rounds, updates.diffs, strict=True):
            totals[place][int(row[0]), int(row[1])] += diff
        return [{(row, diff) for row, diff in total.items() if diff} for total in totals]

    def read(self, before: bool = False) -> set[Pair]:
        (first, second), count = self.collection.read(before)
        found = list(zip(first.tolist(), second.tolist(), strict=True))
        assert len(found) == len(set(found)) == count == self.collection.rows(before)
        return set(found)

    def close(self) -> None:
        self.collection.free()
        assert self.memory.used == 0


VALUES = st.sampled_from([0, 1, -1, 7, LEAST, LEAST + 1, MOST, MOST - 1])
WIDE = st.sampled_from([0, 1, 2**31, LEAST - 1, MIN, MAX])


def stories(value: st.SearchStrategy[int]) -> st.SearchStrategy[list[list[list[Change]]]]:
    """Batches of rounds of changes; rows come that are there, and go that are not."""
    change = st.tuples(st.tuples(value, value), st.sampled_from([1, 1, -1]))
    return st.lists(st.lists(st.lists(change, max_size=12), min_size=1, max_size=3), min_size=1, max_size=6)


@examples(4 * EXAMPLES)
@given(listed=stories(VALUES))
def test_rows_follow_every_batch(listed: list[list[list[Change]]]) -> None:
    store = Store()
    for rounds in listed:
        store.batch(rounds)
    store.close()


@examples(2 * EXAMPLES)
@given(narrow=stories(VALUES), wide=stories(WIDE), then=stories(VALUES))
def test_rows_that_are_no_words_make_all_rows_ordinary_ones(
    narrow: list[list[list[Change]]], wide: list[list[list[Change]]], then: list[list[list[Change]]]
) -> None:
    store = Store()
    for rounds in [*narrow, *wide, *then]:
        store.batch(rounds)
    store.close()


@pytest.mark.parametrize("far", [2**31, LEAST - 1, MIN, MAX])
@pytest.mark.parametrize("column", [0, 1])
def test_a_value_of_more_than_32_bits_ends_pairs(far: int, column: int) -> None:
    store = Store()
    store.batch([[((x, -x), 1) for x in range(100)]])
    assert store.paired
    row = (far, 5) if column == 0 else (5, far)
    store.batch([[((3, -3), -1)], [(row, 1), ((4, -4), -1), ((4, -4), 1)]])
    assert not store.paired
    store.batch([[(row, -1)], [((3, -3), 1)]])
    store.close()


def test_the_least_32_bit_value_may_stand_first_only() -> None:
    """The word of a row whose second value it is could be 0, which is a free place."""
    store = Store()
    store.batch([[((LEAST, 0), 1), ((LEAST, LEAST + 1), 1)]])
    assert store.paired
    store.batch([[((0, LEAST), 1)]])
    assert not store.paired
    store.close()


@pytest.mark.slow
def test_a_table_with_few_places_loses_nothing_when_rows_go() -> None:
    """Rows that stood behind a removed one, beyond the table's end too, are still found."""
    random = Random(5)
    for _ in range(200 if JIT else 3):
        store = Store()
        listed = [(random.randrange(50), random.randrange(50)) for _ in range(46)]
        store.batch([[(row, 1) for row in listed]])
        random.shuffle(listed)
        for row in listed[:30]:
            store.batch([[(row, -1)]])
        store.batch([[(row, 1) for row in listed]])
        assert store.collection.struct[L.collection.pair_homes_count] <= 512
        store.close()


def test_many_rows_come_and_go() -> None:
    store, random = Store(), Random(6)
    rows = [(random.randrange(MANY), random.randrange(-50, 50)) for _ in range(MANY)]
    store.load([*rows, *rows[::5]])
    assert store.paired
    store.batch([[(row, -1) for row in rows[::2]], [((y, x), 1) for x, y in rows[::3]], [(row, 1) for row in rows[::4]]])
    store.batch([[(row, -1) for row in store.rows]])
    assert not store.rows
    store.batch([[((1, 2), 1)]])
    store.close()


def test_a_table_that_is_loaded_has_little_room_but_its_homes() -> None:
    """Not a place for each row behind the last home: all rows in one run would need them, and none has been there yet."""
    store = Store()
    store.load([(x, x * x % 10007) for x in range(MANY)])
    homes, room = store.collection.struct[L.collection.pair_homes_count], store.collection.struct[L.collection.pair_homes_room]
    assert len(store.rows) < homes < room <= homes + 3 * L.BLOCK
    assert homes <= 3 * MANY
    store.close()


def test_what_is_loaded_with_a_wide_value_has_ordinary_rows() -> None:
    store = Store()
    store.load([(x, 2**40 + x) for x in range(100)])
    assert not store.paired
    store.batch([[((3, 2**40 + 3), -1)]])
    store.close()


def test_rows_are_the_same_when_they_are_made_ordinary_ones() -> None:
    store, random = Store(), Random(7)
    store.load([(random.randrange(-900, 900), random.randrange(LEAST + 1, MOST)) for _ in range(MANY // 10)])
    store.batch([[(row, -1) for row in sorted(store.rows)[::3]]])
    store.collection.hold_rows()
    assert not store.paired
    assert store.read() == store.rows
    store.batch([[(row, -1) for row in sorted(store.rows)[::3]], [((1, 1), 1)]])
    store.close()


@given(first=st.integers(LEAST, MOST), second=st.integers(LEAST + 1, MOST))
def test_a_word_tells_its_values_and_is_not_0(first: int, second: int) -> None:
    word = pairs.pack(np.int64(first), np.int64(second))
    assert word != 0
    assert (pairs.first_of(word), pairs.second_of(word)) == (first, second)


# -------------------------------------------------------------------------------------------------------------- in engines

FAILING = COUNTS + ".decl q(x: number, y: number)\n.output q\nq(x, 10 / (c - 3)) :- n(x, c).\n"


def is_paired(engine: Maintained) -> bool:
    assert engine._flow is not None
    return bool(engine._flow.collections["e"].struct[L.collection.pairs])


def test_an_input_that_is_only_counted_has_pairs_and_one_that_is_joined_has_not() -> None:
    with engine_of(COUNTS) as engine:
        commit(engine, (0, 1, 1, 2))
        assert is_paired(engine)
    with engine_of(COUNTS + ".decl t(x: number, y: number)\n.output t\nt(x, z) :- e(x, y), e(y, z).\n") as engine:
        commit(engine, (0, 1, 1, 2))
        assert not is_paired(engine)


def test_changes_of_pairs_are_told_by_row_and_round() -> None:
    """Many at once, so that they are netted: second values that differ as rounds do must not make one row of two."""
    with engine_of(COUNTS) as engine:
        commit(engine, (0, 1, 7, -1))
        commit(engine, *[(number, 1, 7, 10 * (2 - number) + y) for number in range(3) for y in range(10)])
        told = engine.changes("e")
        listed = zip(told.rounds.tolist(), *(c.tolist() for c in told.columns), told.diffs.tolist(), strict=True)
        assert sorted(listed) == sorted((4 - y // 10, 7, y, 1) for y in range(30))


def test_changes_of_pairs_in_one_round_cancel_each_other() -> None:
    with engine_of(COUNTS) as engine:
        commit(engine, (0, 1, 7, -1))
        turns = [(number, diff, 7, y) for number in range(2) for y in range(12) for diff in (1, -1)]
        commit(engine, *turns, (1, 1, 7, 5))
        told = engine.changes("e")
        assert (told.rounds.tolist(), told.diffs.tolist()) == ([3], [1])
        assert [c.tolist() for c in told.columns] == [[7], [5]]


def test_a_commit_that_fails_leaves_the_pairs_as_they_were() -> None:
    with engine_of(FAILING) as engine:
        commit(engine, *[(0, 1, x, y) for x in range(5) for y in range(2)])
        before = rows(engine, "e"), rows(engine, "n"), rows(engine, "q")
        with pytest.raises(DlogError, match="division by zero"):
            commit(engine, (0, -1, 0, 0), (0, 1, 9, 9), (1, 1, 2, 7), (1, 1, 9, 9))
        assert (rows(engine, "e"), rows(engine, "n"), rows(engine, "q")) == before
        commit(engine, (0, -1, 0, 0), (0, 1, 9, 9))
        assert rows(engine, "e") == before[0] - {(0, 0)} | {(9, 9)}
        assert is_paired(engine)


@pytest.mark.parametrize("rows_before", [0, 200])
@pytest.mark.parametrize("rule", ["t(x, z) :- e(x, y), e(y, z).", "t(x, y) :- e(x, y), !e(y, x)."])
def test_a_rule_that_looks_rows_up_finds_them_when_it_comes_later(rule: str, rows_before: int) -> None:
    random = Random(8)
    text = COUNTS + f".decl t(x: number, y: number)\n.output t\n{rule}\n"
    with engine_of(COUNTS) as old, engine_of(text) as fresh:
        first = [(0, 1, random.randrange(30), random.randrange(30)) for _ in range(rows_before)]
        later = [(0, -1, x, y) for _, _, x, y in first[::3]]
        news = [(0, 1, x, y) for x in range(30) for y in (1, 2, 100)]
        commit(old, *first, (0, 1, 500, 0))
        commit(old, *later, (0, -1, 500, 0))
        heir = Maintained(compile_source(Source(text)), old=old)
        for engine in (heir, fresh):
            commit(engine, *(news if engine is heir else [*first, *later, *news]))
        for relation in ("e", "n", "t"):
            assert rows(heir, relation) == rows(fresh, relation)
        heir.close()


def test_an_engine_that_takes_nothing_over_in_the_end_gives_the_rows_back() -> None:
    text = COUNTS + ".decl t(x: number, y: number)\n.output t\nt(x, 10 / (z - 3)) :- e(x, y), e(y, z).\n"
    with engine_of(COUNTS) as old:
        commit(old, (0, 1, 1, 2), (0, 1, 2, 3), (0, 1, 2, 4))
        commit(old, (0, -1, 2, 4))
        heir = Maintained(compile_source(Source(text)), old=old)
        with pytest.raises(DlogError, match="division by zero"):
            heir.commit({})
        heir.close()
        told = old.changes("e")
        assert [tuple(int(c[0]) for c in told.columns), *told.diffs] == [(2, 4), -1]
        commit(old, (0, 1, 5, 5))
        assert rows(old, "e") == {(1, 2), (2, 3), (5, 5)}
        assert rows(old, "n") == {(1, 1), (2, 1), (5, 1)}
