"""A cycle: moves that are planned and lowered once and made again and again by the machine (kernels/machine.py), without Python
where a move does not ask for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir import nodes
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import SetKind, Status
from dlog.engine.runtime.lowering.external import evaluate
from dlog.engine.runtime.lowering.lower import PathLowering
from dlog.engine.runtime.lowering.lowered import ExternalCall, LoweredPath, Tables
from dlog.engine.runtime.static.cycle_plan import CyclePlan, PlannedMove, distinct
from dlog.engine.runtime.static.cycle_storage import CycleStorage
from dlog.engine.runtime.static.scope import RuleCosts, ScopeRun
from dlog.engine.runtime.static.thread_pool import BULK_ROWS
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.extent import Extents
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.runtime.storage.relation import StoredRelation


class Cycle:
    """The run of a planned cycle, which is made once."""

    def __init__(self, plan: CyclePlan) -> None:
        self.plan = plan
        self.setting = plan.setting
        self.catalog = plan.catalog
        self.storage = CycleStorage(plan)
        self.costs: dict[int, RuleCosts] = {}
        self._lowered: list[list[LoweredPath]] = []
        self._tables = Tables()
        self._operand_words: list[Struct] = []
        self._running: tuple[ScopeRun, tuple[int, ...]] | None = None

    # -------------------------------------------------------------------------------------------------------- lowering

    def _lower(self) -> Struct:
        """The cycle as the machine makes it."""
        for move in self.plan.moves:
            self._lowered.append([self._lowered_path(path) for path in move.paths])
        indexes: dict[str, list[StoredArrangement]] = {}
        for wanted, index in self.storage.growing.items():
            index.take_up()
            indexes.setdefault(wanted.relation, []).append(index)
        moves = [
            (int(move.kind), *self._operands(move, paths, indexes.get(move.relation, ())), move.further)
            for move, paths in zip(self.plan.moves, self._lowered, strict=True)
        ]
        cycle = Struct(L.cycle.size)
        cycle.point(L.cycle.moves, words(word for move in moves for word in move))
        cycle[L.cycle.move_count] = len(moves)
        relations = self.catalog.relations
        cycle.point(L.cycle.grown, words(relations[name].address for name, _ in self.plan.grown))
        cycle.point(L.cycle.deltas, words(relations[delta].address for _, delta in self.plan.grown))
        cycle[L.cycle.relation_count] = len(self.plan.grown)
        for name, _ in self.plan.grown:
            relations[name].struct[L.relation.limit] = self.setting.limits.get(name, 0)
        return cycle

    def _operands(
        self, move: PlannedMove, paths: Sequence[LoweredPath], indexes: Sequence[StoredArrangement]
    ) -> tuple[int, int, int, int, int]:
        relation = self.catalog.relations[move.relation].address if move.relation else 0
        listed, arranged = words(p.address for p in paths), words(a.address for a in indexes)
        self._operand_words += (listed, arranged)
        return relation, listed.address, len(paths), arranged.address, len(indexes)

    def _lowered_path(self, path: nodes.Path) -> LoweredPath:
        if self.storage.relation(path.sink.relation).set_kind != SetKind.NONE:
            path = distinct(path)
        made = PathLowering(path, self.storage, self._tables).lower()
        made.struct[L.path.divisible] = int(made.shareable and len(path.steps) > 0)
        return made

    # ------------------------------------------------------------------------------------------------------------- run

    def run(self) -> int:
        """Makes the moves, until there is nothing to go on from. Returns how many iterations were begun."""
        pool = self.setting.thread_pool
        try:
            self.storage.shape()
            cycle = self._lower()
            pool.prepare(self._tables)
            self._drive(cycle)
        finally:
            self._clean()
        return pool.workers[0].control[L.control.iteration]

    def _drive(self, cycle: Struct) -> None:
        pool = self.setting.thread_pool
        control = pool.workers[0].control
        control[L.control.path] = control[L.control.running] = control[L.control.iteration] = control[L.control.changes] = 0
        control[L.control.bulk] = BULK_ROWS if pool.size > 1 else 2**62
        while (status := pool.workers[0].run_cycle(cycle, self._external, self.setting.pause)) != Status.DONE:
            move = self.plan.moves[cycle[L.cycle.at]]
            if status == Status.CALL:
                self._call(move)
                cycle[L.cycle.at] += 1
            else:
                pool.run_path(self._lowered[cycle[L.cycle.at]][control[L.control.path]], self.storage, self.setting.pause)
                pool.free_shares()  # their bits would keep rows that are taken out of the relation
                control[L.control.path] += 1

    def _call(self, move: PlannedMove) -> None:
        if move.apart is not None:
            self._run_apart(move.apart, move.numbers, move.derives)
        else:
            assert move.call is not None
            move.call()

    def _run_apart(self, scope: nodes.Scope, numbers: tuple[int, ...], derives: bool) -> None:
        control = self.setting.thread_pool.workers[0].control
        iteration = control[L.control.iteration]
        run = _StepRun(scope, self.catalog, self.setting.thread_pool, self.setting.pause, moving=self.setting.moving)
        self._running = run, numbers
        run.run()
        self._running = None
        control[L.control.iteration] = iteration
        self.setting.thread_pool.prepare(self._tables)
        for at, costs in run.costs.items():
            self.costs.setdefault(numbers[at], RuleCosts()).add(costs.cycles, costs.derived, costs.new if derives else 0)

    def _external(self, call: ExternalCall, args: Sequence[np.ndarray], rows: int) -> np.ndarray:
        return evaluate(call, args, rows, self.catalog)

    def _clean(self) -> None:
        self.storage.free()
        for lowered, move in zip(self._lowered, self.plan.moves, strict=False):
            for path in lowered if move.numbers else ():
                new = path.struct[L.path.added] if move.derives else 0
                costs = self.costs.setdefault(move.numbers[path.path.rule], RuleCosts())
                costs.add(path.struct[L.path.cycles], path.struct[L.path.derived], new)

    def current_rule(self) -> int:
        """The rule that was evaluated last, -1 if none."""
        if self._running is not None:
            run, numbers = self._running
            return _number(numbers, run.current_rule())
        controls = [worker.control for worker in self.setting.thread_pool.workers]
        failed = [control[L.control.error_path] for control in controls if control[L.control.error_path]]
        address = failed[0] if failed else controls[0][L.control.run_path]
        for lowered, move in zip(self._lowered, self.plan.moves, strict=False):
            for path in lowered:
                if path.address == address:
                    return _number(move.numbers, path.path.rule)
        return -1


@dataclass
class _StepRun(ScopeRun):
    """One run of a step apart from the others. It fills relations as they are shaped, and leaves no index of them."""

    moving: frozenset[str] = frozenset()

    def _shape_relation(self, relation: StoredRelation, columns: Extents, distinct: bool) -> None:
        if relation.name not in self.moving:
            super()._shape_relation(relation, columns, distinct)

    def _clean(self) -> None:
        super()._clean()
        self.catalog.complete.difference_update(self.moving)
        for wanted in [wanted for wanted in self.catalog.arrangements if wanted.relation in self.moving]:
            self.catalog.arrangements.pop(wanted).free()


def _number(numbers: Sequence[int], rule: int) -> int:
    return numbers[rule] if 0 <= rule < len(numbers) else -1
