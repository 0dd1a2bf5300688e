"""The links of a reduction's groups: their first candidate, and the row of their result.

Groups with candidates have both in pairs, as who asks for one wants the other; groups without have the rows alone. Numbers are
stored plus one, so that 0 is none; the first candidate of a list with a table (candidates.py) is negative.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.round_structs import Collection


@kernel
def head_of(groups: Collection, group):
    return groups.grouping.heads[group].candidate


@kernel
def set_head(groups: Collection, group, head):
    groups.grouping.heads[group].candidate = head


@kernel
def head_place(groups: Collection, group):
    """Address of what a group with candidates leads to."""
    return groups.grouping.heads[group].address


@kernel
def first_candidate(groups: Collection, group):
    """The first candidate of a group, plus one; 0 if it has none."""
    return abs(head_of(groups, group))


@kernel
def current_of(groups: Collection, group):
    """The row of a group's result, plus one; 0 if it has none."""
    heads = groups.grouping.heads
    return heads[group].result if heads else groups.grouping.current[group]


@kernel
def set_current(groups: Collection, group, row):
    heads = groups.grouping.heads
    if heads:
        heads[group].result = row
    else:
        groups.grouping.current[group] = row
