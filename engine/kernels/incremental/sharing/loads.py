"""Rows of inputs from columns, brought in by workers. Those of a fresh one, and its indexes: each divides some of the rows, and
does what is to be done for some of the divisions. Changes of pairs: each does those of its part of their table."""

from __future__ import annotations

from dlog.engine.kernels.codes import Shared, Status
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.inputs.base_building import (
    begin_base,
    choose_key,
    close_gap,
    divide_keys,
    end_base,
    fill_divisions,
    survey,
)
from dlog.engine.kernels.incremental.inputs.input_changes import apply_columns, may_be_pairs
from dlog.engine.kernels.incremental.inputs.loading import load_columns
from dlog.engine.kernels.incremental.inputs.renewal import renew
from dlog.engine.kernels.incremental.sharing.pair_changes import change_part, end_changes, room_for_changes
from dlog.engine.kernels.incremental.sharing.pairs import divide_pairs_part, enter_left, enter_part
from dlog.engine.kernels.incremental.store.collections import reserve_rows
from dlog.engine.kernels.incremental.store.dense_building import count_items, divide_items, make_pool, place_items
from dlog.engine.kernels.incremental.store.divisions import DIVISIONS, MIN_DIVIDED_ROWS, first_key, room_of, shift_of, size_of
from dlog.engine.kernels.incremental.store.index_building import begin_index
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.incremental.store.pair_loading import begin_pairs
from dlog.engine.kernels.incremental.store.pairs import can_be_pairs, fit_pairs
from dlog.engine.kernels.machine_structs import WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.static.storage import behind, within_limit, without_limit


@entry()
def begin_load(ctl: Control, collection: Collection, columns: WordColumns, count):
    """Begins to load a fresh input from columns of words (`load_columns`). Returns BULK where workers are to do a step
    (`run_part`), after which `continue_load` goes on; DONE; or FAILED with ctl.error set."""
    limit = without_limit(ctl)
    share = ctl.share
    share.collection = collection
    share.columns = columns
    share.count = count
    share.kind = Shared.SURVEY
    return limited(ctl, limit, Status.BULK if room_for_extents(ctl, share) else Status.FAILED)


@entry()
def begin_changes(ctl: Control, collection: Collection, columns: WordColumns, start, count):
    """Begins to apply changes of an input from columns (`bring_rows`): workers do where it holds pairs. Returns as
    `begin_load`."""
    limit = without_limit(ctl)
    return limited(ctl, limit, change_pairs(ctl, collection, columns, start, count))


@kernel
def change_pairs(ctl: Control, collection: Collection, columns: WordColumns, start, count):
    if not renew(ctl, collection):
        return Status.FAILED
    if collection.pairs.address == 0 or collection.fresh != 0 or not can_be_pairs(columns, 1, count):
        return Status.DONE if apply_columns(ctl, collection, columns, 1, start, count, Words(0)) else Status.FAILED
    share = ctl.share
    share.collection = collection
    share.columns = columns
    share.count = count
    share.time = start
    share.kind = Shared.CHANGE_PAIRS
    return Status.BULK if room_for_changes(ctl, share) else Status.FAILED


@kernel
def limited(ctl: Control, limit, status):
    """Sets the limit of memory again, which is asked when all is done."""
    if status != Status.DONE:
        ctl.limit = limit
        return status
    return Status.DONE if within_limit(ctl, limit, True) else Status.FAILED


@kernel
def room_for_extents(ctl: Control, share: Share):
    """Makes room for what parts find out about each column; false with ctl.error set."""
    share.values.count = 0
    return list_room(ctl, share.values, share.workers * extents_of(share))


@kernel
def extents_of(share: Share):
    """Words of the extents of all columns."""
    return 2 * share.collection.arity


@kernel
def survey_part(share: Share, part, parts):
    """Writes the extents of a part of the rows (`survey`)."""
    first = share.count * part // parts
    last = share.count * (part + 1) // parts
    survey(share.columns, share.collection.arity, first, last, behind(share.values.data, part * extents_of(share)))


@kernel
def join_extents(share: Share) -> Words:
    """The extents of all rows, of which each part has written those of its own."""
    extents = share.values.data
    for part in range(1, share.part_count):
        others = behind(extents, part * extents_of(share))
        for c in range(share.collection.arity):
            extents[2 * c] = min(extents[2 * c], others[2 * c])
            extents[2 * c + 1] = max(extents[2 * c + 1], others[2 * c + 1])
    return extents


@kernel
def begin_rows(ctl: Control, share: Share, extents: Words):
    """Goes on with a load whose rows have these extents. Returns as `begin_load`."""
    collection = share.collection
    count = share.count
    if may_be_pairs(collection) and fit_pairs(extents):
        share.kind = Shared.DIVIDE_PAIRS
        return Status.BULK if begin_pairs(ctl, collection, count) else Status.FAILED
    key, low, groups = choose_key(collection, share.columns, extents, count)
    if collection.rows != 0 or key < 0:
        return Status.DONE if load_columns(ctl, collection, share.columns, count) else Status.FAILED
    if not reserve_rows(ctl, collection, (count + 63) & ~63):
        return Status.FAILED
    share.shift = shift_of(groups, MIN_DIVIDED_ROWS)
    share.kind = Shared.DIVIDE
    return Status.BULK if begin_base(ctl, collection, extents, key, low, groups) else Status.FAILED


@kernel
def load_part(ctl: Control, share: Share, part, parts):
    """Does a part of the step at hand; false with ctl.error set."""
    kind = share.kind
    if kind == Shared.SURVEY:
        survey_part(share, part, parts)
        return True
    if kind == Shared.DIVIDE_PAIRS:
        return divide_pairs_part(ctl, share, part, parts)
    if kind == Shared.ENTER_PAIRS:
        return enter_part(ctl, share, part, parts)
    if kind == Shared.CHANGE_PAIRS:
        return change_part(ctl, share, part, parts)
    if kind == Shared.DIVIDE or kind == Shared.DIVIDE_INDEX:
        return divide_part(ctl, share, part, parts)
    collection = share.collection
    own = ctl.share
    rooms = share.rooms
    if kind == Shared.FILL:
        columns = share.columns
        end = fill_divisions(collection, columns, rooms, parts, own.first, own.behind, share.shift, own.row)
        own.rows = end - own.row
        return True
    index = collection.indexes[share.index]
    if kind == Shared.COUNT_INDEX:
        own.groups, own.rows = count_items(index, rooms, parts, own.first, own.behind, share.shift)
    else:
        place_items(index, rooms, parts, own.first, own.behind, share.shift, own.row)
    return True


@kernel
def divide_part(ctl: Control, share: Share, part, parts):
    """Divides a part of the rows; false with ctl.error set."""
    items = ctl.share.items
    collection = share.collection
    count = share.count if share.kind == Shared.DIVIDE else collection.rows
    start = count * part // parts
    end = count * (part + 1) // parts
    if not list_room(ctl, items, (room_of(end - start) + 1) >> 1):
        return False
    room = Words(items.data.address)
    share.rooms[part] = room.address
    if share.kind == Shared.DIVIDE:
        divide_keys(collection, share.columns, start, end, share.shift, room)
    else:
        divide_items(collection.indexes[share.index], start, end, share.shift, room)
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
    if kind == Shared.SURVEY:
        return begin_rows(ctl, share, join_extents(share))
    if kind == Shared.DIVIDE_PAIRS:
        share.kind = Shared.ENTER_PAIRS
        return Status.BULK
    if kind == Shared.ENTER_PAIRS:
        return Status.DONE if enter_left(ctl, share, collection) else Status.FAILED
    if kind == Shared.CHANGE_PAIRS:
        end_changes(share)
        return Status.DONE
    if kind == Shared.DIVIDE or kind == Shared.DIVIDE_INDEX:
        share_divisions(share)
        share.kind = Shared.FILL if kind == Shared.DIVIDE else Shared.COUNT_INDEX
        return Status.BULK
    if kind == Shared.COUNT_INDEX:
        return end_counts(ctl, share, collection)
    share.index += 1
    if kind == Shared.FILL:
        share.index = 0
        join_divisions(share, collection)
    return next_index(ctl, share, collection)


@kernel
def share_divisions(share: Share):
    """Gives each part divisions with about as many rows."""
    total = 0
    for division in range(DIVISIONS):
        total += size_of(share.rooms, share.part_count, division)
    division = 0
    rows = 0
    for part in range(share.part_count):
        own = share.parts[part]
        own.first = division
        own.row = rows
        target = total * (part + 1) // share.part_count
        while division < DIVISIONS and (rows < target or part + 1 == share.part_count):
            rows += size_of(share.rooms, share.part_count, division)
            division += 1
        own.behind = division


@kernel
def join_divisions(share: Share, collection: Collection):
    """Makes the rows of all parts a base."""
    groups = collection.base.keys
    rows = 0
    for part in range(share.part_count):
        own = share.parts[part]
        first = first_key(own.first, share.shift, groups)
        last = first_key(own.behind, share.shift, groups)
        rows = close_gap(collection, first, last, own.row, own.row + own.rows, rows)
    end_base(collection, rows)
    collection.log.count = rows


# -------------------------------------------------------------------------------------------------------------- indexes


@kernel
def begin_indexes(ctl: Control, share: Share, collection: Collection):
    """Begins to build the indexes of a fresh collection that rules derive. Returns as `begin_load`; `end_indexes` goes on."""
    share.collection = collection
    share.index = 0
    return next_index(ctl, share, collection)


@kernel
def end_indexes(ctl: Control, share: Share):
    """Goes on when all parts of a step are done. Returns as `begin_load`."""
    status = next_step(ctl, share)
    if status == Status.DONE:
        share.kind = Shared.INDEXED
    return status


@kernel
def next_index(ctl: Control, share: Share, collection: Collection):
    """Builds indexes (`enter_indexes`) up to one that workers are to build."""
    while share.index < collection.index_count:
        index = collection.indexes[share.index]
        status = begin_index(ctl, index, collection.rows)
        if status == Status.BULK:
            share.shift = shift_of(index.groups, MIN_DIVIDED_ROWS)
            share.kind = Shared.DIVIDE_INDEX
        if status != Status.DONE:
            return status
        share.index += 1
    collection.indexed = collection.rows
    return Status.DONE


@kernel
def end_counts(ctl: Control, share: Share, collection: Collection):
    """After workers have counted the rows of an index's groups."""
    index = collection.indexes[share.index]
    start = index.pool_size
    used = 0
    wanted = 0
    for part in range(share.part_count):
        own = share.parts[part]
        own.row = start + wanted
        used += own.groups
        wanted += own.rows
    share.kind = Shared.FILL_INDEX
    return Status.BULK if make_pool(ctl, index, used, wanted) else Status.FAILED
