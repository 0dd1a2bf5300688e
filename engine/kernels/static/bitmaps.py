"""Bitmaps over rows: one bit per possible row, where the columns' ranges are known.

A row's dense code numbers it among all rows its columns could hold. BITS is one piece; PAGES, for larger products
of ranges, has pages of one cache line found through a directory and made when first touched, so that memory follows the rows.

A worker's share keeps the bits of rows it had: the relation has them by then, and is asked first.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import SetKind
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.layout import BLOCK, PAGE_WORDS
from dlog.engine.kernels.machine_structs import Column, Numbers, Relation, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.storage import load_cell, register, reserve, resize, store_cell


@kernel
def dense_codes(relation: Relation, ctl: Control, registers: Words, n, codes: Words):
    """codes[i] = the dense code of row i's key, or -1 where a value is outside its column's range."""
    columns = relation.columns
    keys = relation.keys
    for i in range(n):
        codes[i] = 0
    for k in range(relation.key_count):
        column = columns[keys[k]]
        low = column.low
        span = column.range
        stride = column.stride
        values = register(ctl, registers[k])
        for i in range(n):
            offset = values[i] - low
            code = codes[i] + offset * stride
            if offset < 0 or offset >= span or codes[i] < 0:
                code = -1
            codes[i] = code


@kernel
def bit_codes(relation: Relation, ctl: Control, registers: Words, n, codes: Words):
    """Dense codes of rows that are known to be in range."""
    if relation.key_count == 2:
        columns = relation.columns[0]
        second = Column(columns.address + Column.size)
        stride = columns.stride
        base = columns.low * stride + second.low
        left = register(ctl, registers[0])
        right = register(ctl, registers[1])
        for i in range(n):
            codes[i] = left[i] * stride + right[i] - base
    else:
        dense_codes(relation, ctl, registers, n, codes)


@kernel
def novel_bits(relation: Relation, n, codes: Words, chosen: Words):
    """Sets the bits of the rows with these codes; chosen[0..count) are the rows whose bit was clear. Returns count."""
    slots = Words(relation.slots)
    count = 0
    for i in range(n):
        code = codes[i]
        word = slots[code >> 6]
        slots[code >> 6] = word | (1 << (code & 63))
        chosen[count] = i
        count += 1 - ((word >> (code & 63)) & 1)
    return count


@kernel
def novel_shared(relation: Relation, share: Relation, n, codes: Words, chosen: Words):
    """The rows (by their codes) that neither the relation, which is only read, nor this worker's share has; sets the share's
    bits."""
    common = Words(relation.slots)
    own = Words(share.slots)
    count = 0
    for i in range(n):
        code = codes[i]
        at = code >> 6
        shift = code & 63
        if (common[at] >> shift) & 1 == 0:
            word = own[at]
            own[at] = word | (1 << shift)
            chosen[count] = i
            count += 1 - ((word >> shift) & 1)
    return count


@kernel
def page_word(relation: Relation, code):
    """The word of a paged bitmap that holds a code's bit; 0 where its page does not exist."""
    page = Numbers(relation.slots)[code >> 9]
    if page == 0:
        return 0
    return relation.pool[(page << 3) + ((code >> 6) & 7)]


@kernel
def reserve_pages(ctl: Control, relation: Relation, extra):
    """Makes room for `extra` more pages; false with ctl.error set when there is none. Page 0 is that of
    codes without one: its bits are clear for ever."""
    capacity = relation.pool_capacity
    pages = relation.pool_pages + extra + 1
    if pages <= capacity:
        return True
    target = max(pages, capacity + (capacity >> 1))
    moved = Words(resize(ctl, relation.pool.address, capacity * PAGE_WORDS * 8, target * PAGE_WORDS * 8))
    if not moved:
        return False
    if capacity == 0:
        for word in range(PAGE_WORDS):
            moved[word] = 0
    relation.pool = moved
    relation.pool_capacity = target
    return True


@kernel
def take_bit(relation: Relation, code):
    """Sets a code's bit, in a new page if need be (there is room). Returns 1 if it was clear."""
    slots = Numbers(relation.slots)
    pool = relation.pool
    page = slots[code >> 9]
    if page == 0:
        page = relation.pool_pages + 1
        relation.pool_pages = page
        slots[code >> 9] = page
        for word in range(PAGE_WORDS):
            pool[(page << 3) + word] = 0
    at = (page << 3) + ((code >> 6) & 7)
    word = pool[at]
    pool[at] = word | (1 << (code & 63))
    return 1 - ((word >> (code & 63)) & 1)


@kernel
def novel_pages(ctl: Control, relation: Relation, n, codes: Words, chosen: Words):
    """novel_bits for a paged bitmap; -1 with ctl.error set when out of memory."""
    if not reserve_pages(ctl, relation, n):
        return -1
    count = 0
    for i in range(n):
        chosen[count] = i
        count += take_bit(relation, codes[i])
    return count


@kernel
def novel_shared_pages(ctl: Control, relation: Relation, share: Relation, n, codes: Words, chosen: Words):
    """novel_shared for paged bitmaps; -1 with ctl.error set when out of memory."""
    if not reserve_pages(ctl, share, n):
        return -1
    count = 0
    for i in range(n):
        code = codes[i]
        if (page_word(relation, code) >> (code & 63)) & 1 == 0:
            chosen[count] = i
            count += take_bit(share, code)
    return count


@kernel
def row_code(relation: Relation, row):
    """Dense code of a stored row whose key is all columns."""
    columns = relation.columns
    code = 0
    for c in range(relation.arity):
        column = columns[c]
        cell = load_cell(column.data, column.width, row)
        code += (cell - column.low) * column.stride
    return code


@kernel
def set_bit(relation: Relation, code):
    """Sets a code's bit in a bitmap of either kind. Returns 1 if it was clear."""
    if relation.set == SetKind.PAGES:
        return take_bit(relation, code)
    slots = Words(relation.slots)
    word = slots[code >> 6]
    slots[code >> 6] = word | (1 << (code & 63))
    return 1 - ((word >> (code & 63)) & 1)


@entry()
def collect_bits(ctl: Control, relation: Relation, share: Relation):
    """Moves a share's rows to its relation (both with bitmaps), skipping those that another share brought; empties the
    share."""
    rows = share.rows
    if not reserve(ctl, relation, rows):
        return False
    columns = relation.columns
    sources = share.columns
    arity = relation.arity
    paged = relation.set == SetKind.PAGES
    end = relation.rows
    for row in range(rows):
        if paged and row % BLOCK == 0 and not reserve_pages(ctl, relation, BLOCK):
            return False
        code = row_code(share, row)
        for c in range(arity):
            column = columns[c]
            source = sources[c]
            width = column.width
            store_cell(column.data, width, end, load_cell(source.data, width, row))
        end += set_bit(relation, code)
    relation.rows = end
    share.rows = 0
    return True
