"""Functors and comparisons on strings, a block of rows at a time, on the symbol table's own memory.

Strings are UTF-8: `strlen` and `substr` count characters, `<` compares bytes, which is the order of code
points. New strings are composed in the worker's scratch while the table is read, then interned all at once. What does not work
out here (no room in the table or the scratch, a text that is no number, a pattern not yet tried on a text) leaves the whole
block to Python (values/functions.py), which makes room, raises or tries.
"""

from __future__ import annotations

from enum import IntEnum, auto

import numpy as np

from dlog.engine.kernels.codes import TextForm, Verdict
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import as_float, load_u8, prefetch
from dlog.engine.kernels.instructions import External, Forms
from dlog.engine.kernels.layout import BLOCK, SCRATCH_BLOCKS, SCRATCH_TEXT, WIDEST_FIXED
from dlog.engine.kernels.machine_structs import Bytes, Numbers, Symbols, Verdicts, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.storage import register, scratch_block
from dlog.engine.kernels.values.calendar import write_day, write_time
from dlog.engine.kernels.values.numerals import (
    DATE,
    FLOAT,
    FLOAT32,
    GOOD,
    NUMBER,
    NUMBER32,
    TIMESTAMP,
    UNSIGNED,
    UNSIGNED32,
    read_value,
    write_fixed,
    write_signed,
    write_unsigned,
)
from dlog.engine.kernels.values.symbols import begin_reading, end_reading, intern
from dlog.engine.kernels.values.utf8 import count_characters, skip_characters
from dlog.engine.kernels.values.words import copy_bytes, load_word


class Text(IntEnum):
    """What an `External` does with a block, NONE if Python does it."""

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
    BYTE_LENGTH = auto()
    BYTE_SUBSTR = auto()
    NUMBER_SHORT = auto()
    UNSIGNED_SHORT = auto()
    FLOAT_SHORT = auto()
    DATE = auto()
    TIMESTAMP = auto()
    DATE_TEXT = auto()
    TIMESTAMP_TEXT = auto()


READING = frozenset(
    (Text.LENGTH, Text.MIN, Text.MAX, Text.LESS, Text.LESS_EQUAL, Text.CONTAINS, Text.CONTAINS_NOT, Text.POSITION)
) | {Text.BYTE_LENGTH}
"""Those that never need Python and make no strings: several threads may do them at once."""

_SLACK = 8
"""Copies of whole words may write this much behind a text."""


# ---------------------------------------------------------------------------------------------------------------- strings


@kernel
def order_texts(left: Bytes, left_length, right: Bytes, right_length):
    """Negative, zero or positive as the text at `left` comes before, is, or comes after the one at `right`."""
    common = min(left_length, right_length)
    i = 0
    while i + 8 <= common and load_word(left.address + i) == load_word(right.address + i):
        i += 8
    while i < common:
        difference = left[i] - right[i]
        if difference != 0:
            return difference
        i += 1
    return left_length - right_length


@kernel
def place_within(needle: Bytes, needle_length, text: Bytes, length):
    """The byte of the text at `text` where the one at `needle` first occurs in it, or -1."""
    if needle_length == 0:
        return 0
    first = needle[0]
    for start in range(length - needle_length + 1):
        if text[start] == first:
            i = 1
            while i < needle_length and text[start + i] == needle[i]:
                i += 1
            if i == needle_length:
                return start
    return -1


@kernel
def warm_texts(table: Symbols, ids: Words, n):
    """Asks for the offsets of a block's strings, then for the strings."""
    heap = table.heap
    offsets = table.offsets
    for i in range(n):
        prefetch(offsets.address + ids[i] * 8)
    for i in range(n):
        prefetch(heap + offsets[ids[i]])


# ----------------------------------------------------------------------------------------------------------- comparisons


@kernel
def relate(table: Symbols, operation, left: Words, right: Words, n, out: Words):
    """out[i] = 1 if string left[i] stands in the relation to string right[i], else 0. The table is being read."""
    heap = table.heap
    offsets = table.offsets
    for i in range(n):
        a = left[i]
        b = right[i]
        start = offsets[a]
        length = offsets[a + 1] - start
        other = offsets[b]
        other_length = offsets[b + 1] - other
        if operation in (Text.CONTAINS, Text.CONTAINS_NOT):
            found = place_within(Bytes(heap + start), length, Bytes(heap + other), other_length) >= 0
            holds = found == (operation == Text.CONTAINS)
        elif a == b:
            holds = operation != Text.LESS
        else:
            # Different strings are never equal.
            holds = order_texts(Bytes(heap + start), length, Bytes(heap + other), other_length) < 0
        out[i] = 1 if holds else 0


@entry()
def relate_texts(table: Symbols, operation, left: Words, right: Words, n, out: Words):
    begin_reading(table)
    relate(table, operation, left, right, n, out)
    end_reading(table)


@kernel
def better(table: Symbols, operation, left: Words, right: Words, n, out: Words):
    """out[i] = the lesser (Text.MIN) or greater of strings left[i] and right[i]. The table is being read."""
    heap = table.heap
    offsets = table.offsets
    for i in range(n):
        a = left[i]
        b = right[i]
        start = offsets[a]
        other = offsets[b]
        order = order_texts(Bytes(heap + start), offsets[a + 1] - start, Bytes(heap + other), offsets[b + 1] - other)
        out[i] = a if (order <= 0) == (operation == Text.MIN) else b


@kernel
def precedes_text(table: Symbols, firsts: Numbers, count, left, right):
    """Whether a string comes before another: those that have a place among the first ones by it, the others by their bytes."""
    place = firsts[left] if left < count else 0
    other = firsts[right] if right < count else 0
    if place != 0 or other != 0:
        return place != 0 and (other == 0 or place < other)
    begin_reading(table)
    heap = table.heap
    offsets = table.offsets
    start = offsets[left]
    end = offsets[right]
    order = order_texts(Bytes(heap + start), offsets[left + 1] - start, Bytes(heap + end), offsets[right + 1] - end)
    end_reading(table)
    return order < 0


@kernel
def judge(verdicts: Verdicts, wanted, ids: Words, n, out: Words):
    """out[i] = 1 if string ids[i] has the verdict that is wanted, else 0; false if one has none yet."""
    known = verdicts.bytes
    count = verdicts.count
    for i in range(n):
        number = ids[i]
        if number >= count:
            return False
        verdict = known[number]
        if verdict == Verdict.UNKNOWN:
            return False
        out[i] = 1 if verdict == wanted else 0
    return True


# --------------------------------------------------------------------------------------------------------------- numbers


@kernel
def measure(table: Symbols, ids: Words, n, out: Words):
    """out[i] = characters of string ids[i]. The table is being read."""
    heap = table.heap
    offsets = table.offsets
    for i in range(n):
        number = ids[i]
        start = offsets[number]
        out[i] = count_characters(heap + start, offsets[number + 1] - start)


@kernel
def measure_bytes(table: Symbols, ids: Words, n, out: Words):
    """out[i] = bytes of string ids[i]. The table is being read."""
    offsets = table.offsets
    for i in range(n):
        number = ids[i]
        out[i] = offsets[number + 1] - offsets[number]


@kernel
def locate(table: Symbols, texts: Words, parts: Words, n, out: Words):
    """out[i] = the index of the character of string texts[i] where string parts[i] first occurs in it, or -1. The table is
    being read."""
    heap = table.heap
    offsets = table.offsets
    for i in range(n):
        text = texts[i]
        part = parts[i]
        start = offsets[text]
        needle = offsets[part]
        size = offsets[text + 1] - start
        place = place_within(Bytes(heap + needle), offsets[part + 1] - needle, Bytes(heap + start), size)
        out[i] = count_characters(heap + start, place) if place >= 0 else -1


@entry()
def measure_texts(table: Symbols, ids: Words, n, out: Words):
    begin_reading(table)
    measure(table, ids, n, out)
    end_reading(table)


@kernel
def code_of(operation):
    """The code in `numerals` of what an operation reads."""
    if operation == Text.NUMBER:
        return NUMBER
    if operation == Text.UNSIGNED:
        return UNSIGNED
    if operation == Text.FLOAT:
        return FLOAT
    if operation == Text.NUMBER_SHORT:
        return NUMBER32
    if operation == Text.UNSIGNED_SHORT:
        return UNSIGNED32
    if operation == Text.FLOAT_SHORT:
        return FLOAT32
    return DATE if operation == Text.DATE else TIMESTAMP


@kernel
def parse(table: Symbols, operation, ids: Words, n, scratch: Words, out: Words):
    """out[i] = the number that string ids[i] begins with, or the date or the time that it is; false if one is none. The table
    is being read."""
    heap = table.heap
    offsets = table.offsets
    code = code_of(operation)
    for i in range(n):
        number = ids[i]
        start = Bytes(heap + offsets[number])
        stop = heap + offsets[number + 1]
        value, behind, status = read_value(start, stop, code, True, scratch.address)
        if status != GOOD or (code in (DATE, TIMESTAMP) and behind != stop):
            return False
        out[i] = value
    return True


# ----------------------------------------------------------------------------------------------------------- new strings


@kernel
def compose(ctl: Control, table: Symbols, forms: Forms, count, n, text, starts: Words, ends: Words):
    """Writes the concatenation of each row's arguments to `text` on, with its bounds; false if that has no room for all.
    The table is being read."""
    heap = table.heap
    heap_limit = heap + table.heap_size
    offsets = table.offsets
    limit = text + SCRATCH_TEXT
    at = text
    for i in range(n):
        starts[i] = at - text
        for p in range(count):
            form = forms[p].form
            value = register(ctl, forms[p].register)[i]
            if form == TextForm.ID:
                start = offsets[value]
                length = offsets[value + 1] - start
                if at + length + _SLACK > limit:
                    return False
                copy_bytes(heap + start, at, length, heap_limit, limit)
            elif at + WIDEST_FIXED > limit:
                return False
            elif form == TextForm.FLOAT:
                length = write_fixed(Bytes(at), as_float(value))
            elif form == TextForm.UNSIGNED:
                length = write_unsigned(at, np.uint64(value))
            elif form == TextForm.DATE:
                length = write_day(at, value)
            elif form == TextForm.TIMESTAMP:
                length = write_time(at, value)
            else:
                length = write_signed(at, value)
            at += length
        ends[i] = at - text
    return True


@kernel
def slice_texts(table: Symbols, ids: Words, index: Words, length: Words, n, starts: Words, ends: Words):
    """Bounds in the heap of each string's characters from `index` on, at most `length`, a negative length meaning all; nothing
    where the index lies outside the string. The table is being read."""
    heap = table.heap
    offsets = table.offsets
    for i in range(n):
        number = ids[i]
        start = offsets[number]
        size = offsets[number + 1] - start
        at = index[i]
        wanted = length[i]
        skipped, missing = (0, 1) if at < 0 or at > size else skip_characters(heap + start, size, at)
        taken = 0
        if missing <= 0:
            taken = size - skipped
            if 0 <= wanted < taken:
                taken, _ = skip_characters(heap + start + skipped, taken, wanted)
        starts[i] = start + skipped
        ends[i] = start + skipped + taken


@kernel
def slice_bytes(table: Symbols, ids: Words, index: Words, length: Words, n, starts: Words, ends: Words):
    """As `slice_texts`, but index and length count bytes: of these, the characters that lie wholly within them."""
    heap = table.heap
    offsets = table.offsets
    for i in range(n):
        number = ids[i]
        start = offsets[number]
        size = offsets[number + 1] - start
        at = index[i]
        wanted = length[i]
        if at < 0 or at > size:
            at = size
        end = at + wanted if 0 <= wanted < size - at else size
        while at < size and load_u8(heap + start, at) & 0xC0 == 0x80:
            at += 1
        while at < end < size and load_u8(heap + start, end) & 0xC0 == 0x80:
            end -= 1
        starts[i] = start + at
        ends[i] = start + max(at, end)


@entry()
def slice_all(table: Symbols, ids: Words, index: Words, length: Words, n, starts: Words, ends: Words):
    begin_reading(table)
    slice_texts(table, ids, index, length, n, starts, ends)
    end_reading(table)


# ----------------------------------------------------------------------------------------------------------- instruction


@kernel
def read_block(ctl: Control, table: Symbols, pc: External, n, target: Words):
    """Runs an instruction that makes no string; false if Python must. The table is being read."""
    operation = pc.native
    first = register(ctl, pc.forms[0].register)
    if operation == Text.LENGTH:
        warm_texts(table, first, n)
        measure(table, first, n, target)
        return True
    if operation == Text.BYTE_LENGTH:
        measure_bytes(table, first, n, target)
        return True
    if operation in (Text.NUMBER, Text.UNSIGNED, Text.FLOAT) or Text.NUMBER_SHORT <= operation <= Text.TIMESTAMP:
        warm_texts(table, first, n)
        return parse(table, operation, first, n, ctl.scratch, target)
    second = register(ctl, pc.forms[1].register)
    if operation in (Text.MATCH, Text.MATCH_NOT):
        wanted = Verdict.YES if operation == Text.MATCH else Verdict.NO
        return judge(pc.verdicts, wanted, second, n, target)
    warm_texts(table, first, n)
    warm_texts(table, second, n)
    if operation == Text.POSITION:
        locate(table, first, second, n, target)
    elif operation in (Text.MIN, Text.MAX):
        better(table, operation, first, second, n, target)
        for p in range(2, pc.count):
            better(table, operation, target, register(ctl, pc.forms[p].register), n, target)
    else:
        relate(table, operation, first, second, n, target)
    return True


@kernel
def make_block(ctl: Control, table: Symbols, pc: External, n, target: Words):
    """Runs an instruction that makes strings; false if Python must."""
    starts, ends, hashes = scratch_block(ctl, 0), scratch_block(ctl, 1), scratch_block(ctl, 2)
    text = ctl.scratch.address + SCRATCH_BLOCKS * BLOCK * 8
    count = pc.count
    begin_reading(table)
    for p in range(count):
        if pc.forms[p].form == TextForm.ID:
            warm_texts(table, register(ctl, pc.forms[p].register), n)
    fits = True
    if pc.native in (Text.CAT, Text.DATE_TEXT, Text.TIMESTAMP_TEXT):
        fits = compose(ctl, table, pc.forms, count, n, text, starts, ends)
    else:
        ids, index = register(ctl, pc.forms[0].register), register(ctl, pc.forms[1].register)
        length = register(ctl, pc.forms[2].register)
        if pc.native == Text.SUBSTR:
            slice_texts(table, ids, index, length, n, starts, ends)
        else:
            slice_bytes(table, ids, index, length, n, starts, ends)
        text = 0
    end_reading(table)
    return fits and intern(table, text, SCRATCH_TEXT, starts.address, ends.address, 8, 0, n, target, 8, hashes) == n


@kernel
def text_block(ctl: Control, pc: External, n):
    """Runs the instruction; false if Python must. Uses scratch blocks 0 to 2 and the scratch for texts."""
    table = ctl.account.symbols
    operation = pc.native
    if operation == Text.NONE or not table:
        return False
    target = register(ctl, pc.target)
    if operation in (Text.CAT, Text.SUBSTR, Text.BYTE_SUBSTR, Text.DATE_TEXT, Text.TIMESTAMP_TEXT):
        return make_block(ctl, table, pc, n, target)
    begin_reading(table)
    done = read_block(ctl, table, pc, n, target)
    end_reading(table)
    return done
