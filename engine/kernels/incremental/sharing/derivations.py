"""Derivations that are noted before they are added: by a path that one worker goes through, by parts of one, or of records.

Those of rows in recursion are items of the lists of whoever has noted them. Workers add them, each those of its rows.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Shared, Status
from dlog.engine.kernels.core.jit import inlined, kernel
from dlog.engine.kernels.core.memory import bit_length
from dlog.engine.kernels.incremental.loop.gathering import ITEM_WORDS, ROW_UNKNOWN
from dlog.engine.kernels.incremental.loop.settling import ROW
from dlog.engine.kernels.incremental.loop.supports import add_support, begin_chains, count_derivations, schedule, warm_chain
from dlog.engine.kernels.incremental.sharing.direct_rows import are_direct, find_direct_rows
from dlog.engine.kernels.incremental.sharing.parts import begin_notes, begin_step, bits_at, own_rows, whole_words
from dlog.engine.kernels.incremental.store.bits import put_bit
from dlog.engine.kernels.incremental.store.collections import find_or_add
from dlog.engine.kernels.incremental.store.direct import prefetch_direct
from dlog.engine.kernels.incremental.store.lists import push_change
from dlog.engine.kernels.incremental.store.slots import hash_values, warm_slot
from dlog.engine.kernels.incremental.store.stocks import close_stocks, open_stocks
from dlog.engine.kernels.layout import DERIVED_ROW_WORDS, STOCK
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.row_structs import List
from dlog.engine.kernels.static.storage import behind, scratch_block

ROWS_AHEAD = 16
"""New rows of a part whose slots are asked for before they are looked for."""


# ----------------------------------------------------------------------------------------------------------------- rows


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


@kernel
def begin_supports(ctl: Control, share: Share, count):
    """Before workers add so many derivations as their lists have; false with ctl.error set."""
    begin_step(ctl, share, Shared.SUPPORTS, share.collection)
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
    before = 0
    for number in range(lists_of(share)):
        items = list_at(share, number)
        if not add_own(ctl, share, items, part, parts, stock, notes.bits.data, before):
            return False
        before += whole_words(items.count)
    return True


@kernel
def add_own(ctl: Control, share: Share, items: List, part, parts, stock: Words, bits: Words, before):
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
                put_bit(bits, before + place)
    return True


@kernel
def end_supports(ctl: Control, share: Share):
    """Has rows looked at whose derivations workers have added; false with ctl.error set."""
    share.kind = Shared.NONE
    collection = share.collection
    first = 0
    for number in range(lists_of(share)):
        items = list_at(share, number)
        if not schedule_noted(ctl, share, items, first):
            return False
        first += whole_words(items.count)
        items.count = 0
    return close_stocks(ctl, share, collection.derivation.entries)


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
    for part in range(share.part_count):
        own = share.parts[part]
        if not find_noted(ctl, share, own) or not derive_noted(ctl, share, own):
            return Status.FAILED
    if not collection.scope:
        return Status.DONE
    if count >= share.least:
        return Status.BULK if begin_supports(ctl, share, count) else Status.FAILED
    for part in range(share.part_count):
        if not add_alone(ctl, collection, share.parts[part].items):
            return Status.FAILED
    return Status.DONE
