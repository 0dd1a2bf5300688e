"""Steps that workers do together, one after the other: those that belong to each other in one call."""

from __future__ import annotations

from dlog.engine.kernels.codes import Error, Shared, Status
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.sharing.derivations import end_supports
from dlog.engine.kernels.incremental.sharing.desks import await_parts, put_part
from dlog.engine.kernels.incremental.sharing.paths import end_step
from dlog.engine.kernels.incremental.sharing.running import run_part
from dlog.engine.kernels.incremental.sharing.taking import begin_taking
from dlog.engine.kernels.round_structs import Control, Share


@entry()
def do_steps(ctl: Control, most):
    """Does the step at hand, and those that follow it, so many at most, in as many parts as `parts` has. Returns a `Status`:
    DONE; BULK where others follow; WAKE where there are parts on desks that nobody looks at: once threads have been sent there
    it is called again; or FAILED with the error set of who did the first part that failed, or else of `ctl`."""
    share = ctl.share
    status = Status.BULK
    while status == Status.BULK and most > 0:
        if share.put == 0 and not put_parts(ctl, share):
            return Status.WAKE
        share.put = 0
        if not do_parts(share):
            return Status.FAILED
        status = follow(ctl, share)
        most -= 1
    return status


@kernel
def follow(ctl: Control, share: Share):
    """After a step. Returns a `Status`: BULK where another one follows it."""
    if share.last != 0:
        return end_step(ctl)
    if share.kind != Shared.SUPPORTS and share.kind != Shared.SUPPORT_NOTES:
        return begin_taking(ctl)
    status = end_supports(ctl, share)
    if status == Status.DONE:
        share.kind = Shared.ENDED
    return status


@kernel
def put_parts(ctl: Control, share: Share):
    """Puts all parts but the first on their desks, of workers to which the limits of `ctl` apply. False if nobody looks at some
    of these."""
    share.put = 1
    seen = True
    for part in range(share.part_count):
        other = share.parts[part]
        other.control.limit = ctl.limit
        other.control.iteration = ctl.iteration
        if part != 0:
            put_part(other.desk, share, part, share.part_count)
            seen = seen and other.desk.unseen == 0
    return seen


@kernel
def do_parts(share: Share):
    """Does the first part, and waits for the others. False if one has failed, with the error set of who did it."""
    first = share.parts[0]
    well = run_part(share, first.control, 0, share.part_count)
    for part in range(1, share.part_count):
        await_parts(share.parts[part].desk)
    if share.kind == Shared.PATH:
        forget_later(share)
    if not well and first.control.error != Error.NONE:
        return False
    for part in range(1, share.part_count):
        other = share.parts[part]
        if other.desk.well == 0 and other.control.error != Error.NONE:
            return False
    return True


@kernel
def forget_later(share: Share):
    """Forgets mistakes that come after a part of a path that has given up: they may be another worker's."""
    given_up = False
    for part in range(share.part_count):
        other = share.parts[part]
        given_up = given_up or other.status == Status.YIELD
        if given_up:
            other.control.error = Error.NONE
