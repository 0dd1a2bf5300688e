"""The kernel that reads text files: bytes to columns, no object per row.

A field is kept as 64 bits: a number's value, a double's bits, or for text the start of its bytes in the block, with the end
in the next slot. The kernel stops at the first line that is wrong and says where it starts; what exactly is wrong there is
found by `mistakes`, which may be slow.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import calloc, free, load_u8, store_u8
from dlog.engine.kernels.machine_structs import Bytes
from dlog.engine.kernels.values.numerals import GOOD, NUMBER, NUMBER32, SCRATCH, read_value

SKIP, TEXT, NESTED = 0, 4, 5
"""Codes of columns beside those of `numerals`: not wanted; symbols; records and values of algebraic data types."""

BRACKETS, QUOTES, LOOSE = 1, 2, 4
"""Flags: a delimiter inside `[...]`, or inside `$Branch(...)` of a nested value, does not count; RFC 4180 quotes; columns
behind the last wanted one are ignored."""


@kernel
def _delimiter_at(address, limit, delimiter, length):  # type: ignore[no-untyped-def]
    if address + length > limit or load_u8(address, 0) != load_u8(delimiter, 0):
        return False
    for i in range(1, length):  # noqa: SIM110
        if load_u8(address, i) != load_u8(delimiter, i):
            return False
    return True


@kernel
def _line_ends_at(address, limit):  # type: ignore[no-untyped-def]
    if address >= limit:
        return True
    byte = load_u8(address, 0)
    return byte == 10 or (byte == 13 and (address + 1 >= limit or load_u8(address, 1) == 10))


@kernel
def _in_name(byte):  # type: ignore[no-untyped-def]
    return 97 <= byte <= 122 or 65 <= byte <= 90 or 48 <= byte <= 57 or byte == 95 or byte == 63 or byte == 46


@kernel
def _field_end(address, limit, delimiter, length, brackets, nested):  # type: ignore[no-untyped-def]
    """The end of the field that starts at `address`; -1 for unbalanced brackets."""
    first, depth, inside = load_u8(delimiter, 0), 0, 0
    branch = False
    while address < limit:
        byte = load_u8(address, 0)
        if byte == 10 or (byte == 13 and _line_ends_at(address, limit)):
            break
        if byte == first and depth == 0 and inside == 0 and (length == 1 or _delimiter_at(address, limit, delimiter, length)):
            break
        if brackets:
            if byte == 91:
                depth += 1
            elif byte == 93 and depth > 0:
                depth -= 1
            elif nested and byte == 40 and branch:
                inside += 1
            elif byte == 41 and inside > 0:
                inside -= 1
            branch = byte == 36 or (branch and _in_name(byte))
        address += 1
    return -1 if depth or inside else address


@kernel
def _unquote(address, limit):  # type: ignore[no-untyped-def]
    """Undoubles the quotes of the quoted field whose opening quote is at `address`, in place. Returns the end of the text,
    which starts behind that quote, and the address behind the closing quote, -1 if there is none."""
    target = address = address + 1
    while address < limit:
        byte = load_u8(address, 0)
        if byte == 34:
            if address + 1 >= limit or load_u8(address, 1) != 34:
                return target, address + 1
            address += 1
        store_u8(target, 0, byte)
        target += 1
        address += 1
    return target, -1


@entry("i64", "i64", "i64", "u8[:]", "i64[:]", "i64[:]", "i64", "i64[:,:]", "i64[:]", "i64[:]")
def parse_rows(base, begin, end, delimiter_bytes, codes, slots, flags, out, wide, state):  # type: ignore[no-untyped-def]
    """Reads lines of the bytes `begin` to `end` behind address `base` into `out[slot, row]` until it is full or the bytes end.

    Field c of a line has code `codes[c]` and goes to slot `slots[c]`. `wide[slot]` becomes nonzero when a number does not
    fit 32 bits. Returns the number of rows; `state` gets the position reached and whether the line there is wrong."""
    limit = base + end
    line = base + begin
    delimiter, length = np.int64(delimiter_bytes.ctypes.data), delimiter_bytes.size
    first = load_u8(delimiter, 0)
    brackets, quotes, loose = flags & BRACKETS != 0, flags & QUOTES != 0, flags & LOOSE != 0
    scratch = calloc(SCRATCH, 1)
    fields = codes.size
    rows = 0
    state[1] = 0
    while line < limit and rows < out.shape[1]:
        address = line
        wrong = False
        for c in range(fields):
            code = codes[c]
            slot = slots[c]
            start = address
            last = c == fields - 1
            stop = np.int64(0)
            behind = np.int64(0)
            if code in (NUMBER, NUMBER32):
                # The common case in one pass: up to 18 digits, then the delimiter or the end of the line.
                negative = address < limit and load_u8(address, 0) == 45
                if negative:
                    address += 1
                digits = address
                value = np.int64(0)
                while address < limit:
                    digit = load_u8(address, 0) - 48
                    if digit < 0 or digit > 9:
                        break
                    value = value * 10 + digit
                    address += 1
                if 0 < address - digits <= (18 if code == NUMBER else 9) and (
                    _line_ends_at(address, limit)
                    if last
                    else address < limit and load_u8(address, 0) == first and _delimiter_at(address, limit, delimiter, length)
                ):
                    if negative:
                        value = -value
                    out[slot, rows] = value
                    wide[slot] |= (value + 0x80000000) >> 32
                    if not last:
                        address += length
                    continue
            if quotes and start < limit and load_u8(start, 0) == 34:
                stop, behind = _unquote(start, limit)
                start += 1
            else:
                stop = behind = _field_end(start, limit, delimiter, length, brackets, code == NESTED)
            if behind < 0:
                wrong = True
                break
            if code in (TEXT, NESTED):
                out[slot, rows] = start - base
                out[slot + 1, rows] = stop - base
            elif code != SKIP:
                value, read, status = read_value(Bytes(start), stop, code, False, scratch)
                wide[slot] |= (value + 0x80000000) >> 32
                if status != GOOD or read != stop:
                    wrong = True
                    break
                out[slot, rows] = value
            address = behind
            if last:
                wrong = not _line_ends_at(address, limit) and not loose
            elif _delimiter_at(address, limit, delimiter, length):
                address += length
            else:
                wrong = True
                break
        if wrong:
            state[1] = 1
            break
        if fields == 0 or loose:
            while not _line_ends_at(address, limit):
                address += 1
        if address < limit and load_u8(address, 0) == 13:
            address += 1
        line = address + 1
        rows += 1
    free(scratch)
    state[0] = min(line, limit) - base
    return rows
