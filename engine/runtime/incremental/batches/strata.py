"""The strata of a dataflow as parts of its batches: which tasks are theirs, and which strata they wait for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import relations_read
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import TaskKind
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.incremental.plan_changes.state_reuse import own_relations
from dlog.engine.runtime.incremental.schedule import Task
from dlog.engine.runtime.lowering.lowered import Reading
from dlog.engine.runtime.storage.native import view
from dlog.engine.runtime.storage.reduction import Reduction


@dataclass(frozen=True, slots=True)
class StratumTasks:
    """The tasks of a batch from number `first` on, before `last`, all of one stratum."""

    first: int
    last: int
    tasks: tuple[Task, ...]
    waits: frozenset[int]
    """The strata of the batch, by their places, that make what it reads."""
    reductions: tuple[Reduction, ...]
    alone: bool
    """It makes strings or records, or calls Python: nothing runs beside it, and such strata keep their order."""
    entered: frozenset[int]
    """The logs, by address, that its recursion goes through round by round: another one that does so must wait."""


def strata_of(flow: Dataflow) -> list[StratumTasks]:
    """The strata of the flow's batches, in the order of their tasks."""
    numbers = flow.scheduled_strata
    starts = [at for at, number in enumerate(numbers) if at == 0 or numbers[at - 1] != number]
    spans = {numbers[first]: (first, last) for first, last in pairwise([*starts, len(numbers)])}
    places = {number: place for place, number in enumerate(spans)}
    derived, alone = _Derived(flow), {id(stratum) for path, stratum in flow.paths if not path.shareable}
    found = []
    for number, (first, last) in spans.items():
        stratum, tasks = flow.program.strata[number], tuple(flow.scheduled[first:last])
        readings = [reading for task in tasks for reading in task.reads]
        read = {derived.relations.get(name) for rule in stratum.rules for name in relations_read(rule)}
        read.update([derived.logs.get(reading.log.address) for reading in readings])
        waits = frozenset([places[other] for other in read if other in places and other != number])
        entered = frozenset([reading.log.address for reading in readings if reading.seed is not None])
        reductions = tuple(derived.reductions.get(number, ()))
        found.append(StratumTasks(first, last, tasks, waits, reductions, id(stratum) in alone, entered))
    return found


class _Derived:
    """What the strata, by number, derive."""

    def __init__(self, flow: Dataflow) -> None:
        self.relations: dict[str, int] = {}
        self.logs: dict[int, int] = {}
        """By address."""
        self.reductions: dict[int, list[Reduction]] = {}
        for number, scope in flow.scopes.items():
            self.relations |= dict.fromkeys(scope.relations, number)
            for name in (*scope.relations, *(f"{own} {number}" for own in own_relations(scope))):
                self.logs[flow.collections[name].log.address] = number
                reduction = flow.reductions.get(name)
                if reduction is not None:
                    self.logs[reduction.missing.address] = number
                    self.reductions.setdefault(number, []).append(reduction)


def marked(stratum: StratumTasks, first: bool) -> list[int]:
    """The tasks, by number, that a batch has to run when all that the stratum reads is complete: in a dataflow's `first` batch
    all. Gives its recursion the seeds with changes."""
    found = []
    for number, task in enumerate(stratum.tasks, stratum.first):
        changed = [reading for reading in task.reads if reading.log[L.items.count] > 0]
        if task.kind == TaskKind.LOOP:
            _set_seeds(task.address, changed)
        if first or changed:
            found.append(number)
    return found


def _set_seeds(scope: int, changed: list[Reading]) -> None:
    """Makes these the readings with changes of a recursive scope."""
    words = view(scope, L.scope.size, np.int64)
    words[L.scope.changed_count] = len(changed)
    for at, reading in enumerate(changed):
        assert reading.seed is not None
        view(int(words[L.scope.changed]), at + 1, np.int64)[at] = reading.seed.address
