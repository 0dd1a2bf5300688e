"""Columns of Arrow's as words, and which texts of a column are the same.

Arrow's own conversions of a thousand rows cost a call or several for each column, and `dictionary_encode` 1.4 to 2.5 times the
time of what is here.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.arrow_structs import ArrowArray, KnownColumns, KnownTexts
from dlog.engine.kernels.codes import ArrowStatus, ArrowValues
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import calloc, free
from dlog.engine.kernels.machine_structs import Bytes, Numbers, Symbols, Words
from dlog.engine.kernels.static.hashes import home
from dlog.engine.kernels.static.storage import behind
from dlog.engine.kernels.values.floats import one_nan, ordered_word
from dlog.engine.kernels.values.symbols import intern
from dlog.engine.kernels.values.words import equal_bytes, hash_bytes, tail_word

FEW_TEXTS = 32
"""Different texts of which it is told where they lie: Python takes so few one by one."""
SHORT_BITS = 6
SHORT_TEXTS = 1 << SHORT_BITS
"""Texts of up to 8 bytes that are found again by these alone, which are a word; one is forgotten for another."""
RARE_TEXTS = 32
"""Texts that may come for the first time before a third of all have to be ones that came lately."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _may_be_null(column: ArrowArray, first, rows):
    """Whether some of so many values from one on are not said to be there. Many columns come with bits that are all set."""
    bits = Bytes(column.buffers[0])
    if not bits or column.null_count == 0:
        return False
    at, end = first, first + rows
    while at < end:
        byte = bits[at >> 3]
        if at & 7 == 0 and at + 8 <= end and byte == 255:
            at += 8
        elif (byte >> (at & 7)) & 1 == 0:
            return True
        else:
            at += 1
    return False


@kernel
def _ascend(offsets: Numbers, rows):
    """Whether so many texts lie between the first offset and the last one."""
    for row in range(rows):
        if offsets[row] > offsets[row + 1]:
            return False
    return True


@kernel
def _same_text(start, length, limit, other, other_length, other_limit):
    return length == other_length and equal_bytes(start, limit, other, other_limit, length)


@kernel
def _slot_of(start, length, data, offsets: Numbers, limit, known: KnownTexts, firsts: Words, slots: Numbers, count):
    """The slot of a text, which holds its place among the known ones and the first ones of this column plus one; or the empty
    one where it would be."""
    few = known.count
    slot = home(np.int64(hash_bytes(start, length, limit)) << 32, count)
    while slots[slot] != 0:
        other = slots[slot] - 1
        if other < few:
            text = known.texts[other]
            if _same_text(start, length, limit, text.start, text.length, known.limit):
                break
        else:
            there, end = data + offsets[firsts[other - few]], data + offsets[firsts[other - few] + 1]
            if _same_text(start, length, limit, there, end - there, limit):
                break
        slot = 0 if slot + 1 == count else slot + 1
    return slot


@kernel
def _enter_known(known: KnownTexts, slots: Numbers, count):
    for k in range(known.count):
        text = known.texts[k]
        slot = home(np.int64(hash_bytes(text.start, text.length, known.limit)) << 32, count)
        while slots[slot] != 0:
            slot = 0 if slot + 1 == count else slot + 1
        slots[slot] = k + 1


@kernel
def _equal_texts(data, offsets: Numbers, rows, known: KnownTexts, firsts: Words, places: Words):
    """Writes to `firsts` the first row of each different text that is not known, and to `places` for each row which text it
    has, of the known ones and then of these; returns how many are not known. Row r has the bytes from `data + offsets[r]` up to
    `data + offsets[r + 1]`."""
    texts, few, count, limit = 0, known.count, 2 * (rows + known.count) + 1, data + offsets[rows]
    slots = Numbers(calloc(count, 4))
    latest = Words(calloc(3 * SHORT_TEXTS, 8))  # by their bytes: these, their number plus one, the place
    _enter_known(known, slots, count)
    for row in range(rows):
        start, length = data + offsets[row], offsets[row + 1] - offsets[row]
        word = tail_word(Bytes(start), length, limit) if length <= 8 else np.uint64(0)
        memo = behind(latest, 3 * np.int64((word * _SPREAD) >> np.uint64(64 - SHORT_BITS)))
        if memo[1] == length + 1 and memo[0] == np.int64(word):
            places[row] = memo[2]
            continue
        slot = _slot_of(start, length, data, offsets, limit, known, firsts, slots, count)
        if slots[slot] == 0:
            firsts[texts] = row
            texts += 1
            slots[slot] = few + texts
        places[row] = slots[slot] - 1
        if length <= 8:
            memo[0] = int(np.int64(word))
            memo[1] = length + 1
            memo[2] = places[row]
    free(latest.address)
    free(slots.address)
    return texts


@kernel
def _read_numbers(kind, data, first, rows, found: Words):
    """Writes the words of a column of numbers from a row on."""
    words, numbers = Words(data), Numbers(data)
    if kind == ArrowValues.WORDS:
        for row in range(rows):
            found[row] = words[first + row]
    elif kind == ArrowValues.NUMBERS:
        for row in range(rows):
            found[row] = numbers[first + row]
    elif kind == ArrowValues.UNSIGNED:
        for row in range(rows):
            found[row] = numbers[first + row] & 0xFFFFFFFF
    elif kind == ArrowValues.BITS:
        for row in range(rows):
            found[row] = one_nan(words[first + row])
    else:
        for row in range(rows):
            found[row] = ordered_word(words[first + row])


@entry()
def read_columns(table: ArrowArray, kinds: Words, found: Words, room, known: KnownColumns, firsts: Words):
    """Writes the columns of a table, of what kinds they are (`ArrowValues`), each with `room` from the last one. The texts of a
    column that are all known are their numbers. Of each other column of texts it writes which ones they are (`_equal_texts`),
    and `firsts` gets how many are not known, address and length of the first FEW_TEXTS of them, and the first rows of all; of
    one whose texts are known how many, 0, and no more. Where a column begins and ends is within its memory. Returns an
    `ArrowStatus`."""
    rows, own, texts, status = table.length, firsts, 0, ArrowStatus.READ
    for c in range(table.child_count):
        column, kind, target = table.children[c], kinds[c], behind(found, c * room)
        if kind == ArrowValues.NOTHING:
            continue
        first = table.offset + column.offset
        if _may_be_null(column, first, rows):
            return ArrowStatus.NULLS
        if kind != ArrowValues.TEXTS:
            _read_numbers(kind, column.buffers[1], first, rows, target)
            continue
        offsets, data, own_rows = Numbers(column.buffers[1] + 4 * first), column.buffers[2], behind(own, 1 + 2 * FEW_TEXTS)
        if not _ascend(offsets, rows):
            return ArrowStatus.DAMAGED
        own[0] = _equal_texts(data, offsets, rows, known[texts], own_rows, target)
        if own[0] == 0:
            _number(known[texts], rows, target)
        else:
            status = ArrowStatus.NEW_TEXTS
        for text in range(min(own[0], FEW_TEXTS)):
            start = offsets[own_rows[text]]
            own[1 + 2 * text] = data + start
            own[2 + 2 * text] = offsets[own_rows[text] + 1] - start
        own = behind(own_rows, rows)
        texts += 1
    return status


@kernel
def _number(known: KnownTexts, rows, places: Words):
    """Writes the numbers of texts in place of which of the known ones they are."""
    for row in range(rows):
        places[row] = known.texts[places[row]].number


# -------------------------------------------------------------------------------------------------------------- symbols


@entry()
def read_rows(table: ArrowArray, kinds: Words, found: Words, room, symbols: Symbols, hashes: Words):
    """Writes the columns of a table as `read_columns` does, none of which is of TEXTS, but the SYMBOLS of texts, of which
    `symbols` gets those that it does not have. `hashes` has room for what `intern` notes. Returns an `ArrowStatus`: of
    NEW_TEXTS where there is no room for them, or some are no texts."""
    rows = table.length
    for c in range(table.child_count):
        column, kind, target = table.children[c], kinds[c], behind(found, c * room)
        first = table.offset + column.offset
        if _may_be_null(column, first, rows):
            return ArrowStatus.NULLS
        if kind != ArrowValues.SYMBOLS:
            _read_numbers(kind, column.buffers[1], first, rows, target)
            continue
        offsets, data = Numbers(column.buffers[1] + 4 * first), column.buffers[2]
        if not _ascend(offsets, rows):
            return ArrowStatus.DAMAGED
        if data == 0 or not _read_symbols(data, offsets, rows, target, symbols, hashes):
            return ArrowStatus.NEW_TEXTS
    return ArrowStatus.READ


@kernel
def _read_symbols(data, offsets: Numbers, rows, target: Words, symbols: Symbols, hashes: Words):
    """Writes the symbols of the texts of a column; false if there is no room for some, or they are none."""
    latest = Words(calloc(3 * SHORT_TEXTS, 8))  # by how they begin: where one is, its length plus one, its symbol
    limit, rare, row, known = data + offsets[rows], 0, 0, True
    while known and row < rows and rare * 3 <= row + RARE_TEXTS:
        start, length = data + offsets[row], offsets[row + 1] - offsets[row]
        word = tail_word(Bytes(start), min(length, 8), limit)
        memo = behind(latest, 3 * np.int64((word * _SPREAD) >> np.uint64(64 - SHORT_BITS)))
        if memo[1] == length + 1 and equal_bytes(start, limit, memo[0], limit, length):
            target[row] = memo[2]
        else:
            rare += 1
            known = _intern_texts(data, offsets, row, row + 1, target, symbols, hashes)
            memo[0] = start
            memo[1] = length + 1
            memo[2] = target[row]
        row += 1
    free(latest.address)
    return known and _intern_texts(data, offsets, row, rows, target, symbols, hashes)


@kernel
def _intern_texts(data, offsets: Numbers, first, last, target: Words, symbols: Symbols, hashes: Words):
    """Writes the symbols of texts [first, last) of a column; false if there is no room for some, or they are none."""
    ends = offsets.address + 4
    return intern(symbols, data, offsets[last], offsets.address, ends, 4, first, last, target, 8, hashes) == last
