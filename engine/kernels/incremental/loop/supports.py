"""Derivations of rows at iterations (partial model): how many there are, and when their rows are looked at.

A row keeps its count per iteration, before (old) and after (new) the round that is running; where one changes, the row is
entered in the bucket of the iteration.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Error
from dlog.engine.kernels.core.jit import entry, inlined, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.lists import list_push, list_room, pool_take
from dlog.engine.kernels.incremental.store.stocks import take_stocked
from dlog.engine.kernels.layout import SUM_MOST
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Bucket, Buckets, Collection, Collections, Control, Scope, Share
from dlog.engine.kernels.row_structs import List, Support
from dlog.engine.kernels.static.storage import clear_words, resize

ROWS_AHEAD = 32
"""Rows of a bucket that are asked for before they are looked at."""
ENTRIES_AHEAD, CHAINS_AHEAD = 4, 12
"""Entries of a row's derivations that are asked for before the first is looked at, and rows between two of these steps."""
_HALF = 0xFFFFFFFF


@kernel
def schedule(ctl: Control, collection: Collection, iteration, row):
    """Notes that a row must be looked at, at an iteration; false with ctl.error set."""
    if iteration >= collection.derivation.bucket_count and not grow_buckets(ctl, collection, iteration + 1):
        return False
    bucket = collection.derivation.buckets[iteration]
    count = bucket.count
    if count == 0 and not enter_bucket(ctl, collection, bucket, iteration):
        return False
    if not list_room(ctl, bucket, 1):
        return False
    bucket.data[count] = row
    bucket.count = count + 1
    return True


@kernel
def enter_bucket(ctl: Control, collection: Collection, bucket: Bucket, iteration):
    """Notes that a collection has rows to look at, at an iteration; false with ctl.error set."""
    scope = collection.scope
    known = scope.head_count
    if iteration >= known:
        new = max(iteration + 1, known + (known >> 1), 64)
        moved = Words(resize(ctl, scope.heads.address, known * 8, new * 8))
        if not moved:
            return False
        for at in range(known, new):
            moved[at] = 0
        scope.heads = Collections(moved)
        scope.head_count = new
    heads = scope.heads
    bucket.next = heads[iteration]
    heads[iteration] = collection
    return mark_iteration(ctl, scope, iteration)


@kernel
def grow_buckets(ctl: Control, collection: Collection, wanted):
    old = collection.derivation.bucket_count
    new = max(wanted, old + (old >> 1), 16)
    moved = resize(ctl, collection.derivation.buckets.address, old * List.size, new * List.size)
    if moved == 0:
        return False
    collection.derivation.buckets = Buckets(moved)
    collection.derivation.bucket_count = new
    for number in range(old, new):
        clear_words(Words(collection.derivation.buckets[number].address), List.size >> 3)
        collection.derivation.buckets[number].words = 1
    return True


@entry()
def mark_iteration(ctl: Control, scope: Scope, iteration):
    """Notes that some collection of the scope has something to do at an iteration."""
    words = scope.bit_words
    if iteration >> 6 >= words:
        new = max((iteration >> 6) + 1, words + (words >> 1), 8)
        moved = Words(resize(ctl, scope.bits.address, words * 8, new * 8))
        if not moved:
            return False
        for word in range(words, new):
            moved[word] = 0
        scope.bits = moved
        scope.bit_words = new
    bits = scope.bits
    bits[iteration >> 6] |= 1 << (iteration & 63)
    if iteration > scope.last:
        scope.last = iteration
    return True


@kernel
def support_at(collection: Collection, number) -> Support:
    """Address of a support entry by its number plus one."""
    return collection.derivation.entries.data[number - 1]


@inlined
def chain_of(row, iteration):
    """A row whose derivations are looked at soon (`warm_chain`), up to those of an iteration or, where there are none, behind
    it."""
    return row | (iteration << 32)


@kernel
def begin_chains(collection: Collection, chains: Words, n):
    """Before the derivations of n rows (`chain_of`) are looked at, each with `warm_chain`: asks for those of the first. What
    `chains` has is lost."""
    if n < 2:
        return
    for i in range(min(n, (ENTRIES_AHEAD + 1) * CHAINS_AHEAD)):
        warm_head(collection, chains, i)
    for i in range(min(n, ENTRIES_AHEAD * CHAINS_AHEAD)):
        warm_first(collection, chains, i)
    for step in range(ENTRIES_AHEAD - 1, 0, -1):
        left = 0
        for i in range(min(n, step * CHAINS_AHEAD)):
            warm_next(collection, chains, i)
            left |= chains[i] & _HALF
        if left == 0:
            break


@inlined
def warm_chain(collection: Collection, chains: Words, at, n):
    """While the derivations of a row are looked at, asks for those of rows behind it, step by step, as each entry says where
    the next one is: the nearer a row, the more of its entries are there."""
    if at + CHAINS_AHEAD < n:
        warm_chains(collection, chains, at, n)


@kernel
def warm_chains(collection: Collection, chains: Words, at, n):
    """`warm_chain` where there are rows to ask for."""
    ahead = at + (ENTRIES_AHEAD + 1) * CHAINS_AHEAD
    if ahead < n:
        warm_head(collection, chains, ahead)
    ahead -= CHAINS_AHEAD
    if ahead < n:
        warm_first(collection, chains, ahead)
    for _ in range(ENTRIES_AHEAD - 1):
        ahead -= CHAINS_AHEAD
        if ahead < n:
            warm_next(collection, chains, ahead)


@inlined
def warm_head(collection: Collection, chains: Words, i):
    prefetch(collection.derivation.support.address + (chains[i] & _HALF) * 4)


@inlined
def warm_first(collection: Collection, chains: Words, i):
    """Asks for the first entry of a row, which takes the row's place in its chain."""
    chain = chains[i]
    number = collection.derivation.support[chain & _HALF]
    warm_entry(collection, number)
    chains[i] = number | (chain >> 32 << 32)


@inlined
def warm_next(collection: Collection, chains: Words, i):
    """Asks for the entry behind one, if the search goes on there. One that has been freed meanwhile has none behind it."""
    chain = chains[i]
    if chain & _HALF != 0:
        word = support_at(collection, chain & _HALF).at
        following = word >> 32 if word & _HALF < chain >> 32 else 0
        warm_entry(collection, following)
        chains[i] = following | (chain >> 32 << 32)


@inlined
def warm_entry(collection: Collection, number):
    """Asks for an entry by its number plus one, which may lie in two lines; 0: for none."""
    address = support_at(collection, number).address
    prefetch(address)
    prefetch(address + Support.size - 8)


@kernel
def may_hold(ctl: Control, count):
    """Whether derivations are so few, or weigh so little, that sums of two such counts are right; false with ctl.error set."""
    if -SUM_MOST <= count <= SUM_MOST:
        return True
    ctl.error = Error.SUM
    return False


@kernel
def add_support(ctl: Control, collection: Collection, row, iteration, diff):
    """Adds derivations of a row at an iteration and sees to it that it is looked at then; false with ctl.error set."""
    found = count_derivations(ctl, collection, row, iteration, diff, Share(0), Words(0))
    return found == 0 or (found > 0 and schedule(ctl, collection, iteration, row))


@inlined
def count_derivations(ctl: Control, collection: Collection, row, iteration, diff, share: Share, stock: Words):
    """Adds derivations of a row at an iteration: 1 if it is to be looked at then, 0 if it is so already, -1 with ctl.error set.
    The entries of a row ascend; new ones come from the worker's stock, if it has one.

    In a scope that grows counts settle at once, and only a row's first derivation matters: there it appears."""
    growing = collection.scope.growing != 0
    heads = collection.derivation.support
    before = 0
    at = heads[row]
    while at != 0:
        word = support_at(collection, at).at
        if word & 0xFFFFFFFF >= iteration:
            break
        before = at
        at = word >> 32
    if at != 0:
        entry = support_at(collection, at)
        if entry.at & 0xFFFFFFFF == iteration:
            count = entry.new
            if not may_hold(ctl, count + diff):
                return -1
            entry.new = count + diff
            if growing:
                entry.old = count + diff
                return 0
            return 1 if count == entry.old else 0
    pool = collection.derivation.entries
    number = (take_stocked(share, stock, pool) if stock else pool_take(ctl, pool)) + 1
    if number == 0:
        return -1
    entry = support_at(collection, number)
    entry.at = iteration | (at << 32)
    entry.old = diff if growing else 0
    entry.new = diff
    if before == 0:
        heads[row] = number
        return 1
    previous = support_at(collection, before)
    previous.at = (previous.at & 0xFFFFFFFF) | (number << 32)
    return 0 if growing else 1


@kernel
def gather_bucket(ctl: Control, scope: Scope, collection: Collection, iteration):
    """Leaves each row of a bucket once at its front; returns how many, -1 on error.

    Rows met for the first time in this round are noted as touched."""
    tick = scope.tick
    round_tick = scope.round_tick
    stamps = collection.stamps
    touched = collection.touched
    heads = collection.derivation.support
    bucket = collection.derivation.buckets[iteration]
    data = bucket.data
    count = bucket.count
    rows = 0
    for i in range(count):
        if i + ROWS_AHEAD < count:
            prefetch(stamps.address + data[i + ROWS_AHEAD] * 4)
            prefetch(heads.address + data[i + ROWS_AHEAD] * 4)
        row = data[i]
        stamp = stamps[row]
        if stamp < round_tick and not list_push(ctl, touched, row):
            return -1
        if stamp != tick:
            stamps[row] = tick
            data[rows] = row
            rows += 1
    return rows
