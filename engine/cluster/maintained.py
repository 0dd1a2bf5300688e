"""The incremental engine of one worker among several that maintain a program together (`dlog.engine.plan.exchange.pivots`).

It is the embedded one, but that tasks which derive rows of other workers are followed by an exchange: of a stratum without
recursion one for all rounds of a batch, in a recursion one after each iteration that any worker has something for. So all
workers are at the same round and iteration of the same stratum, and a row is evaluated by its owner when all that was derived
for it is there. They plan alike since the root's plan is everyone's. Where one fails all go back to the round before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from dlog.engine.cluster.channels import Channel, Inbox, Outbox, SendingLowering
from dlog.engine.cluster.exchange import RowExchange
from dlog.engine.cluster.worker_group import PeerFailed
from dlog.engine.interruption import check
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Program, Stratum
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Error, Status
from dlog.engine.kernels.incremental.loop import changes, rounds, scopes, seeded, supports
from dlog.engine.plan.column_types import declared
from dlog.engine.plan.exchange.pivots import HERE, PivotPlan
from dlog.engine.plan.incremental.build import NotIncremental, build_rounds_scope
from dlog.engine.plan.incremental.templates import StratumPlan
from dlog.engine.rounds_engine import Frames
from dlog.engine.runtime.incremental.batches.changes import batches
from dlog.engine.runtime.incremental.batches.cutting import BATCH_ROUNDS
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.incremental.plan_changes.planner_statistics import DataflowStatistics
from dlog.engine.runtime.incremental.stratum_builder import StratumBuilder
from dlog.engine.runtime.lowering.lower_rounds import RoundLowering
from dlog.engine.runtime.lowering.lowered import LoweredPath, Reading
from dlog.engine.runtime.lowering.round_storage import Source
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError

NEVER = 2**62
"""Later than any round or iteration."""
Step = Callable[[], object]


class SharedDataflow(Dataflow):
    """A dataflow some of whose paths send; `script` has the steps that all workers take together, each with the task before
    which it comes. What is between them each worker does by itself, as far as its own changes reach."""

    def __init__(self, engine: SharedMaintained, scopes: Mapping[int, nodes.Scope], statistics: DataflowStatistics) -> None:
        self.engine = engine
        self.planned = scopes
        self.script: list[tuple[int, Step]] = []
        self.channels: dict[str, Channel] = {}
        super().__init__(engine.program, engine.catalog, engine.memory, lambda _: statistics)

    def _builder(self, stratum: Stratum, number: int) -> StratumBuilder:
        return SharedStratum(self, stratum, number, StratumPlan(self.planned[number]))

    def step(self, step: Step) -> None:
        """All workers take a step together."""
        self.script.append((len(self._tasks), step))

    def free(self) -> None:
        for channel in self.channels.values():
            channel.outbox.free()
        self.channels.clear()
        self.script.clear()
        super().free()


class SharedStratum(StratumBuilder):
    """Builds a stratum whose rules may send."""

    flow: SharedDataflow

    def __init__(self, flow: SharedDataflow, stratum: Stratum, number: int, plan: StratumPlan) -> None:
        super().__init__(flow, stratum, number, plan)
        self.sending = flow.engine.together.sends[number]
        targets = dict.fromkeys(stratum.rules[n].head.relation for n in sorted(self.sending))
        self.channels = [self._channel(name) for name in targets]

    def _channel(self, name: str) -> Channel:
        engine = self.flow.engine
        types = tuple(declared(type) for _, type in engine.program.relations[name].attributes)
        outbox = Outbox(name, types, engine.together.homes[name], engine.memory, engine.worker.control)
        made = self.flow.channels[name] = Channel(outbox, Inbox(name, [t.kind for t in types]))
        return made

    def source(self, name: str) -> Source:
        inbox = next((c.inbox for c in self.channels if c.inbox.name == name), None)
        return inbox or super().source(name)

    def _lower(self, paths: Sequence[nodes.Path]) -> list[LoweredPath]:
        return self._owned([self._lowering(p).lower() for p in paths])

    def _part(self, part: int) -> list[LoweredPath]:
        return self._lower(self.plan.paths(part))

    def _lowering(self, path: nodes.Path) -> RoundLowering:
        """A path of a rule that sends; those to stages before it stay."""
        sink = path.sink
        if path.rule in self.sending and isinstance(sink, nodes.Insert) and sink.relation in self.scope.relations:
            return SendingLowering(path, self.flow.channels[sink.relation].outbox, self, self.flow.tables)
        return RoundLowering(path, self, self.flow.tables)

    def _deliveries(self) -> None:
        for channel in self.channels:
            (channel.delivery,) = self._lower([channel.inbox.path()])

    def _entered(self) -> None:
        if self.channels:
            self._deliveries()
            channels = self.channels
            self.flow.step(lambda: self.flow.engine.trade(self.flow, channels))

    def _looped(self, loop: Struct, reads: tuple[Reading, ...]) -> None:
        if not self.channels:
            return super()._looped(loop, reads)
        self._deliveries()
        loop[L.scope.own_count] = 0  # whether it only grows depends on what others send
        self.flow.read_by_others(reads)
        return self.flow.step(Recursion(self.flow.engine, self.flow, loop, self.channels).run)


class SharedMaintained(Maintained):
    """See `engine.rounds_engine`; `agenda` is set before each commit: the rounds in which some worker's inputs
    change. All workers commit together, and raise together: the worker that fails its own mistake, the others PeerFailed."""

    def __init__(self, together: PivotPlan, row_exchange: RowExchange, **options: Any) -> None:
        program = together.program
        if row_exchange.worker_group.is_root:
            program = _with_here(program)
        super().__init__(program, **options)
        self.together = together
        self.row_exchange = row_exchange
        self.worker_group = row_exchange.worker_group
        self.agenda: np.ndarray = np.empty(0, np.int64)
        self._broken = False

    def commit(self, inputs: Mapping[str, Updates], frames: Frames | None = None) -> int:
        if self._broken:
            message = "the state of the workers is lost: a round failed, and so did the way back"
            raise DlogError(Diagnostic("torn-round", message, notes=("open the session again",)))
        return super().commit(inputs, frames)

    def _span(self, inputs: Mapping[str, Updates]) -> tuple[int, int]:
        return (self.round + 1 if self._flow is None else int(self.agenda[0])), int(self.agenda[-1])

    def _batches_of(
        self, flow: Dataflow, given: Mapping[str, Updates], first: int, last: int
    ) -> Sequence[tuple[int, int]]:
        return list(batches([self.agenda], first, last, BATCH_ROUNDS))

    def _dataflow(self, statistics: DataflowStatistics) -> Dataflow:
        """Plans for the root's statistics; orders that lead nowhere for these do for none (see `Maintained._build`)."""
        scopes = None
        try:
            if self.worker_group.is_root:
                scopes = self._scopes(statistics)
        except BaseException:
            self.worker_group.fail()
            raise
        return SharedDataflow(self, self.worker_group.from_root(scopes), statistics)

    def _begins_anew(self, flow: Dataflow, given: Mapping[str, Updates], coming: int) -> bool:
        return False  # each worker sees the changes of its own inputs only

    def _looked_at(self, flow: Dataflow, given: Mapping[str, Updates], start: int) -> Dataflow:
        """Plans stay: workers would have to change theirs together."""
        return flow

    def _scopes(self, statistics: DataflowStatistics) -> dict[int, nodes.Scope]:
        strata = [(number, s) for number, s in enumerate(self.program.strata) if s.rules]
        try:
            return {number: build_rounds_scope(s, self.program, statistics) for number, s in strata}
        except NotIncremental:
            none = DataflowStatistics({}, statistics.complete)
            return {number: build_rounds_scope(s, self.program, none) for number, s in strata}

    # ------------------------------------------------------------------------------------------------------------- batch

    def _run(self, flow: Dataflow, given: Mapping[str, Updates], first: int, count: int) -> None:
        assert isinstance(flow, SharedDataflow)
        try:
            self._run_script(flow, given, first, count)
        except PeerFailed:
            raise
        except BaseException:
            self.worker_group.fail()
            raise

    def _run_script(self, flow: SharedDataflow, given: Mapping[str, Updates], first: int, count: int) -> None:
        self._runner.begin(flow, given, first, count)
        for place, step in flow.script:
            self._run_tasks(flow, place)
            step()
        self._run_tasks(flow, flow.work[L.work.count])
        self.worker_group.share(None)  # nobody ends a batch that another one cannot
        if not rounds.settle_batch(flow.work.address, self.worker.control.address):
            raise self.mistake(flow)

    def _run_tasks(self, flow: SharedDataflow, last: int) -> None:
        self.drive(flow, lambda: rounds.run_tasks(flow.work.address, self.worker.control.address, last))

    def drive(self, flow: SharedDataflow, run: Callable[[], int]) -> None:
        """Runs compiled code until it is done."""
        while (status := run()) != Status.DONE:
            self._runner.answer(flow, status)
            check()

    def trade(self, flow: SharedDataflow, channels: Sequence[Channel], note: object = None) -> list[tuple[Any, int]]:
        """Sends what was derived for others, and derives what arrives. Returns what all workers noted, and when the first of
        the rows that were sent is."""
        batches = [channel.outbox.empty() for channel in channels]
        earliest = min((int(c.rows.columns[-2].min()) for c in batches if c.rows.height), default=NEVER)
        arrived, notes = self.row_exchange.swap_noting(batches, (note, earliest))
        for channel in channels:
            rows = arrived.get(channel.outbox.name)
            if rows is not None:
                assert channel.delivery is not None
                channel.inbox.hold(rows)
                self._deliver(flow, channel.delivery.address)
        return notes

    def _deliver(self, flow: SharedDataflow, path: int) -> None:
        work, control = flow.work.address, self.worker.control.address
        self.drive(flow, lambda: seeded.run_seeded(path, work, control, True))

    def fail_at(self, flow: SharedDataflow, code: int) -> None:
        self.worker.control[L.control.error] = code
        raise self.mistake(flow)

    def mistake(self, flow: SharedDataflow) -> Exception:
        return self._runner.mistake(flow)

    def _restore(self, flow: Dataflow) -> None:
        """All workers come here together, all in the same batch."""
        try:
            super()._restore(flow)
        except BaseException as error:
            self._broken = True
            raise InternalError("rounds", f"no way back from a failed round: {error}") from error


def _with_here(program: Program) -> Program:
    return replace(program, facts={HERE: ((),)})


class Recursion:
    """A recursive stratum whose iterations all workers go through together."""

    def __init__(
        self,
        engine: SharedMaintained,
        flow: SharedDataflow,
        scope: Struct,
        channels: Sequence[Channel],
    ) -> None:
        self.engine = engine
        self.flow = flow
        self.scope = scope
        self.channels = channels

    def run(self) -> None:
        """All rounds of the batch in which something that the stratum reads has changed."""
        scopes.start_scope(self.scope.address, self.flow.work.address)
        time = min(self.engine.worker_group.share(self._next_round()))
        while time < NEVER:
            time = self._round(time)
        scopes.end_scope(self.scope.address, self.flow.work.address)

    def _round(self, time: int) -> int:
        """One round; returns the time of the next one."""
        scope, work = self.scope, self.flow.work.address
        self._begin(time)
        self._run_paths()
        for done in count():
            iteration, following = self._trade(time)
            if iteration >= NEVER:
                break
            if (done if scope[L.scope.delayed] else iteration) > self.flow.work[L.work.limit]:
                self.engine.fail_at(self.flow, Error.ITERATIONS)
            self._take(iteration)
            control = self.engine.worker.control
            control[L.control.iteration] = iteration
            if scopes.process_iteration(control.address, scope.address, work, iteration) != Status.DONE:
                raise self.engine.mistake(self.flow)
            scope[L.scope.iteration] = iteration + 1
            self._run_paths()
        if scopes.end_round(self.engine.worker.control.address, scope.address) != Status.DONE:
            raise self.engine.mistake(self.flow)
        return following

    def _next_round(self) -> int:
        """The time of the next round in which this worker's imports change."""
        return int(scopes.round_to_come(self.scope.address, self.flow.work.address)) or NEVER

    def _begin(self, time: int) -> None:
        """Goes to a round: where this worker's imports change, the paths that they seed are to run."""
        scope, work = self.scope, self.flow.work.address
        if self._next_round() == time:
            scopes.next_round(scope.address, work)
        scope[L.scope.round], scope[L.scope.iteration], scope[L.scope.path] = time, 0, 0
        scope[L.scope.round_tick] = scope[L.scope.tick] = changes.next_tick(work)

    def _run_paths(self) -> None:
        work, control = self.flow.work.address, self.engine.worker.control.address
        self.engine.drive(self.flow, lambda: scopes.run_seeds(self.scope.address, work, control))

    def _trade(self, time: int) -> tuple[int, int]:
        """The next iteration at which any worker has something to do, and the next round; NEVER if there is none."""
        notes = self.engine.trade(self.flow, self.channels, (self._next_iteration(), self._next_round()))
        sent = min(earliest for _, earliest in notes)
        iteration = min(own for (own, _), _ in notes)
        following = min(next for (_, next), _ in notes)
        return min(iteration, sent - time if sent < NEVER else NEVER), following

    def _next_iteration(self) -> int:
        """The next iteration at which this worker has something to do."""
        found = int(scopes.next_iteration(self.scope.address))
        if found < 0:
            return NEVER
        supports.mark_iteration(self.engine.worker.control.address, self.scope.address, found)
        return found

    def _take(self, iteration: int) -> None:
        """Takes this iteration's work off the schedule."""
        found = int(scopes.next_iteration(self.scope.address))
        if found >= 0 and found != iteration:
            supports.mark_iteration(self.engine.worker.control.address, self.scope.address, found)
