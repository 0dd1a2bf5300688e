"""Unaligned machine words inside byte arrays, for kernels over strings.

Addresses are int64 (an array's `.ctypes` inside a kernel costs two atomic operations: take it once, outside loops).
`load_word` and `store_word` move eight bytes, least significant first, whatever the alignment; a `limit` is the address where
readable or writable memory ends.
"""

from __future__ import annotations

import ctypes

import numpy as np

from dlog.engine.kernels.core.jit import JIT, entry, intrinsic, kernel
from dlog.engine.kernels.core.memory import bit_length, load_u8, store_u8, wrapped_sum
from dlog.engine.kernels.machine_structs import Bytes

ONES = 0x0101010101010101
HIGH_BITS = -0x7F7F7F7F7F7F7F80
"""Of a word of eight bytes: the lowest bit of each, the highest bit of each."""

if JIT:
    load_word, store_word = intrinsic("load_word"), intrinsic("store_word")

else:

    def load_word(address: int) -> np.uint64:
        return np.uint64(ctypes.c_uint64.from_address(int(address)).value)

    def store_word(address: int, word: int) -> None:
        ctypes.c_uint64.from_address(int(address)).value = int(word)


@kernel
def tail_word(address: Bytes, length, limit):
    """The `length` (0 to 8) bytes at `address`, least significant first, zero above them; memory ends at `limit`."""
    if length == 0:
        return np.uint64(0)
    if address.address + 8 <= limit:
        return load_word(address.address) & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * length))
    word = np.uint64(0)
    for i in range(length):
        word |= np.uint64(address[i]) << np.uint64(8 * i)
    return word


@entry()
def hash_bytes(address, length, limit):
    """A 32-bit hash of `length` bytes, as the low half of a uint64; memory ends at `limit`."""
    factor = np.uint64(0x9E3779B97F4A7C15)
    value = np.uint64(length) * factor
    while length > 8:
        value = (value ^ load_word(address)) * factor
        value ^= value >> np.uint64(29)
        address += 8
        length -= 8
    value = (value ^ tail_word(Bytes(address), length, limit)) * factor
    value ^= value >> np.uint64(32)
    value *= np.uint64(0xD6E8FEB86659FD93)
    return value >> np.uint64(32)


@kernel
def equal_bytes(left, left_limit, right, right_limit, length):
    """Whether the `length` bytes at two addresses are the same."""
    while length > 8:
        if load_word(left) != load_word(right):
            return False
        left += 8
        right += 8
        length -= 8
    return tail_word(Bytes(left), length, left_limit) == tail_word(Bytes(right), length, right_limit)


@kernel
def copy_bytes(source, target, length, source_limit, target_limit):
    """Copies `length` bytes upwards, a word at a time; may write up to seven bytes behind them, not behind `target_limit`."""
    while length > 0 and source + 8 <= source_limit and target + 8 <= target_limit:
        store_word(target, load_word(source))
        source += 8
        target += 8
        length -= 8
    for i in range(length):
        store_u8(target, i, load_u8(source, i))


@kernel
def zero_bytes(word):
    """A word whose lowest bit is the highest one of the first byte that is zero; 0 if none is. (Mycroft's test: bits above that
    one may be wrong.)"""
    return wrapped_sum(word, -ONES) & ~word & HIGH_BITS


@kernel
def first_byte(found):
    """The number of the byte that the lowest bit of a word is in."""
    return (bit_length(found & -found) - 1) >> 3
