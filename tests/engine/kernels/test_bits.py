"""Bits of words: single ones and ranges, beside a list."""

from __future__ import annotations

from random import Random

import numpy as np

from dlog.engine.kernels.incremental.store import bits
from dlog.engine.kernels.machine_structs import Words

WORDS = 5
SIZE = 64 * WORDS


def test_bits_are_those_of_a_list() -> None:
    random = Random(1)
    words = np.zeros(WORDS, np.int64)
    address, twin = Words(words.ctypes.data), [0] * SIZE
    for number in range(400):
        first, last = sorted(random.choices(range(SIZE + 1), k=2))
        if number % 20 == 0:
            bits.fill_bits(address, np.int64(first), np.int64(last))
            twin[first:last] = [1] * (last - first)
        for row in random.choices(range(SIZE), k=8 if number % 40 < 20 else 40):
            if number % 2:
                bits.clear_bit(address, np.int64(row))
            else:
                bits.put_bit(address, np.int64(row))
            twin[row] = 1 - number % 2
        assert [bits.get_bit(address, np.int64(row)) for row in range(SIZE)] == twin
        found = [find(address, np.int64(first), np.int64(last)) for find in (bits.next_bit, bits.next_clear_bit)]
        part = twin[first:last]
        assert found == [first + part.index(wanted) if wanted in part else last for wanted in (1, 0)]
        assert bits.count_bits(address, np.int64(first), np.int64(last)) == sum(part)
