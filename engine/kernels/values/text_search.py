"""Which texts of a column of Arrow's have some parts, one after the other with anything between them, as `LIKE` asks by `%`.

The bytes of all texts of a column follow each other, so the first part is looked for in all of them in one go: a text that does
not have it costs no more than its bytes."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.values.wildcards import find_part
from dlog.engine.kernels.values.words import equal_bytes


@kernel
def _goes_on(at, end, limit, parts, ends: Words, number, count):
    """Whether the parts from a number on follow from `at` on, the last of them at the end of the text."""
    part_limit = parts + ends[count - 1]
    for k in range(number, count - 1):
        length = ends[k] - ends[k - 1]
        at = find_part(at, end, limit, parts + ends[k - 1], length, part_limit)
        if at < 0:
            return False
        at += length
    length = ends[count - 1] - ends[count - 2]
    return end - at >= length and equal_bytes(end - length, limit, part_limit - length, part_limit, length)


@kernel
def _is_made_of(start, end, limit, parts, ends: Words, count):
    """Whether a text begins with the first part, and goes on with the others; if there is one part, whether it is that."""
    first = ends[0]
    if end - start < first or not equal_bytes(start, limit, parts, parts + ends[count - 1], first):
        return False
    return end - start == first if count == 1 else _goes_on(start + first, end, limit, parts, ends, 1, count)


@kernel
def _search(data, offsets: Numbers, rows, parts, ends: Words, count, found: Words):
    """Writes 1 for the texts that have the parts, of which the first one is empty, and may begin anywhere: the second one is
    what is looked for."""
    row, at, limit = 0, data + offsets[0], data + offsets[rows]
    part, length, part_limit = parts + ends[0], ends[1] - ends[0], parts + ends[count - 1]
    at = find_part(at, limit, limit, part, length, part_limit)
    while at >= 0:
        while data + offsets[row + 1] <= at:
            row += 1
        end = data + offsets[row + 1]
        if at + length > end:  # half of it is in the next text
            at += 1
        else:
            found[row] = 1 if _goes_on(at + length, end, limit, parts, ends, 2, count) else 0
            at = end
        at = find_part(at, limit, limit, part, length, part_limit)


@entry()
def match_column(data, offsets: Numbers, rows, parts, ends: Words, count, found: Words):
    """Writes for each of so many texts, of which there are some, 1 where it is the parts, one after the other with anything
    between them, else 0. Text r has the bytes from `data + offsets[r]` up to `data + offsets[r + 1]`. Where the parts end, say
    `ends`; the first and the last one may be empty, others are not."""
    for row in range(rows):
        found[row] = 0
    if count > 2 and ends[0] == 0:
        _search(data, offsets, rows, parts, ends, count, found)
        return
    limit = data + offsets[rows]
    for row in range(rows):
        if _is_made_of(data + offsets[row], data + offsets[row + 1], limit, parts, ends, count):
            found[row] = 1
