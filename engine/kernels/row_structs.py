"""The structs of rows over rounds: lists of changes, histories, derivations, candidates, the rows of an index."""

from __future__ import annotations

from dlog.engine.kernels.core.structs import Array, Struct, i32, i64
from dlog.engine.kernels.machine_structs import Numbers, Words


class Items(Struct):
    """Items of so many words each, that grow (lists.py)."""

    data: Words
    count: i64
    capacity: i64
    words: i64  # of an item


class List(Items):
    """Items of which [lo, hi) is the part in use by a seed."""

    lo: i64
    hi: i64


class Pool(List):
    """Items that are freed and reused."""

    free: i64  # the last freed one plus one, linked through its first word


class Change(Struct):
    """A row of a log. A result that is its groups has one per round and group: the group's number, with GROUP_HAD and GROUP_HAS
    whether it had and has a value, the time, and in the place of the diff the value before."""

    row: i64
    time: i64
    diff: i64
    value: i64


ChangeArray = Array[Change]


class Changes(List):
    """A list of changes."""

    data: ChangeArray  # type: ignore[assignment]


class Item(Struct):
    """A row whose bit is set."""

    row: i64
    head: i64  # number of its first entry plus one
    slot: i64  # in the table


ItemArray = Array[Item]


class HistoryItems(List):
    """The items of a history."""

    data: ItemArray  # type: ignore[assignment]


class Entry(Struct):
    """A change of a row's presence."""

    time: i64
    diff: i64
    next: i64  # number of the row's next entry plus one


class Entries(Pool):
    """The entries of a history."""

    data: Array[Entry]  # type: ignore[assignment]


class History(Struct):
    """When rows are present (histories.py). One without its bit is present from `base` + `iters`[row] on, and ever after; one
    with it has an item."""

    bits: Words
    iters: Numbers  # iterations, NEVER of a row that is not there yet; of one with its bit the number of its item
    base: i64
    items: HistoryItems
    table: Numbers  # of a history without iterations: items by hash of the row
    table_count: i64
    entries: Entries


class Support(Struct):
    """Derivations of a row at an iteration (supports.py)."""

    at: i64  # iteration in the low half, the next entry plus one in the high half
    old: i64  # how many there were before the round that is running
    new: i64  # how many there are after it


class Supports(Pool):
    """The derivations of a collection's rows."""

    data: Array[Support]  # type: ignore[assignment]


class RowRun(Struct):
    """Rows that are side by side, and are to be so elsewhere; or a dead one that stays."""

    row: i64  # the first; the complement of a dead one's number
    count: i64


RowRuns = Array[RowRun]


class OtherRow(Struct):
    """A row that is not of a base, and is to come into it."""

    key: i64  # the place of its key among the offsets
    row: i64  # its number or, before that is known, its value


OtherRows = Array[OtherRow]


class StretchKey(Struct):
    """What a key of a stretch gets."""

    end: i32  # behind its places, from the first of the stretch on
    dead: i32  # those of them that stay dead
    incoming: i32  # those of them that rows from behind the base get


StretchKeys = Array[StretchKey]


class Stretch(Struct):
    """Some keys of a base, one after the other, and what becomes of their places (refilling.py)."""

    first: i64  # the keys [first, last), by their places among the offsets
    last: i64
    start: i64  # the first of their places
    places: i64
    staying: i64  # dead rows that are to stay
    incoming: i64  # rows that are to come
    keys: StretchKeys
    runs: RowRuns  # for the places, in their order
    run_count: i64
    others: OtherRows  # the rows that come, in their order
    spots: Words  # `places` for each index by another column: where it has the row for each place
    values: Words  # room for a word for each place
    placed: i64  # while runs are listed: places that have been given to rows,
    listed: i64  # others that have been listed,
    dead_to_keep: i64  # dead rows that have still to stay,
    next_dead: i64  # and the first dead row that has not been met; behind the places if there is none


class Candidate(Struct):
    """A candidate of a minimum or maximum (candidate.py), of CANDIDATE_NARROW or CANDIDATE_WIDE bytes."""

    count: i64  # its derivations (of a lattice: derivations.py)
    group: i32  # -1: it is gone
    next: i32  # the next one of its group, plus one
    row: i32  # the result's row last known to have its value, plus one
    value: i32
    wide_value: i64  # instead, where values take 8 bytes


class CandidatePlace(Struct):
    """A place of a reduction's table of candidates (candidates.py)."""

    row: i32  # the candidate plus one; 0: the place is free
    before: i32  # the one before it in its group's list, plus one


CandidatePlaces = Array[CandidatePlace]


class Slab(Struct):
    """The rows of a group of an index. One without capacity has the rows from number `start` on, and nothing in the pool:
    positions in it are row numbers plus RUN."""

    start: i32
    count: i32
    capacity: i32


Slabs = Array[Slab]


class TouchedGroup(Struct):
    """A group that the open round of a streamed reduction has touched (streamed.py)."""

    group: i64
    members: i64  # that it had before
    value: i64  # that it had before


class Sums(Struct):
    """What a group holds of a sum; counts have the first word, sums of integers the first two. Of a minimum or maximum the one
    word is the best candidate, plus one."""

    count: i64  # members
    value: i64
    compensation: i64  # what rounding lost
    odd: i64  # members that are not finite: inf and -inf, 32 bits each, a NaN in both
