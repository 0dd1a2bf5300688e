"""The set over a relation's key columns, whatever its kind: find, insert, share between workers, fill after loading.

Kinds (`SetKind`): BITS and PAGES are bitmaps.py, DENSE is a 32-bit row number per possible key, HASH is hashes.py, GRADUAL
is gradual.py.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import SetKind
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Numbers, Relation, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.bitmaps import (
    bit_codes,
    dense_codes,
    novel_bits,
    novel_pages,
    novel_shared,
    novel_shared_pages,
    page_word,
    reserve_pages,
    row_code,
    set_bit,
)
from dlog.engine.kernels.static.gradual import fill_gradual, find_gradual, insert_gradual
from dlog.engine.kernels.static.hashes import (
    find_rest,
    grow_hash,
    hash_block,
    hash_rows,
    insert_hash,
    prefetch_homes,
    prefetch_later,
    row_bits,
    take_slot,
)
from dlog.engine.kernels.static.storage import append_rows, move_row, reserve


@entry()
def find_rows(relation: Relation, ctl: Control, registers: Words, n, scratch: Words, found: Words):
    """found[i] = the row with the key of block row i, or -1. For bitmaps a present row gives 0. The relation must have a
    set."""
    kind = relation.set
    slots = relation.slots
    if kind in (SetKind.BITS, SetKind.PAGES, SetKind.DENSE):
        dense_codes(relation, ctl, registers, n, found)
        if kind == SetKind.PAGES:
            for i in range(n):
                code = found[i]
                bit = 0
                if code >= 0:
                    bit = (page_word(relation, code) >> (code & 63)) & 1
                found[i] = bit - 1
        elif kind == SetKind.BITS:
            for i in range(n):
                code = found[i]
                bit = 0
                if code >= 0:
                    bit = (Words(slots)[code >> 6] >> (code & 63)) & 1
                found[i] = bit - 1
        else:
            for i in range(n):
                code = found[i]
                if code >= 0:
                    found[i] = Numbers(slots)[code] - 1
        return
    if kind == SetKind.GRADUAL:
        find_gradual(relation, ctl, registers, n, scratch, found)
        return
    if relation.slot_count == 0:
        for i in range(n):
            found[i] = -1
        return
    hash_block(ctl, registers, relation.key_count, n, scratch)
    for i in range(n):
        found[i] = -1
    find_rest(relation, Numbers(slots), relation.slot_count, ctl, registers, n, scratch, found)


@entry()
def insert_block(ctl: Control, relation: Relation, registers: Words, n, codes: Words, chosen: Words):
    """Adds the rows of a block that are not present. Returns rows added, -1 with ctl.error set on error.

    `registers` lists one register per column. The key must be all columns, in order.
    """
    if relation.set in (SetKind.BITS, SetKind.PAGES):
        bit_codes(relation, ctl, registers, n, codes)
        if relation.set == SetKind.BITS:
            count = novel_bits(relation, n, codes, chosen)
        else:
            count = novel_pages(ctl, relation, n, codes, chosen)
        if count < 0 or not reserve(ctl, relation, count):
            return -1
        at = relation.rows
        append_rows(relation, ctl, registers, chosen, count, at)
        relation.rows = at + count
        return count
    if relation.set == SetKind.GRADUAL:
        return insert_gradual(ctl, relation, registers, n, codes, chosen)
    rows = relation.rows
    if not reserve(ctl, relation, n) or not grow_hash(ctl, relation, rows + n):
        return -1
    for i in range(n):
        chosen[i] = -1
    return insert_hash(ctl, relation, registers, n, codes, chosen)


@kernel
def share_block(ctl: Control, relation: Relation, share: Relation, registers: Words, n, codes: Words, known: Words):
    """insert_block while several workers run: rows that the relation, which is only read, does not have go to this worker's
    share, once. Two shares may have the same row.
    """
    if relation.set in (SetKind.BITS, SetKind.PAGES):
        bit_codes(relation, ctl, registers, n, codes)
        if relation.set == SetKind.BITS:
            count = novel_shared(relation, share, n, codes, known)
        else:
            count = novel_shared_pages(ctl, relation, share, n, codes, known)
        if count < 0 or not reserve(ctl, share, count):
            return -1
        at = share.rows
        append_rows(share, ctl, registers, known, count, at)
        share.rows = at + count
        return count
    if not reserve(ctl, share, n) or not grow_hash(ctl, share, share.rows + n):
        return -1
    find_rows(relation, ctl, registers.address, n, codes, known)
    return insert_hash(ctl, share, registers, n, codes, known)


@entry()
def dedupe_rows(ctl: Control, relation: Relation, hashes: Words):
    """Removes equal rows of a freshly loaded relation in place, keeping first ones and their order, and leaves its set filled.

    The relation's set kind is chosen by the caller and its memory is in place (for BITS) or grown here (HASH).
    `hashes` is a scratch block. Returns false with ctl.error set when out of memory.
    """
    rows = relation.rows
    bits = relation.set == SetKind.BITS
    kept = 0
    if not bits:
        relation.rows = 0
        if not grow_hash(ctl, relation, rows):
            return False
    table = Numbers(relation.slots)
    slots = relation.slot_count
    for first in range(0, rows, BLOCK):
        count = min(BLOCK, rows - first)
        if not bits:
            hash_rows(relation, first, count, hashes)
            prefetch_homes(table, slots, hashes, count)
        for i in range(count):
            row = first + i
            if bits:
                novel = set_bit(relation, row_code(relation, row)) == 1
            else:
                prefetch_later(table, slots, hashes, i, count)
                novel = take_slot(relation, table, slots, row_bits(slots), hashes[i], row, kept)
            if novel:
                if kept != row:
                    move_row(relation, row, kept)
                kept += 1
    relation.rows = kept
    return True


@entry()
def find_repeated(relation: Relation, part, parts, table: Numbers, slots, hashes: Words, repeated: Numbers):
    """Writes the numbers of rows that equal an earlier row to `repeated` (int32), ascending; returns how many.

    Looks only at rows whose hash falls to `part` of `parts`, so that several threads share the work: `table` is this
    thread's, zeroed, of `slots` int32 entries, more than its part has rows, and `hashes` a scratch block.
    """
    rows = relation.rows
    bits = row_bits(max(rows + 1, slots))
    count = 0
    for first in range(0, rows, BLOCK):
        size = min(BLOCK, rows - first)
        hash_rows(relation, first, size, hashes)
        prefetch_homes(table, slots, hashes, size)
        for i in range(size):
            prefetch_later(table, slots, hashes, i, size)
            hashed = hashes[i]
            row = first + i
            if (hashed & 0xFFFF) % parts == part and not take_slot(relation, table, slots, bits, hashed, row, row):
                repeated[count] = row
                count += 1
    return count


@entry()
def fill_set(ctl: Control, relation: Relation):
    """Fills a fresh set (all columns are its key) from the rows present. False with ctl.error set when out of memory."""
    rows = relation.rows
    kind = relation.set
    if kind == SetKind.HASH:
        return grow_hash(ctl, relation, max(rows, 1))
    if kind == SetKind.GRADUAL:
        return fill_gradual(ctl, relation, max(rows, 1))
    for row in range(rows):
        if kind == SetKind.PAGES and row % BLOCK == 0 and not reserve_pages(ctl, relation, BLOCK):
            return False
        set_bit(relation, row_code(relation, row))
    return True
