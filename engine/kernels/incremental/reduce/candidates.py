"""Candidates of minima and maxima (candidate.py): the values that each group has, in a list of its own.

Lists are short, nearly always: the best value comes first, and who looks for a value begins there. The candidates of a list
that has grown long are in the reduction's table besides, by the hash of group and value, each with the one before it in the
list; the head's number is negative then, and new ones come first, whatever their values.
"""

from __future__ import annotations

from dlog.engine.kernels.combine import dominates
from dlog.engine.kernels.core.jit import inlined, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.reduce.candidate import (
    candidate_at,
    candidate_group,
    candidate_value,
    free_candidate,
    make_candidate,
    next_candidate,
    value_at,
    warm_candidate,
)
from dlog.engine.kernels.incremental.reduce.group_links import first_candidate, head_of, head_place, set_head
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control, Reduction
from dlog.engine.kernels.row_structs import CandidatePlace, CandidatePlaces
from dlog.engine.kernels.static.storage import mix, release, scratch_block, zeroed

MIN_HASHED_CANDIDATES = 16
"""Candidates that are passed in a list from which on its own are found by hash."""
CANDIDATES_AHEAD, LISTS_AHEAD = 4, 8
"""Candidates of a list that are asked for before the first is looked at, and groups between two of these steps."""


@kernel
def candidate_row(ctl: Control, reduction: Reduction, group, value):
    """The candidate of a group with a value, made and linked if there is none; -1 with ctl.error set."""
    candidates = reduction.candidates
    groups = reduction.groups
    head = head_of(groups, group)
    if head < 0:
        place = find_hashed(reduction, group, value)
        return place if place >= 0 else add_hashed(ctl, reduction, group, value)
    op = reduction.op
    passed = 0
    before = 0
    at = head
    while at != 0:
        record = candidate_at(candidates, at - 1)
        known = value_at(candidates, record)
        if known == value or dominates(op, value, known):
            break
        passed += 1
        before = at
        at = record.next
    if passed >= MIN_HASHED_CANDIDATES and not hash_list(ctl, reduction, group):
        return -1
    if at != 0 and candidate_value(candidates, at - 1) == value:
        return at - 1
    if passed >= MIN_HASHED_CANDIDATES:
        return add_hashed(ctl, reduction, group, value)
    return insert_candidate(ctl, reduction, group, value, before, at)


@kernel
def insert_candidate(ctl: Control, reduction: Reduction, group, value, before, following):
    """A new candidate between two of a group's list (their numbers plus one, or 0); -1 with ctl.error set."""
    candidates = reduction.candidates
    row = make_candidate(ctl, candidates, group, value)
    if row >= 0:
        candidate_at(candidates, row).next = following
        if before == 0:
            set_head(reduction.groups, group, row + 1)
        else:
            candidate_at(candidates, before - 1).next = row + 1
    return row


@kernel
def unlink(ctl: Control, reduction: Reduction, group, row):
    """Removes a candidate from its group's list and from the candidates; false with ctl.error set."""
    groups = reduction.groups
    candidates = reduction.candidates
    following = next_candidate(candidates, row)
    if head_of(groups, group) < 0:
        before = remove_hashed(reduction, row)
        if following != 0:
            hashed_place(reduction, following - 1).before = before
        if before == 0:
            set_head(groups, group, -following)
    else:
        before = 0
        at = head_of(groups, group)
        while at != row + 1:
            before = at
            at = next_candidate(candidates, at - 1)
        if before == 0:
            set_head(groups, group, following)
    if before != 0:
        candidate_at(candidates, before - 1).next = following
    return free_candidate(ctl, candidates, row)


@kernel
def begin_lists(ctl: Control, reduction: Reduction, values: Words, n, rows: Words):
    """Before the candidates of n groups rows[i] are looked at, each with `warm_list`: asks for those of the first, up to those
    with values[i] unless `values` is null. Often a list's first is the one: in recursion what is derived in one iteration has
    one value."""
    for i in range(min(n, (CANDIDATES_AHEAD + 1) * LISTS_AHEAD)):
        prefetch(head_place(reduction.groups, rows[i]))
    lists = scratch_block(ctl, 5)
    for i in range(min(n, CANDIDATES_AHEAD * LISTS_AHEAD)):
        warm_first(reduction, rows, lists, i)
    for step in range(CANDIDATES_AHEAD - 1, 0, -1):
        left = 0
        for i in range(min(n, step * LISTS_AHEAD)):
            warm_next(reduction, values, lists, i)
            left |= lists[i]
        if left == 0:
            break


@inlined
def warm_list(ctl: Control, reduction: Reduction, values: Words, at, n, rows: Words):
    """While the candidates of a group are looked at, asks for those of groups behind it, step by step, as each says where the
    next one is: the nearer a group, the more of its candidates are there."""
    if at + LISTS_AHEAD < n:
        warm_lists(ctl, reduction, values, at, n, rows)


@kernel
def warm_lists(ctl: Control, reduction: Reduction, values: Words, at, n, rows: Words):
    """`warm_list` where there are groups to ask for."""
    lists = scratch_block(ctl, 5)
    ahead = at + (CANDIDATES_AHEAD + 1) * LISTS_AHEAD
    if ahead < n:
        prefetch(head_place(reduction.groups, rows[ahead]))
    ahead -= LISTS_AHEAD
    if ahead < n:
        warm_first(reduction, rows, lists, ahead)
    for _ in range(CANDIDATES_AHEAD - 1):
        ahead -= LISTS_AHEAD
        if ahead < n:
            warm_next(reduction, values, lists, ahead)


@inlined
def warm_first(reduction: Reduction, rows: Words, lists: Words, i):
    """Asks for the first candidate of a group, and notes its number, plus one."""
    first = first_candidate(reduction.groups, rows[i])
    warm_candidate(reduction.candidates, first - 1)
    lists[i] = first


@inlined
def warm_next(reduction: Reduction, values: Words, lists: Words, i):
    """Asks for the candidate behind the one that is noted, if it is looked at."""
    candidates = reduction.candidates
    if lists[i] != 0:
        place = candidate_at(candidates, lists[i] - 1)
        following = place.next if not values or value_at(candidates, place) != values[i] else 0
        warm_candidate(candidates, following - 1)
        lists[i] = following


# ---------------------------------------------------------------------------------------------------------------- table


@kernel
def home_of(group, value, mask):
    return (mix(mix(0, group), value) >> 20) & mask


@kernel
def home_of_row(reduction: Reduction, row):
    candidates = reduction.candidates
    mask = reduction.table_count - 1
    return home_of(candidate_group(candidates, row), candidate_value(candidates, row), mask)


@kernel
def find_hashed(reduction: Reduction, group, value):
    """The candidate of a group with a long list that has a value, or -1."""
    candidates = reduction.candidates
    mask = reduction.table_count - 1
    at = home_of(group, value, mask)
    while True:
        row = reduction.table[at].row - 1
        if row < 0 or (candidate_value(candidates, row) == value and candidate_group(candidates, row) == group):
            return row
        at = (at + 1) & mask


@kernel
def hashed_slot(reduction: Reduction, row):
    """Where a candidate is in the table."""
    mask = reduction.table_count - 1
    at = home_of_row(reduction, row)
    while reduction.table[at].row != row + 1:
        at = (at + 1) & mask
    return at


@kernel
def hashed_place(reduction: Reduction, row) -> CandidatePlace:
    """The place of a candidate that is in the table."""
    return reduction.table[hashed_slot(reduction, row)]


@kernel
def place_hashed(reduction: Reduction, row, before):
    """Enters a candidate that the table does not have, and has room for, with the one before it, plus one."""
    mask = reduction.table_count - 1
    at = home_of_row(reduction, row)
    while reduction.table[at].row != 0:
        at = (at + 1) & mask
    reduction.table[at].row = row + 1
    reduction.table[at].before = before


@kernel
def add_hashed(ctl: Control, reduction: Reduction, group, value):
    """Makes a candidate the first of a list with a table; -1 with ctl.error set."""
    candidates = reduction.candidates
    groups = reduction.groups
    if not grow_hashed(ctl, reduction):
        return -1
    row = make_candidate(ctl, candidates, group, value)
    if row < 0:
        return -1
    head = -head_of(groups, group)
    hashed_place(reduction, head - 1).before = row + 1
    candidate_at(candidates, row).next = head
    place_hashed(reduction, row, 0)
    set_head(groups, group, -row - 1)
    reduction.table_used += 1
    return row


@kernel
def grow_hashed(ctl: Control, reduction: Reduction):
    """Makes room for one more candidate in the table; false with ctl.error set."""
    old = reduction.table_count
    if (reduction.table_used + 1) * 2 <= old:
        return True
    count = max(old * 2, 64)
    table = CandidatePlaces(zeroed(ctl, count * CandidatePlace.size))
    if not table:
        return False
    before = reduction.table
    reduction.table = table
    reduction.table_count = count
    for at in range(old):
        if before[at].row != 0:
            place_hashed(reduction, before[at].row - 1, before[at].before)
    release(ctl, before.address, old * CandidatePlace.size)
    return True


@kernel
def hash_list(ctl: Control, reduction: Reduction, group):
    """Enters all candidates of a group's list and marks it; false with ctl.error set."""
    candidates = reduction.candidates
    groups = reduction.groups
    before = 0
    at = head_of(groups, group)
    while at != 0:
        if not grow_hashed(ctl, reduction):
            return False
        place_hashed(reduction, at - 1, before)
        reduction.table_used += 1
        before = at
        at = next_candidate(candidates, at - 1)
    set_head(groups, group, -head_of(groups, group))
    return True


@kernel
def remove_hashed(reduction: Reduction, row):
    """Takes a candidate out of the table, where later ones of its run move up; returns the one before it in its list, plus
    one."""
    mask = reduction.table_count - 1
    hole = hashed_slot(reduction, row)
    table = reduction.table
    before = table[hole].before
    at = hole
    while True:
        at = (at + 1) & mask
        other = table[at].row - 1
        if other < 0:
            break
        home = home_of_row(reduction, other)
        if (at - home) & mask >= (at - hole) & mask:
            table[hole].row = other + 1
            table[hole].before = table[at].before
            hole = at
    table[hole].row = 0
    reduction.table_used -= 1
    return before
