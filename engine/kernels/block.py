"""Instructions on one block: filters, arithmetic, records. Each works through whole registers, so that dispatch costs nothing
per row."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import as_bits, as_float, load_i32, load_i64
from dlog.engine.kernels.layout import (
    AR_ADD,
    AR_ADD_F,
    AR_BAND,
    AR_BNOT,
    AR_BOR,
    AR_BXOR,
    AR_DIV,
    AR_DIV_F,
    AR_DIV_U,
    AR_FTOI,
    AR_FTOU,
    AR_ITOF,
    AR_LAND,
    AR_LNOT,
    AR_LOR,
    AR_LXOR,
    AR_MAX,
    AR_MAX_F,
    AR_MAX_U,
    AR_MIN,
    AR_MIN_F,
    AR_MIN_U,
    AR_MOD,
    AR_MOD_U,
    AR_MUL,
    AR_MUL_F,
    AR_NEG,
    AR_NEG_F,
    AR_POW,
    AR_POW_F,
    AR_POW_U,
    AR_SHL,
    AR_SHR,
    AR_SHRU,
    AR_SUB,
    AR_SUB_F,
    AR_UTOF,
    AR_WEIGHT,
    CMP_EQ,
    CMP_EQ_F,
    CMP_LE,
    CMP_LE_F,
    CMP_LE_U,
    CMP_LT,
    CMP_LT_F,
    CMP_LT_U,
    CMP_NE,
    CMP_NE_F,
    ERROR_DIVISION,
    ERROR_SUM,
    ERROR_WEIGHT,
    SUM_MOST,
)
from dlog.engine.kernels.machine_structs import Column, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.storage import register
from dlog.engine.kernels.values.floats import float_word

_SIGN = -9223372036854775808


@kernel
def compact(ctl: Control, live: Words, count, chosen: Words, kept):
    """Keeps rows chosen[0..kept) of each of the `count` registers listed at `live`."""
    for r in range(count):
        values = register(ctl, live[r])
        for j in range(kept):
            values[j] = values[chosen[j]]


@kernel
def select_compare(compare, left: Words, right: Words, n, chosen: Words):
    """chosen[0..kept) are the rows where the comparison holds; returns kept."""
    kept = 0
    if compare == CMP_EQ:
        for i in range(n):
            chosen[kept] = i
            kept += left[i] == right[i]
    elif compare == CMP_NE:
        for i in range(n):
            chosen[kept] = i
            kept += left[i] != right[i]
    elif compare == CMP_LT:
        for i in range(n):
            chosen[kept] = i
            kept += left[i] < right[i]
    elif compare == CMP_LE:
        for i in range(n):
            chosen[kept] = i
            kept += left[i] <= right[i]
    elif compare == CMP_LT_U:
        for i in range(n):
            chosen[kept] = i
            kept += (left[i] ^ _SIGN) < (right[i] ^ _SIGN)
    elif compare == CMP_LE_U:
        for i in range(n):
            chosen[kept] = i
            kept += (left[i] ^ _SIGN) <= (right[i] ^ _SIGN)
    else:
        kept = select_compare_float(compare, left, right, n, chosen)
    return kept


@kernel
def select_compare_float(compare, left: Words, right: Words, n, chosen: Words):
    kept = 0
    for i in range(n):
        a = as_float(left[i])
        b = as_float(right[i])
        chosen[kept] = i
        if compare == CMP_EQ_F:
            kept += a == b
        elif compare == CMP_NE_F:
            kept += a != b
        elif compare == CMP_LT_F:
            kept += a < b
        elif compare == CMP_LE_F:
            kept += a <= b
    return kept


@kernel
def select_flag(values: Words, wanted, n, chosen: Words):
    """Rows whose value is non-negative (wanted 1) or negative (wanted 0): the sense of found rows and groups."""
    kept = 0
    for i in range(n):
        chosen[kept] = i
        kept += (values[i] >= 0) == (wanted == 1)
    return kept


@kernel
def select_nonzero(values: Words, n, chosen: Words):
    kept = 0
    for i in range(n):
        chosen[kept] = i
        kept += values[i] != 0
    return kept


@kernel
def gather(column: Column, rows: Words, n, target: Words):
    """target[i] = the column's cell at rows[i]; a negative row reads row 0, to be replaced by the caller."""
    data = column.data
    if column.width == 4:
        for i in range(n):
            target[i] = load_i32(data, max(rows[i], 0))
    else:
        for i in range(n):
            target[i] = load_i64(data, max(rows[i], 0))


# ----------------------------------------------------------------------------------------------------------- arithmetic


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
    if operation == AR_ADD:
        for i in range(n):
            target[i] = left[i] + right[i]
    elif operation == AR_SUB:
        for i in range(n):
            target[i] = left[i] - right[i]
    elif operation == AR_MUL:
        for i in range(n):
            target[i] = left[i] * right[i]
    elif operation in (AR_DIV, AR_MOD, AR_DIV_U, AR_MOD_U):
        return division_block(operation, left, right, n, target)
    elif operation == AR_WEIGHT:
        for i in range(n):
            if left[i] < 0:
                return ERROR_WEIGHT
            if left[i] > SUM_MOST:
                return ERROR_SUM
            target[i] = left[i]
    elif operation in (AR_ADD_F, AR_SUB_F, AR_MUL_F, AR_DIV_F, AR_POW_F, AR_MIN_F, AR_MAX_F, AR_NEG_F):
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
            return ERROR_DIVISION
        if operation == AR_DIV:
            target[i] = divide(a, b)
        elif operation == AR_MOD:
            target[i] = a - divide(a, b) * b
        elif operation == AR_DIV_U:
            target[i] = unsigned_divide(a, b)
        else:
            target[i] = a - unsigned_divide(a, b) * b
    return 0


@kernel
def float_block(operation, left: Words, right: Words, n, target: Words):
    for i in range(n):
        a = as_float(left[i])
        b = as_float(right[i])
        if operation == AR_ADD_F:
            a = a + b
        elif operation == AR_SUB_F:
            a = a - b
        elif operation == AR_MUL_F:
            a = a * b
        elif operation == AR_DIV_F:
            a = a / b
        elif operation == AR_POW_F:
            a = a**b
        elif operation == AR_NEG_F:
            a = -a
        elif operation == AR_MIN_F:
            a = b if b < a else a
        else:
            a = b if b > a else a
        target[i] = float_word(a)


@kernel
def integer_operation(operation, a, b):
    if operation == AR_POW:
        return power(a, b)
    if operation == AR_POW_U:
        return unsigned_power(a, b)
    if operation == AR_MIN:
        return min(a, b)
    if operation == AR_MAX:
        return max(a, b)
    if operation == AR_MIN_U:
        return a if (a ^ _SIGN) <= (b ^ _SIGN) else b
    if operation == AR_MAX_U:
        return a if (a ^ _SIGN) >= (b ^ _SIGN) else b
    if operation == AR_BAND:
        return a & b
    if operation == AR_BOR:
        return a | b
    if operation == AR_BXOR:
        return a ^ b
    if operation == AR_SHL:
        return a << (b & 63)
    if operation == AR_SHR:
        return a >> (b & 63)
    if operation == AR_SHRU:
        shift = b & 63
        return a if shift == 0 else (a >> shift) & ((1 << (64 - shift)) - 1)
    if operation == AR_LAND:
        return 1 if a != 0 and b != 0 else 0
    if operation == AR_LOR:
        return 1 if a != 0 or b != 0 else 0
    if operation == AR_LXOR:
        return 1 if (a != 0) != (b != 0) else 0
    return unary_operation(operation, a)


@kernel
def unary_operation(operation, a):
    if operation == AR_BNOT:
        return ~a
    if operation == AR_LNOT:
        return 1 if a == 0 else 0
    if operation == AR_NEG:
        return -a
    if operation == AR_ITOF:
        return as_bits(float(a))
    if operation == AR_FTOI:
        return int(as_float(a))
    if operation == AR_UTOF:
        return as_bits(float_from_unsigned(a))
    if operation == AR_FTOU:
        return unsigned_from_float(as_float(a))
    return a
