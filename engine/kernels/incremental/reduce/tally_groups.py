"""Groups of what has been summed up by key (tallies.py)."""

from __future__ import annotations

from dlog.engine.kernels.combine import joined
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.loop.activation import touch_reduced
from dlog.engine.kernels.incremental.reduce.sums import add_to_sum, sum_at, total_of
from dlog.engine.kernels.incremental.reduce.tally_tables import add_tally, close_tally, keys_in_use
from dlog.engine.kernels.incremental.store.bits import fill_bits
from dlog.engine.kernels.incremental.store.collections import clear_row, find_or_add, put_cell, reserve_rows
from dlog.engine.kernels.incremental.store.direct import are_close, move_direct, set_direct
from dlog.engine.kernels.incremental.store.slots import hash_values
from dlog.engine.kernels.layout import OTHER_WORDS
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control, Reduction, Tally
from dlog.engine.kernels.static.storage import ROWS_MAX, behind, scratch_block


@kernel
def end_tallies(ctl: Control):
    """Makes groups of all that the path that runs has contributed, alone and in parts; false with ctl.error set."""
    lead = ctl.tally
    reduction = lead.reduction
    touch_reduced(ctl, reduction)
    share = ctl.share
    parts = share.workers if share else 0
    for part in range(parts):
        add_tally(ctl, lead, share.tallies[part])
    done = make_groups(ctl, reduction, lead)
    for part in range(parts):
        other = share.tallies[part]
        done = done and find_groups(ctl, reduction, other) and contribute_others(ctl, reduction, other)
        close_tally(ctl, other)
    done = done and contribute_others(ctl, reduction, lead)
    close_tally(ctl, lead)
    return done


@kernel
def make_groups(ctl: Control, reduction: Reduction, tally: Tally):
    """Makes the groups of a table where there are none: in the order of their keys, and found by these. False with ctl.error
    set."""
    groups = reduction.groups
    low, high, count = keys_in_use(tally)
    if count == 0:
        return True
    if not are_close(low, high, count) or count > ROWS_MAX:
        return find_groups(ctl, reduction, tally)
    if not reserve_rows(ctl, groups, max(groups.capacity, (count + 63) & ~63)):
        return False
    if not move_direct(ctl, groups, low, high - low + 1):
        return False
    words = tally.words
    row = 0
    for key in range(low, high + 1):
        place = behind(tally.sums, (key - tally.low) * words)
        if place[0] != 0:
            if not put_cell(ctl, groups, 0, row, key):
                return False
            clear_row(groups, row)
            set_sum(behind(groups.grouping.sums, row * words), place, words)
            set_direct(groups, key, row + 1)
            row += 1
    groups.rows = count
    groups.live = count
    fill_bits(groups.alive, 0, count)
    return True


@kernel
def set_sum(target: Words, source: Words, words):
    for word in range(words):
        target[word] = source[word]


@kernel
def find_groups(ctl: Control, reduction: Reduction, tally: Tally):
    """Adds a table to groups that may be there; false with ctl.error set."""
    op = reduction.op
    words = tally.words
    for place in range(tally.places):
        sums = behind(tally.sums, place * words)
        if sums[0] != 0:
            group = group_of(ctl, reduction, tally.low + place)
            if group < 0:
                return False
            own = sum_at(reduction.groups, group)
            own.count += sums[0]
            if words > 1:
                own.value = joined(op, own.value, sums[1], 1)
    return True


@kernel
def contribute_others(ctl: Control, reduction: Reduction, tally: Tally):
    """Adds the contributions that have no place; false with ctl.error set."""
    for i in range(tally.others.count):
        other = behind(tally.others.data, i * OTHER_WORDS)
        group = group_of(ctl, reduction, other[0])
        if group < 0:
            return False
        op = reduction.op
        add_to_sum(op, sum_at(reduction.groups, group), total_of(op, other[1], other[2]), other[2])
    return True


@kernel
def group_of(ctl: Control, reduction: Reduction, key):
    """The group with a key, made if there is none; -1 with ctl.error set."""
    values = scratch_block(ctl, 2)
    values[0] = key
    return find_or_add(ctl, reduction.groups, values, hash_values(values, 1))
