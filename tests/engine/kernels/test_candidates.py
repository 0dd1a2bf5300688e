"""Candidates of groups against a dictionary: lists that grow long are found by hash, and become short again."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.combine import Combine
from dlog.engine.kernels.incremental.reduce import candidate, candidates, group_links
from dlog.engine.kernels.incremental.store import collections as kernels
from dlog.engine.kernels.incremental.store import slots
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import words
from dlog.engine.runtime.storage.reduction import Reduction
from tests.engine.kernels.workbench import EXAMPLES, MAX, MIN
from tests.examples import examples

Step = tuple[int, int, bool]
"""A group, a value, and whether it comes."""


class Groups:
    """A minimum's groups with candidates, and what they are to be."""

    def __init__(self) -> None:
        self.memory = Memory(None)
        self.worker = Worker(self.memory)
        self.control = self.worker.control.address
        self.result = Collection("m", (Kind.NUMBER, Kind.NUMBER), Role.RESULT, self.memory)
        self.reduction = Reduction(self.result, Combine.LEAST, Kind.NUMBER, 1)
        self.rows: dict[tuple[int, int], int] = {}
        self.longest = 0

    def group(self, key: int) -> int:
        values = words([key])
        hashed = slots.hash_values(values.address, 1)
        return int(kernels.find_or_add(self.control, self.reduction.groups.address, values.address, hashed))

    def step(self, key: int, value: int, comes: bool) -> None:
        group = self.group(key)
        if comes:
            row = int(candidates.candidate_row(self.control, self.reduction.address, np.int64(group), np.int64(value)))
            assert row == self.rows.get((key, value), row)
            assert row not in (r for pair, r in self.rows.items() if pair != (key, value))
            self.rows[key, value] = row
        elif (key, value) in self.rows:
            row = np.int64(self.rows.pop((key, value)))
            assert candidates.unlink(self.control, self.reduction.address, group, row)
        self.longest = max(self.longest, len(self.listed(key)))

    def listed(self, key: int) -> list[int]:
        """The values of a group, along its list."""
        assert self.reduction.candidates is not None
        struct, group = self.reduction.candidates.struct.address, self.group(key)
        at, found = int(group_links.first_candidate(self.reduction.groups.address, np.int64(group))), []
        while at:
            row = np.int64(at - 1)
            found.append(int(candidate.candidate_value(struct, row)))
            assert int(candidate.candidate_group(struct, row)) == group
            at = int(candidate.next_candidate(struct, row))
        return found

    def check(self, keys: Sequence[int]) -> None:
        for key in keys:
            listed = self.listed(key)
            assert sorted(listed) == sorted(v for k, v in self.rows if k == key)
            if int(group_links.head_of(self.reduction.groups.address, np.int64(self.group(key)))) > 0:
                assert listed == sorted(listed), "the best one is not first"

    def close(self) -> None:
        self.reduction.free()
        self.result.free()
        assert self.memory.used == 0


VALUES = st.one_of(st.integers(0, 40), st.sampled_from([MIN, MAX, 2**31, -(2**31) - 1]))


@pytest.mark.slow
@examples(EXAMPLES)
@given(steps=st.lists(st.tuples(st.integers(0, 2), VALUES, st.sampled_from([True, True, False])), max_size=120))
def test_each_group_has_the_candidates_that_came_and_did_not_go(steps: list[Step]) -> None:
    groups = Groups()
    for step in steps:
        groups.step(*step)
    groups.check(range(3))
    groups.close()


@pytest.mark.slow
def test_a_list_whose_best_value_changes_each_time_is_found_by_hash_where_others_are_asked_for() -> None:
    groups = Groups()
    values = [-value for value in range(5 * candidates.MIN_HASHED_CANDIDATES)]
    for value in values:
        groups.step(7, value, True)
    groups.check([7])
    assert groups.reduction.struct[L.reduction.table_used] == 0
    groups.step(7, values[0], True)
    assert groups.reduction.struct[L.reduction.table_used] == len(values)
    groups.check([7])
    groups.close()


@pytest.mark.slow
@pytest.mark.parametrize("apart", [1, 2**33])
def test_a_list_grows_long_and_short_again(apart: int) -> None:
    groups, random = Groups(), Random(4)
    values = [v * apart for v in range(5 * candidates.MIN_HASHED_CANDIDATES)]
    for _ in range(2):
        random.shuffle(values)
        for value in values:
            groups.step(7, value, True)
            groups.step(8, value % (3 * apart), True)
        for value in values:
            groups.step(7, value, True)
        groups.check([7, 8])
        assert groups.longest > candidates.MIN_HASHED_CANDIDATES
        assert groups.reduction.struct[L.reduction.table_used] == len(values)
        random.shuffle(values)
        for number, value in enumerate(values):
            groups.step(7, value, False)
            if number % 16 == 0:
                groups.check([7])
        groups.check([7, 8])
        assert groups.reduction.struct[L.reduction.table_used] == 0
        assert len(groups.listed(8)) == 3
    groups.close()
