"""The end of a round of a recursive scope: the derivations of the rows that it has touched settle, and net changes go out.

What becomes of a row is noted first; whoever goes on does the rest, in the order of the rows.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import inlined, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.changes import log_fresh
from dlog.engine.kernels.incremental.loop.distinct import begin_rows, bound_of, warm_row
from dlog.engine.kernels.incremental.loop.supports import may_hold, support_at
from dlog.engine.kernels.incremental.store.bits import clear_bit, get_bit, put_bit
from dlog.engine.kernels.incremental.store.histories import add_entry, chain_entry, drop_entries, warm_history
from dlog.engine.kernels.incremental.store.history_items import close_item, item_of, open_item
from dlog.engine.kernels.incremental.store.lists import list_empty, list_push, pool_give, push_change
from dlog.engine.kernels.incremental.store.stocks import give_stocked
from dlog.engine.kernels.layout import BLOCK, NEVER
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.row_structs import History
from dlog.engine.kernels.static.storage import behind, scratch_block

ROW = 0x7FFFFFFF
"""Bits of a word that are the number of a row."""
LOGGED, LISTED, LEFT = 1, 2, 4
"""What is to be done about a row: its change is logged, it is listed as touched or as maybe dead, or there is more."""
DIFF = 32
"""The bits of a note from here on are the row's change; there are others' flags before."""
_FLIPS, _HISTORY, _OUTER, _SHOWN = 8, 16, 32, 64
"""What more: it is present at iterations that are apart, its history is to be written, or the one that other scopes see, or
there only a bit."""
_HALF = 0xFFFFFFFF


@kernel
def end_distinct(ctl: Control, collection: Collection, time):
    """Ends a round: counts settle, rows keep when they are present, and net changes go out; false with ctl.error set."""
    touched = collection.touched
    note = scratch_block(ctl, 0)
    for first in range(0, touched.count, BLOCK):
        n = min(BLOCK, touched.count - first)
        rows = behind(touched.data, first)
        begin_rows(ctl, collection, rows, n, NEVER)
        for i in range(n):
            warm_row(ctl, collection, rows, i, n)
            found = settle_derivations(ctl, collection, rows[i], note, Words(0))
            if found < 0 or (found > 0 and not end_row(ctl, collection, note, time)):
                return False
    list_empty(ctl, touched)
    log_fresh(collection)
    return True


@inlined
def settle_derivations(ctl: Control, collection: Collection, row, note: Words, stock: Words):
    """Settles the derivations of a row that a round has touched: 1 if something is to be done about it, which is noted with the
    iteration from which on it is present, plus one, and its change; 0 if not, or -1 with ctl.error set. Entries without
    derivations go to the worker's stock, if it has one."""
    bound = bound_of(collection, row)
    old = 0
    new = 0
    flips = 0
    only = -1
    at = collection.derivation.support[row]
    while at != 0:
        entry = support_at(collection, at)
        word = entry.at
        was = new > bound
        old += entry.old
        new += entry.new
        if not may_hold(ctl, new):
            return -1
        if was != (new > bound):
            flips += 1
            only = word & _HALF
        at = word >> 32
    settle_supports(collection, row, stock)
    was = old > bound
    here = new > bound
    flags = note_iteration(collection, row, flips, only) | note_presence(collection, row, was, here)
    note[0] = row | ((only + 1) << 32)
    note[1] = flags | ((1 if here else 0) - (1 if was else 0)) << DIFF
    return 1 if flags != 0 else 0


@inlined
def settle_supports(collection: Collection, row, stock: Words):
    """What derivations a row has is what it had before; entries without any are freed."""
    heads = collection.derivation.support
    pool = collection.derivation.entries
    before = 0
    at = heads[row]
    while at != 0:
        entry = support_at(collection, at)
        following = entry.at >> 32
        entry.old = entry.new
        if entry.new != 0:
            before = at
        else:
            if before == 0:
                heads[row] = following
            else:
                previous = support_at(collection, before)
                previous.at = (previous.at & _HALF) | (following << 32)
            if stock:
                give_stocked(stock, pool, at - 1)
            else:
                pool_give(pool, at - 1)
        at = following


@inlined
def note_iteration(collection: Collection, row, flips, only):
    """Notes the iteration from which on a row is present, or that there is none, if that is all. Returns the flags of what is
    left."""
    inner = collection.inner
    if flips > 1:
        return LEFT | _FLIPS
    if get_bit(inner.bits, row) != 0 or (flips == 0 and collection.read_between_rounds == 0):
        return LEFT | _HISTORY
    inner.iters[row] = only if flips == 1 else NEVER
    return 0


@inlined
def note_presence(collection: Collection, row, was, here):
    """Flags of what is to be done about a row that was present, or is, outside of its scope."""
    flags = 0 if here else LISTED
    changes = was != here
    if changes and collection.fresh == 0:
        flags |= LOGGED
    # All rows of a fresh collection count as its changes (`log_fresh`): one that appears has been said to be absent, or not.
    seen = collection.fresh == 0 or get_bit(collection.outer.bits, row) != 0
    if not here or (changes and seen):
        flags |= _SHOWN if collection.no_readers != 0 else LEFT | _OUTER
    return flags


@kernel
def end_row(ctl: Control, collection: Collection, note: Words, time):
    """Does what is to be done about a row that a round has touched; false with ctl.error set."""
    row = note[0] & ROW
    flags = note[1]
    # What has changed without being logged could not be taken back.
    if flags & LOGGED != 0 and not push_change(ctl, collection.log, row, time, flags >> DIFF, 0):
        return False
    show_row(collection, row, flags)
    if flags & LISTED != 0 and not list_push(ctl, collection.maybe_dead, row):
        return False
    return flags & LEFT == 0 or end_left(ctl, collection, note, time)


@inlined
def show_row(collection: Collection, row, flags):
    """Notes whether a row is present, where no path looks it up."""
    if flags & _SHOWN != 0:
        if flags & LISTED != 0:
            put_bit(collection.outer.bits, row)
        else:
            clear_bit(collection.outer.bits, row)


@kernel
def end_left(ctl: Control, collection: Collection, note: Words, time):
    """Does what is left about a row, in its histories; false with ctl.error set."""
    row = note[0] & ROW
    flags = note[1]
    if flags & (_FLIPS | _HISTORY) != 0:
        drop_inner(collection.inner, row)
        if flags & _FLIPS != 0:
            done = write_flips(ctl, collection, row)
        else:
            only = (note[0] >> 32) - 1
            done = settle_inner(collection.inner, row, only) if only >= 0 else absent_inner(ctl, collection, row)
        if not done:
            return False
    return flags & _OUTER == 0 or end_outer(ctl, collection.outer, row, time, flags)


@kernel
def end_outer(ctl: Control, outer: History, row, time, flags):
    """Notes the change of a row for other scopes, and that one that is absent may have been; false with ctl.error set."""
    diff = flags >> DIFF
    if diff != 0 and not add_entry(ctl, outer, row, time, diff):
        return False
    return flags & LISTED == 0 or get_bit(outer.bits, row) != 0 or open_item(ctl, outer, row).address != 0


@kernel
def write_flips(ctl: Control, collection: Collection, row):
    """Writes at which iterations a row whose derivations have settled becomes present, and absent; false with ctl.error set."""
    bound = bound_of(collection, row)
    new = 0
    flips = 0
    first = 0
    at = collection.derivation.support[row]
    while at != 0:
        entry = support_at(collection, at)
        was = new > bound
        new += entry.new
        if was != (new > bound):
            flips += 1
            if flips == 1:
                first = entry.at & _HALF
            elif not add_flip(ctl, collection.inner, row, flips, first, entry.at & _HALF):
                return False
        at = entry.at >> 32
    return True


@kernel
def warm_left(collection: Collection, note: Words):
    """Asks for the history of a row about which something is left."""
    if note[1] & (_FLIPS | _HISTORY) != 0:
        warm_history(collection.inner, note[0] & ROW)
    prefetch(collection.outer.bits.address + ((note[0] & ROW) >> 6) * 8)


@kernel
def drop_inner(history: History, row):
    """Frees a row's entries, if it has any; its item stays."""
    if get_bit(history.bits, row) != 0:
        drop_entries(history, item_of(history, row))


@kernel
def add_flip(ctl: Control, history: History, row, flips, first, iteration):
    """Writes the second and later changes of a row's presence along its iterations; false with ctl.error set."""
    if flips == 2:
        if get_bit(history.bits, row) == 0 and not open_item(ctl, history, row):
            return False
        if not chain_entry(ctl, history, item_of(history, row), first, 1):
            return False
    return chain_entry(ctl, history, item_of(history, row), iteration, -1 if flips % 2 == 0 else 1)


@kernel
def settle_inner(history: History, row, iteration):
    """The row is present from an iteration on: it needs no item."""
    if get_bit(history.bits, row) != 0:
        close_item(history, row)
    history.iters[row] = iteration
    return True


@kernel
def absent_inner(ctl: Control, collection: Collection, row):
    """The row is present at no iteration: an item without entries, or, where no entries are made, no iteration. False with
    ctl.error set."""
    inner = collection.inner
    if collection.read_between_rounds != 0:
        return settle_inner(inner, row, NEVER)
    return get_bit(inner.bits, row) != 0 or open_item(ctl, inner, row).address != 0
