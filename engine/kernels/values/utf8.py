"""Characters of UTF-8, for kernels: whether bytes are text, how many characters, where one begins.

Whole words of ASCII are taken at once. Nothing behind the bytes asked for is read.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_u8
from dlog.engine.kernels.machine_structs import Bytes
from dlog.engine.kernels.values.words import load_word

_HIGH = np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)


@kernel
def is_utf8(address, length):
    """Whether the bytes are UTF-8 (Unicode, table 3-7): no surrogates, nothing longer than need be, nothing cut."""
    stop = address + length
    while address + 8 <= stop and load_word(address) & _HIGH == 0:
        address += 8
    if length >= 8 and load_word(stop - 8) & _HIGH == 0 and stop - address <= 8:
        return True
    while address < stop:
        taken = 1 if load_u8(address, 0) < 128 else character_bytes(Bytes(address), stop - address)
        if taken == 0:
            return False
        address += taken
    return True


@kernel
def character_bytes(address: Bytes, length):
    """How many bytes the character beyond ASCII at an address has, 0 where there is none; `length` bytes are left."""
    lead = address[0]
    if lead < 0xC2 or lead > 0xF4 or length < 2:
        return 0
    second = address[1]
    if lead < 0xE0:
        return 2 if second & 0xC0 == 0x80 else 0
    low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
    high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
    if second < low or second > high or length < 3 or address[2] & 0xC0 != 0x80:
        return 0
    if lead < 0xF0:
        return 3
    return 4 if length >= 4 and address[3] & 0xC0 == 0x80 else 0


@kernel
def count_starts(word):
    """How many of eight bytes begin a character: all but those of the form 10xxxxxx."""
    inner = word & ~(word << np.uint64(1)) & _HIGH
    return 8 - np.int64(((inner >> np.uint64(7)) * _ONES) >> np.uint64(56))


@kernel
def count_characters(address, length):
    stop = address + length
    count = 0
    while address + 8 <= stop:
        count += count_starts(load_word(address))
        address += 8
    while address < stop:
        count += load_u8(address, 0) & 0xC0 != 0x80
        address += 1
    return count


@kernel
def skip_characters(address, length, count):
    """How many bytes the first `count` characters have, and how many characters are missing to as many."""
    stop = address + length
    at = address
    while count >= 8 and at + 8 <= stop:
        count -= count_starts(load_word(at))
        at += 8
    while at < stop and (count > 0 or load_u8(at, 0) & 0xC0 == 0x80):
        count -= load_u8(at, 0) & 0xC0 != 0x80
        at += 1
    return at - address, count
