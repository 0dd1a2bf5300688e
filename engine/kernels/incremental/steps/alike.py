"""Rows of a block that are alike: what they derive, or contribute, is added up before it goes anywhere.

Which are alike in their keys is found once for all aggregates of a path that have the same ones: what kinds of rows there are
is kept beside a copy of the keys, by which the next sink sees that its own are those.
"""

from __future__ import annotations

from dlog.engine.kernels.combine import Combine, joined
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.steps.finding import (
    KNOWN,
    SAMPLED,
    are_alike,
    forget_known,
    hash_registers,
    is_repetitive,
)
from dlog.engine.kernels.incremental.store.lists import list_room, push_change
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.row_structs import Changes
from dlog.engine.kernels.static.storage import behind, copy_words, register, scratch_block

MAX_KINDS = 32
"""Kinds of rows in a block up to which they are told apart."""
MAX_COLUMNS = 3
_COPIES, _KINDS, _FIRSTS = 6, 9, 10
"""The scratch blocks with a copy of each column of the keys; with the kind of each row; with the first row of each kind and,
behind these, of how many rows and columns they are, and how many there are."""


@kernel
def kinds_of(ctl: Control) -> Words:
    """The kind of each row of the block."""
    return scratch_block(ctl, _KINDS)


@kernel
def first_of_kinds(ctl: Control) -> Words:
    """The first row of each kind."""
    return scratch_block(ctl, _FIRSTS)


@kernel
def find_kinds(ctl: Control, registers: Words, arity, n, anew):
    """How many kinds of rows a block has by these registers, if they are few; 0 if they are many or, but with `anew`, if they
    have not been found by another sink. Uses scratch blocks 3 and 4."""
    noted = behind(first_of_kinds(ctl), MAX_KINDS)
    if noted[0] == n and noted[1] == arity and are_noted(ctl, registers, arity, n):
        return noted[2]
    if not anew or n < SAMPLED or arity > MAX_COLUMNS:
        return 0
    hashes = scratch_block(ctl, 3)
    hash_registers(ctl, registers, arity, n, hashes)
    noted[2] = divide_block(ctl, registers, arity, n, hashes) if is_repetitive(hashes, n, scratch_block(ctl, 4)) else 0
    for c in range(arity):
        copy_words(scratch_block(ctl, _COPIES + c), register(ctl, registers[c]), n)
    noted[0] = n
    noted[1] = arity
    return noted[2]


@kernel
def are_noted(ctl: Control, registers: Words, arity, n):
    """Whether the rows of a block have the keys whose kinds are known."""
    for c in range(arity):
        copy = scratch_block(ctl, _COPIES + c)
        values = register(ctl, registers[c])
        if copy[0] != values[0]:
            return False
        different = 0
        for i in range(n):
            different |= copy[i] ^ values[i]
        if different != 0:
            return False
    return True


@kernel
def divide_block(ctl: Control, registers: Words, arity, n, hashes: Words):
    """Notes the kind of each row of a block; returns how many there are, 0 if too many. Two may be one by their keys: only the
    last one is known for each place of a small table."""
    kinds = kinds_of(ctl)
    firsts = first_of_kinds(ctl)
    known = scratch_block(ctl, 4)
    forget_known(known)
    count = 0
    for i in range(n):
        place = (hashes[i] >> 32) & (KNOWN - 1)
        kind = known[place]
        if kind < 0 or hashes[firsts[kind]] != hashes[i] or not are_alike(ctl, registers, arity, firsts[kind], i):
            if count == MAX_KINDS:
                return 0
            kind = count
            known[place] = kind
            firsts[kind] = i
            count += 1
        kinds[i] = kind
    return count


@kernel
def push_together(ctl: Control, derived: Changes, op, rows: Words, times: Words, diffs: Words, values: Words, n):
    """Notes derivations of rows at rounds, or contributions to groups: those of one row at one round as one, in a block where
    most can be. Values are added up as `op` says, which counts nothing but diffs where it is COUNT. False with ctl.error
    set."""
    if not list_room(ctl, derived, n):
        return False
    known = scratch_block(ctl, 4)
    joins = n >= SAMPLED
    if joins:
        forget_known(known)
    met = 0
    for i in range(n):
        row = rows[i]
        value = 0 if op == Combine.COUNT else values[i]
        if joins:
            number = known[row & (KNOWN - 1)]
            if number >= 0 and derived.data[number].row == row and derived.data[number].time == times[i]:
                change = derived.data[number]
                change.diff += diffs[i]
                change.value = joined(op, change.value, value, 1)
                met += 1
                continue
            known[row & (KNOWN - 1)] = derived.count
            joins = i < SAMPLED or met * 2 > i
        push_change(ctl, derived, row, times[i], diffs[i], value)
    return True
