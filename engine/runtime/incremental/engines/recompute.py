"""Rounds by recomputation: the static executor runs the whole program anew each round, and tables are compared.

The fallback for programs without an incremental form, and a second opinion for those that have one. A round costs what a run
costs; differences are made when they are asked for, except those of rounds that later rounds of the same commit replace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Program
from dlog.engine.rounds_engine import Frames, PlainRounds, RoundsEngine, StartingPoint
from dlog.engine.runtime.static.executor import Executor, Progress
from dlog.engine.runtime.storage.fact_encoder import FactEncoder
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.printer import Printer
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.values.differences import Columns, apply_changes, difference, words
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import Diagnostic, DlogError

External = tuple[Columns, int]


@dataclass(frozen=True, slots=True)
class _State:
    """Everything as of one round: swapped as a whole, so that readers in other threads see one round only."""

    round: int
    external: Mapping[str, External]
    executor: Executor | None


class Recompute(PlainRounds):
    """See `dlog.engine.rounds_engine.RoundsEngine`."""

    def __init__(
        self,
        program: Program,
        *,
        threads: int = 1,
        memory: int | None = None,
        max_iterations: int | None = None,
        old: RoundsEngine | StartingPoint | None = None,
    ) -> None:
        self.program = program
        self.threads = threads
        self.memory = memory
        self.max_iterations = max_iterations
        self.symbols: SymbolTable = SymbolTable() if old is None else old.symbols
        self.records = RecordTables(Memory(None)) if old is None else old.records
        self._rules = replace(program, facts={})
        first = 0 if old is None else old.round
        self._state = _State(first, {n: _empty(r.arity) for n, r in program.relations.items()}, None)
        self._before = self._state
        self._earlier: dict[str, list[Updates]] = {}
        self._last: dict[str, Updates] = {}
        self._printer = Printer()
        self._facts_pending = True
        """What the program's text alone says comes with the very first round."""

    @property
    def round(self) -> int:
        return self._state.round

    # -------------------------------------------------------------------------------------------------------------- commit

    def commit(self, inputs: Mapping[str, Updates], frames: Frames | None = None) -> int:
        before, state = self._before, self._state
        earlier: dict[str, list[Updates]] = {}
        changed = sorted({round for u in inputs.values() for round in np.unique(u.rounds).tolist()})
        rounds = changed or [state.round + 1]
        if self._facts_pending and rounds[0] > state.round + 1:
            rounds = [state.round + 1, *rounds]
        for number, round in enumerate(rounds):
            if number:
                for name in self.program.relations:
                    earlier.setdefault(name, []).append(_changes(before, state, name, self.program))
            before = state
            state = self._next(state, inputs, round)
        self._before, self._earlier, self._last, self._facts_pending = before, earlier, {}, False
        self._state = state
        return state.round

    def _next(self, state: _State, inputs: Mapping[str, Updates], round: int) -> _State:
        """The state after one round."""
        external = dict(state.external)
        if self._facts_pending and state.round == self._state.round:
            external |= self._facts()
        for name, updates in inputs.items():
            low, high = np.searchsorted(updates.rounds, (round, round + 1))
            columns = tuple(column[low:high] for column in updates.columns)
            external[name] = apply_changes(*external[name], columns, updates.diffs[low:high])
        executor = self._executor()
        self._printer.begin()
        for name, (columns, rows) in external.items():
            if rows:
                executor.load(name, Table(self.program.relations[name].kinds, columns, rows))
        executor.run()
        self._check_iterations(max((rule.iterations for rule in executor.profile), default=0))
        return _State(round, external, executor)

    def _facts(self) -> dict[str, External]:
        """The facts of the program's text."""
        encoder = FactEncoder(self.symbols, self.records)
        return {name: (encoder.columns(self.program, name), len(rows)) for name, rows in self.program.facts.items()}

    def _executor(self) -> Executor:
        """One more executor, whose ids are the same as those of all others."""
        limit = None if self.max_iterations is None else self._pause
        executor = Executor(self._rules, threads=self.threads, memory=self.memory, on_progress=limit)
        executor.catalog.symbols = self.symbols
        executor.catalog.printer = self._printer
        executor.catalog.records = self.records  # type: ignore[assignment]
        return executor

    def _pause(self, progress: Progress) -> None:
        self._check_iterations(progress.iteration)

    def _check_iterations(self, iterations: int) -> None:
        if self.max_iterations is not None and iterations > self.max_iterations:
            message = f"a stratum needs more than {self.max_iterations} iterations"
            raise DlogError(Diagnostic("too-many-iterations", message))

    # ------------------------------------------------------------------------------------------------------------- reading

    def changes(self, relation: str) -> Updates:
        if relation not in self._last:
            last = _changes(self._before, self._state, relation, self.program)
            parts = [*self._earlier.get(relation, ()), last]
            self._last[relation] = last if len(parts) == 1 else _joined(parts)
        return self._last[relation]

    def table(self, relation: str) -> Table:
        return _table(self._state, relation, self.program)

    def external(self, relation: str) -> Table:
        columns, rows = self._state.external[relation]
        return Table(self.program.relations[relation].kinds, columns, rows)

    def rows(self, relation: str) -> int:
        executor = self._state.executor
        return 0 if executor is None else executor.catalog.relations[relation].rows

    def ranks(self, relation: str) -> None:
        return None

    def explain(self) -> str:
        executor = self._state.executor or self._executor()
        return f"every round runs the program anew\n{executor.explain()}"

    def close(self) -> None:
        nothing = {n: _empty(r.arity) for n, r in self.program.relations.items()}
        self._state = self._before = _State(self.round, nothing, None)
        self._earlier, self._last = {}, {}


def _empty(arity: int) -> External:
    return tuple(np.empty(0, np.int64) for _ in range(arity)), 0


def _table(state: _State, relation: str, program: Program) -> Table:
    if state.executor is not None:
        return state.executor.stored_table(relation)
    columns, rows = _empty(program.relations[relation].arity)
    return Table(program.relations[relation].kinds, columns, rows)


def _changes(before: _State, after: _State, relation: str, program: Program) -> Updates:
    """The difference of a relation between two states, at the round of the second."""
    old, new = (_table(state, relation, program) for state in (before, after))
    held, now = (tuple(words(column) for column in table.columns) for table in (old, new))
    columns, diffs = difference(held, old.rows, now, new.rows)
    return Updates(columns, diffs, np.full(len(diffs), after.round, np.int64))


def _joined(parts: list[Updates]) -> Updates:
    columns = tuple(np.concatenate(pieces) for pieces in zip(*(part.columns for part in parts), strict=True))
    return Updates(columns, np.concatenate([p.diffs for p in parts]), np.concatenate([p.rounds for p in parts]))
