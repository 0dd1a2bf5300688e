"""The changes of a path, divided among workers: each runs it over some, and notes the rows it finds."""

from __future__ import annotations

from dlog.engine.kernels.codes import Divisible, Error, Gathers, Shared, Status
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.loop.activation import touch_derived
from dlog.engine.kernels.incremental.loop.gathering import ROW_UNKNOWN
from dlog.engine.kernels.incremental.loop.running import start_changes
from dlog.engine.kernels.incremental.sharing.claims import divide_records, may_claim
from dlog.engine.kernels.incremental.sharing.derivations import add_alone, begin_supports, end_supports
from dlog.engine.kernels.incremental.sharing.entering import (
    begin_claims,
    begin_divisions,
    begin_entering,
    begin_numbers,
    end_entering,
    give_back,
)
from dlog.engine.kernels.incremental.sharing.parts import ROW, begin_step
from dlog.engine.kernels.incremental.sharing.placing import end_hashes, end_placing
from dlog.engine.kernels.incremental.store.collections import find_or_add
from dlog.engine.kernels.incremental.store.direct import prefetch_direct
from dlog.engine.kernels.incremental.store.lists import list_free, list_room, push_change
from dlog.engine.kernels.incremental.store.slots import hash_values, warm_slot
from dlog.engine.kernels.layout import DERIVED_ROW_WORDS
from dlog.engine.kernels.machine import run_path
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Path, Share
from dlog.engine.kernels.static.storage import behind

HOPE = 4
"""Derivations that come of a change, it is hoped, where those of a path are shared."""
LEAST_CHUNK = 256
"""Changes of a path below which a share of them is not worth it."""
CHUNK = 1 << 15
"""Changes of a path that are shared at first."""
MAX_ROWS_OF_PART = 1 << 19
"""Rows, about, that a part of a path may make; where it makes a quarter of them, the next step has no more changes."""
ROWS_AHEAD = 16
"""New rows of a part whose slots are asked for before they are looked for."""


@kernel
def begin_sharing(share: Share, first, last):
    """Before workers divide changes [first, last) of a path among them."""
    share.next = first
    share.end = first
    share.last = last
    share.chunk = CHUNK
    share.noted = 0
    share.entered = 0


@kernel
def begin_path(ctl: Control, share: Share, path: Path, first, last):
    """Before changes [first, last) of a path are gone through: workers divide them, or add the derivations that one notes; else
    one goes through them alone, until others may join it."""
    share.chunk = CHUNK
    if may_divide(ctl, share, path, last - first):
        begin_sharing(share, first, last)
    elif (last - first) * HOPE >= share.least and path.target.scope:
        share.gathers = Gathers.SUPPORTS


@kernel
def run_shared(path: Path, ctl: Control, share: Share):
    """Runs (or resumes) a path whose changes are divided among workers. YIELD where too much comes of few changes: those that
    are left are for this worker alone."""
    if share.kind == Shared.ENDED:
        share.kind = Shared.NONE
        if share.status == Status.YIELD and share.chunk < LEAST_CHUNK:
            start_changes(path, ctl, share.next, share.last)
            share.gathers = Gathers.SUPPORTS if path.target.scope else Gathers.NOTHING
            share.last = 0
            share.chunk = 0
            return Status.YIELD
    if share.next < share.last:
        begin_part(ctl, share, path)
        return Status.BULK
    share.last = 0
    return Status.DONE


@kernel
def may_divide(ctl: Control, share: Share, path: Path, changes):
    """Whether workers are to divide so many changes of a path among them: not where too much came of few."""
    if changes * HOPE < share.least or share.chunk == 0 or share.gathers != Gathers.NOTHING:
        return False
    return path.divisible == Divisible.YES or (path.divisible == Divisible.CLAIMED and may_claim(ctl, path.target) != 0)


@kernel
def divide_rest(ctl: Control, share: Share, path: Path):
    """Has workers divide the changes that are left of a path which one has begun alone, when it is done with what it has read.
    Returns a `Status`: YIELD where it is not, yet."""
    seed = ctl.levels[0]
    last = seed.end
    seed.end = seed.at
    status = run_path(path, ctl)
    if status == Status.DONE:
        begin_sharing(share, seed.at, last)
    else:
        seed.end = last
    return status


@kernel
def begin_part(ctl: Control, share: Share, path: Path):
    """Before workers go through the next changes of a path."""
    begin_step(ctl, share, Shared.PATH, path.target)
    share.path = path
    share.claims = may_claim(ctl, path.target)
    share.end = min(share.last, share.next + share.chunk)


@kernel
def follow_part(ctl: Control, share: Share, part, parts):
    """Runs the path over a part of the changes. Where it finds more than it may, or memory does not suffice, it gives up:
    nobody knows before what comes of a change. False with ctl.error set."""
    own = ctl.share
    own.derived_rows.count = 0
    own.values.count = 0
    own.gathers = Gathers.VALUES if share.claims != 0 else Gathers.ROWS
    changes = share.end - share.next
    start_changes(share.path, ctl, share.next + changes * part // parts, share.next + changes * (part + 1) // parts)
    work = ctl.work
    budget = ctl.budget
    ctl.work = 0
    ctl.budget = MAX_ROWS_OF_PART
    own.status = run_path(share.path, ctl)
    own.work = ctl.work
    ctl.work = work
    ctl.budget = budget
    own.gathers = Gathers.NOTHING
    if own.status == Status.DONE and share.claims != 0 and not divide_records(ctl, own, share.collection):
        own.status = Status.FAILED
    if own.status == Status.FAILED and ctl.error == Error.MEMORY:
        ctl.error = Error.NONE
        own.status = Status.YIELD
    return own.status != Status.FAILED


@entry()
def end_step(ctl: Control):
    """After workers have done a step of a path that is divided. Returns BULK where they are to do another one; else what is
    left in `status`: DONE where all that they have found is derived, YIELD where a part has given up, and nothing has been
    done, or FAILED with ctl.error set."""
    share = ctl.share
    kind = share.kind
    if kind == Shared.PATH:
        status = end_part(ctl, share)
    elif kind == Shared.HASH:
        status = end_hashes(ctl, share)
        if status == Status.DONE:
            status = begin_divisions(ctl, share)
    elif kind == Shared.PLACE:
        status = begin_divisions(ctl, share) if end_placing(ctl, share) else Status.FAILED
    elif kind == Shared.CLAIM:
        status = begin_numbers(ctl, share)
    elif kind == Shared.NUMBER:
        status = begin_entering(ctl, share)
    elif kind == Shared.ENTER:
        status = end_entering(ctl, share)
    else:
        status = Status.DONE if end_supports(ctl, share) else Status.FAILED
    if status != Status.BULK:
        share.kind = Shared.ENDED
        share.status = status
    return status


@kernel
def end_part(ctl: Control, share: Share):
    """After workers have gone through changes of a path. Returns as `end_step`."""
    for part in range(share.part_count):
        if share.parts[part].status != Status.DONE:
            share.chunk >>= 2
            if share.chunk < LEAST_CHUNK:
                # One worker goes on alone: memory may be what it lacks.
                give_back(ctl, share)
                for number in range(share.part_count):
                    list_free(ctl, share.parts[number].values)
            return Status.YIELD
    rows = 0
    most = 0
    for part in range(share.part_count):
        other = share.parts[part]
        rows += other.derived_rows.count
        most = max(most, other.work)
        ctl.work += other.work
    if most * 4 < MAX_ROWS_OF_PART:
        share.chunk <<= 1
    share.next = share.end
    # As if this worker had gone through the changes: `rows_hoped_for` asks how many are left.
    ctl.levels[0].at = share.end
    ctl.levels[0].end = share.last
    if share.claims != 0:
        return begin_claims(ctl, share)
    if rows == 0:
        return Status.DONE
    touch_derived(ctl, share.collection)
    for part in range(share.part_count):
        if not take_derived_rows(ctl, share, share.parts[part]):
            return Status.FAILED
    if share.items.count >= share.least:
        return Status.BULK if begin_supports(ctl, share) else Status.FAILED
    return Status.DONE if add_alone(ctl, share) else Status.FAILED


@kernel
def take_derived_rows(ctl: Control, share: Share, other: Share):
    """Derives the rows that a part has found, or notes their derivations; false with ctl.error set."""
    collection = share.collection
    arity = collection.arity
    values = other.values.data
    for i in range(other.derived_rows.count):
        found = behind(other.derived_rows.data, i * DERIVED_ROW_WORDS)
        row = found[0] & ROW
        if row == ROW_UNKNOWN:
            ahead = behind(values, ROWS_AHEAD * arity)
            if ahead.address < behind(other.values.data, other.values.count).address:
                warm_values(collection, ahead, arity)
            row = find_or_add(ctl, collection, values, hash_values(values, arity))
            if row < 0:
                return False
            values = behind(values, arity)
        if not derive_row(ctl, share, row, found):
            return False
    return True


@kernel
def warm_values(collection: Collection, values: Words, arity):
    """Asks for where a row with these values will be found."""
    if collection.direct.count != 0:
        prefetch_direct(collection, values[0])
    elif collection.slot_homes.count > 0:
        warm_slot(collection, hash_values(values, arity))


@kernel
def derive_row(ctl: Control, share: Share, row, found: Words):
    """`take_derived_rows` of a row; false with ctl.error set."""
    collection = share.collection
    if collection.scope:
        items = share.items
        if not list_room(ctl, items, 1):
            return False
        item = behind(items.data, items.count * 2)
        item[0] = row | (found[0] >> 32 << 32)
        item[1] = found[1]
        items.count += 1
        return True
    if collection.fresh != 0:
        collection.derivation.counts[row] += found[1]
        return True
    return push_change(ctl, collection.derivation.derived, row, found[2], found[1], 0)
