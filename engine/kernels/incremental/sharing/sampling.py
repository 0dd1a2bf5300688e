"""What is to be expected of a path: some of its changes, from all over, are gone through, and what they derive is counted and
forgotten. What comes of the first ones does not say it where they are in an order that matters to the rule."""

from __future__ import annotations

from dlog.engine.kernels.codes import Divisible, Error, Gathers, Status
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.loop.running import start_changes
from dlog.engine.kernels.incremental.sharing.claims import may_claim, records_of
from dlog.engine.kernels.machine import run_path
from dlog.engine.kernels.round_structs import Control, Path, Share

STRETCHES, STRETCH = 64, 64
"""Stretches of changes that are gone through, and how many each has."""
LEAST_SAMPLED = STRETCHES * STRETCH * 32
"""Changes from which on it is worth it."""
MOST_WORK = 1 << 19
"""Rows, about, that a path makes of all stretches at most."""


@kernel
def sample_changes(ctl: Control, share: Share, path: Path, first, last):
    """Notes how many records come of some of the changes [first, last) of a path that begins, if workers can claim its rows,
    unless the changes are few or too much comes of them."""
    share.sampled = 0
    if last - first < LEAST_SAMPLED or not is_claimable(ctl, path):
        return
    work = ctl.work
    budget = ctl.budget
    ctl.work = 0
    ctl.budget = MOST_WORK
    share.gathers = Gathers.VALUES
    share.values.count = 0
    if go_through_stretches(ctl, path, first, last) == Status.DONE:
        share.sampled = STRETCHES * STRETCH
        share.derived = records_of(share, path.target)
    # Whatever went wrong does so again, when all changes are gone through.
    ctl.error = Error.NONE
    ctl.work = work
    ctl.budget = budget
    share.gathers = Gathers.NOTHING
    share.values.count = 0
    start_changes(path, ctl, first, last)


@kernel
def is_claimable(ctl: Control, path: Path):
    """Whether workers can divide changes of a path, and claim the rows that it makes (claims.py)."""
    return path.divisible in (Divisible.YES, Divisible.CLAIMED) and may_claim(ctl, path.target) != 0


@kernel
def go_through_stretches(ctl: Control, path: Path, first, last):
    """Notes what a path derives of some of its changes. Returns a `Status`."""
    for number in range(STRETCHES):
        at = first + (last - first - STRETCH) * number // (STRETCHES - 1)
        start_changes(path, ctl, at, at + STRETCH)
        status = run_path(path, ctl)
        if status != Status.DONE:
            return status
    return Status.DONE
