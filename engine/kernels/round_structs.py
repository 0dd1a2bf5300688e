"""The structs of rounds: collections, indexes, reductions and the work of a batch (rounds.py); paths, whose code runs over
these or over relations at rest, and the control block of a worker that does."""

from __future__ import annotations

from dlog.engine.kernels.core.structs import Array, Inside, Pointer, Struct, i32, i64
from dlog.engine.kernels.machine_structs import (
    Account,
    Arrangement,
    Bytes,
    Homes,
    Level,
    Numbers,
    Relation,
    Runs,
    Union,
    WordColumns,
    Words,
)
from dlog.engine.kernels.row_structs import CandidatePlaces, Changes, History, Items, List, Slabs, Supports


class Bucket(Items):
    """Rows of a collection to be looked at, at an iteration."""

    next: Collection  # of the scope, with rows at the same iteration
    unused: i64


Buckets = Array[Bucket]


class Log(Changes):
    """Changes that seed paths."""

    unused: i64
    readers: Array[Reader]
    reader_words: i64  # two for each
    seed: Seed  # of a log by iteration: the seed of its own scope's paths


class Reader(Struct):
    """Who has a log's changes to do."""

    task: i64  # plus one; 0: a script has (see shards)
    seed: Seed  # by which a task that is a recursive scope knows the log


# ---------------------------------------------------------------------------------------------------------- collections


class Base(Struct):
    """The rows of a collection that came in one go, sorted by a column (base.py)."""

    rows: i64
    key: i64  # the column that they are sorted by,
    low: i64  # its least value,
    keys: i64  # how many values from there on,
    offsets: Numbers  # and where each one's rows begin
    dead: i64  # how many of the rows are dead
    removed: i64  # rows of the collection that have gone since (renewal.py)
    refilled: i64  # for how many of these places have been given to other rows (refilling.py),
    next: i64  # and the place of the key among the offsets that is next for that
    samples: Numbers  # where the key column is implied (implied.py): the keys of some rows,
    tail: Numbers  # and those of the rows that came later


class DirectTable(Struct):
    """Rows by the value of a collection's one column (direct.py)."""

    rows: Numbers  # plus one; null: there is none
    low: i64  # the first one's value
    count: i64


class GroupLink(Struct):
    """What a group of a reduction with candidates leads to (group_links.py)."""

    candidate: i32  # the first one, plus one; negative where the list has a table
    result: i32  # its row, plus one


GroupLinks = Array[GroupLink]


class Derivation(Struct):
    """What a collection that rules derive keeps of that: the rows that hold are those with derivations."""

    derived: Changes  # what paths derived
    counts: Words  # derivations per row,
    touched_bits: Words  # and a bit for each whose changes of a round are being summed up; none is set in between
    support: Numbers  # per row the first of its `entries`
    entries: Supports
    buckets: Buckets  # per iteration the derived rows
    bucket_count: i64
    flush: i64  # the task that makes changes of what paths derive here, plus one; 0: its scope does
    expected: i64  # while a path runs, or a scope grows: rows that it derives from, as many may come; 0: nothing is known
    bound: i64  # rows hold where derivations exceed the value of this column, plus one; 0: where there are any


class Grouping(Struct):
    """What a reduction keeps for each of its groups, or for each candidate of a group."""

    heads: GroupLinks  # of groups with candidates
    current: Numbers  # of groups without: the row of the result, plus one
    sums: Words  # of groups: `sum_words` each
    sum_words: i64
    records: i64  # of candidates: address of `record_bytes` each (`Candidate`)
    record_bytes: i64


class Collection(Relation):
    """A relation maintained over rounds. Rows are reused, so `rows` is the number of rows ever made."""

    # Rows, and how they are found.
    alive: Words  # a bit per row
    free: Numbers  # row numbers that may be used again
    free_count: i64
    free_capacity: i64
    live: i64  # rows alive
    old: i64  # rows alive before this batch
    unkeyed: i64  # nobody looks for a row by its values: there are no slots
    row_slots: Numbers  # rows by hash (slots.py)
    tags: Bytes  # TAG_*: a byte for each slot
    slot_hashes: Numbers  # of wide rows, for each slot the half of the row's hash that its home comes from; else null
    slot_homes: Inside[Homes]
    used_slots: i64  # slots that are not free, those of removed rows included
    direct: Inside[DirectTable]  # while it is there, there are no slots
    base: Inside[Base]
    pairable: i64  # the rows may be pairs (pairs.py)
    pairs: Words  # the table that they are then in
    pair_homes: Inside[Homes]
    indexes: Array[Pointer[Index]]
    index_count: i64
    new_rows: List  # rows made in this batch
    indexed: i64  # how many of them are in the indexes
    maybe_dead: List  # rows that may be nowhere any more

    # When they are present, and what changed.
    outer: History  # as other scopes see it; null: none
    inner: History  # as its own recursive scope sees it; null: none
    no_readers: i64  # no path looks rows up in it: a row's bit in `outer` says that it is absent, nothing more is noted
    read_between_rounds: i64  # its scope reads it between rounds only: what a round makes of a row needs no entries in `inner`
    log: Log  # its changes by round
    inner_log: Log  # its changes by iteration
    packed: i64  # the log has the words of pairs in the place of row numbers
    fused_log: List  # changes of fused batches that are over (fused_batches.py), column after column, `capacity` words each
    fresh: i64  # it was empty before this batch of one round
    passing: i64  # nobody asks for its rows when the batch that brought them is over
    in_batch: i64  # the batch has touched it (activation.py)
    active: i64  # so has the round of its own scope

    # Of rules and reductions.
    scope: Scope
    stamps: Numbers  # of recursive rules and groups: per row when it was last looked at
    touched: List  # rows touched in this round
    derivation: Inside[Derivation]  # of a collection that rules derive
    reduction: Reduction  # whose result or candidates it is
    grouped: Reduction  # whose groups are its rows (grouped.py)
    grouping: Inside[Grouping]  # of a collection of groups, or of candidates


Collections = Array[Pointer[Collection]]


class Mold(Struct):
    """What the words of new collections of a kind are, with those of their parts (molds.py). `pointers` are the places of words
    that point to parts, relative to the first; `arrays` the places of those that point to arrays of so many bytes (`sizes`)."""

    words: Words
    word_count: i64
    pointers: Words
    pointer_count: i64
    arrays: Words
    sizes: Words
    array_count: i64


class DenseGroups(Struct):
    """The slabs of an index by hash that is to become a dense one (densifying.py)."""

    slabs: Slabs  # null: it is not
    low: i64
    groups: i64
    copied: i64  # the groups below this number are there


class Index(Struct):
    """An arrangement of a collection by key columns: slabs of row numbers per group."""

    collection: Collection
    key_count: i64
    keys: Words  # columns
    dense: i64  # group = key - low
    low: i64
    groups: i64
    group_capacity: i64
    slabs: Slabs
    slots: Words  # groups by hash (keyed.py)
    slot_homes: Inside[Homes]
    used: i64  # groups that have rows
    free_group: i64  # the last freed one plus one
    least: i64  # of an index by hash of one column, while its table does not grow: no key is less
    most: i64  # or more
    next_dense: Inside[DenseGroups]
    pool: Numbers
    pool_size: i64
    pool_capacity: i64
    free: Words  # by size, the first free slab
    allowed_values: i64  # the column, plus one, whose values the pool may hold in the place of row numbers
    values: i64  # the column, plus one, whose values it holds; 0: row numbers
    leaving_rows: Changes  # while a batch settles: rows that are to leave long groups (removals.py)


# ----------------------------------------------------------------------------------------------------------- reductions


class Reduction(Struct):
    """An aggregate by group."""

    op: i64  # `Combine`
    groups: Collection
    candidates: Collection  # of minima and maxima, else null
    result: Collection
    derived: Changes  # contributions, by round
    missing: Log
    keys: i64
    value: i64
    scope: Scope
    streamed: i64  # contributions come from one path, by round, and change the groups at once (streamed.py)
    open: i64  # the round whose last contribution may not have come yet; 0: none
    work: Work
    table: CandidatePlaces  # the candidates of groups that have many (candidates.py)
    table_count: i64
    table_used: i64


# ---------------------------------------------------------------------------------------------------------------- work


class Seed(Struct):
    """What starts paths of a recursive scope."""

    list: Log  # null: none, a path's one row
    paths: Array[Pointer[Path]]
    path_count: i64
    scope: Scope
    own: i64  # whether the list is the scope's own, by iteration


class Task(Struct):
    """A step of a batch."""

    kind: i64  # `TaskKind`
    what: i64  # an address


class Work(Struct):
    """Work of a batch: tasks in topological order, of which those run that are marked."""

    tasks: Array[Task]
    count: i64
    at: i64  # the task that runs; -1: the inputs' readers are not marked yet
    has_begun: i64  # whether it has begun
    over: i64  # all have run
    first: i64  # whether the batch is the first
    rounds: i64
    tick: i64
    limit: i64  # of iterations
    marks: Words  # a bit per task
    touched: Array[Pointer[Collection]]  # that the batch has changed or, after it, whose logs are still there
    touched_count: i64
    fused_collections: Array[Pointer[Collection]]  # with changes of fused batches in `fused_log`
    fused_count: i64
    spare: Changes
    counts: Words
    ran: i64  # tasks that have run so far
    seeded: i64  # paths that had changes to go through
    processed: i64  # collections that had rows to look at in some iteration


class Fused(Struct):
    """Changes of an input that go through the dataflow in batches (fused_batches.py)."""

    input: Collection
    columns: WordColumns  # of values, of diffs and of rounds
    batch: WordColumns  # where those of a batch begin
    count: i64  # changes
    at: i64  # those before have been given to a batch
    rounds: i64  # of a batch
    first: i64  # the first round of the last batch
    is_open: i64  # the last batch is not over yet
    repeated: i64  # a row may have changed twice in one round


class Scope(Struct):
    """Recursive scope over rounds."""

    imports: Array[Pointer[Seed]]  # of paths that enter
    import_count: i64
    unit: Seed  # the one without changes; null: none
    changed: Array[Pointer[Seed]]  # those with changes in this batch
    changed_count: i64
    seeds: Array[Pointer[Seed]]  # those whose paths run in this phase
    seed_count: i64
    seed: i64  # how far: the number of the seed,
    path: i64  # and of its path
    touched: Array[Pointer[Collection]]  # that this round has changed (of lattices: their candidates)
    touched_count: i64
    tail: i64  # how many collections the batch had touched before
    phase: i64  # `ScopePhase`
    round: i64  # its time
    iteration: i64  # from which on the next one is sought
    bits: Words  # iterations with something to do
    bit_words: i64
    heads: Collections  # per iteration the first with rows to look at; `Bucket.next` goes on
    head_count: i64
    last: i64  # iteration with something to do
    tick: i64
    round_tick: i64
    own: Array[Pointer[Collection]]  # its relations
    own_count: i64
    growing: i64  # in this batch rows only come, to relations that were empty (`only_grows`)
    delayed: i64  # rows enter at late iterations: not those but the iterations that did something count
    productive_iterations: i64  # how many did


# ---------------------------------------------------------------------------------------------------------------- paths


class Path(Struct):
    """A path: code for each of its levels, and counters."""

    levels: i64
    code: Words  # address of each level's code
    seed: Relation
    changes: i64
    derived: i64  # matches
    added: i64  # those that were new
    cycles: i64
    list: Changes  # that it goes through, over rounds
    gates: Array[Pointer[Collection]]  # collections without which it makes nothing
    gate_count: i64
    target: Collection  # of which it makes rows, over rounds
    divisible: i64  # `Divisible`: whether several workers may each go through a part of its changes (sharing)
    monotone: i64  # over rounds: rows that come never take derivations away
    few: i64  # `Few`: whether few changes go through it row by row (small_deltas.py)
    sought: i64  # the seed's column by which it looks rows up, or -1
    group: i64  # the seed's column by which it chooses the group of `reduction`, or -1
    key: i64  # the column of the rows looked up by which it does, or -1
    reduction: Reduction
    runs: Runs
    run_code: Words  # its code for changes in runs, where `runs` is ready
    chunk: i64  # how many changes a step has in which workers divide them, as it turned out; 0: they have not


class Loop(Struct):
    """Loop of a scope: lists of addresses."""

    alt: Array[Pointer[Path]]
    alt_count: i64
    neu: Array[Pointer[Path]]
    neu_count: i64
    relations: Array[Pointer[Relation]]
    relation_count: i64
    arrangements: Array[Pointer[Arrangement]]
    arrangement_count: i64
    runs: Array[Pointer[Runs]]
    run_count: i64
    unions: Array[Pointer[Union]]
    union_count: i64


class CycleMove(Struct):
    """One move of a cycle."""

    kind: i64  # `Move`
    relation: Relation
    paths: Array[Pointer[Path]]
    path_count: i64
    arrangements: Array[Pointer[Arrangement]]  # growing ones of the relation
    arrangement_count: i64
    further: i64  # moves that are left out


class Cycle(Struct):
    """Moves that are made one after the other, again and again if the first of them is BEGIN, else once."""

    moves: Array[CycleMove]
    move_count: i64
    at: i64  # the move that is made, or comes next
    deltas: Array[Pointer[Relation]]  # what an iteration goes on from
    grown: Array[Pointer[Relation]]  # the relations that these are the last rows of
    relation_count: i64


class Control(Struct):
    """Control block of one worker."""

    registers: i64  # address of the registers, REGISTER words each
    scratch: Words  # SCRATCH_BLOCKS blocks for an instruction's own use, then SCRATCH_TEXT bytes for texts
    levels: Array[Level]
    level: i64  # that runs
    pc: i64  # address of the instruction that runs; 0: the level's generator
    rows: i64  # of the block
    work: i64  # done since the run began
    budget: i64  # of work
    cursor: Words  # what workers take their shares of a path from
    account: Account
    limit: i64  # of bytes
    error: i64  # `Error`
    error_path: i64  # address of the path that failed
    shared: i64  # whether several workers run
    phase: i64
    path: i64  # its number in the phase
    iteration: i64
    bulk: i64  # rows from which on a path is for several workers
    running: i64  # whether a path does
    changes: i64
    marks: i64  # address of the marks of all `Extend`s
    number: i64  # of the worker
    run_path: Path
    batch: Work
    share: Share  # what several workers do together (sharing.py); null: one does everything
    tally: Tally  # of a worker that runs paths over rounds
    first: i64  # of the changes that the path over rounds that runs goes through,
    rows_before: i64  # and the rows of its target when it began


class Tally(Struct):
    """What a worker sums up of a path's contributions, by the key of their groups (tallies.py)."""

    reduction: Reduction  # null: nothing
    sums: Words  # the words of each key's group, from the key `low` on, `words` for each
    low: i64
    places: i64
    words: i64
    most: i64  # places at most
    others: List  # contributions whose keys have no place, OTHER_WORDS each
    seen: i64  # contributions


class Notes(Struct):
    """What a part of a step has noted of its rows (parts.py)."""

    items: List  # for each row of which there is something two words: the row and more, flags and a diff
    bits: List  # a bit for each place of the step's rows: whether there is
    logged: i64  # how many are of changes that are logged,
    listed: i64  # and how many of rows that are listed
    iteration: i64  # at which its rows are to be looked at, if it is one: `parts.NOTHING` for none, `parts.SEVERAL`
    stretch: i64  # of places, with which the part goes on,
    marks: Words  # and for each how many notes, logged and listed ones are of places before it, MARK words
    left: List  # notes of a stretch that are not for the worker that takes it


class Desk(Struct):
    """Where one thread puts parts of steps, one after the other, that another one does (sharing/desks.py)."""

    put: i64  # how many parts have been put there; plus GONE while nobody looks
    taken: i64  # and taken,
    done: i64  # and done
    share: Share  # the step of the last one,
    part: i64  # its number,
    parts: i64  # how many there are,
    well: i64  # and whether it was done without mistakes
    unseen: i64  # whether nobody has looked for it, so that a thread must be sent there
    closed: i64  # no more parts come


class Share(Struct):
    """A step whose rows are divided among workers (sharing)."""

    kind: i64  # `Shared`
    control: Control  # of whose it is,
    desk: Desk  # and where parts of others' steps come for that worker
    least: i64  # rows from which on a step is shared
    gathers: i64  # `Gathers`: what the sink of the path that runs does with rows
    status: i64  # that a path has returned
    path: Path  # that runs, or ran last: mistakes are told at its rule
    collection: Collection
    iteration: i64
    time: i64
    next: i64  # of a path that is shared: the change with which to go on,
    end: i64  # the one with which this step ends,
    last: i64  # the one after the last; 0: none is shared
    tried: i64  # where one goes through a few of its changes at first: the one after the last; 0: it does not
    chunk: i64  # and how many changes a step has
    parts: Array[Pointer[Share]]  # what workers use who do a part
    part_count: i64
    put: i64  # whether the parts of the step at hand are on their desks
    work: i64  # of a part: how much it has made; of a trial: how much had been before
    tally: Tally  # of whoever shares a path,
    tallies: Array[Pointer[Tally]]  # and those of its parts, as many as there are workers
    is_claimed: i64  # whether what parts of a path find are records, whose rows workers claim (claims.py)
    noted: i64  # how many there have been,
    entered: i64  # and how many of their rows were new
    sampled: i64  # changes of the path that have been tried, from all over; 0: none
    derived: i64  # and how many records they led to
    derived_rows: List  # of a part: derivations outside of recursion, DERIVED_ROW_WORDS each: row, diff, time
    values: List  # and where there are those of rows that are not there yet, with the values; or records, and claims
    left: List  # its records that have found no place, and who has noted them
    firsts: Words  # and for each part how many of its records have claimed a row here
    items: List  # derivations: row and iteration in one word, the diff; rows that are divided
    made: i64  # the first row for them of which nothing is cleared but its values and bit, yet,
    made_end: i64  # and the one behind the last
    notes: Array[Pointer[Notes]]  # of parts, as many as there are workers; whoever does one may do something else then
    lock: i64  # of the free items of a pool: whoever makes it 1 has it
    room: i64  # of that pool before
    stocks: Words  # per worker items of the pool that it has taken, STOCK words each
    workers: i64  # at most
    columns: WordColumns  # whose rows are loaded,
    count: i64  # so many
    index: i64  # of the collection, that is built
    shift: i64  # of keys, whose divisions these are (divisions.py),
    rooms: Words  # and for each worker where the rows are that it has divided
    first: i64  # of a part: the division that it begins with,
    behind: i64  # the one behind its last,
    row: i64  # the number of its first row, or where its slabs begin in the pool,
    rows: i64  # how many there are, or what of the pool they take,
    groups: i64  # and how many groups have some
    most: i64  # of a part: how many rows it may claim,
    number: i64  # the number that the first one gets,
    wide: i64  # and a bit for each column in which one that is new has a value of more than 4 bytes
