"""Rows that come in blocks against Python's sets: many changes a round, of rows that repeat, come, go and come back."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.kernels.incremental.inputs.row_blocks import STEP
from tests.engine.kernels.store import Change, Store
from tests.engine.kernels.workbench import EXAMPLES, MAX, MIN, Row
from tests.examples import examples

WIDE = (2**31, -(2**31) - 1, 2**40, MAX, MIN)
"""Values that need 8 bytes."""


def universe(random: Random, arity: int, count: int, wide: float) -> list[Row]:
    """Rows of small values, some of which are wide."""
    return [
        tuple(random.choice(WIDE) if random.random() < wide else random.randrange(-3, 40) for _ in range(arity))
        for _ in range(count)
    ]


def changes(random: Random, rows: list[Row], count: int, going: float) -> list[Change]:
    return [(random.choice(rows), -1 if random.random() < going else 1) for _ in range(count)]


@examples(EXAMPLES)
@given(
    seed=st.integers(0, 2**32),
    arity=st.integers(2, 6),
    count=st.sampled_from([1, 5, STEP - 1, STEP, 4 * STEP]),
    wide=st.sampled_from([0.0, 0.0, 0.01, 0.3]),
    going=st.sampled_from([0.0, 0.1, 0.5, 0.9]),
    indexed=st.booleans(),
)
def test_blocks_of_changes_do_what_one_after_the_other_does(
    seed: int, arity: int, count: int, wide: float, going: float, indexed: bool
) -> None:
    random = Random(seed)
    store = Store(arity, keys=[(0,), (1, 0)] if indexed else [])
    if not indexed and arity > 2:
        store.collection.quieten()
    rows = universe(random, arity, count, 0.0)
    for batch in range(5):
        if batch == 2:
            rows += universe(random, arity, count // 2 + 1, wide)
        store.batch([changes(random, rows, random.randrange(3 * STEP), going) for _ in range(random.choice([1, 1, 2, 3]))])
        store.check()
    store.batch([[(row, -1) for row in store.rows]])
    store.check()
    store.close()


@pytest.mark.parametrize("size", [1, STEP, STEP + 1, 5 * STEP])
def test_a_row_that_repeats_in_its_block_is_there_once(size: int) -> None:
    store = Store(4, keys=[])
    row = (1, 2, 3, 4)
    store.batch([[(row, 1)] * size])
    store.batch([[((number, number, number, number), 1) for number in range(size)] * 2])
    assert len(store.collection.present()) == size + 1
    store.check()
    store.close()


def test_rows_that_go_make_room_for_those_that_come_with_them() -> None:
    """What is noted of those that go does not take the room of what waits to be noted."""
    store = Store(3)
    for first in range(0, 40 * STEP, STEP // 2):
        gone = [((number, 1, 2), -1) for number in range(first - STEP // 2, first)]
        come = [((number, 1, 2), 1) for number in range(first, first + STEP // 2)]
        store.batch([[change for pair in zip(come, gone, strict=True) for change in pair]])
    store.check()
    assert len(store.rows) == STEP // 2
    store.close()


def test_a_wide_value_that_goes_does_not_make_its_column_wide() -> None:
    store = Store(3)
    store.batch([[((1, 2, 3), 1)]])
    store.batch([[((1, 2, MAX), -1)]])
    assert store.collection.column(2).itemsize == 4
    store.batch([[((1, 2, MAX), 1)]])
    assert store.collection.column(2).itemsize == 8
    store.check()
    store.close()
