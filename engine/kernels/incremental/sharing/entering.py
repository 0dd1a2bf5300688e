"""Rows that have been claimed (claims.py) are numbered and written by workers."""

from __future__ import annotations

from dlog.engine.kernels.codes import Error, Shared, Status
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.activation import touch_derived
from dlog.engine.kernels.incremental.loop.gathering import ITEM_WORDS, ROW_UNKNOWN
from dlog.engine.kernels.incremental.loop.supports import add_support
from dlog.engine.kernels.incremental.sharing.claims import (
    FIRST,
    RECORDS_AHEAD,
    claim,
    claimed_by,
    record_at,
    records_of,
    row_of,
    set_row,
    values_of,
)
from dlog.engine.kernels.incremental.sharing.derivations import begin_supports
from dlog.engine.kernels.incremental.sharing.loads import share_divisions
from dlog.engine.kernels.incremental.sharing.placing import begin_placing
from dlog.engine.kernels.incremental.store.bits import fill_bits
from dlog.engine.kernels.incremental.store.collections import born_absent, clear_row, find_or_add, reserve_rows, widen
from dlog.engine.kernels.incremental.store.lists import list_free, list_room
from dlog.engine.kernels.incremental.store.slot_room import keep_last_free, rows_hoped_for
from dlog.engine.kernels.incremental.store.slots import ROWS_AHEAD, hash_values, more_slots, slot_of, slots_for, warm_slot
from dlog.engine.kernels.layout import CLAIM_WORDS, TAG_FREE
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.static.storage import ROWS_MAX, behind, grown


@kernel
def begin_claims(ctl: Control, share: Share):
    """After parts of a path have noted records. Returns a `Status`: BULK where workers are to claim rows."""
    records = 0
    for part in range(share.part_count):
        records += records_of(share.parts[part], share.collection)
    if records == 0:
        return Status.DONE
    touch_derived(ctl, share.collection)
    if records < share.least:
        return derive_alone(ctl, share)
    share.count = records
    homes = homes_wanted(ctl, share)
    if homes != 0 and begin_placing(ctl, share, homes):
        return Status.BULK
    return begin_divisions(ctl, share)


@kernel
def begin_divisions(ctl: Control, share: Share):
    """Has workers claim the rows of divided records, where there is room for as many as may come. Returns a `Status`."""
    room = room_for_claims(share)
    if room < 0:
        return give_up(ctl, share)
    for part in range(share.part_count):
        share.rooms[part] = share.parts[part].items.data.address
    share_divisions(share)
    share_room(share, room)
    return Status.BULK


@kernel
def share_room(share: Share, room):
    """Says how many rows each part may claim, by how many records it has; has them do so."""
    records = share.count
    end = records
    for part in range(share.part_count - 1, -1, -1):
        own = share.parts[part]
        own.most = min(end - own.row, room * (end - own.row) // records)
        end = own.row
    share.kind = Shared.CLAIM


@kernel
def rows_expected(share: Share):
    """How many new rows the records may be of, by what came of others before."""
    records = share.count
    if share.noted == 0:
        return records
    return min(share.entered * records // share.noted * 5 // 4 + (records >> 4), records)


@kernel
def homes_wanted(ctl: Control, share: Share):
    """How many slots the table should have where it is to grow, else 0."""
    collection = share.collection
    rows = collection.rows
    wanted = max(rows, rows_hoped_for(ctl, collection, share.count)) + rows_expected(share)
    if wanted + (wanted >> 3) <= collection.slot_homes.count:
        return 0
    # Where nobody knows how many will come, more are likely to: all rows are placed anew each time.
    return max(rows * 2, slots_for(wanted) if share.sampled != 0 else more_slots(wanted))


@kernel
def room_for_claims(share: Share):
    """How many rows may be claimed; -1 where more are to be expected."""
    collection = share.collection
    most = collection.slot_homes.count - (collection.slot_homes.count >> 4)
    room = max(most - collection.used_slots, 0)
    return room if room >= rows_expected(share) and collection.rows + share.count <= ROWS_MAX else -1


@kernel
def derive_alone(ctl: Control, share: Share):
    """Derives records that are not for several workers."""
    collection = share.collection
    rows = collection.rows
    for part in range(share.part_count):
        own = share.parts[part]
        count = records_of(own, collection)
        for number in range(count):
            if number + ROWS_AHEAD < count and collection.slot_homes.count > 0:
                ahead = values_of(record_at(own, collection, number + ROWS_AHEAD))
                warm_slot(collection, hash_values(ahead, collection.arity))
            if not derive_record(ctl, collection, record_at(own, collection, number)):
                return Status.FAILED
        own.values.count = 0
        share.noted += count
    share.entered += collection.rows - rows
    return Status.DONE


@kernel
def derive_record(ctl: Control, collection: Collection, record: Words):
    """Derives a record of which nothing is known; false with ctl.error set."""
    values = values_of(record)
    row = find_or_add(ctl, collection, values, hash_values(values, collection.arity))
    if row < 0:
        return False
    if collection.scope:
        return add_support(ctl, collection, row, record[0] >> 32, record[1])
    collection.derivation.counts[row] += record[1]
    return True


# -------------------------------------------------------------------------------------------------------------- numbers


@kernel
def begin_numbers(ctl: Control, share: Share):
    """After workers have claimed rows. Returns a `Status`: BULK where they are to number and write them, or to claim again."""
    for part in range(share.part_count):
        if share.parts[part].status != Status.DONE:
            return give_up(ctl, share)
    if not claim_left(ctl, share):
        return give_up(ctl, share) if ctl.error != Error.NONE else claim_again(ctl, share)
    return Status.BULK if room_for_rows(ctl, share) else give_up(ctl, share)


@kernel
def room_for_rows(ctl: Control, share: Share):
    """Makes room for the rows that have been claimed, and has workers number them; false with ctl.error set."""
    collection = share.collection
    row = collection.rows
    wide = 0
    for part in range(share.part_count):
        share.parts[part].number = row
        for other in range(share.part_count):
            row += share.parts[other].firsts[part]
        wide |= share.parts[part].wide
    for c in range(collection.arity):
        column = collection.columns[c]
        if wide >> c & 1 != 0 and column.width != 8 and not widen(ctl, collection, column):
            return False
    room = (max(grown(collection.capacity), row, 64) + 63) & ~63
    if row > collection.capacity and not reserve_rows(ctl, collection, room):
        return False
    share.entered += row - collection.rows
    share.noted += share.count
    share.kind = Shared.NUMBER
    return True


@kernel
def claim_left(ctl: Control, share: Share):
    """Finds or claims the rows of records that found no place before another part's homes. False where some found no room, or
    with ctl.error set."""
    share.collection.slot_homes.sure = 0  # what was known of the last run is not true any more
    for part in range(share.part_count):
        own = share.parts[part]
        left = own.left
        if left.count == 0:
            continue
        found = keep_last_free(ctl, share.collection, left.count) and list_room(ctl, own.derived_rows, left.count)
        if not found:
            return False
        limit = share.collection.slot_homes.room - 1
        for at in range(0, left.count, 2):
            claimed = own.derived_rows.count
            record = Words(left.data[at])
            slot = slot_of(share.collection, hash_values(values_of(record), share.collection.arity))
            if not claim(share, own, record, slot, limit):
                return False
            own.firsts[left.data[at + 1]] += own.derived_rows.count - claimed
        left.count = 0
    return True


@kernel
def forget_claims(share: Share):
    """Frees the slots that have been claimed, and forgets which rows records are of, but for those that were there before."""
    collection = share.collection
    for part in range(share.part_count):
        own = share.parts[part]
        for number in range(own.derived_rows.count):
            collection.tags[own.derived_rows.data[number * CLAIM_WORDS + 1]] = TAG_FREE
        own.derived_rows.count = 0
        for number in range(records_of(own, collection)):
            record = record_at(own, collection, number)
            if row_of(record) >= collection.rows:
                set_row(record, ROW_UNKNOWN)


@kernel
def claim_again(ctl: Control, share: Share):
    """Has workers begin anew with room for all records, as more rows have been claimed than were expected. Returns a
    `Status`."""
    forget_claims(share)
    share.noted = 0
    share.entered = 0
    if begin_placing(ctl, share, slots_for(share.collection.rows + share.count)):
        return Status.BULK
    return give_up(ctl, share)


@kernel
def give_up(ctl: Control, share: Share):
    """Derives all records alone, as memory does not suffice for workers to do so: what they need beside records is given back.
    Derivations that have been added to rows are none in their records any more. Returns a `Status`."""
    ctl.error = Error.NONE
    forget_claims(share)
    give_back(ctl, share)
    status = derive_alone(ctl, share)
    for part in range(share.part_count):
        list_free(ctl, share.parts[part].values)
    return status


@kernel
def give_back(ctl: Control, share: Share):
    """Frees what parts need beside what they have noted."""
    for part in range(share.part_count):
        own = share.parts[part]
        list_free(ctl, own.items)
        list_free(ctl, own.derived_rows)
        list_free(ctl, own.left)


@kernel
def number_part(ctl: Control, share: Share):
    """Numbers the rows that a part's records have claimed, in their order, and writes them; false with ctl.error set."""
    own = ctl.share
    collection = share.collection
    row = own.number
    for number in range(records_of(own, collection)):
        record = record_at(own, collection, number)
        if record[0] & FIRST != 0:
            if not write_row(ctl, collection, row, values_of(record)):
                return False
            if not collection.scope:
                collection.derivation.counts[row] = record[1]
            set_row(record, FIRST | row)
            row += 1
    return True


@kernel
def write_row(ctl: Control, collection: Collection, row, values: Words):
    """Writes a new row of a fresh collection (see `add_values`); false with ctl.error set."""
    for c in range(collection.arity):
        column = collection.columns[c]
        if column.width == 8:
            Words(column.data)[row] = values[c]
        else:
            Numbers(column.data)[row] = values[c]
    clear_row(collection, row)
    if collection.no_readers == 0 and not born_absent(ctl, collection.outer, row, 1):
        return False
    return born_absent(ctl, collection.inner, row, 1)


@kernel
def begin_entering(ctl: Control, share: Share):
    """After workers have numbered the rows that have been claimed. Returns a `Status`."""
    share.kind = Shared.ENTER
    share.items.count = 0  # what has been divided is not needed any more
    done = not share.collection.scope or list_room(ctl, share.items, share.count)
    return Status.BULK if done else give_up(ctl, share)


@kernel
def enter_part(ctl: Control, share: Share, part):
    """Gives the slots that a part has claimed their rows, and notes the derivations of a part's records."""
    own = ctl.share
    claims = own.derived_rows.data
    count = own.derived_rows.count
    for number in range(count):
        if number + RECORDS_AHEAD < count:
            prefetch(claims[(number + RECORDS_AHEAD) * CLAIM_WORDS])
        claimed = behind(claims, number * CLAIM_WORDS)
        share.collection.row_slots[claimed[1]] = row_of(Words(claimed[0]))
    if share.collection.scope:
        note_derivations(share, own, part)
    return True


@kernel
def note_derivations(share: Share, own: Share, part):
    """Notes the derivations of a part's records, behind those of the parts before (`gather_supports`)."""
    collection = share.collection
    first = 0
    for other in range(part):
        first += records_of(share.parts[other], collection)
    items = behind(share.items.data, first * ITEM_WORDS)
    for number in range(records_of(own, collection)):
        record = record_at(own, collection, number)
        row = row_of(record)
        if row >= collection.rows and record[0] & FIRST == 0:
            row = row_of(claimed_by(share, own, row))
        items[ITEM_WORDS * number] = row | (record[0] >> 32 << 32)
        items[ITEM_WORDS * number + 1] = record[1]


@kernel
def end_entering(ctl: Control, share: Share):
    """Ends what workers have done: new rows are there. Returns a `Status`: BULK where they are to add derivations."""
    collection = share.collection
    claimed = 0
    for part in range(share.part_count):
        own = share.parts[part]
        claimed += own.derived_rows.count
        own.derived_rows.count = 0
        own.values.count = 0
    first = collection.rows
    collection.rows = first + claimed
    collection.live += claimed
    collection.used_slots += claimed
    fill_bits(collection.alive, first, first + claimed)
    if not collection.scope:
        return Status.DONE
    share.items.count = share.count
    return Status.BULK if begin_supports(ctl, share, share.count) else Status.FAILED
