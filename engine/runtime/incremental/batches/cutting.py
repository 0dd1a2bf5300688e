"""The number of rounds of a commit that go through the dataflow together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from dlog.engine.runtime.incremental.batches.changes import batches
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.values.updates import Updates

BATCH_ROUNDS = 4096
"""Rounds that go through the dataflow together; a commit of more is several batches, with memory for one."""
MIN_ROUNDS = 512
ROWS_PER_ROUND = 4
"""A batch has no more rounds than one for so many rows of the inputs, but `MIN_ROUNDS` in any case: a row that comes or goes
in a batch is met, and passed by, in all its rounds."""
MIN_FUSED_ROUNDS = 64
ROWS_PER_FUSED_ROUND = 32
"""The same for fused batches, which cost less to begin."""
QUIET_ROUNDS = 1 << 17
"""The rounds of a batch where no path meets rows of former rounds, and no group candidates that are gone: nothing is passed
by."""


def cut(
    flow: Dataflow, given: Mapping[str, Updates], first: int, last: int, fused_rounds: Callable[[], int]
) -> Iterable[tuple[int, int]]:
    """The first and last rounds of a commit's batches, which `fused_rounds` says are cut further."""
    if first == last:
        return ((first, last),)
    most = BATCH_ROUNDS if fused_rounds() else _batch_rounds(flow)
    return batches([u.rounds for u in given.values()], first, last, most)


def fused_rounds(flow: Dataflow, given: Mapping[str, Updates]) -> int:
    """How many rounds batches have that follow each other in compiled code; 0 where they are not worth it."""
    if not flow.started or not flow.looks_back or len(given) != 1 or not all(u.columns for u in given.values()):
        return 0
    rounds = max(MIN_FUSED_ROUNDS, flow.input_rows // ROWS_PER_FUSED_ROUND)
    return rounds if rounds < BATCH_ROUNDS else 0


def _batch_rounds(flow: Dataflow) -> int:
    if not flow.looks_back:
        return BATCH_ROUNDS if flow.has_candidates else QUIET_ROUNDS
    return max(MIN_ROUNDS, min(flow.input_rows // ROWS_PER_ROUND, BATCH_ROUNDS))
