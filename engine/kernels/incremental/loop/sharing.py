"""Steps of a recursive scope that several workers do together: adding derivations, and finding out which rows change.

Whoever runs the scope stops before such a step with `Status.BULK`; when it goes on, all parts have run. Each row, with all that
is noted of it, belongs to one part. So workers write without asking each other, but for items of a pool (stocks.py). What goes
into lists, and what is rare, they leave to the one that goes on, which does it in the order of the rows: everything is as if
there were one worker.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Error, Gathers, Shared, Status
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.activation import touch_derived
from dlog.engine.kernels.incremental.loop.changes import announce, doom, log_fresh
from dlog.engine.kernels.incremental.loop.distinct import (
    TOO_LARGE,
    absent_inner,
    bound_of,
    change_at,
    drop_inner,
    end_row,
    settle_inner,
    warm_support,
)
from dlog.engine.kernels.incremental.loop.gathering import ROW_UNKNOWN
from dlog.engine.kernels.incremental.loop.running import start_changes
from dlog.engine.kernels.incremental.loop.supports import add_support, count_derivations, schedule, support_at
from dlog.engine.kernels.incremental.store.collections import find_or_add
from dlog.engine.kernels.incremental.store.direct import prefetch_direct
from dlog.engine.kernels.incremental.store.histories import add_entry, get_bit
from dlog.engine.kernels.incremental.store.lists import list_empty, list_push, list_room, push_change
from dlog.engine.kernels.incremental.store.slots import hash_values, warm_slot
from dlog.engine.kernels.incremental.store.stocks import clear_stocks, close_stocks, give_stocked, open_stocks, return_stocked
from dlog.engine.kernels.layout import BLOCK, FOUND_WORDS, NEVER, STOCK, SUM_MOST
from dlog.engine.kernels.machine import run_path
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Path, Share
from dlog.engine.kernels.static.storage import behind, scratch_block

_ROW = 0x7FFFFFFF
_MARK = 1 << 31
"""Of a derivation: its row is to be looked at."""
_WHOLE, _HISTORY, _OLD, _NEW = 1, 2, 4, 8
"""Of a row that a round has touched: nothing is done yet; its history is left; it was present before; it is after the round."""
_DONE = -1
CHUNK = 1 << 15
"""Changes of a path that are shared at first."""
MOST = 1 << 19
"""Rows, about, that a part of a path may make; where it makes a quarter of them, the next step has no more changes."""
AHEAD = 16
"""New rows of a part whose slots are asked for before they are looked for."""
_FIRST, _NOTED, _FLAGS = 1, 2, 2
"""Of a bucket's row: it was not touched in this round before; its history knows. The bits below its change."""


@kernel
def part_of(row, parts):
    """To which part a row belongs. Its neighbours belong there, too: parts share no cache line, nor a word of bits."""
    return ((((row >> 6) * 40503) & 0xFFFF) * parts) >> 16


@kernel
def own_rows(rows: Words, step, first, last, part, parts, own: Words):
    """Lists, up to a block, the places of a part's rows among places [first, last) of rows that are so many words apart.
    Returns how many there are, and the first place that has not been looked at."""
    n = 0
    at = first
    while at < last and n < BLOCK:
        if part_of(rows[at * step] & _ROW, parts) == part:
            own[n] = at
            n += 1
        at += 1
    return n, at


@entry()
def run_part(share: Share, ctl: Control, part, parts):
    """Does a part of the step at hand; false with ctl.error set."""
    if share.kind == Shared.PATH:
        return follow_part(ctl, share, part, parts)
    ctl.run_path = share.path
    if share.kind == Shared.SUPPORTS:
        return add_part(ctl, share, part, parts)
    if share.kind == Shared.BUCKET:
        return evaluate_part(ctl, share, part, parts)
    return settle_part(ctl, share, part, parts)


@kernel
def begin_step(ctl: Control, share: Share, kind, collection: Collection):
    share.kind = kind
    share.collection = collection
    share.path = ctl.run_path


# ------------------------------------------------------------------------------------------------------------------ path


@kernel
def begin_sharing(share: Share, first, last):
    """Before workers divide changes [first, last) of a path among them."""
    share.next = first
    share.end = first
    share.last = last
    share.chunk = CHUNK


@kernel
def begin_part(ctl: Control, share: Share, path: Path):
    """Before workers go through the next changes of a path."""
    begin_step(ctl, share, Shared.PATH, path.target)
    share.path = path
    share.end = min(share.last, share.next + share.chunk)


@kernel
def follow_part(ctl: Control, share: Share, part, parts):
    """Runs the path over a part of the changes. Where it finds more than it may, or memory does not suffice, it gives up:
    nobody knows before what comes of a change. False with ctl.error set."""
    own = ctl.share
    own.found.count = 0
    own.values.count = 0
    own.gathers = Gathers.ROWS
    changes = share.end - share.next
    start_changes(share.path, ctl, share.next + changes * part // parts, share.next + changes * (part + 1) // parts)
    work = ctl.work
    budget = ctl.budget
    ctl.work = 0
    ctl.budget = MOST
    own.status = run_path(share.path, ctl)
    own.made = ctl.work
    ctl.work = work
    ctl.budget = budget
    own.gathers = Gathers.NOTHING
    if own.status == Status.FAILED and ctl.error == Error.MEMORY:
        ctl.error = Error.NONE
        own.status = Status.YIELD
    return own.status != Status.FAILED


@kernel
def end_part(ctl: Control, share: Share):
    """After workers have gone through changes of a path. Returns whether their rows are derived now: DONE; BULK where workers
    are to add the derivations; YIELD where a part has given up, and nothing has been done; or FAILED."""
    share.kind = Shared.NONE
    for part in range(share.part_count):
        if share.parts[part].status != Status.DONE:
            share.chunk >>= 2
            return Status.YIELD
    rows = 0
    most = 0
    for part in range(share.part_count):
        other = share.parts[part]
        rows += other.found.count
        most = max(most, other.made)
        ctl.work += other.made
    if most * 4 < MOST:
        share.chunk <<= 1
    share.next = share.end
    if rows == 0:
        return Status.DONE
    touch_derived(ctl, share.collection)
    for part in range(share.part_count):
        if not take_found(ctl, share, share.parts[part]):
            return Status.FAILED
    if share.items.count >= share.least:
        return Status.BULK if begin_supports(ctl, share) else Status.FAILED
    return Status.DONE if add_alone(ctl, share) else Status.FAILED


@kernel
def take_found(ctl: Control, share: Share, other: Share):
    """Derives the rows that a part has found, or notes their derivations; false with ctl.error set."""
    collection = share.collection
    arity = collection.arity
    values = other.values.data
    for i in range(other.found.count):
        found = behind(other.found.data, i * FOUND_WORDS)
        row = found[0] & _ROW
        if row == ROW_UNKNOWN:
            ahead = behind(values, AHEAD * arity)
            if ahead.address < behind(other.values.data, other.values.count).address:
                warm_values(collection, ahead, arity)
            row = find_or_add(ctl, collection, values, hash_values(values, arity))
            if row < 0:
                return False
            values = behind(values, arity)
        if not derive_found(ctl, share, row, found):
            return False
    return True


@kernel
def warm_values(collection: Collection, values: Words, arity):
    """Asks for where a row with these values will be found."""
    if collection.direct.count != 0:
        prefetch_direct(collection, values[0])
    elif collection.slot_homes.count > 0:
        warm_slot(collection, hash_values(values, arity))


@kernel
def derive_found(ctl: Control, share: Share, row, found: Words):
    """`take_found` of a row; false with ctl.error set."""
    collection = share.collection
    if collection.scope:
        items = share.items
        if not list_room(ctl, items, 1):
            return False
        item = behind(items.data, items.count * 2)
        item[0] = row | (found[0] >> 32 << 32)
        item[1] = found[1]
        items.count += 1
        return True
    if collection.fresh != 0:
        collection.derivation.counts[row] += found[1]
        return True
    return push_change(ctl, collection.derivation.derived, row, found[2], found[1], 0)


# -------------------------------------------------------------------------------------------------------------- supports


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
            prefetch(heads.address + (items[2 * own[i]] & _ROW) * 4)
        for i in range(n):
            number = heads[items[2 * own[i]] & _ROW]
            if number > 0:
                prefetch(support_at(collection, number).address)
        for i in range(n):
            place = 2 * own[i]
            word = items[place]
            found = count_derivations(ctl, collection, word & _ROW, word >> 32, items[place + 1], share, stock)
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
        if word & _MARK != 0 and not schedule(ctl, collection, word >> 32, word & _ROW):
            return False
    share.items.count = 0
    return close_stocks(ctl, share, collection.derivation.entries)


@kernel
def add_alone(ctl: Control, share: Share):
    """Adds derivations noted that are too few to be shared; false with ctl.error set."""
    items = share.items.data
    for i in range(share.items.count):
        word = items[2 * i]
        if not add_support(ctl, share.collection, word & _ROW, word >> 32, items[2 * i + 1]):
            return False
    share.items.count = 0
    return True


# ---------------------------------------------------------------------------------------------------------------- bucket


@kernel
def begin_bucket(ctl: Control, share: Share, collection: Collection, iteration, time):
    """Before workers look at the rows of a bucket; false with ctl.error set."""
    begin_step(ctl, share, Shared.BUCKET, collection)
    share.iteration = iteration
    share.time = time
    return list_room(ctl, share.items, collection.derivation.buckets[iteration].count)


@kernel
def evaluate_part(ctl: Control, share: Share, part, parts):
    """Writes, for each row of the bucket, itself with where it is to be looked at again, and its change; or _DONE."""
    collection = share.collection
    bucket = collection.derivation.buckets[share.iteration]
    found = share.items.data
    own = scratch_block(ctl, 0)
    stamps = collection.stamps
    heads = collection.derivation.support
    at = 0
    while at < bucket.count:
        n, at = own_rows(bucket.data, 1, at, bucket.count, part, parts, own)
        for i in range(n):
            row = bucket.data[own[i]]
            prefetch(stamps.address + row * 4)
            prefetch(heads.address + row * 4)
        for i in range(n):
            warm_support(collection, bucket.data[own[i]])
        for i in range(n):
            if not evaluate_shared(ctl, share, bucket.data[own[i]], behind(found, 2 * own[i])):
                return False
    return True


@kernel
def evaluate_shared(ctl: Control, share: Share, row, found: Words):
    """`evaluate_part` of a row; false with ctl.error set."""
    collection = share.collection
    scope = collection.scope
    stamp = collection.stamps[row]
    if stamp == scope.tick:
        found[0] = _DONE
        return True
    collection.stamps[row] = scope.tick
    out, later = change_at(ctl, collection, row, share.iteration)
    if later == TOO_LARGE:
        return False
    flags = out << _FLAGS
    if stamp < scope.round_tick:
        flags |= _FIRST
    inner = collection.inner
    if out == 1 and share.time >= inner.base and get_bit(inner.bits, row) == 0 and inner.iters[row] == NEVER:
        inner.iters[row] = share.time - inner.base
        flags |= _NOTED
    found[0] = row | ((later + 1) << 32)
    found[1] = flags
    return True


@kernel
def end_bucket(ctl: Control, share: Share):
    """Makes changes of what workers have found out about a bucket's rows; false with ctl.error set."""
    share.kind = Shared.NONE
    collection = share.collection
    bucket = collection.derivation.buckets[share.iteration]
    for i in range(bucket.count):
        found = behind(share.items.data, 2 * i)
        if found[0] != _DONE and not change_row(ctl, share, found[0] & _ROW, (found[0] >> 32) - 1, found[1]):
            return False
    list_empty(ctl, bucket)
    return True


@kernel
def change_row(ctl: Control, share: Share, row, later, flags):
    collection = share.collection
    if flags & _FIRST != 0 and not list_push(ctl, collection.touched, row):
        return False
    if later >= 0 and not schedule(ctl, collection, later, row):
        return False
    out = flags >> _FLAGS
    if out == 0:
        return True
    if flags & _NOTED == 0 and not add_entry(ctl, collection.inner, row, share.time, out):
        return False
    return push_change(ctl, collection.inner_log, row, share.time, out, 0)


# ----------------------------------------------------------------------------------------------------------------- round


@kernel
def begin_settling(ctl: Control, share: Share, collection: Collection):
    """Before workers settle the rows that a round has touched; false with ctl.error set."""
    begin_step(ctl, share, Shared.ROUND, collection)
    clear_stocks(share)
    return list_room(ctl, share.items, collection.touched.count)


@kernel
def settle_part(ctl: Control, share: Share, part, parts):
    """Settles the derivations of touched rows, and writes for each of them what is left to be done."""
    collection = share.collection
    touched = collection.touched
    stock = behind(share.stocks, part * STOCK)
    own = scratch_block(ctl, 0)
    heads = collection.derivation.support
    at = 0
    while at < touched.count:
        n, at = own_rows(touched.data, 1, at, touched.count, part, parts, own)
        for i in range(n):
            prefetch(heads.address + touched.data[own[i]] * 4)
        for i in range(n):
            warm_support(collection, touched.data[own[i]])
        for i in range(n):
            settle_shared(collection, touched.data[own[i]], behind(share.items.data, 2 * own[i]), stock)
    return True


@kernel
def settle_shared(collection: Collection, row, left: Words, stock: Words):
    """`settle_part` of a row: writes _DONE, or the row, with the iteration from which on it is present, plus one, and what is
    to be done with it."""
    bound = bound_of(collection, row)
    old = 0
    new = 0
    flips = 0
    only = -1
    large = False
    at = collection.derivation.support[row]
    while at != 0:
        entry = support_at(collection, at)
        word = entry.at
        was = new > bound
        old += entry.old
        new += entry.new
        large = large or not -SUM_MOST <= new <= SUM_MOST
        if was != (new > bound):
            flips += 1
            only = word & 0xFFFFFFFF
        at = word >> 32
    left[0] = row
    left[1] = _WHOLE
    if large or flips > 1:
        return
    settle_supports(collection, row, stock)
    inner = collection.inner
    plain = get_bit(inner.bits, row) == 0 and flips == 1
    if plain:
        inner.iters[row] = only
    seen = collection.fresh == 0 or get_bit(collection.outer.bits, row) != 0
    left[0] = row | ((only + 1) << 32)
    left[1] = (0 if plain else _HISTORY) | (_OLD if old > bound else 0) | (_NEW if new > bound else 0)
    if plain and new > bound and (old > bound or not seen):
        left[0] = _DONE


@kernel
def settle_supports(collection: Collection, row, stock: Words):
    """What derivations a row has is what it had before; entries without any are freed."""
    heads = collection.derivation.support
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
                previous.at = (previous.at & 0xFFFFFFFF) | (following << 32)
            give_stocked(stock, collection.derivation.entries, at - 1)
        at = following


@kernel
def end_settling(ctl: Control, share: Share):
    """Does what workers have left of the rows that a round has touched; false with ctl.error set."""
    share.kind = Shared.NONE
    collection = share.collection
    touched = collection.touched
    for i in range(touched.count):
        left = behind(share.items.data, 2 * i)
        if left[0] != _DONE and not end_left(ctl, collection, left[0] & _ROW, (left[0] >> 32) - 1, left[1]):
            return False
    return_stocked(share, collection.derivation.entries)
    list_empty(ctl, touched)
    log_fresh(collection)
    return True


@kernel
def end_left(ctl: Control, collection: Collection, row, only, flags):
    """Does what a worker has left of a row that is present from an iteration on, or at none (-1); false with ctl.error set."""
    time = collection.scope.round
    if flags & _WHOLE != 0:
        return end_row(ctl, collection, row, time)
    if flags & _HISTORY != 0:
        inner = collection.inner
        drop_inner(inner, row)
        done = settle_inner(inner, row, only) if only >= 0 else absent_inner(ctl, inner, row)
        if not done:
            return False
    was = flags & _OLD != 0
    here = flags & _NEW != 0
    if was != here and not announce(ctl, collection, row, time, 1 if here else -1):
        return False
    return here or doom(ctl, collection, row)
