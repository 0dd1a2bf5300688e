"""Bits, 64 to a word: those of [first, last) are filled, counted and found by whole words."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import bit_length
from dlog.engine.kernels.machine_structs import Words


@kernel
def get_bit(bits: Words, row):
    return (bits[row >> 6] >> (row & 63)) & 1


@kernel
def put_bit(bits: Words, row):
    bits[row >> 6] |= 1 << (row & 63)


@kernel
def clear_bit(bits: Words, row):
    bits[row >> 6] &= ~(1 << (row & 63))


@kernel
def fill_bits(bits: Words, first, last):
    """Sets the bits of [first, last)."""
    row = first
    while row < last:
        if row & 63 == 0 and row + 64 <= last:
            bits[row >> 6] = -1
            row += 64
        else:
            put_bit(bits, row)
            row += 1


@kernel
def count_bits(bits: Words, first, last):
    """How many bits of [first, last) are set: those of a word are added up two by two, four by four, and so on."""
    count = 0
    if first >= last:
        return count
    for word in range(first >> 6, ((last - 1) >> 6) + 1):
        x = bits[word]
        if word == first >> 6:
            x &= -1 << (first & 63)
        if word == (last - 1) >> 6 and last & 63 != 0:
            x &= (1 << (last & 63)) - 1
        x -= (x >> 1) & 0x5555555555555555
        x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
        x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
        x += x >> 8
        x += x >> 16
        count += (x + (x >> 32)) & 127
    return count


@kernel
def next_bit(bits: Words, first, last):
    """The first bit of [first, last) that is set; `last` if none is."""
    return next_unlike(bits, first, last, 0)


@kernel
def next_clear_bit(bits: Words, first, last):
    """The first bit of [first, last) that is not set; `last` if all are."""
    return next_unlike(bits, first, last, -1)


@kernel
def next_unlike(bits: Words, first, last, word):
    """The first bit of [first, last) that differs from that of a word of equal ones; `last` if none does."""
    if first >= last:
        return last
    at = first >> 6
    found = (bits[at] ^ word) >> (first & 63) << (first & 63)
    while found == 0:
        at += 1
        if at << 6 >= last:
            return last
        found = bits[at] ^ word
    return min(last, (at << 6) + bit_length(found & -found) - 1)
