"""Where things stand in the tables that kernels share: field numbers of structs of int64 words.

A struct is a run of words at an address; `X_Y` is field Y of struct X, `X_SIZE` its length. Lists inside a struct are
addresses of further words. All row numbers are 32-bit: a relation holds fewer than 2**31 rows.
"""

BLOCK = 512
"""Rows per block: eight registers of a block fit the first-level cache."""

# Column of a relation: where its values are, 4 or 8 bytes each, and its place in the relation's dense code.
COL_DATA, COL_WIDTH, COL_LOW, COL_RANGE, COL_STRIDE, COL_SIZE = range(6)

# Relation. Rows [0, REL_ROWS) exist; [REL_LO, REL_HI) are the changes of this iteration; the set or map is over the columns
# listed at REL_KEYS; REL_LIMIT is the number of rows that ends the loop (0: none); REL_SHARES lists a relation per worker that
# takes what it adds while several run.
(
    REL_ARITY,
    REL_ROWS,
    REL_CAPACITY,
    REL_LO,
    REL_HI,
    REL_COLUMNS,
    REL_SET,
    REL_SLOTS,
    REL_SLOT_COUNT,
    REL_KEYS,
    REL_KEY_COUNT,
    REL_MERGE,
    REL_VALUE,
    REL_HEAP,
    REL_QUEUE,
    REL_QUEUE_ROWS,
    REL_QUEUE_CAPACITY,
    REL_SHARES,
    REL_LIMIT,
    REL_POOL,
    REL_POOL_PAGES,
    REL_POOL_CAPACITY,
    REL_SIZE,
) = range(23)

# REL_SET: none; one bit per possible row; the same in pages of PAGE_CODES bits that are made when first touched; a table of row
# numbers (plus one) by dense code; the same by hash.
SET_NONE, SET_BITS, SET_PAGES, SET_DENSE, SET_HASH = range(5)
PAGE_CODES, PAGE_WORDS = 512, 8

# REL_MERGE: what a keyed relation does with a second value.
MERGE_NONE, MERGE_SUM, MERGE_SUM_FLOAT, MERGE_MIN, MERGE_MAX = range(5)
MERGE_MIN_UNSIGNED, MERGE_MAX_UNSIGNED, MERGE_MIN_FLOAT, MERGE_MAX_FLOAT = range(5, 9)

# Radix heap of a lattice relation: `HEAP_BUCKETS` buckets of (address, entries, capacity), an entry is (key, row).
HEAP_LAST, HEAP_COUNT, HEAP_BUCKETS = 0, 1, 2
HEAP_SIZE = 2 + 65 * 3

# Arrangement. ARR_SORTED: offsets and columns permuted by key; ARR_GROWING: one slab of items per key.
(
    ARR_KIND,
    ARR_RELATION,
    ARR_KEY_COUNT,
    ARR_KEYS,
    ARR_MAP,
    ARR_LOWS,
    ARR_RANGES,
    ARR_STRIDES,
    ARR_GROUPS,
    ARR_SLOTS,
    ARR_SLOT_COUNT,
    ARR_GROUP_KEYS,
    ARR_GROUP_CAPACITY,
    ARR_OFFSETS,
    ARR_COLUMNS,
    ARR_SLABS,
    ARR_POOL,
    ARR_POOL_SIZE,
    ARR_POOL_CAPACITY,
    ARR_FREE,
    ARR_ITEM,
    ARR_DONE,
    ARR_SIZE,
) = range(23)
ARR_SORTED, ARR_GROWING = range(2)
MAP_DENSE, MAP_HASH = range(2)
# ARR_COLUMNS: per column of the relation an (address, width) pair, address 0 where the column was not needed.
# Slab of a group: first item, items, capacity.
SLAB_START, SLAB_COUNT, SLAB_CAPACITY, SLAB_SIZE = range(4)

# State of one level of a running path: rows of its input block, the current one, a range of positions left in it.
LEVEL_ROWS, LEVEL_ROW, LEVEL_AT, LEVEL_END, LEVEL_EXTRA, LEVEL_SIZE = range(6)
LEVELS_MAX = 40

# Marks of one OP_EXTEND of one worker: the chosen proposer, then per proposer the last row's group, the group whose values are
# marked (or -1), the cursor of its search, where its bits are (words from the marks' start), and, for this row, how many rows
# it has and what validating one candidate costs.
MARK_CHOSEN, MARK_PROPOSERS = 0, 1
MARK_LAST, MARK_GROUP, MARK_CURSOR, MARK_BITS, MARK_ROWS, MARK_COST, MARK_SIZE = range(7)

# Control block of one worker.
(
    CTL_REGISTERS,
    CTL_SCRATCH,
    CTL_LEVELS,
    CTL_LEVEL,
    CTL_PC,
    CTL_ROWS,
    CTL_WORK,
    CTL_BUDGET,
    CTL_CURSOR,
    CTL_BYTES,
    CTL_LIMIT,
    CTL_ERROR,
    CTL_ERROR_PATH,
    CTL_SHARED,
    CTL_PHASE,
    CTL_PATH,
    CTL_ITERATION,
    CTL_BULK,
    CTL_RUNNING,
    CTL_CHANGES,
    CTL_MARKS,
    CTL_NUMBER,
    CTL_RUN_PATH,
    CTL_SIZE,
) = range(24)

# Path: addresses of its levels' code, counters.
PATH_LEVELS, PATH_CODE, PATH_SEED, PATH_CHANGES, PATH_DERIVED, PATH_ADDED, PATH_CYCLES, PATH_SIZE = range(8)

# Loop of a scope: lists of addresses.
(
    LOOP_ALT,
    LOOP_ALT_COUNT,
    LOOP_NEU,
    LOOP_NEU_COUNT,
    LOOP_RELATIONS,
    LOOP_RELATION_COUNT,
    LOOP_ARRANGEMENTS,
    LOOP_ARRANGEMENT_COUNT,
    LOOP_SIZE,
) = range(9)

# What a run returns.
DONE, YIELD, EXTERNAL, FAILED, BULK = range(5)
ERROR_NONE, ERROR_MEMORY, ERROR_DIVISION, ERROR_ROWS = range(4)

# Instructions: [operation, length in words, operands ...].
(
    OP_SCAN,
    OP_QUEUE,
    OP_UNIT,
    OP_JOIN,
    OP_EXTEND,
    OP_NEXT,
    OP_GROUP,
    OP_HAS_GROUP,
    OP_CONTAINS,
    OP_FIND,
    OP_FETCH,
    OP_COMPARE,
    OP_ARITHMETIC,
    OP_MOVE,
    OP_UNPACK,
    OP_PACK,
    OP_EXTERNAL,
    OP_MASK,
    OP_INSERT,
    OP_APPEND,
    OP_MERGE,
) = range(21)

# OP_COMPARE's and OP_ARITHMETIC's second word.
CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_LT_U, CMP_LE_U, CMP_EQ_F, CMP_NE_F, CMP_LT_F, CMP_LE_F = range(10)
(
    AR_ADD,
    AR_SUB,
    AR_MUL,
    AR_DIV,
    AR_MOD,
    AR_POW,
    AR_DIV_U,
    AR_MOD_U,
    AR_POW_U,
    AR_ADD_F,
    AR_SUB_F,
    AR_MUL_F,
    AR_DIV_F,
    AR_POW_F,
    AR_MIN,
    AR_MAX,
    AR_MIN_U,
    AR_MAX_U,
    AR_MIN_F,
    AR_MAX_F,
    AR_BAND,
    AR_BOR,
    AR_BXOR,
    AR_SHL,
    AR_SHR,
    AR_SHRU,
    AR_LAND,
    AR_LOR,
    AR_LXOR,
    AR_BNOT,
    AR_LNOT,
    AR_NEG,
    AR_NEG_F,
    AR_ITOF,
    AR_FTOI,
    AR_UTOF,
    AR_FTOU,
) = range(37)
