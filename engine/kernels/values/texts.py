"""Functors and comparisons on strings, a block of rows at a time, on the symbol table's own memory.

Strings are UTF-8: `strlen` and `substr` count characters, `<` compares bytes, which is the order of code
points. New strings are composed in the worker's scratch while the table is read, then interned all at once. What does not work
out here (no room in the table or the scratch, a text that is no number, a pattern not yet tried on a text) leaves the whole
block to Python (values/functions.py), which makes room, raises or tries.
"""

from __future__ import annotations

from enum import IntEnum, auto

import numpy as np

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import as_float, load_i64, load_u8, prefetch, store_i64
from dlog.engine.kernels.layout import (
    ACCOUNT_SYMBOLS,
    BLOCK,
    CTL_BYTES,
    CTL_SCRATCH,
    FORM_FLOAT,
    FORM_ID,
    FORM_UNSIGNED,
    SCRATCH_BLOCKS,
    SCRATCH_TEXT,
    SYM_HEAP,
    SYM_HEAP_SIZE,
    SYM_OFFSETS,
    VERDICT_BYTES,
    VERDICT_COUNT,
    VERDICT_NO,
    VERDICT_UNKNOWN,
    VERDICT_YES,
    WIDEST_FIXED,
)
from dlog.engine.kernels.static.storage import register
from dlog.engine.kernels.values.numerals import (
    GOOD,
    read_float,
    read_signed,
    read_unsigned,
    write_fixed,
    write_signed,
    write_unsigned,
)
from dlog.engine.kernels.values.symbols import begin_reading, end_reading, intern
from dlog.engine.kernels.values.utf8 import count_characters, skip_characters
from dlog.engine.kernels.values.words import copy_bytes, load_word


class Text(IntEnum):
    """What OP_EXTERNAL does with a block, NONE if Python does it."""

    NONE = 0
    CAT = auto()
    SUBSTR = auto()
    LENGTH = auto()
    MIN = auto()
    MAX = auto()
    LESS = auto()
    LESS_EQUAL = auto()
    CONTAINS = auto()
    CONTAINS_NOT = auto()
    MATCH = auto()
    MATCH_NOT = auto()
    NUMBER = auto()
    UNSIGNED = auto()
    FLOAT = auto()
    POSITION = auto()


READING = frozenset(
    (Text.LENGTH, Text.MIN, Text.MAX, Text.LESS, Text.LESS_EQUAL, Text.CONTAINS, Text.CONTAINS_NOT, Text.POSITION)
)
"""Those that never need Python and make no strings: several threads may do them at once."""

_STARTS, _ENDS, _HASHES = range(3)
_SLACK = 8
"""Copies of whole words may write this much behind a text."""


# ---------------------------------------------------------------------------------------------------------------- strings


@kernel
def order_texts(left, left_length, right, right_length):
    """Negative, zero or positive as the text at `left` comes before, is, or comes after the one at `right`."""
    common = min(left_length, right_length)
    i = 0
    while i + 8 <= common and load_word(left + i) == load_word(right + i):
        i += 8
    while i < common:
        difference = load_u8(left, i) - load_u8(right, i)
        if difference != 0:
            return difference
        i += 1
    return left_length - right_length


@kernel
def place_within(needle, needle_length, text, length):
    """The byte of the text at `text` where the one at `needle` first occurs in it, or -1."""
    if needle_length == 0:
        return 0
    first = load_u8(needle, 0)
    for start in range(length - needle_length + 1):
        if load_u8(text, start) == first:
            i = 1
            while i < needle_length and load_u8(text, start + i) == load_u8(needle, i):
                i += 1
            if i == needle_length:
                return start
    return -1


@kernel
def warm_texts(table, ids, n):
    """Asks for the offsets of a block's strings, then for the strings."""
    heap = load_i64(table, SYM_HEAP)
    offsets = load_i64(table, SYM_OFFSETS)
    for i in range(n):
        prefetch(offsets + load_i64(ids, i) * 8)
    for i in range(n):
        prefetch(heap + load_i64(offsets, load_i64(ids, i)))


# ----------------------------------------------------------------------------------------------------------- comparisons


@kernel
def relate(table, operation, left, right, n, out):
    """out[i] = 1 if string left[i] stands in the relation to string right[i], else 0. The table is being read."""
    heap = load_i64(table, SYM_HEAP)
    offsets = load_i64(table, SYM_OFFSETS)
    for i in range(n):
        a = load_i64(left, i)
        b = load_i64(right, i)
        start = load_i64(offsets, a)
        length = load_i64(offsets, a + 1) - start
        other = load_i64(offsets, b)
        other_length = load_i64(offsets, b + 1) - other
        if operation in (Text.CONTAINS, Text.CONTAINS_NOT):
            found = place_within(heap + start, length, heap + other, other_length) >= 0
            holds = found == (operation == Text.CONTAINS)
        elif a == b:
            holds = operation != Text.LESS
        else:
            # Different strings are never equal.
            holds = order_texts(heap + start, length, heap + other, other_length) < 0
        store_i64(out, i, 1 if holds else 0)


@entry()
def relate_texts(table, operation, left, right, n, out):
    begin_reading(table)
    relate(table, operation, left, right, n, out)
    end_reading(table)


@kernel
def better(table, operation, left, right, n, out):
    """out[i] = the lesser (Text.MIN) or greater of strings left[i] and right[i]. The table is being read."""
    heap = load_i64(table, SYM_HEAP)
    offsets = load_i64(table, SYM_OFFSETS)
    for i in range(n):
        a = load_i64(left, i)
        b = load_i64(right, i)
        start = load_i64(offsets, a)
        other = load_i64(offsets, b)
        order = order_texts(heap + start, load_i64(offsets, a + 1) - start, heap + other, load_i64(offsets, b + 1) - other)
        store_i64(out, i, a if (order <= 0) == (operation == Text.MIN) else b)


@kernel
def judge(verdicts, wanted, ids, n, out):
    """out[i] = 1 if string ids[i] has the verdict that is wanted, else 0; false if one has none yet."""
    known = load_i64(verdicts, VERDICT_BYTES)
    count = load_i64(verdicts, VERDICT_COUNT)
    for i in range(n):
        number = load_i64(ids, i)
        if number >= count:
            return False
        verdict = load_u8(known, number)
        if verdict == VERDICT_UNKNOWN:
            return False
        store_i64(out, i, 1 if verdict == wanted else 0)
    return True


# --------------------------------------------------------------------------------------------------------------- numbers


@kernel
def measure(table, ids, n, out):
    """out[i] = characters of string ids[i]. The table is being read."""
    heap = load_i64(table, SYM_HEAP)
    offsets = load_i64(table, SYM_OFFSETS)
    for i in range(n):
        number = load_i64(ids, i)
        start = load_i64(offsets, number)
        store_i64(out, i, count_characters(heap + start, load_i64(offsets, number + 1) - start))


@kernel
def locate(table, texts, parts, n, out):
    """out[i] = the index of the character of string texts[i] where string parts[i] first occurs in it, or -1. The table is
    being read."""
    heap = load_i64(table, SYM_HEAP)
    offsets = load_i64(table, SYM_OFFSETS)
    for i in range(n):
        text = load_i64(texts, i)
        part = load_i64(parts, i)
        start = load_i64(offsets, text)
        needle = load_i64(offsets, part)
        size = load_i64(offsets, text + 1) - start
        place = place_within(heap + needle, load_i64(offsets, part + 1) - needle, heap + start, size)
        store_i64(out, i, count_characters(heap + start, place) if place >= 0 else -1)


@entry()
def measure_texts(table, ids, n, out):
    begin_reading(table)
    measure(table, ids, n, out)
    end_reading(table)


@kernel
def parse(table, operation, ids, n, scratch, out):
    """out[i] = the number that string ids[i] begins with; false if one begins with none. The table is being read."""
    heap = load_i64(table, SYM_HEAP)
    offsets = load_i64(table, SYM_OFFSETS)
    for i in range(n):
        number = load_i64(ids, i)
        start = heap + load_i64(offsets, number)
        stop = heap + load_i64(offsets, number + 1)
        if operation == Text.FLOAT:
            value, _, status = read_float(start, stop, scratch)
        elif operation == Text.NUMBER:
            value, _, status = read_signed(start, stop, True)
        else:
            value, _, status = read_unsigned(start, stop)
        if status != GOOD:
            return False
        store_i64(out, i, value)
    return True


# ----------------------------------------------------------------------------------------------------------- new strings


@kernel
def compose(ctl, table, args, count, n, text, starts, ends):
    """Writes the concatenation of each row's arguments to `text` on, with its bounds; false if that has no room for all.
    The table is being read."""
    heap = load_i64(table, SYM_HEAP)
    heap_limit = heap + load_i64(table, SYM_HEAP_SIZE)
    offsets = load_i64(table, SYM_OFFSETS)
    limit = text + SCRATCH_TEXT
    at = text
    for i in range(n):
        store_i64(starts, i, at - text)
        for p in range(count):
            form = load_i64(args, p * 2)
            value = load_i64(register(ctl, load_i64(args, p * 2 + 1)), i)
            if form == FORM_ID:
                start = load_i64(offsets, value)
                length = load_i64(offsets, value + 1) - start
                if at + length + _SLACK > limit:
                    return False
                copy_bytes(heap + start, at, length, heap_limit, limit)
            elif at + WIDEST_FIXED > limit:
                return False
            elif form == FORM_FLOAT:
                length = write_fixed(at, as_float(value))
            elif form == FORM_UNSIGNED:
                length = write_unsigned(at, np.uint64(value))
            else:
                length = write_signed(at, value)
            at += length
        store_i64(ends, i, at - text)
    return True


@kernel
def slice_texts(table, ids, index, length, n, starts, ends):
    """Bounds in the heap of each string's characters from `index` on, at most `length`, a negative length meaning all; nothing
    where the index lies outside the string. The table is being read."""
    heap = load_i64(table, SYM_HEAP)
    offsets = load_i64(table, SYM_OFFSETS)
    for i in range(n):
        number = load_i64(ids, i)
        start = load_i64(offsets, number)
        size = load_i64(offsets, number + 1) - start
        at = load_i64(index, i)
        wanted = load_i64(length, i)
        skipped, missing = (0, 1) if at < 0 or at > size else skip_characters(heap + start, size, at)
        taken = 0
        if missing <= 0:
            taken = size - skipped
            if 0 <= wanted < taken:
                taken, _ = skip_characters(heap + start + skipped, taken, wanted)
        store_i64(starts, i, start + skipped)
        store_i64(ends, i, start + skipped + taken)


@entry()
def slice_all(table, ids, index, length, n, starts, ends):
    begin_reading(table)
    slice_texts(table, ids, index, length, n, starts, ends)
    end_reading(table)


# ----------------------------------------------------------------------------------------------------------- instruction


@kernel
def read_block(ctl, table, pc, n, target):
    """Runs an instruction that makes no string; false if Python must. The table is being read."""
    operation = load_i64(pc, 3)
    first = register(ctl, load_i64(pc, 8))
    if operation == Text.LENGTH:
        warm_texts(table, first, n)
        measure(table, first, n, target)
        return True
    if operation in (Text.NUMBER, Text.UNSIGNED, Text.FLOAT):
        warm_texts(table, first, n)
        return parse(table, operation, first, n, load_i64(ctl, CTL_SCRATCH), target)
    second = register(ctl, load_i64(pc, 10))
    if operation in (Text.MATCH, Text.MATCH_NOT):
        wanted = VERDICT_YES if operation == Text.MATCH else VERDICT_NO
        return judge(load_i64(pc, 5), wanted, second, n, target)
    warm_texts(table, first, n)
    warm_texts(table, second, n)
    if operation == Text.POSITION:
        locate(table, first, second, n, target)
    elif operation in (Text.MIN, Text.MAX):
        better(table, operation, first, second, n, target)
        for p in range(2, load_i64(pc, 6)):
            better(table, operation, target, register(ctl, load_i64(pc, 8 + p * 2)), n, target)
    else:
        relate(table, operation, first, second, n, target)
    return True


@kernel
def make_block(ctl, table, pc, n, target):
    """Runs an instruction that makes strings; false if Python must."""
    scratch = load_i64(ctl, CTL_SCRATCH)
    starts = scratch + _STARTS * BLOCK * 8
    ends = scratch + _ENDS * BLOCK * 8
    text = scratch + SCRATCH_BLOCKS * BLOCK * 8
    count = load_i64(pc, 6)
    begin_reading(table)
    for p in range(count):
        if load_i64(pc, 7 + p * 2) == FORM_ID:
            warm_texts(table, register(ctl, load_i64(pc, 8 + p * 2)), n)
    fits = True
    if load_i64(pc, 3) == Text.CAT:
        fits = compose(ctl, table, pc + 56, count, n, text, starts, ends)
    else:
        index = register(ctl, load_i64(pc, 10))
        slice_texts(table, register(ctl, load_i64(pc, 8)), index, register(ctl, load_i64(pc, 12)), n, starts, ends)
        text = 0
    end_reading(table)
    return fits and intern(table, text, SCRATCH_TEXT, starts, ends, 0, n, target, 8, scratch + _HASHES * BLOCK * 8) == n


@kernel
def text_block(ctl, pc, n):
    """[OP_EXTERNAL, length, call, operation, dst, verdicts, count, (form, register)*]: runs the instruction; false if Python
    must. Uses scratch blocks 0 to 2 and the scratch for texts."""
    table = load_i64(load_i64(ctl, CTL_BYTES), ACCOUNT_SYMBOLS)
    operation = load_i64(pc, 3)
    if operation == Text.NONE or table == 0:
        return False
    target = register(ctl, load_i64(pc, 4))
    if operation in (Text.CAT, Text.SUBSTR):
        return make_block(ctl, table, pc, n, target)
    begin_reading(table)
    done = read_block(ctl, table, pc, n, target)
    end_reading(table)
    return done
