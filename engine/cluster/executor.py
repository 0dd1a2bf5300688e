"""The executor of one worker among several: each has the rows whose home it is, and they exchange what others need.

Same calls as the embedded executor's, and every worker makes them in the same order: `load` whatever rows it happens to have,
`run`, read its share of each relation. The root plans, for the sizes of all workers together, and tells the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dlog.engine.cluster.blocks import rows_of
from dlog.engine.cluster.catalog import ShardCatalog
from dlog.engine.cluster.dictionary import Dictionary
from dlog.engine.cluster.exchange import OutgoingRows, RowExchange, Rows, empty, heavy_rows, joined
from dlog.engine.cluster.ranking import Ranking, ranked
from dlog.engine.cluster.run import ShardRun
from dlog.engine.cluster.worker_group import PeerFailed, WorkerGroup
from dlog.engine.ir.rules import Program, Stratum
from dlog.engine.plan.column_types import ColumnType, Types, declared
from dlog.engine.plan.exchange.costs import Sizes
from dlog.engine.plan.exchange.distribute import EVERYWHERE_ROWS, distribute
from dlog.engine.plan.exchange.exchanges import DistributedScope
from dlog.engine.plan.exchange.numbering import refuse_counting
from dlog.engine.plan.exchange.places import ROOT, Heavy, choose_homes, inherited
from dlog.engine.plan.static.build import build_scope
from dlog.engine.runtime.static.executor import Executor, Progress, StratumRun
from dlog.engine.runtime.storage.columns import raw
from dlog.engine.values.table import Table

SPLIT_ROWS = 100_000
"""Rows from which on spreading is worth its messages."""


class ShardExecutor(Executor):
    """One worker's part of a run. Raises what the embedded executor raises, and PeerFailed where another worker did.

    Parameters
    ----------
    worker group
        The way to the other workers.
    everywhere
        Rows up to which a relation may be copied to every worker.
    split_rows
        Rows from which on a relation's rows with heavy values are spread over all workers.
    ranking
        What is told of the order of symbols, before anything is evaluated.
    """

    def __init__(
        self,
        program: Program,
        worker_group: WorkerGroup,
        *,
        memory: int | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        everywhere: int = EVERYWHERE_ROWS,
        split_rows: int = SPLIT_ROWS,
        ranking: Ranking | None = None,
    ) -> None:
        if worker_group.size > 1:
            refuse_counting(program)
        super().__init__(program, memory=memory, on_progress=on_progress)
        self.worker_group = worker_group
        self.everywhere = everywhere
        self.ranking = ranking
        self.homes = choose_homes(self.program)
        self.catalog: ShardCatalog = ShardCatalog(self.program, self.memory, worker_group, self.homes, split_rows)
        self.dictionary = Dictionary(self.catalog.symbols, self.catalog.records, program.types, worker_group.size)
        self.catalog.dictionary = self.dictionary
        self.split: dict[str, Heavy] = {}
        """The relations whose rows with heavy values at their home are spread."""
        self.row_exchange = RowExchange(worker_group, self.dictionary)
        self.plans: list[DistributedScope] = []
        self._blocks: dict[str, list[Rows]] = {}
        self._uses = self._last_uses()
        self._at_home: dict[str, list[Rows]] = {}

    def load(self, relation: str, table: Table) -> None:
        """Adds rows to a relation; they go to their homes when the run begins."""
        self._blocks.setdefault(relation, []).append(Rows(tuple(raw(c) for c in table.columns), table.rows))

    def load_block(self, relation: str, block: bytes | memoryview, owner: int) -> int:
        """Adds rows that were cut for a worker (`dlog.engine.cluster.blocks`), and returns how many; those for this one are at
        home already."""
        rows = rows_of(block, self.program.relations[relation], self.program.types, self.symbols, self.records)
        held = self._at_home if owner == self.worker_group.rank else self._blocks
        held.setdefault(relation, []).append(rows)
        return rows.height

    def run(self) -> None:
        """See the embedded executor's; all workers run together."""
        try:
            super().run()
        except PeerFailed:
            raise
        except BaseException:
            self.worker_group.fail()
            raise

    def _load_facts(self) -> None:
        """Sends all rows home: those of the program's text are the root's."""
        names = list(self.program.relations)
        sent = [self._outgoing(name) for name in names]
        self._blocks.clear()
        arrived, _ = self.row_exchange.swap(sent)
        heights = [0] * len(names)
        for number, name in enumerate(names):
            parts = [*self._at_home.pop(name, ()), *([arrived[name]] if name in arrived else ())]
            if parts:
                rows = joined(parts)
                heights[number] = rows.height
                self.catalog.relations[name].load(rows.columns, rows.height)
        if self.ranking is not None:
            heights[names.index(self.ranking.relation)] = self._rank(self.ranking)
        self._loaded |= {name for name, *held in zip(names, *self.worker_group.share(heights), strict=True) if any(held)}
        self.catalog.learn(names, names)
        self._spread([name for name in names if name in self.catalog.complete and self.homes[name] != ROOT])

    def _rank(self, ranking: Ranking) -> int:
        """Fills the relation of ranks; returns how many rows it has here."""
        name = ranking.relation
        held = [self.catalog.relations[relation].column(column) for relation, column in ranking.of]
        rows = ranked(self.worker_group, self.symbols, np.concatenate(held))
        arrived, _ = self.row_exchange.swap([OutgoingRows(name, self._types(name), self.homes[name], rows)])
        rows = arrived.get(name, empty(self._types(name)))
        self.catalog.relations[name].load(rows.columns, rows.height)
        return rows.height

    def _spread(self, names: Sequence[str]) -> None:
        """Spreads the rows of heavy values at the homes of complete relations."""
        self.split |= {name: heavy for name in names if (heavy := self.catalog.heavy(name, self.homes[name]))}
        if not self.split:
            return
        sent, kept = [], {}
        for name, heavy in self.split.items():
            relation, home = self.catalog.relations[name], self.homes[name]
            rows = Rows(tuple(np.array(relation.column(c)) for c in range(relation.arity)), relation.rows)
            whole = OutgoingRows(name, self._types(name), home, rows, heavy)
            leaving = heavy_rows(whole, home, self.dictionary)
            kept[name] = rows.take(np.delete(np.arange(rows.height), leaving))
            sent.append(replace(whole, rows=rows.take(leaving)))
        arrived, _ = self.row_exchange.swap(sent)
        for name, rows in kept.items():
            parts = joined([_widened(part) for part in (rows, arrived.get(name)) if part is not None])
            self.catalog.relations[name].load(parts.columns, parts.height)

    def _types(self, name: str) -> tuple[ColumnType, ...]:
        return tuple(declared(type) for _, type in self.program.relations[name].attributes)

    def _outgoing(self, name: str) -> OutgoingRows:
        types = self._types(name)
        parts = list(self._blocks.get(name, ()))
        facts = self.program.facts.get(name, ())
        if facts and self.worker_group.is_root:
            parts.append(Rows(self.catalog.encoder.columns(self.program, name), len(facts)))
        whole = joined([_widened(p) for p in parts]) if parts else empty(types)
        narrow = tuple(
            c.astype(np.int32) if t.kind.value in ("symbol", "record") else c for t, c in zip(types, whole.columns, strict=True)
        )
        return OutgoingRows(name, types, self.homes[name], Rows(narrow, whole.height))

    def _scope_run(self, number: int, stratum: Stratum) -> StratumRun:
        if self.worker_group.size == 1:
            return super()._scope_run(number, stratum)
        plan: DistributedScope = self.worker_group.from_root(self._plan(stratum) if self.worker_group.is_root else None)
        self.plans.append(plan)
        self.split.update(plan.split)
        self.homes.update((name, plan.homes[name]) for name in stratum.relations)
        self.scopes.append(plan.scope)
        self.catalog.name_copies(c for phase in plan.phases for c in phase.copies)
        scope = replace(plan.scope, variables=(*plan.scope.variables, *(m.name for m in plan.mirrors)))
        types = Types(plan.scope, self.program)
        pause = lambda: self._pause(number, stratum)  # noqa: E731
        return ShardRun(
            scope,
            self.catalog,
            self.thread_pool,
            pause,
            self.limits,
            plan=plan,
            row_exchange=self.row_exchange,
            types=types,
            homes=self.homes,
        )

    def _plan(self, stratum: Stratum) -> DistributedScope:
        scope = build_scope(stratum, self.program, self.catalog, self._loaded)
        self.catalog.keys.learn(scope.keys)
        split = {**self.split, **self._expected(stratum)}
        movable = set(stratum.relations) - self._loaded
        sizes = Sizes(self.catalog, self.worker_group.size)
        return distribute(scope, self.program, self.homes, sizes, self.everywhere, split, movable)

    def _expected(self, stratum: Stratum) -> dict[str, Heavy]:
        """The heavy values of the relation that a stratum makes, if it can have any: rows that are there are at their homes."""
        name, *others = stratum.relations
        home = self.homes[name]
        if others or stratum.recursive or home == ROOT or name in self._loaded or name in self.program.lattices:
            return {}
        heavy = inherited(stratum, home, self.catalog.heavy)
        return {name: heavy} if heavy else {}

    def _run_stratum(self, number: int, stratum: Stratum) -> None:
        super()._run_stratum(number, stratum)
        self.catalog.learn(stratum.relations, [name for name in stratum.relations if self._uses[name] > number])


def _widened(rows: Rows) -> Rows:
    return Rows(tuple(c.astype(np.int64, copy=False) for c in rows.columns), rows.height)
