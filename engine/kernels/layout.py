"""What kernels and Python share beside structs: constants, and the places of fields in structs that Python holds as words.

The structs are declared, field by field, in machine_structs.py, row_structs.py, round_structs.py and graph_structs.py: the word
of a collection that says how many rows are alive is the one with the number `collection.live`, and a collection has
`collection.size` words.
"""

from __future__ import annotations

from dlog.engine.kernels import graph_structs as graphs
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
union, produced = machine.Union.place, machine.Produced.place
cycle, cycle_move = rounds.Cycle.place, rounds.CycleMove.place
bucket, candidate, change, collection = (
    rounds.Bucket.place,
    rows.Candidate.place,
    rows.Change.place,
    rounds.Collection.place,
)
entry, history, index, item = rows.Entry.place, rows.History.place, rounds.Index.place, rows.Item.place
items, log, pool, reduction = rows.List.place, rounds.Log.place, rows.Pool.place, rounds.Reduction.place
scope, seed, slab, fused = rounds.Scope.place, rounds.Seed.place, rows.Slab.place, rounds.Fused.place
sums, support, work, share = rows.Sums.place, rows.Support.place, rounds.Work.place, rounds.Share.place
mold, cores, tally, notes = rounds.Mold.place, graphs.Cores.place, rounds.Tally.place, rounds.Notes.place
desk = rounds.Desk.place

BLOCK = 512
"""Rows per block: eight registers of a block fit the first-level cache."""
REGISTER = BLOCK + 8
"""Words from one register to the next: first rows that lie whole pages apart would all share one set of the cache."""
NO_REGISTER = -1
"""What stands for the register of an operand that there is not. Those of constants have lower numbers."""
SCRATCH_BLOCKS, SCRATCH_TEXT = 12, 2**18
"""Blocks of words for an instruction's own use; bytes for the texts that it makes."""
LEVELS_MAX = 40
"""Levels of a path."""
IMPLIED = 0
"""Width of a collection's column that is not there: the base implies it (implied.py)."""

PAGE_CODES, PAGE_WORDS = 512, 8
"""Possible rows that a page of a set has, and its words."""

HEAP_SIZE = heap.size + 65 * machine.HeapBucket.place.size
"""Words of a heap with its buckets."""

SWEEP_MARKS = 1 << 15
"""Rows that a sweep remembers (sweep.py): no more than the second-level cache holds."""

SUM_MOST = 1 << 61
"""Sums that are compared with a bound are refused beyond this: two of them can be added."""

# ----------------------------------------------------------------------------------------------------------------- rounds
CANDIDATE_NARROW, CANDIDATE_WIDE = 24, 32
"""Bytes of a candidate whose value takes 4 bytes, and of one whose value takes 8."""
TAG_FREE, TAG_DELETED, TAG_ROW = 0, 1, 128
GROUP_NUMBER, GROUP_HAD, GROUP_HAS = 2**32 - 1, 2**32, 2**33
"""Parts of what a change of a result that is its groups has in the place of a row."""
NEVER = 2**31 - 1
"""Iteration of a row that is not there yet."""
ROUND = 2**32
"""A time is (round of the batch + 1) * ROUND + iteration; settled times are below ROUND."""
STOCK = 65
"""Words of a worker's stock of a pool's items: how many there are, and their numbers."""
DERIVED_ROW_WORDS = 3
"""Words of a row that a part of a path has derived."""
CLAIM_WORDS = DERIVED_ROW_WORDS
"""Words of a claim, which is in the same list: its record and its slot, and one that is not used."""
OTHER_WORDS = 3
"""Words of a contribution whose key has no place among those that are summed up: key, value, diff."""
RUN = 1 << 40
"""Added to row numbers that are positions in a slab without capacity."""

WIDEST_FIXED = 320
"""Bytes of the longest double with six digits behind the point (%f)."""
