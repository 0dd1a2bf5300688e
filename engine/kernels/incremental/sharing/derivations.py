"""Derivations of rows, added by workers, each those of its rows."""

from __future__ import annotations

from dlog.engine.kernels.codes import Shared
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.supports import add_support, count_derivations, schedule, support_at
from dlog.engine.kernels.incremental.sharing.parts import ROW, begin_step, own_rows
from dlog.engine.kernels.incremental.store.stocks import close_stocks, open_stocks
from dlog.engine.kernels.layout import STOCK
from dlog.engine.kernels.round_structs import Control, Share
from dlog.engine.kernels.static.storage import behind, scratch_block

_MARK = 1 << 31
"""Of a derivation: its row is to be looked at."""


@kernel
def begin_supports(ctl: Control, share: Share):
    """Before workers add the derivations noted; false with ctl.error set."""
    begin_step(ctl, share, Shared.SUPPORTS, share.collection)
    return open_stocks(ctl, share, share.collection.derivation.entries, share.items.count)


@kernel
def add_part(ctl: Control, share: Share, part, parts):
    collection = share.collection
    heads = collection.derivation.support
    items = share.items.data
    count = share.items.count
    stock = behind(share.stocks, part * STOCK)
    own = scratch_block(ctl, 0)
    at = 0
    while at < count:
        n, at = own_rows(items, 2, at, count, part, parts, own)
        for i in range(n):
            prefetch(heads.address + (items[2 * own[i]] & ROW) * 4)
        for i in range(n):
            number = heads[items[2 * own[i]] & ROW]
            if number > 0:
                prefetch(support_at(collection, number).address)
        for i in range(n):
            place = 2 * own[i]
            word = items[place]
            found = count_derivations(ctl, collection, word & ROW, word >> 32, items[place + 1], share, stock)
            if found < 0:
                return False
            if found > 0:
                items[place] = word | _MARK
    return True


@kernel
def end_supports(ctl: Control, share: Share):
    """Has rows looked at whose derivations workers have added; false with ctl.error set."""
    share.kind = Shared.NONE
    collection = share.collection
    items = share.items.data
    for i in range(share.items.count):
        word = items[2 * i]
        if word & _MARK != 0 and not schedule(ctl, collection, word >> 32, word & ROW):
            return False
    share.items.count = 0
    return close_stocks(ctl, share, collection.derivation.entries)


@kernel
def add_alone(ctl: Control, share: Share):
    """Adds derivations noted that are too few to be shared; false with ctl.error set."""
    items = share.items.data
    for i in range(share.items.count):
        word = items[2 * i]
        if not add_support(ctl, share.collection, word & ROW, word >> 32, items[2 * i + 1]):
            return False
    share.items.count = 0
    return True
