"""Memory of arrays: small ones from the C allocator, large ones as mappings of their own, on huge pages.

A look-up anywhere in a large array walks through the page tables where its pages are small, and takes as long for that as for
the value. The C allocator's large blocks begin anywhere, and their huge pages are split when they move. Mappings begin where a
huge page does, also after they have moved; a few words before the array say where it is and how long its mapping is. Arrays
begin at different lines of their pages, so that those of equal length do not compete for the same places of a cache.

Who may not take long is not to copy a block that fills most of a huge page, and have that zeroed: what grows little by little
gets a mapping early. Its first pages are small then; the system may make a huge one of them when it has time.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import (
    MAPS,
    advise_pages,
    calloc,
    copy_bytes,
    free,
    map_pages,
    move_pages,
    realloc,
    store_u8,
    unmap_pages,
    usable_bytes,
)
from dlog.engine.kernels.core.structs import Struct, i64

PAGE = 4096
HUGE_PAGE = 1 << 21
MIN_MAPPED_BYTES = HUGE_PAGE - (HUGE_PAGE >> 3)
"""Bytes from which on an array has a mapping."""
MIN_GROWING_BYTES = 1 << 17
"""Bytes from which on one that grows little by little has: fewer are copied soon."""
LINE = 64
LINES = 16
"""Different beginnings of arrays in their first page."""
MADV_HUGEPAGE, MADV_POPULATE_WRITE = 14, 23
"""What Linux is told of pages: that they should be huge, and that they are to be there."""
_MARK = 7018424031415926535


class Mapping(Struct):
    """What the first page of a block with a mapping begins with."""

    mark: i64  # _MARK, exclusive or the block's address
    length: i64  # bytes of the mapping
    used: i64  # bytes of the block
    dirty: i64  # how many of the bytes from there on may be something: the others are zero
    huge: i64  # whether its pages should be huge


@kernel
def cleared_block(size, gradual):
    """Zeroed bytes; 0 if there are none. `gradual`: whether its first page is of small ones, as something comes to it now."""
    if MAPS and size >= MIN_MAPPED_BYTES:
        return mapped_block(size, size >> 3, gradual)
    return calloc(max(size, 8), 1)


@kernel
def resized_block(address, size, gradual):
    """The block at an address (0: none) with as many bytes, which may be elsewhere; 0, and all as it was, if there are none.
    `gradual`: whether it should have a mapping early."""
    if MAPS and address != 0 and is_mapped(address):
        return resize_mapped(address, size)
    if not MAPS or size < MIN_GROWING_BYTES:
        return realloc(address, max(size, 8))
    if size < MIN_MAPPED_BYTES and (gradual == 0 or address == 0 or size <= usable_bytes(address)):
        return realloc(address, size)
    if address == 0:
        return mapped_block(size, size >> 3, gradual)
    moved = mapped_block(size, HUGE_PAGE, 0)
    if moved != 0:
        advise_pages(start_of(moved), (size + PAGE) & ~(PAGE - 1), MADV_POPULATE_WRITE)  # rather than one after the other
        copy_bytes(moved, address, min(usable_bytes(address), size))
        free(address)
    elif size < MIN_MAPPED_BYTES:
        return realloc(address, size)
    return moved


@kernel
def free_block(address):
    if MAPS and is_mapped(address):
        unmap_pages(start_of(address), Mapping(start_of(address)).length)
    else:
        free(address)


@kernel
def dirty_bytes(address, old, new):
    """How many of its bytes may be something when a block with `old` zeroed ones is resized to `new`: what the system adds to a
    mapping is zero, but not what the allocator does."""
    if not MAPS or address == 0:
        return new
    return Mapping(start_of(address)).dirty if is_mapped(address) else max(usable_bytes(address), old)


@kernel
def clear_rest(address, old, new, dirty):
    """Zeroes what a block has been given: bytes [old, new), of which those below `dirty` may be something."""
    for at in range(old, new if not MAPS or not is_mapped(address) else min(dirty, new)):
        store_u8(address, at, 0)


# -------------------------------------------------------------------------------------------------------------- mappings


@kernel
def start_of(address):
    """Where the huge page of an address begins."""
    return address & ~(HUGE_PAGE - 1)


@kernel
def is_mapped(address):
    """Whether a block has a mapping. What is before a block in its page can be read in any case."""
    return address - start_of(address) <= LINES * LINE and Mapping(start_of(address)).mark == _MARK ^ address


@kernel
def fresh_pages(address, old, new):
    """How many huge pages begin in what a block of `old` bytes has been given for `new` ones."""
    if not MAPS or not is_mapped(address):
        return 0
    return max((start_of(address + new - 1) - start_of(address + old)) // HUGE_PAGE, 0)


@kernel
def mark_block(address, length, size):
    start = start_of(address)
    mapping = Mapping(start)
    mapping.mark = _MARK ^ address
    mapping.length = length
    mapping.used = size
    mapping.dirty = min(max(mapping.dirty, size), length - (address - start))


@kernel
def mapped_length(offset, size, slack):
    """Bytes of a mapping: whole huge pages, unless that takes more than `slack` bytes more."""
    length = (offset + size + PAGE - 1) & ~(PAGE - 1)
    whole = (length + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1)
    return whole if whole - length <= slack else length


@kernel
def mapped_block(size, slack, gradual):
    """A mapping with room for so many bytes, which are zero; 0 if there is none."""
    length = mapped_length(LINES * LINE, size, slack)
    huge = size >= MIN_MAPPED_BYTES
    start = place_for(length, (HUGE_PAGE if gradual != 0 else 0) if huge else length)
    if start == 0:
        return 0
    Mapping(start).huge = 1 if huge else 0
    address = start + LINE + ((start >> 21) & (LINES - 1)) * LINE
    mark_block(address, length, size)
    return address


@kernel
def place_for(length, small):
    """Maps bytes from the beginning of a huge page on, so many on small pages and the others on huge ones; 0 if that cannot
    be."""
    base = map_pages(length + HUGE_PAGE)
    if base == -1:
        return 0
    start = (base + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1)
    if start > base:
        unmap_pages(base, start - base)
    unmap_pages(start + length, base + HUGE_PAGE - start)
    if small < length:
        advise_pages(start + small, length - small, MADV_HUGEPAGE)
    return start


@kernel
def move_apart(start, length, wanted, target):
    """Moves a mapping whose first page is of small ones, and has been advised otherwise than the others: the system does not
    move these together. False, and all as it was, if that cannot be."""
    if length <= HUGE_PAGE or move_pages(start, HUGE_PAGE, HUGE_PAGE, target) == -1:
        return False
    if move_pages(start + HUGE_PAGE, length - HUGE_PAGE, wanted - HUGE_PAGE, target + HUGE_PAGE) == -1:
        move_pages(target, HUGE_PAGE, HUGE_PAGE, start)
        return False
    return True


@kernel
def resize_mapped(address, size):
    """`resized_block` of one with a mapping. One that grows gets whole huge pages, and keeps them while it fits: what is
    touched before a page is whole keeps small ones."""
    start = start_of(address)
    length = Mapping(start).length
    offset = address - start
    if size >= MIN_MAPPED_BYTES and Mapping(start).huge == 0:
        advise_pages(start, length, MADV_HUGEPAGE)
        Mapping(start).huge = 1
    wanted = mapped_length(offset, size, 0)
    if wanted <= length:
        if size < Mapping(start).used and wanted < length:
            unmap_pages(start + wanted, length - wanted)
            length = wanted
        mark_block(address, length, size)
        return address
    wanted = mapped_length(offset, size, HUGE_PAGE)
    target = start
    if move_pages(start, length, wanted, 0) == -1:
        target = place_for(wanted, 0)
        if target == 0:
            return 0
        if move_pages(start, length, wanted, target) == -1 and not move_apart(start, length, wanted, target):
            unmap_pages(target, wanted)
            return 0
    mark_block(target + offset, wanted, size)
    return target + offset
