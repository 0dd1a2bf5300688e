"""Contributions to the counts and sums of a fresh reduction with one key, summed up in tables by the key itself.

While such a path runs there are no groups: each worker that goes through a part of its changes adds what it finds to a table of
its own (`Tally`), which has a place for every key of a range. When the path is over the tables are added up, and the groups of
all keys that have members are made, in the order of the keys. (Partial aggregation before an exchange: Graefe, Query Evaluation
Techniques for Large Databases, 1993.)

The range grows with the keys that come. Contributions whose keys lie too far away are kept as they are; where these are many,
the table is given up.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Gathers
from dlog.engine.kernels.combine import Combine, joined
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.reduce.tally_groups import end_tallies
from dlog.engine.kernels.incremental.reduce.tally_tables import close_tally, extend_tally, is_sparse, open_tally
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.instructions import Reduce
from dlog.engine.kernels.layout import OTHER_WORDS
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control, Path, Share, Tally
from dlog.engine.kernels.static.storage import behind, register, scratch_block

MIN_TALLIED_CHANGES = 4096
"""Changes of a path from which on it has a table."""
CHANGES_PER_PLACE = 2
"""Changes of a path for each place that its table may have."""


@kernel
def begin_tally(ctl: Control, path: Path, changes):
    """Before so many changes of a path are gone through: they get a table, if they may have one."""
    tally = ctl.tally
    if changes >= MIN_TALLIED_CHANGES and may_tally(ctl, path):
        open_tally(tally, path.reduction, changes // CHANGES_PER_PLACE)


@kernel
def may_tally(ctl: Control, path: Path):
    """Whether a path contributes to counts or sums of integers that nobody has contributed to, and nobody else will."""
    reduction = path.reduction
    if not reduction or reduction.streamed == 0 or reduction.op >= Combine.SUM_FLOAT:
        return False
    result = reduction.result
    groups = reduction.groups
    if groups.rows != 0 or groups.slot_homes.count != 0 or reduction.missing:
        return False
    return result.fresh != 0 if result.in_batch != 0 else ctl.batch.rounds == 1


@kernel
def begin_part_tally(ctl: Control, share: Share, part) -> Tally:
    """Has this worker add to the table of a part of a path, which stays with whoever shares the path: other workers may do the
    part in the next step. Returns the table that is its own."""
    own = ctl.tally
    table = share.tallies[part]
    if not table.reduction:
        open_tally(table, share.path.reduction, share.tally.most)
    ctl.tally = table
    return own


@entry()
def forget_tallies(ctl: Control):
    """Forgets what a path that has not come to its end has summed up, alone or in parts."""
    share = ctl.share
    if share:
        for part in range(share.workers):
            if share.tallies[part].reduction:
                close_tally(ctl, share.tallies[part])
    if ctl.tally and ctl.tally.reduction:
        close_tally(ctl, ctl.tally)


# ---------------------------------------------------------------------------------------------------------- contributions


@kernel
def tally_block(ctl: Control, pc: Reduce, n):
    """Adds a block's contributions; false with ctl.error set."""
    tally = ctl.tally
    keys = register(ctl, pc.keys[0])
    low = keys[0]
    high = low
    for i in range(n):
        low = min(low, keys[i])
        high = max(high, keys[i])
    if low < tally.low or high >= tally.low + tally.places:
        extend_tally(ctl, tally, low, high)
    if not list_room(ctl, tally.others, n):
        return False
    values = register(ctl, pc.value)
    diffs = register(ctl, pc.diff)
    left = scratch_block(ctl, 0)
    for i in range(add_keys(tally, keys, values, diffs, n, left)):
        at = left[i]
        other = behind(tally.others.data, tally.others.count * OTHER_WORDS)
        other[0] = keys[at]
        other[1] = values[at]
        other[2] = diffs[at]
        tally.others.count += 1
    tally.seen += n
    if not is_sparse(tally) or (ctl.share and ctl.share.gathers == Gathers.SUMS):
        return True
    return end_tallies(ctl)


@kernel
def add_keys(tally: Tally, keys: Words, values: Words, diffs: Words, n, left: Words):
    """Adds contributions to the places of their keys; lists those that have none, and returns how many."""
    op = tally.reduction.op
    words = tally.words
    sums = tally.sums
    low = tally.low
    places = tally.places
    count = 0
    for i in range(n):
        place = keys[i] - low
        if 0 <= place < places:
            sums[place * words] += diffs[i]
            if words > 1:
                sums[place * words + 1] = joined(op, sums[place * words + 1], values[i], diffs[i])
        else:
            left[count] = i
            count += 1
    return count
