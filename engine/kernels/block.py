"""Instructions on one block: filters, records. Each works through whole registers, so that dispatch costs nothing
per row."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import as_float, load_i32, load_i64, store_i64
from dlog.engine.kernels.layout import (
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
    COL_DATA,
    COL_WIDTH,
)
from dlog.engine.kernels.static.storage import register

_SIGN = -9223372036854775808


@kernel
def compact(ctl, live, count, chosen, kept):
    """Keeps rows chosen[0..kept) of each of the `count` registers listed at `live`."""
    for r in range(count):
        values = register(ctl, load_i64(live, r))
        for j in range(kept):
            store_i64(values, j, load_i64(values, load_i64(chosen, j)))


@kernel
def select_compare(compare, left, right, n, chosen):
    """chosen[0..kept) are the rows where the comparison holds; returns kept."""
    kept = 0
    if compare == CMP_EQ:
        for i in range(n):
            store_i64(chosen, kept, i)
            kept += load_i64(left, i) == load_i64(right, i)
    elif compare == CMP_NE:
        for i in range(n):
            store_i64(chosen, kept, i)
            kept += load_i64(left, i) != load_i64(right, i)
    elif compare == CMP_LT:
        for i in range(n):
            store_i64(chosen, kept, i)
            kept += load_i64(left, i) < load_i64(right, i)
    elif compare == CMP_LE:
        for i in range(n):
            store_i64(chosen, kept, i)
            kept += load_i64(left, i) <= load_i64(right, i)
    elif compare == CMP_LT_U:
        for i in range(n):
            store_i64(chosen, kept, i)
            kept += (load_i64(left, i) ^ _SIGN) < (load_i64(right, i) ^ _SIGN)
    elif compare == CMP_LE_U:
        for i in range(n):
            store_i64(chosen, kept, i)
            kept += (load_i64(left, i) ^ _SIGN) <= (load_i64(right, i) ^ _SIGN)
    else:
        kept = select_compare_float(compare, left, right, n, chosen)
    return kept


@kernel
def select_compare_float(compare, left, right, n, chosen):
    kept = 0
    for i in range(n):
        a = as_float(load_i64(left, i))
        b = as_float(load_i64(right, i))
        store_i64(chosen, kept, i)
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
def select_flag(values, wanted, n, chosen):
    """Rows whose value is non-negative (wanted 1) or negative (wanted 0): the sense of found rows and groups."""
    kept = 0
    for i in range(n):
        store_i64(chosen, kept, i)
        kept += (load_i64(values, i) >= 0) == (wanted == 1)
    return kept


@kernel
def select_nonzero(values, n, chosen):
    kept = 0
    for i in range(n):
        store_i64(chosen, kept, i)
        kept += load_i64(values, i) != 0
    return kept


@kernel
def gather(column, rows, n, target):
    """target[i] = the column's cell at rows[i]; a negative row reads row 0, to be replaced by the caller."""
    data = load_i64(column, COL_DATA)
    if load_i64(column, COL_WIDTH) == 4:
        for i in range(n):
            store_i64(target, i, load_i32(data, max(load_i64(rows, i), 0)))
    else:
        for i in range(n):
            store_i64(target, i, load_i64(data, max(load_i64(rows, i), 0)))
