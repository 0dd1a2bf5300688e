"""The layout of the tables that kernels share: field numbers of structs of int64 words.

A struct is a run of words at an address; `X_Y` is field Y of struct X, `X_SIZE` its length. Lists inside a struct are
addresses of further words. All row numbers are 32-bit: a relation holds fewer than 2**31 rows.
"""

BLOCK = 512
"""Rows per block: eight registers of a block fit the first-level cache."""
REGISTER = BLOCK + 8
"""Words from one register to the next: first rows that lie whole pages apart would all share one set of the cache."""

# Column of a relation: where its values are, 4 or 8 bytes each, and its place in the relation's dense code.
COL_DATA, COL_WIDTH, COL_LOW, COL_RANGE, COL_STRIDE, COL_SIZE = range(6)
IMPLIED = 0
"""Width of a collection's column that is not there: the base implies it (implied.py)."""

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

# REL_MERGE and RD_OP: a `Combine` (combine.py).

# Radix heap of a lattice relation: `HEAP_BUCKETS` buckets of (address, entries, capacity), an entry is (key, row).
HEAP_LAST, HEAP_COUNT, HEAP_BUCKETS = 0, 1, 2
HEAP_SIZE = 2 + 65 * 3

# Arrangement. ARR_SORTED: offsets and columns permuted by key; ARR_GROWING: one chain of items per key.
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
    ARR_CHAINS,
    ARR_POOL,
    ARR_POOL_SIZE,
    ARR_POOL_CAPACITY,
    ARR_ITEM,
    ARR_DONE,
    ARR_ONLY,
    ARR_ONLY_COLUMN,
    ARR_ONLY_LOW,
    ARR_ONLY_SPAN,
    ARR_SIZE,
) = range(26)
ARR_SORTED, ARR_GROWING = range(2)
MAP_DENSE, MAP_HASH = range(2)
# ARR_COLUMNS: per column of the relation an (address, width) pair, address 0 where the column was not needed.
# Head of a group's chain, 32-bit words: where its first chunk starts, items, where the next one goes, room in the last chunk.
CHAIN_START, CHAIN_COUNT, CHAIN_NEXT, CHAIN_ROOM, CHAIN_SIZE = range(5)

# State of one level of a running path: rows of its input block, the current one, a range of positions left in it; the number
# of the chunk these positions are in, and how many items follow in later chunks.
LEVEL_ROWS, LEVEL_ROW, LEVEL_AT, LEVEL_END, LEVEL_EXTRA, LEVEL_CHUNK, LEVEL_LEFT, LEVEL_SIZE = range(8)
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
    CTL_BATCH,
    CTL_SIZE,
) = range(25)

# What CTL_BYTES points to, shared by all workers: bytes allocated, and the symbol table (0: none).
ACCOUNT_BYTES, ACCOUNT_SYMBOLS, ACCOUNT_SIZE = range(3)

# CTL_SCRATCH: blocks of words for an instruction's own use, then bytes for the texts that it makes.
SCRATCH_BLOCKS, SCRATCH_TEXT = 6, 2**18

# Symbol table (symbols.py): heap of bytes, offsets, each followed by its size; hash slots with their homes; strings there are,
# bytes used, lock.
(
    SYM_HEAP,
    SYM_HEAP_SIZE,
    SYM_OFFSETS,
    SYM_OFFSET_COUNT,
    SYM_SLOTS,
    SYM_SLOT_COUNT,
    SYM_SLOT_OLD,
    SYM_SLOT_EDGE,
    SYM_SLOT_ROOM,
    SYM_COUNT,
    SYM_USED,
    SYM_LOCK,
    SYM_SIZE,
) = range(13)

# Path: addresses of its levels' code, counters. PATH_TARGET: the collection of which it makes rows (over rounds). PATH_FEW:
# whether few changes go through it row by row (few.py); of a path that does, columns, or -1: PATH_SOUGHT and PATH_GROUP of the
# seed, by which it looks rows up and chooses the group of PATH_REDUCTION, PATH_KEY of the rows looked up, by which it does.
# PATH_RUN_CODE: its code for changes in runs, where PATH_RUNS is ready.
(
    PATH_LEVELS,
    PATH_CODE,
    PATH_SEED,
    PATH_CHANGES,
    PATH_DERIVED,
    PATH_ADDED,
    PATH_CYCLES,
    PATH_LIST,
    PATH_GATES,
    PATH_GATE_COUNT,
    PATH_TARGET,
    PATH_FEW,
    PATH_SOUGHT,
    PATH_GROUP,
    PATH_KEY,
    PATH_REDUCTION,
    PATH_RUNS,
    PATH_RUN_CODE,
    PATH_SIZE,
) = range(19)
# PATH_FEW: they do not; they do, and rows of a group share what is carried over; they do not share it, as it is changed; they
# share it, and each contributes a value that is carried over to the lattice's group by PATH_KEY.
FEW_NOT, FEW_SHARED, FEW_APART, FEW_VALUE = range(4)

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
    LOOP_RUNS,
    LOOP_RUN_COUNT,
    LOOP_SIZE,
) = range(11)
# Runs of a relation's changes: the column they are sorted by; whether they are, in this iteration; iterations until they are
# looked at again; fewest changes that are (runs.py).
RUNS_RELATION, RUNS_COLUMN, RUNS_READY, RUNS_WAIT, RUNS_LEAST, RUNS_SIZE = range(6)
SEEN = 1 << 15
"""Rows that a sweep remembers (sweep.py): no more than the second-level cache holds."""

# What a run returns.
DONE, YIELD, EXTERNAL, FAILED, BULK = range(5)
ERROR_NONE, ERROR_MEMORY, ERROR_DIVISION, ERROR_ROWS, ERROR_ITERATIONS, ERROR_WEIGHT, ERROR_SUM = range(7)
SUM_MOST = 1 << 61
"""Sums that are compared with a bound are refused beyond this: two of them can be added."""

# OP_EXTERNAL's second operand is a `Text` (texts.py). The arguments are pairs of a form and a register; FORM_ID is the id of a
# symbol, the others are numbers to be written as text.
FORM_ID, FORM_NUMBER, FORM_UNSIGNED, FORM_FLOAT = range(4)
# Verdicts of a pattern: a byte per symbol; how many there are.
VERDICT_BYTES, VERDICT_COUNT, VERDICT_SIZE = range(3)
VERDICT_UNKNOWN, VERDICT_NO, VERDICT_YES, VERDICT_NEITHER = range(4)

# Instructions: [operation, length in words, operands ...].
(
    OP_SCAN,
    OP_QUEUE,
    OP_UNIT,
    OP_JOIN,
    OP_EXTEND,
    OP_SWEEP,
    OP_SWEEP_RUNS,
    OP_RUNS,
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
    OP_CHANGES,
    OP_ROWS_OF,
    OP_ENTRIES,
    OP_PROPOSE,
    OP_ONCE,
    OP_INDEX,
    OP_ROW,
    OP_PRESENT,
    OP_VALUE,
    OP_ANY,
    OP_STAGGER,
    OP_DERIVE,
    OP_REDUCE,
) = range(37)

# OP_COMPARE's second word; OP_ARITHMETIC's is an `Arithmetic` (arithmetic.py).
CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_LT_U, CMP_LE_U, CMP_EQ_F, CMP_NE_F, CMP_LT_F, CMP_LE_F = range(10)

# ----------------------------------------------------------------------------------------------------------------- rounds
# Collections: relations maintained over rounds. A collection's struct is a relation's (rows are reused, so REL_ROWS is the
# number of rows ever made) followed by these.
(
    CO_ALIVE,
    CO_FREE,
    CO_FREE_COUNT,
    CO_FREE_CAPACITY,
    CO_SLOTS,
    CO_TAGS,
    CO_SLOT_COUNT,
    CO_SLOT_OLD,
    CO_SLOT_EDGE,
    CO_SLOT_ROOM,
    CO_LIVE,
    CO_OLD,
    CO_INDEXES,
    CO_INDEX_COUNT,
    CO_OUTER,
    CO_INNER,
    CO_LOG,
    CO_INNER_LOG,
    CO_DERIVED,
    CO_COUNTS,
    CO_SUPPORT,
    CO_STAMPS,
    CO_ENTRIES,
    CO_BUCKETS,
    CO_BUCKET_COUNT,
    CO_TOUCHED,
    CO_HEADS,
    CO_CURRENT,
    CO_SUMS,
    CO_SCOPE,
    CO_FRESH,
    CO_BORN,
    CO_INDEXED,
    CO_DOOMED,
    CO_TAKEN,
    CO_QUIET,
    CO_RECORDS,
    CO_RECORD_BYTES,
    CO_SUM_WORDS,
    CO_UNKEYED,
    CO_BASE_ROWS,
    CO_BASE_KEY,
    CO_BASE_LOW,
    CO_BASE_KEYS,
    CO_BASE_OFFSETS,
    CO_BASE_DEAD,
    CO_DIRECT,
    CO_DIRECT_LOW,
    CO_DIRECT_COUNT,
    CO_GROUPED,
    CO_PAIRABLE,
    CO_PAIRS,
    CO_PAIR_COUNT,
    CO_PAIR_OLD,
    CO_PAIR_EDGE,
    CO_PAIR_ROOM,
    CO_PACKED,
    CO_EXPECTED,
    CO_BETWEEN,
    CO_KEPT,
    CO_KEY_SAMPLES,
    CO_KEY_TAIL,
    CO_BEGUN,
    CO_ACTIVE,
    CO_FLUSH,
    CO_REDUCTION,
    CO_BOUND,
    CO_SIZE,
) = range(REL_SIZE, REL_SIZE + 68)
# CO_ALIVE: a bit per row. CO_SLOTS, CO_TAGS: rows by hash (int32), a byte for each (slots.py). CO_LIVE: rows alive; CO_OLD:
# before this batch. CO_OUTER, CO_INNER: histories as other scopes see it and as its own recursive scope does (0: none). CO_LOG:
# its changes by round, CO_INNER_LOG: by iteration, CO_DERIVED: what paths derived (all three: lists). CO_COUNTS: derivations
# per row (int64), CO_SUPPORT: per row the first of its CO_ENTRIES (int32). CO_BUCKETS: per iteration a list of derived rows.
# CO_TOUCHED: rows touched in this round. CO_HEADS (pairs of int32) or CO_CURRENT (int32), of a reduction's groups: what they
# lead to (heads.py); CO_RECORDS (of its candidates): CO_RECORD_BYTES each, see CANDIDATE_*; CO_SUMS (of groups): CO_SUM_WORDS
# words each. CO_FRESH: it was empty before this batch of one round. CO_BORN: rows made in this batch, of which the first
# CO_INDEXED are in the indexes; CO_DOOMED: rows that may be nowhere any more. CO_TAKEN: slots that are not free, those of
# removed rows included. CO_QUIET: no path looks rows up in it: a row's bit in CO_OUTER says that it is absent, nothing more is
# noted. CO_UNKEYED: nobody looks for a row by its values: there are no slots. CO_BASE_*: rows that came in one go (base.py):
# how many, the column they are sorted by, its least value, how many values from there on, where each one's rows begin (int32),
# and how many rows are dead. CO_DIRECT*: rows by the value of the one column (direct.py); while it is there, there are no
# slots. CO_GROUPED: the reduction whose groups are its rows (grouped.py). CO_PAIRABLE: its rows may be pairs (pairs.py);
# CO_PAIRS: the table that they are then in; CO_PACKED: the log has the words of pairs in the place of row numbers. CO_EXPECTED:
# while a path runs, the rows of a fresh collection that it derives from: as many may come here (0: nothing is known).
# CO_BETWEEN: its own scope looks rows up between its rounds only, before the first iteration of one: CO_INNER may have at once
# what the round makes of a row. CO_KEPT: a list of the changes of a stretch's batches that are over (stretches.py), 0 where
# nobody reads them: column after column, LIST_CAPACITY words each. CO_KEY_*: of a base whose key column is implied
# (implied.py): the keys of some rows, and those of the rows that came later (both int32). CO_BEGUN: the batch has touched it
# (activation.py); CO_ACTIVE: so has the round of its own scope. CO_FLUSH: the task that makes changes of what paths derive
# here, plus one (0: its scope does). CO_REDUCTION: whose result or candidates it is. CO_BOUND: a row holds where its count of
# derivations exceeds the value of this column, plus one; 0: where there are any.
# Candidate of a minimum or maximum: a word with its derivations (of a lattice: derivations.py), then, of 4 bytes each, its
# group (-1: it is gone), the next one of its group and the result's row last known to have its value (plus one each), its
# value. One with a value of 8 bytes has that in a word of its own.
CANDIDATE_COUNT, CANDIDATE_WIDE_VALUE = 0, 3
CANDIDATE_GROUP, CANDIDATE_NEXT, CANDIDATE_ROW, CANDIDATE_VALUE = range(2, 6)
CANDIDATE_NARROW, CANDIDATE_WIDE = 24, 32
# Homes of an open table (homes.py): how many; while it grows how many hashes below the edge have (else the edge is 0); the
# places of the table, some of which are behind all homes. CO_SLOT_*, CO_PAIR_*, IX_SLOT_* and
# SYM_SLOT_* are such.
HM_COUNT, HM_OLD, HM_EDGE, HM_ROOM = range(4)
TAG_FREE, TAG_GONE, TAG_ROW = 0, 1, 128

# List: items of so many words that grow; [LIST_LO, LIST_HI) is the part in use by a seed.
LIST_DATA, LIST_COUNT, LIST_CAPACITY, LIST_WORDS, LIST_LO, LIST_HI, LIST_SIZE = range(7)
# Bucket: a list in CO_BUCKETS; BUCKET_NEXT is the next collection of the scope with rows at the same iteration.
BUCKET_NEXT = LIST_LO
CHANGE_ROW, CHANGE_TIME, CHANGE_DIFF, CHANGE_VALUE, CHANGE_SIZE = range(5)
# The log of a result that is its groups has an entry per round and group: the group's number, whether it had and has a value,
# the time, the values before and after.
CHANGE_BEFORE = CHANGE_DIFF
GROUP_NUMBER, GROUP_HAD, GROUP_HAS = 2**32 - 1, 2**32, 2**33

# History: who knows when a row is present. A row without its bit is present from HI_BASE + HI_ITERS[row] on, and ever
# after; a row with it has an item in HI_ITEMS with the first of its entries in HI_ENTRIES. HI_ITERS has the item's number then;
# in a history without iterations it is found by hash in HI_TABLE.
HI_BITS, HI_ITERS, HI_BASE, HI_ITEMS, HI_TABLE, HI_TABLE_COUNT, HI_ENTRIES, HI_SIZE = range(8)
ITEM_ROW, ITEM_HEAD, ITEM_SLOT, ITEM_SIZE = range(4)
# Pool: a list whose items are freed and reused; POOL_FREE is the last freed one plus one, linked through its first word.
POOL_FREE, POOL_SIZE = LIST_SIZE, LIST_SIZE + 1
# Log: a list whose changes seed paths. LOG_READERS lists pairs: a task that has them to do, plus one (0: a script has, see
# shards), and, where that is a recursive scope, the seed by which its paths know the log. LOG_SEED, of a log by iteration: the
# seed of its own scope's paths.
LOG_READERS, LOG_READER_COUNT, LOG_SEED, LOG_SIZE = range(POOL_SIZE, POOL_SIZE + 4)
# Seed: a list (0: none, a path's one row), the paths of a recursive scope that it seeds, the scope; whether the list is the
# scope's own, by iteration.
SEED_LIST, SEED_PATHS, SEED_PATH_COUNT, SEED_SCOPE, SEED_OWN, SEED_SIZE = range(6)
ENTRY_TIME, ENTRY_DIFF, ENTRY_NEXT, ENTRY_SIZE = range(4)
SUPPORT_AT, SUPPORT_OLD, SUPPORT_NEW, SUPPORT_SIZE = range(4)
# SUPPORT_AT: iteration in the low half, the next entry plus one in the high half.
NEVER = 2**31 - 1
"""HI_ITERS of a row that is not there yet."""
ROUND = 2**32
"""A time is (round of the batch + 1) * ROUND + iteration; settled times are below ROUND."""

# Index: an arrangement of a collection by key columns: slabs of row numbers per group. Of INDEX_DENSE, group = key - low.
(
    IX_COLLECTION,
    IX_KEY_COUNT,
    IX_KEYS,
    IX_DENSE,
    IX_LOW,
    IX_GROUPS,
    IX_GROUP_CAPACITY,
    IX_SLABS,
    IX_SLOTS,
    IX_SLOT_COUNT,
    IX_SLOT_OLD,
    IX_SLOT_EDGE,
    IX_SLOT_ROOM,
    IX_USED,
    IX_FREE_GROUP,
    IX_POOL,
    IX_POOL_SIZE,
    IX_POOL_CAPACITY,
    IX_FREE,
    IX_WANTED,
    IX_VALUES,
    IX_GONE,
    IX_SIZE,
) = range(23)
# IX_VALUES: 0, or the column, plus one, whose values slabs in the pool hold in the place of row numbers; IX_WANTED: which
# column that may be. IX_GONE: while a batch settles, rows that are to leave long groups (removals.py).
# Slab of an index: start, rows, capacity (int32 each). A slab without capacity has the rows from number `start` on, and
# nothing in the pool: positions in it are row numbers plus RUN.
IXS_START, IXS_COUNT, IXS_CAPACITY, IXS_SIZE = range(4)
RUN = 1 << 40

# Reduction: groups, candidates (min and max only), result; what kind. RD_STREAMED: contributions come from one path, by round,
# and change the groups at once (streamed.py); RD_OPEN: the round whose last contribution may not have come yet (0: none).
# RD_TABLE: candidates of groups that have many (candidates.py), PLACE_BYTES each.
RD_OP, RD_GROUPS, RD_CANDIDATES, RD_RESULT, RD_DERIVED, RD_MISSING, RD_KEYS, RD_VALUE, RD_SCOPE = range(9)
RD_STREAMED, RD_OPEN, RD_WORK, RD_TABLE, RD_TABLE_COUNT, RD_TABLE_USED, RD_SIZE = range(9, 16)
PLACE_BYTES = 8
# Words of a group: members, sum, what rounding lost of it, and members that are not finite (NaN, inf, -inf: 21 bits each).
# Counts have the first, sums of integers the first two. Of a minimum or maximum the one word is the best candidate, plus one.
SUM_COUNT, SUM_VALUE, SUM_LOST, SUM_ODD, SUM_WORDS = range(5)

# Work of a batch: a list of tasks, in topological order; those that are marked in WORK_MARKS (a bit each) run. PATH: a path;
# DISTINCT: a collection's derived rows become changes; REDUCE: a reduction's; LOOP: a recursive scope, round by round. WORK_AT:
# the task that runs, -1 before the inputs' readers are marked; WORK_BEGUN: whether it has begun. WORK_OVER: all have run.
# WORK_TOUCHED: the collections that the batch has changed or, after it, those of which the logs are still there; WORK_KEPT:
# those with changes of a stretch in CO_KEPT. WORK_RAN, WORK_SEEDED, WORK_PROCESSED: tasks that have run so far, paths that had
# changes to go through, collections that had rows to look at in some iteration.
TASK_PATH, TASK_DISTINCT, TASK_REDUCE, TASK_LOOP = range(4)
(
    WORK_TASKS,
    WORK_COUNT,
    WORK_AT,
    WORK_BEGUN,
    WORK_OVER,
    WORK_FIRST,
    WORK_ROUNDS,
    WORK_TICK,
    WORK_LIMIT,
    WORK_MARKS,
    WORK_TOUCHED,
    WORK_TOUCHED_COUNT,
    WORK_KEPT,
    WORK_KEPT_COUNT,
    WORK_SPARE,
    WORK_COUNTS,
    WORK_RAN,
    WORK_SEEDED,
    WORK_PROCESSED,
    WORK_SIZE,
) = range(20)
# Stretch: changes of an input, ST_COUNT of them in ST_COLUMNS (addresses of columns of values, of diffs and of rounds), that go
# through the dataflow in batches of ST_ROUNDS rounds. Those before ST_AT have been given to a batch; ST_BEGUN: the last batch,
# whose first round is ST_FIRST, is not over yet. ST_BATCH has room for a batch's addresses. ST_REPEATED: a row of the input may
# have changed twice in one round.
(
    ST_INPUT,
    ST_COLUMNS,
    ST_BATCH,
    ST_COUNT,
    ST_AT,
    ST_ROUNDS,
    ST_FIRST,
    ST_BEGUN,
    ST_REPEATED,
    ST_SIZE,
) = range(10)
# Recursive scope over rounds. SC_IMPORTS: the seeds of paths that enter, SC_UNIT the one without changes (0: none); SC_CHANGED:
# those with changes in this batch. SC_SEEDS: those whose paths run in this phase; SC_SEED and SC_PATH: how far. SC_TOUCHED: the
# collections (of lattices their candidates) that this round has changed; SC_HEADS: per iteration the first of those with rows
# to look at, which goes on with BUCKET_NEXT. SC_TAIL: how many collections the batch had touched before. SC_STAGGERED: rows
# enter at late iterations, so that not those but the iterations that did something count (SC_DONE).
(
    SC_IMPORTS,
    SC_IMPORT_COUNT,
    SC_UNIT,
    SC_CHANGED,
    SC_CHANGED_COUNT,
    SC_SEEDS,
    SC_SEED_COUNT,
    SC_SEED,
    SC_PATH,
    SC_TOUCHED,
    SC_TOUCHED_COUNT,
    SC_TAIL,
    SC_PHASE,
    SC_ROUND,
    SC_ITERATION,
    SC_BITS,
    SC_BIT_WORDS,
    SC_HEADS,
    SC_HEAD_COUNT,
    SC_LAST,
    SC_TICK,
    SC_ROUND_TICK,
    SC_STAGGERED,
    SC_DONE,
    SC_SIZE,
) = range(25)

WIDEST_FIXED = 320
"""Bytes of the longest double with six digits behind the point (%f)."""
