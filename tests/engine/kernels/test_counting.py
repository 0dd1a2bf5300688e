"""Derivations of the total model, counted round by round, against a Counter."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Error
from dlog.engine.kernels.incremental.loop import changes
from dlog.engine.kernels.incremental.store import collections, lists
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role, new_list
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, view, words
from tests.engine.kernels.workbench import EXAMPLES
from tests.examples import examples

ROWS = 200
Derived = tuple[int, int]
"""A row, and how many derivations come or go."""


class Counted:
    """A collection whose rows rules derive, and what they derive in a round."""

    def __init__(self) -> None:
        self.memory = Memory(None)
        self.worker = Worker(self.memory)
        self.control = self.worker.control
        self.collection = Collection("r", (Kind.NUMBER,), Role.TOTAL, self.memory)
        for value in range(ROWS):
            made = words([value])
            row = collections.find_or_add(self.control.address, self.collection.address, made.address, np.int64(value))
            assert row == value
        self.derived = new_list(L.change.size)

    def count(self, round: list[Derived]) -> bool:
        self.derived[L.items.count] = 0
        for row, diff in round:
            said = np.int64(row), np.int64(1), np.int64(diff), np.int64(0)
            assert lists.push_change(self.control.address, self.derived.address, *said)
        last = np.int64(len(round))
        return bool(changes.count_round(self.control.address, self.collection.address, self.derived.address, np.int64(0), last))

    @property
    def counts(self) -> list[int]:
        found: list[int] = view(self.collection.struct[L.collection.derivation_counts], ROWS, np.int64).tolist()
        return found

    @property
    def touched(self) -> list[Derived]:
        """Rows with their counts before the last round."""
        touched = self.collection.struct.keep[L.collection.touched]
        assert isinstance(touched, Struct)
        flat = view(touched[L.items.data], touched[L.items.count], np.int64).tolist()
        return list(zip(flat[::2], flat[1::2], strict=True))

    def is_marked(self) -> bool:
        bits = view(self.collection.struct[L.collection.derivation_touched_bits], (ROWS + 63) // 64, np.int64)
        return bool(bits.any())


DERIVED = st.tuples(st.integers(0, ROWS - 1) | st.sampled_from([0, 63, 64]), st.integers(-3, 3))


@examples(EXAMPLES)
@given(rounds=st.lists(st.lists(DERIVED, min_size=1, max_size=30), min_size=1, max_size=5))
def test_a_round_adds_to_counts_and_tells_of_each_row_once(rounds: list[list[Derived]]) -> None:
    counted = Counted()
    expected: Counter[int] = Counter()
    for round in rounds:
        before = {row: expected[row] for row, _ in round}
        for row, diff in round:
            expected[row] += diff
        assert counted.count(round)
        assert counted.counts == [expected[row] for row in range(ROWS)]
        assert counted.touched == list(before.items())
        assert not counted.is_marked()


@pytest.mark.parametrize("known", [1, 8, 9, 100])
def test_a_round_for_which_memory_does_not_suffice_leaves_no_row_marked(known: int) -> None:
    counted = Counted()
    assert counted.count([(row, 1) for row in range(known)])
    every = [(row, 1) for row in range(ROWS)]
    assert counted.count([]) and lists.list_room(counted.control.address, counted.derived.address, np.int64(ROWS))
    unlimited, counted.control[L.control.limit] = counted.control[L.control.limit], counted.memory.used
    assert not counted.count(every)
    assert counted.control[L.control.error] == Error.MEMORY
    assert not counted.is_marked()
    counted.control[L.control.limit], counted.control[L.control.error] = unlimited, 0
    assert counted.count(every)
    assert [row for row, _ in counted.touched] == list(range(ROWS))
