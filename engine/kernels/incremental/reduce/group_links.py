"""The links of a reduction's groups: their first candidate, and the row of their result.

Groups with candidates have both in pairs, as who asks for one wants the other; groups without have the rows alone. Numbers are
stored plus one, so that 0 is none; the first candidate of a list with a table (candidates.py) is negative.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i32
from dlog.engine.kernels.layout import CO_CURRENT, CO_HEADS


@kernel
def head_of(groups, group):
    return load_i32(load_i64(groups, CO_HEADS), group * 2)


@kernel
def set_head(groups, group, head):
    store_i32(load_i64(groups, CO_HEADS), group * 2, head)


@kernel
def head_place(groups, group):
    """Address of what a group with candidates leads to."""
    return load_i64(groups, CO_HEADS) + group * 8


@kernel
def first_candidate(groups, group):
    """The first candidate of a group, plus one; 0 if it has none."""
    return abs(head_of(groups, group))


@kernel
def current_of(groups, group):
    """The row of a group's result, plus one; 0 if it has none."""
    heads = load_i64(groups, CO_HEADS)
    return load_i32(heads, group * 2 + 1) if heads != 0 else load_i32(load_i64(groups, CO_CURRENT), group)


@kernel
def set_current(groups, group, row):
    heads = load_i64(groups, CO_HEADS)
    if heads != 0:
        store_i32(heads, group * 2 + 1, row)
    else:
        store_i32(load_i64(groups, CO_CURRENT), group, row)


@kernel
def warm_heads(groups, rows, n):
    """Asks for what groups rows[i], which have candidates, lead to."""
    heads = load_i64(groups, CO_HEADS)
    for i in range(n):
        prefetch(heads + load_i64(rows, i) * 8)
