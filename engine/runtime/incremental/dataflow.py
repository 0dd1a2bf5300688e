"""The dataflow of a maintained program: collections, reductions, lowered paths and the tasks of a batch, built once.

Strata are planned in order when the first rounds arrive, for the sizes of the inputs then. Names of the planner's own relations
are a scope's; here they get the number of their stratum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Literal, Protocol, TypeAlias

import numpy as np

from dlog.engine.garbage import uncollected
from dlog.engine.interruption import DelayedInFinalizer, check
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Kind, Program, Stratum
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.combine import Combine
from dlog.engine.kernels.incremental.loop import fused_batches
from dlog.engine.kernels.incremental.store import lists
from dlog.engine.kernels.static import storage
from dlog.engine.plan.incremental.shapes import Shape
from dlog.engine.plan.incremental.templates import Plans, StratumPlan, Templates
from dlog.engine.plan.incremental.thresholds import MARK
from dlog.engine.plan.statistics import Statistics
from dlog.engine.runtime.incremental.plan_changes.planner_statistics import RecordingStatistics
from dlog.engine.runtime.incremental.schedule import Task, Visits, connect
from dlog.engine.runtime.incremental.stratum_builder import EXTERNAL_SUFFIX, StratumBuilder
from dlog.engine.runtime.lowering.linking import Form
from dlog.engine.runtime.lowering.lower_rounds import RoundCode
from dlog.engine.runtime.lowering.lowered import LoweredPath, Reading, Tables
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.collection import Collection, DataflowStatus
from dlog.engine.runtime.storage.collection_parts import Role, new_list
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, view, words
from dlog.engine.runtime.storage.reduction import Reduction
from dlog.grammar.diagnostics import InternalError


class CannotReuse(Exception):
    """A stratum (its first relation) cannot be taken over: it has left out what is asked for now."""

    def __init__(self, stratum: str) -> None:
        super().__init__(stratum)
        self.stratum = stratum


def _planned(number: int) -> Statistics:
    raise InternalError("rounds", f"stratum {number} has been planned")


Plan: TypeAlias = tuple[nodes.Scope, RecordingStatistics]
"""The plan of a stratum, and what it was made from."""


class ReusedState(Protocol):
    """State taken over from another dataflow (see state_reuse)."""

    def gives(self, relation: str) -> bool: ...
    def takes(self, number: int) -> bool: ...
    def plan(self, number: int) -> Plan | None: ...
    def collection(self, name: str, scope: Struct | None) -> Collection | None: ...
    def reduction(self, name: str, result: Collection, scope: Struct | None) -> Reduction | None: ...
    def settle(self) -> None: ...


class Dataflow:
    """Everything a batch runs over."""

    @uncollected
    def __init__(
        self,
        program: Program,
        catalog: Catalog,
        memory: Memory,
        statistics: Callable[[int], Statistics],
        state_reuse: ReusedState | None = None,
        forms: dict[Shape, Form] | None = None,
    ) -> None:
        """`statistics` is what is known when a stratum (its number) is planned; `forms` is code of paths by form, which other
        dataflows of the program share. Raises CannotReuse where a stratum of the state reuse cannot be taken over."""
        self.program = program
        self.catalog = catalog
        self.memory = memory
        self.statistics = statistics
        self._templates = Templates(program)
        self.recorded_statistics: dict[int, RecordingStatistics] = {}
        """By stratum, what it was planned from."""
        self.collections: dict[str, Collection] = {}
        self.reductions: dict[str, Reduction] = {}
        self.scopes = Plans()
        """By stratum, its plan."""
        self.tables = Tables()
        self.code = RoundCode(self.tables, {} if forms is None else forms)
        self.interned: dict[str, int] = {}
        """The texts of constants."""
        self.owners: list[tuple[list[LoweredPath], Stratum]] = []
        """The paths of strata."""
        self.started = False
        """Whether a batch has been committed."""
        self.status = DataflowStatus()
        self.state_reuse = state_reuse
        self.reused: set[str] = set()
        """The collections that were taken over."""
        self.loops: list[Struct] = []
        self.spare = new_list(L.change.size)
        self._tasks: list[Task] = []
        self._strata_of_tasks: list[int] = []
        self._others: list[Reading] = []
        """Readers that are no tasks."""
        self._taken_tasks: set[int] = set()
        self.scheduled: list[Task] = []
        """The tasks of a batch in their order."""
        self.scheduled_strata: list[int] = []
        """The numbers of their strata."""
        self._inputs()
        for number, stratum in enumerate(program.strata):
            if stratum.rules:
                check()
                first = len(self._tasks)
                self._builder(stratum, number).build()
                self._strata_of_tasks += [number] * (len(self._tasks) - first)
                if state_reuse is not None and state_reuse.takes(number):
                    self._taken_tasks.update(range(first, len(self._tasks)))
        self._leave_out()
        own = {name for name in program.relations if MARK not in name}
        self.observed = {name: c for name, c in self.collections.items() if name in own or c.role is Role.INPUT}
        """The collections whose changes somebody may ask for."""
        self.looks_back = bool(self.loops) or any(c.is_looked_up for c in self.collections.values())
        """Whether a path may meet rows that were there before its seed's change."""
        self.has_candidates = any(r.candidates is not None for r in self.reductions.values())
        self.by_address = {c.address: (name, c) for name, c in self.observed.items()}
        self._keeps = False
        self._counted: dict[str, int] = {}
        self._uncounted = {name for name, c in self.collections.items() if c.role is Role.INPUT}
        self._input_rows = 0
        self.work = self._work()
        for reduction in self.reductions.values():
            reduction.struct.point(L.reduction.work, self.work)
        self.statistics = _planned  # the rows that figures were taken from need not be kept

    # ------------------------------------------------------------------------------------------------------------- parts

    @property
    def running(self) -> bool:
        return self.status.running

    @running.setter
    def running(self, running: bool) -> None:
        self.status.running = running

    def _leave_out(self) -> None:
        """Leaves out the structures that no path reads."""
        for name, collection in self.collections.items():
            if name not in self.reused:
                collection.quieten()
                for index in collection.indexes.values():
                    index.want_values()
        for name, reduction in self.reductions.items():
            if name not in self.reused:
                reduction.quieten()
        if self.state_reuse is not None:
            self.state_reuse.settle()

    def _builder(self, stratum: Stratum, number: int) -> StratumBuilder:
        plan = None if self.state_reuse is None else self.state_reuse.plan(number)
        if plan is None:
            recorded = RecordingStatistics(self.statistics(number))
            made = self._templates.plan(stratum, recorded)
            recorded.close()
        else:
            made, recorded = StratumPlan(plan[0]), plan[1]
        self.recorded_statistics[number] = recorded
        return StratumBuilder(self, stratum, number, made)

    def _inputs(self) -> None:
        derived = self.program.derived.keys()
        loaded = self.program.inputs | {name for name, facts in self.program.facts.items() if facts}
        for name, relation in self.program.relations.items():
            if name not in derived:
                self.add(name, relation.kinds, Role.INPUT)
            elif name in loaded or (self.state_reuse is not None and self.state_reuse.gives(name)):
                self.add(name + EXTERNAL_SUFFIX, relation.kinds, Role.INPUT)

    def add(self, name: str, kinds: Sequence[Kind], role: Role, scope: Struct | None = None) -> Collection:
        found = None if self.state_reuse is None else self.state_reuse.collection(name, scope)
        if found is not None:
            self.reused.add(name)
        else:
            found = Collection(name, kinds, role, self.memory, scope)
            found.status = self.status
            found.struct[L.collection.passing] = int(name in self.program.passing)
        self.collections[name] = found
        return found

    def reduce(
        self, name: str, result: Collection, combine: Combine, kind: Kind, column: int, scope: Struct | None = None
    ) -> Reduction:
        """The reduction with a result."""
        reuse = self.state_reuse if name in self.reused else None
        found = None if reuse is None else reuse.reduction(name, result, scope)
        self.reductions[name] = found = found or Reduction(result, combine, kind, column, scope)
        return found

    def input(self, relation: str) -> Collection | None:
        """The collection with a relation's external rows."""
        found = self.collections.get(relation)
        if found is not None and found.role is Role.INPUT:
            return found
        return self.collections.get(relation + EXTERNAL_SUFFIX)

    def inputs(self) -> Iterator[tuple[str, Collection]]:
        """All relations that take rows from outside, and the collections of these rows."""
        for name in self.program.relations:
            found = self.input(name)
            if found is not None:
                yield name, found

    def stamped(self) -> Iterator[Collection]:
        """All collections that may carry stamps."""
        yield from self.collections.values()
        for reduction in self.reductions.values():
            yield reduction.groups
            if reduction.candidates is not None:
                yield reduction.candidates

    def task(self, task: Task) -> None:
        self._tasks.append(task)

    def read_by_others(self, readings: Iterable[Reading]) -> None:
        self._others += readings

    # ----------------------------------------------------------------------------------------------------------- a batch

    @property
    def phase(self) -> Literal["before", "during", "after"]:
        """The phase of native code in the present batch: it has not begun it, has not ended it, has settled it."""
        if self.work[L.work.rounds] == 0:
            return "before"
        return "after" if self.work[L.work.over] else "during"

    def touched(self) -> tuple[str, ...]:
        """The collections of `observed` that the last batch has touched: no others have changed."""
        addresses, found = self._touched.words[: self.work[L.work.touched_count]].tolist(), self.by_address
        return tuple([found[address][0] for address in addresses if address in found])

    @property
    def visits(self) -> Visits:
        return Visits(*(self.work[field] for field in (L.work.ran, L.work.seeded, L.work.processed)))

    def touched_by_fused_batches(self) -> tuple[str, ...]:
        """The collections of `observed` with kept changes of fused batches."""
        addresses = view(self.work[L.work.fused_collections], self.work[L.work.fused_count], np.int64).tolist()
        return tuple([self.by_address[address][0] for address in addresses])

    def keep_changes(self) -> None:
        """Has fused batches leave their changes with the collections of `observed`; forgets those of an earlier
        one."""
        if not self._keeps:
            for collection in self.observed.values():
                collection.keep_changes()
            self._keeps = True
        fused_batches.forget_fused_logs(self.work.address, self.memory.control.address)

    def note_input_changes(self, names: Iterable[str]) -> None:
        """Notes that inputs change."""
        self._uncounted.update(names)

    @property
    def input_rows(self) -> int:
        """The rows of all inputs."""
        for name in self._uncounted:
            found = self.input(name)
            if found is not None:
                rows = found.struct[L.collection.live]
                self._input_rows += rows - self._counted.get(found.name, 0)
                self._counted[found.name] = rows
        self._uncounted.clear()
        return self._input_rows

    def _work(self) -> Struct:
        work = Struct(L.work.size)
        self._plan_work(work, range(len(self._tasks)))
        self._touched = Struct(len(self.collections))
        work.point(L.work.touched, self._touched)
        work.point(L.work.fused_collections, Struct(len(self.collections)))
        work.point(L.work.spare, self.spare)
        work.point(L.work.counts, Struct(256))
        work[L.work.first] = 1
        work[L.work.limit] = 2**31 - 2
        return work

    def _plan_work(self, work: Struct, numbers: Sequence[int]) -> None:
        """Writes the schedule of a batch: its tasks, by their numbers among all, and the readers of every log."""
        tasks = [self._tasks[number] for number in numbers]
        self.scheduled, self.scheduled_strata = tasks, [self._strata_of_tasks[number] for number in numbers]
        work.point(L.work.tasks, words(w for task in tasks for w in (task.kind, task.address)))
        work[L.work.count] = len(tasks)
        work.point(L.work.marks, Struct((len(tasks) + 63) // 64))
        logs = [collection.log for collection in self.collections.values()]
        work.keep[-1] = connect(tasks, [*logs, *(reduction.missing for reduction in self.reductions.values())], self._others)

    def do_new(self) -> bool:
        """Lets a batch derive what was not taken over; false where that is nothing."""
        numbers = [number for number in range(len(self._tasks)) if number not in self._taken_tasks]
        self._plan_work(self.work, numbers)
        return bool(numbers)

    def changes_to_read(self) -> int:
        """How many changes there are for the tasks of a batch, none of which has run."""
        logs = {reading.log.address: reading.log for task in self.scheduled for reading in task.reads}
        return sum([log[L.items.count] for log in logs.values()])

    def do_all(self) -> None:
        """Lets batches do everything again."""
        self._plan_work(self.work, range(len(self._tasks)))

    @property
    def seeds(self) -> frozenset[int]:
        """The addresses of the logs that paths of strata read which were not taken over."""
        strata = {id(s) for n, s in enumerate(self.program.strata) if self.state_reuse is None or not self.state_reuse.takes(n)}
        found = (path for paths, stratum in self.owners if id(stratum) in strata for path in paths)
        return frozenset([0 if path.log is None else path.log.address for path in found])

    @property
    def paths(self) -> Iterator[tuple[LoweredPath, Stratum]]:
        """All paths, each with its stratum."""
        return ((path, stratum) for paths, stratum in self.owners for path in paths)

    def rule_of(self, path: int) -> tuple[Stratum, int] | None:
        """The stratum and the rule whose path has an address."""
        for lowered, stratum in self.paths:
            if lowered.address == path:
                return stratum, lowered.path.rule
        return None

    def __del__(self) -> None:
        with suppress(Exception), DelayedInFinalizer():
            self.free()

    def free(self) -> None:
        """Gives all memory back, but for what belongs to another dataflow; a second time there is none."""
        control = self.memory.control.address
        self.status.over = True
        for reduction in self.reductions.values():
            if reduction.result.status is self.status:
                reduction.free()
        for collection in self.collections.values():
            if collection.status is self.status:
                collection.free()
        for loop in self.loops:
            storage.release(control, loop[L.scope.bits], loop[L.scope.bit_words] * 8)
            storage.release(control, loop[L.scope.heads], loop[L.scope.head_count] * 8)
        lists.list_free(control, self.spare.address)
        self.reductions.clear()
        self.collections.clear()
        self.loops.clear()
