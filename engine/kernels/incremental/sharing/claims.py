"""What parts of a path have found for a fresh collection: workers find its rows by their values, each those of some hashes.

A part notes what it finds as records of RECORD_WORDS words and the values, without looking for rows, and divides them by the
first bits of their hashes, as words of half a hash and the record's number. As homes are in the order of hashes, each worker
then has a stretch of the table of slots for itself, and goes through it division by division, in memory that the cache holds.
(Partitioned hashing, as in divisions.py.)

Of records with the same values the first one claims a slot, for a number that nobody else has. When all have claimed theirs,
rows are numbered in the order of the records, as if one worker had found them (entering.py). Outside of recursion the first one
also stands for the others.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Error, Status
from dlog.engine.kernels.core.jit import inlined, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.gathering import ROW_UNKNOWN
from dlog.engine.kernels.incremental.loop.settling import ROW
from dlog.engine.kernels.incremental.store.divisions import DIVISION_BITS, DIVISIONS, begin_words, first_word, item_of_word
from dlog.engine.kernels.incremental.store.homes import home_of
from dlog.engine.kernels.incremental.store.implied import warm_cell
from dlog.engine.kernels.incremental.store.lists import list_push, list_room
from dlog.engine.kernels.incremental.store.slots import enter_slot, has_values, hash_values, slot_of, slots_of, tag_of
from dlog.engine.kernels.instructions import Derive
from dlog.engine.kernels.layout import CLAIM_WORDS, TAG_FREE
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.static.storage import behind, clear_words, register, scratch_block

RECORD_WORDS = 2
"""Words of a record before its values: row and iteration, the diff. The row is ROW_UNKNOWN at first, or a number that a record
with the same values has claimed."""
FIRST = 1 << 31
"""Set, beside the row, in a record that has claimed its number."""
MAX_COLUMNS = 32
"""Columns of a collection whose rows are claimed."""
RECORDS_AHEAD, SLOTS_AHEAD, ROWS_AHEAD = 32, 20, 10
"""Records that are asked for, those whose slots are, and those whose rows are, before they are looked at."""
_RING = 15
"""Of the number of a word, what says where its slot is noted: there are more of these than are ahead."""
_HALF = 0xFFFFFFFF
_NARROW = 31
"""Bits of a value that fits 4 bytes, without its sign."""


@kernel
def may_claim(ctl: Control, collection: Collection):
    """Whether rows of a collection can be claimed: it is fresh, or will be, and all of them are found by slots."""
    if collection.unkeyed != 0 or collection.slot_homes.edge != 0:
        return 0
    if not 1 < collection.arity <= MAX_COLUMNS:
        return 0
    if collection.in_batch == 0:
        return 1 if collection.live == 0 and ctl.batch.rounds == 1 else 0
    return 1 if collection.fresh != 0 and collection.base.rows == 0 and collection.free_count == 0 else 0


# --------------------------------------------------------------------------------------------------------------- records


@kernel
def note_values(ctl: Control, share: Share, pc: Derive, n):
    """Notes a block's rows by their values; false with ctl.error set."""
    arity = pc.collection.arity
    size = RECORD_WORDS + arity
    if not list_room(ctl, share.values, n * size):
        return False
    records = behind(share.values.data, share.values.count)
    diffs = register(ctl, pc.diff)
    for i in range(n):
        records[i * size] = ROW_UNKNOWN | (pc.advance << 32)
        records[i * size + 1] = diffs[i]
    if pc.iteration >= 0:
        iterations = register(ctl, pc.iteration)
        for i in range(n):
            records[i * size] += iterations[i] << 32
    for c in range(arity):
        values = register(ctl, pc.values[c])
        for i in range(n):
            records[i * size + RECORD_WORDS + c] = values[i]
    share.values.count += n * size
    return True


@kernel
def record_words(collection: Collection):
    return RECORD_WORDS + collection.arity


@kernel
def records_of(own: Share, collection: Collection):
    """How many records a part has noted."""
    return own.values.count // record_words(collection)


@kernel
def record_at(own: Share, collection: Collection, number) -> Words:
    return behind(own.values.data, number * record_words(collection))


@kernel
def values_of(record: Words) -> Words:
    return behind(record, RECORD_WORDS)


@kernel
def row_of(record: Words):
    return record[0] & ROW


@kernel
def set_row(record: Words, row):
    record[0] = (record[0] & ~_HALF) | row


@kernel
def divide_records(ctl: Control, own: Share, collection: Collection):
    """Divides the records that a part has noted (see divisions.py for its room); false with ctl.error set."""
    count = records_of(own, collection)
    if not list_room(ctl, own.items, (DIVISIONS + count + 1) >> 1):
        return False
    room = Words(own.items.data.address)
    words = behind(room, DIVISIONS)
    clear_words(room, DIVISIONS)
    for number in range(count):
        hashed = hash_values(values_of(record_at(own, collection, number)), collection.arity)
        room[division_of(hashed)] += 1
    begin_words(room)
    for number in range(count):
        hashed = hash_values(values_of(record_at(own, collection, number)), collection.arity)
        division = division_of(hashed)
        at = room[division]
        room[division] = at + 1
        words[at] = (hashed & ~_HALF) | number
    return True


@kernel
def division_of(hashed):
    """The division of a hash: its first bits, which its home comes from, too."""
    return (hashed >> (64 - DIVISION_BITS)) & (DIVISIONS - 1)


# ---------------------------------------------------------------------------------------------------------------- claims


@kernel
def claim_part(ctl: Control, share: Share, parts):
    """Finds or claims the rows of a part's divisions, unless memory does not suffice, as the status says then."""
    own = ctl.share
    collection = share.collection
    own.wide = 0
    own.derived_rows.count = 0
    own.left.count = 0
    clear_words(own.firsts, parts)
    limit = limit_of(own, collection)
    own.status = Status.DONE
    for division in range(own.first, own.behind):
        for other in range(parts):
            if own.status == Status.DONE and not claim_division(ctl, share, own, division, other, limit):
                # For want of memory: one worker derives all (`give_up`).
                ctl.error = Error.NONE
                own.status = Status.YIELD
    return True


@kernel
def limit_of(own: Share, collection: Collection):
    """The slot behind those that are a part's: the first home of the next part, or the last slot, which stays free."""
    if own.behind == DIVISIONS:
        return collection.slot_homes.room - 1
    return ((own.behind << (32 - DIVISION_BITS)) * collection.slot_homes.count) >> 32


@kernel
def claim_division(ctl: Control, share: Share, own: Share, division, part, limit):
    """`claim_part` of what another part has noted of a division."""
    collection = share.collection
    room = Words(share.rooms[part])
    noted = share.parts[part]
    first = first_word(room, division)
    last = first_word(room, division + 1)
    claimed = own.derived_rows.count
    if not list_room(ctl, own.derived_rows, last - first):
        return False
    slots = scratch_block(ctl, 0)
    for at in range(first, min(first + ROWS_AHEAD, last)):
        seek_slot(share, own, record_at(noted, collection, item_of_word(room[at])), limit, slots, at)
    for at in range(first, last):
        warm_claim(collection, noted, room, at, last)
        if at + ROWS_AHEAD < last:
            ahead = record_at(noted, collection, item_of_word(room[at + ROWS_AHEAD]))
            seek_slot(share, own, ahead, limit, slots, at + ROWS_AHEAD)
        record = record_at(noted, collection, item_of_word(room[at]))
        if row_of(record) != ROW_UNKNOWN:
            continue  # one that is claimed again may have a row
        if not claim(share, own, record, slots[at & _RING], limit) and not leave(ctl, own, record, part):
            return False
    own.firsts[part] += own.derived_rows.count - claimed
    return True


@kernel
def warm_claim(collection: Collection, noted: Share, room: Words, at, last):
    """Asks for a record that is looked at soon, and for the slot of one sooner."""
    if at + RECORDS_AHEAD < last:
        prefetch(record_at(noted, collection, item_of_word(room[at + RECORDS_AHEAD])).address)
    if at + SLOTS_AHEAD < last:
        home = home_of(slots_of(collection), (room[at + SLOTS_AHEAD] >> 32) & _HALF)
        prefetch(collection.row_slots.address + home * 4)
        prefetch(collection.tags.address + home)


@inlined
def seek_slot(share: Share, own: Share, record: Words, limit, slots: Words, at):
    """Notes, of the record of a word that is looked at soon, the first slot that may have its row, or the free one before that,
    and asks for the row: what is claimed meanwhile comes into free slots, and changes none before."""
    collection = share.collection
    hashed = hash_values(values_of(record), collection.arity)
    slot = next_slot(collection, slot_of(collection, hashed), tag_of(hashed), limit)
    slots[at & _RING] = slot
    if slot < limit and collection.tags[slot] != TAG_FREE:
        row = collection.row_slots[slot]
        if row < collection.rows:
            for c in range(collection.arity):
                warm_cell(collection.columns[c], row)
        elif 0 <= row - collection.rows - own.row < own.derived_rows.count:
            prefetch(own.derived_rows.data[(row - collection.rows - own.row) * CLAIM_WORDS])


@inlined
def next_slot(collection: Collection, slot, wanted, limit):
    """The first slot from one on, before a limit, that has a tag or is free."""
    tags = collection.tags
    while slot < limit and tags[slot] != wanted and tags[slot] != TAG_FREE:
        slot += 1
    return slot


@kernel
def claim(share: Share, own: Share, record: Words, slot, limit):
    """Finds a record's row from a slot on, or claims one for it, before a limit; false where there is no place, or no room."""
    collection = share.collection
    values = values_of(record)
    hashed = hash_values(values, collection.arity)
    wanted = tag_of(hashed)
    at = next_slot(collection, slot, wanted, limit)
    while at < limit and collection.tags[at] != TAG_FREE:
        if is_row(share, own, collection.row_slots[at], values):
            take_row(share, own, record, collection.row_slots[at])
            return True
        at = next_slot(collection, at + 1, wanted, limit)
    claimed = own.derived_rows.count
    if at >= limit or claimed >= own.most:
        return False
    number = collection.rows + own.row + claimed
    set_row(record, FIRST | number)
    enter_slot(collection, at, hashed, number)
    note_claim(behind(own.derived_rows.data, claimed * CLAIM_WORDS), record, at)
    own.derived_rows.count = claimed + 1
    own.wide |= wide_columns(values, collection.arity)
    return True


@kernel
def take_row(share: Share, own: Share, record: Words, row):
    """Notes a record's row. Outside of recursion adds its derivations to the row's, or to the record's that has claimed it."""
    collection = share.collection
    if collection.scope:
        set_row(record, row)
    elif row < collection.rows:
        collection.derivation.counts[row] += record[1]
        record[1] = 0
        set_row(record, row)
    else:
        claimed_by(share, own, row)[1] += record[1]
        record[1] = 0


@kernel
def note_claim(claimed: Words, record: Words, at):
    claimed[0] = record.address
    claimed[1] = at


@kernel
def leave(ctl: Control, own: Share, record: Words, part):
    """Notes a record that has found no place, and whose it is; false with ctl.error set."""
    return list_push(ctl, own.left, record.address) and list_push(ctl, own.left, part)


@kernel
def is_row(share: Share, own: Share, row, values: Words):
    """Whether a row, or a number that has been claimed, is of these values."""
    collection = share.collection
    if row < collection.rows:
        return has_values(collection, row, values)
    others = values_of(claimed_by(share, own, row))
    for c in range(collection.arity):
        if others[c] != values[c]:
            return False
    return True


@kernel
def claimed_by(share: Share, own: Share, number) -> Words:
    """The record that has claimed a number: most likely it is this part's."""
    place = number - share.collection.rows - own.row
    if 0 <= place < own.derived_rows.count:
        return Words(own.derived_rows.data[place * CLAIM_WORDS])
    part = share.part_count - 1
    while share.parts[part].row > number - share.collection.rows:
        part -= 1
    other = share.parts[part]
    return Words(other.derived_rows.data[(number - share.collection.rows - other.row) * CLAIM_WORDS])


@kernel
def wide_columns(values: Words, arity):
    """A bit for each column whose value does not fit 4 bytes."""
    wide = 0
    for c in range(arity):
        if (values[c] >> _NARROW) != (values[c] >> 63):
            wide |= 1 << c
    return wide
