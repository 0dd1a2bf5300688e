"""Rows of an input, loaded from columns of words in one go.

Rows whose key column has few values for so many rows become a base (base_building.py). Others are found by slots.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.inputs.base_building import (
    MIN_BASE_ROWS,
    choose_key,
    load_base,
    survey,
)
from dlog.engine.kernels.incremental.inputs.row_blocks import enter_rows
from dlog.engine.kernels.incremental.store.collections import reserve_rows
from dlog.engine.kernels.incremental.store.slot_room import resize_slots
from dlog.engine.kernels.incremental.store.slots import slots_for
from dlog.engine.kernels.machine_structs import WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control


@kernel
def load_rows(ctl: Control, collection: Collection, columns: WordColumns, count, block: Words):
    """Makes rows of columns of words, which may repeat, those of an input that has none; its indexes do not get them. `block`
    is room for a block, and for two words a column. False with ctl.error set."""
    if not reserve_rows(ctl, collection, (count + 63) & ~63):
        return False
    if collection.rows == 0 and count >= MIN_BASE_ROWS:
        survey(columns, collection.arity, 0, count, block)
        key, low, groups = choose_key(collection, columns, block, count)
        if key >= 0:
            return load_base(ctl, collection, columns, block, count, key, low, groups)
    return load_slots(ctl, collection, columns, count, block)


@kernel
def load_slots(ctl: Control, collection: Collection, columns: WordColumns, count, block: Words):
    """`load_rows` of rows that are found by slots; false with ctl.error set."""
    if not resize_slots(ctl, collection, slots_for(count)):
        return False
    return enter_rows(ctl, collection, columns, 1, WordColumns(0), 0, count, Words(0), block)
