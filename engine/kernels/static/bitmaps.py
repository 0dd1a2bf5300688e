"""Bitmaps over rows: one bit per possible row, where the columns' ranges are known.

A row's dense code numbers it among all rows its columns could hold. `SET_BITS` is one piece; `SET_PAGES`, for larger products
of ranges, has pages of one cache line found through a directory and made when first touched, so that memory follows the rows.

A worker's share keeps the bits of rows it had: the relation has them by then, and is asked first.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, store_i32, store_i64
from dlog.engine.kernels.layout import (
    BLOCK,
    COL_DATA,
    COL_LOW,
    COL_RANGE,
    COL_SIZE,
    COL_STRIDE,
    COL_WIDTH,
    PAGE_WORDS,
    REL_ARITY,
    REL_COLUMNS,
    REL_KEY_COUNT,
    REL_KEYS,
    REL_POOL,
    REL_POOL_CAPACITY,
    REL_POOL_PAGES,
    REL_ROWS,
    REL_SET,
    REL_SLOTS,
    SET_PAGES,
)
from dlog.engine.kernels.static.storage import load_cell, register, reserve, resize, store_cell


@kernel
def dense_codes(relation, ctl, registers, n, codes):
    """codes[i] = the dense code of row i's key, or -1 where a value is outside its column's range."""
    columns = load_i64(relation, REL_COLUMNS)
    keys = load_i64(relation, REL_KEYS)
    for i in range(n):
        store_i64(codes, i, 0)
    for k in range(load_i64(relation, REL_KEY_COUNT)):
        column = columns + load_i64(keys, k) * COL_SIZE * 8
        low = load_i64(column, COL_LOW)
        span = load_i64(column, COL_RANGE)
        stride = load_i64(column, COL_STRIDE)
        values = register(ctl, load_i64(registers, k))
        for i in range(n):
            offset = load_i64(values, i) - low
            code = load_i64(codes, i) + offset * stride
            if offset < 0 or offset >= span or load_i64(codes, i) < 0:
                code = -1
            store_i64(codes, i, code)


@kernel
def bit_codes(relation, ctl, registers, n, codes):
    """Dense codes of rows that are known to be in range."""
    if load_i64(relation, REL_KEY_COUNT) == 2:
        columns = load_i64(relation, REL_COLUMNS)
        second = columns + COL_SIZE * 8
        stride = load_i64(columns, COL_STRIDE)
        base = load_i64(columns, COL_LOW) * stride + load_i64(second, COL_LOW)
        left = register(ctl, load_i64(registers, 0))
        right = register(ctl, load_i64(registers, 1))
        for i in range(n):
            store_i64(codes, i, load_i64(left, i) * stride + load_i64(right, i) - base)
    else:
        dense_codes(relation, ctl, registers, n, codes)


@kernel
def novel_bits(relation, n, codes, chosen):
    """Sets the bits of the rows with these codes; chosen[0..count) are the rows whose bit was clear. Returns count."""
    slots = load_i64(relation, REL_SLOTS)
    count = 0
    for i in range(n):
        code = load_i64(codes, i)
        word = load_i64(slots, code >> 6)
        store_i64(slots, code >> 6, word | (1 << (code & 63)))
        store_i64(chosen, count, i)
        count += 1 - ((word >> (code & 63)) & 1)
    return count


@kernel
def novel_shared(relation, share, n, codes, chosen):
    """The rows (by their codes) that neither the relation, which is only read, nor this worker's share has; sets the share's
    bits."""
    common = load_i64(relation, REL_SLOTS)
    own = load_i64(share, REL_SLOTS)
    count = 0
    for i in range(n):
        code = load_i64(codes, i)
        at = code >> 6
        shift = code & 63
        if (load_i64(common, at) >> shift) & 1 == 0:
            word = load_i64(own, at)
            store_i64(own, at, word | (1 << shift))
            store_i64(chosen, count, i)
            count += 1 - ((word >> shift) & 1)
    return count


@kernel
def page_word(relation, code):
    """The word of a paged bitmap that holds a code's bit; 0 where its page does not exist."""
    page = load_i32(load_i64(relation, REL_SLOTS), code >> 9)
    if page == 0:
        return 0
    return load_i64(load_i64(relation, REL_POOL), (page << 3) + ((code >> 6) & 7))


@kernel
def reserve_pages(ctl, relation, extra):
    """Makes room for `extra` more pages; false with CTL_ERROR set when there is none. Page 0 is that of
    codes without one: its bits are clear for ever."""
    capacity = load_i64(relation, REL_POOL_CAPACITY)
    pages = load_i64(relation, REL_POOL_PAGES) + extra + 1
    if pages <= capacity:
        return True
    target = max(pages, capacity + (capacity >> 1))
    moved = resize(ctl, load_i64(relation, REL_POOL), capacity * PAGE_WORDS * 8, target * PAGE_WORDS * 8)
    if moved == 0:
        return False
    if capacity == 0:
        for word in range(PAGE_WORDS):
            store_i64(moved, word, 0)
    store_i64(relation, REL_POOL, moved)
    store_i64(relation, REL_POOL_CAPACITY, target)
    return True


@kernel
def take_bit(relation, code):
    """Sets a code's bit, in a new page if need be (there is room). Returns 1 if it was clear."""
    slots = load_i64(relation, REL_SLOTS)
    pool = load_i64(relation, REL_POOL)
    page = load_i32(slots, code >> 9)
    if page == 0:
        page = load_i64(relation, REL_POOL_PAGES) + 1
        store_i64(relation, REL_POOL_PAGES, page)
        store_i32(slots, code >> 9, page)
        for word in range(PAGE_WORDS):
            store_i64(pool, (page << 3) + word, 0)
    at = (page << 3) + ((code >> 6) & 7)
    word = load_i64(pool, at)
    store_i64(pool, at, word | (1 << (code & 63)))
    return 1 - ((word >> (code & 63)) & 1)


@kernel
def novel_pages(ctl, relation, n, codes, chosen):
    """novel_bits for a paged bitmap; -1 with CTL_ERROR set when out of memory."""
    if not reserve_pages(ctl, relation, n):
        return -1
    count = 0
    for i in range(n):
        store_i64(chosen, count, i)
        count += take_bit(relation, load_i64(codes, i))
    return count


@kernel
def novel_shared_pages(ctl, relation, share, n, codes, chosen):
    """novel_shared for paged bitmaps; -1 with CTL_ERROR set when out of memory."""
    if not reserve_pages(ctl, share, n):
        return -1
    count = 0
    for i in range(n):
        code = load_i64(codes, i)
        if (page_word(relation, code) >> (code & 63)) & 1 == 0:
            store_i64(chosen, count, i)
            count += take_bit(share, code)
    return count


@kernel
def row_code(relation, row):
    """Dense code of a stored row whose key is all columns."""
    columns = load_i64(relation, REL_COLUMNS)
    code = 0
    for c in range(load_i64(relation, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        cell = load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row)
        code += (cell - load_i64(column, COL_LOW)) * load_i64(column, COL_STRIDE)
    return code


@kernel
def set_bit(relation, code):
    """Sets a code's bit in a bitmap of either kind. Returns 1 if it was clear."""
    if load_i64(relation, REL_SET) == SET_PAGES:
        return take_bit(relation, code)
    slots = load_i64(relation, REL_SLOTS)
    word = load_i64(slots, code >> 6)
    store_i64(slots, code >> 6, word | (1 << (code & 63)))
    return 1 - ((word >> (code & 63)) & 1)


@entry()
def collect_bits(ctl, relation, share):
    """Moves a share's rows to its relation (both with bitmaps), skipping those that another share brought; empties the
    share."""
    rows = load_i64(share, REL_ROWS)
    if not reserve(ctl, relation, rows):
        return False
    columns = load_i64(relation, REL_COLUMNS)
    sources = load_i64(share, REL_COLUMNS)
    arity = load_i64(relation, REL_ARITY)
    paged = load_i64(relation, REL_SET) == SET_PAGES
    end = load_i64(relation, REL_ROWS)
    for row in range(rows):
        if paged and row % BLOCK == 0 and not reserve_pages(ctl, relation, BLOCK):
            return False
        code = row_code(share, row)
        for c in range(arity):
            column = columns + c * COL_SIZE * 8
            source = sources + c * COL_SIZE * 8
            width = load_i64(column, COL_WIDTH)
            store_cell(load_i64(column, COL_DATA), width, end, load_cell(load_i64(source, COL_DATA), width, row))
        end += set_bit(relation, code)
    store_i64(relation, REL_ROWS, end)
    store_i64(share, REL_ROWS, 0)
    return True
