"""Paths that run over the changes of their seeds: alone, or with workers, from the first change to the last."""

from __future__ import annotations

from dlog.engine.kernels.codes import Gathers, Shared, Status
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.loop.batches import rows_before
from dlog.engine.kernels.incremental.loop.growth import grows
from dlog.engine.kernels.incremental.loop.running import start_changes
from dlog.engine.kernels.incremental.reduce.tallies import begin_tally, forget_tallies
from dlog.engine.kernels.incremental.reduce.tally_groups import end_tallies
from dlog.engine.kernels.incremental.sharing.derivations import add_alone, begin_supports
from dlog.engine.kernels.incremental.sharing.paths import HOPE, begin_path, divide_rest, end_trial, may_divide, run_shared
from dlog.engine.kernels.incremental.steps.small_deltas import run_few
from dlog.engine.kernels.incremental.store.slot_room import meet_expectation
from dlog.engine.kernels.machine import run_path
from dlog.engine.kernels.round_structs import Control, Path, Work


@kernel
def is_closed(path: Path, work: Work):
    """Whether a path can find nothing: it reads, before any change, a collection that had no rows before this one round."""
    if work.rounds != 1:
        return False
    gates = path.gates
    for g in range(path.gate_count):
        if rows_before(gates[g]) == 0:
            return True
    return False


@entry("i64", "i64", "i64", "bool")
def run_seeded(path: Path, work: Work, ctl: Control, whole):
    """Runs (or resumes) a path over its seed's changes: all of them, or the part in use."""
    share = ctl.share
    if share and share.last == 0 and share.kind == Shared.ENDED:
        share.kind = Shared.NONE
        return end_run(path, ctl, share.status)
    if ctl.running == 0:
        status = begin_seeded(path, work, ctl, whole)
        if status != Status.YIELD:
            return status
        ctl.running = 1
    elif share and share.last == 0 and share.tried == 0 and may_divide(ctl, share, path, left_of(ctl) * HOPE):
        status = divide_rest(ctl, share, path)
        if status != Status.DONE:
            return status
    if share and share.last != 0:
        status = run_shared(path, ctl, share)
        if status != Status.YIELD:
            return end_run(path, ctl, status)
    status = run_path(path, ctl)
    while status == Status.DONE and share and share.tried != 0:
        end_trial(path, ctl, share)
        if share.last != 0:
            return run_shared(path, ctl, share)
        status = run_path(path, ctl)
    if share and share.items.count > 0:
        if status != Status.DONE and status != Status.YIELD:
            return status
        if share.items.count >= share.least:
            share.status = status
            return Status.BULK if begin_supports(ctl, share, share.items.count) else Status.FAILED
        status = status if add_alone(ctl, share.collection, share.items) else Status.FAILED
    return end_run(path, ctl, status)


@kernel
def left_of(ctl: Control):
    """How many changes of its seed a path that runs has not come to."""
    return ctl.levels[0].end - ctl.levels[0].at


@kernel
def begin_seeded(path: Path, work: Work, ctl: Control, whole):
    """Points the worker at the changes of a path's seed. Returns a `Status`: YIELD if it is to run over them."""
    forget_tallies(ctl)
    changes = path.list
    if not changes:
        if work.first == 0:
            return Status.DONE
        start_changes(path, ctl, 0, 1)
        return Status.YIELD
    first = 0
    last = changes.count
    if not whole:
        first = changes.lo
        last = changes.hi
    if first >= last or is_closed(path, work):
        return Status.DONE
    work.seeded += 1
    first = run_few(path, ctl, first, last)
    if first < 0:
        return Status.FAILED
    if first == last:
        return Status.DONE
    if not changes.data and not grows(path.target):
        path.target.derivation.expected = last
    start_changes(path, ctl, first, last)
    ctl.first = first
    ctl.rows_before = path.target.rows if path.target else 0
    begin_tally(ctl, path, last - first)
    if ctl.share:
        begin_path(ctl, ctl.share, path, first, last)
    return Status.YIELD


@kernel
def end_run(path: Path, ctl: Control, status):
    """Ends a path's run, if it has come to its end."""
    if status == Status.DONE:
        ctl.running = 0
        if ctl.share:
            ctl.share.gathers = Gathers.NOTHING
        if ctl.tally.reduction and not end_tallies(ctl):
            return Status.FAILED
        if path.target.derivation.expected != 0 and not grows(path.target) and not meet_expectation(ctl, path.target):
            return Status.FAILED
    return status
