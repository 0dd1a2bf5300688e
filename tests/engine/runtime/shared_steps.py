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


def count_steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Counts steps from now on."""
    counted: Steps = Counter()
    run = Share.run

    def counting(self: Share, pool: Executor, shares: Sequence[Share]) -> None:
        counted[self.struct[L.share.kind]] += 1
        run(self, pool, shares)
        counted[GIVEN_UP] += Status.YIELD in [share.struct[L.share.status] for share in shares]

    monkeypatch.setattr(Share, "run", counting)
    return counted


def share_from_four_rows(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """`count_steps`; steps of four rows are shared from now on, and so are batches."""
    counted = count_steps(monkeypatch)
    monkeypatch.setattr(sharing, "SHARED_STEP", 4)
    monkeypatch.setattr(strata_runner, "SHARED_ROWS", 4)
    return counted


def interrupted_after(step: int) -> Callable[[Share, Executor, Sequence[Share]], None]:
    """`Share.run` that is interrupted when a step of a kind is done."""
    run = Share.run

    def interrupted(self: Share, pool: Executor, shares: Sequence[Share]) -> None:
        run(self, pool, shares)
        if self.struct[L.share.kind] == step:
            raise KeyboardInterrupt

    return interrupted
