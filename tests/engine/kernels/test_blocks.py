"""Memory of arrays: large blocks begin at huge pages, keep what is in them, and give back what they do not need."""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from dlog.engine.kernels.core.blocks import HUGE_PAGE, LINE, LINES, MIN_MAPPED_BYTES
from dlog.engine.kernels.static import pages, storage
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import view

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are mapped on Linux only")


class Block:
    """A block and what it should have in it."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.address, self.size = memory, 0, 0
        self.twin = np.zeros(0, np.uint8)

    def resize(self, size: int, seed: int) -> None:
        self.address = storage.resize(self.memory.control.address, self.address, self.size, size)
        kept = self.twin[:size]
        fresh = np.random.default_rng(seed).integers(0, 256, size - len(kept), np.uint8)
        view(self.address, size, np.uint8)[len(kept) :] = fresh
        self.twin, self.size = np.concatenate([kept, fresh]), size

    def is_right(self) -> bool:
        return bool((view(self.address, self.size, np.uint8) == self.twin).all())

    def free(self) -> None:
        storage.release(self.memory.control.address, self.address, self.size)


@pytest.fixture
def memory() -> Iterator[Memory]:
    made = Memory(None)
    yield made
    assert made.used == 0


def is_at_huge_page(address: int) -> bool:
    return LINE <= address % HUGE_PAGE <= LINE * LINES


def resident() -> int:
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm") as words:
        return int(words.read().split()[1]) * mmap.PAGESIZE


@pytest.mark.parametrize("size", [MIN_MAPPED_BYTES, MIN_MAPPED_BYTES + 1, HUGE_PAGE, 3 * HUGE_PAGE + 5, 40 * HUGE_PAGE])
def test_a_large_block_is_zero_and_begins_at_a_huge_page(memory: Memory, size: int) -> None:
    address = storage.zeroed(memory.control.address, size)
    assert is_at_huge_page(address)
    assert not view(address, size, np.uint8).any()
    view(address, size, np.uint8)[:] = 255
    storage.release(memory.control.address, address, size)


def test_a_block_that_grows_by_little_keeps_whole_huge_pages(memory: Memory) -> None:
    block = Block(memory)
    for step in range(40):
        block.resize(MIN_MAPPED_BYTES + step * 300_000, step)
        assert mapped_bytes(block.address) % HUGE_PAGE == 0 or step == 0
    assert block.is_right()
    block.resize(MIN_MAPPED_BYTES + 300_000, 0)
    assert mapped_bytes(block.address) < 2 * HUGE_PAGE and block.is_right()
    block.free()


def mapped_bytes(address: int) -> int:
    """The second word of a mapping is its length."""
    return int(view(address & ~(HUGE_PAGE - 1), 2, np.int64)[1])


@pytest.mark.slow
def test_blocks_keep_what_is_in_them_as_they_grow_and_shrink(memory: Memory) -> None:
    random = Random(4)
    sizes = (8, 1000, MIN_MAPPED_BYTES - 1, MIN_MAPPED_BYTES, HUGE_PAGE - 64, HUGE_PAGE, 3 * HUGE_PAGE + 77, 9 * HUGE_PAGE)
    blocks = [Block(memory) for _ in range(5)]
    for step in range(150):
        block = random.choice(blocks)
        block.resize(random.choice(sizes) + random.choice((0, 0, 8, 4096)), step)
        assert all(b.is_right() for b in blocks if b.size)
        assert is_at_huge_page(block.address) or block.size < MIN_MAPPED_BYTES
    for block in blocks:
        block.free()


def test_a_block_that_shrinks_gives_its_pages_back(memory: Memory) -> None:
    block = Block(memory)
    block.resize(64 * HUGE_PAGE, 1)
    before = resident()
    block.resize(HUGE_PAGE, 2)
    assert before - resident() > 48 * HUGE_PAGE
    assert block.is_right()
    block.free()


def test_blocks_of_equal_length_begin_at_different_lines(memory: Memory) -> None:
    made = [storage.zeroed(memory.control.address, MIN_MAPPED_BYTES) for _ in range(8)]
    assert len({address % HUGE_PAGE for address in made}) > 4
    for address in made:
        storage.release(memory.control.address, address, MIN_MAPPED_BYTES)


def test_what_cannot_be_had_changes_nothing(memory: Memory) -> None:
    block = Block(memory)
    block.resize(2 * HUGE_PAGE, 1)
    for size in (1 << 46, 1 << 62):
        assert storage.resize(memory.control.address, block.address, block.size, size) == 0
        assert memory.failure().diagnostics[0].code == "out-of-memory"
        assert memory.used == block.size
        assert block.is_right()
    block.free()


def test_views_of_different_lengths_leave_nothing_behind() -> None:
    words = np.arange(100)
    gc.collect()
    classes = len(ctypes.Array.__subclasses__())
    for count in range(1, 100):
        found = view(int(words.ctypes.data), count, np.int64)
        assert found.tolist() == list(range(count)) and found.flags.writeable
    assert len(ctypes.Array.__subclasses__()) <= classes


def test_a_block_whose_first_page_is_of_small_ones_grows(memory: Memory) -> None:
    """Its pages are advised in two ways: the system moves them one way at a time."""
    control = memory.control.address
    pages.begin_small(control)
    blocks = [storage.zeroed(control, 2 * HUGE_PAGE) for _ in range(4)]
    for number, address in enumerate(blocks):
        view(address, 2 * HUGE_PAGE, np.uint8)[:] = number + 1
        blocks[number] = storage.resize(control, address, 2 * HUGE_PAGE, 7 * HUGE_PAGE)
    for number, address in enumerate(blocks):
        assert address != 0
        found = view(address, 7 * HUGE_PAGE, np.uint8)
        assert (found[: 2 * HUGE_PAGE] == number + 1).all() and not found[2 * HUGE_PAGE :].any()
        storage.release(control, address, 7 * HUGE_PAGE)
    pages.end_small(control, 0)
