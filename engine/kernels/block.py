"""Instructions on one block: filters, records. Each works through whole registers, so that dispatch costs nothing
per row."""

from __future__ import annotations

from dlog.engine.kernels.codes import Comparison
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import as_float
from dlog.engine.kernels.machine_structs import Column, Numbers, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.storage import register

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
    if compare == Comparison.EQ:
        for i in range(n):
            chosen[kept] = i
            kept += left[i] == right[i]
    elif compare == Comparison.NE:
        for i in range(n):
            chosen[kept] = i
            kept += left[i] != right[i]
    elif compare == Comparison.LT:
        for i in range(n):
            chosen[kept] = i
            kept += left[i] < right[i]
    elif compare == Comparison.LE:
        for i in range(n):
            chosen[kept] = i
            kept += left[i] <= right[i]
    elif compare == Comparison.LT_U:
        for i in range(n):
            chosen[kept] = i
            kept += (left[i] ^ _SIGN) < (right[i] ^ _SIGN)
    elif compare == Comparison.LE_U:
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
        if compare == Comparison.EQ_F:
            kept += a == b
        elif compare == Comparison.NE_F:
            kept += a != b
        elif compare == Comparison.LT_F:
            kept += a < b
        elif compare == Comparison.LE_F:
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
            target[i] = Numbers(data)[max(rows[i], 0)]
    else:
        for i in range(n):
            target[i] = Words(data)[max(rows[i], 0)]
