"""The structs of relations at rest: columns, arrangements, runs of changes, symbols, and what a path's levels note.

Lists inside a struct are addresses of further words. All row numbers are 32-bit: a relation holds fewer than 2**31 rows.
"""

from __future__ import annotations

from dlog.engine.kernels.core.structs import Array, Inside, Pointer, Struct, i32, i64, u8, u32

Words = Array[i64]
Numbers = Array[i32]
"""Row numbers, or small counts."""
Bytes = Array[u8]
WordColumns = Array[Words]
"""Columns of words, by address."""


class Column(Struct):
    """A column of a relation: where its values are, and its place in the relation's dense code."""

    data: i64  # address of the values
    width: i64  # bytes of each: 4 or 8; IMPLIED if the base implies them (implied.py)
    low: i64  # least value of the dense code
    range: i64  # values of the dense code
    stride: i64  # what one more of the value adds to the dense code


class Relation(Struct):
    """Rows [0, rows), column by column, and the set or map that they are in."""

    arity: i64
    rows: i64
    capacity: i64  # rows that there is memory for
    lo: i64  # rows [lo, hi) are the changes of this iteration
    hi: i64
    columns: Array[Column]
    set: i64  # `SetKind`: what `slots` is
    slots: i64  # address of the set's bits, pages or row numbers
    slot_count: i64
    next_slots: i64  # GRADUAL, while it grows: address of the table that takes the place of `slots`,
    next_count: i64  # the slots of that one,
    next_untouched: i64  # one more than its pages of 2 MB that are still to be made: no rows before it is 0,
    entered: i64  # how many of the first rows it has,
    staying: i64  # and how many rows `slots` has: all others are in it
    keys: Words  # columns that the set or map is over
    key_count: i64
    merge: i64  # `Combine`: what a second value of a key does
    value: i64  # the column of a keyed relation's values
    heap: Heap  # of a lattice relation whose changes go best first
    queue: Numbers  # rows of a keyed relation that have changed
    queue_rows: i64
    queue_capacity: i64
    shares: Array[Pointer[Relation]]  # per worker, the relation that takes what it adds while several run
    limit: i64  # rows that end the loop; 0: none
    pool: Words  # PAGES: the pages
    pool_pages: i64
    pool_capacity: i64
    compared: Words  # FIRST: columns, and the `Combine` that says which of two values is less
    compared_count: i64
    firsts: Numbers  # by symbol: from 1 on, in which order those come that precede all others; 0 for these
    first_count: i64


class HeapBucket(Struct):
    """Entries of a radix heap that differ from the last key first in one bit."""

    entries: Words  # (key, row) pairs
    count: i64
    capacity: i64


class Heap(Struct):
    """Radix heap of a lattice relation: a bucket for each position of a bit, and one for the last key."""

    last: i64
    count: i64
    buckets: Inside[Array[HeapBucket]]  # 65


class KeptColumn(Struct):
    """A column of a sorted arrangement, permuted by key."""

    data: i64  # address of the values; 0 where nobody needed them
    width: i64


class Chain(Struct):
    """Head of a group's chain in a growing arrangement (chains.py)."""

    start: u32  # where its first chunk starts
    count: i32  # items
    next: u32  # where the next item goes
    room: i32  # left in the last chunk


Chains = Array[Chain]


class Arrangement(Struct):
    """A relation's rows by key: sorted, offsets and columns permuted by key; or growing, one chain of items per key."""

    kind: i64  # `ArrangementKind`
    relation: Relation
    key_count: i64
    keys: Words  # columns of the key
    map: i64  # `KeyMap`: how a key finds its group
    lows: Words  # DENSE: per key column its least value,
    ranges: Words  # how many values there are,
    strides: Words  # and what one more adds to the group
    groups: i64
    slots: Numbers  # HASH: groups plus one, by hash of their key
    slot_count: i64
    group_keys: WordColumns  # HASH: the keys of the groups, column by column
    group_capacity: i64
    offsets: Numbers  # SORTED: where each group begins
    columns: Array[KeptColumn]
    chains: Chains  # GROWING: one per group
    pool: Numbers  # its chunks of items
    pool_size: i64
    pool_capacity: i64
    item: i64  # the column whose values are the items; -1: items are row numbers
    arranged_rows: i64  # rows of the relation that have been arranged
    only: Words  # a bit per value of one column: rows of others are left out; 0: none are
    only_column: i64
    only_low: i64
    only_span: i64


class Level(Struct):
    """State of one level of a running path."""

    rows: i64  # of its input block
    row: i64  # the current one
    at: i64  # positions [at, end) are left in it
    end: i64
    extra: i64
    chunk: i64  # number of the chunk these positions are in
    remaining: i64  # items that follow in later chunks


class Proposer(Struct):
    """What an `Extend` of one worker knows of one of its proposers."""

    last: i64  # the last row's group
    group: i64  # the group whose values are marked, or -1
    cursor: i64  # of its search
    bits: i64  # where its bits are: words from the marks' start
    rows: i64  # how many rows it has for this row
    cost: i64  # what validating one candidate costs


class Marks(Struct):
    """Of one `Extend` of one worker."""

    proposer: i64  # the proposer whose values are candidates
    proposers: Inside[Array[Proposer]]


class Account(Struct):
    """What all workers share."""

    bytes: i64  # allocated
    symbols: Symbols  # null: none
    small: i64  # of a commit of few changes, which is to touch few new pages (pages.py): rows that may come yet; else 0
    waiting: i64  # how many stretches of pages are to be made ahead:
    places: Words  # of each where it begins and how many there are
    making: i64  # whether one of them is being made
    maker: i64  # address of what makes them (page_maker.py)
    idle: i64  # workers that look for something to do:
    wanted: Words  # stretches of pages that they may make meanwhile, as `places`,
    wanted_count: i64
    lock: i64  # of these: whoever makes it 1 has it


class Homes(Struct):
    """Homes of an open table (homes.py)."""

    count: i64
    old: i64  # while it grows: how many hashes below the edge have
    edge: i64  # while it grows: hashes from here on have moved; else 0
    room: i64  # the places of the table, some of which are behind all homes
    sure: i64  # so many more entries leave the last place free; there may be room for more


class Symbols(Struct):
    """Symbol table (symbols.py)."""

    heap: i64  # address of the strings' bytes
    heap_size: i64
    offsets: Words  # where strings are, each followed by its size
    offset_count: i64
    slots: Words  # ids by hash
    slot_homes: Inside[Homes]
    untouched: i64  # huge pages of a table that grows, up to the last one, that are still to be made
    maker: i64  # address of what makes them (page_maker.py)
    heap_ahead: i64  # the page of the strings' bytes that was to be made last
    offsets_ahead: i64  # and that of `offsets`
    count: i64  # strings
    used: i64  # bytes
    lock: i64


class Runs(Struct):
    """Runs of a relation's changes (runs.py)."""

    relation: Relation
    column: i64  # that they are sorted by
    ready: i64  # whether they are, in this iteration
    wait: i64  # iterations until they are looked at again
    least: i64  # fewest changes that are


class Union(Struct):
    """Union-find over the values of pairs (static/unions.py)."""

    pairs: Relation
    classes: Relation  # values and the names of their classes
    united_pairs: i64  # pairs that have been united
    forgets: i64  # whether pairs that have been are forgotten
    count: i64  # values
    capacity: i64
    values: Words
    slots: Numbers  # numbers of values plus one, by hash
    slot_count: i64
    parents: Numbers
    following: Numbers  # the next member of the class, in a circle
    sizes: Numbers  # members of the class, of a root
    merged: Numbers  # roots that are no more


class Produced(Struct):
    """Rows that a table function has made for a block of arguments, column by column."""

    offsets: Words  # where the rows for each row of the block begin, and where the last ones end
    values: Words
    stride: i64  # words from one column to the next


class Verdicts(Struct):
    """What is known of symbols and a pattern: a `Verdict` each."""

    bytes: Array[u8]
    count: i64
