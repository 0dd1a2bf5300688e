"""Derivations of a lattice's candidate at iterations, against a dictionary: few in its word, others in the pool."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.combine import Combine
from dlog.engine.kernels.incremental.reduce import candidate, candidates, derivations
from dlog.engine.kernels.incremental.store import collections as kernels
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, view, words
from dlog.engine.runtime.storage.reduction import Reduction
from tests.engine.kernels.workbench import EXAMPLES
from tests.examples import examples

Change = tuple[int, int]
"""An iteration, and how many derivations come or go."""


class Lattice:
    """A minimum with one candidate, whose derivations change round by round."""

    def __init__(self) -> None:
        self.memory = Memory(None)
        self.worker = Worker(self.memory)
        self.control = self.worker.control.address
        self.loop = Struct(L.scope.size)
        self.result = Collection("d", (Kind.NUMBER, Kind.NUMBER), Role.LATTICE, self.memory)
        self.reduction = Reduction(self.result, Combine.LEAST, Kind.NUMBER, 1, self.loop)
        assert self.reduction.candidates is not None
        self.candidates = self.reduction.candidates
        self.group = np.int64(kernels.find_or_add(self.control, self.reduction.groups.address, words([7]).address, np.int64(0)))
        row = candidates.candidate_row(self.control, self.reduction.address, self.group, np.int64(5))
        self.row = np.int64(row)
        self.counts: Counter[int] = Counter()

    @property
    def place(self) -> np.int64:
        return np.int64(candidate.candidate_at(self.candidates.address, self.row))

    @property
    def word(self) -> int:
        return int(view(int(self.place), 1, np.int64)[0])

    def change(self, iteration: int, diff: int) -> None:
        arguments = self.group, self.row, np.int64(iteration), np.int64(diff)
        assert derivations.derive_candidate(self.control, self.reduction.address, *arguments)
        self.counts[iteration] += diff

    def total(self) -> int:
        return int(derivations.derivations_after(self.candidates.address, self.place))

    def settle(self) -> None:
        derivations.settle_derivations(self.candidates.address, self.place)
        self.candidates.struct.keep[L.collection.touched][L.items.count] = 0  # type: ignore[index]

    def settled(self) -> dict[int, int]:
        """The derivations before a round."""
        word, pool = self.word, self.candidates.struct.keep[L.collection.derivation_entries]
        if derivations.is_single(np.int64(word)):
            old = int(derivations.single_old(np.int64(word)))
            assert old == int(derivations.single_new(np.int64(word)))
            return {int(derivations.single_iteration(np.int64(word))): old}
        found: dict[int, int] = {}
        while word:
            at, old, new = view(pool[L.items.data], pool[L.items.count] * 3, np.int64).reshape(-1, 3)[word - 1].tolist()  # type: ignore[index]
            assert old == new
            assert not found or at & 0xFFFFFFFF > max(found)
            found[at & 0xFFFFFFFF], word = old, at >> 32
        return found

    def touched(self) -> int:
        return int(self.candidates.struct.keep[L.collection.touched][L.items.count])  # type: ignore[index]

    def close(self) -> None:
        self.reduction.free()
        self.result.free()


DIFFS = st.one_of(st.integers(-3, 3).filter(bool), st.sampled_from([-(2**14), 2**14 - 1, 2**14, 2**40]))
ITERATIONS = st.one_of(st.integers(0, 3), st.just(1000))


@pytest.mark.slow
@examples(EXAMPLES)
@given(rounds=st.lists(st.lists(st.tuples(ITERATIONS, DIFFS), max_size=5), max_size=8))
def test_what_is_left_of_derivations_is_their_sum_at_each_iteration(rounds: list[list[Change]]) -> None:
    lattice = Lattice()
    for changes in rounds:
        for change in changes:
            lattice.change(*change)
            assert lattice.total() == sum(lattice.counts.values())
        assert bool(lattice.touched()) == bool(changes)
        lattice.settle()
        assert lattice.settled() == {at: count for at, count in lattice.counts.items() if count}
    lattice.close()


@pytest.mark.slow
@pytest.mark.parametrize(("count", "fits"), [(2**14 - 1, True), (2**14, False), (-(2**14), True), (-(2**14) - 1, False)])
def test_few_derivations_at_one_iteration_are_in_the_word(count: int, fits: bool) -> None:
    lattice = Lattice()
    lattice.change(9, count)
    lattice.settle()
    assert bool(derivations.is_single(np.int64(lattice.word))) == fits
    assert lattice.settled() == {9: count}
    lattice.close()


def test_derivations_return_to_the_word_when_one_iteration_is_left() -> None:
    lattice = Lattice()
    for iteration in (4, 2, 8):
        lattice.change(iteration, iteration)
    lattice.settle()
    assert not derivations.is_single(np.int64(lattice.word))
    lattice.change(2, -2)
    lattice.change(8, -8)
    lattice.settle()
    assert derivations.is_single(np.int64(lattice.word))
    assert lattice.settled() == {4: 4}
    lattice.close()
