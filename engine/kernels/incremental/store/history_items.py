"""Items of histories (histories.py): what is known of a row whose bit is set, and where it is found."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch, wrapped_product
from dlog.engine.kernels.incremental.store.bits import clear_bit, put_bit
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.row_structs import History, Item
from dlog.engine.kernels.static.storage import release, zeroed

_MIX = -7046029254386353131


@kernel
def item_slot(row, mask):
    return (wrapped_product(row, _MIX) >> 24) & mask


@kernel
def item_of(history: History, row) -> Item:
    """Address of the item of a row whose bit is set."""
    items = history.items.data
    iterations = history.iters
    if iterations:
        return items[iterations[row]]
    table = history.table
    mask = history.table_count - 1
    at = item_slot(row, mask)
    while True:
        item = items[table[at] - 1]
        if item.row == row:
            return item
        at = (at + 1) & mask


@kernel
def place_item(history: History, number):
    """Notes where an item is: in the place of its row's iteration or, where there is none, in the table."""
    item = history.items.data[number]
    iterations = history.iters
    if iterations:
        iterations[item.row] = number
        return
    table = history.table
    mask = history.table_count - 1
    at = item_slot(item.row, mask)
    while table[at] != 0:
        at = (at + 1) & mask
    table[at] = number + 1
    item.slot = at


@kernel
def grow_table(ctl: Control, history: History, items):
    """Keeps the table, if there has to be one, at least twice as long as the items; false with ctl.error set when out of
    memory."""
    count = history.table_count
    if items * 2 <= count or history.iters:
        return True
    target = max(count * 2, 64)
    while target < items * 2:
        target *= 2
    table = zeroed(ctl, target * 4)
    if table == 0:
        return False
    release(ctl, history.table.address, count * 4)
    history.table = Numbers(table)
    history.table_count = target
    for number in range(history.items.count):
        place_item(history, number)
    return True


@kernel
def open_item(ctl: Control, history: History, row) -> Item:
    """Gives a row whose bit is clear an item without entries. Returns its address, 0 with ctl.error set."""
    items = history.items
    number = items.count
    if not list_room(ctl, items, 1) or not grow_table(ctl, history, number + 1):
        return Item(0)
    items.count = number + 1
    item = items.data[number]
    item.row = row
    item.head = 0
    place_item(history, number)
    put_bit(history.bits, row)
    return item


@kernel
def open_items(history: History, rows: Words, n, head):
    """Gives n rows whose bits are clear items with the entries from `head` on. There is room (`room_for_items`)."""
    items = history.items
    first = items.count
    for i in range(n):
        item = items.data[first + i]
        item.row = rows[i]
        item.head = head
        place_item(history, first + i)
        put_bit(history.bits, rows[i])
    items.count = first + n


@kernel
def warm_item(history: History, row):
    """Asks for what a history without iterations knows of a row: its bit, and where its item is or would be."""
    prefetch(history.bits.address + (row >> 6) * 8)
    if history.table_count != 0:
        prefetch(history.table.address + item_slot(row, history.table_count - 1) * 4)


@kernel
def close_item(history: History, row):
    """Drops the item of a row whose bit is set, and clears the bit; its entries are gone already. Where rows have iterations,
    the row's is to be noted again."""
    clear_bit(history.bits, row)
    items = history.items
    data = items.data
    item = item_of(history, row)
    iterations = history.iters
    if not iterations:
        leave_table(history, item.slot)
    last = items.count - 1
    items.count = last
    moved = data[last]
    if moved != item:
        item.row = moved.row
        item.head = moved.head
        item.slot = moved.slot
        number = (item.address - data.address) // (Item.size)
        if iterations:
            iterations[item.row] = number
        else:
            history.table[item.slot] = number + 1


@kernel
def leave_table(history: History, hole):
    """Empties a slot of the table; later items of its run move up.

    An item may move into the hole unless its home is behind that, on the way round to where it is (Knuth, 6.4, Algorithm R)."""
    table = history.table
    mask = history.table_count - 1
    data = history.items.data
    at = hole
    while True:
        at = (at + 1) & mask
        number = table[at] - 1
        if number < 0:
            break
        item = data[number]
        home = item_slot(item.row, mask)
        if (at - home) & mask >= (at - hole) & mask:
            table[hole] = number + 1
            item.slot = hole
            hole = at
    table[hole] = 0
