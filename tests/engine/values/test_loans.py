"""Lent memory: nobody's array is lent again, what comes back is, and little is kept."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa

from dlog.engine.values.loans import MAX_FREE_BLOCKS, MAX_POOLED_WORDS, MIN_POOLED_WORDS, ArrayPool, DoubleBuffer


def place(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def test_what_comes_back_is_lent_again() -> None:
    lender = ArrayPool()
    first = lender.words(2 * MIN_POOLED_WORDS)
    at = place(first)
    del first
    gc.collect()
    again = lender.words(2 * MIN_POOLED_WORDS - 1)
    assert (place(again), again.size) == (at, 2 * MIN_POOLED_WORDS - 1)
    assert place(lender.words(2 * MIN_POOLED_WORDS - 1)) != at


def test_much_is_not_lent_for_little() -> None:
    lender = ArrayPool()
    first = lender.words(8 * MIN_POOLED_WORDS)
    at = place(first)
    del first
    gc.collect()
    assert place(lender.words(MIN_POOLED_WORDS)) != at


def test_as_long_as_a_part_is_in_use_it_is_not_lent() -> None:
    lender = ArrayPool()
    block = lender.words(4 * MIN_POOLED_WORDS).reshape(4, MIN_POOLED_WORDS)
    row, arrow = block[1], pa.array(block[2])
    row[:] = 7
    del block
    gc.collect()
    others = [lender.words(4 * MIN_POOLED_WORDS) for _ in range(3)]
    for other in others:
        other[:] = 0
    assert (row == 7).all()
    del row
    gc.collect()
    assert lender.words(4 * MIN_POOLED_WORDS).size == 4 * MIN_POOLED_WORDS
    assert len(arrow) == MIN_POOLED_WORDS


def test_little_is_kept() -> None:
    lender = ArrayPool()
    held = [lender.words(MIN_POOLED_WORDS) for _ in range(5)]
    places = {place(array) for array in held}
    del held
    gc.collect()
    assert len(lender._free) == MAX_FREE_BLOCKS
    assert {place(block) for block in lender._free} <= places
    del places
    large = lender.words(MAX_POOLED_WORDS + 1)
    del large
    gc.collect()
    assert len(lender._free) == MAX_FREE_BLOCKS


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
