"""Arithmetic on blocks of words: the cases of the functors on numbers (ir/functors.py)."""

from __future__ import annotations

from enum import IntEnum, auto

import numpy as np

from dlog.engine.kernels.codes import Error
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import as_bits, as_float
from dlog.engine.kernels.layout import SUM_MOST
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.values import calendar
from dlog.engine.kernels.values.calendar import add_months, civil, seconds_between, weekday
from dlog.engine.kernels.values.floats import float_of_short_bits, float_word, round_float, short_bits

_SIGN = -9223372036854775808


class Arithmetic(IntEnum):
    """What a `Compute` does with two words; of those with one operand, the second does not count. `_U` reads words as
    unsigned, `_F` as floats; these come last, from ADD_F on."""

    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIV = auto()
    MOD = auto()
    POW = auto()
    DIV_U = auto()
    MOD_U = auto()
    POW_U = auto()
    MIN = auto()
    MAX = auto()
    MIN_U = auto()
    MAX_U = auto()
    BAND = auto()
    BOR = auto()
    BXOR = auto()
    SHL = auto()
    SHR = auto()
    SHRU = auto()
    LAND = auto()
    LOR = auto()
    LXOR = auto()
    BNOT = auto()
    LNOT = auto()
    NEG = auto()
    ABS = auto()
    BIT_COUNT = auto()
    ITOF = auto()
    FTOI = auto()
    UTOF = auto()
    FTOU = auto()
    WEIGHT = auto()
    NARROW = auto()
    NARROW_U = auto()
    SHORT_BITS = auto()
    FLOAT_OF_SHORT_BITS = auto()
    YEAR = auto()
    MONTH = auto()
    DAY = auto()
    WEEKDAY = auto()
    ADD_MONTHS = auto()
    DAYS_BETWEEN = auto()
    DATE_OF = auto()
    TIMESTAMP_OF = auto()
    HOUR = auto()
    MINUTE = auto()
    SECOND = auto()
    MICROSECOND = auto()
    ADD_SECONDS = auto()
    SECONDS_BETWEEN = auto()
    ADD_F = auto()
    SUB_F = auto()
    MUL_F = auto()
    DIV_F = auto()
    POW_F = auto()
    MIN_F = auto()
    MAX_F = auto()
    NEG_F = auto()
    ABS_F = auto()
    FLOOR = auto()
    CEIL = auto()
    SQRT = auto()
    NARROW_F = auto()


@kernel
def divide(a, b):
    """Division that truncates toward zero; -2**63 / -1 wraps."""
    if b == -1:
        return -a
    q = a // b
    if q < 0 and q * b != a:
        q += 1
    return q


@kernel
def unsigned_divide(a, b):
    """Quotient of two words read as unsigned."""
    if b < 0:
        return 1 if (a ^ _SIGN) >= (b ^ _SIGN) else 0
    if a >= 0:
        return a // b
    q = (((a >> 1) & 0x7FFFFFFFFFFFFFFF) // b) << 1
    if ((a - q * b) ^ _SIGN) >= (b ^ _SIGN):
        q += 1
    return q


@kernel
def power(a, b):
    """a to the power b, wrapping. A negative power truncates the reciprocal: 0 unless a is 1 or -1."""
    if b < 0:
        if a == 1:
            return 1
        if a == -1:
            return 1 if b & 1 == 0 else -1
        return 0
    return unsigned_power(a, b)


@kernel
def unsigned_power(a, b):
    """a to the power b, a word read as unsigned, by squaring, wrapping."""
    result = 1
    base = a
    while b != 0:
        if b & 1:
            result *= base
        base *= base
        b = (b >> 1) & 0x7FFFFFFFFFFFFFFF
    return result


@kernel
def bit_count(a):
    """The ones among the bits of a word, counted in pairs, in fours and in bytes, which a product adds up (Warren, Hacker's
    Delight, 5-1)."""
    pairs = a - ((a >> 1) & 0x5555555555555555)
    fours = (pairs & 0x3333333333333333) + ((pairs >> 2) & 0x3333333333333333)
    eights = (fours + (fours >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((eights * 0x0101010101010101) >> 56) & 0xFF


@kernel
def float_from_unsigned(a):
    """The double nearest to a word read as unsigned: halved, the lost bit still decides a tie."""
    if a >= 0:
        return float(a)
    return float((a >> 1) & 0x7FFFFFFFFFFFFFFF | a & 1) * 2.0


@kernel
def unsigned_from_float(x):
    if x >= 9223372036854775808.0:
        return int(x - 9223372036854775808.0) ^ _SIGN
    return int(x)


@entry()
def arithmetic_block(operation, left: Words, right: Words, n, target: Words):
    """target = left op right. Returns 0, or the error."""
    if operation == Arithmetic.ADD:
        for i in range(n):
            target[i] = left[i] + right[i]
    elif operation == Arithmetic.SUB:
        for i in range(n):
            target[i] = left[i] - right[i]
    elif operation == Arithmetic.MUL:
        for i in range(n):
            target[i] = left[i] * right[i]
    elif operation in (Arithmetic.DIV, Arithmetic.MOD, Arithmetic.DIV_U, Arithmetic.MOD_U):
        return division_block(operation, left, right, n, target)
    elif operation == Arithmetic.WEIGHT:
        for i in range(n):
            if left[i] < 0:
                return Error.WEIGHT
            if left[i] > SUM_MOST:
                return Error.SUM
            target[i] = left[i]
    elif operation >= Arithmetic.ADD_F:
        float_block(operation, left, right, n, target)
    else:
        for i in range(n):
            target[i] = integer_operation(operation, left[i], right[i])
    return 0


@kernel
def division_block(operation, left: Words, right: Words, n, target: Words):
    for i in range(n):
        a = left[i]
        b = right[i]
        if b == 0:
            return Error.DIVISION
        if operation == Arithmetic.DIV:
            target[i] = divide(a, b)
        elif operation == Arithmetic.MOD:
            target[i] = a - divide(a, b) * b
        elif operation == Arithmetic.DIV_U:
            target[i] = unsigned_divide(a, b)
        else:
            target[i] = a - unsigned_divide(a, b) * b
    return 0


@kernel
def float_block(operation, left: Words, right: Words, n, target: Words):
    for i in range(n):
        a = as_float(left[i])
        b = as_float(right[i])
        if operation == Arithmetic.ADD_F:
            a = a + b
        elif operation == Arithmetic.SUB_F:
            a = a - b
        elif operation == Arithmetic.MUL_F:
            a = a * b
        elif operation == Arithmetic.DIV_F:
            a = a / b
        elif operation == Arithmetic.POW_F:
            a = a**b
        elif operation == Arithmetic.NEG_F:
            a = -a
        elif operation == Arithmetic.ABS_F:
            a = abs(a)
        elif operation == Arithmetic.FLOOR:
            a = np.floor(a)
        elif operation == Arithmetic.CEIL:
            a = np.ceil(a)
        elif operation == Arithmetic.SQRT:
            a = np.sqrt(a) if a >= 0 else np.nan
        elif operation == Arithmetic.NARROW_F:
            a = round_float(a)
        elif operation == Arithmetic.MIN_F:
            a = b if b < a else a
        else:
            a = b if b > a else a
        target[i] = float_word(a)


@kernel
def integer_operation(operation, a, b):
    if operation == Arithmetic.POW:
        return power(a, b)
    if operation == Arithmetic.POW_U:
        return unsigned_power(a, b)
    if operation == Arithmetic.MIN:
        return min(a, b)
    if operation == Arithmetic.MAX:
        return max(a, b)
    if operation == Arithmetic.MIN_U:
        return a if (a ^ _SIGN) <= (b ^ _SIGN) else b
    if operation == Arithmetic.MAX_U:
        return a if (a ^ _SIGN) >= (b ^ _SIGN) else b
    if operation == Arithmetic.BAND:
        return a & b
    if operation == Arithmetic.BOR:
        return a | b
    if operation == Arithmetic.BXOR:
        return a ^ b
    if operation == Arithmetic.SHL:
        return a << (b & 63)
    if operation == Arithmetic.SHR:
        return a >> (b & 63)
    if operation == Arithmetic.SHRU:
        shift = b & 63
        return a if shift == 0 else (a >> shift) & ((1 << (64 - shift)) - 1)
    if operation == Arithmetic.LAND:
        return 1 if a != 0 and b != 0 else 0
    if operation == Arithmetic.LOR:
        return 1 if a != 0 or b != 0 else 0
    if operation == Arithmetic.LXOR:
        return 1 if (a != 0) != (b != 0) else 0
    if operation >= Arithmetic.YEAR:
        return calendar_operation(operation, a, b)
    return unary_operation(operation, a)


@kernel
def unary_operation(operation, a):
    if operation == Arithmetic.BNOT:
        return ~a
    if operation == Arithmetic.LNOT:
        return 1 if a == 0 else 0
    if operation == Arithmetic.NEG:
        return -a
    if operation == Arithmetic.ABS:
        return -a if a < 0 else a
    if operation == Arithmetic.BIT_COUNT:
        return bit_count(a)
    if operation == Arithmetic.ITOF:
        return as_bits(float(a))
    if operation == Arithmetic.FTOI:
        return int(as_float(a))
    if operation == Arithmetic.UTOF:
        return as_bits(float_from_unsigned(a))
    if operation == Arithmetic.FTOU:
        return unsigned_from_float(as_float(a))
    if operation == Arithmetic.NARROW:
        return narrowed(a)
    if operation == Arithmetic.NARROW_U:
        return a & 0xFFFFFFFF
    if operation == Arithmetic.SHORT_BITS:
        return short_bits(as_float(a))
    if operation == Arithmetic.FLOAT_OF_SHORT_BITS:
        return float_word(float_of_short_bits(a))
    return a


@kernel
def narrowed(a):
    """The low 32 bits, read as signed."""
    return ((a & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


@kernel
def calendar_operation(operation, a, b):
    """What is computed of days and of microseconds since 1970."""
    if operation == Arithmetic.DAYS_BETWEEN:
        return b - a
    if operation == Arithmetic.ADD_MONTHS:
        return add_months(a, b)
    if operation == Arithmetic.WEEKDAY:
        return weekday(a)
    if operation in (Arithmetic.YEAR, Arithmetic.MONTH, Arithmetic.DAY):
        year, month, day = civil(a)
        return year if operation == Arithmetic.YEAR else month if operation == Arithmetic.MONTH else day
    if operation == Arithmetic.DATE_OF:
        return a // calendar.DAY
    if operation == Arithmetic.TIMESTAMP_OF:
        return a * calendar.DAY
    if operation == Arithmetic.HOUR:
        return a % calendar.DAY // calendar.HOUR
    if operation == Arithmetic.MINUTE:
        return a % calendar.HOUR // calendar.MINUTE
    if operation == Arithmetic.SECOND:
        return a % calendar.MINUTE // calendar.SECOND
    if operation == Arithmetic.MICROSECOND:
        return a % calendar.SECOND
    if operation == Arithmetic.ADD_SECONDS:
        return a + b * calendar.SECOND
    return seconds_between(a, b)
