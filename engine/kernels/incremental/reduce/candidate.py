"""A candidate of a minimum or maximum: one record (layout.CANDIDATE_*), so that all that is known of it is met at once.

Records begin with values of 4 bytes and are widened, all of them, when a value does not fit.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, store_i32, store_i64
from dlog.engine.kernels.incremental.store.collections import free_number, take_number
from dlog.engine.kernels.layout import (
    CANDIDATE_COUNT,
    CANDIDATE_GROUP,
    CANDIDATE_NEXT,
    CANDIDATE_ROW,
    CANDIDATE_VALUE,
    CANDIDATE_WIDE,
    CANDIDATE_WIDE_VALUE,
    CO_LIVE,
    CO_RECORD_BYTES,
    CO_RECORDS,
    REL_CAPACITY,
    REL_ROWS,
)
from dlog.engine.kernels.static.storage import release, resize


@kernel
def candidate_at(candidates, row):
    """Address of a candidate."""
    return load_i64(candidates, CO_RECORDS) + row * load_i64(candidates, CO_RECORD_BYTES)


@kernel
def value_at(candidates, at):
    """Value of the candidate at an address."""
    if load_i64(candidates, CO_RECORD_BYTES) == CANDIDATE_WIDE:
        return load_i64(at, CANDIDATE_WIDE_VALUE)
    return load_i32(at, CANDIDATE_VALUE)


@kernel
def candidate_value(candidates, row):
    return value_at(candidates, candidate_at(candidates, row))


@kernel
def candidate_group(candidates, row):
    """The group of a candidate, -1 if it is gone."""
    return load_i32(candidate_at(candidates, row), CANDIDATE_GROUP)


@kernel
def next_candidate(candidates, row):
    """The next candidate of the group, plus one; 0 behind the last."""
    return load_i32(candidate_at(candidates, row), CANDIDATE_NEXT)


@kernel
def make_candidate(ctl, candidates, group, value):
    """A new candidate, in no list and without derivations; -1 with CTL_ERROR set."""
    wide = load_i64(candidates, CO_RECORD_BYTES) == CANDIDATE_WIDE
    if not wide and not -2147483648 <= value <= 2147483647:
        if not widen_candidates(ctl, candidates):
            return -1
        wide = True
    row = take_number(ctl, candidates)
    if row < 0:
        return -1
    at = candidate_at(candidates, row)
    store_i64(at, CANDIDATE_COUNT, 0)
    store_i32(at, CANDIDATE_GROUP, group)
    store_i32(at, CANDIDATE_NEXT, 0)
    store_i32(at, CANDIDATE_ROW, 0)
    if wide:
        store_i64(at, CANDIDATE_WIDE_VALUE, value)
    else:
        store_i32(at, CANDIDATE_VALUE, value)
    store_i64(candidates, CO_LIVE, load_i64(candidates, CO_LIVE) + 1)
    return row


@kernel
def free_candidate(ctl, candidates, row):
    """Frees a candidate that is in no list; false with CTL_ERROR set."""
    store_i32(candidate_at(candidates, row), CANDIDATE_GROUP, -1)
    store_i64(candidates, CO_LIVE, load_i64(candidates, CO_LIVE) - 1)
    return free_number(ctl, candidates, row)


@kernel
def widen_candidates(ctl, candidates):
    """Gives all candidates values of 8 bytes; false with CTL_ERROR set."""
    capacity = load_i64(candidates, REL_CAPACITY)
    size = load_i64(candidates, CO_RECORD_BYTES)
    wide = resize(ctl, 0, 0, capacity * CANDIDATE_WIDE)
    if wide == 0:
        return False
    for row in range(load_i64(candidates, REL_ROWS)):
        narrow = candidate_at(candidates, row)
        at = wide + row * CANDIDATE_WIDE
        for word in range(CANDIDATE_WIDE_VALUE):
            store_i64(at, word, load_i64(narrow, word))
        store_i64(at, CANDIDATE_WIDE_VALUE, load_i32(narrow, CANDIDATE_VALUE))
    release(ctl, load_i64(candidates, CO_RECORDS), capacity * size)
    store_i64(candidates, CO_RECORDS, wide)
    store_i64(candidates, CO_RECORD_BYTES, CANDIDATE_WIDE)
    return True
