"""Derivations that are noted before they are added: by a path that one worker goes through, by parts of one, or of records.

Those of rows in recursion are items of the lists of whoever has noted them. Workers add them, each those of its rows.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Shared, Status
from dlog.engine.kernels.core.jit import inlined, kernel
from dlog.engine.kernels.core.memory import bit_length
from dlog.engine.kernels.incremental.loop.gathering import ITEM_WORDS
from dlog.engine.kernels.incremental.loop.settling import ROW
from dlog.engine.kernels.incremental.loop.supports import (
    add_support,
    begin_chains,
    count_derivations,
    enter_bucket,
    grow_buckets,
    schedule,
    warm_chain,
)
from dlog.engine.kernels.incremental.sharing.direct_rows import clear_made, clear_own
from dlog.engine.kernels.incremental.sharing.noted_rows import derive_noted, find_noted
from dlog.engine.kernels.incremental.sharing.parts import (
    NOTHING,
    SEVERAL,
    begin_notes,
    begin_step,
    bits_at,
    own_rows,
    whole_words,
)
from dlog.engine.kernels.incremental.store.bits import count_bits, put_bit
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.incremental.store.stocks import close_stocks, open_stocks
from dlog.engine.kernels.layout import STOCK
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Notes, Share
from dlog.engine.kernels.row_structs import List
from dlog.engine.kernels.static.storage import behind, scratch_block


@kernel
def begin_supports(ctl: Control, share: Share, count):
    """Before workers add so many derivations as their lists have; false with ctl.error set."""
    begin_step(ctl, share, Shared.SUPPORTS, share.collection)
    share.made = 0
    share.made_end = 0
    return open_stocks(ctl, share, share.collection.derivation.entries, count)


@kernel
def lists_of(share: Share):
    """How many lists there are of derivations: of a path that is divided one for each part, and one for whoever shares it and
    does no part; else that one alone, as who did parts may have begun something else."""
    if share.last == 0:
        return 1
    return share.part_count + (0 if share.parts[0] == share else 1)


@kernel
def list_at(share: Share, number) -> List:
    return share.parts[number].items if share.last != 0 and number < share.part_count else share.items


@kernel
def places_listed(share: Share):
    """How many places the derivations of all lists have: each list begins with a word of bits."""
    total = 0
    for number in range(lists_of(share)):
        total += whole_words(list_at(share, number).count)
    return total


@kernel
def add_part(ctl: Control, share: Share, part, parts):
    stock = behind(share.stocks, part * STOCK)
    notes = share.notes[part]
    if not begin_notes(ctl, notes, places_listed(share)):
        return False
    if not clear_own(ctl, share.collection, share.made, share.made_end, part, parts):
        return False
    before = 0
    for number in range(lists_of(share)):
        items = list_at(share, number)
        if not add_own(ctl, share, items, part, parts, stock, notes, before):
            return False
        before += whole_words(items.count)
    return True


@kernel
def add_own(ctl: Control, share: Share, items: List, part, parts, stock: Words, notes: Notes, before):
    """Adds derivations of a list, those whose rows are a part's, and notes which rows are to be looked at; there are so many
    places `before` the list's. False with ctl.error set."""
    collection = share.collection
    data = items.data
    own = scratch_block(ctl, 0)
    chains = scratch_block(ctl, 5)
    at = 0
    while at < items.count:
        n, at = own_rows(data, ITEM_WORDS, at, items.count, part, parts, own)
        for i in range(n):
            chains[i] = data[ITEM_WORDS * own[i]]
        begin_chains(collection, chains, n)
        for i in range(n):
            warm_chain(collection, chains, i, n)
            place = own[i]
            word = data[ITEM_WORDS * place]
            found = count_derivations(
                ctl, collection, word & ROW, word >> 32, data[ITEM_WORDS * place + 1], share, stock
            )
            if found < 0:
                return False
            if found > 0:
                note_place(notes, before + place, word >> 32)
    return True


@kernel
def note_place(notes: Notes, place, iteration):
    """Notes that the row in a place is to be looked at, at an iteration."""
    put_bit(notes.bits.data, place)
    notes.listed += 1
    if notes.iteration != iteration:
        notes.iteration = iteration if notes.iteration == NOTHING else SEVERAL


@kernel
def end_supports(ctl: Control, share: Share):
    """Has rows looked at whose derivations workers have added, or those listed that are. Returns a `Status`: BULK where workers
    are to list them."""
    if share.kind == Shared.SUPPORTS:
        count = count_listed(share)
        iteration = common_iteration(share)
        if count >= share.least and iteration >= 0:
            if not room_in_bucket(ctl, share.collection, iteration, count):
                return Status.FAILED
            share.kind = Shared.SUPPORT_NOTES
            share.iteration = iteration
            return Status.BULK
        if not schedule_all(ctl, share):
            return Status.FAILED
    else:
        share.collection.derivation.buckets[share.iteration].count += count_listed(share)
    for number in range(lists_of(share)):
        list_at(share, number).count = 0
    share.kind = Shared.NONE
    return Status.DONE if close_stocks(ctl, share, share.collection.derivation.entries) else Status.FAILED


@kernel
def count_listed(share: Share):
    """Of how many places parts have noted something."""
    count = 0
    for part in range(share.part_count):
        count += share.notes[part].listed
    return count


@kernel
def common_iteration(share: Share):
    """The iteration at which all rows are to be looked at of which parts have noted it, if it is one; else less than 0."""
    found = NOTHING
    for part in range(share.part_count):
        iteration = share.notes[part].iteration
        if iteration != NOTHING and iteration != found:
            found = iteration if found == NOTHING else SEVERAL
    return found


@kernel
def list_part(ctl: Control, share: Share, part, parts):
    """Lists those rows that are to be looked at whose places are in a part's stretch, behind those of the stretches before."""
    collection = share.collection
    words = places_listed(share) >> 6
    first = words * part // parts
    last = words * (part + 1) // parts
    bucket = collection.derivation.buckets[share.iteration]
    at = bucket.count
    for other in range(parts):
        at += count_bits(share.notes[other].bits.data, 0, first << 6)
    start = 0
    for number in range(lists_of(share)):
        items = list_at(share, number)
        size = whole_words(items.count) >> 6
        for word in range(max(first - start, 0), min(last - start, size)):
            bits = bits_at(share, start + word)
            while bits != 0:
                place = (word << 6) + bit_length(bits & -bits) - 1
                bits &= bits - 1
                bucket.data[at] = items.data[ITEM_WORDS * place] & ROW
                at += 1
        start += size
    return True


@kernel
def schedule_all(ctl: Control, share: Share):
    """Has those rows looked at of which parts have noted it; false with ctl.error set."""
    first = 0
    for number in range(lists_of(share)):
        items = list_at(share, number)
        if not schedule_noted(ctl, share, items, first):
            return False
        first += whole_words(items.count)
    return True


@kernel
def schedule_noted(ctl: Control, share: Share, items: List, first):
    """Has those rows of a list looked at of which parts have noted it, the list's first place being `first`; false with
    ctl.error set."""
    collection = share.collection
    for word in range((items.count + 63) >> 6):
        bits = bits_at(share, (first >> 6) + word)
        while bits != 0:
            at = (word << 6) + bit_length(bits & -bits) - 1
            bits &= bits - 1
            item = items.data[ITEM_WORDS * at]
            if not add_to_bucket(collection, item >> 32, item & ROW) and not schedule(ctl, collection, item >> 32, item & ROW):
                return False
    return True


@kernel
def room_in_bucket(ctl: Control, collection: Collection, iteration, count):
    """Makes room for so many more rows in the bucket of an iteration, which gets some; false with ctl.error set."""
    if iteration >= collection.derivation.bucket_count and not grow_buckets(ctl, collection, iteration + 1):
        return False
    bucket = collection.derivation.buckets[iteration]
    if bucket.count == 0 and not enter_bucket(ctl, collection, bucket, iteration):
        return False
    return list_room(ctl, bucket, count)


@inlined
def add_to_bucket(collection: Collection, iteration, row):
    """`schedule` where a bucket has rows, and room for one more."""
    derivation = collection.derivation
    if iteration >= derivation.bucket_count:
        return False
    bucket = derivation.buckets[iteration]
    count = bucket.count
    if count == 0 or count >= bucket.capacity:
        return False
    bucket.data[count] = row
    bucket.count = count + 1
    return True


@kernel
def add_alone(ctl: Control, collection: Collection, items: List):
    """Adds the derivations of a list that are too few to be shared; false with ctl.error set."""
    for i in range(items.count):
        word = items.data[ITEM_WORDS * i]
        if not add_support(ctl, collection, word & ROW, word >> 32, items.data[ITEM_WORDS * i + 1]):
            return False
    items.count = 0
    return True


@kernel
def take_noted(ctl: Control, share: Share, count):
    """After parts of a path have noted so many derivations. Returns a `Status`: BULK where workers are to add them."""
    collection = share.collection
    first = collection.rows
    for part in range(share.part_count):
        if not find_noted(ctl, share, share.parts[part]):
            return Status.FAILED
    # Of a fresh collection: new rows of others have been noted to be absent.
    made = collection.rows if collection.fresh != 0 else first
    if collection.scope and count >= share.least:
        if not begin_supports(ctl, share, count):
            return Status.FAILED
        share.made = first
        share.made_end = made
        return Status.BULK
    if not clear_made(ctl, collection, first, made):
        return Status.FAILED
    for part in range(share.part_count):
        own = share.parts[part]
        done = add_alone(ctl, collection, own.items) if collection.scope else derive_noted(ctl, share, own)
        if not done:
            return Status.FAILED
    return Status.DONE
