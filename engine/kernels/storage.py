"""Rows of relations: growing columns, and the set or map over their key columns.

Kinds of set. `SET_BITS`: one bit per possible row, where the columns' ranges are known and their product is small.
`SET_PAGES`: the same for larger products, in pages of one cache line found through a directory, made when first touched.
`SET_DENSE`: a 32-bit row number per possible key. `SET_HASH`: open addressing over 32-bit row numbers, compared through the
columns. Row numbers are kept plus one, so that zeroed memory is an empty table. Blocks come as registers (addresses of int64
values); lists of registers are addresses of words.
"""

from __future__ import annotations

from dlog.engine.kernels.jit import kernel
from dlog.engine.kernels.layout import (
    BLOCK,
    COL_DATA,
    COL_LOW,
    COL_RANGE,
    COL_SIZE,
    COL_STRIDE,
    COL_WIDTH,
    CTL_BYTES,
    CTL_ERROR,
    CTL_LIMIT,
    CTL_REGISTERS,
    ERROR_MEMORY,
    ERROR_ROWS,
    PAGE_WORDS,
    REL_ARITY,
    REL_CAPACITY,
    REL_COLUMNS,
    REL_KEY_COUNT,
    REL_KEYS,
    REL_POOL,
    REL_POOL_CAPACITY,
    REL_POOL_PAGES,
    REL_ROWS,
    REL_SET,
    REL_SLOT_COUNT,
    REL_SLOTS,
    SET_BITS,
    SET_DENSE,
    SET_HASH,
    SET_PAGES,
)
from dlog.engine.kernels.memory import (
    HUGE,
    advise_huge,
    atomic_add,
    calloc,
    free,
    load_i32,
    load_i64,
    prefetch,
    realloc,
    store_i32,
    store_i64,
)

_MIX = -7046029254386353131  # 0x9E3779B97F4A7C15
ROWS_MAX = 2**31 - 2


@kernel
def register(ctl, number):
    """Address of a register of this worker."""
    return load_i64(ctl, CTL_REGISTERS) + number * (BLOCK * 8)


@kernel
def load_cell(address, width, row):
    if width == 4:
        return load_i32(address, row)
    return load_i64(address, row)


@kernel
def store_cell(address, width, row, value):
    if width == 4:
        store_i32(address, row, value)
    else:
        store_i64(address, row, value)


@kernel
def resize(ctl, address, old_bytes, new_bytes):
    """realloc that keeps the worker's account; 0 and CTL_ERROR set when over the limit or out of memory."""
    grown = atomic_add(load_i64(ctl, CTL_BYTES), 0, new_bytes - old_bytes) + new_bytes - old_bytes
    if grown > load_i64(ctl, CTL_LIMIT) and new_bytes > old_bytes:
        atomic_add(load_i64(ctl, CTL_BYTES), 0, old_bytes - new_bytes)
        store_i64(ctl, CTL_ERROR, ERROR_MEMORY)
        return 0
    moved = realloc(address, max(new_bytes, 8))
    if moved == 0:
        store_i64(ctl, CTL_ERROR, ERROR_MEMORY)
    elif new_bytes >= HUGE and address == 0:
        advise_huge(moved, new_bytes)
    return moved


@kernel
def zeroed(ctl, size):
    """Zeroed bytes on the worker's account, or 0 and CTL_ERROR set."""
    grown = atomic_add(load_i64(ctl, CTL_BYTES), 0, size) + size
    if grown > load_i64(ctl, CTL_LIMIT):
        atomic_add(load_i64(ctl, CTL_BYTES), 0, -size)
        store_i64(ctl, CTL_ERROR, ERROR_MEMORY)
        return 0
    address = calloc(max(size, 8), 1)
    if address == 0:
        store_i64(ctl, CTL_ERROR, ERROR_MEMORY)
    elif size >= HUGE:
        advise_huge(address, size)
    return address


@kernel
def release(ctl, address, size):
    """Frees memory that `resize` or `zeroed` gave."""
    if address != 0:
        free(address)
        atomic_add(load_i64(ctl, CTL_BYTES), 0, -size)


@kernel
def reserve(ctl, relation, extra):
    """Makes room for `extra` more rows; false with CTL_ERROR set when there is none."""
    rows = load_i64(relation, REL_ROWS) + extra
    capacity = load_i64(relation, REL_CAPACITY)
    if rows <= capacity:
        return True
    if rows > ROWS_MAX:
        store_i64(ctl, CTL_ERROR, ERROR_ROWS)
        return False
    target = max(rows, capacity + (capacity >> 1), 1024)
    columns = load_i64(relation, REL_COLUMNS)
    for c in range(load_i64(relation, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        width = load_i64(column, COL_WIDTH)
        moved = resize(ctl, load_i64(column, COL_DATA), capacity * width, target * width)
        if moved == 0:
            return False
        store_i64(column, COL_DATA, moved)
    store_i64(relation, REL_CAPACITY, target)
    return True


# ----------------------------------------------------------------------------------------------------------------- keys


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
def mix(hashed, value):
    """One step of a multiplicative hash over int64 words."""
    x = (hashed ^ value) * _MIX
    return x ^ ((x >> 29) & 0x7FFFFFFFF)


@kernel
def hash_block(ctl, registers, count, n, hashes):
    for i in range(n):
        store_i64(hashes, i, 0)
    for k in range(count):
        values = register(ctl, load_i64(registers, k))
        for i in range(n):
            store_i64(hashes, i, mix(load_i64(hashes, i), load_i64(values, i)))


@kernel
def hash_row(relation, row):
    columns = load_i64(relation, REL_COLUMNS)
    keys = load_i64(relation, REL_KEYS)
    hashed = 0
    for k in range(load_i64(relation, REL_KEY_COUNT)):
        column = columns + load_i64(keys, k) * COL_SIZE * 8
        hashed = mix(hashed, load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row))
    return hashed


@kernel
def row_equals(relation, ctl, registers, i, row):
    columns = load_i64(relation, REL_COLUMNS)
    keys = load_i64(relation, REL_KEYS)
    for k in range(load_i64(relation, REL_KEY_COUNT)):
        column = columns + load_i64(keys, k) * COL_SIZE * 8
        if load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row) != load_i64(
            register(ctl, load_i64(registers, k)), i
        ):
            return False
    return True


@kernel
def grow_hash(ctl, relation, rows):
    """Makes the hash table large enough for `rows` rows at a load of at most 3/4, rehashing the rows present."""
    slots = load_i64(relation, REL_SLOT_COUNT)
    if rows * 4 <= slots * 3:
        return True
    count = max(slots, 1024)
    while rows * 4 > count * 3:
        count *= 2
    table = zeroed(ctl, count * 4)
    if table == 0:
        return False
    release(ctl, load_i64(relation, REL_SLOTS), slots * 4)
    store_i64(relation, REL_SLOTS, table)
    store_i64(relation, REL_SLOT_COUNT, count)
    mask = count - 1
    for row in range(load_i64(relation, REL_ROWS)):
        at = (hash_row(relation, row) >> 8) & mask
        while load_i32(table, at) != 0:
            at = (at + 1) & mask
        store_i32(table, at, row + 1)
    return True


@kernel
def find_hash(relation, ctl, registers, i, hashed):
    """Row number with the key of block row i, or -1 - slot where it would go."""
    table = load_i64(relation, REL_SLOTS)
    mask = load_i64(relation, REL_SLOT_COUNT) - 1
    at = (hashed >> 8) & mask
    while True:
        row = load_i32(table, at) - 1
        if row < 0:
            return -1 - at
        if row_equals(relation, ctl, registers, i, row):
            return row
        at = (at + 1) & mask


@kernel
def find_rows(relation, ctl, registers, n, scratch, found):
    """found[i] = the row with the key of block row i, or -1. For bitmaps a present row gives 0. The relation must have a
    set."""
    kind = load_i64(relation, REL_SET)
    slots = load_i64(relation, REL_SLOTS)
    if kind in (SET_BITS, SET_PAGES, SET_DENSE):
        dense_codes(relation, ctl, registers, n, found)
        if kind == SET_PAGES:
            for i in range(n):
                code = load_i64(found, i)
                bit = 0
                if code >= 0:
                    bit = (page_word(relation, code) >> (code & 63)) & 1
                store_i64(found, i, bit - 1)
        elif kind == SET_BITS:
            for i in range(n):
                code = load_i64(found, i)
                bit = 0
                if code >= 0:
                    bit = (load_i64(slots, code >> 6) >> (code & 63)) & 1
                store_i64(found, i, bit - 1)
        else:
            for i in range(n):
                code = load_i64(found, i)
                if code >= 0:
                    store_i64(found, i, load_i32(slots, code) - 1)
        return
    if load_i64(relation, REL_SLOT_COUNT) == 0:
        for i in range(n):
            store_i64(found, i, -1)
        return
    hash_block(ctl, registers, load_i64(relation, REL_KEY_COUNT), n, scratch)
    mask = load_i64(relation, REL_SLOT_COUNT) - 1
    for i in range(n):
        prefetch(slots + ((load_i64(scratch, i) >> 8) & mask) * 4)
    for i in range(n):
        store_i64(found, i, max(find_hash(relation, ctl, registers, i, load_i64(scratch, i)), -1))


# --------------------------------------------------------------------------------------------------------------- insert


@kernel
def append_rows(relation, ctl, registers, chosen, count, at):
    """Writes block rows chosen[0..count) to rows [at, at + count); room is reserved already."""
    columns = load_i64(relation, REL_COLUMNS)
    for c in range(load_i64(relation, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        data = load_i64(column, COL_DATA)
        values = register(ctl, load_i64(registers, c))
        if load_i64(column, COL_WIDTH) == 4:
            for j in range(count):
                store_i32(data, at + j, load_i64(values, load_i64(chosen, j)))
        else:
            for j in range(count):
                store_i64(data, at + j, load_i64(values, load_i64(chosen, j)))


@kernel
def append_block(ctl, relation, registers, n):
    """Adds n rows unchecked: the plan promises that they are distinct. Returns rows added, -1 on error."""
    if not reserve(ctl, relation, n):
        return -1
    at = load_i64(relation, REL_ROWS)
    store_i64(relation, REL_ROWS, at + n)
    columns = load_i64(relation, REL_COLUMNS)
    for c in range(load_i64(relation, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        data = load_i64(column, COL_DATA)
        values = register(ctl, load_i64(registers, c))
        if load_i64(column, COL_WIDTH) == 4:
            for j in range(n):
                store_i32(data, at + j, load_i64(values, j))
        else:
            for j in range(n):
                store_i64(data, at + j, load_i64(values, j))
    return n


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


# ---------------------------------------------------------------------------------------------------------------- pages


@kernel
def page_word(relation, code):
    """The word of a paged bitmap that holds a code's bit; 0 where its page does not exist."""
    page = load_i32(load_i64(relation, REL_SLOTS), code >> 9)
    if page == 0:
        return 0
    return load_i64(load_i64(relation, REL_POOL), ((page - 1) << 3) + ((code >> 6) & 7))


@kernel
def reserve_pages(ctl, relation, extra):
    """Makes room for `extra` more pages; false with CTL_ERROR set when there is none."""
    capacity = load_i64(relation, REL_POOL_CAPACITY)
    pages = load_i64(relation, REL_POOL_PAGES) + extra
    if pages <= capacity:
        return True
    target = max(pages, capacity + (capacity >> 1))
    moved = resize(ctl, load_i64(relation, REL_POOL), capacity * PAGE_WORDS * 8, target * PAGE_WORDS * 8)
    if moved == 0:
        return False
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
            store_i64(pool, ((page - 1) << 3) + word, 0)
    at = ((page - 1) << 3) + ((code >> 6) & 7)
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


# --------------------------------------------------------------------------------------------------------------- blocks


@kernel
def insert_block(ctl, relation, registers, n, codes, chosen):
    """Adds the rows of a block that are not present. Returns rows added, -1 with CTL_ERROR set on error.

    `registers` lists one register per column. The key must be all columns, in order.
    """
    if load_i64(relation, REL_SET) in (SET_BITS, SET_PAGES):
        bit_codes(relation, ctl, registers, n, codes)
        if load_i64(relation, REL_SET) == SET_BITS:
            count = novel_bits(relation, n, codes, chosen)
        else:
            count = novel_pages(ctl, relation, n, codes, chosen)
        if count < 0 or not reserve(ctl, relation, count):
            return -1
        at = load_i64(relation, REL_ROWS)
        append_rows(relation, ctl, registers, chosen, count, at)
        store_i64(relation, REL_ROWS, at + count)
        return count
    rows = load_i64(relation, REL_ROWS)
    if not reserve(ctl, relation, n) or not grow_hash(ctl, relation, rows + n):
        return -1
    for i in range(n):
        store_i64(chosen, i, -1)
    return insert_hash(ctl, relation, registers, n, codes, chosen)


@kernel
def insert_hash(ctl, relation, registers, n, codes, known):
    """Adds the block's rows that are not in the hash set, but for those with known[i] >= 0. Room is there already."""
    hash_block(ctl, registers, load_i64(relation, REL_KEY_COUNT), n, codes)
    table = load_i64(relation, REL_SLOTS)
    columns = load_i64(relation, REL_COLUMNS)
    arity = load_i64(relation, REL_ARITY)
    rows = load_i64(relation, REL_ROWS)
    start = rows
    mask = load_i64(relation, REL_SLOT_COUNT) - 1
    for i in range(n):
        prefetch(table + ((load_i64(codes, i) >> 8) & mask) * 4)
    for i in range(n):
        if load_i64(known, i) >= 0:
            continue
        slot = find_hash(relation, ctl, registers, i, load_i64(codes, i))
        if slot < 0:
            for c in range(arity):
                column = columns + c * COL_SIZE * 8
                store_cell(
                    load_i64(column, COL_DATA),
                    load_i64(column, COL_WIDTH),
                    rows,
                    load_i64(register(ctl, load_i64(registers, c)), i),
                )
            rows += 1
            store_i32(table, -1 - slot, rows)
    store_i64(relation, REL_ROWS, rows)
    return rows - start


@kernel
def share_block(ctl, relation, share, registers, n, codes, known):
    """insert_block while several workers run: rows that the relation, which is only read, does not have go to this worker's
    share, once. Two shares may have the same row.
    """
    if load_i64(relation, REL_SET) in (SET_BITS, SET_PAGES):
        bit_codes(relation, ctl, registers, n, codes)
        if load_i64(relation, REL_SET) == SET_BITS:
            count = novel_shared(relation, share, n, codes, known)
        else:
            count = novel_shared_pages(ctl, relation, share, n, codes, known)
        if count < 0 or not reserve(ctl, share, count):
            return -1
        at = load_i64(share, REL_ROWS)
        append_rows(share, ctl, registers, known, count, at)
        store_i64(share, REL_ROWS, at + count)
        return count
    if not reserve(ctl, share, n) or not grow_hash(ctl, share, load_i64(share, REL_ROWS) + n):
        return -1
    find_rows(relation, ctl, registers, n, codes, known)
    return insert_hash(ctl, share, registers, n, codes, known)


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


@kernel
def clear_word(relation, code):
    """Clears a code's whole word: a share is emptied of all its rows."""
    slots = load_i64(relation, REL_SLOTS)
    if load_i64(relation, REL_SET) == SET_BITS:
        store_i64(slots, code >> 6, 0)
        return
    page = load_i32(slots, code >> 9)
    store_i64(load_i64(relation, REL_POOL), ((page - 1) << 3) + ((code >> 6) & 7), 0)


@kernel
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
        clear_word(share, code)
        end += set_bit(relation, code)
    store_i64(relation, REL_ROWS, end)
    store_i64(share, REL_ROWS, 0)
    return True


@kernel
def dedupe_rows(ctl, relation, hashes):
    """Removes equal rows of a freshly loaded relation in place, keeping first ones and their order, and leaves its set filled.

    The relation's set kind is chosen by the caller and its memory is in place (for SET_BITS) or grown here (SET_HASH).
    `hashes` is a scratch block. Returns false with CTL_ERROR set when out of memory.
    """
    rows = load_i64(relation, REL_ROWS)
    bits = load_i64(relation, REL_SET) == SET_BITS
    kept = 0
    if not bits:
        store_i64(relation, REL_ROWS, 0)
        if not grow_hash(ctl, relation, rows):
            return False
    table = load_i64(relation, REL_SLOTS)
    mask = load_i64(relation, REL_SLOT_COUNT) - 1
    for first in range(0, rows, BLOCK):
        count = min(BLOCK, rows - first)
        if not bits:
            for i in range(count):
                hashed = hash_row(relation, first + i)
                store_i64(hashes, i, hashed)
                prefetch(table + ((hashed >> 8) & mask) * 4)
        for i in range(count):
            row = first + i
            if bits:
                novel = set_bit(relation, row_code(relation, row)) == 1
            else:
                novel = take_slot(relation, table, mask, load_i64(hashes, i), row, kept)
            if novel:
                if kept != row:
                    move_row(relation, row, kept)
                kept += 1
    store_i64(relation, REL_ROWS, kept)
    return True


@kernel
def take_slot(relation, table, mask, hashed, row, kept):
    """Enters a row, that will be row `kept`, into the hash table unless an equal row is there. Returns whether it was new."""
    at = (hashed >> 8) & mask
    while True:
        other = load_i32(table, at) - 1
        if other < 0:
            store_i32(table, at, kept + 1)
            return True
        if rows_equal(relation, row, other):
            return False
        at = (at + 1) & mask


@kernel
def move_row(relation, source, target):
    columns = load_i64(relation, REL_COLUMNS)
    for c in range(load_i64(relation, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        data = load_i64(column, COL_DATA)
        width = load_i64(column, COL_WIDTH)
        store_cell(data, width, target, load_cell(data, width, source))


@kernel
def rows_equal(relation, left, right):
    columns = load_i64(relation, REL_COLUMNS)
    for c in range(load_i64(relation, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        data = load_i64(column, COL_DATA)
        width = load_i64(column, COL_WIDTH)
        if load_cell(data, width, left) != load_cell(data, width, right):
            return False
    return True


@kernel
def strictly_sorted(relation):
    """Whether the rows are in strictly ascending lexicographic order (so that none repeats)."""
    columns = load_i64(relation, REL_COLUMNS)
    arity = load_i64(relation, REL_ARITY)
    for row in range(1, load_i64(relation, REL_ROWS)):
        below = False
        for c in range(arity):
            column = columns + c * COL_SIZE * 8
            data = load_i64(column, COL_DATA)
            width = load_i64(column, COL_WIDTH)
            left = load_cell(data, width, row - 1)
            right = load_cell(data, width, row)
            if left < right:
                below = True
                break
            if left > right:
                return False
        if not below:
            return False
    return True


@kernel
def fill_set(ctl, relation):
    """Fills a fresh set (all columns are its key) from the rows present. False with CTL_ERROR set when out of memory."""
    rows = load_i64(relation, REL_ROWS)
    kind = load_i64(relation, REL_SET)
    if kind == SET_HASH:
        return grow_hash(ctl, relation, max(rows, 1))
    for row in range(rows):
        if kind == SET_PAGES and row % BLOCK == 0 and not reserve_pages(ctl, relation, BLOCK):
            return False
        set_bit(relation, row_code(relation, row))
    return True
