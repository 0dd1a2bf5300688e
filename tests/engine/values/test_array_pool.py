"""Pooled memory: nobody's array is handed out again, what comes back is, and little is kept."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest

from dlog.engine.values.array_pool import (
    MAX_FREE_BLOCKS,
    MAX_POOLED_WORDS,
    MIN_POOLED_WORDS,
    MIN_RECURRING_WORDS,
    ArrayPool,
    DoubleBuffer,
    RecurringBlocks,
)


def place(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def test_what_comes_back_is_lent_again() -> None:
    pool = ArrayPool()
    first = pool.words(2 * MIN_POOLED_WORDS)
    at = place(first)
    del first
    gc.collect()
    again = pool.words(2 * MIN_POOLED_WORDS - 1)
    assert (place(again), again.size) == (at, 2 * MIN_POOLED_WORDS - 1)
    assert place(pool.words(2 * MIN_POOLED_WORDS - 1)) != at


def test_much_is_not_lent_for_little() -> None:
    pool = ArrayPool()
    first = pool.words(8 * MIN_POOLED_WORDS)
    at = place(first)
    del first
    gc.collect()
    assert place(pool.words(MIN_POOLED_WORDS)) != at


@pytest.mark.slow
def test_as_long_as_a_part_is_in_use_it_is_not_lent() -> None:
    pool = ArrayPool()
    block = pool.words(4 * MIN_POOLED_WORDS).reshape(4, MIN_POOLED_WORDS)
    row, arrow = block[1], pa.array(block[2])
    row[:] = 7
    del block
    gc.collect()
    others = [pool.words(4 * MIN_POOLED_WORDS) for _ in range(3)]
    for other in others:
        other[:] = 0
    assert (row == 7).all()
    del row
    gc.collect()
    assert pool.words(4 * MIN_POOLED_WORDS).size == 4 * MIN_POOLED_WORDS
    assert len(arrow) == MIN_POOLED_WORDS


@pytest.mark.slow
def test_little_is_kept() -> None:
    pool = ArrayPool()
    held = [pool.words(MIN_POOLED_WORDS) for _ in range(5)]
    places = {place(array) for array in held}
    del held
    gc.collect()
    assert len(pool._free) == MAX_FREE_BLOCKS
    assert {place(block) for block in pool._free} <= places
    del places
    large = pool.words(MAX_POOLED_WORDS + 1)
    del large
    gc.collect()
    assert len(pool._free) == MAX_FREE_BLOCKS
    pool.clear()
    assert not pool._free


def test_recurring_blocks_take_turns_until_there_is_a_small_one() -> None:
    blocks = RecurringBlocks()
    first = blocks.block(4, MIN_RECURRING_WORDS)
    second, at = blocks.block(4, MIN_RECURRING_WORDS), place(first)
    assert place(second) != at
    del first
    gc.collect()
    third = blocks.block(4, MIN_RECURRING_WORDS - 1)
    assert (place(third), third.shape) == (at, (4, MIN_RECURRING_WORDS - 1))
    del second, third
    gc.collect()
    assert blocks.block(3, 5).shape == (3, 5)
    assert not blocks._pool._free


def test_few_words_are_ordinary_memory() -> None:
    array = ArrayPool().words(10)
    assert array.base is None


def test_what_was_written_last_stays_while_the_next_is_written() -> None:
    turns, dtypes = DoubleBuffer(), [np.dtype(np.int32), np.dtype(np.int64)]
    last: list[np.ndarray] = []
    for number in range(6):
        columns = turns.columns(dtypes, 10 + number)
        assert [(c.dtype, c.size, c.ctypes.data % c.itemsize) for c in columns] == [(d, 10 + number, 0) for d in dtypes]
        for column in columns:
            column[:] = number
        assert all((column == number - 1).all() for column in last)
        last = columns


def test_memory_has_its_turn_again() -> None:
    turns, dtypes = DoubleBuffer(), [np.dtype(np.int64)]
    places = [place(turns.columns(dtypes, MIN_POOLED_WORDS)[0]) for _ in range(4)]
    assert places[:2] == places[2:]
    assert len(set(places)) == 2
