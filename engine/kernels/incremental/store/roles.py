"""What collections keep for each row by their roles: room for it, and its beginning.

A collection that rules derive has a `Derivation`, one of groups or candidates a `Grouping`. Where one has no array of a kind,
there is nothing to grow or to clear.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control, Derivation, Grouping, GroupLink
from dlog.engine.kernels.row_structs import History
from dlog.engine.kernels.static.storage import behind, clear_words, lengthen


@kernel
def grow_words(ctl: Control, field: Words, old, new):
    """Grows the array of `old` words that a field points at to `new`, zeroed; false with ctl.error set. No array: nothing to
    do."""
    return field[0] == 0 or lengthen(ctl, field, old * 8, new * 8)


@kernel
def grow_history(ctl: Control, history: History, old, new):
    if not history:
        return True
    return grow_words(ctl, history.ref.bits, old >> 6, new >> 6) and grow_words(ctl, history.ref.iters, old >> 1, new >> 1)


# ------------------------------------------------------------------------------------------------------------ derivations


@kernel
def derivation_bytes(derivation: Derivation):
    """Bytes of a row beside its bits."""
    return (4 if derivation.support else 0) + (8 if derivation.counts else 0)


@kernel
def grow_derivation(ctl: Control, derivation: Derivation, old, new):
    """Makes room for `new` rows, zeroed behind the `old` ones; false with ctl.error set."""
    if not grow_words(ctl, derivation.ref.support, old >> 1, new >> 1):
        return False
    if not grow_words(ctl, derivation.ref.touched_bits, old >> 6, new >> 6):
        return False
    return grow_words(ctl, derivation.ref.counts, old, new)


@kernel
def clear_derivation(derivation: Derivation, row):
    if derivation.support:
        derivation.support[row] = 0
    if derivation.counts:
        derivation.counts[row] = 0


# ---------------------------------------------------------------------------------------------------- groups and candidates


@kernel
def grouping_bytes(grouping: Grouping):
    """Bytes of a row."""
    total = (4 if grouping.current else 0) + (GroupLink.size if grouping.heads else 0)
    return total + grouping.sum_words * 8 + grouping.record_bytes


@kernel
def grow_grouping(ctl: Control, grouping: Grouping, old, new):
    """Makes room for `new` rows, zeroed behind the `old` ones; false with ctl.error set."""
    if not grow_words(ctl, grouping.ref.current, old >> 1, new >> 1):
        return False
    if not grow_words(ctl, grouping.ref.heads, old, new):
        return False
    words = grouping.record_bytes >> 3
    if not grow_words(ctl, grouping.ref.records, old * words, new * words):
        return False
    words = grouping.sum_words
    return grow_words(ctl, grouping.ref.sums, old * words, new * words)


@kernel
def clear_grouping(grouping: Grouping, row):
    if grouping.current:
        grouping.current[row] = 0
    if grouping.heads:
        grouping.heads[row].candidate = 0
        grouping.heads[row].result = 0
    clear_words(behind(grouping.sums, row * grouping.sum_words), grouping.sum_words)
