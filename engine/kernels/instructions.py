"""The instructions of the machine: what their operands are, in the order in which lowering writes them.

An instruction is words: its operation, how many words it has, its operands. Operands that are registers are their numbers. What
follows the named ones are lists, of which these say how long they are.
"""

from __future__ import annotations

from dlog.engine.kernels.core.structs import Array, Inside, InsideOf, Struct, i64
from dlog.engine.kernels.machine_structs import Arrangement, Produced, Relation, Verdicts, Words
from dlog.engine.kernels.round_structs import Collection, Index, Reduction
from dlog.engine.kernels.row_structs import Changes


class RegisterMove(Struct):
    """A register that is carried over to another."""

    source: i64
    target: i64


class Bind(Struct):
    """A column that goes to a register."""

    column: i64
    target: i64


class Form(Struct):
    """An argument of a function on texts."""

    form: i64  # `TextForm`
    register: i64


class SortedProposer(Struct):
    """Of an `Extend`: who proposes values."""

    arrangement: Arrangement
    group: i64  # register
    column: i64


class ViewedProposer(Struct):
    """Of a `Propose`: who proposes values."""

    index: Index
    group: i64  # register
    column: i64
    neu: i64  # whether at `neu`; -1: whoever is in the own scope is looked up later


Moves = Array[RegisterMove]
Binds = Array[Bind]
Forms = Array[Form]


class Instruction(Struct):
    """What all begin with."""

    operation: i64  # `Operation`
    length: i64  # words

    @classmethod
    def operands(cls, **named: int) -> list[int]:
        """The words of the operands, as named; lists follow."""
        wanted = [name for name, field in cls.layout.items() if not isinstance(field.declared, InsideOf)][2:]
        if set(wanted) != set(named):
            raise TypeError(f"{cls.__name__} has the operands {', '.join(wanted)}, not {', '.join(named)}")
        return [named[name] for name in wanted]


# ----------------------------------------------------------------------------------------------------------- generators


class Scan(Instruction):
    """Rows of a relation."""

    relation: Relation
    changes: i64  # whether only its changes
    bound: i64  # how many binds
    binds: Inside[Binds]


class ScanQueue(Instruction):
    """Changes of a relation in the order of its heap."""

    relation: Relation
    bound: i64
    binds: Inside[Binds]


class ScanRuns(Instruction):
    """Changes of a relation, in runs that share all columns but one (runs.py)."""

    relation: Relation
    starts: i64  # register: where a run starts
    counts: i64  # register: how long it is
    bound: i64
    binds: Inside[Binds]


class Join(Instruction):
    """Rows of groups of an arrangement."""

    arrangement: Arrangement
    group: i64  # register
    carried: i64  # how many registers are carried over
    bound: i64  # how many columns are bound: `Bind`s behind the moves
    moves: Inside[Moves]


class Extend(Instruction):
    """Values of a variable that all proposers have."""

    target: i64  # register
    marks: i64  # where the marks are: words from the worker's first
    low: i64  # least value that is marked
    span: i64  # how many values are; 0: none are
    proposers: i64
    carried: i64  # how many registers are carried over: moves behind the proposers
    listed: Inside[Array[SortedProposer]]


class Range(Instruction):
    """Values of ranges."""

    form: i64  # `RangeForm`
    first: i64  # registers
    end: i64
    step: i64  # or NO_REGISTER
    target: i64
    carried: i64
    moves: Inside[Moves]


class CalledRows(Instruction):
    """Rows that a table function has made."""

    produced: Produced
    carried: i64
    bound: i64  # `Bind`s behind the moves
    moves: Inside[Moves]


class Sweep(Instruction):
    """A join and its sink in one loop (sweep.py): matches are groups of an arrangement or, with SWEEP_RUNS, runs of changes.
    The twin is the arrangement's relation where its bitmap's rows lie as the sink's: a long group is then taken from it, 64
    matches at a time."""

    source: i64  # address of the arrangement, or of the relation that changed
    start: i64  # register: the group, or where the run starts
    column: i64  # of the source, that goes to the sink
    relation: Relation  # the sink's
    swept: i64  # the sink's column that gets it
    bases: i64  # register: the sink's dense code with the least value in that column
    last: i64  # address of the twin whose bitmap has the groups, 0: none; or register: how long the run is
    mark_offset: i64  # where among the marks rows are remembered; 0: they are not
    values: Inside[Words]  # registers of the sink's columns


class ScanChanges(Instruction):
    """Changes of a collection, over rounds."""

    collection: Collection
    changes: Changes
    negated: i64  # whether diffs are
    time: i64  # registers
    iteration: i64  # or -1
    diff: i64
    bound: i64
    binds: Inside[Binds]


class RowsOf(Instruction):
    """Rows of groups of an index that are present at a view."""

    index: Index
    group: i64  # register
    neu: i64  # whether at `neu`, not `alt`
    time: i64  # register
    inner: i64  # whether the collection is of the own scope: its rows have iterations
    iteration: i64  # registers before,
    diff: i64
    latest: i64  # and behind: the later of two iterations,
    product: i64  # and the product of two diffs
    carried: i64
    bound: i64  # `Bind`s behind the moves
    moves: Inside[Moves]


class EntriesOf(Instruction):
    """Entries of rows of the own scope that are before a view."""

    collection: Collection
    row: i64  # register
    neu: i64
    time: i64
    iteration: i64
    diff: i64
    latest: i64
    product: i64
    carried: i64
    moves: Inside[Moves]


class Propose(Instruction):
    """Values of a variable that the smallest of some groups has, at a view."""

    target: i64  # register of the value
    choice: i64  # register of the proposer's number
    time: i64
    proposers: i64
    carried: i64  # moves behind the proposers
    listed: Inside[Array[ViewedProposer]]


class Once(Instruction):
    """The one row of a path without a seed, over rounds."""

    time: i64
    iteration: i64  # or -1
    diff: i64


# ---------------------------------------------------------------------------------------------------------------- steps


class FindGroup(Instruction):
    """Groups of an arrangement by key."""

    arrangement: Arrangement
    group: i64  # register
    keys: Inside[Words]


class FindIndexGroup(Instruction):
    """Groups of an index by key."""

    index: Index
    group: i64  # register
    keys: Inside[Words]


class HasGroup(Instruction):
    """Keeps rows whose group has rows, or has none. The group's register is behind those that live."""

    arrangement: Arrangement
    is_positive: i64  # whether it is to have some
    live: i64  # registers that somebody still needs
    registers: Inside[Words]


class Contains(Instruction):
    """Keeps rows whose key is in a relation, or is not. The key's registers are behind those that live."""

    relation: Relation
    is_positive: i64
    live: i64
    registers: Inside[Words]


class Find(Instruction):
    """Rows of a keyed relation."""

    relation: Relation
    row: i64  # register
    keys: Inside[Words]


class Fetch(Instruction):
    """A column of rows that were found; others are dropped, or get a default."""

    relation: Relation
    column: i64
    row: i64  # register
    target: i64  # register
    has_default: i64
    default: i64
    live: i64
    registers: Inside[Words]


class Compare(Instruction):
    """Keeps rows for which a comparison holds."""

    comparison: i64  # `Comparison`
    left: i64
    right: i64
    live: i64
    registers: Inside[Words]


class Compute(Instruction):
    """A function of two numbers."""

    function: i64  # `Arithmetic`
    left: i64
    right: i64
    target: i64


class Copy(Instruction):
    """A register again."""

    source: i64
    target: i64


class Unpack(Instruction):
    """Fields of records. The registers that live are behind the binds."""

    relation: Relation
    record: i64  # register
    bound: i64
    live: i64
    binds: Inside[Binds]


class Pack(Instruction):
    """Records of fields."""

    relation: Relation
    target: i64
    values: Inside[Words]


class External(Instruction):
    """A function on texts, which Python computes where kernels cannot."""

    number: i64  # among the scope's
    native: i64  # `Text`
    target: i64
    verdicts: Verdicts
    count: i64
    forms: Inside[Forms]


class Mask(Instruction):
    """Keeps rows where a register is not 0."""

    mask: i64
    live: i64
    registers: Inside[Words]


class HasRow(Instruction):
    """Rows of the own scope by all their values, whose registers are behind those that live."""

    collection: Collection
    row: i64
    live: i64
    registers: Inside[Words]


class Present(Instruction):
    """Keeps rows for which a collection has a row at a view, or has none. Its values' registers are behind those that live."""

    collection: Collection
    is_positive: i64
    neu: i64
    time: i64
    proposer: i64  # who has it anyway; -1: nobody
    choice: i64  # register: who proposed
    live: i64
    registers: Inside[Words]


class ValueOf(Instruction):
    """A column of the one row of a group at a view; rows without are dropped, or get a default."""

    index: Index
    group: i64
    neu: i64
    time: i64
    column: i64
    target: i64
    has_default: i64
    default: i64
    live: i64
    registers: Inside[Words]


class HasAny(Instruction):
    """Keeps rows whose group in an index has rows."""

    index: Index
    group: i64
    live: i64
    registers: Inside[Words]


class Delay(Instruction):
    """Lets small values enter a lattice of least ones first."""

    value: i64
    iteration: i64
    ordered: i64
    advance: i64


# ---------------------------------------------------------------------------------------------------------------- sinks


class Sink(Instruction):
    """Rows for a relation: INSERT, APPEND or MERGE; the registers of a merge's key are behind those of the values."""

    relation: Relation
    values: Inside[Words]


class Derive(Instruction):
    """Derivations of rows, over rounds."""

    collection: Collection
    time: i64
    iteration: i64  # or -1
    diff: i64
    advance: i64  # iterations later that rows enter
    values: Inside[Words]


class Reduce(Instruction):
    """Contributions to a reduction, over rounds."""

    reduction: Reduction
    time: i64
    iteration: i64  # or -1
    diff: i64
    advance: i64
    value: i64
    keys: Inside[Words]
