"""Derivations of a lattice's candidates by iteration, before (old) and after (new) the round that is running.

A candidate is nearly always derived at one iteration, a few times: its word holds the iteration and both counts then
(`is_single`). Else the word is the first of its entries in the pool, which ascend (supports.py).
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.loop.supports import schedule, support_at
from dlog.engine.kernels.incremental.reduce.candidate import candidate_at
from dlog.engine.kernels.incremental.reduce.dominance import is_outdone
from dlog.engine.kernels.incremental.store.lists import list_push, pool_give, pool_take
from dlog.engine.kernels.round_structs import Collection, Control, Reduction
from dlog.engine.kernels.row_structs import Candidate

SINGLE = 1 << 62
COUNTS = 1 << 14
"""Counts from -COUNTS up to COUNTS find room in the word: fifteen bits each, behind the iteration's."""
_COUNT_BITS = 2 * COUNTS - 1
_ITERATION = 0xFFFFFFFF


@kernel
def is_single(word):
    return word & SINGLE != 0


@kernel
def single(iteration, old, new):
    """The word of derivations at one iteration."""
    return SINGLE | iteration | ((old & _COUNT_BITS) << 32) | ((new & _COUNT_BITS) << 47)


@kernel
def single_iteration(word):
    return word & _ITERATION


@kernel
def single_old(word):
    return (word << 17) >> 49


@kernel
def single_new(word):
    return (word << 2) >> 49


@kernel
def has_room(count):
    """Whether a count finds room in a word."""
    return -COUNTS <= count < COUNTS


@kernel
def derive_candidate(ctl: Control, reduction: Reduction, group, row, iteration, diff):
    """Adds derivations of a candidate at an iteration, and sees to it that its group is looked at then, unless that cannot
    matter; false with ctl.error set."""
    candidates = reduction.candidates
    place = candidate_at(candidates, row)
    word = place.count
    old = 0
    count = 0
    if is_single(word):
        old = single_old(word)
        count = single_new(word)
    if (word == 0 or (is_single(word) and single_iteration(word) == iteration)) and has_room(count + diff):
        place.count = single(iteration, old, count + diff)
        if count != old:
            return True
    else:
        differs = add_entry_of(ctl, candidates, place, iteration, diff)
        if differs != 0:
            return differs > 0
    if not list_push(ctl, candidates.touched, row):
        return False
    return is_outdone(reduction, group, place, iteration) or schedule(ctl, candidates, iteration, group)


@kernel
def add_entry_of(ctl: Control, candidates: Collection, place: Candidate, iteration, diff):
    """`derive_candidate` among the entries of a candidate at an address. Returns whether its derivations at the iteration had
    changed in this round before, -1 with ctl.error set."""
    if is_single(place.count) and not to_entry(ctl, candidates, place):
        return -1
    before = 0
    at = place.count
    while at != 0:
        word = support_at(candidates, at).at
        if word & _ITERATION >= iteration:
            break
        before = at
        at = word >> 32
    if at != 0:
        entry = support_at(candidates, at)
        if entry.at & _ITERATION == iteration:
            count = entry.new
            entry.new = count + diff
            return 1 if count != entry.old else 0
    number = new_entry(ctl, candidates, iteration, 0, diff, at)
    if number == 0:
        return -1
    if before == 0:
        place.count = number
    else:
        link_entry(candidates, before, number)
    return 0


@kernel
def new_entry(ctl: Control, candidates: Collection, iteration, old, new, following):
    """The number, plus one, of a new entry before another; 0 with ctl.error set."""
    number = pool_take(ctl, candidates.derivation.entries) + 1
    if number > 0:
        entry = support_at(candidates, number)
        entry.at = iteration | (following << 32)
        entry.old = old
        entry.new = new
    return number


@kernel
def link_entry(candidates: Collection, before, following):
    """Makes an entry the next one behind another."""
    entry = support_at(candidates, before)
    entry.at = (entry.at & _ITERATION) | (following << 32)


@kernel
def to_entry(ctl: Control, candidates: Collection, place: Candidate):
    """Gives a candidate whose derivations are in its word an entry instead; false with ctl.error set."""
    word = place.count
    number = new_entry(ctl, candidates, single_iteration(word), single_old(word), single_new(word), 0)
    if number != 0:
        place.count = number
    return number != 0


@kernel
def derivations_after(candidates: Collection, place: Candidate):
    """How many derivations a candidate has at any iteration after the round."""
    at = place.count
    if is_single(at):
        return single_new(at)
    total = 0
    while at != 0:
        entry = support_at(candidates, at)
        total += entry.new
        at = entry.at >> 32
    return total


@kernel
def settle_derivations(candidates: Collection, place: Candidate):
    """Derivations after the round become those before the next; entries without any are freed."""
    word = place.count
    if is_single(word):
        count = single_new(word)
        place.count = single(single_iteration(word), count, count) if count != 0 else 0
    elif word != 0:
        settle_entries_of(candidates, place)


@kernel
def settle_entries_of(candidates: Collection, place: Candidate):
    """`settle_derivations` of a candidate with entries: one that is left finds room in the word again."""
    pool = candidates.derivation.entries
    before = 0
    at = place.count
    while at != 0:
        entry = support_at(candidates, at)
        following = entry.at >> 32
        count = entry.new
        entry.old = count
        if count != 0:
            before = at
        else:
            if before == 0:
                place.count = following
            else:
                link_entry(candidates, before, following)
            pool_give(pool, at - 1)
        at = following
    first = place.count
    if first != 0 and first == before:
        entry = support_at(candidates, first)
        count = entry.new
        if has_room(count):
            place.count = single(entry.at & _ITERATION, count, count)
            pool_give(pool, first - 1)
