"""Rows that a part of a path has noted by their values, as nobody had them then, and their derivations outside of recursion."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.loop.gathering import ROW_UNKNOWN
from dlog.engine.kernels.incremental.sharing.direct_rows import are_direct, find_direct_rows
from dlog.engine.kernels.incremental.store.collections import find_or_add
from dlog.engine.kernels.incremental.store.direct import prefetch_direct
from dlog.engine.kernels.incremental.store.lists import push_change
from dlog.engine.kernels.incremental.store.slots import hash_values, warm_slot
from dlog.engine.kernels.layout import DERIVED_ROW_WORDS
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.static.storage import behind

ROWS_AHEAD = 16
"""New rows of a part whose slots are asked for before they are looked for."""


@kernel
def find_noted(ctl: Control, share: Share, own: Share):
    """Finds or makes the rows that a part of a path has noted by their values; false with ctl.error set."""
    collection = share.collection
    size = collection.arity + 1
    noted = own.values
    found = own.items.data if collection.scope else own.derived_rows.data
    if are_direct(collection, noted):
        done = find_direct_rows(ctl, collection, noted, found)
        noted.count = 0
        return done
    for at in range(0, noted.count, size):
        if at + ROWS_AHEAD * size < noted.count:
            warm_values(collection, behind(noted.data, at + ROWS_AHEAD * size + 1))
        values = behind(noted.data, at + 1)
        row = find_or_add(ctl, collection, values, hash_values(values, collection.arity))
        if row < 0:
            return False
        found[noted.data[at]] += row - ROW_UNKNOWN
    noted.count = 0
    return True


@kernel
def warm_values(collection: Collection, values: Words):
    """Asks for where a row with these values will be found."""
    if collection.direct.count != 0:
        prefetch_direct(collection, values[0])
    elif collection.slot_homes.count > 0:
        warm_slot(collection, hash_values(values, collection.arity))


@kernel
def derive_noted(ctl: Control, share: Share, own: Share):
    """Adds the derivations, outside of recursion, that a part of a path has noted; false with ctl.error set."""
    collection = share.collection
    derivation = collection.derivation
    for i in range(own.derived_rows.count):
        found = behind(own.derived_rows.data, i * DERIVED_ROW_WORDS)
        if collection.fresh != 0:
            derivation.counts[found[0]] += found[1]
        elif not push_change(ctl, derivation.derived, found[0], found[2], found[1], 0):
            return False
    own.derived_rows.count = 0
    return True


# ------------------------------------------------------------------------------------------------------------ recursion
