"""Numbers as text, both ways, at addresses, for kernels: Souffle's formats.

Readers take a half-open range of addresses and return (value, address behind what they read, status): leading white space
and a sign are accepted as C's `strtoll` does; what follows the number is the caller's business. Writers write at an address
and return how many bytes they wrote, at most `WIDEST`.
"""

from __future__ import annotations

import ctypes

import numpy as np

from dlog.engine.kernels.core.jit import JIT, entry, intrinsic, kernel
from dlog.engine.kernels.core.memory import as_bits, as_float, calloc, free, load_u8, store_u8
from dlog.engine.kernels.machine_structs import Bytes, Numbers, Words
from dlog.engine.kernels.values.calendar import read_day, read_time, write_day, write_time
from dlog.engine.kernels.values.floats import float_word, round_float

GOOD, BAD, RANGE = 0, 1, 2
"""Status of a reader: a number, not a number, a number that does not fit."""

NUMBER, UNSIGNED, FLOAT = 1, 2, 3
"""Codes of the numeric kinds in kernels."""

DATE, TIMESTAMP = 6, 7
"""Codes of numbers that are days and microseconds, and have texts of their own: see calendar.py."""

NUMBER32, UNSIGNED32, FLOAT32 = 8, 9, 10
"""Codes of the numeric kinds with 32 bits."""

WIDEST = 32
"""No number is written longer than this."""


SCRATCH = 512
"""Bytes that `read_float` needs to work in."""

if JIT:
    _strtod, _gcvt, _print_fixed = intrinsic("strtod"), intrinsic("gcvt"), intrinsic("print_fixed")

else:
    _libc = ctypes.CDLL(None)
    _libc.strtod.restype = ctypes.c_double
    _libc.strtod.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

    def _strtod(text: int, end: int) -> float:
        return float(_libc.strtod(int(text), int(end)))

    def _gcvt(value: float, digits: int, out: int) -> int:
        text = b"%.*g\0" % (digits, float(value))
        ctypes.memmove(int(out), text, len(text))
        return int(out)

    def _print_fixed(out: int, value: float) -> int:
        text = b"%f" % float(value)
        ctypes.memmove(int(out), text, len(text))
        return len(text)


@kernel
def skip_space(start, stop):
    """The address of the first byte that is not white space."""
    while start < stop:
        byte = load_u8(start, 0)
        if byte != 32 and not 9 <= byte <= 13:
            break
        start += 1
    return start


@kernel
def _digit(byte):
    """The value of a digit in any base up to 16; 99 for other bytes."""
    if 48 <= byte <= 57:
        return byte - 48
    byte |= 32
    return byte - 87 if 97 <= byte <= 102 else 99


@kernel
def _magnitude(start, stop, base, most):
    """Reads digits as uint64, at most `most`."""
    value = np.uint64(0)
    status = BAD
    while start < stop:
        digit = _digit(load_u8(start, 0))
        if digit >= base:
            break
        if status != RANGE:
            if value > (most - np.uint64(digit)) // np.uint64(base):
                status = RANGE
            else:
                value = value * np.uint64(base) + np.uint64(digit)
                status = GOOD
        start += 1
    return value, start, status


@kernel
def _prefix_base(start: Bytes, stop):
    """2 or 16 where `0b` or `0x` stands at `start`, else 10."""
    if start.address + 1 < stop and start[0] == 48:
        letter = start[1]
        if letter == 98:
            return 2
        if letter == 120:
            return 16
    return 10


@kernel
def read_signed(start, stop, prefixed):
    """A signed 64-bit integer; `0b` and `0x` (after a minus too) count where `prefixed`."""
    start = skip_space(start, stop)
    negative = False
    if start < stop and (load_u8(start, 0) == 45 or load_u8(start, 0) == 43):
        negative = load_u8(start, 0) == 45
        start += 1
    base = _prefix_base(Bytes(start), stop) if prefixed else 10
    if base != 10:
        start += 2
    most = np.uint64(0x8000000000000000) if negative else np.uint64(0x7FFFFFFFFFFFFFFF)
    value, start, status = _magnitude(start, stop, base, most)
    signed = np.int64(value)
    return (-signed if negative else signed), start, status


@kernel
def read_unsigned(start, stop):
    """An unsigned 64-bit integer, decimal or after `0b` or `0x`, as the int64 of the same bits."""
    start = skip_space(start, stop)
    if start < stop and load_u8(start, 0) == 43:
        start += 1
    base = _prefix_base(Bytes(start), stop)
    if base != 10:
        start += 2
    value, start, status = _magnitude(start, stop, base, np.uint64(0xFFFFFFFFFFFFFFFF))
    return np.int64(value), start, status


@kernel
def _plain_float(start, stop):
    """Reads `-12.5e3` where double arithmetic is exact (15 digits, a power of ten up to 22); else the status is BAD."""
    negative = start < stop and load_u8(start, 0) == 45
    if negative:
        start += 1
    value, digits, scale = 0, 0, 0
    fraction = False
    while start < stop:
        byte = load_u8(start, 0)
        if 48 <= byte <= 57:
            value = value * 10 + (byte - 48)
            digits += 1
            scale -= 1 if fraction else 0
        elif byte == 46 and not fraction:
            fraction = True
        else:
            break
        start += 1
    if start < stop and load_u8(start, 0) | 32 == 101 and digits > 0:
        exponent, start, status = read_signed(start + 1, stop, False)
        if status != GOOD or exponent > 100 or exponent < -100:
            return 0.0, start, BAD
        scale += exponent
    if digits == 0 or digits > 15 or scale > 22 or scale < -22:
        return 0.0, start, BAD
    power = 1.0
    for _ in range(abs(scale)):
        power *= 10.0
    result = value * power if scale > 0 else value / power
    return (-result if negative else result), start, GOOD


@kernel
def read_float(start: Bytes, stop, scratch):
    """A double, as its bits; `scratch` is the address of at least 512 free bytes."""
    value, behind, status = _plain_float(start.address, stop)
    if status == GOOD and behind == stop:
        return as_bits(value), behind, GOOD
    length = min(stop - start.address, 495)
    for i in range(length):
        store_u8(scratch, i, start[i])
    store_u8(scratch, length, 0)
    value = _strtod(scratch, scratch + 496)
    used = Words(scratch + 496)[0] - scratch
    if used == 0:
        return 0, start.address, BAD
    letter = load_u8(skip_space(start.address, stop), 0)
    if letter == 45 or letter == 43:
        letter = load_u8(skip_space(start.address, stop), 1)
    overflow = np.isinf(value) and letter | 32 != 105
    return float_word(value), start.address + used, (RANGE if overflow else GOOD)


@kernel
def _read_short(start: Bytes, stop, code, prefixed, scratch):
    """A number of 32 bits, as a word."""
    if code == FLOAT32:
        word, behind, status = read_float(start, stop, scratch)
        value = as_float(word)
        rounded = round_float(value)
        return float_word(rounded), behind, (RANGE if status == GOOD and np.isinf(rounded) != np.isinf(value) else status)
    if code == UNSIGNED32:
        word, behind, status = read_unsigned(start.address, stop)
        return word, behind, (RANGE if status == GOOD and word >> 32 != 0 else status)
    word, behind, status = read_signed(start.address, stop, prefixed)
    return word, behind, (RANGE if status == GOOD and (word + 0x80000000) >> 32 != 0 else status)


@kernel
def read_value(start: Bytes, stop, code, prefixed, scratch):
    """A value of this code as a word; `prefixed` as in `read_signed`, `scratch` as in `read_float`."""
    if code == NUMBER:
        return read_signed(start.address, stop, prefixed)
    if code == FLOAT:
        return read_float(start, stop, scratch)
    if code == UNSIGNED:
        return read_unsigned(start.address, stop)
    if code == DATE:
        value, behind, good = read_day(skip_space(start.address, stop), stop)
        return value, behind, (GOOD if good else BAD)
    if code == TIMESTAMP:
        value, behind, good = read_time(skip_space(start.address, stop), stop)
        return value, behind, (GOOD if good else BAD)
    return _read_short(start, stop, code, prefixed, scratch)


@entry()
def status_of(start: Bytes, stop, code, scratch):
    """The address behind a value, and the status of its reader."""
    _, behind, status = read_value(start, stop, code, False, scratch)
    return behind, status


@entry("u8[:]", "i64[:]", "i64[:]", "i64", "bool", "i64[:]")
def read_numbers(data, starts, ends, code, whole, out):
    """Reads number `i` from `data[starts[i]:ends[i]]` into `out[i]` (bits). Stops at the first that is not one, or,
    with `whole`, is followed by more text; returns its index, or the length when done."""
    address, scratch = np.int64(data.ctypes.data), calloc(SCRATCH, 1)
    done = starts.size
    for i in range(starts.size):
        stop = address + ends[i]
        value, behind, status = read_value(Bytes(address + starts[i]), stop, code, not whole, scratch)
        if status != GOOD or (whole and behind != stop):
            done = i
            break
        out[i] = value
    free(scratch)
    return done


@kernel
def write_unsigned(out, value):
    """Writes a uint64 in decimal."""
    length = 1
    rest = value // np.uint64(10)
    while rest != 0:
        rest //= np.uint64(10)
        length += 1
    for i in range(length - 1, -1, -1):
        rest = value // np.uint64(10)
        store_u8(out, i, np.int64(value - rest * np.uint64(10)) + 48)
        value = rest
    return length


@kernel
def write_signed(out, value):
    """Writes an int64 in decimal."""
    if value >= 0:
        return write_unsigned(out, np.uint64(value))
    store_u8(out, 0, 45)
    return 1 + write_unsigned(out + 1, np.uint64(0) - np.uint64(np.int64(value)))


@kernel
def write_nan(out: Bytes):
    out[0] = 110
    out[1] = 97
    out[2] = 110
    return 3


@kernel
def write_float(out: Bytes, value):
    """Writes a double as a C++ stream of precision 17 does (%.17g), but any NaN without a sign."""
    return _write_digits(out, value, 17, 1e15)


@kernel
def write_short_float(out: Bytes, value):
    """As `write_float`, with the 9 digits that tell floats of 32 bits apart."""
    return _write_digits(out, value, 9, 1e9)


@kernel
def _write_digits(out: Bytes, value, digits, most):
    """Writes a double with so many digits; whole ones below `most` have no more."""
    if value != value:
        return write_nan(out)
    if abs(value) < most and value == np.floor(value) and as_bits(value) != as_bits(-0.0):
        return write_signed(out.address, np.int64(value))
    _gcvt(value, digits, out.address)
    length = 0
    while out[length] != 0:
        length += 1
    return length


@kernel
def write_fixed(out: Bytes, value):
    """Writes a double with six digits behind the point (%f); needs WIDEST_FIXED bytes."""
    if value != value:
        return write_nan(out)
    return _print_fixed(out.address, value)


@kernel
def write_value(out: Bytes, address, index, code, narrow):
    """Writes element `index` of the numeric array at `address`; `narrow` arrays are int32."""
    value = Numbers(address)[index] if narrow else Words(address)[index]
    if code in (NUMBER, NUMBER32):
        return write_signed(out.address, value)
    if code == FLOAT:
        return write_float(out, as_float(value))
    if code == DATE:
        return write_day(out.address, value)
    if code == TIMESTAMP:
        return write_time(out.address, value)
    if code == FLOAT32:
        return write_short_float(out, as_float(value))
    return write_unsigned(out.address, np.uint64(np.int64(value)))


@entry("i64[:]", "i64", "u8[:]", "i64[:]")
def write_numbers(values, code, out, offsets):
    """Writes int64 bits one after the other into `out` (`WIDEST` bytes for each), element i to `offsets[i]:offsets[i + 1]`."""
    at = 0
    address = np.int64(out.ctypes.data)
    for i in range(values.size):
        at += write_value(Bytes(address + at), np.int64(values.ctypes.data), i, code, False)
        offsets[i + 1] = at


def number_texts(values: np.ndarray, code: int) -> tuple[np.ndarray, np.ndarray]:
    """The texts of an array of 64-bit numbers: bytes, and the int64 offsets that part them."""
    out = np.empty(len(values) * WIDEST, np.uint8)
    offsets = np.zeros(len(values) + 1, np.int64)
    write_numbers(np.ascontiguousarray(values).view(np.int64), code, out, offsets)
    return out[: offsets[-1]], offsets
