"""The structs of traces: layers of sorted updates, how unsorted ones are packed, and a merge of layers.

A layer's *fields* are the columns of its rows, the coordinates of its times, and the diff. Rows are ordered by (columns, time),
each pair once, no diff is zero; values compare as signed 64-bit words.
"""

from __future__ import annotations

from dlog.engine.kernels.core.structs import Array, Inside, Pointer, Struct, i64
from dlog.engine.kernels.machine_structs import Numbers, Words


class Field(Struct):
    """A field of a layer."""

    data: i64  # address of the values; where `width` is 0, the one value of all rows
    width: i64  # bytes of each: 4 or 8; 0: all rows have the same value
    bound: i64  # of a coordinate: at or above all its values; of the diff: the sum of all |diff|, if it fits; of a column: 0


Fields = Array[Field]


class LayerHeader(Struct):
    """What a layer is. Manifests of states have these words, with places in a file for addresses: to change the struct is to
    change their format."""

    rows: i64
    arity: i64
    depth: i64  # coordinates of a time
    index: Numbers  # by value of the first column, the first row with it or a greater one; null: none; 1: it is asked for
    low: i64  # the first value in the index,
    range: i64  # and how many values it has: there is one entry more
    fields: Inside[Fields]  # columns, coordinates, diff


Layers = Array[Pointer[LayerHeader]]


# ------------------------------------------------------------------------------------------------------------- building


class PackedField(Struct):
    """A field of updates that are being sorted: its range, and where its bits lie in their packed words."""

    low: i64
    high: i64
    word: i64  # which of a row's words has it,
    shift: i64  # from which bit on,
    bits: i64  # and in how many


PackedFields = Array[PackedField]


class Varied(Struct):
    """A column or coordinate that is not the same in all updates; if all are dense, a word tells them all."""

    field: i64
    low: i64  # its least value
    stride: i64  # what one more of it adds to the word


VariedFields = Array[Varied]


class EqualSums(Struct):
    """Sums of updates that are equal. What it points at lies behind it."""

    groups: i64
    firsts: Words  # of each group its first update,
    places: Words  # of each update its group,
    sums: Words  # and of each group the sum of each component
    slots: Numbers  # twice as many as updates, and one
    varied: VariedFields


# -------------------------------------------------------------------------------------------------------------- merging


class MergeInput(Struct):
    """A layer that is merged, and how far."""

    layer: LayerHeader
    row: i64  # the next one
    value: i64  # its first column
    end: i64  # behind the last update of this row
    rows: i64
    single: i64  # no row comes twice
    settles: i64  # all its updates settle; no row comes twice then


class WaitingUpdate(Struct):
    """An update that is to be written: where its row is. It settles."""

    input: i64  # number of the input
    row: i64


class OpenUpdate(WaitingUpdate):
    """One that stays open."""

    diff: i64
    time: Inside[Words]


class MergeOutput(Struct):
    """A layer that comes out of a merge."""

    layer: LayerHeader
    waiting: i64  # address of the `WaitingUpdate`s or `OpenUpdate`s that are to be written together
    bytes: i64  # that its fields and its index need
    filled: i64  # entries of its index that are there


class Stored(Struct):
    """Where an input has the column that is being written."""

    data: i64  # as in `Field`
    width: i64


StoredColumns = Array[Stored]


class MergeHeader(Struct):
    """A merge. What it points at lies behind its inputs (engine/trace/merge.py), but for the outputs' fields."""

    input_count: i64
    elements: i64  # of the frontier
    split: i64  # whether what settles is told apart
    block: i64  # updates that are written together
    times: Words  # history of a row: `depth` words for each update,
    diffs: Words  # and its diff
    room: i64  # updates of a row that there is memory for
    needed: i64  # and, after MERGE_NEEDS_ROOM, how many it has
    settled: Inside[MergeOutput]
    open: Inside[MergeOutput]
    frontier: Words  # `depth` words for each element
    base: Words  # the least time, advanced
    columns: StoredColumns  # one per input
    diff_low: i64  # least and greatest diff in the open output,
    diff_high: i64
    weight: i64  # and the sum of all |diff| there
    inputs: Inside[Array[MergeInput]]


# ----------------------------------------------------------------------------------------------------------------- sums


class SumTable(Struct):
    """Sums of diffs by key, in *entries*: the words of the key, the sum of each component, and the group that is being added
    up, numbered from 1 on, 0: none."""

    keys: i64  # words of a key
    components: i64
    capacity: i64  # entries that there is memory for
    entries: i64
    zeros: i64  # and how many of them have no sum but 0
    slot_count: i64
    slots: Numbers  # by the hash of a key: the number of its entry plus one, 0: none
    words: Words  # of the entries, one after the other
    row: i64  # of the updates that are being added, the first one that has not been
    groups: i64  # groups of these so far


# ------------------------------------------------------------------------------------------------------------ past rows


class NetChanges(Struct):
    """What updates come to that are undone in a table, or done: *entries*, each the words of a row and the sum of its diffs."""

    layers: Layers  # that have the updates
    arity: i64
    sign: i64  # of the diffs of the rows that go; with the others they come
    once: i64  # whether each row is in one update at most
    slots: Numbers  # by the hash of a row, those that come `once` left out: the number of its entry plus one, 0: none
    slot_count: i64  # more than entries
    entries: Words
    scratch: Words  # SCRATCH words
    filter: Words  # bits: set where rows that go have a value there,
    mask: i64  # one more of them than this, a power of two from 2^6 on
    entry_count: i64
    column: i64  # whose values the filter has
    gone: i64  # rows that go,
    came: i64  # and that come
    wide: i64  # a bit for each column, from the lowest on, the last for all others: whether values that come need 8 bytes
