"""Plans follow the data: between two commits strata are planned again whose figures have left the range that their plans were
made for, and a dataflow with the new plans takes over what the old one has (`state_reuse`).

A stratum whose plan derives the same as before, in another order, keeps its rows: only its paths are others, and indexes that
these ask for are filled. One that is to keep other temporaries, or what it had left out, is derived anew. A plan that turns out
as it was costs no more than making it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import relations_read
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Program
from dlog.engine.kernels import layout as L
from dlog.engine.plan.incremental.build import NotIncremental, plan_steps
from dlog.engine.plan.statistics import Statistics
from dlog.engine.runtime.incremental.dataflow import CannotReuse, Dataflow, Plan
from dlog.engine.runtime.incremental.plan_changes.planner_statistics import (
    DataflowStatistics,
    FrozenStatistics,
    RecordingStatistics,
    StatisticChange,
    StatisticKey,
)
from dlog.engine.runtime.incremental.plan_changes.state_reuse import StateReuse, derive_new
from dlog.engine.runtime.static.worker import Worker

WORK_PER_PATH = 1 << 12
"""Rows that paths make, for each path of a dataflow, until sizes are looked at again; for each path, making a dataflow takes
some times as long."""
WORK_OF_A_ROW = 16
"""As so many of them count rows that come in: what these will lead to is not known before."""
WORK_PER_STATISTICS = 1 << 20
"""The same for each path until values are counted again, which takes longer, if there are no more rows than that."""
MAX_SPACING = 16
"""How many times as long it takes until values are counted again where they have been found within their range: trades the time
for counts against that of a plan that no longer suits."""
ROWS_PER_STATISTIC = 1 << 12
"""Counting the values of some columns takes as long as so many rows that come in: a commit of fewer does it for one figure."""
ROWS_PER_STEP = 1 << 10
"""Rows that come in the time of a step of planning."""
MAX_NOTED_CHANGES = 8
"""The last changes of a stratum's plan that are shown."""
NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Replanned:
    """A plan that has changed: in which round, and the figure that had left its range."""

    round: int
    why: StatisticChange

    def __str__(self) -> str:
        return f"planned anew in round {self.round}: {self.why}"


class PlanWatch:
    """Watches the plans of an engine's dataflow: when they are looked at again, and which have changed."""

    def __init__(self) -> None:
        self.work = 0
        """What has been done since sizes were looked at."""
        self.due = NEVER
        """They are looked at again when so much has been."""
        self.changed_plans: dict[tuple[str, ...], list[Replanned]] = {}
        """By the relations of a stratum."""
        self._uncounted = 0
        """What has been done since values began to be counted."""
        self._spacing = 1
        """Twice as much, up to MAX_SPACING, whenever all values that were counted are within their range."""
        self._open: list[int] = []
        """The strata that could be planned in another way."""
        self._keys_left: list[StatisticKey] = []
        """What is still to be counted of the values that are."""
        self._paths = 0
        self._urgent = False
        self._due_later = NEVER
        """`due`, when what is planned now will have been."""
        self._replanning: Replanning | None = None

    def planned(self, flow: Dataflow) -> None:
        """A dataflow has just been planned."""
        self._replanning = None
        self._open = flow.scopes.which(lambda scope: may_differ(scope, flow.program))
        self._paths = sum([len(paths) for paths, _ in flow.owners])
        self._spacing = 1
        self._begin()

    def _begin(self, coming: int = 0) -> None:
        """Begins anew; looking at the sizes takes some time for each of so many changes that wait."""
        self.work, self.due = 0, max(WORK_PER_PATH * self._paths, coming) if self._open else NEVER
        self._keys_left = []

    def soon(self) -> None:
        """The plans are of another time: they are looked at before anything else is done."""
        if self._open:
            self.due, self._uncounted, self._urgent = 0, NEVER, True

    def replanned(self, flow: Dataflow, now: DataflowStatistics) -> Replanning | None:
        """The plans for strata whose statistics have left their range, once they are made: before a commit that brings much,
        else some steps in each commit."""
        rows = sum(c.struct[L.collection.live] for c in flow.collections.values())
        at_once = self._urgent or now.waiting_rows >= min(rows, ROWS_PER_STATISTIC)
        found, self._replanning, self._urgent = self._replanning, None, False
        if found is None or found.flow is not flow or at_once:
            left = self.out_of_range(flow, now)
            found = Replanning(flow, left) if left else None
            self._due_later = self.due
        if found is None or found.go_on(now, None if at_once else 1 + now.waiting_rows // ROWS_PER_STEP):
            self.due = self._due_later
            return found
        self.due, self._replanning = 0, found
        return None

    def out_of_range(self, flow: Dataflow, now: DataflowStatistics) -> dict[int, StatisticChange]:
        """The strata whose statistics have left their range, as far as these are looked at by now."""
        counted = self._keys_to_count(flow, now)
        found = ((number, flow.recorded_statistics[number].out_of_range(now, counted)) for number in self._open)
        left = {number: why for number, why in found if why is not None}
        if left:
            self._spacing = 1
        elif counted and not self._keys_left:
            self._spacing = min(2 * self._spacing, MAX_SPACING)
        return left

    def _keys_to_count(self, flow: Dataflow, now: DataflowStatistics) -> list[StatisticKey]:
        """Of which columns values are counted now; the others follow in the next commits."""
        self._uncounted += self.work
        rows = sum(c.struct[L.collection.live] for c in flow.collections.values())
        keys = self._keys_left
        at_once = 1 + now.waiting_rows // ROWS_PER_STATISTIC
        if not keys and self._uncounted >= self._spacing * max(rows, WORK_PER_STATISTICS * self._paths):
            keys = list(dict.fromkeys(asked for number in self._open for asked in flow.recorded_statistics[number].countable()))
            at_once = len(keys) if self._uncounted >= NEVER else at_once
            self._uncounted = 0
        self._begin(now.waiting_rows)
        self._keys_left = keys[at_once:]
        if self._keys_left:
            self.due = 0  # the next commit goes on
        return keys[:at_once]

    def note(self, changed: Iterable[int], flow: Dataflow, why: Mapping[int, StatisticChange], round: int) -> None:
        """Plans of a dataflow have changed."""
        for number in changed:
            noted = self.changed_plans.setdefault(flow.scopes[number].relations, [])
            noted.append(Replanned(round, why[number]))
            del noted[:-MAX_NOTED_CHANGES]

    def give_up(self, strata: Iterable[int]) -> None:
        """These keep their plans: there is no other one, or no room for it."""
        self._open = [number for number in self._open if number not in set(strata)]
        self._begin()


def may_differ(scope: nodes.Scope, program: Program) -> bool:
    """Whether a stratum could be planned in another way: some path looks up in two places, or past columns that nothing uses,
    or there are temporaries."""
    if scope.temporaries or scope.reductions:
        return True
    paths = (*scope.enter, *scope.loop)
    return any(sum(map(_look_ups, path.steps)) > 1 or any(_multiplies(s, program) for s in path.steps) for path in paths)


def _look_ups(step: nodes.Step) -> int:
    """In how many places a step looks rows up."""
    match step:
        case nodes.Extend(proposers=proposers):
            return len(proposers)
        case nodes.HalfJoin() | nodes.SemiJoin():
            return 1
        case nodes.AntiJoin() | nodes.Filter() | nodes.Map() | nodes.UnpackRecord() | nodes.Generate() | nodes.LookUp():
            return 0


def _multiplies(step: nodes.Step, program: Program) -> bool:
    """Whether a step meets rows that differ in nothing that is used."""
    if not isinstance(step, nodes.HalfJoin):
        return False
    return len(step.arrangement.key) + len(step.binds) < program.relations[step.arrangement.relation].arity


class Replanning:
    """The planning of strata with `outdated` statistics, which have left their range, as far as it has come: `plans` are there
    at the end, but for strata of which there are none."""

    def __init__(self, flow: Dataflow, outdated: dict[int, StatisticChange]) -> None:
        self.flow = flow
        self.outdated = outdated
        self.plans: dict[int, Plan] = {}
        self._figures = FrozenStatistics()
        self._steps = self._plan()

    def go_on(self, now: Statistics, steps: int | None) -> bool:
        """Goes on by so many steps (None: to the end) with the figures of now, as far as others have not been told. Returns
        whether it is over."""
        self._figures.now = now
        taken = sum(1 for _ in islice(self._steps, steps))
        self._figures.now = None  # the rows that figures were taken from need not be kept
        return steps is None or taken < steps

    def _plan(self) -> Iterator[None]:
        flow, program = self.flow, self.flow.program
        for number in self.outdated:
            for asked in flow.recorded_statistics[number].countable():
                self._figures.ask(asked)  # as the planner is likely to do
                yield
            recorded = RecordingStatistics(self._figures)
            with suppress(NotIncremental):  # orders chosen for some sizes may lead there
                for scope in plan_steps(program.strata[number], program, recorded):
                    if scope is not None:
                        self.plans[number] = scope, recorded
                    yield
            recorded.close()


def with_plans(old: Dataflow, plans: Mapping[int, Plan], worker: Worker, run: Callable[[Dataflow], None]) -> Dataflow:
    """A dataflow with these plans of strata that goes on where another one is; `run` runs its batch that derives what it cannot
    have from there. Whatever is raised (DlogError where memory does not suffice), the other one is as it was."""
    running, old.running = old.running, False
    try:
        flow, state_reuse = _followed(old, plans)
        worker.prepare(flow.tables)
        derive_new(flow, state_reuse, lambda: run(flow))
    except BaseException:
        worker.prepare(old.tables)
        old.running = running
        raise
    flow.running = running
    return flow


def _followed(old: Dataflow, plans: Mapping[int, Plan]) -> tuple[Dataflow, StateReuse]:
    """A dataflow with these plans, and as much of another one as can be taken over."""
    program = old.program
    avoid = frozenset(s.relations[0] for n, (s, _) in plans.items() if not _derives_alike(s, old.scopes[n]))
    while True:
        _hold_rows(old, program, {*plans, *(n for n, s in old.scopes.items() if s.relations[0] in avoid)})
        state_reuse = StateReuse(old, program, avoid, plans)
        try:
            flow = Dataflow(program, old.catalog, old.memory, old.statistics, state_reuse, old.code.forms)
        except CannotReuse as without:
            state_reuse.give_back()
            avoid |= {without.stratum}
        except BaseException:
            state_reuse.give_back()
            raise
        else:
            flow.work[L.work.tick] = old.work[L.work.tick]
            return flow, state_reuse


def _derives_alike(one: nodes.Scope, other: nodes.Scope) -> bool:
    """Whether two plans of a stratum keep the same rows with the same derivations."""
    alike = one.temporaries == other.temporaries and one.reductions == other.reductions
    return alike and one.derived == other.derived


def _hold_rows(flow: Dataflow, program: Program, strata: Iterable[int]) -> None:
    """Has inputs that strata read keep ordinary rows, which can be looked up and told."""
    for stratum in (program.strata[number] for number in strata):
        for name in {*stratum.relations, *(on for rule in stratum.rules for on in relations_read(rule))}:
            found = flow.input(name)
            if found is not None:
                found.hold_rows()
