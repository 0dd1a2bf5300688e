"""The embedded executor: takes a typed program and its input tables, plans and runs stratum by stratum, gives tables back.

Each stratum is planned just before it runs, so that join orders follow the actual sizes of everything below it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dlog.dataclass import dataclass, immutable
from dlog.engine.compile.strata.dependencies import relations_asked
from dlog.engine.formats import size_limit
from dlog.engine.interruption import Delayed, check, delayed
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Program, Stratum
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Error
from dlog.engine.kernels.machine import read_ticks
from dlog.engine.plan.explain import explain
from dlog.engine.plan.incremental.thresholds import MARK, summed
from dlog.engine.plan.one_pass import in_one_pass
from dlog.engine.plan.static.build import build_scope
from dlog.engine.plan.static.restrict import restrict
from dlog.engine.runtime.preload import preload
from dlog.engine.runtime.static.scope import ScopeRun
from dlog.engine.runtime.static.thread_pool import ThreadPool
from dlog.engine.runtime.static.worker import VALUES, RunFailed, Worker
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.columns import raw
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.values.equivalence import first_pairs, pair_count, pairs_of
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError, Label

if TYPE_CHECKING:
    from dlog.engine.runtime.static.alternating import AlternatingRun
    from dlog.engine.runtime.static.iterated import IteratedRun


@immutable
class Progress:
    """The progress of a run: stratum i of n and its relations, the iteration, its changes, rows derived so far in the stratum,
    bytes held."""

    stratum: int
    strata: int
    relations: tuple[str, ...]
    iteration: int
    delta: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RuleProfile:
    """The costs of one rule: its text, seconds, the rows that its joins made (for its aggregates, too, and whether they were
    known or not), the rows that its relation has by it and had by no other before, iterations of its stratum."""

    text: str
    seconds: float
    derived: int
    new: int
    iterations: int


StratumRun: TypeAlias = "ScopeRun | IteratedRun | AlternatingRun"


class Executor:
    """Runs one program once. `load` its inputs, `run`, then read relations by name.

    Parameters
    ----------
    threads
        How many cores bulk work may use.
    memory
        Limit in bytes for relations and indexes; exceeding it raises DlogError. None: the machine's.
    on_progress
        Called about ten times a second during `run`, between native calls.
    """

    def __init__(
        self,
        program: Program,
        *,
        threads: int = 1,
        memory: int | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        preload()
        self.program = summed(program)
        self.memory = Memory(memory, max(threads, 1))
        self.catalog = Catalog(self.program, self.memory)
        self.thread_pool = ThreadPool([Worker(self.memory, n) for n in range(max(threads, 1))])
        self.on_progress = on_progress
        self.scopes: list[nodes.Scope] = []
        self._profile: list[tuple[str, int, int, int, int]] = []
        self._cycles_per_second = 1e9
        self._loaded: set[str] = set()
        self._has_begun = False
        self.limits = {io.relation: size_limit(io, program) for io in program.io if io.action == "limitsize"}

    @property
    def symbols(self) -> SymbolTable:
        return self.catalog.symbols

    @property
    def records(self) -> RecordTables:
        return self.catalog.records

    # ------------------------------------------------------------------------------------------------------------- data

    @delayed
    def load(self, relation: str, table: Table) -> None:
        """Adds a table's rows to a relation (its facts from the program text, and earlier loads, stay)."""
        stored = self.catalog.relations[relation]
        held = self._loaded_table(relation)
        columns: Sequence[np.ndarray] = table.columns
        if held.rows:
            columns = [np.concatenate((old, raw(new))) for old, new in zip(held.columns, table.columns, strict=True)]
        stored.load(columns, held.rows + table.rows)
        self._loaded.add(relation)

    def _loaded_table(self, relation: str) -> Table:
        """The rows that the relation holds already, as raw 64-bit values: earlier loads, or the facts of the program text."""
        stored = self.catalog.relations[relation]
        if relation not in self._loaded:
            columns = self.catalog.encoder.columns(self.program, relation)
            return Table(stored.kinds, columns, len(self.program.facts.get(relation, ())))
        return Table(stored.kinds, tuple(stored.column(c).astype(np.int64) for c in range(stored.arity)), stored.rows)

    def table(self, relation: str, copy: bool = True) -> Table:
        """The rows of a relation. Without `copy` the arrays are views that end with the executor."""
        classes = self.program.classes.get(relation)
        if classes is not None:
            return pairs_of(self.stored_table(classes, copy=False))
        return self.stored_table(relation, copy)

    def first_rows(self, relation: str, most: int) -> Table:
        """Some rows of a relation, as views that end with the executor."""
        classes = self.program.classes.get(relation)
        table = self.stored_table(classes or relation, copy=False)
        if classes is not None:
            return first_pairs(table, most)
        return Table(table.kinds, tuple(column[:most] for column in table.columns), min(table.rows, most))

    def stored_table(self, relation: str, copy: bool = True) -> Table:
        """The rows that are stored under a relation's name, which of an equivalence relation with classes are some pairs."""
        stored = self.catalog.relations[relation]
        columns = tuple(np.array(stored.typed(c), copy=copy or None) for c in range(stored.arity))
        return Table(stored.kinds, columns, stored.rows)

    def rows(self, relation: str) -> int:
        classes = self.program.classes.get(relation)
        if classes is not None:
            return pair_count(self.stored_table(classes, copy=False))
        return self.catalog.relations[relation].rows

    # -------------------------------------------------------------------------------------------------------------- run

    def run(self) -> None:
        """Evaluates all strata, once. Raises DlogError for mistakes that show only at run time."""
        if self._has_begun:
            raise InternalError("evaluation", "an executor runs once: a second time rows would come twice")
        self._has_begun = True
        with Delayed():
            self._evaluate()

    def _evaluate(self) -> None:
        """All strata; interruptions are heeded between native calls (`_pause`), where nothing is half done."""
        started, ticks = time.perf_counter(), int(read_ticks())
        self._load_facts()
        self.catalog.keys.forget()
        unused = self._unused_after()
        try:
            for number, stratum in enumerate(self.program.strata):
                check()
                if stratum.rules:
                    self._run_stratum(number, stratum)
                for name in unused.get(number, ()):
                    self.catalog.forget(name)
        finally:
            self.thread_pool.close()
        elapsed = time.perf_counter() - started
        self._cycles_per_second = max((int(read_ticks()) - ticks) / max(elapsed, 1e-9), 1.0)

    def _load_facts(self) -> None:
        for name, facts in self.program.facts.items():
            if name not in self._loaded and facts:
                held = self._loaded_table(name)
                self.catalog.relations[name].load(held.columns, held.rows)
                self._loaded.add(name)

    def _last_uses(self) -> dict[str, int]:
        """Per relation, the last stratum that reads or makes it."""
        last: dict[str, int] = {}
        for number, stratum in enumerate(self.program.strata):
            for name in (*stratum.relations, *relations_asked(self.program, stratum)):
                last[name] = number
        return last

    def _unused_after(self) -> dict[int, list[str]]:
        """By stratum, the relations whose last use it is."""
        unused: dict[int, list[str]] = {}
        for name, number in self._last_uses().items():
            unused.setdefault(number, []).append(name)
        return unused

    def _run_stratum(self, number: int, stratum: Stratum) -> None:
        run = self._scope_run(number, stratum)
        try:
            run.run()
        except RunFailed as failure:
            raise self._mistake(failure, run, stratum) from None
        except DlogError as error:
            raise self._at_rule(error, run, stratum) from None
        for rule, text in enumerate(run.rules):
            if rule in run.costs:
                costs = run.costs[rule]
                self._profile.append((text, costs.cycles, costs.derived, costs.new, run.iterations))

    def _scope_run(self, number: int, stratum: Stratum) -> StratumRun:
        """Plans a stratum. What few programs need is imported for these."""
        pause = lambda: self._pause(number, stratum)  # noqa: E731
        if not self.program.alternating.isdisjoint(stratum.relations):
            from dlog.engine.runtime.static.alternating import AlternatingRun

            loaded = frozenset(self._loaded)
            return AlternatingRun(stratum, self.program, self.catalog, self.thread_pool, pause, self.limits, loaded)
        if self._is_iterated(stratum):
            from dlog.engine.runtime.static.iterated import IteratedRun

            return IteratedRun(stratum, self.program, self.catalog, self.thread_pool, pause, self.limits)
        scope = self._plan_alone(stratum)
        self.scopes.append(scope)
        return ScopeRun(scope, self.catalog, self.thread_pool, pause, self.limits)

    def _is_iterated(self, stratum: Stratum) -> bool:
        return not self.program.iterated.isdisjoint(stratum.relations)

    def _plan_alone(self, stratum: Stratum) -> nodes.Scope:
        scope = build_scope(stratum, self.program, self.catalog, self._loaded)
        self.catalog.keys.learn(scope.keys)
        return in_one_pass(restrict(scope))

    def _pause(self, number: int, stratum: Stratum) -> None:
        check()
        if self.on_progress is None:
            return
        control = self.thread_pool.workers[0].control
        rows = sum(self.catalog.relations[n].rows for n in stratum.relations)
        shown = tuple(name for name in stratum.relations if MARK not in name)
        done = number + 1, len(self.program.strata), shown
        self.on_progress(Progress(*done, control[L.control.iteration], control[L.control.changes], rows, self.memory.used))

    def _mistake(self, failure: RunFailed, run: StratumRun, stratum: Stratum) -> Exception:
        if failure.code == Error.MEMORY:
            return self._at_rule(self.memory.exhausted(), run, stratum)
        if failure.code == Error.ROWS:
            return DlogError(Diagnostic("too-many-rows", "a relation would have more than 2147483646 rows"))
        if failure.code in VALUES:
            return self._at_rule(DlogError(Diagnostic(*VALUES[failure.code])), run, stratum)
        return InternalError("evaluation", f"kernel error {failure.code}")

    def _at_rule(self, error: DlogError, run: StratumRun, stratum: Stratum) -> DlogError:
        """The mistake, shown at the rule that was being evaluated where it has no place yet."""
        rule = run.current_rule()
        if not 0 <= rule < len(stratum.rules) or any(d.labels or d.place for d in error.diagnostics):
            return error
        label = Label(stratum.rules[rule].span, "while evaluating this rule")
        return DlogError([replace(d, labels=(label,), source=self.program.source) for d in error.diagnostics])

    # ----------------------------------------------------------------------------------------------------------- reports

    @property
    def profile(self) -> list[RuleProfile]:
        """The costs of each rule in the last run, in order of evaluation."""
        rate = self._cycles_per_second
        return [RuleProfile(text, ticks / rate, derived, new, n) for text, ticks, derived, new, n in self._profile]

    def explain(self) -> str:
        """The plan of every stratum: as it ran or, before `run`, for the sizes known now."""
        if not self.scopes:
            self._load_facts()
        ran = iter(self.scopes)
        return "\n".join(self._explained(s, ran) for s in self.program.strata if s.rules)

    def _explained(self, stratum: Stratum, ran: Iterator[nodes.Scope]) -> str:
        if not self.program.alternating.isdisjoint(stratum.relations):
            from dlog.engine.plan.static.alternating import explain_alternating

            return explain_alternating(stratum, self.program, self.catalog)
        if self._is_iterated(stratum):
            from dlog.engine.plan.static.iterations import explain_iterated

            return explain_iterated(stratum, self.program, self.catalog)
        return explain(next(ran, None) or self._plan_alone(stratum), self.program)
