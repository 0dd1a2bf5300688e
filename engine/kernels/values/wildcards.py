"""Patterns that are texts with anything between them, as `.*special.*requests.*`: these are searched for where the strings lie,
eight bytes at a time, not by an automaton, byte by byte."""

from __future__ import annotations

from dlog.engine.kernels.codes import Verdict
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i64, load_u8, wrapped_product
from dlog.engine.kernels.machine_structs import Bytes, Words
from dlog.engine.kernels.values.words import ONES, equal_bytes, first_byte, zero_bytes

_LINE_END = 10


@kernel
def find_byte(start, end, limit, byte):
    """Where a byte is first from `start` on and before `end`, or `end`; memory ends at `limit`."""
    pattern = wrapped_product(byte, ONES)
    at = start
    while at < end and at + 8 <= limit:
        found = zero_bytes(load_i64(at, 0) ^ pattern)
        if found != 0:
            return min(at + first_byte(found), end)
        at += 8
    while at < end and load_u8(at, 0) != byte:
        at += 1
    return min(at, end)


@kernel
def find_pair(start, end, limit, byte, following):
    """Where two bytes, one behind the other, may first be, from `start` on and before `end`, or `end`; memory ends at
    `limit`."""
    first, second = wrapped_product(byte, ONES), wrapped_product(following, ONES)
    at = start
    while at < end and at + 9 <= limit:
        found = zero_bytes(load_i64(at, 0) ^ first) & zero_bytes(load_i64(at + 1, 0) ^ second)
        if found != 0:
            return min(at + first_byte(found), end)
        at += 8
    while at < end and load_u8(at, 0) != byte:
        at += 1
    return min(at, end)


@kernel
def find_part(start, end, limit, part, length, part_limit):
    """Where a text is first from `start` on and before `end`, or -1."""
    if length == 0:
        return start
    last = end - length + 1
    byte, following = load_u8(part, 0), load_u8(part, min(1, length - 1))
    at = start
    while True:
        # One byte alone is met too often.
        at = find_pair(at, last, limit, byte, following) if length > 1 else find_byte(at, last, limit, byte)
        if at >= last:
            return -1
        if equal_bytes(at, limit, part, part_limit, length):
            return at
        at += 1


@kernel
def has_parts(start, end, limit, parts, ends: Words, count):
    """Whether a text is the parts, one after the other, with anything but the end of a line between them."""
    part_limit = parts + ends[count - 1]
    first = ends[0]
    if end - start < first or not equal_bytes(start, limit, parts, part_limit, first):
        return False
    if count == 1:
        return end - start == first
    at = start + first
    for number in range(1, count - 1):
        part = parts + ends[number - 1]
        length = ends[number] - ends[number - 1]
        at = find_part(at, end, limit, part, length, part_limit)
        if at < 0:
            return False
        at += length
    length = ends[count - 1] - ends[count - 2]
    if end - at < length or not equal_bytes(end - length, limit, part_limit - length, part_limit, length):
        return False
    return find_byte(start, end, limit, _LINE_END) == end


@entry()
def match_parts(heap, size, offsets: Words, ids: Words, count, parts, ends: Words, part_count, verdicts: Bytes):
    """Writes a verdict on each of so many strings of a heap: whether it has the parts (`has_parts`)."""
    for i in range(count):
        start, end = heap + offsets[ids[i]], heap + offsets[ids[i] + 1]
        verdicts[i] = Verdict.YES if has_parts(start, end, heap + size, parts, ends, part_count) else Verdict.NO
