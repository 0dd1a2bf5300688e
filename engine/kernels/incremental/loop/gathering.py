"""Derivations that a path notes, for several workers to add when it is over (sharing.py)."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.static.storage import behind

ROW_UNKNOWN = 0x7FFFFFFF
"""Stands for a row that is not there yet: no row has this number."""
ITEM_WORDS = 2
"""Words of a derivation: row and iteration, the diff."""


@kernel
def gather_supports(
    ctl: Control, share: Share, collection: Collection, rows: Words, iterations: Words, advance, diffs: Words, n
):
    """Notes derivations of rows that are added when the path is over; false with ctl.error set. `iterations` may be null."""
    items = share.items
    if not list_room(ctl, items, n):
        return False
    share.collection = collection
    data = behind(items.data, items.count * ITEM_WORDS)
    for i in range(n):
        iteration = advance
        if iterations:
            iteration += iterations[i]
        data[ITEM_WORDS * i] = rows[i] | (iteration << 32)
        data[ITEM_WORDS * i + 1] = diffs[i]
    items.count += n
    return True
