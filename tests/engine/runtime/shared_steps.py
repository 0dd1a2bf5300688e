"""Steps that several threads do together, seen from a test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

import pytest

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Status
from dlog.engine.runtime.incremental.batches import sharing, strata_runner
from dlog.engine.runtime.incremental.batches.sharing import Share

Steps = Counter[int]
"""How often steps of each kind have been shared; GIVEN_UP: of how many a part gave up."""
GIVEN_UP = -1
Pool = Callable[[], Executor]
DoStep = Callable[[Share, Pool, Sequence[Share]], int]
"""`Share.do_steps`."""


def count_steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Counts steps from now on."""
    counted: Steps = Counter()

    def counting(do: DoStep, self: Share, pool: Pool, shares: Sequence[Share]) -> int:
        counted[self.struct[L.share.kind]] += 1
        status = do(self, pool, shares)
        counted[GIVEN_UP] += Status.YIELD in [share.struct[L.share.status] for share in shares]
        return status

    look_at_steps(monkeypatch, counting)
    return counted


def look_at_steps(monkeypatch: pytest.MonkeyPatch, look: Callable[[DoStep, Share, Pool, Sequence[Share]], int]) -> None:
    """Has each step done by `look`, which is given what does it otherwise."""
    do = Share.do_steps
    monkeypatch.setattr(sharing, "STEPS_AT_ONCE", 1)
    monkeypatch.setattr(Share, "do_steps", lambda self, pool, shares: look(do, self, pool, shares))


def share_from_four_rows(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """`count_steps`; steps of four rows are shared from now on, and so are batches."""
    counted = count_steps(monkeypatch)
    monkeypatch.setattr(sharing, "SHARED_STEP", 4)
    monkeypatch.setattr(strata_runner, "SHARED_ROWS", 4)
    return counted


def interrupt_after(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Interrupts when a step of a kind is done."""

    def interrupted(do: DoStep, self: Share, pool: Pool, shares: Sequence[Share]) -> int:
        kind = self.struct[L.share.kind]
        status = do(self, pool, shares)
        if kind == step:
            raise KeyboardInterrupt
        return status

    look_at_steps(monkeypatch, interrupted)
