"""Union-find over the values of an equivalence relation, whose pairs come iteration by iteration.

Values are numbered as they come. Between iterations each class is a circular list of its members (`following`), whose root is
its own parent, has the number of members in `sizes`, and gives the class its name: the value of the root. An iteration unites
roots, the smaller class under the larger one; its members then get a row with the new name, so that no value gets more than
log2(n) rows, and one alone where all pairs come at once. Rows with old names stay until `settle`: they tell the truth.

Sources: R. E. Tarjan and J. van Leeuwen, Worst-case analysis of set union algorithms, JACM 31(2), 1984 (halving of paths).
"""

from __future__ import annotations

from dlog.engine.kernels.codes import SetKind
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Numbers, Relation, Union, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.arrange import column_of
from dlog.engine.kernels.static.bitmaps import reserve_pages, row_code, set_bit
from dlog.engine.kernels.static.components import find_root
from dlog.engine.kernels.static.hashes import grow_hash, hash_rows, home, row_bits, slot_word
from dlog.engine.kernels.static.storage import load_cell, mix, release, reserve, resize, store_cell, zeroed

INITIAL_VALUES = 1024
"""Values that there is room for from the beginning."""


@kernel
def unite_changes(ctl: Control, union: Union):
    """Unites the values of the pairs that came since the last time, and adds the rows of those that are in another class than
    before. False with ctl.error set when out of memory."""
    if union.united_pairs == union.pairs.rows:
        return True
    known = union.count
    merged = unite_pairs(ctl, union)
    if merged < 0 or not name_classes(ctl, union, merged, known):
        return False
    if union.forgets != 0:
        forget_pairs(union)
    return True


@kernel
def unite_pairs(ctl: Control, union: Union):
    """Lists the roots that are no more in `merged`; returns how many, -1 with ctl.error set when out of memory."""
    one, two = column_of(union.pairs, 0), column_of(union.pairs, 1)
    ones, one_width = one.data, one.width
    twos, two_width = two.data, two.width
    rows = union.pairs.rows
    merged = 0
    for row in range(union.united_pairs, rows):
        if union.count + 2 > union.capacity and not make_room(ctl, union):
            return -1
        left = find_root(union.parents, number_of(union, load_cell(ones, one_width, row)))
        right = find_root(union.parents, number_of(union, load_cell(twos, two_width, row)))
        if left == right:
            continue
        if union.sizes[left] < union.sizes[right] or (union.sizes[left] == union.sizes[right] and right < left):
            left, right = right, left
        union.parents[right] = left
        union.merged[merged] = right
        merged += 1
    union.united_pairs = rows
    return merged


@kernel
def number_of(union: Union, value):
    """The number of a value; one that is new is a class of its own."""
    slots, count = union.slots, union.slot_count
    at = home(mix(0, value), count)
    while slots[at] != 0:
        if union.values[slots[at] - 1] == value:
            return slots[at] - 1
        at += 1
        if at == count:
            at = 0
    number = union.count
    union.count = number + 1
    slots[at] = number + 1
    union.values[number] = value
    union.parents[number] = number
    union.following[number] = number
    union.sizes[number] = 1
    return number


@kernel
def make_room(ctl: Control, union: Union):
    """Room for half as many more values. False with ctl.error set when out of memory."""
    room = union.capacity
    more = max(INITIAL_VALUES, room + (room >> 1))
    values = Words(resize(ctl, union.values.address, room * 8, more * 8))
    if not values:
        return False
    union.values = values
    parents = Numbers(resize(ctl, union.parents.address, room * 4, more * 4))
    if not parents:
        return False
    union.parents = parents
    following = Numbers(resize(ctl, union.following.address, room * 4, more * 4))
    if not following:
        return False
    union.following = following
    sizes = Numbers(resize(ctl, union.sizes.address, room * 4, more * 4))
    if not sizes:
        return False
    union.sizes = sizes
    merged = Numbers(resize(ctl, union.merged.address, room * 4, more * 4))
    if not merged:
        return False
    union.merged = merged
    union.capacity = more
    return number_again(ctl, union, more + (more >> 1))


@kernel
def number_again(ctl: Control, union: Union, count):
    """A table of `count` slots with all values. False with ctl.error set when out of memory."""
    release(ctl, union.slots.address, union.slot_count * 4)
    union.slot_count = 0
    union.slots = Numbers(zeroed(ctl, count * 4))
    if not union.slots:
        return False
    union.slot_count = count
    slots = union.slots
    for number in range(union.count):
        at = home(mix(0, union.values[number]), count)
        while slots[at] != 0:
            at += 1
            if at == count:
                at = 0
        slots[at] = number + 1
    return True


@kernel
def name_classes(ctl: Control, union: Union, merged, known):
    """Rows for the members of the first `merged` roots that are no more, and for classes of values from number `known` on.
    False with ctl.error set when out of memory."""
    classes = union.classes
    rows = 0
    for number in range(known, union.count):
        rows += union.parents[number] == number
    for i in range(merged):
        rows += union.sizes[union.merged[i]]
    if not reserve(ctl, classes, rows):
        return False
    if classes.set == SetKind.HASH and not grow_hash(ctl, classes, classes.rows + rows):
        return False
    first = classes.rows
    at = first
    for number in range(known, union.count):
        if union.parents[number] == number:
            put_row(classes, at, union.values[number], union.values[number])
            at += 1
    for i in range(merged):
        head = union.merged[i]
        root = find_root(union.parents, head)
        at = put_members(union, head, at, union.values[root])
        next_one = union.following[root]
        union.following[root] = union.following[head]
        union.following[head] = next_one
        union.sizes[root] += union.sizes[head]
    classes.rows = at
    return enter_set(ctl, classes, first)


@kernel
def put_row(classes: Relation, row, value, name):
    column = column_of(classes, 0)
    store_cell(column.data, column.width, row, value)
    column = column_of(classes, 1)
    store_cell(column.data, column.width, row, name)


@kernel
def put_members(union: Union, head, row, name):
    """Rows from `row` on for all members of a class; returns the row after them."""
    member = head
    while True:
        put_row(union.classes, row, union.values[member], name)
        row += 1
        member = union.following[member]
        if member == head:
            return row


@kernel
def enter_set(ctl: Control, relation: Relation, first):
    """Enters the rows from `first` on, which are new, into the relation's set, if it has one. A hash table has room."""
    rows = relation.rows
    if relation.set in (SetKind.BITS, SetKind.PAGES):
        if relation.set == SetKind.PAGES and not reserve_pages(ctl, relation, rows - first):
            return False
        for row in range(first, rows):
            set_bit(relation, row_code(relation, row))
    elif relation.set == SetKind.HASH:
        hashes = Words(ctl.scratch.address)
        table, count = Numbers(relation.slots), relation.slot_count
        bits = row_bits(count)
        for start in range(first, rows, BLOCK):
            n = min(BLOCK, rows - start)
            hash_rows(relation, start, n, hashes)
            for i in range(n):
                at = home(hashes[i], count)
                while table[at] != 0:
                    at += 1
                    if at == count:
                        at = 0
                table[at] = slot_word(hashes[i], start + i, bits)
    return True


@kernel
def forget_pairs(union: Union):
    """Forgets the pairs, which have been united, where that takes no longer than it took to make them. A bitmap still has them:
    it takes none of them again."""
    pairs = union.pairs
    if pairs.set == SetKind.NONE or (pairs.set == SetKind.HASH and pairs.rows * 8 < pairs.slot_count):
        return
    if pairs.set == SetKind.HASH:
        slots = Numbers(pairs.slots)
        for at in range(pairs.slot_count):
            slots[at] = 0
    union.united_pairs = 0
    pairs.rows = 0
    pairs.lo = 0
    pairs.hi = 0


@entry()
def settle(union: Union):
    """Leaves one row per value, with the least value of its class as the name of that; those of a class follow each other. The
    relation of classes must have no set."""
    row = 0
    for number in range(union.count):
        if union.parents[number] != number:
            continue
        least = union.values[number]
        member = union.following[number]
        while member != number:
            least = min(least, union.values[member])
            member = union.following[member]
        row = put_members(union, number, row, least)
    union.classes.rows = row


@entry()
def free_union(ctl: Control, union: Union):
    """Gives back all memory."""
    room = union.capacity
    release(ctl, union.values.address, room * 8)
    for address in (union.parents.address, union.following.address, union.sizes.address, union.merged.address):
        release(ctl, address, room * 4)
    release(ctl, union.slots.address, union.slot_count * 4)
    union.capacity = 0
    union.count = 0
    union.slot_count = 0
