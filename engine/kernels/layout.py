"""What kernels and Python share beside structs: constants, and the places of fields in structs that Python holds as words.

The structs are declared, field by field, in machine_structs.py, row_structs.py and round_structs.py: the word of a collection
that says how many rows are alive is the one with the number `collection.live`, and a collection has `collection.size` words.
"""

from __future__ import annotations

from dlog.engine.kernels import machine_structs as machine
from dlog.engine.kernels import round_structs as rounds
from dlog.engine.kernels import row_structs as rows

account, arrangement, chain, column = (
    machine.Account.place,
    machine.Arrangement.place,
    machine.Chain.place,
    machine.Column.place,
)
control, heap, homes, level = rounds.Control.place, machine.Heap.place, machine.Homes.place, machine.Level.place
loop, marks, path, proposer = rounds.Loop.place, machine.Marks.place, rounds.Path.place, machine.Proposer.place
relation, runs, symbols, verdicts = machine.Relation.place, machine.Runs.place, machine.Symbols.place, machine.Verdicts.place
produced = machine.Produced.place
bucket, candidate, change, collection = (
    rounds.Bucket.place,
    rows.Candidate.place,
    rows.Change.place,
    rounds.Collection.place,
)
entry, history, index, item = rows.Entry.place, rows.History.place, rounds.Index.place, rows.Item.place
items, log, pool, reduction = rows.List.place, rounds.Log.place, rows.Pool.place, rounds.Reduction.place
scope, seed, slab, stretch = rounds.Scope.place, rounds.Seed.place, rows.Slab.place, rounds.Stretch.place
sums, support, work = rows.Sums.place, rows.Support.place, rounds.Work.place

BLOCK = 512
"""Rows per block: eight registers of a block fit the first-level cache."""
REGISTER = BLOCK + 8
"""Words from one register to the next: first rows that lie whole pages apart would all share one set of the cache."""
SCRATCH_BLOCKS, SCRATCH_TEXT = 6, 2**18
"""Blocks of words for an instruction's own use; bytes for the texts that it makes."""
LEVELS_MAX = 40
"""Levels of a path."""
IMPLIED = 0
"""Width of a collection's column that is not there: the base implies it (implied.py)."""

# A relation's set: none; one bit per possible row; the same in pages of PAGE_CODES bits that are made when first touched; a
# table of row numbers (plus one) by dense code; the same by hash.
SET_NONE, SET_BITS, SET_PAGES, SET_DENSE, SET_HASH = range(5)
PAGE_CODES, PAGE_WORDS = 512, 8

HEAP_SIZE = heap.size + 65 * machine.HeapBucket.place.size
"""Words of a heap with its buckets."""

ARR_SORTED, ARR_GROWING = range(2)
MAP_DENSE, MAP_HASH = range(2)

# Whether few changes go through a path row by row: they do not; they do, and rows of a group share what is carried over; they
# do not share it, as it is changed; they share it, and each contributes a value that is carried over to the lattice's group by
# the path's key.
FEW_NOT, FEW_SHARED, FEW_APART, FEW_VALUE = range(4)
SEEN = 1 << 15
"""Rows that a sweep remembers (sweep.py): no more than the second-level cache holds."""

# What a run returns.
DONE, YIELD, EXTERNAL, FAILED, BULK = range(5)
ERROR_NONE, ERROR_MEMORY, ERROR_DIVISION, ERROR_ROWS, ERROR_ITERATIONS, ERROR_WEIGHT, ERROR_SUM = range(7)
SUM_MOST = 1 << 61
"""Sums that are compared with a bound are refused beyond this: two of them can be added."""

RANGE_NUMBER, RANGE_UNSIGNED, RANGE_FLOAT = range(3)
# OP_EXTERNAL's second operand is a `Text` (texts.py). The arguments are pairs of a form and a register; FORM_ID is the id of a
# symbol, the others are numbers to be written as text.
FORM_ID, FORM_NUMBER, FORM_UNSIGNED, FORM_FLOAT = range(4)
# What is known of a symbol and a pattern.
VERDICT_UNKNOWN, VERDICT_NO, VERDICT_YES, VERDICT_NEITHER = range(4)

# Instructions: [operation, length in words, operands ...].
(
    OP_SCAN,
    OP_QUEUE,
    OP_UNIT,
    OP_JOIN,
    OP_EXTEND,
    OP_RANGE,
    OP_CALLED,
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
) = range(39)

# OP_COMPARE's second word; OP_ARITHMETIC's is an `Arithmetic` (arithmetic.py).
CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_LT_U, CMP_LE_U, CMP_EQ_F, CMP_NE_F, CMP_LT_F, CMP_LE_F = range(10)

# ----------------------------------------------------------------------------------------------------------------- rounds
CANDIDATE_NARROW, CANDIDATE_WIDE = 24, 32
"""Bytes of a candidate whose value takes 4 bytes, and of one whose value takes 8."""
TAG_FREE, TAG_GONE, TAG_ROW = 0, 1, 128
GROUP_NUMBER, GROUP_HAD, GROUP_HAS = 2**32 - 1, 2**32, 2**33
"""Parts of what a change of a result that is its groups has in the place of a row."""
NEVER = 2**31 - 1
"""Iteration of a row that is not there yet."""
ROUND = 2**32
"""A time is (round of the batch + 1) * ROUND + iteration; settled times are below ROUND."""
RUN = 1 << 40
"""Added to row numbers that are positions in a slab without capacity."""
PLACE_BYTES = 8
"""Bytes of a place in a reduction's table of candidates."""
# A path; a collection's derived rows become changes; a reduction's contributions do; a recursive scope, round by round.
TASK_PATH, TASK_DISTINCT, TASK_REDUCE, TASK_LOOP = range(4)

WIDEST_FIXED = 320
"""Bytes of the longest double with six digits behind the point (%f)."""
