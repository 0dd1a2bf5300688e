"""The changes of a path, divided among workers: each runs it over some, and notes the rows it finds."""

from __future__ import annotations

from dlog.engine.kernels.codes import Divisible, Error, Gathers, Shared, Status
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.loop.activation import touch_derived
from dlog.engine.kernels.incremental.loop.running import start_changes
from dlog.engine.kernels.incremental.reduce.tallies import begin_part_tally
from dlog.engine.kernels.incremental.reduce.tally_tables import is_sparse
from dlog.engine.kernels.incremental.sharing.claims import divide_records, may_claim
from dlog.engine.kernels.incremental.sharing.derivations import end_supports, take_noted
from dlog.engine.kernels.incremental.sharing.entering import (
    begin_claims,
    begin_divisions,
    begin_entering,
    begin_numbers,
    end_entering,
    give_back,
)
from dlog.engine.kernels.incremental.sharing.parts import begin_step
from dlog.engine.kernels.incremental.sharing.placing import end_hashes, end_placing
from dlog.engine.kernels.incremental.sharing.sampling import sample_changes
from dlog.engine.kernels.incremental.store.lists import list_free
from dlog.engine.kernels.machine import run_path
from dlog.engine.kernels.round_structs import Control, Path, Share

HOPE = 4
"""Derivations that come of a change, it is hoped, where those of a path are shared."""
FIRST_TRIED, TRIED = 4, 32
"""Changes of a path, of few, that one worker goes through first, as more may come of them than is hoped: no more where much
comes of the first ones."""
LEAST_CHUNK = 256
"""Changes of a path below which a share of them is not worth it."""
CHUNK = 1 << 15
"""Changes of a path that are shared at first."""
MAX_CHUNK = 1 << 22
"""Most changes that are shared at first, where as many have been before."""
MAX_ROWS_OF_PART = 1 << 19
"""Rows, about, that a part of a path may make; where it makes a quarter of them, the next step has no more changes."""
_UNLIMITED = 1 << 62


@kernel
def begin_sharing(ctl: Control, share: Share, path: Path, first, last):
    """Before workers divide changes [first, last) of a path among them; one may have gone through those before."""
    share.next = first
    share.end = first
    share.last = last
    share.chunk = max(path.chunk, CHUNK)
    share.noted = 0
    share.entered = 0
    if share.sampled != 0:
        share.entered = path.target.rows - ctl.rows_before
        share.noted = max((first - ctl.first) * share.derived // share.sampled, share.entered)


@kernel
def begin_path(ctl: Control, share: Share, path: Path, first, last):
    """Before changes [first, last) of a path are gone through: workers divide them, or add the derivations that one notes; else
    one goes through them alone, until others may join it, or at first through TRIED of them to see what comes of these."""
    share.chunk = CHUNK
    share.tried = 0
    hoped = (last - first) * HOPE
    sample_changes(ctl, share, path, first, last)
    if may_divide(ctl, share, path, hoped):
        begin_sharing(ctl, share, path, first, last)
    elif hoped >= share.least:
        if path.target.scope:
            share.gathers = Gathers.SUPPORTS
    elif last - first >= 2 * TRIED and path.divisible in (Divisible.YES, Divisible.CLAIMED):
        share.tried = last
        share.next = first
        share.work = ctl.work
        start_changes(path, ctl, first, first + FIRST_TRIED)


@kernel
def end_trial(path: Path, ctl: Control, share: Share):
    """After one worker has gone through a few changes of a path: workers divide those that are left, it tries some more, or
    goes on alone."""
    at = ctl.levels[0].end
    last = share.tried
    share.tried = 0
    # Where it has been interrupted meanwhile it has made many.
    found = ctl.work - share.work if ctl.work >= share.work else MAX_ROWS_OF_PART
    if may_divide(ctl, share, path, found * (last - at) // (at - share.next)):
        begin_sharing(ctl, share, path, at, last)
    elif at == share.next + FIRST_TRIED:
        share.tried = last
        start_changes(path, ctl, at, share.next + TRIED)
    else:
        start_changes(path, ctl, at, last)


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
def may_divide(ctl: Control, share: Share, path: Path, hoped):
    """Whether workers are to divide changes of a path, of which so many derivations are hoped for: not where too much came of
    few."""
    if hoped < share.least or share.chunk == 0 or share.gathers != Gathers.NOTHING:
        return False
    if path.divisible == Divisible.SUMMED:
        return ctl.tally.reduction == path.reduction
    return path.divisible == Divisible.YES or (path.divisible == Divisible.CLAIMED and may_claim(ctl, path.target) != 0)


@kernel
def divide_rest(ctl: Control, share: Share, path: Path):
    """Has workers divide the changes that are left of a path which one has begun alone, when it is done with what it has read.
    Returns a `Status`: YIELD where it is not, yet."""
    seed = ctl.levels[0]
    last = seed.end
    seed.end = seed.at
    status = run_path(path, ctl)
    if status != Status.DONE:
        seed.end = last
    elif path.divisible == Divisible.SUMMED and ctl.tally.reduction != path.reduction:
        # The rest of what it has read was too much for its table of sums.
        start_changes(path, ctl, seed.at, last)
        return Status.YIELD
    else:
        begin_sharing(ctl, share, path, seed.at, last)
    return status


@kernel
def begin_part(ctl: Control, share: Share, path: Path):
    """Before workers go through the next changes of a path."""
    begin_step(ctl, share, Shared.PATH, path.target)
    share.path = path
    share.is_claimed = may_claim(ctl, path.target)
    share.end = min(share.last, share.next + share.chunk)


@kernel
def follow_part(ctl: Control, share: Share, part, parts):
    """Runs the path over a part of the changes. Where it finds more than it may, or memory does not suffice, it gives up:
    nobody knows before what comes of a change. False with ctl.error set."""
    own = ctl.share
    if share.path.divisible == Divisible.SUMMED:
        return sum_part(ctl, share, part, parts)
    own.items.count = 0
    own.derived_rows.count = 0
    own.values.count = 0
    own.gathers = Gathers.VALUES if share.is_claimed != 0 else Gathers.ROWS
    start_part(ctl, share, part, parts)
    go_through(ctl, share, MAX_ROWS_OF_PART)
    if own.status == Status.DONE and share.is_claimed != 0 and not divide_records(ctl, own, share.collection):
        own.status = Status.FAILED
    if own.status == Status.FAILED and ctl.error == Error.MEMORY:
        ctl.error = Error.NONE
        own.status = Status.YIELD
    return own.status != Status.FAILED


@kernel
def sum_part(ctl: Control, share: Share, part, parts):
    """`follow_part` of a path whose contributions are summed up: they hardly take memory, so it may find any number."""
    own = ctl.share
    tally = begin_part_tally(ctl, share, part)
    own.gathers = Gathers.SUMS
    start_part(ctl, share, part, parts)
    go_through(ctl, share, _UNLIMITED)
    ctl.tally = tally
    return own.status != Status.FAILED


@kernel
def start_part(ctl: Control, share: Share, part, parts):
    changes = share.end - share.next
    start_changes(share.path, ctl, share.next + changes * part // parts, share.next + changes * (part + 1) // parts)


@kernel
def go_through(ctl: Control, share: Share, most):
    """Runs a part of a path, which may make so many rows, about."""
    own = ctl.share
    work = ctl.work
    budget = ctl.budget
    ctl.work = 0
    ctl.budget = most
    own.status = run_path(share.path, ctl)
    own.work = ctl.work
    ctl.work = work
    ctl.budget = budget
    own.gathers = Gathers.NOTHING


@kernel
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
        status = end_supports(ctl, share)
    if status != Status.BULK:
        share.kind = Shared.ENDED
        share.status = status
    return status


@kernel
def end_part(ctl: Control, share: Share):
    """After workers have gone through changes of a path. Returns as `end_step`."""
    if share.path.divisible == Divisible.SUMMED:
        return end_sums(ctl, share)
    for part in range(share.part_count):
        if share.parts[part].status != Status.DONE:
            forget_noted(ctl, share)
            return Status.YIELD
    rows = 0
    most = 0
    for part in range(share.part_count):
        other = share.parts[part]
        rows += other.derived_rows.count + other.items.count
        most = max(most, other.work)
        ctl.work += other.work
    pass_changes(ctl, share, most)
    if share.is_claimed != 0:
        return begin_claims(ctl, share)
    if rows == 0:
        return Status.DONE
    touch_derived(ctl, share.collection)
    return take_noted(ctl, share, rows)


@kernel
def end_sums(ctl: Control, share: Share):
    """`end_part` of a path whose contributions are summed up."""
    most = 0
    sparse = False
    for part in range(share.part_count):
        other = share.parts[part]
        most = max(most, other.work)
        ctl.work += other.work
        sparse = sparse or is_sparse(share.tallies[part])
    pass_changes(ctl, share, most)
    if not sparse:
        return Status.DONE
    # One worker goes on alone, which soon looks for groups by their keys.
    share.chunk = 0
    return Status.YIELD


@kernel
def pass_changes(ctl: Control, share: Share, most):
    """After parts have gone through their changes, of which one has made so many rows at most."""
    if most * 4 < MAX_ROWS_OF_PART and share.end - share.next == share.chunk:
        share.chunk <<= 1
        share.path.chunk = min(share.chunk, MAX_CHUNK)
    share.next = share.end
    # As if this worker had gone through the changes: `rows_hoped_for` asks how many are left.
    ctl.levels[0].at = share.end
    ctl.levels[0].end = share.last


@kernel
def forget_noted(ctl: Control, share: Share):
    """Forgets what parts of a path have noted, of which one has given up; the next step has fewer changes."""
    share.chunk >>= 2
    share.path.chunk = share.chunk
    for part in range(share.part_count):
        share.parts[part].items.count = 0
    if share.chunk < LEAST_CHUNK:
        # One worker goes on alone: memory may be what it lacks.
        give_back(ctl, share)
        for part in range(share.part_count):
            list_free(ctl, share.parts[part].values)
