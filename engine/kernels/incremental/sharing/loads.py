"""Rows of a fresh input, loaded from columns by workers: those of a base each by some of its groups."""

from __future__ import annotations

from dlog.engine.kernels.codes import Shared, Status
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.inputs.base_building import (
    MIN_BASE_ROWS,
    begin_base,
    choose_key,
    close_gap,
    count_some,
    end_base,
    fill_groups,
    sum_counts,
)
from dlog.engine.kernels.incremental.inputs.input_changes import may_be_pairs
from dlog.engine.kernels.incremental.inputs.loading import load_columns, within_limit, without_limit
from dlog.engine.kernels.incremental.sharing.pairs import divide_part, enter_left, enter_part
from dlog.engine.kernels.incremental.store.collections import enter_indexes, reserve_rows
from dlog.engine.kernels.incremental.store.pair_loading import begin_pairs
from dlog.engine.kernels.incremental.store.pairs import can_be_pairs
from dlog.engine.kernels.machine_structs import Numbers, WordColumns
from dlog.engine.kernels.round_structs import Collection, Control, Share


@entry()
def begin_load(ctl: Control, collection: Collection, columns: WordColumns, count):
    """Begins to load a fresh input from columns of words (`load_columns`). Returns BULK where workers are to do a step
    (`run_part`), after which `continue_load` goes on; DONE; or FAILED with ctl.error set."""
    limit = without_limit(ctl)
    share = ctl.share
    share.collection = collection
    share.columns = columns
    share.count = count
    if may_be_pairs(collection) and can_be_pairs(columns, 1, count):
        share.kind = Shared.DIVIDE
        status = Status.BULK if begin_pairs(ctl, collection, count) else Status.FAILED
    elif collection.rows == 0 and count >= MIN_BASE_ROWS:
        status = begin_groups(ctl, share, collection, columns, count)
    else:
        status = load_alone(ctl, collection, columns, count)
    return limited(ctl, limit, status)


@kernel
def limited(ctl: Control, limit, status):
    """Sets the limit of memory again, which is asked when all is done."""
    if status != Status.DONE:
        ctl.limit = limit
        return status
    return Status.DONE if within_limit(ctl, limit, True) else Status.FAILED


@kernel
def load_alone(ctl: Control, collection: Collection, columns: WordColumns, count):
    return Status.DONE if load_columns(ctl, collection, columns, count) else Status.FAILED


@kernel
def begin_groups(ctl: Control, share: Share, collection: Collection, columns: WordColumns, count):
    """`begin_load` of rows that may become a base."""
    key, low, groups = choose_key(collection, columns, count)
    if key < 0:
        return load_alone(ctl, collection, columns, count)
    if not reserve_rows(ctl, collection, (count + 63) & ~63):
        return Status.FAILED
    share.kind = Shared.COUNT
    return Status.BULK if begin_base(ctl, collection, columns, count, key, low, groups) else Status.FAILED


@kernel
def load_part(ctl: Control, share: Share, part, parts):
    """Does a part of the step at hand; false with ctl.error set."""
    collection = share.collection
    kind = share.kind
    if kind == Shared.DIVIDE:
        return divide_part(ctl, share, part, parts)
    if kind == Shared.ENTER:
        return enter_part(ctl, share, part, parts)
    columns = share.columns
    if kind == Shared.COUNT:
        groups = collection.base.keys
        first = groups * part // parts
        count_some(collection, columns[collection.base.key], share.count, first, groups * (part + 1) // parts, ctl.scratch)
        return True
    own = ctl.share
    end = fill_groups(collection, columns, share.count, own.first, own.behind, own.row, own.row + own.rows, ctl.scratch)
    own.rows = end - own.row
    return True


@entry()
def continue_load(ctl: Control):
    """Goes on when all parts of a step are done. Returns as `begin_load`."""
    limit = without_limit(ctl)
    return limited(ctl, limit, next_step(ctl, ctl.share))


@kernel
def next_step(ctl: Control, share: Share):
    collection = share.collection
    kind = share.kind
    share.kind = Shared.NONE
    if kind == Shared.DIVIDE:
        share.kind = Shared.ENTER
        return Status.BULK
    if kind == Shared.ENTER:
        return Status.DONE if enter_left(ctl, share, collection) else Status.FAILED
    if kind == Shared.COUNT:
        sum_counts(collection)
        divide_groups(share, collection)
        share.kind = Shared.FILL
        return Status.BULK
    join_groups(share, collection)
    return Status.DONE if enter_indexes(ctl, collection) else Status.FAILED


# --------------------------------------------------------------------------------------------------------------- groups


@kernel
def divide_groups(share: Share, collection: Collection):
    """Gives each part groups with about as many rows."""
    offsets = collection.base.offsets
    groups = collection.base.keys
    first = 0
    for part in range(share.part_count):
        own = share.parts[part]
        last = group_with(offsets, first, groups, share.count * (part + 1) // share.part_count)
        if part + 1 == share.part_count:
            last = groups
        own.first = first
        own.behind = last
        own.row = offsets[first]
        own.rows = offsets[last] - offsets[first]
        first = last


@kernel
def group_with(offsets: Numbers, first, last, row):
    """The first of groups [first, last) that does not begin before a row."""
    while first < last:
        middle = (first + last) >> 1
        if offsets[middle] < row:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def join_groups(share: Share, collection: Collection):
    """Makes the rows of all parts a base."""
    rows = 0
    for part in range(share.part_count):
        own = share.parts[part]
        rows = close_gap(collection, own.first, own.behind, own.row, own.row + own.rows, rows)
    end_base(collection, rows)
    collection.log.count = rows
