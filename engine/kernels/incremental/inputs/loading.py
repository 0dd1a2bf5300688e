"""Bringing rows from outside into inputs; an empty one is loaded from columns in one go."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.inputs.input_changes import apply_columns, apply_input, make_rows, may_be_pairs
from dlog.engine.kernels.incremental.inputs.renewal import renew
from dlog.engine.kernels.incremental.inputs.row_blocks import seek_based
from dlog.engine.kernels.incremental.inputs.row_loading import load_rows
from dlog.engine.kernels.incremental.store.index_entering import enter_indexes
from dlog.engine.kernels.incremental.store.pair_loading import load_pairs
from dlog.engine.kernels.incremental.store.pairs import can_be_pairs
from dlog.engine.kernels.machine_structs import WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import within_limit, without_limit


@kernel
def load_columns(ctl: Control, collection: Collection, columns: WordColumns, count):
    """Loads a fresh input from columns of words: rows to insert at the first round, which may repeat. False with ctl.error
    set."""
    if may_be_pairs(collection) and can_be_pairs(columns, 1, count):
        return load_pairs(ctl, collection, columns, count)
    if not load_rows(ctl, collection, columns, count, ctl.scratch):
        return False
    collection.log.count = collection.rows
    return enter_indexes(ctl, collection)


# ---------------------------------------------------------------------------------------------------------------- either


@entry()
def bring_in(ctl: Control, collection: Collection, updates, columns: WordColumns, count):
    """Applies changes from outside (`apply_input`) or, where `updates` is 0, loads columns. False with ctl.error set."""
    if updates != 0 and not renew(ctl, collection):
        return False
    limit = without_limit(ctl)
    if updates != 0:
        done = apply_input(ctl, collection, updates, count) and enter_changed(ctl, collection)
    else:
        done = load_columns(ctl, collection, columns, count)
    return within_limit(ctl, limit, done)


@entry()
def bring_changes(ctl: Control, collection: Collection, columns: WordColumns, start, count):
    """Applies changes from outside, as columns (`apply_columns`), the batch's first round being `start`. False with ctl.error
    set."""
    if not bring_rows(ctl, collection, columns, start, count, Words(0)):
        return False
    limit = without_limit(ctl)
    return within_limit(ctl, limit, enter_changed(ctl, collection))


@entry()
def bring_rows(ctl: Control, collection: Collection, columns: WordColumns, start, count, found: Words):
    """`bring_changes`, but for indexes (`enter_changed`, `enter_index`). `found` has what `seek_rows` has found, or is null."""
    if found.address == 0 and not renew(ctl, collection):
        return False
    limit = without_limit(ctl)
    return within_limit(ctl, limit, apply_columns(ctl, collection, columns, 1, start, count, found))


@entry()
def begin_seeking(ctl: Control, collection: Collection, columns: WordColumns, count):
    """Before workers seek the rows of changes in the base of an input (`seek_rows`). Returns 1, 0 if there is nothing to seek,
    -1 with ctl.error set."""
    if not renew(ctl, collection):
        return -1
    based = collection.base.rows != 0 and collection.arity > 1
    return 0 if not based or (may_be_pairs(collection) and can_be_pairs(columns, 1, count)) else 1


@entry()
def seek_rows(ctl: Control, collection: Collection, columns: WordColumns, first, last, found: Words):
    """Seeks the rows of changes [first, last) in the base of an input (`seek_based`). Always true."""
    seek_based(ctl, collection, columns, first, last, found)
    return True


@entry()
def enter_changed(ctl: Control, collection: Collection):
    """Has indexes of an input take its new rows, if they have not; pairs have none. False with ctl.error set."""
    return collection.packed != 0 or enter_indexes(ctl, collection)


@entry()
def unpack_pairs(ctl: Control, collection: Collection):
    """Makes ordinary rows of the pairs of an input, between batches. False with ctl.error set."""
    limit = without_limit(ctl)
    return within_limit(ctl, limit, make_rows(ctl, collection))
