"""A candidate of a minimum or maximum: one record (layout.CANDIDATE_*), so that all that is known of it is met at once.

Records begin with values of 4 bytes and are widened, all of them, when a value does not fit.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.collections import free_number, take_number
from dlog.engine.kernels.layout import CANDIDATE_NARROW, CANDIDATE_WIDE
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.row_structs import Candidate
from dlog.engine.kernels.static.storage import copy_words, release, resize


@kernel
def candidate_at(candidates: Collection, row) -> Candidate:
    """Address of a candidate."""
    return Candidate(candidates.grouping.records + row * candidates.grouping.record_bytes)


@kernel
def warm_candidate(candidates: Collection, row):
    """Asks for a candidate, which may lie in two lines; -1: for none."""
    place = candidate_at(candidates, row)
    prefetch(place.address)
    prefetch(place.address + CANDIDATE_NARROW - 8)


@kernel
def value_at(candidates: Collection, at: Candidate):
    """Value of the candidate at an address."""
    if candidates.grouping.record_bytes == CANDIDATE_WIDE:
        return at.wide_value
    return at.value


@kernel
def candidate_value(candidates: Collection, row):
    return value_at(candidates, candidate_at(candidates, row))


@kernel
def candidate_group(candidates: Collection, row):
    """The group of a candidate, -1 if it is gone."""
    return candidate_at(candidates, row).group


@kernel
def next_candidate(candidates: Collection, row):
    """The next candidate of the group, plus one; 0 behind the last."""
    return candidate_at(candidates, row).next


@kernel
def make_candidate(ctl: Control, candidates: Collection, group, value):
    """A new candidate, in no list and without derivations; -1 with ctl.error set."""
    wide = candidates.grouping.record_bytes == CANDIDATE_WIDE
    if not wide and not -2147483648 <= value <= 2147483647:
        if not widen_candidates(ctl, candidates):
            return -1
        wide = True
    row = take_number(ctl, candidates)
    if row < 0:
        return -1
    at = candidate_at(candidates, row)
    at.count = 0
    at.group = group
    at.next = 0
    at.row = 0
    if wide:
        at.wide_value = value
    else:
        at.value = value
    candidates.live += 1
    return row


@kernel
def free_candidate(ctl: Control, candidates: Collection, row):
    """Frees a candidate that is in no list; false with ctl.error set."""
    candidate_at(candidates, row).group = -1
    candidates.live -= 1
    return free_number(ctl, candidates, row)


@kernel
def widen_candidates(ctl: Control, candidates: Collection):
    """Gives all candidates values of 8 bytes; false with ctl.error set."""
    capacity = candidates.capacity
    size = candidates.grouping.record_bytes
    wide = resize(ctl, 0, 0, capacity * CANDIDATE_WIDE)
    if wide == 0:
        return False
    for row in range(candidates.rows):
        narrow = candidate_at(candidates, row)
        at = Candidate(wide + row * CANDIDATE_WIDE)
        copy_words(Words(at.address), Words(narrow.address), CANDIDATE_NARROW >> 3)
        at.wide_value = narrow.value
    release(ctl, candidates.grouping.records, capacity * size)
    candidates.grouping.records = wide
    candidates.grouping.record_bytes = CANDIDATE_WIDE
    return True
