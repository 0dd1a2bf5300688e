"""Parts of steps that other threads do, one after the other, without being woken for each.

To wake a thread takes as long as some steps. So one that has done a part looks for a while whether there is another one, and
goes only then. It has gone as soon as it has said so where parts are counted: who puts the next one learns from the count
whether somebody looks.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import atomic_add, cycles, give_way, pause
from dlog.engine.kernels.incremental.sharing.running import run_part
from dlog.engine.kernels.machine_structs import Account
from dlog.engine.kernels.round_structs import Control, Desk, Share
from dlog.engine.kernels.static.pages import make_wanted

GONE = 1 << 32
"""What nobody looking adds to the number of parts."""
LOOKING = 1 << 25
"""Cycles of the processor in which a thread looks for a part without a pause: ten milliseconds, as what one worker does
between steps may take. It lets others run who have something to do."""
PAUSES, PAUSE = 50, 50
"""Times that it then looks for a part with a pause between, of so many microseconds: less than it takes to be woken."""


@kernel
def put_part(desk: Desk, share: Share, part, parts):
    """Puts a part of the step at hand on a desk, where all others are done, and notes whether nobody looks: somebody must be
    sent there then (`serve`)."""
    desk.share = share
    desk.part = part
    desk.parts = parts
    desk.unseen = 0
    if atomic_add(desk.ref.put, 0, 1) >= GONE:
        atomic_add(desk.ref.put, 0, -GONE)
        desk.unseen = 1


@entry()
def serve(desk: Desk, ctl: Control):
    """Does the parts that come to a desk, until none has come for a while. Always true."""
    while look_for_part(desk, ctl.account):
        desk.well = 1 if run_part(desk.share, ctl, desk.part, desk.parts) else 0
        atomic_add(desk.ref.done, 0, 1)
    return True


@kernel
def look_for_part(desk: Desk, account: Account):
    """Takes the next part, for which it waits a while; false, and nobody looks any more, where none comes. Meanwhile it makes
    pages for others."""
    atomic_add(account.ref.idle, 0, 1)
    found = wait_for_part(desk, account)
    atomic_add(account.ref.idle, 0, -1)
    return found


@kernel
def wait_for_part(desk: Desk, account: Account):
    start = cycles()
    pauses = 0
    while pauses < PAUSES and desk.closed == 0:
        if count_put(desk) != desk.taken:
            desk.taken += 1
            return True
        if make_wanted(account):
            continue
        if cycles() - start < LOOKING:
            give_way()
        else:
            pause(PAUSE)
            pauses += 1
    before = atomic_add(desk.ref.put, 0, GONE)
    if before == desk.taken:
        return False
    # One has come meanwhile.
    atomic_add(desk.ref.put, 0, -GONE)
    desk.taken += 1
    return True


@entry()
def count_idle(ctl: Control, workers):
    """So many workers more have nothing to do."""
    return atomic_add(ctl.account.ref.idle, 0, workers)


@entry()
def make_pages(ctl: Control):
    """Makes the pages that others are about to write to. Always true."""
    while make_wanted(ctl.account):
        pass
    return True


@kernel
def count_put(desk: Desk):
    return atomic_add(desk.ref.put, 0, 0) & (GONE - 1)


@kernel
def await_parts(desk: Desk):
    """Waits until all parts that were put on a desk are done."""
    while atomic_add(desk.ref.done, 0, 0) != count_put(desk):
        give_way()
