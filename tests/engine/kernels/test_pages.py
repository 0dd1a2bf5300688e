"""Pages made ahead: arrays that grow in small commits are not copied and wait for one page after the other."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.blocks import HUGE_PAGE, MIN_GROWING_BYTES, MIN_MAPPED_BYTES
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.kernels.core.page_maker import MAKER
from dlog.engine.kernels.incremental.inputs import input_changes
from dlog.engine.kernels.incremental.loop import batches
from dlog.engine.kernels.incremental.sharing import desks
from dlog.engine.kernels.static import pages, storage
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, view
from dlog.engine.values.symbols import SymbolTable
from tests.engine.kernels.test_growing import Store, universe

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="pages are mapped on Linux only"),
    pytest.mark.skipif(not JIT, reason="the system is asked by compiled code"),
]


@pytest.fixture
def memory() -> Iterator[Memory]:
    made = Memory(None)
    yield made
    assert made.used == 0


def is_there(address: int) -> bool:
    """Whether a page is in memory."""
    found = (ctypes.c_ubyte * 1)()
    page = ctypes.c_void_p(address & ~(mmap.PAGESIZE - 1))
    assert ctypes.CDLL(None).mincore(page, ctypes.c_size_t(mmap.PAGESIZE), found) == 0
    return bool(found[0] & 1)


def pages_of(address: int, old: int, new: int) -> list[int]:
    """The huge pages that begin in bytes [old, new) of a block."""
    first = ((address + old) // HUGE_PAGE + 1) * HUGE_PAGE
    return list(range(first, address + new, HUGE_PAGE))


def end_small(control: int, changes: int) -> None:
    """The end of a small commit, and that of what it had made meanwhile."""
    pages.end_small(control, changes)
    wait_for_page()


def wait_for_page() -> None:
    end = time.monotonic() + 60
    while is_making():
        assert time.monotonic() < end
        time.sleep(0.001)


def is_making() -> bool:
    return bool(view(MAKER, 8, np.int64)[0])


@pytest.mark.parametrize("changes", [64, 2 * pages.CHANGES_PER_PAGE])
def test_a_small_commit_makes_one_page_of_those_it_was_given(memory: Memory, changes: int) -> None:
    control, old, new = memory.control.address, MIN_MAPPED_BYTES, MIN_MAPPED_BYTES + 7 * HUGE_PAGE
    address = storage.zeroed(control, old)
    pages.begin_small(control)
    address = storage.resize(control, address, old, new)
    given = pages_of(address, old, new)
    assert not any(map(is_there, given))
    for commit in range(1, len(given) + 2):
        end_small(control, changes)
        made = min(commit * (1 + changes // pages.CHANGES_PER_PAGE), len(given))
        assert sum(map(is_there, given)) == made
        assert bool(memory.bytes[L.account.waiting]) == (made < len(given))
        pages.begin_small(control)
    end_small(control, changes)
    assert not view(address, new, np.uint8).any()
    storage.release(control, address, new)


def test_one_page_is_made_at_a_time(memory: Memory) -> None:
    """While another is being made, as one that takes long, none is asked for, and tables that grow wait."""
    control, words = memory.control.address, view(MAKER, 8, np.int64)
    pages.begin_small(control)
    address = storage.zeroed(control, 4 * HUGE_PAGE)
    given = pages_of(address, 0, 4 * HUGE_PAGE)
    words[0] = os.getpid()
    try:
        for _ in range(3):
            pages.end_small(control, 64)
            pages.begin_small(control)
        assert memory.bytes[L.account.making] and not any(map(is_there, given))
    finally:
        words[0] = 0
    end_small(control, 64)
    assert sum(map(is_there, given)) == 1
    storage.release(control, address, 4 * HUGE_PAGE)
    for _ in given:
        end_small(control, 64)


def test_a_forked_process_makes_pages_though_its_parent_was_making_one(memory: Memory) -> None:
    control, words = memory.control.address, view(MAKER, 8, np.int64)
    pages.begin_small(control)
    address = storage.zeroed(control, 4 * HUGE_PAGE)
    words[0] = os.getppid()
    end_small(control, 64)
    assert sum(map(is_there, pages_of(address, 0, 4 * HUGE_PAGE))) == 1
    storage.release(control, address, 4 * HUGE_PAGE)
    for _ in range(4):
        end_small(control, 64)


def test_the_first_page_of_a_new_array_is_not_a_huge_one_in_a_small_commit(memory: Memory) -> None:
    """Something comes to it at once."""
    control, size = memory.control.address, 4 * HUGE_PAGE
    for is_small in (True, False):
        if is_small:
            pages.begin_small(control)
        address = storage.zeroed(control, size)
        assert is_there(address)
        assert is_there(address + HUGE_PAGE // 2) != is_small or not huge_where_asked()
        storage.release(control, address, size)
        for _ in range(4 if is_small else 0):
            end_small(control, 64)


def huge_where_asked() -> bool:
    """Whether the system gives huge pages to who asks for them, and to nobody else."""
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return setting.exists() and "[madvise]" in setting.read_text()


def test_pages_of_arrays_that_are_gone_are_not_missed(memory: Memory) -> None:
    control = memory.control.address
    pages.begin_small(control)
    gone = [storage.zeroed(control, 3 * HUGE_PAGE) for _ in range(pages.PLACES + 3)]
    for address in gone:
        storage.release(control, address, 3 * HUGE_PAGE)
    for _ in range(3 * pages.PLACES):
        end_small(control, 1)
    assert memory.bytes[L.account.waiting] == 0


def test_what_grows_little_by_little_is_not_copied(memory: Memory) -> None:
    control, size = memory.control.address, MIN_GROWING_BYTES
    pages.begin_small(control)
    address = storage.resize(control, storage.zeroed(control, size), size, size + (1 << 17))
    size += 1 << 17
    while size < MIN_MAPPED_BYTES:
        view(address, size, np.uint8)[:] = 7
        moved = storage.resize(control, address, size, size + (1 << 17))
        assert moved == address and (view(address, size, np.uint8) == 7).all()
        size += 1 << 17
    pages.end_small(control, 1)
    storage.release(control, address, size)


def test_what_a_block_is_lengthened_by_is_zero_though_it_was_shortened(memory: Memory) -> None:
    control, size = memory.control.address, 3 * HUGE_PAGE
    field = Struct(1)
    field[0] = storage.zeroed(control, size)
    view(field[0], size, np.uint8)[:] = 255
    for less in (2 * HUGE_PAGE + 12_345, HUGE_PAGE, 1000):
        field[0] = storage.resize(control, field[0], size, less)
        assert storage.lengthen(control, field.address, less, size)
        content = view(field[0], size, np.uint8)
        assert (content[:less] == 255).all() and not content[less:].any()
    storage.release(control, field[0], size)


@pytest.mark.parametrize("kind", ["pairs", "narrow slots", "wide slots", "groups"])
def test_a_table_does_not_move_while_its_pages_wait(kind: str) -> None:
    """It grows and has all its rows, though nothing may move as long as it can do without."""
    store = Store(kind, universe(kind, 5, ""))
    account = store.memory.bytes
    held, waited = 0, 0
    for first in range(0, 20_000, 20):
        account[L.account.small] = pages.ROWS_THAT_WAIT
        struct, homes = store.table
        edge = struct[homes + L.homes.edge]
        held = held + 1 if edge else 0
        account[L.account.waiting] = int(0 < held <= 5)
        assert store.change(np.arange(first, first + 20), 1)
        waited += bool(account[L.account.waiting]) and struct[homes + L.homes.edge] == edge
    assert waited >= 5
    store.check(np.arange(0, 20_000, 777))
    account[L.account.waiting] = account[L.account.small] = 0
    store.close()


@pytest.mark.parametrize("kind", ["pairs", "narrow slots", "wide slots", "groups"])
def test_a_table_goes_on_where_many_rows_come_of_few_changes(kind: str) -> None:
    """What it takes in without moving anything makes it slower and slower: a join of 1,600 edges took 48 seconds."""
    store = Store(kind, universe(kind, 5, ""))
    account = store.memory.bytes
    account[L.account.small], account[L.account.waiting] = pages.ROWS_THAT_WAIT, 1
    edges = set()
    for first in range(0, 24_000, 20):
        struct, homes = store.table
        assert store.change(np.arange(first, first + 20), 1)
        edges.add(struct[homes + L.homes.edge])
    assert account[L.account.small] == 0 and len(edges) > 3
    store.check(np.arange(0, 20_000, 777))
    account[L.account.waiting] = 0
    store.close()


def test_columns_of_one_relation_come_to_their_pages_in_different_commits() -> None:
    """Rows of three columns until these end in another huge page: no commit is the first to touch two pages."""
    rows = np.arange(3 * 560_000).reshape(-1, 3)
    store = Store("wide slots", rows)
    control, address, struct = store.worker.control, store.collection.address, store.collection.struct
    first = 490_000
    assert store.change(np.arange(first), 1)
    made = []
    for start in range(first, 560_000, 250):
        pages.begin_small(control.address)
        before = touched(store)
        staged = np.zeros((250, 5), np.int64)
        staged[:, :3], staged[:, 3] = rows[start : start + 250], 1
        batches.begin(control.address, address, 2)
        assert input_changes.apply_input(control.address, address, int(staged.ctypes.data), 250)
        assert batches.settle(control.address, address)
        batches.forget_changes(control.address, address)
        end_small(control.address, 250)
        made.append(touched(store) - before)
    assert struct[L.relation.rows] == 560_000
    assert max(made) == 1
    store.close()


def test_strings_come_to_pages_that_are_there() -> None:
    """Of their bytes, and of where they are: the page after the one that was come to is made meanwhile."""
    table = SymbolTable()
    fields = view(table.address, L.symbols.size * 8, np.int64)
    come_to = missing = 0
    for batch in range(300):
        table.intern_texts([f"{batch} {number} {'long ' * 8}" for number in range(500)])
        wait_for_page()
        table.intern("")  # one page is made at a time: where both arrays come to another one, the second is asked for now
        wait_for_page()
        heap = int(fields[L.symbols.heap]), int(fields[L.symbols.used]), int(fields[L.symbols.heap_size])
        offsets = int(fields[L.symbols.offsets]), 8 * int(fields[L.symbols.count]), 8 * int(fields[L.symbols.offset_count])
        for address, used, size in (heap, offsets):
            following = ((address + used) // HUGE_PAGE + 1) * HUGE_PAGE
            if following < address + size:
                come_to += 1
                missing += not is_there(following)
    assert come_to > 300
    assert fields[L.symbols.used] > 3 * HUGE_PAGE
    assert missing == 0


def touched(store: Store) -> int:
    """The huge pages of columns that are there."""
    columns, widths = store.collection.widths
    capacity = store.collection.struct[L.relation.capacity]
    return sum(
        is_there(page)
        for at in widths
        for page in pages_of(columns[at - L.column.width + L.column.data], 0, capacity * columns[at])
    )


def test_workers_that_have_nothing_to_do_make_the_pages_of_large_commits(memory: Memory) -> None:
    control, old, new = memory.control.address, MIN_MAPPED_BYTES, MIN_MAPPED_BYTES + 7 * HUGE_PAGE
    for idle in (0, 2):
        desks.count_idle(control, idle)
        address = storage.resize(control, storage.zeroed(control, old), old, new)
        given = pages_of(address, old, new)
        assert not any(map(is_there, given))
        assert desks.make_pages(control)
        assert all(is_there(page) == (idle > 0) for page in given)
        assert not view(address, new, np.uint8).any()
        storage.release(control, address, new)
    desks.count_idle(control, -2)
    assert memory.bytes[L.account.idle] == memory.bytes[L.account.wanted_count] == memory.bytes[L.account.lock] == 0


def test_more_pages_than_can_be_listed_for_others_are_made_when_they_are_touched(memory: Memory) -> None:
    control, size = memory.control.address, 3 * HUGE_PAGE
    desks.count_idle(control, 1)
    held = [storage.zeroed(control, size) for _ in range(pages.PLACES + 3)]
    assert memory.bytes[L.account.wanted_count] == pages.PLACES
    for address in held[:5]:
        storage.release(control, address, size)
    assert desks.make_pages(control)
    assert memory.bytes[L.account.wanted_count] == 0
    for at, address in enumerate(held[5:], 5):
        assert all(is_there(page) == (at < pages.PLACES) for page in pages_of(address, 0, size))
    for address in held[5:]:
        assert not view(address, size, np.uint8).any()
        storage.release(control, address, size)
    desks.count_idle(control, -1)
